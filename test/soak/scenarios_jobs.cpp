// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/stage.hpp"
#include "weir/id_source.hpp"
#include "weir/job_queue.hpp"
#include "weir/limiter.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <iterator>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace soak {

/// One at a time.
struct narrow_job {
  std::uint32_t number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(narrow_job, number)

/// One of each name.
struct named_job {
  std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(named_job, name)

/// Runs into its time-out.
struct endless_job {
  std::uint32_t number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(endless_job, number)

}  // namespace soak

template <>
struct weir::job_traits<soak::narrow_job> {
  static constexpr std::string_view kind = "narrow";
  static constexpr std::uint32_t concurrency = 1;
};
template <>
struct weir::job_traits<soak::named_job> {
  static constexpr std::string_view kind = "named";
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
  static std::string unique_key(soak::named_job const& j) { return j.name; }
};
template <>
struct weir::job_traits<soak::endless_job> {
  static constexpr std::string_view kind = "endless";
  static constexpr std::uint32_t max_attempts = 1;
  static constexpr weir::duration timeout = std::chrono::milliseconds{2};
};

namespace soak {

namespace {

/// Enqueues until it is certain that it has.
template <class Job>
asio::awaitable<void> insist(store const& at, Job const& job, std::string const& queue) {
  weir::job_queue const queues{at};
  std::array const ids{weir::id_source{}.job()};
  for (error_code ec = weir::errc::outcome_unknown; ec;) {
    std::tie(ec, std::ignore) =
        co_await queues.async_enqueue(job, {.queue = queue, .ids = ids}, token);
  }
}

}  // namespace

/// Jobs of many queues are served about as fast as those of one.
asio::awaitable<verdict> queues(stage const& s) {
  constexpr std::size_t n = 1000;
  weir::job_queue const queue{s.at};
  std::array<double, 2> rates{};
  for (std::size_t const many : {0U, 1U}) {
    co_await s.crowd(20, [&](std::size_t i) -> asio::awaitable<void> {
      for (std::size_t j = i; j < n; j += 20) {
        sized_job const job{};
        auto const name = many == 0 ? std::string{"one"} : "many-" + std::to_string(j);
        for (error_code ec = weir::errc::outcome_unknown; ec;) {
          std::tie(ec, std::ignore) = co_await queue.async_enqueue(job, {.queue = name}, token);
        }
      }
    });
    std::size_t ran = 0;
    auto const since = boot_now();
    co_await s.work(50, [&] { return ++ran, std::string{}; }, [&] { return ran >= n; }, 120s);
    rates[many] = per_second(ran, since);
    if (ran < n) {
      co_return verdict{false, "only " + std::to_string(ran) + " of " + std::to_string(n) +
                                   " jobs were run within a minute"};
    }
  }
  constexpr double enough = 2000;  // of a round trip for some of them
  co_return verdict{rates[1] >= std::min(rates[0] / 10, enough),
                    text_of(rates[0]) + " jobs/s of one queue, " + text_of(rates[1]) +
                        " of a thousand"};
}

/// A full store can be drained, and held leases live and end.
asio::awaitable<verdict> full(stage const& s) {
  if (s.given.at.url.starts_with("postgres")) {
    co_return verdict{true, "PostgreSQL has no bound of its own but its disk", true};
  }
  weir::limiter const limiter{s.at, {.limit = 1, .ttl = 60s, .poll = poll}};
  auto [none, permit] = co_await limiter.async_acquire("held", {.wait = 10s}, token);
  if (none) co_return verdict{false, none.message()};
  weir::job_queue const queue{s.at};
  std::size_t kept = 0;
  std::string refusal;
  sized_job const job{.filling = std::string(100'000, 'x')};
  for (int i = 0; i != 1000 && refusal.empty(); ++i) {
    auto const [ec, done] = co_await queue.async_enqueue(job, {}, token);
    if (ec) {
      refusal = ec.message();
    } else {
      ++kept;
    }
  }
  if (refusal.empty()) co_return verdict{true, "it could not be filled", true};
  auto const [lost, expiry] = co_await limiter.async_renew(permit, token);
  auto const [kept_it, freed] = co_await limiter.async_release(std::move(permit), token);
  std::set<std::string> ran;
  std::size_t runs = 0;
  co_await s.work(10, [&] { return ++runs, std::string{}; }, [&] { return runs >= kept; }, 120s);
  auto const [unread, stats] = co_await queue.async_stats("default", token);
  bool const drained = !unread && stats.pending + stats.leased == 0 && runs == kept;
  co_return verdict{drained && !lost && !kept_it && freed,
                    "full after " + std::to_string(kept) + " jobs (" + refusal +
                        "): " + std::to_string(runs) + " runs, " +
                        std::to_string(stats.pending + stats.leased) +
                        " jobs left, renew: " + lost.message() + ", release: " + kept_it.message()};
}

/// Large payloads and large results, many at once: what a message of NATS takes, too.
asio::awaitable<verdict> payloads(stage const& s) {
  constexpr std::size_t n = 40;
  weir::job_queue const queue{s.at};
  constexpr std::size_t size = weir::limits::payload_size - 4096;
  sized_job const job{.filling = std::string(size, 'x')};
  error_code refused;
  co_await s.crowd(4, [&](std::size_t i) -> asio::awaitable<void> {
    for (std::size_t j = i; j < n; j += 4) {
      error_code ec = weir::errc::outcome_unknown;
      std::array const ids{weir::id_source{}.job()};
      while (ec == weir::errc::outcome_unknown || ec == weir::errc::store_unavailable) {
        std::tie(ec, std::ignore) = co_await queue.async_enqueue(job, {.ids = ids}, token);
      }
      if (ec) refused = ec;
    }
  });
  std::size_t ran = 0;
  std::string const result(size, 'y');
  std::uint64_t completed = 0;
  auto const handler = [&] { return ++ran, result; };
  if (refused) co_return verdict{false, "an enqueue is refused: " + refused.message()};
  co_await s.work(100, handler, [&] { return ran >= n; }, 80s);
  auto const [ec, stats] = co_await queue.async_stats("default", token);
  completed = stats.completed;
  co_return verdict{!ec && ran == n && completed == n,
                    std::to_string(n) + " jobs of 1 MiB with results of 1 MiB: " +
                        std::to_string(ran) + " runs, " + std::to_string(completed) + " completed" +
                        (ec ? ", " + ec.message() : std::string{})};
}

/// An answer that is older than what was heard since makes nobody read a shard anew (F75).
asio::awaitable<verdict> old_answers(stage const& s) {
  if ((co_await s.cue("beginnings")).empty()) {
    co_return verdict{true, "processes have no copies of a shard on this engine", true};
  }
  constexpr std::size_t n = 40'000;
  constexpr std::size_t callers = 400;
  weir::job_queue const queue{s.at};
  std::size_t done = 0;
  co_await s.crowd(callers, [&](std::size_t who) -> asio::awaitable<void> {
    for (std::size_t i = 0; i != n / callers; ++i) {
      error_code ec;
      if (who % 2 == 0) {
        std::tie(ec, std::ignore) = co_await queue.async_enqueue(sized_job{}, {}, token);
      } else {
        std::tie(ec, std::ignore) = co_await queue.async_stats("default", token);
      }
      if (!ec) ++done;
    }
  });
  auto const begun = std::stoull(co_await s.cue("beginnings"));
  co_return verdict{done == n && begun <= 1,
                    std::to_string(done) + " enqueues and reads, and the shard was read " +
                        std::to_string(begun) + " times from its beginning"};
}

/// An enqueue into a queue that has just become empty is found.
asio::awaitable<verdict> pointers(stage const& s) {
  constexpr std::size_t callers = 16;
  constexpr std::size_t rounds = 60;
  std::size_t enqueued = 0;
  std::size_t ran = 0;
  std::size_t left = callers;
  for (std::size_t i = 0; i != callers; ++i) {
    asio::co_spawn(
        s.ex,
        [&, i]() -> asio::awaitable<void> {
          for (std::size_t n = 0; n != rounds; ++n) {
            co_await insist(s.at, sized_job{}, "emptied");
            ++enqueued;
            co_await s.pause(std::chrono::milliseconds{(i * 7 + n * 13) % 23});
          }
        },
        [&left](std::exception_ptr) { --left; });
  }
  auto const done = [&] { return left == 0 && ran >= enqueued; };
  co_await s.work(4, [&] { return ++ran, std::string{}; }, done, 120s);
  while (left != 0) co_await s.pause(5ms);
  co_return verdict{ran >= enqueued, std::to_string(ran) + " of " + std::to_string(enqueued) +
                                         " jobs ran, of a queue that was mostly empty"};
}

/// A handler that succeeded is not run again for the sake of its result.
asio::awaitable<verdict> results(stage const& s) {
  constexpr std::size_t n = 20;
  for (std::size_t i = 0; i != n; ++i) co_await insist(s.at, sized_job{}, "default");
  std::size_t ran = 0;
  auto const handler = [&] {
    ++ran;
    return ran % 2 == 0 ? std::string{"\xff\xfe"}
                        : std::string(weir::limits::payload_size + 1, 'x');
  };
  weir::job_queue const queue{s.at};
  weir::queue_stats stats;
  co_await s.work(5, handler, [&] { return ran >= n; }, 120s);
  error_code ec;
  std::tie(ec, stats) = co_await queue.async_stats("default", token);
  co_return verdict{!ec && ran == n && stats.completed == n,
                    std::to_string(n) + " jobs, whose results cannot be kept: " +
                        std::to_string(ran) + " runs, " + std::to_string(stats.completed) +
                        " completed, " + std::to_string(stats.dead) + " dead"};
}

/// Batches with the same keys in opposite order do not block each other.
asio::awaitable<verdict> batches(stage const& s) {
  constexpr std::size_t keys = 50;
  constexpr std::size_t rounds = 30;
  weir::job_queue const queue{s.at};
  std::size_t failed = 0;
  std::size_t enqueued = 0;
  co_await s.crowd(4, [&](std::size_t who) -> asio::awaitable<void> {
    for (std::size_t n = 0; n != rounds; ++n) {
      std::vector<named_job> jobs;
      for (std::size_t i = 0; i != keys; ++i) {
        auto const key = who % 2 == 0 ? i : keys - 1 - i;
        jobs.push_back({"round-" + std::to_string(n) + "-" + std::to_string(key)});
      }
      auto const [ec, all] = co_await queue.async_enqueue_many(jobs, {.queue = "named"}, token);
      failed += static_cast<bool>(ec);
      for (auto const& each : all) enqueued += each.outcome == weir::enqueue_outcome::enqueued;
    }
  });
  co_return verdict{failed == 0 && enqueued == keys * rounds,
                    std::to_string(failed) + " of " + std::to_string(4 * rounds) +
                        " batches failed, " + std::to_string(enqueued) + " of " +
                        std::to_string(keys * rounds) + " keys have a job"};
}

/// Jobs that a limit refuses are not claimed over and over.
asio::awaitable<verdict> limits(stage const& s) {
  constexpr std::size_t n = 200;
  for (std::uint32_t i = 0; i != n; ++i) co_await insist(s.at, narrow_job{i}, "narrow");
  weir::worker worker{s.at, {.concurrency = 50, .lease = 10s, .poll = poll, .drain = 2s}};
  std::size_t ran = 0;
  std::size_t refused = 0;
  worker.handle<narrow_job>([&](narrow_job const&) -> asio::awaitable<void> {
    co_await s.pause(20ms);
    ++ran;
  });
  worker.on_event(
      [&](weir::worker_event const& e) { refused += e.kind == weir::worker_event_kind::snoozed; });
  bool ended = false;
  auto const since = boot_now();
  worker.async_run([&ended](error_code) { ended = true; });
  while (ran < n && boot_now() < since + ns_of(120s)) co_await s.pause(5ms);
  auto const seconds = static_cast<double>(boot_now() - since) / 1e9;
  worker.stop();
  while (!ended) co_await s.pause(5ms);
  co_return verdict{ran == n && refused <= 2 * n,
                    std::to_string(ran) + " jobs of 20 ms, one at a time, in " + text_of(seconds) +
                        " s, and " + std::to_string(refused) + " refusals"};
}

/// Handlers on other threads that run into their time-outs take nobody with them.
asio::awaitable<verdict> timeouts(stage const& s) {
  constexpr std::size_t n = 10'000;
  co_await s.crowd(10, [&](std::size_t who) -> asio::awaitable<void> {
    for (std::size_t i = who; i < n; i += 10) {
      co_await insist(s.at, endless_job{static_cast<std::uint32_t>(i)}, "endless");
    }
  });
  asio::thread_pool pool{4};
  weir::worker worker{s.at, {.concurrency = 100, .lease = 10s, .poll = poll, .drain = 2s}};
  std::atomic<std::size_t> begun{0};
  std::size_t dead = 0;
  worker.handle<endless_job>(
      asio::bind_executor(pool.get_executor(), [&](endless_job const&) -> asio::awaitable<void> {
        ++begun;
        asio::steady_timer timer{co_await asio::this_coro::executor, 1h};
        co_await timer.async_wait(token);
        throw std::runtime_error{"it was cancelled"};
      }));
  worker.on_event([&](weir::worker_event const& e) {
    dead += e.kind == weir::worker_event_kind::dead_lettered;
  });
  bool ended = false;
  worker.async_run([&ended](error_code) { ended = true; });
  auto const until = boot_now() + ns_of(120s);
  while (dead < n && boot_now() < until) co_await s.pause(5ms);
  worker.stop();
  while (!ended) co_await s.pause(5ms);
  pool.join();
  co_return verdict{dead == n && begun == n, std::to_string(begun) + " handlers on a pool, " +
                                                 std::to_string(dead) + " ended by their time-out"};
}

/// A worker with nothing to do asks for little, as its options are when nobody says more.
asio::awaitable<verdict> idle(stage const& s) {
  weir::worker worker{s.at};
  worker.handle<sized_job>([](sized_job const&) {});
  bool ended = false;
  worker.async_run([&ended](error_code) { ended = true; });
  co_await s.pause(3s);
  auto const before = s.at.executed();
  co_await s.pause(10s);
  auto const asked = s.at.executed() - before;
  worker.stop();
  while (!ended) co_await s.pause(5ms);
  // A wait for a hint is a command, too, of which most engines hear nothing.
  co_return verdict{asked <= 12 * s.at.shard_count(),
                    std::to_string(asked) + " commands in 10 s, of " +
                        std::to_string(s.at.shard_count()) + " shards"};
}

/// A handler that blocks its thread keeps its lease from being renewed. That is told, and its job
/// comes to its end nevertheless.
asio::awaitable<verdict> blocked(stage const& s) {
  constexpr std::size_t n = 5;
  for (std::size_t i = 0; i != n; ++i) co_await insist(s.at, sized_job{}, "default");
  weir::worker worker{s.at, {.concurrency = 2, .lease = 1s, .poll = poll, .drain = 2s}};
  std::size_t runs = 0;
  std::size_t starved = 0;
  worker.handle<sized_job>([&](sized_job const&) {
    // The first two have the thread for longer than their leases.
    if (++runs <= 2) std::this_thread::sleep_for(1500ms);
  });
  worker.on_event(
      [&](weir::worker_event const& e) { starved += e.kind == weir::worker_event_kind::starved; });
  bool ended = false;
  worker.async_run([&ended](error_code) { ended = true; });
  weir::job_queue const queue{s.at};
  weir::queue_stats stats;
  for (auto const until = boot_now() + ns_of(60s); stats.completed < n && boot_now() < until;) {
    co_await s.pause(50ms);
    auto const [ec, now] = co_await queue.async_stats("default", token);
    if (!ec) stats = now;
  }
  worker.stop();
  while (!ended) co_await s.pause(5ms);
  co_return verdict{stats.completed == n && stats.dead == 0 && starved != 0,
                    std::to_string(stats.completed) + " of " + std::to_string(n) + " jobs in " +
                        std::to_string(runs) + " runs, " + std::to_string(stats.dead) +
                        " dead; told of " + std::to_string(starved) + " times"};
}

}  // namespace soak
