// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/stage.hpp"
#include "weir/job_queue.hpp"
#include "weir/rate_limiter.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

// Scenarios of an engine that something happens to while somebody holds something.
namespace soak {

namespace {

using weir::command::acquire_lock;
using weir::command::release_lock;
using weir::command::renew_lock;

/// Asks until there is an answer. @return the last one, in any case
template <class C>
asio::awaitable<weir::result<typename C::result>> insist(stage const& s, C const& c,
                                                         weir::duration patience) {
  for (auto const until = boot_now() + ns_of(patience);;) {
    auto [ec, answer] = co_await s.at.async_execute(c, token);
    if (!ec) co_return std::move(answer);
    if (boot_now() >= until) co_return ec;
    co_await s.pause(50ms);
  }
}

/// Holds a lock that lives, and one that is left alone.
struct holder {
  static constexpr weir::duration brief = 3s;

  std::string name;
  std::uint64_t lives = 0;
  std::uint64_t gone = 0;
  std::int64_t taken = 0;

  asio::awaitable<bool> take(stage const& s) {
    auto const first = co_await insist(s, acquire_lock{"lives " + name, "me", 1min}, 10s);
    auto const second = co_await insist(s, acquire_lock{"gone " + name, "me", brief}, 10s);
    taken = boot_now();
    if (!first || !second || !first->granted || !second->granted) co_return false;
    lives = first->fence;
    gone = second->fence;
    co_return true;
  }
  /// Nobody else gets what lives, and its holder can renew it.
  asio::awaitable<bool> has_it(stage const& s) const {
    auto const other = co_await insist(s, acquire_lock{"lives " + name, "other", 1min}, 10s);
    if (!other || other->granted) co_return false;
    auto const renewed = co_await insist(s, renew_lock{"lives " + name, "me", lives, 1min}, 10s);
    co_return renewed.has_value();
  }
  /// The lock that was left alone is free in time, and its fences grow.
  /// @param early it may be free before its time
  asio::awaitable<bool> loses_it(stage const& s, bool early) {
    auto const key = "gone " + name;
    acquire_lock const again{key, "other", 1min};
    for (auto const until = boot_now() + ns_of(8s); boot_now() < until;) {
      auto const other = co_await insist(s, again, 8s);
      if (!other || !other->granted) {
        co_await s.pause(100ms);
        continue;
      }
      if (!early && boot_now() < taken + ns_of(brief - 100ms)) co_return false;
      auto last = std::exchange(gone, other->fence);
      for (int i = 0; i != 6; ++i) {
        if (gone <= last) co_return false;
        co_await insist(s, release_lock{key, "other", gone}, 8s);
        auto const next = co_await insist(s, again, 8s);
        if (!next || !next->granted) co_return false;
        last = std::exchange(gone, next->fence);
      }
      co_return gone > last;
    }
    co_return false;
  }
};

}  // namespace

/// A clock that is set ends nothing early and keeps nothing for long.
asio::awaitable<verdict> clocks(stage const& s) {
  // On these a clock that is ahead ends leases for good; on the others it ends nothing.
  bool const ahead_ends =
      s.given.at.url.starts_with("redis") || s.given.at.url.starts_with("postgres");
  for (std::string const step : {"clock-back", "clock-ahead"}) {
    holder h{step};
    if (!co_await h.take(s)) co_return verdict{false, "nothing can be taken"};
    if ((co_await s.cue("begin " + step)).empty()) {
      co_return verdict{true, "this engine's clock cannot be moved here", true};
    }
    co_await s.pause(1s);
    bool const may_end = step == "clock-ahead" && ahead_ends;
    bool const kept = may_end || co_await h.has_it(s);
    bool const freed = co_await h.loses_it(s, may_end);
    co_await s.cue("end " + step);
    co_await s.pause(500ms);
    bool const still_kept = may_end || co_await h.has_it(s);
    if (!kept || !freed || !still_kept) {
      co_return verdict{
          false, step + ": what lives is " + (kept ? "kept" : "lost") +
                     (still_kept ? "" : ", lost when the clock is right again") +
                     ", what is over is " +
                     (freed ? "free" : "not free in time, free too early, or has a lower fence")};
    }
  }
  co_return verdict{true, std::string{"an hour back"} + (ahead_ends ? "" : " and an hour ahead") +
                              ": what lives is kept, what is over is free"};
}

/// A server's successor is found, by those who were there and by newcomers.
asio::awaitable<verdict> fail_over(stage const& s) {
  holder h{"fail-over"};
  if (!co_await h.take(s)) co_return verdict{false, "nothing can be taken"};
  std::string how;
  for (std::string const each : {"kill-master", "promote", "fail-over", "step-down"}) {
    if (!(co_await s.cue("begin " + each)).empty()) {
      how = each;
      break;
    }
  }
  if (how.empty()) co_return verdict{true, "a single server has no successor", true};
  auto const since = boot_now();
  bool const found = (co_await insist(s, weir::command::inspect_lock{"lives"}, 30s)).has_value();
  auto const took = static_cast<double>(boot_now() - since) / 1e9;
  auto const late = open_store(s.ex, s.given.at);
  stage const newcomer{s.given, late, s.ex};
  bool const found_by_all =
      found && (co_await insist(newcomer, weir::command::inspect_lock{"lives"}, 30s)).has_value();
  late.close();
  co_await s.cue("end " + how);
  co_return verdict{found_by_all, how + ": the successor is " + (found ? "" : "not ") +
                                      "found after " + text_of(took) + " s" +
                                      (found == found_by_all ? "" : ", by a newcomer it is not")};
}

/// A row that an application has locked holds up those who want it, and nobody else.
asio::awaitable<verdict> locked_rows(stage const& s) {
  // It is there for as long as this takes: one that is full again would be removed.
  weir::rate_limiter const limiter{s.at, weir::quota::per_hour(100)};
  co_await limiter.async_take("locked", {}, token);
  // How long a command about something else takes.
  auto const unrelated = [&]() -> asio::awaitable<std::array<double, 2>> {
    std::vector<double> ms;
    for (auto const until = boot_now() + ns_of(3s); boot_now() < until;) {
      auto const since = boot_now();
      co_await s.at.async_execute(acquire_lock{"unrelated", "me", 1min}, token);
      ms.push_back(static_cast<double>(boot_now() - since) / 1e6);
      co_await s.pause(2ms);
    }
    std::ranges::sort(ms);
    co_return std::array{ms[ms.size() / 2], ms.back()};
  };
  auto const before = co_await unrelated();
  if ((co_await s.cue("begin hold-rows")).empty()) {
    co_return verdict{true, "this engine has no rows that others can lock", true};
  }
  std::size_t waiting = 32;
  for (int i = 0; i != 32; ++i) {
    asio::co_spawn(
        s.ex, [&]() -> asio::awaitable<void> { co_await limiter.async_take("locked", {}, token); },
        [&waiting](std::exception_ptr) { --waiting; });
  }
  co_await s.pause(200ms);
  auto const beside = co_await unrelated();
  co_await s.cue("end hold-rows");
  while (waiting != 0) co_await s.pause(5ms);
  co_return verdict{beside[0] <= 3 * before[0] + 1 && beside[1] <= 3 * before[1] + 200,
                    "a lock in " + text_of(before[0]) + " ms, at most " + text_of(before[1]) +
                        "; beside 32 who wait for a locked row in " + text_of(beside[0]) +
                        " ms, at most " + text_of(beside[1])};
}

/// Power fails, and takes the images that the disk does not have yet. No job is lost with them.
asio::awaitable<verdict> power(stage const& s) {
  weir::job_queue const queue{s.at};
  std::size_t kept = 0;
  // Enough for several images.
  auto const enqueue = [&](std::size_t n) -> asio::awaitable<void> {
    std::vector<sized_job> const jobs(40, sized_job{.filling = std::string(20'000, 'x')});
    for (std::size_t i = 0; i != n; ++i) {
      auto const [ec, all] = co_await queue.async_enqueue_many(jobs, {}, token);
      if (!ec) kept += all.size();
    }
  };
  co_await enqueue(10);
  if ((co_await s.cue("begin synchronise")).empty()) {
    co_return verdict{true, "this engine's disk is trusted", true};
  }
  co_await enqueue(50);
  co_await s.cue("begin power-failure");
  std::size_t ran = 0;
  co_await s.work(50, [&] { return ++ran, std::string{}; }, [&] { return ran >= kept; }, 60s);
  co_return verdict{ran >= kept && kept > 1000,
                    std::to_string(ran) + " of " + std::to_string(kept) +
                        " jobs are run after the images since the disk was last written are lost"};
}

}  // namespace soak
