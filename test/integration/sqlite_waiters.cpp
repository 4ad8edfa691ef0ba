// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Hints: at once within a store, by polling from one store to another on the same file. What they
// promise is little; that nobody waits for ever who could be told is checked all the same.

#include "sqlite_bed.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <deque>
#include <string>
#include <vector>

namespace {

using namespace sqlite_test;
namespace asio = boost::asio;

/// Two stores on one file, or one twice.
struct two_stores {
  explicit two_stores(bool distinct)
      : here{io.get_executor(), home.file(), quick()},
        there{distinct ? sqlite_store{io.get_executor(), home.file(), quick()} : here} {}

  template <class C>
  auto in(sqlite_store const& store, C const& c) {
    return ask(io, store, c);
  }

  /// Starts to wait; what comes is told in the order in which it came.
  template <class C>
  void wait(sqlite_store const& store, C const& c, std::string name) {
    store.async_execute(c, [this, name = std::move(name)](error_code ec, hint) {
      told.push_back(ec ? name + ": " + ec.message() : name);
    });
  }

  /// Waits until `n` have been told.
  void until_told(std::size_t n) {
    io.restart();
    while (told.size() < n && io.run_one() != 0) {
    }
    BOOST_TEST_REQUIRE(told.size() == n);
  }
  /// Lets everybody be told who is to be told by what has been done.
  void settle() {
    for (auto const& s : {here, there}) BOOST_TEST(in(s, command::inspect_lock{"k"}).has_value());
    io.restart();
    io.poll();
  }

  command::acquire_permit acquire(std::string_view holder) { return {"k", holder, 1, 1h, 1h}; }

  directory home;
  asio::io_context io;
  sqlite_store here;
  sqlite_store there;
  std::vector<std::string> told{};
};

std::vector<bool> const near_and_far{false, true};

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_waiters)

BOOST_AUTO_TEST_CASE(F10_a_freed_permit_wakes_the_first_in_line_and_nobody_else) {
  for (bool const far : near_and_far) {
    two_stores s{far};
    auto const fence = s.in(s.there, s.acquire("holder"))->fence;
    std::array const waiting{"first", "second", "third"};
    for (auto const* const holder : waiting) BOOST_TEST(!s.in(s.here, s.acquire(holder))->granted);
    for (auto const* const holder : {"third", "second", "first"}) {
      s.wait(s.here, command::await_permit{"k", holder}, holder);
    }
    s.settle();
    BOOST_TEST(s.told.empty());
    BOOST_TEST(s.in(s.there, command::release_permit{"k", "holder", fence})->freed);
    s.until_told(1);
    s.settle();
    BOOST_TEST((s.told == std::vector<std::string>{"first"}));
    BOOST_TEST(s.in(s.here, s.acquire("first"))->granted);
    BOOST_TEST(s.in(s.there, command::release_permit{"k", "first", 0})->freed);
    s.until_told(2);
    BOOST_TEST((s.told == std::vector<std::string>{"first", "second"}));
    s.here.close();
    s.until_told(3);
  }
}

BOOST_AUTO_TEST_CASE(who_has_no_ticket_or_whose_turn_it_is_is_told_at_once) {
  two_stores s{false};
  s.wait(s.here, command::await_permit{"k", "nobody"}, "nobody");
  s.until_told(1);
  BOOST_TEST(s.in(s.here, s.acquire("holder"))->granted);
  BOOST_TEST(!s.in(s.here, s.acquire("first"))->granted);
  BOOST_TEST(s.in(s.here, command::release_permit{"k", "holder", 0})->freed);
  s.wait(s.here, command::await_permit{"k", "first"}, "first");
  s.until_told(2);
}

BOOST_AUTO_TEST_CASE(who_leaves_the_line_is_told_and_so_is_who_moves_up) {
  for (bool const far : near_and_far) {
    two_stores s{far};
    BOOST_TEST(s.in(s.there, command::acquire_permit{"k", "holder", 2, 1h, 1h})->granted);
    BOOST_TEST(s.in(s.there, command::acquire_permit{"k", "another", 2, 1h, 1h})->granted);
    BOOST_TEST(!s.in(s.here, s.acquire("first"))->granted);
    BOOST_TEST(!s.in(s.here, command::acquire_permit{"k", "second", 3, 1h, 1h})->granted);
    s.wait(s.here, command::await_permit{"k", "second"}, "second");
    s.wait(s.here, command::await_permit{"k", "first"}, "first");
    s.settle();
    BOOST_TEST(s.told.empty());
    BOOST_TEST(s.in(s.there, command::release_permit{"k", "first", 0})->left_line);
    s.until_told(2);
    s.settle();
  }
}

BOOST_AUTO_TEST_CASE(a_job_that_is_due_wakes_one_who_waits_for_jobs) {
  for (bool const far : near_and_far) {
    two_stores s{far};
    BOOST_TEST(s.in(s.here, command::inspect_lock{"k"}).has_value());
    for (int i = 0; i != 3; ++i) s.wait(s.here, command::await_jobs{}, std::to_string(i));
    s.settle();
    BOOST_TEST(s.told.empty());
    std::vector<new_job> const jobs{job_of(1)};
    BOOST_TEST(s.in(s.there, command::enqueue_jobs{"q", jobs}).has_value());
    s.until_told(1);
    BOOST_TEST(s.told.front() == "0");
    BOOST_TEST(s.in(s.here, command::dequeue_jobs{"q", "h", 0, 1, 1h})->jobs.size() == 1U);
    std::vector<new_job> const more{job_of(2)};
    auto const before = s.told.size();
    if (before < 3) {
      BOOST_TEST(s.in(s.there, command::enqueue_jobs{"q", more}).has_value());
      // A job that nobody has taken yet is told to one more each time.
      while (s.told.size() <= before && s.io.run_one() != 0) {
      }
    }
    s.here.close();
    s.until_told(3);
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_job_is_told_to_who_has_its_lease) {
  for (bool const far : near_and_far) {
    two_stores s{far};
    std::vector<new_job> const jobs{job_of(1), job_of(2), job_of(3)};
    BOOST_TEST(s.in(s.there, command::enqueue_jobs{"queue", jobs}).has_value());
    BOOST_TEST(
        s.in(s.here,
             command::dequeue_jobs{.queue = "queue", .holder = "holder", .limit = 2, .lease = 1h})
            ->jobs.size() == 2U);
    for (std::size_t n = 0; n != 2; ++n) {
      s.wait(s.here, command::await_cancel{"holder"}, "holder");
      s.settle();
      if (n == 0) {  // of one that nobody has
        BOOST_TEST(s.in(s.there, command::cancel_job{"queue", jobs[2].id, true}).has_value());
        s.settle();
      }
      BOOST_TEST(s.told.size() == n);
      BOOST_TEST((*s.in(s.there, command::cancel_job{"queue", jobs[n].id, true}) ==
                  cancel_outcome::cancelled));
      s.until_told(n + 1);
    }
    s.wait(s.here, command::await_cancel{"holder"}, "holder");
    s.here.close();
    s.until_told(3);
  }
}

BOOST_AUTO_TEST_CASE(so_does_one_that_will_be_due_earlier_than_any_other) {
  for (bool const far : near_and_far) {
    two_stores s{far};
    std::vector<new_job> late{job_of(1)};
    late[0].delay = 2h;
    BOOST_TEST(s.in(s.there, command::enqueue_jobs{"q", late}).has_value());
    s.wait(s.here, command::await_jobs{}, "told");
    s.settle();
    std::vector<new_job> later{job_of(2)};
    later[0].delay = 3h;
    BOOST_TEST(s.in(s.there, command::enqueue_jobs{"r", later}).has_value());
    s.settle();
    BOOST_TEST(s.told.empty());
    std::vector<new_job> earlier{job_of(3)};
    earlier[0].delay = 1h;
    BOOST_TEST(s.in(s.there, command::enqueue_jobs{"s", earlier}).has_value());
    s.until_told(1);
  }
}

BOOST_AUTO_TEST_CASE(who_waits_for_jobs_that_are_there_is_told_at_once) {
  two_stores s{false};
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(s.in(s.here, command::enqueue_jobs{"q", jobs}).has_value());
  s.wait(s.here, command::await_jobs{}, "told");
  s.until_told(1);
}

BOOST_AUTO_TEST_CASE(an_application_s_transaction_is_noticed_too) {
  two_stores s{false};
  BOOST_TEST(s.in(s.here, command::inspect_lock{"k"}).has_value());
  s.wait(s.here, command::await_jobs{}, "told");
  s.settle();
  connection db{s.home.file()};
  db.must("BEGIN IMMEDIATE");
  {
    std::vector<new_job> const jobs{job_of(1)};
    sqlite_transaction tx{db.get()};
    BOOST_TEST(tx.execute(command::enqueue_jobs{"q", jobs}).has_value());
  }
  db.must("COMMIT");
  s.until_told(1);
}

BOOST_AUTO_TEST_CASE(R7_a_wait_can_be_cancelled_and_then_wakes_nobody_in_vain) {
  two_stores s{false};
  BOOST_TEST(s.in(s.here, s.acquire("holder"))->granted);
  BOOST_TEST(!s.in(s.here, s.acquire("first"))->granted);
  std::deque<asio::cancellation_signal> signals(40);
  int aborted = 0;
  auto const cancellable = [&](std::size_t i) {
    return asio::bind_cancellation_slot(signals[i].slot(), [&](error_code ec, hint) {
      aborted += ec == asio::error::operation_aborted;
    });
  };
  for (std::size_t i = 0; i != signals.size(); i += 2) {
    s.here.async_execute(command::await_permit{"k", "first"}, cancellable(i));
    s.here.async_execute(command::await_jobs{}, cancellable(i + 1));
  }
  s.wait(s.here, command::await_permit{"k", "first"}, "permit");
  s.wait(s.here, command::await_jobs{}, "jobs");
  s.settle();
  for (auto& signal : signals) signal.emit(asio::cancellation_type::total);
  s.settle();
  BOOST_TEST(aborted == 40);
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(s.in(s.here, command::enqueue_jobs{"q", jobs}).has_value());
  s.until_told(1);
  BOOST_TEST(s.in(s.here, command::release_permit{"k", "holder", 0})->freed);
  s.until_told(2);
}

BOOST_AUTO_TEST_SUITE_END()
