// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The thread that executes a command: the one that gives it, or the store's own. A command asks the
// clock, and so the clock sees by whom it is executed.

#include "sqlite_bed.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <sys/syscall.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<std::uint64_t> syncs_here{0};
std::atomic<std::uint64_t> syncs_elsewhere{0};
std::atomic<std::thread::id> here{};

}  // namespace

// SQLite calls one of these.
extern "C" int fdatasync(int fd) {
  ++(std::this_thread::get_id() == here.load() ? syncs_here : syncs_elsewhere);
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
extern "C" int fsync(int fd) {
  ++(std::this_thread::get_id() == here.load() ? syncs_here : syncs_elsewhere);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace {

using namespace sqlite_test;

/// The host's, which counts by whom it is asked.
class seen_clock : public system_clock {
 public:
  [[nodiscard]] steady_time steady_now() const noexcept {
    ++(std::this_thread::get_id() == here.load() ? *here_ : *elsewhere_);
    return system_clock::steady_now();
  }
  [[nodiscard]] std::size_t asked_here() const noexcept { return here_->exchange(0); }
  [[nodiscard]] std::size_t asked_elsewhere() const noexcept { return elsewhere_->exchange(0); }

 private:
  using count = std::shared_ptr<std::atomic<std::size_t>>;
  count here_ = std::make_shared<std::atomic<std::size_t>>(0);
  count elsewhere_ = std::make_shared<std::atomic<std::size_t>>(0);
};

struct place {
  explicit place(sqlite_options const& o = quick()) : b{o, clock} {
    here = std::this_thread::get_id();
    // The first commands open the file, begin its log and take the reserve.
    for (auto const* const key : {"one", "two"}) {
      BOOST_TEST(b(command::acquire_lock{key, "h", 1h})->granted);
    }
    if (o.in_place) until_in_place(command::inspect_lock{"one"});
    forget();
  }
  void forget() const {
    static_cast<void>(clock.asked_here());
    static_cast<void>(clock.asked_elsewhere());
  }

  /// Is it executed by this thread?
  template <class C>
  bool in_place(C const& c) {
    forget();
    BOOST_TEST(b(c).has_value());
    auto const here_seen = clock.asked_here();
    auto const elsewhere = clock.asked_elsewhere();
    BOOST_TEST(here_seen + elsewhere != 0U);
    return elsewhere == 0;
  }

  /// Once the store's thread has nothing else to do.
  template <class C>
  void until_in_place(C const& c) {
    while (!in_place(c)) std::this_thread::yield();
  }

  seen_clock clock{};
  basic_bed<seen_clock> b;
};

std::vector<new_job> jobs(std::uint64_t first, std::size_t n, std::string_view payload = "{}") {
  std::vector<new_job> out;
  for (std::size_t i = 0; i != n; ++i) out.push_back(job_of(first + i, payload));
  return out;
}

std::array const quotas{quota::per_hour(5)};

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_in_place)

BOOST_AUTO_TEST_CASE(a_brief_command_is_executed_by_the_thread_that_gives_it) {
  place p;
  p.until_in_place(command::take{"k", quotas, 1, {}});
  p.until_in_place(command::acquire_permit{"k", "h", 1, 1h, {}});
  p.until_in_place(command::release_permit{"k", "h", 0});
  auto const few = jobs(1, 16);
  p.until_in_place(command::enqueue_jobs{"q", few});
  p.until_in_place(command::find_job{"q", few[0].id});
  auto const got = p.b(command::dequeue_jobs{"q", "h", 1, 16, 1h});
  BOOST_TEST_REQUIRE(got->jobs.size() == 16U);
  p.until_in_place(command::dequeue_jobs{"q", "h", 1, 16, 1h});
  std::array const done{finished_job{got->jobs[0].id, got->jobs[0].fence, {}}};
  p.until_in_place(command::complete_jobs{"q", done});
}

BOOST_AUTO_TEST_CASE(what_may_take_longer_is_not) {
  place p;
  BOOST_TEST(!p.in_place(command::enqueue_jobs{"q", jobs(1, 17)}));
  std::string const large((16U << 10U) + 1, 'x');
  BOOST_TEST(!p.in_place(command::enqueue_jobs{"q", jobs(20, 1, '"' + large + '"')}));
  BOOST_TEST(!p.in_place(command::dequeue_jobs{"q", "h", 0, 17, 1h}));
  BOOST_TEST(!p.in_place(command::list_jobs{"q", job_state::pending, 17, {}}));
  BOOST_TEST(!p.in_place(command::list_jobs{"q", job_state::pending, 1, {}}));
  BOOST_TEST(!p.in_place(command::read_queue_stats{"q"}));
  BOOST_TEST(!p.in_place(command::inspect_permits{"k"}));
  BOOST_TEST(!p.in_place(command::gc_stale_pointers{0, 1, {}}));
  // A line of which all may have to be read.
  for (int n = 0; n != 1001; ++n) {
    BOOST_TEST(p.b(command::acquire_permit{"k", std::to_string(n), 1, 1h, 1h}).has_value());
  }
  BOOST_TEST(!p.in_place(command::acquire_permit{"other", "h", 1, 1h, {}}));
  p.until_in_place(command::acquire_lock{"k", "h", 1h});
}

BOOST_AUTO_TEST_CASE(what_waits_for_the_disk_is_not_but_what_reads_is) {
  auto o = quick();
  o.durable = durability::power_loss;
  place p{o};
  BOOST_TEST(!p.in_place(command::acquire_lock{"k", "h", 1h}));
  p.until_in_place(command::inspect_lock{"k"});
}

BOOST_AUTO_TEST_CASE(where_it_is_not_wanted_nothing_is) {
  auto o = quick();
  o.in_place = false;
  place p{o};
  BOOST_TEST(!p.in_place(command::acquire_lock{"k", "h", 1h}));
  BOOST_TEST(!p.in_place(command::inspect_lock{"k"}));
}

BOOST_AUTO_TEST_CASE(of_many_that_are_given_at_once_one_is) {
  place p;
  std::vector<std::uint64_t> seen;
  BOOST_TEST(p.b(command::enqueue_jobs{"q", jobs(1, 1)}).has_value());
  p.forget();
  auto const give = [&](std::uint64_t n) {
    auto const one = jobs(n, 1);
    p.b.store.async_execute(command::enqueue_jobs{"q", one}, [&](error_code ec, auto const&) {
      BOOST_TEST(!ec);
      p.b.store.async_execute(command::read_queue_stats{"q"}, [&](error_code e, queue_stats s) {
        BOOST_TEST(!e);
        seen.push_back(s.pending);
      });
    });
  };
  std::size_t rounds = 0;
  for (std::size_t most = 0; most != 1; ++rounds) {  // none, if the thread was at work just then
    boost::asio::post(p.b.io, [&] {
      for (std::uint64_t n = 0; n != 100; ++n) give(2 + 100 * rounds + n);
      most = p.clock.asked_here();
      BOOST_TEST(most <= 1U);
    });
    p.b.io.restart();
    p.b.io.run();
    p.forget();
    BOOST_TEST_REQUIRE(most <= 1U);
  }
  BOOST_TEST(seen.size() == 100 * rounds);
  BOOST_TEST(std::ranges::max(seen) == 1 + 100 * rounds);
}

BOOST_AUTO_TEST_CASE(what_is_given_later_is_executed_later) {
  place p;
  std::uint64_t seen = 0;
  for (std::uint64_t n = 1; n <= 2000; n += 20) {
    auto const many = jobs(n, 20);  // not brief
    p.b.store.async_execute(command::enqueue_jobs{"q", many},
                            [](error_code ec, auto const&) { BOOST_TEST(!ec); });
    p.b.store.async_execute(command::read_queue_stats{"q"}, [&](error_code ec, queue_stats s) {
      BOOST_TEST(!ec);
      seen = s.pending;
    });
    p.b.io.restart();
    p.b.io.run();
    BOOST_TEST_REQUIRE(seen == n + 19);
  }
}

BOOST_AUTO_TEST_CASE(at_a_bound_nothing_that_would_look_for_room_is) {
  auto o = quick();
  o.max_jobs = 40;
  place p{o};
  p.until_in_place(command::enqueue_jobs{"q", jobs(1, 1)});
  BOOST_TEST(p.b(command::enqueue_jobs{"q", jobs(2, 10)}).has_value());
  BOOST_TEST(!p.in_place(command::enqueue_jobs{"q", jobs(20, 1)}));
  p.until_in_place(command::find_job{"q", id(1)});
}

BOOST_AUTO_TEST_CASE(an_outage_is_over_when_a_command_in_place_has_succeeded) {
  auto o = quick();
  o.busy_timeout = {};
  place p{o};
  {
    connection db{p.b.home.file()};
    db.must("BEGIN IMMEDIATE");
    BOOST_TEST(p.b(command::acquire_lock{"k", "h", 1h}).error() == errc::store_unavailable);
    BOOST_TEST(!p.b.store.last_failure().over);
  }
  p.until_in_place(command::inspect_lock{"k"});
  BOOST_TEST(p.b.store.last_failure().over);
}

BOOST_AUTO_TEST_CASE(nobody_waits_in_it_for_who_has_the_file) {
  place p;
  connection db{p.b.home.file()};
  db.must("BEGIN IMMEDIATE");
  std::optional<bool> granted;
  p.b.store.async_execute(command::acquire_lock{"k", "h", 1h}, [&](error_code ec, auto const& g) {
    BOOST_TEST(!ec);
    granted = g.granted;
  });
  db.must("COMMIT");
  p.b.io.restart();
  p.b.io.run();
  BOOST_TEST(granted.value_or(false));
  BOOST_TEST(p.clock.asked_here() == 0U);
  p.until_in_place(command::acquire_lock{"another", "h", 1h});
}

BOOST_AUTO_TEST_CASE(nothing_in_it_waits_for_the_disk) {
  place p;
  syncs_here = syncs_elsewhere = 0;
  std::size_t in_place = 0;
  for (std::uint64_t n = 0; n != 3000; ++n) {
    auto const key = "k" + std::to_string(n);
    if (p.in_place(command::acquire_lock{key, "h", 1h})) {
      ++in_place;
    } else {
      p.until_in_place(command::inspect_lock{"k"});  // the log may have been written back by now
    }
  }
  BOOST_TEST(syncs_here == 0U);
  BOOST_TEST(syncs_elsewhere != 0U);
  BOOST_TEST(in_place > 1000U);
}

BOOST_AUTO_TEST_CASE(a_closed_store_is_closed) {
  place p;
  p.b.store.close();
  BOOST_TEST(p.b(command::inspect_lock{"k"}).error() == errc::closed);
}

BOOST_AUTO_TEST_CASE(threads_that_give_commands_at_once_do_not_meet) {
  place p;
  boost::asio::thread_pool threads{4};
  std::atomic<int> inside{0};
  std::atomic<int> collisions{0};
  std::atomic<int> errors{0};
  auto const use = [&](std::string holder) -> boost::asio::awaitable<void> {
    constexpr auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
    for (int n = 0; n != 200;) {
      auto [ec, g] =
          co_await p.b.store.async_execute(command::acquire_permit{"k", holder, 1, 1h, 1h}, token);
      if (ec) ++errors;
      if (!g.granted) {
        co_await p.b.store.async_execute(command::await_permit{"k", holder}, token);
        continue;
      }
      if (inside++ != 0) ++collisions;
      co_await p.b.store.async_execute(command::inspect_lock{"k"}, token);
      --inside;
      auto [failed, r] =
          co_await p.b.store.async_execute(command::release_permit{"k", holder, g.fence}, token);
      if (failed || !r.freed) ++errors;
      ++n;
    }
  };
  for (auto const* const holder : {"a", "b", "c", "d", "e", "f"}) {
    boost::asio::co_spawn(threads, use(holder), boost::asio::detached);
  }
  p.b.io.restart();
  auto const work = boost::asio::make_work_guard(p.b.io);
  std::thread runs{[&] { p.b.io.run(); }};
  threads.join();
  p.b.io.stop();
  runs.join();
  BOOST_TEST(collisions == 0);
  BOOST_TEST(errors == 0);
}

BOOST_AUTO_TEST_SUITE_END()
