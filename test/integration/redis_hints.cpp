// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Who is told what by a server, and what waiting costs it: counted, not timed.

#include "patience.hpp"
#include "redis_server.hpp"
#include "server_process.hpp"
#include "weir/command/at.hpp"
#include "weir/job_traits.hpp"
#include "weir/limiter.hpp"
#include "weir/rule/shards.hpp"
#include "weir/worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
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

/// Processes that have nothing to do, each with a worker that looks by itself as seldom as `poll`
/// says, and whose jobs last until `finish`.
class idlers {
 public:
  idlers(server& on, std::size_t n, std::uint32_t hands = 10, std::uint32_t shards = 1,
         duration poll = 1h)
      : shards_{shards},
        server_{on},
        other_{on, relying(shards)} {
    auto const before = in_line();
    for (std::size_t i = 0; i != n; ++i) {
      auto const& store = stores_.emplace_back(io.get_executor(), on.address(), relying(shards));
      store.async_run([](error_code) {});
      auto& w = workers_.emplace_back(store, worker_options{.concurrency = hands, .poll = poll});
      w.handle<errand>([this, i](errand const&) -> asio::awaitable<void> {
        ++running;
        runs.insert(i);
        asio::steady_timer timer{io};
        while (!over_) {
          timer.expires_after(10ms);
          co_await timer.async_wait(asio::use_awaitable);
        }
        --running;
      });
      w.async_run([this](error_code) { ++ended_; });
      if (i == 0) join(before + 1);  // it is the first one
    }
    join(before + static_cast<long>(n));
  }
  idlers(idlers const&) = delete;
  idlers& operator=(idlers const&) = delete;
  ~idlers() {
    over_ = true;
    for (auto& w : workers_) w.stop();
    BOOST_TEST(happens(io, [&] { return ended_ == workers_.size(); }));
    close();
  }

  /// How many wait in turn.
  [[nodiscard]] long in_line() const {
    long least = std::numeric_limits<long>::max();
    for (std::uint32_t i = 0; i != shards_; ++i) {
      least = std::min(
          least, number_after(server_.ask("zcard '{weir:" + std::to_string(i) + "}:idle'"), ""));
    }
    return least;
  }
  /// Until nobody asks any more.
  void settle() {
    for (long last = -1; last != scripts(server_);) {
      last = scripts(server_);
      io.restart();
      io.run_for(300ms);
    }
  }
  /// Is it so before any of them looks by itself?
  template <class Condition>
  [[nodiscard]] bool soon(Condition so) {
    auto const give_up = std::chrono::steady_clock::now() + 5s;
    return happens(io, [&] { return so() || std::chrono::steady_clock::now() > give_up; }) && so();
  }
  [[nodiscard]] std::string queue_of(std::uint32_t shard) const {
    std::string name = "queue";
    while (rule::shard_of(name, shards_) != shard) name += "+";
    return name;
  }
  void enqueue(std::string const& queue, std::size_t n) {
    std::vector<new_job> jobs(n);
    for (auto& j : jobs) {
      j.id.data[0] = ++jobs_;
      j.kind = "errand";
      j.payload = R"({"number":0})";
    }
    BOOST_TEST(other_(command::enqueue_jobs{queue, jobs}).has_value());
  }
  /// So many jobs run at the same time, and then none.
  void finish(std::size_t jobs) {
    BOOST_TEST(soon([&] { return running == jobs; }), running << " run");
    over_ = true;
    BOOST_TEST(happens(io, [&] { return running == 0; }));
    settle();
    over_ = false;
  }
  void stop(std::size_t which) {
    workers_[which].stop();
    BOOST_TEST(happens(io, [&] { return ended_ == 1; }));
  }
  void close() {
    for (auto const& store : stores_) store.close();
    io.restart();
    io.poll();
  }

  asio::io_context io;
  std::size_t running = 0;
  std::set<std::size_t> runs;  // who ran any

 private:
  void join(long line) {
    BOOST_TEST_REQUIRE(happens(io, [&] { return in_line() == line; }));
  }

  std::uint32_t const shards_;
  server& server_;
  bed other_;
  std::deque<redis_store> stores_;
  std::deque<worker<redis_store>> workers_;
  std::size_t ended_ = 0;
  std::uint8_t jobs_ = 0;
  bool over_ = false;
};

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

BOOST_AUTO_TEST_CASE(F68_who_gives_up_its_place_by_asking_tells_the_next_one) {
  server s;
  bed one{s, relying()};
  bed two{s, relying()};
  BOOST_TEST(in_line(one, "x", {}).granted);
  BOOST_TEST(in_line(one, "y", lasting).place == 1U);
  command::acquire_permit const wide{"key", "z", 2, lasting, lasting};
  BOOST_TEST(two(wide).value().place == 2U);
  turn const next{two, "z"};
  BOOST_TEST_REQUIRE(happens(two.io, [&] { return channels(s).size() == 1U; }));
  run_for(two, 100ms);
  auto const told = publications(s);
  BOOST_TEST(!in_line(one, "y", {}).granted);
  BOOST_TEST(publications(s) == told + 1);
  BOOST_TEST(happens(two.io, [&] { return next(); }));
  BOOST_TEST(two(wide).value().granted);
}

BOOST_AUTO_TEST_CASE(F68_the_end_of_a_snooze_is_told_where_jobs_are_due) {
  server s;
  bed on{s, relying()};
  std::array<new_job, 1> jobs{};
  jobs[0].kind = "kind";
  auto const told_by = [&](auto const& c) {
    auto const before = publications(s);
    BOOST_TEST(on(c).has_value());
    return publications(s) - before;
  };
  BOOST_TEST(told_by(command::snooze_queue{"empty", 0s}) == 0);
  jobs[0].id.data[0] = 1;
  BOOST_TEST(on(command::enqueue_jobs{"queue", jobs}).has_value());
  BOOST_TEST(told_by(command::snooze_queue{"queue", lasting}) == 0);
  BOOST_TEST(told_by(command::snooze_queue{"queue", 0s, true}) == 0);
  BOOST_TEST(told_by(command::snooze_queue{"queue", 0s}) == 1);
  BOOST_TEST(on(command::pause_queue{"queue"}).has_value());
  BOOST_TEST(told_by(command::snooze_queue{"queue", 0s}) == 0);
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

BOOST_AUTO_TEST_CASE(F68_in_turn_a_job_wakes_one_idle_process_whatever_their_number) {
  for (std::size_t const processes : {2U, 50U}) {
    server s;
    idlers all{s, processes};
    all.enqueue("queue", 1);  // the server gets to know the scripts
    all.finish(1);
    auto const scripts_before = scripts(s);
    auto const told_before = publications(s);
    all.enqueue("queue", 1);
    all.finish(1);
    auto const run = scripts(s) - scripts_before;
    // To its shard, and to one process.
    BOOST_TEST(publications(s) == told_before + 2);
    BOOST_TEST(run <= 7, processes << " processes: " << run << " scripts");
    BOOST_TEST(all.in_line() == static_cast<long>(processes));
  }
}

BOOST_AUTO_TEST_CASE(F68_in_turn_a_batch_tells_as_many_as_it_has_jobs) {
  server s;
  idlers all{s, 12};
  for (long const jobs : {3L, 20L}) {
    all.settle();
    auto const told_before = publications(s);
    all.enqueue("queue", static_cast<std::size_t>(jobs));
    BOOST_TEST(publications(s) == told_before + 1 + std::min(jobs, 10L));
    all.finish(static_cast<std::size_t>(jobs));
  }
}

BOOST_AUTO_TEST_CASE(F68_in_turn_jobs_wake_as_many_as_they_are) {
  constexpr std::size_t processes = 20;
  server s;
  idlers all{s, processes, 1};
  all.settle();
  all.enqueue("queue", processes);
  all.finish(processes);
  // One by one, of which but the first makes nothing due.
  for (std::size_t i = 0; i != processes; ++i) all.enqueue("queue", 1);
  BOOST_TEST(all.soon([&] { return all.running == processes; }), all.running << " run");
}

BOOST_AUTO_TEST_CASE(F68_in_turn_who_is_told_and_has_no_hand_tells_the_next_one) {
  server s;
  idlers all{s, 2, 1, 2};
  all.settle();
  all.enqueue(all.queue_of(0), 1);
  BOOST_TEST(all.soon([&] { return all.running == 1; }));
  BOOST_TEST(all.runs.contains(0));  // and is still the first in the line of the other shard
  all.enqueue(all.queue_of(1), 1);
  BOOST_TEST(all.soon([&] { return all.running == 2; }));
}

BOOST_AUTO_TEST_CASE(F68_in_turn_who_is_told_twice_at_once_tells_the_next_one) {
  server s;
  idlers all{s, 2, 1, 2};
  all.settle();
  all.enqueue(all.queue_of(0), 1);
  all.enqueue(all.queue_of(1), 1);
  BOOST_TEST(all.soon([&] { return all.running == 2; }));
}

BOOST_AUTO_TEST_CASE(F68_in_turn_who_is_told_and_waits_no_more_tells_the_next_one) {
  server s;
  idlers all{s, 2};
  all.settle();
  all.stop(0);
  BOOST_TEST(all.in_line() == 2);
  all.enqueue("queue", 1);
  BOOST_TEST(all.soon([&] { return all.running == 1; }));
}

BOOST_AUTO_TEST_CASE(F68_in_turn_processes_that_have_died_in_line_cost_nothing) {
  server s;
  {
    idlers dead{s, 20};
    dead.close();
    BOOST_TEST(happens(dead.io, [&] { return channels(s).empty(); }));
  }
  idlers all{s, 1};
  all.settle();
  BOOST_TEST(all.in_line() == 21);
  all.enqueue("queue", 1);
  BOOST_TEST(all.soon([&] { return all.running == 1; }));
}

BOOST_AUTO_TEST_CASE(F68_in_turn_one_that_is_told_and_does_nothing_costs_a_poll) {
  server s;
  bed silent{s, relying()};
  BOOST_TEST(in_line(silent, "x", {}).granted);
  BOOST_TEST(in_line(silent, "y", lasting).place == 1U);
  turn const waits{silent, "y"};
  BOOST_TEST_REQUIRE(happens(silent.io, [&] { return channels(s).size() == 1U; }));
  auto const channel = *channels(s).begin();
  run_for(silent, 100ms);
  idlers all{s, 1, 10, 1, 1s};
  s.ask("zadd '{weir:0}:idle' 0 '" + channel + "'");
  all.enqueue("queue", 1);
  BOOST_TEST(happens(all.io, [&] { return all.running == 1; }));
}

BOOST_AUTO_TEST_CASE(a_line_that_is_lost_or_damaged_is_made_anew) {
  server s;
  idlers all{s, 1, 10, 1, 1s};
  all.settle();
  s.ask("del '{weir:0}:idle'");
  BOOST_TEST(happens(all.io, [&] { return all.in_line() == 1; }));
  s.ask("set '{weir:0}:idle' text");
  all.enqueue("queue", 1);
  BOOST_TEST(happens(all.io, [&] { return all.running == 1; }));
}

BOOST_AUTO_TEST_SUITE_END()
