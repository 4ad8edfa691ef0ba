// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/stage.hpp"
#include "weir/id_source.hpp"
#include "weir/job_queue.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/rule/shards.hpp"

#include <boost/asio/detached.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

// Scenarios of growth, and of its cost.
namespace soak {

/// Its record goes soon after its end.
struct brief_job {
  std::uint32_t number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(brief_job, number)

/// Its record stays until many others have ended, too.
struct kept_job {
  std::uint32_t number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(kept_job, number)

}  // namespace soak

template <>
struct weir::job_traits<soak::brief_job> {
  static constexpr std::string_view kind = "brief";
  static constexpr weir::duration retention = std::chrono::seconds{1};
};
template <>
struct weir::job_traits<soak::kept_job> {
  static constexpr std::string_view kind = "kept";
  static constexpr weir::duration retention = std::chrono::seconds{20};
};

namespace soak {

namespace {

/// How much the engine stores; empty: that is not known.
asio::awaitable<std::optional<std::uint64_t>> count(stage const& s) {
  auto const said = co_await s.cue("count");
  co_return said.empty() ? std::nullopt : std::optional{std::stoull(said)};
}

/// Waits until no more than that is left. @return what is left in the end
asio::awaitable<std::uint64_t> shrinks(stage const& s, std::uint64_t to, weir::duration patience) {
  auto const until = boot_now() + ns_of(patience);
  auto left = (co_await count(s)).value();
  while (left > to && boot_now() < until) {
    co_await s.pause(500ms);
    left = (co_await count(s)).value();
  }
  co_return left;
}

[[nodiscard]] double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all.empty() ? 0.0 : all[all.size() / 2];
}

}  // namespace

/// A snapshot that somebody holds.
asio::awaitable<verdict> snapshot(stage const& s) {
  weir::job_queue const queue{s.at};
  std::vector<double> cycles;
  auto const cycle = [&](weir::duration how_long) -> asio::awaitable<void> {
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
    return median({std::prev(cycles.end(), static_cast<std::ptrdiff_t>(n)), cycles.end()});
  };
  co_await cycle(4s);
  auto const before = median_of_last();
  if ((co_await s.cue("begin hold-snapshot")).empty()) {
    co_return verdict{true, "this engine has no snapshots", true};
  }
  co_await cycle(15s);
  auto const after = median_of_last();
  co_return verdict{after < 2 * before, "a cycle of " + text_of(before) + " ms takes " +
                                            text_of(after) + " after 15 s and " +
                                            std::to_string(cycles.size()) + " cycles"};
}

/// Jobs of an application's own transactions make no scan dear, and are run.
asio::awaitable<verdict> outbox_scans(stage const& s) {
  auto const box = open_outbox(s.given.at);
  if (!box) co_return verdict{true, "this engine has no transactions of applications", true};
  constexpr std::uint32_t n = 10'000;
  auto const scan = [&]() -> asio::awaitable<double> {
    std::vector<double> ms;
    for (int i = 0; i != 50; ++i) {
      auto const since = boot_now();
      co_await s.at.async_execute(weir::command::scan_visible_queues{.shard = 0, .limit = 64},
                                  token);
      ms.push_back(static_cast<double>(boot_now() - since) / 1e6);
    }
    co_return std::ranges::min(ms);  // whatever else the machine does
  };
  weir::job_queue const queue{s.at};
  co_await queue.async_enqueue(sized_job{}, {}, token);
  auto const before = co_await scan();
  std::size_t kept = 1;
  weir::id_source ids;
  for (std::uint32_t i = 0; i != n && box->begin(); ++i) {
    weir::new_job job;
    job.id = ids.job();
    job.kind = weir::job_traits<sized_job>::kind;
    job.payload = R"({"filling":""})";
    std::array const jobs{job};
    auto const name = i % 8 != 0 ? std::string{"one"} : "many-" + std::to_string(i);
    bool const done = box->execute(weir::command::enqueue_jobs{name, jobs}).has_value();
    kept += box->end(done) == outbox::outcome::committed ? 1 : 0;
  }
  auto const after = co_await scan();
  std::size_t ran = 0;
  co_await s.work(50, [&] { return ++ran, std::string{}; }, [&] { return ran >= kept; }, 60s);
  co_return verdict{kept == n + 1 && ran == kept && after <= 2 * before + 0.3,
                    "a scan of " + text_of(before) + " ms takes " + text_of(after) + " behind " +
                        std::to_string(kept) + " transactions, of which " + std::to_string(ran) +
                        " jobs are run"};
}

/// Buckets that are full again leave nothing behind.
asio::awaitable<verdict> flood(stage const& s) {
  auto const before = co_await count(s);
  if (!before) co_return verdict{true, "what this engine stores cannot be counted here", true};
  constexpr std::size_t n = 20'000;
  constexpr std::uint64_t few = 2000;
  weir::rate_limiter const limiter{s.at, weir::quota::per_second(1000)};
  co_await s.crowd(32, [&](std::size_t who) -> asio::awaitable<void> {
    for (std::size_t i = who; i < n; i += 32) {
      co_await limiter.async_take("flood-" + std::to_string(i), {}, token);
    }
  });
  auto const most = (co_await count(s)).value();
  auto const since = boot_now();
  auto const left = co_await shrinks(s, *before + few, 100s);
  co_return verdict{left <= *before + few,
                    std::to_string(most - std::min(most, *before)) + " records of " +
                        std::to_string(n) + " buckets, " +
                        std::to_string(left - std::min(left, *before)) + " left after " +
                        text_of(static_cast<double>(boot_now() - since) / 1e9) + " s"};
}

/// Queues that are empty and left alone leave nothing behind, some days later.
asio::awaitable<verdict> emptied(stage const& s) {
  auto const& url = s.given.at.url;
  if (!url.starts_with("redis") && !url.starts_with("postgres")) {
    co_return verdict{true, "idle queues are bounded in number, and not by time", true};
  }
  auto const before = co_await count(s);
  if (!before) co_return verdict{true, "what this engine stores cannot be counted here", true};
  constexpr std::uint32_t n = 1000;
  weir::job_queue const queue{s.at};
  co_await s.crowd(20, [&](std::size_t who) -> asio::awaitable<void> {
    for (auto i = static_cast<std::uint32_t>(who); i < n; i += 20) {
      co_await queue.async_enqueue(brief_job{i}, {.queue = "emptied-" + std::to_string(i)}, token);
    }
  });
  auto const most = (co_await count(s)).value();
  weir::worker worker{
      s.at, {.concurrency = 50, .lease = 10s, .poll = poll, .drain = 2s, .gc_interval = 1s}};
  std::size_t ran = 0;
  worker.handle<brief_job>([&](brief_job const&) { ++ran; });
  bool ended = false;
  worker.async_run([&ended](error_code) { ended = true; });
  for (auto const until = boot_now() + ns_of(60s); ran < n && boot_now() < until;) {
    co_await s.pause(5ms);
  }
  // The jobs' records go, all queues are seen to be empty, and are so days later, too.
  co_await s.cue("begin days-ahead");
  co_await s.pause(15s);
  co_await s.cue("end days-ahead");
  co_await s.cue("begin days-ahead");
  auto const since = boot_now();
  auto const left = co_await shrinks(s, *before + n / 10, 60s);
  worker.stop();
  while (!ended) co_await s.pause(5ms);
  co_return verdict{ran >= n && left <= *before + n / 10,
                    std::to_string(most - std::min(most, *before)) + " records of " +
                        std::to_string(n) + " queues, " +
                        std::to_string(left - std::min(left, *before)) + " left six days and " +
                        text_of(static_cast<double>(boot_now() - since) / 1e9) + " s later"};
}

/// Records of a queue that are over at once go in pieces, and all of them (F80).
asio::awaitable<verdict> pieces(stage const& s) {
  if ((co_await s.cue("largest")).empty()) {
    co_return verdict{true, "records go one by one on this engine", true};
  }
  constexpr std::uint32_t n = 30'000;
  constexpr std::uint64_t most = 10'000;
  weir::job_queue const queue{s.at};
  std::vector<kept_job> const jobs(1000);
  for (std::uint32_t i = 0; i != n; i += 1000) co_await queue.async_enqueue_many(jobs, {}, token);
  weir::worker worker{
      s.at, {.concurrency = 200, .lease = 10s, .poll = poll, .drain = 10s, .gc_interval = 1s}};
  std::size_t ran = 0;
  worker.handle<kept_job>([&](kept_job const&) { ++ran; });
  bool ended = false;
  worker.async_run([&ended](error_code) { ended = true; });
  std::uint64_t at_once = 0;
  std::uint64_t kept = 0;
  std::uint64_t left = n;
  for (auto const until = boot_now() + ns_of(90s); (ran < n || left > 0) && boot_now() < until;) {
    std::uint64_t here = 0;
    std::istringstream{co_await s.cue("largest")} >> here >> left;
    at_once = std::max(at_once, here);
    kept = std::max(kept, left);
    if (left <= 10) left = 0;  // the queue's name, and its counters
    co_await s.pause(100ms);
  }
  worker.stop();
  while (!ended) co_await s.pause(5ms);
  co_return verdict{ran == n && left == 0 && at_once <= most,
                    std::to_string(ran) + " jobs, " + std::to_string(kept) + " records; at most " +
                        std::to_string(at_once) + " go at once, and " + std::to_string(left) +
                        " are left"};
}

/// The slot of a large queue moves while it is worked on: no job is lost, none stays behind, and
/// whoever uses other slots goes on (F53, F80).
asio::awaitable<verdict> moved(stage const& s) {
  if (!s.given.at.url.starts_with("redis+cluster")) {
    co_return verdict{true, "nothing moves on this engine", true};
  }
  constexpr std::size_t n = 200'000;
  weir::job_queue const queue{s.at};
  std::vector<sized_job> const jobs(1000);
  std::string const name{moved_queue};
  std::size_t kept = 0;
  for (std::size_t i = 0; i != n / jobs.size(); ++i) {
    auto const [ec, all] = co_await queue.async_enqueue_many(jobs, {.queue = name}, token);
    if (!ec) kept += all.size();
  }
  bool moving = true;
  double longest = 0;
  double longest_own = 0;
  std::size_t ended = 0;
  auto const watch = [&](std::string key, double& most) -> asio::awaitable<void> {
    while (moving) {
      auto const since = boot_now();
      co_await s.at.async_execute(weir::command::inspect_lock{key}, token);
      most = std::max(most, static_cast<double>(boot_now() - since) / 1e6);
      co_await s.pause(1ms);
    }
    ++ended;
  };
  // Keys of all shards, of which the queue's own is one.
  constexpr std::size_t watched = 24;
  auto const own = weir::rule::shard_of(moved_queue, s.given.at.shards);
  for (std::size_t i = 0; i != watched; ++i) {
    auto const key = "key-" + std::to_string(i);
    bool const is_own = weir::rule::shard_of(key, s.given.at.shards) == own;
    asio::co_spawn(s.ex, watch(key, is_own ? longest_own : longest), asio::detached);
  }
  std::size_t ran = 0;
  asio::co_spawn(
      s.ex,
      [&]() -> asio::awaitable<void> {
        co_await s.cue("begin move-queue");
        co_await s.pause(500ms);
        co_await s.cue("end move-queue");
        moving = false;
      },
      asio::detached);
  co_await s.work(
      100, [&] { return ++ran, std::string{}; }, [&] { return ran >= kept && !moving; }, 150s);
  while (ended != watched) co_await s.pause(5ms);
  auto const [ec, stats] = co_await queue.async_stats(name, token);
  co_return verdict{!ec && kept == n && stats.completed == n && longest < 5000 &&
                        longest_own < 5000,
                    std::to_string(kept) + " jobs, " + std::to_string(ran) + " runs, " +
                        std::to_string(stats.completed) + " completed; another slot waited for " +
                        text_of(longest) + " ms at most, this one for " + text_of(longest_own)};
}

/// A process that comes to many jobs answers at once, and does not take them all to itself (F81).
asio::awaitable<verdict> newcomer(stage const& s) {
  constexpr std::size_t n = 60'000;
  weir::job_queue const queue{s.at};
  std::vector<sized_job> const jobs(500, sized_job{.filling = std::string(1000, 'x')});
  std::size_t kept = 0;
  for (std::size_t i = 0; i != n / jobs.size(); ++i) {
    auto const [ec, all] = co_await queue.async_enqueue_many(jobs, {}, token);
    if (!ec) kept += all.size();
  }
  if (kept < n / 2) co_return verdict{false, "only " + std::to_string(kept) + " jobs are there"};
  co_await s.cue("start first-answer");
  for (auto const until = boot_now() + ns_of(60s); boot_now() < until;) {
    if (std::filesystem::exists(s.given.jobs + "-first-answer.done")) break;
    co_await s.pause(50ms);
  }
  co_return verdict{true, std::to_string(kept) + " jobs of 1 kB"};
}

/// The second process of `newcomer`.
asio::awaitable<verdict> first_answer(stage const& s) {
  weir::job_queue const queue{s.at};
  auto const since = boot_now();
  auto const [ec, done] = co_await queue.async_enqueue(sized_job{}, {}, token);
  auto const took = static_cast<double>(boot_now() - since) / 1e9;
  co_await s.pause(2s);  // in which it could read what is there
  std::uint64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages >> pages;
  auto const mib = pages * 4096 >> 20U;
  std::ofstream{s.given.jobs + ".done"} << "done";
  co_return verdict{!ec && took < 5 && mib <= 40, "a newcomer's first job after " + text_of(took) +
                                                      " s, and it has " + std::to_string(mib) +
                                                      " MiB"};
}

}  // namespace soak
