// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/scenarios.hpp"

#include "weir/job_queue.hpp"
#include "weir/limiter.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace asio = boost::asio;

namespace soak {

/// As large as a scenario wants it.
struct sized_job {
  std::string filling{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(sized_job, filling)

}  // namespace soak

template <>
struct weir::job_traits<soak::sized_job> {
  static constexpr std::string_view kind = "sized";
  static constexpr weir::duration retention = std::chrono::hours{1};
};

namespace soak {
namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);
using awaitable = asio::awaitable<void>;
using weir::error_code;

/// What became of a scenario.
struct verdict {
  bool holds = true;
  std::string seen{};
  bool left_out = false;
};

struct stage {
  assignment const& given;
  store at;
  asio::any_io_executor ex;

  awaitable pause(weir::duration d) const {
    asio::steady_timer timer{ex, std::chrono::duration_cast<asio::steady_timer::duration>(d)};
    co_await timer.async_wait(token);
  }
  /// Does so many of something at once, each until it returns.
  awaitable crowd(std::size_t n, std::function<awaitable(std::size_t)> each) const {
    auto const left = std::make_shared<std::size_t>(n);
    for (std::size_t i = 0; i != n; ++i) {
      asio::co_spawn(ex, each(i), [left](std::exception_ptr e) {
        --*left;
        if (e) std::rethrow_exception(e);
      });
    }
    while (*left != 0) co_await pause(5ms);
  }
  /// Runs a worker until `so`, or until this much time is over.
  awaitable work(std::uint32_t concurrency, std::function<std::string()> handler,
                 std::function<bool()> so, weir::duration patience) const {
    weir::worker worker{at, {.concurrency = concurrency, .lease = 10s, .poll = poll, .drain = 2s}};
    worker.handle<sized_job>([handler](sized_job const&) { return handler(); });
    bool ended = false;
    worker.async_run([&ended](error_code) { ended = true; });
    auto const until = boot_now() + ns_of(patience);
    while (!so() && boot_now() < until) co_await pause(5ms);
    worker.stop();
    while (!ended) co_await pause(5ms);
  }
};

std::string text_of(double n) {
  std::ostringstream out;
  out.precision(n < 10 ? 2 : 0);
  out << std::fixed << n;
  return out.str();
}

double per_second(std::size_t n, std::int64_t since) {
  return static_cast<double>(n) * 1e9 /
         static_cast<double>(std::max<std::int64_t>(boot_now() - since, 1));
}

/// What a release costs must not grow with those who wait.
asio::awaitable<verdict> waiters(stage const& s) {
  weir::limiter const limiter{s.at, {.limit = 1, .ttl = 10s, .poll = poll}};
  std::array<double, 2> rates{};
  std::size_t at = 0;
  for (std::size_t const n : {10U, 300U}) {
    std::size_t grants = 0;
    auto const since = boot_now();
    auto const until = since + ns_of(6s);
    auto const key = "crowd-" + std::to_string(n);
    co_await s.crowd(n, [&](std::size_t) -> awaitable {
      while (boot_now() < until) {
        auto [ec, permit] = co_await limiter.async_acquire(key, {.wait = 3s}, token);
        if (ec) continue;
        ++grants;
        co_await limiter.async_release(std::move(permit), token);
      }
    });
    rates[at++] = per_second(grants, since);
  }
  co_return verdict{rates[1] >= rates[0] / 3, text_of(rates[0]) + " grants/s with 10 waiters, " +
                                                  text_of(rates[1]) + " with 300"};
}

/// Those who die waiting hold nobody up for longer than their patience.
asio::awaitable<verdict> killed_waiters(stage const& s) {
  weir::limiter const limiter{s.at, {.limit = 1, .ttl = 10s, .poll = poll}};
  auto [ec, held] = co_await limiter.async_acquire("line", {.wait = 10s}, token);
  if (ec) co_return verdict{false, ec.message()};
  co_await s.crowd(200, [&](std::size_t i) -> awaitable {
    auto const holder = "ghost-" + std::to_string(i);
    co_await s.at.async_execute(
        weir::command::acquire_permit{
            .key = "line", .holder = holder, .limit = 1, .ttl = 10s, .patience = 2s},
        token);
  });
  co_await limiter.async_release(std::move(held), token);
  auto const since = boot_now();
  auto [late, permit] = co_await limiter.async_acquire("line", {.wait = 30s}, token);
  auto const waited = static_cast<double>(boot_now() - since) / 1e9;
  co_return verdict{!late && waited < 5,
                    late ? late.message()
                         : "behind 200 of the dead: " + text_of(waited) + " s, patience 2 s"};
}

/// Jobs of many queues are served about as fast as those of one.
asio::awaitable<verdict> queues(stage const& s) {
  constexpr std::size_t n = 1000;
  weir::job_queue const queue{s.at};
  std::array<double, 2> rates{};
  for (std::size_t const many : {0U, 1U}) {
    co_await s.crowd(20, [&](std::size_t i) -> awaitable {
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
    co_await s.work(50, [&] { return ++ran, std::string{}; }, [&] { return ran >= n; }, 60s);
    rates[many] = per_second(ran, since);
    if (ran < n) {
      co_return verdict{false, "only " + std::to_string(ran) + " of " + std::to_string(n) +
                                   " jobs were run within a minute"};
    }
  }
  co_return verdict{rates[1] >= rates[0] / 10, text_of(rates[0]) + " jobs/s of one queue, " +
                                                   text_of(rates[1]) + " of a thousand"};
}

/// What is full can be drained, and held leases live and end.
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
  co_await s.work(10, [&] { return ++runs, std::string{}; }, [&] { return runs >= kept; }, 30s);
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
  co_await s.crowd(4, [&](std::size_t i) -> awaitable {
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
  co_await s.work(100, handler, [&] { return ran >= n; }, 60s);
  auto const [ec, stats] = co_await queue.async_stats("default", token);
  completed = stats.completed;
  co_return verdict{!ec && ran == n && completed == n,
                    std::to_string(n) + " jobs of 1 MiB with results of 1 MiB: " +
                        std::to_string(ran) + " runs, " + std::to_string(completed) + " completed" +
                        (ec ? ", " + ec.message() : std::string{})};
}

/// A snapshot that somebody holds.
asio::awaitable<verdict> snapshot(stage const& s) {
  if (!s.given.at.url.starts_with("postgres") && !s.given.at.url.starts_with("sqlite")) {
    co_return verdict{true, "this engine has no snapshots", true};
  }
  weir::job_queue const queue{s.at};
  std::vector<double> cycles;
  auto const cycle = [&](weir::duration how_long) -> awaitable {
    cycles.clear();
    for (auto const until = boot_now() + ns_of(how_long); boot_now() < until;) {
      auto const since = boot_now();
      sized_job const job{};
      co_await queue.async_enqueue(job, {}, token);
      auto const [ec, got] = co_await queue.async_dequeue("default", "me", {}, token);
      for (auto const& j : got.jobs) {
        co_await queue.async_complete("default", j.id, j.fence, {}, token);
      }
      cycles.push_back(static_cast<double>(boot_now() - since) / 1e6);
    }
  };
  auto const median_of_last = [&] {
    auto const n = std::min<std::size_t>(cycles.size(), 200);
    std::vector<double> last{std::prev(cycles.end(), static_cast<std::ptrdiff_t>(n)), cycles.end()};
    std::ranges::sort(last);
    return last.empty() ? 0.0 : last[last.size() / 2];
  };
  co_await cycle(4s);
  auto const before = median_of_last();
  std::ofstream{s.given.jobs} << "begun";
  co_await s.pause(500ms);
  co_await cycle(15s);
  auto const after = median_of_last();
  co_return verdict{after < 2 * before, "a cycle of " + text_of(before) + " ms takes " +
                                            text_of(after) + " after 15 s and " +
                                            std::to_string(cycles.size()) + " cycles"};
}

}  // namespace

std::vector<scenario> const& scenarios() {
  static std::vector<scenario> const all{
      {"waiters", "68", "three hundred waiters on one key"},
      {"killed-waiters", "10", "two hundred who died waiting in line"},
      {"queues", "74", "a thousand queues of one job"},
      {"full", "61", "a full engine is drained"},
      {"payloads", "59, 60", "payloads and results of 1 MiB"},
      {"snapshot", "79", "a snapshot is held"},
  };
  return all;
}

boost::asio::awaitable<void> play_scenario(assignment const& a, store at, witness& log) {
  stage const s{a, at, at.get_executor()};
  auto const& name = a.scenario;
  verdict v{false, "no such scenario"};
  if (name == "waiters") v = co_await waiters(s);
  if (name == "killed-waiters") v = co_await killed_waiters(s);
  if (name == "queues") v = co_await queues(s);
  if (name == "full") v = co_await full(s);
  if (name == "payloads") v = co_await payloads(s);
  if (name == "snapshot") v = co_await snapshot(s);
  std::ranges::replace(v.seen, ' ', '_');
  log.write({.kind = "verdict",
             .name = v.left_out ? "left-out"
                     : v.holds  ? "holds"
                                : "broken",
             .detail = v.seen});
}

}  // namespace soak
