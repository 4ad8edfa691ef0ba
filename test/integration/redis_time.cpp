// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on servers whose clocks are wrong (F99, F102).

#include "clock_steps.hpp"
#include "redis_nodes.hpp"
#include "redis_server.hpp"
#include "weir/id_source.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace redis_test;
using weir_test::an_hour;

std::string log_of(server const& s) {
  std::ifstream in{s.directory() + "/log"};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// A store on a server whose clock is moved.
struct moved {
  explicit moved(std::vector<std::string> options = {})
      : there{std::move(options), WEIR_MOVED_CLOCK},
        on{there} {}

  auto ask() {
    return [this](auto const& c) { return on(c); };
  }
  auto move() {
    return [this](std::int64_t seconds) { there.move_clock(seconds); };
  }

  server there;
  bed on;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_time)

BOOST_AUTO_TEST_CASE(F99_time_goes_on_when_the_clock_is_set_back) {
  moved m;
  weir_test::set_back(m.ask(), m.move());
  BOOST_TEST(log_of(m.there).find("time goes on from where it was") != std::string::npos);
}

// As that of a machine without a battery when it starts.
constexpr std::int64_t many_years = 15 * 365 * 24 * an_hour;
BOOST_AUTO_TEST_CASE(F99_time_goes_on_when_the_clock_begins_long_ago) {
  moved m;
  weir_test::set_back(m.ask(), m.move(), many_years);
}

BOOST_AUTO_TEST_CASE(F99_nothing_ends_when_a_clock_that_began_long_ago_is_right_again) {
  moved m;
  weir_test::behind_for_a_moment(m.ask(), m.move(), 3, many_years);
}

BOOST_AUTO_TEST_CASE(F99_nothing_waits_for_a_clock_that_was_ahead) {
  moved m;
  weir_test::ahead_for_a_moment(m.ask(), m.move());
}

BOOST_AUTO_TEST_CASE(F99_nothing_ends_when_a_clock_that_was_behind_is_right_again) {
  moved m;
  weir_test::behind_for_a_moment(m.ask(), m.move());
}

BOOST_AUTO_TEST_CASE(F99_nothing_ends_when_a_clock_that_was_behind_is_nearly_right_again) {
  moved m;
  weir_test::behind_for_a_moment(m.ask(), m.move(), 3);
}

// The server keeps the keys by its own clock, and is told for how long only now and then.
BOOST_AUTO_TEST_CASE(F99_what_is_renewed_by_a_clock_that_is_behind_outlives_its_correction) {
  moved m;
  auto const ask = m.ask();
  auto const move = m.move();
  auto const mine = ask(command::acquire_permit{"held", "me", 1, 1min, {}});
  BOOST_TEST_REQUIRE(mine->granted);
  BOOST_TEST(ask(command::acquire_permit{"line", "owner", 1, 2h, {}})->granted);
  BOOST_TEST(ask(command::acquire_permit{"line", "me", 1, 1min, 1min})->place == 1U);
  constexpr std::int64_t later = 300;
  for (auto const seconds : {-an_hour, later - an_hour}) {
    move(seconds);
    BOOST_TEST(ask(command::renew_permit{"held", "me", mine->fence, 10min}).has_value());
    BOOST_TEST(ask(command::acquire_permit{"line", "me", 1, 1min, 10min})->place == 1U);
  }
  move(later);
  BOOST_TEST(!ask(command::acquire_permit{"held", "other", 1, 1min, {}})->granted);
  BOOST_TEST(ask(command::renew_permit{"held", "me", mine->fence, 10min}).has_value());
  BOOST_TEST(ask(command::acquire_permit{"line", "other", 1, 1min, 10min})->place == 2U);
}

BOOST_AUTO_TEST_CASE(F102_time_goes_on_at_a_replica_that_is_behind) {
  server const master{{"--repl-diskless-sync-delay", "0"}, WEIR_MOVED_CLOCK};
  server const replica{{"--replicaof", "127.0.0.1 " + std::to_string(master.port()),
                        "--repl-diskless-sync-delay", "0"},
                       WEIR_MOVED_CLOCK};
  replica.move_clock(-an_hour);
  bed at_master{master.address(), unhurried()};
  bed at_replica{replica.address(), unhurried()};
  bool promoted = false;
  weir_test::set_back([&](auto const& c) { return promoted ? at_replica(c) : at_master(c); },
                      [&](std::int64_t) {
                        if (promoted) return;
                        cluster::wait("replica that is up to date", [&] {
                          return replication_offset(master) == replication_offset(replica);
                        });
                        replica.ask("replicaof no one");
                        promoted = true;
                      });
}

// A replica that is promoted may lack what was written last.
BOOST_AUTO_TEST_CASE(F102_fences_grow_at_a_replica_that_is_behind_and_lacks_the_last_ones) {
  moved m;
  auto const ask = m.ask();
  auto const fence = [&](bool permit) {
    auto const out = permit ? ask(command::acquire_permit{"key", "me", 1, 1h, {}})->fence
                            : ask(command::acquire_lock{"key", "me", 1h})->fence;
    m.there.ask("del '{weir:0}:l:key' '{weir:0}:pe:key' '{weir:0}:pf:key'");
    return out;
  };
  auto const note = [&] { return m.there.ask("get '{weir:0}:time'"); };
  for (bool const permit : {false, true}) {
    m.there.move_clock(0);
    m.there.ask("del '{weir:0}:time'");
    auto const first = fence(permit);
    auto const noted = note();
    auto last = first;
    BOOST_TEST(weir_test::happens([&] {
      auto const next = fence(permit);
      bool const same = note() == noted;
      if (same) last = next;
      return !same || last - first > 500'000;
    }));
    BOOST_TEST_REQUIRE(last > first);
    m.there.ask("set '{weir:0}:time' " + noted);
    m.there.ask("set '{weir:0}:fence' " + std::to_string(first));
    m.there.move_clock(-an_hour);
    BOOST_TEST(fence(permit) > last);
    BOOST_TEST(fence(permit) > last);
  }
}

// Its clock may be behind by so little that time does not go on from where it was.
BOOST_AUTO_TEST_CASE(F102_fences_grow_at_a_replica_that_is_a_little_behind) {
  moved m;
  auto const ask = m.ask();
  auto const fence = [&] { return ask(command::acquire_lock{"key", "me", 1h})->fence; };
  auto const forget = [&] { m.there.ask("del '{weir:0}:l:key'"); };
  // A fence that was given is never far ahead of the noted time.
  auto const first = fence();
  auto last = first;
  BOOST_TEST(weir_test::happens([&] {
    forget();
    last = fence();
    auto const noted = std::stoull(m.there.ask("get '{weir:0}:time'"));
    BOOST_TEST(last - noted <= 200'000U);
    return last - first > 2'000'000;
  }));
  m.there.ask("set '{weir:0}:time' " + std::to_string(last));
  m.there.ask("set '{weir:0}:fence' " + std::to_string(first));
  m.there.move_clock(-1);
  for (int i = 0; i != 2; ++i) {
    forget();
    auto const next = fence();
    BOOST_TEST(next > last);
    last = next;
  }
}

// A server without room takes a note of the time from what drains it.
BOOST_AUTO_TEST_CASE(F99_a_full_server_is_drained_after_its_clock_was_set_back) {
  moved m;
  auto const ask = m.ask();
  std::vector<new_job> jobs(100);
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    jobs[i].id.data()[0] = static_cast<std::uint8_t>(i + 1);
    jobs[i].kind = "kind";
  }
  BOOST_TEST_REQUIRE(ask(command::enqueue_jobs{"q", jobs}).has_value());
  auto const lease = ask(command::dequeue_jobs{"q", "gone", 1, 50, 500ms});
  BOOST_TEST(lease->jobs.size() == 50U);
  m.there.ask("config set maxmemory 1");
  auto const note = [&] {
    std::string all;
    for (int shard = 0; shard != 8; ++shard) {
      all += m.there.ask("get '{weir:" + std::to_string(shard) + "}:time'") + " ";
    }
    return all;
  };
  auto const before = note();
  BOOST_TEST(weir_test::happens([&] {
    (void)ask(command::dequeue_jobs{"q", "drains", 0, 1, 500ms});
    return note() != before;
  }));
  m.there.move_clock(-an_hour);
  std::size_t done = 0;
  BOOST_TEST(weir_test::happens([&] {
    auto const some = ask(command::dequeue_jobs{"q", "drains", 0, 100, 1h});
    std::vector<finished_job> ends;
    for (auto const& j : some->jobs) ends.push_back({j.id, j.fence, {}});
    if (!ends.empty()) done += ask(command::complete_jobs{"q", ends})->size();
    return done == jobs.size();
  }));
}

// A command that is refused makes the time go on, too: a lease of the dead ends.
BOOST_AUTO_TEST_CASE(F99_leases_end_on_a_full_server_after_its_clock_was_set_back) {
  moved m;
  auto const ask = m.ask();
  constexpr auto brief = 500ms;
  std::array<new_job, 1> jobs{};
  jobs[0].id.data()[0] = 1;
  jobs[0].kind = "kind";
  BOOST_TEST_REQUIRE(ask(command::enqueue_jobs{"queue", jobs}).has_value());
  auto const free = [&](auto const& c, auto is_free) {
    BOOST_TEST(weir_test::happens([&] { return is_free(ask(c)); }));
  };
  auto const is_granted = [](auto const& got) { return got.has_value() && got->granted; };
  auto const is_over = [](auto const& got) { return got.has_error() || got->granted; };
  auto const stage = [&](auto const& taken) {
    m.there.ask("config set maxmemory 0");
    m.there.move_clock(0);
    m.there.ask("del '{weir:0}:time' '{weir:1}:time' '{weir:2}:time' '{weir:3}:time' "
                "'{weir:4}:time' '{weir:5}:time' '{weir:6}:time' '{weir:7}:time'");
    BOOST_TEST_REQUIRE(is_granted(ask(taken)));
    m.there.ask("config set maxmemory 1");
    m.there.move_clock(-an_hour);
  };
  // A lock that is over is given again once there is room.
  stage(command::acquire_lock{"key", "gone", brief});
  free(command::acquire_lock{"key", "other", 1h}, is_over);
  stage(command::obtain_queue_lease{"queue", "gone", brief});
  free(command::obtain_queue_lease{"queue", "other", 1h}, is_over);
  stage(command::acquire_permit{"key", "gone", 1, brief, {}});
  free(command::acquire_permit{"key", "other", 1, 1h, {}}, is_granted);
  stage(command::acquire_permit{"line", "gone", 1, brief, {}});
  free(command::acquire_permit{"line", "other", 1, 1h, 1h}, is_granted);
  // So does whoever holds something.
  stage(command::acquire_lock{"again", "gone", brief});
  BOOST_TEST(weir_test::happens([&] {
    (void)ask(command::acquire_lock{"again", "gone", 1h});
    return !ask(command::inspect_lock{"again"})->held;
  }));
}

// The server stands still for as long as it takes to remove a key that has come to its end.
BOOST_AUTO_TEST_CASE(F80_many_records_that_are_over_go_in_pieces) {
  moved m;
  auto const ask = m.ask();
  constexpr std::size_t many = 10'500;
  constexpr std::size_t longer = 600;  // are kept for an hour more
  constexpr std::size_t batch = 500;
  weir::id_source ids;
  std::vector<new_job> jobs(batch);
  for (std::size_t done = 0; done != many; done += batch) {
    for (std::size_t i = 0; i != batch; ++i) {
      jobs[i].id = ids.job();
      jobs[i].kind = "kind";
      jobs[i].retention = done + i < longer ? 3h : 1h;
    }
    BOOST_TEST_REQUIRE(ask(command::enqueue_jobs{"q", jobs}).has_value());
    auto const some = ask(command::dequeue_jobs{"q", "me", 0, batch, 1min});
    BOOST_TEST_REQUIRE(some.has_value());
    std::vector<finished_job> ends;
    for (auto const& j : some->jobs) ends.push_back({j.id, j.fence, {}});
    BOOST_TEST_REQUIRE(ask(command::complete_jobs{"q", ends}).has_value());
  }
  auto const number = [&](std::string const& what) { return std::stoll(m.there.ask(what)); };
  auto const key = m.there.ask("--scan --pattern '*}:j:q'");
  auto const left = [&] { return number("hlen '" + key + "'"); };
  auto const pieces = [&] {
    std::string const field = "cmdstat_zrangebyscore:calls=";
    auto const said = m.there.ask("info commandstats");
    return std::stoll(said.substr(said.find(field) + field.size()));
  };
  BOOST_TEST(left() == many);
  constexpr std::int64_t a_day = 86'400'000;  // in milliseconds
  BOOST_TEST(number("pttl '" + key + "'") > 6 * a_day);
  m.there.move_clock(2 * an_hour);
  auto const before = pieces();
  BOOST_TEST(ask(command::gc_stale_pointers{0, 100, {}}).has_value());
  BOOST_TEST(left() == longer);
  BOOST_TEST(pieces() - before == (many - longer + 249) / 250);
  // Of so few the server sees to it itself, and soon.
  auto const left_to_live = number("pttl '" + key + "'");
  BOOST_TEST((left_to_live > 0 && left_to_live < a_day));
  BOOST_TEST(ask(command::read_queue_stats{"q"})->completed == many);
}

BOOST_AUTO_TEST_CASE(F80_large_records_that_are_over_go_a_few_at_a_time) {
  moved m;
  auto const ask = m.ask();
  constexpr std::size_t many = 40;
  std::string const payload(limits::payload_size, 'x');
  weir::id_source ids;
  for (std::size_t i = 0; i != many; ++i) {
    std::array<new_job, 1> jobs{};
    jobs[0].id = ids.job();
    jobs[0].kind = "kind";
    jobs[0].payload = payload;
    jobs[0].retention = i == 0 ? 3h : 1h;
    BOOST_TEST_REQUIRE(ask(command::enqueue_jobs{"q", jobs}).has_value());
    auto const got = ask(command::dequeue_jobs{"q", "me", 0, 1, 1min}).value().jobs;
    BOOST_TEST_REQUIRE(got.size() == 1U);
    std::array const done{finished_job{got[0].id, got[0].fence, {}}};
    BOOST_TEST_REQUIRE(ask(command::complete_jobs{"q", done}).has_value());
  }
  m.there.move_clock(2 * an_hour);
  auto const key = m.there.ask("--scan --pattern '*}:j:q'");
  auto const left = [&] { return std::stoul(m.there.ask("hlen '" + key + "'")) / 2; };
  BOOST_TEST(ask(command::dequeue_jobs{"q", "me", 0, 100, 1min}).has_value());
  BOOST_TEST(left() == many - limits::batch_bytes / limits::payload_size);
  BOOST_TEST(ask(command::gc_stale_pointers{0, 100, {}}).has_value());
  BOOST_TEST(left() == 1U);
}

// What another program has left there is no time.
BOOST_AUTO_TEST_CASE(F97_a_noted_time_that_is_damaged_is_noted_anew) {
  moved m;
  auto const ask = m.ask();
  for (std::string const value :
       {"''", "nan", "inf", "-1", "9007199254740993", "1+9007199254740993", "1795752539356178+x"}) {
    for (int shard = 0; shard != 8; ++shard) {
      m.there.ask("set '{weir:" + std::to_string(shard) + "}:time' " + value);
    }
    auto const name = "key" + value;
    auto const lock = ask(command::acquire_lock{name, "me", 200ms});
    BOOST_TEST_REQUIRE(lock.has_value(), lock.error().message());
    BOOST_TEST(lock->granted);
    BOOST_TEST(
        weir_test::happens([&] { return ask(command::acquire_lock{name, "other", 1h})->granted; }));
  }
  m.there.ask("del '{weir:0}:time'");
  m.there.ask("lpush '{weir:0}:time' x");
  auto const wrong = ask(command::await_jobs{});
  BOOST_TEST((wrong.error() == errc::store_foreign), wrong.error().message());
}

BOOST_AUTO_TEST_SUITE_END()
