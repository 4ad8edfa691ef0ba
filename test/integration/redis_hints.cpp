// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Who is told what by a server, and what waiting costs it: counted, not timed.

#include "patience.hpp"
#include "redis_server.hpp"
#include "server_process.hpp"
#include "weir/command/at.hpp"
#include "weir/job_traits.hpp"
#include "weir/limiter.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redis_test {

struct errand {
  int number = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(errand, number)
};

}  // namespace redis_test

template <>
struct weir::job_traits<redis_test::errand> {
  static constexpr std::string_view kind = "errand";
};

namespace {

using namespace redis_test;
using weir_test::happens;
namespace asio = boost::asio;

constexpr duration lasting = 1h;

/// Looks of their own are as rare as they can be.
redis_options relying(std::uint32_t shards = 1) {
  auto o = unhurried();
  o.poll_interval = 10s;
  o.shards = shards;
  return o;
}

long number_after(std::string const& text, std::string_view name) {
  auto const at = text.find(name);
  return at == text.npos ? 0 : std::stol(text.substr(at + name.size()));
}
/// How often scripts were run.
long scripts(server const& s) {
  return number_after(s.ask("info commandstats"), "cmdstat_evalsha:calls=");
}
long publications(server const& s) {
  return number_after(s.ask("info commandstats"), "cmdstat_publish:calls=");
}

/// The channels that somebody listens to.
std::set<std::string> channels(server const& s) {
  std::set<std::string> out;
  std::istringstream lines{s.ask("pubsub channels")};
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) out.insert(line);
  }
  return out;
}

/// A wait for a turn in the line of "key".
struct turn {
  turn(bed& on, std::string_view holder) {
    command::await_permit const wait{"key", holder};
    on.store.async_execute(wait, [woken = woken](error_code ec, hint) {
      BOOST_TEST((!ec || ec == errc::closed), ec.message());
      *woken = !ec;
    });
  }
  [[nodiscard]] bool operator()() const { return *woken; }

  std::shared_ptr<bool> woken = std::make_shared<bool>(false);
};

permit_grant in_line(bed& on, std::string_view holder, duration patience) {
  return on(command::acquire_permit{"key", holder, 1, lasting, patience}).value();
}

void run_for(bed& on, std::chrono::milliseconds time) {
  on.io.restart();
  on.io.run_for(time);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_hints)

BOOST_AUTO_TEST_CASE(F68_a_grant_costs_the_same_whatever_the_number_of_waiters) {
  for (std::size_t const waiters : {10U, 1000U}) {
    server s;
    bed on{s, relying()};
    // Tickets are not renewed while this runs, and no lost hint is made up for.
    limiter const some{on.store, {.limit = 4, .ttl = lasting, .poll = 1h}};
    std::size_t granted = 0;
    bool over = false;
    std::size_t ended = 0;
    for (std::size_t i = 0; i != waiters; ++i) {
      asio::co_spawn(
          on.io,
          [&]() -> asio::awaitable<void> {
            while (!over) {
              auto held = co_await some.async_acquire("key");
              ++granted;
              co_await some.async_release(std::move(held));
            }
          },
          [&](std::exception_ptr const& e) {
            BOOST_TEST(!e);
            ++ended;
          });
    }
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return granted > 2 * waiters; }));
    auto const before = granted;
    auto const scripts_before = scripts(s);
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return granted >= before + 3000; }));
    auto const grants = static_cast<long>(granted - before);
    auto const run = scripts(s) - scripts_before;
    constexpr long under_way = 30;
    BOOST_TEST(run <= 3 * grants + under_way,
               waiters << " waiters: " << run << " scripts for " << grants << " grants");
    over = true;
    BOOST_TEST(happens(on.io, [&] { return ended == waiters; }));
  }
}

BOOST_AUTO_TEST_CASE(F68_a_release_tells_the_next_one_and_nobody_else) {
  server s;
  bed one{s, relying()};
  bed two{s, relying()};
  bed three{s, relying()};
  BOOST_TEST(in_line(one, "x", {}).granted);
  BOOST_TEST(in_line(two, "y", lasting).place == 1U);
  BOOST_TEST(in_line(three, "z", lasting).place == 2U);
  turn const next{two, "y"};
  turn const last{three, "z"};
  BOOST_TEST_REQUIRE(happens(two.io, [&] {
    run_for(three, 10ms);
    return channels(s).size() == 2U;
  }));
  run_for(two, 100ms);
  run_for(three, 100ms);
  auto const told = publications(s);
  BOOST_TEST(one(command::release_permit{"key", "x", 0}).value().freed);
  BOOST_TEST(happens(two.io, [&] { return next(); }));
  run_for(three, 100ms);
  BOOST_TEST(!last());
  BOOST_TEST(publications(s) == told + 1);
  // Whose turn it was leaves: the last one is next.
  BOOST_TEST(two(command::release_permit{"key", "y", 0}).value().left_line);
  BOOST_TEST(happens(three.io, [&] { return last(); }));
  BOOST_TEST(publications(s) == told + 2);
}

BOOST_AUTO_TEST_CASE(F68_a_hint_that_comes_before_its_wait_is_kept) {
  server s;
  bed one{s, relying()};
  bed two{s, relying()};
  BOOST_TEST(in_line(one, "x", {}).granted);
  BOOST_TEST(in_line(two, "w", lasting).place == 1U);
  turn const first{two, "w"};
  BOOST_TEST_REQUIRE(happens(two.io, [&] { return channels(s).size() == 1U; }));
  run_for(two, 100ms);
  BOOST_TEST(in_line(two, "y", lasting).place == 2U);
  BOOST_TEST(one(command::release_permit{"key", "x", 0}).value().freed);
  BOOST_TEST(happens(two.io, [&] { return first(); }));
  BOOST_TEST(two(command::release_permit{"key", "w", 0}).value().left_line);
  run_for(two, 100ms);  // the hint for y arrives, who does not wait yet
  auto const looks = scripts(s);
  turn const late{two, "y"};
  BOOST_TEST(happens(two.io, [&] { return late(); }));
  BOOST_TEST(scripts(s) == looks);
}

BOOST_AUTO_TEST_CASE(F68_all_that_die_in_line_cost_one_ticket) {
  server s;
  bed on{s, relying()};
  bed other{s, relying()};
  // Both listen from now on, and so they do not look.
  turn const nobody{on, "nobody"};
  turn const neither{other, "neither"};
  BOOST_TEST_REQUIRE(happens(on.io, [&] {
    run_for(other, 10ms);
    return nobody() && neither() && channels(s).size() == 2U;
  }));
  run_for(on, 1s);
  run_for(other, 1s);
  auto const then = time_point{std::chrono::system_clock::now().time_since_epoch()} - 30min;
  auto const was_in_line = [&](bed& by, std::string_view holder, duration patience) {
    return by(command::at{command::acquire_permit{"key", holder, 1, lasting, patience}, then})
        .value();
  };
  BOOST_TEST(was_in_line(on, "x", {}).granted);
  constexpr std::size_t dead = 250;
  for (std::size_t i = 0; i != dead; ++i) {
    BOOST_TEST(was_in_line(on, "dead" + std::to_string(i), 1min).place == i + 1);
  }
  BOOST_TEST(was_in_line(on, "next", lasting).place == dead + 1);
  BOOST_TEST(was_in_line(other, "last", lasting).place == dead + 2);
  turn const next{on, "next"};
  turn const last{other, "last"};
  BOOST_TEST(on(command::at{command::release_permit{"key", "x", 0}, then}).value().freed);
  run_for(on, 100ms);
  run_for(other, 100ms);
  BOOST_TEST(!next());
  BOOST_TEST(!last());
  // Whoever renews a ticket finds that theirs have lapsed, and whose turn it is hears of it.
  BOOST_TEST(in_line(other, "last", lasting).place == 2U);
  BOOST_TEST(happens(on.io, [&] { return next(); }));
  run_for(other, 100ms);
  BOOST_TEST(!last());
}

BOOST_AUTO_TEST_CASE(F69_each_process_has_channels_of_its_own) {
  server s;
  std::vector<std::unique_ptr<bed>> idle;
  for (int i = 0; i != 5; ++i) {
    idle.push_back(std::make_unique<bed>(s, relying()));
    idle.back()->store.async_execute(command::await_jobs{0}, [](error_code, hint) {});
    BOOST_TEST_REQUIRE(happens(idle.back()->io, [&] {
      return s.ask("pubsub numsub '{weir:0}:hints'").ends_with(std::to_string(i + 1));
    }));
  }
  BOOST_TEST(channels(s) == (std::set<std::string>{"{weir:0}:hints"}));
  bed one{s, relying()};
  bed two{s, relying()};
  turn const first{one, "a"};
  turn const second{two, "b"};
  BOOST_TEST_REQUIRE(happens(one.io, [&] {
    run_for(two, 10ms);
    return channels(s).size() == 3U;
  }));
  for (auto const& channel : channels(s)) {
    if (channel == "{weir:0}:hints") continue;
    BOOST_TEST(channel.starts_with("{weir:0}:hints:"));
    BOOST_TEST(s.ask("pubsub numsub '" + channel + "'").ends_with("1"));
  }
}

BOOST_AUTO_TEST_CASE(a_program_that_is_started_has_no_connection) {
  server s;
  auto const before = server_test::inherited();
  bed on{s, relying()};
  on.store.async_execute(command::await_jobs{0}, [](error_code, hint) {});
  int most = before;  // while it connects, too
  BOOST_TEST_REQUIRE(happens(on.io, [&] {
    most = std::max(most, server_test::inherited());
    return !channels(s).empty();
  }));
  BOOST_TEST(most == before);
}

BOOST_AUTO_TEST_CASE(F84_an_idle_worker_looks_at_all_shards_in_one_round_trip_a_second) {
  for (std::uint32_t const shards : {1U, 16U}) {
    server s;
    auto o = unhurried();  // with the poll interval as it comes
    o.shards = shards;
    bed on{s, o};
    worker_options idle;  // and the worker's
    worker w{on.store, idle};
    bool over = false;
    w.async_run([&](error_code) { over = true; });
    // All hints are subscribed to, those of cancels, too, and it has looked once.
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return channels(s).size() == shards + 1; }));
    run_for(on, 500ms);
    auto const reads = [&] { return number_after(s.ask("info stats"), "total_reads_processed:"); };
    auto const begun = std::chrono::steady_clock::now();
    auto const scripts_before = scripts(s);
    auto const own = reads();
    auto const each = reads() - own;  // of asking this
    auto const reads_before = reads();
    run_for(on, 5s);
    auto const seen = reads() - reads_before - each;
    auto const run = scripts(s) - scripts_before;
    auto const elapsed = std::chrono::steady_clock::now() - begun;
    auto const most = elapsed / 1s + 1;
    BOOST_TEST(run <= most * shards, shards << " shards: " << run << " scripts");
    BOOST_TEST(run >= shards);
    BOOST_TEST(seen <= most + each, shards << " shards: " << seen << " reads");
    w.stop();
    BOOST_TEST(happens(on.io, [&] { return over; }));
  }
}

// A limit of today, counted: whatever becomes due is told by one message, which all hear who are
// idle. Each of them looks, and those that look too late find nothing.
BOOST_AUTO_TEST_CASE(F68_a_job_costs_one_message_and_a_few_looks_of_each_idle_process) {
  constexpr long processes = 20;
  server s;
  asio::io_context io;
  std::vector<redis_store> stores;
  std::vector<worker<redis_store>> workers;
  long ran = 0;
  long ended = 0;
  for (long i = 0; i != processes; ++i) {
    auto const& store = stores.emplace_back(io.get_executor(), s.address(), relying());
    store.async_run([](error_code) {});
    auto& w = workers.emplace_back(store, worker_options{.poll = 1h});
    w.handle<errand>([&](errand const&) { ++ran; });
    w.async_run([&](error_code) { ++ended; });
  }
  BOOST_TEST_REQUIRE(happens(io, [&] {
    return s.ask("pubsub numsub '{weir:0}:hints'").ends_with("\n" + std::to_string(processes));
  }));
  auto const settle = [&] {  // until nobody asks any more
    for (long last = -1; last != scripts(s);) {
      last = scripts(s);
      io.restart();
      io.run_for(300ms);
    }
  };
  settle();
  auto const scripts_before = scripts(s);
  auto const told_before = publications(s);
  new_job j;
  j.id.data[0] = 1;
  j.kind = "errand";
  j.payload = R"({"number":0})";
  BOOST_TEST(ask(io, stores.front(), command::enqueue_jobs{"queue", {&j, 1}}).has_value());
  BOOST_TEST(happens(io, [&] { return ran == 1; }));
  settle();
  auto const run = scripts(s) - scripts_before;
  BOOST_TEST(ran == 1);
  BOOST_TEST(publications(s) == told_before + 1);
  BOOST_TEST(run >= processes);
  BOOST_TEST(run <= 8 * processes, run << " scripts");
  for (auto& w : workers) w.stop();
  BOOST_TEST(happens(io, [&] { return ended == processes; }));
  for (auto const& store : stores) store.close();
  io.restart();
  io.run();
}

BOOST_AUTO_TEST_SUITE_END()
