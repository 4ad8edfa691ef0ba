// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F71: an application has a row locked, and whoever needs that row waits. Nobody else does.

#include "patience.hpp"
#include "postgres_bed.hpp"
#include "postgres_pooler.hpp"
#include "weir/store/postgres/transaction.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

/// A store with one connection for all that does not wait, whose commands wait for locks as long as
/// it takes.
class locked : public bed {
 public:
  locked()
      : bed{[] {
          auto o = quick();
          o.connections = 2;
          return o;
        }()} {
    let_locks_take_long(db);
  }

  void lock(std::string const& rows) {
    other_.must("BEGIN; SELECT 1 FROM weir." + rows + " FOR UPDATE");
  }

  template <class C>
  void begin(C const& c, int times = 10) {
    for (; times != 0; --times) begun_.push_back(start(through, c));
  }

  /// Others go on while none of those that were begun does; then these do, too.
  template <class... C>
  void others_go_on(C const&... c) {
    for (int i = 0; i != 10; ++i) (goes_on(c), ...);
    BOOST_TEST(ended() == 0);
    other_.must("COMMIT");
    BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return ended() == std::ssize(begun_); }));
    for (auto const& each : begun_) BOOST_TEST(!**each, (*each)->message());
    begun_.clear();
  }

  postgres_store through{store};  ///< what the commands are given to

 private:
  template <class C>
  void goes_on(C const& c) {
    auto const done = start(through, c);
    finish(io, *done);
    BOOST_TEST(!**done, (*done)->message());
  }
  [[nodiscard]] std::ptrdiff_t ended() const {
    return std::ranges::count_if(begun_, [](auto const& each) { return each->has_value(); });
  }

  connection other_{the_server().conninfo(database)};
  std::vector<std::shared_ptr<std::optional<error_code>>> begun_;
};

std::array<quota, 1> const a_million{quota::per_hour(1'000'000)};

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_locked)

BOOST_AUTO_TEST_CASE(F71_a_locked_bucket_holds_nobody_else_up) {
  locked b;
  command::take const held{.key = "held", .quotas = a_million};
  command::take const free{.key = "free", .quotas = a_million};
  BOOST_TEST(b(held).has_value());
  b.lock("buckets WHERE key = 'held'");
  b.begin(held);
  b.begin(command::reset_bucket{"held"}, 2);
  b.others_go_on(free, command::acquire_lock{"free", "h", 1h});
}

// Each of its clients has a session that may be another one's next.
BOOST_AUTO_TEST_CASE(F71_a_locked_bucket_holds_nobody_up_behind_a_pooler) {
  pooler const between{the_server()};
  locked b;
  b.through = postgres_store{b.io.get_executor(), between.conninfo(b.database), b.options};
  command::take const held{.key = "held", .quotas = a_million};
  BOOST_TEST(b(held).has_value());
  b.lock("buckets WHERE key = 'held'");
  b.begin(held);
  b.others_go_on(command::take{.key = "free", .quotas = a_million});
}

BOOST_AUTO_TEST_CASE(F71_a_locked_lock_holds_nobody_else_up) {
  locked b;
  command::acquire_lock const held{"held", "h", 1h};
  BOOST_TEST(b(held).has_value());
  b.lock("locks WHERE key = 'held'");
  b.begin(held);
  b.begin(command::release_lock{"held", "other"}, 2);
  b.others_go_on(command::acquire_lock{"free", "h", 1h}, command::release_lock{"free", "h"});
}

BOOST_AUTO_TEST_CASE(F71_a_locked_limiter_holds_nobody_else_up) {
  locked b;
  command::acquire_permit const held{"held", "h", 5, 1h};
  BOOST_TEST(b(held).has_value());
  b.lock("permit_lines WHERE key = 'held'");
  b.begin(held);
  b.others_go_on(command::acquire_permit{"free", "h", 5, 1h}, command::release_permit{"free", "h"});
}

BOOST_AUTO_TEST_CASE(F71_a_locked_job_holds_nobody_else_up) {
  locked b;
  std::vector<new_job> const jobs{job_of(1), job_of(2)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  auto const got = b(command::dequeue_jobs{"q", "h", 1, 2, 1h});
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST_REQUIRE(got->jobs.size() == 2U);
  auto const& first = got->jobs[0];
  auto const& second = got->jobs[1];
  b.lock("jobs WHERE fence = " + std::to_string(first.fence));
  b.begin(command::extend_lease{"q", first.id, first.fence, 1h});
  std::vector<new_job> const more{job_of(3)};
  b.others_go_on(command::extend_lease{"q", second.id, second.fence, 1h},
                 command::enqueue_jobs{"q", more});
  std::vector<finished_job> const finished{{first.id, first.fence, {}}};
  b.lock("jobs WHERE fence = " + std::to_string(first.fence));
  b.begin(command::complete_jobs{"q", finished}, 1);
  b.begin(command::cancel_job{"q", first.id}, 3);
  b.others_go_on(command::extend_lease{"q", second.id, second.fence, 1h});
}

BOOST_AUTO_TEST_CASE(F71_a_locked_queue_holds_nobody_else_up) {
  locked b;
  BOOST_TEST(b(command::pause_queue{"held"}).has_value());
  b.lock("queues WHERE queue = 'held'");
  b.begin(command::pause_queue{"held"}, 5);
  b.begin(command::resume_queue{"held"}, 5);
  b.others_go_on(command::pause_queue{"free"}, command::resume_queue{"free"});
}

// An application's transaction has a unique key for as long as it stays open.
BOOST_AUTO_TEST_CASE(R6_few_wait_for_an_open_key_and_nobody_behind_them) {
  auto o = quick();
  o.connections = 2;
  bed b{o};
  std::vector<new_job> const letters{job_of(200)};
  BOOST_TEST(b(command::enqueue_jobs{"other", letters}).has_value());
  auto const leased = b(command::dequeue_jobs{"other", "h", 1, 1, 1h});
  auto const& letter = leased.value().jobs.at(0);
  BOOST_TEST(b(command::bury_job{"other", letter.id, letter.fence, "why"}).has_value());

  connection application{the_server().conninfo(b.database)};
  application.must("BEGIN");
  postgres_transaction tx{application.get()};
  std::vector<new_job> const first{job_of(1, "key")};
  BOOST_TEST(tx.execute(command::enqueue_jobs{"q", first}).has_value());

  std::vector<std::shared_ptr<std::optional<error_code>>> others;
  for (std::uint8_t i = 2; i != 32; ++i) {
    std::vector<new_job> const same{job_of(i, "key")};
    others.push_back(start(b.store, command::enqueue_jobs{"q", same}));
  }
  auto const given_up = [&] {
    return std::ranges::count_if(others, [](auto const& one) {
      return one->has_value() && **one == errc::store_unavailable;
    });
  };
  // All are where they may wait by the time that the first one has waited enough.
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] { return given_up() != 0; }));
  auto const replay = start(b.store, command::replay_dead_letter{"other", letter.id});
  finish(b.io, *replay);
  BOOST_TEST(!**replay, (*replay)->message());
  BOOST_TEST(given_up() < 30);
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] { return given_up() == 30; }));
  application.must("ROLLBACK");
}

// Those who wait for one key leave the others their turns, each of which is taken.
BOOST_AUTO_TEST_CASE(F71_a_key_that_is_held_costs_no_other_key_its_turn) {
  auto o = quick();
  o.connections = 2;
  bed b{o};
  connection holder{the_server().conninfo(b.database)};
  connection other{the_server().conninfo(b.database)};
  auto const take = [](connection& by, std::uint8_t n, std::string_view key) {
    by.must("BEGIN");
    std::vector<new_job> const jobs{job_of(n, key)};
    BOOST_TEST(
        postgres_transaction{by.get()}.execute(command::enqueue_jobs{"q", jobs}).has_value());
  };
  take(holder, 1, "held");
  take(other, 2, "for a moment");
  std::vector<std::shared_ptr<std::optional<error_code>>> victims;
  auto const ask_for = [&](std::uint8_t n, std::string_view key) {
    std::vector<new_job> const jobs{job_of(n, key)};
    return start(b.store, command::enqueue_jobs{"q", jobs});
  };
  for (std::uint8_t i = 10; i != 60; ++i) victims.push_back(ask_for(i, "held"));
  auto const stranger = ask_for(3, "for a moment");
  auto const given_up = [&] {
    return std::ranges::count_if(victims, [](auto const& one) { return one->has_value(); });
  };
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] { return given_up() != 0; }));
  other.must("ROLLBACK");
  finish(b.io, *stranger);
  BOOST_TEST(!**stranger, (*stranger)->message());
  // And none of them waits for all the others: what one has waited for all have.
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] { return given_up() == 50; }));
  for (auto const& each : victims) BOOST_TEST((**each == errc::store_unavailable));
  holder.must("ROLLBACK");
}

BOOST_AUTO_TEST_CASE(F50_a_job_that_has_not_its_key_starts_whoever_takes_that) {
  bed b;
  auto job = job_of(1, "key");
  job.strategy = unique_strategy::until_executing;
  BOOST_TEST(b(command::enqueue_jobs{"q", {&job, 1}}).has_value());
  auto const leased = b(command::dequeue_jobs{"q", "h", 0, 1, 1h})->jobs.at(0);
  command::start_job const begins{.queue = "q", .id = leased.id, .fence = leased.fence};
  BOOST_TEST(b(begins).has_value());  // and gives the key up
  connection other{the_server().conninfo(b.database)};
  other.must("BEGIN");
  std::vector<new_job> const next{job_of(2, "key")};
  BOOST_TEST(
      postgres_transaction{other.get()}.execute(command::enqueue_jobs{"q", next}).has_value());
  auto const again = b(begins);
  BOOST_TEST(again.has_value(), again.error().message());
  other.must("ROLLBACK");
}

BOOST_AUTO_TEST_CASE(F71_housekeeping_waits_for_nobody_who_removes_buckets) {
  bed b;
  std::array const one{quota::per(1, 1s)};
  BOOST_TEST(b(command::take{.key = "k", .quotas = one}).has_value());
  BOOST_TEST(b(command::acquire_lock{"k", "h", 1s}).has_value());
  connection other{the_server().conninfo(b.database)};
  other.must("BEGIN; SELECT 1 FROM weir.state FOR UPDATE");
  BOOST_TEST(
      b.db.number("SELECT weir.tidy(1000, (SELECT max(due) + 100000000000 FROM weir.locks))") >= 1);
  other.must("ROLLBACK");
}

BOOST_AUTO_TEST_SUITE_END()
