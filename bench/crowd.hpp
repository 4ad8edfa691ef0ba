// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_CROWD_HPP
#define WEIR_BENCH_CROWD_HPP

#include "report.hpp"
#include "weir/limiter.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <vector>

// Many who want the same key, with stores and threads of their own, as processes have them: what
// waiters get of one limiter, and takes of one bucket.
namespace weir_bench {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using std::chrono::steady_clock;

inline constexpr auto warm_up = 2s;
inline constexpr auto counted = 4s;
inline constexpr std::size_t takes_in_flight = 64;

/// The takes or grants of all threads while they are counted, and how long each waited.
struct tally {
  std::atomic<bool> counts{false};
  std::atomic<bool> over{false};
  std::atomic<long> done{0};
  std::atomic<long> waited{0};  // microseconds, of all together
  std::atomic<long> worst{0};

  void add(steady_clock::duration d) {
    if (!counts) return;
    auto const us =
        static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
    ++done;
    waited += us;
    for (auto seen = worst.load(); seen < us && !worst.compare_exchange_weak(seen, us);) {
    }
  }
};

struct figures {
  double rate = 0;
  double mean_ms = 0;
  double worst_ms = 0;
};

/// This many stores, each of which does so much at once of what is asked for.
///
/// @param make makes a store on an executor
template <class Make, class Work>
figures run(Make const& make, std::size_t stores, std::size_t each, Work const& what) {
  tally all;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i != stores; ++i) {
    threads.emplace_back([&, i] {
      asio::io_context io{1};
      auto const store = make(io.get_executor());
      if constexpr (requires { store.async_run(asio::detached); }) store.async_run(asio::detached);
      std::size_t left = each;
      for (std::size_t n = 0; n != each; ++n) {
        asio::co_spawn(io, what(store, i * each + n, all), [&](std::exception_ptr const& e) {
          if (e) std::rethrow_exception(e);
          if (--left == 0) store.close();
        });
      }
      io.run();
    });
  }
  std::this_thread::sleep_for(warm_up);
  all.counts = true;
  std::this_thread::sleep_for(counted);
  all.counts = false;
  all.over = true;
  for (auto& t : threads) t.join();
  auto const n = std::max<double>(static_cast<double>(all.done), 1);
  return {static_cast<double>(all.done) / std::chrono::duration<double>{counted}.count(),
          static_cast<double>(all.waited) / n / 1000, static_cast<double>(all.worst) / 1000};
}

template <class Store>
asio::awaitable<void> wait_in_line(Store store, std::size_t, tally& all) {
  weir::limiter const ten{store, {.limit = 10, .ttl = 30s}};
  asio::steady_timer holds{co_await asio::this_coro::executor};
  while (!all.over) {
    auto const asked = steady_clock::now();
    auto permit = co_await ten.async_acquire("key");
    all.add(steady_clock::now() - asked);
    holds.expires_after(2ms);
    co_await holds.async_wait(asio::use_awaitable);
    co_await ten.async_release(std::move(permit));
  }
}

/// @param keys how many are taken from, in an order of each one's own
inline auto take_from(std::size_t keys) {
  return [keys](auto store, std::size_t who, tally& all) -> asio::awaitable<void> {
    weir::rate_limiter const many{store, weir::quota::per_second(1'000'000)};
    for (std::size_t n = who; !all.over; n = n * 5 + 2 * who + 1) {
      auto const asked = steady_clock::now();
      co_await many.async_try_take("key " + std::to_string(n % keys));
      all.add(steady_clock::now() - asked);
    }
  };
}

/// @param fresh makes what makes stores, for a round: they share what nobody has used before
template <class Fresh>
void show(report& out, Fresh const& fresh, int rounds) {
  struct shape {
    std::string name;
    std::size_t stores;
    std::size_t each;
    samples grants{};
    samples mean{};
    samples worst{};
  };
  std::vector<shape> waiters{{"1 store with 10 waiters", 1, 10},
                             {"1 store with 1,000 waiters", 1, 1000},
                             {"4 stores with 250 waiters", 4, 250}};
  samples apart;
  samples together;
  samples of_four;
  for (int i = 0; i != rounds; ++i) {
    auto const at = fresh(i);
    for (auto& w : waiters) {
      auto const f = run(at, w.stores, w.each, [](auto const& store, std::size_t n, tally& all) {
        return wait_in_line(store, n, all);
      });
      w.grants.push_back(f.rate);
      w.mean.push_back(f.mean_ms);
      w.worst.push_back(f.worst_ms);
    }
    apart.push_back(run(at, 1, takes_in_flight, take_from(100'000)).rate);
    together.push_back(run(at, 1, takes_in_flight, take_from(1)).rate);
    of_four.push_back(run(at, 4, takes_in_flight, take_from(1)).rate);
  }
  for (std::size_t i = 1; i != waiters.size(); ++i) {
    auto const& w = waiters[i];
    out.add({.name = "limit 10, held for 2 ms: " + w.name,
             .unit = "grants/s",
             .ours = w.grants,
             .reference_name = waiters[0].name,
             .reference = waiters[0].grants,
             .goal = ratio_at_least(0.8)});
    out.add({.name = "  the longest wait",
             .unit = "ms",
             .ours = w.worst,
             .reference_name = "the mean",
             .reference = w.mean,
             .goal = ratio_at_most(3),
             .note = w.name});
  }
  out.add({.name = "takes of one key, 64 in flight",
           .unit = "/s",
           .ours = together,
           .reference_name = "of 100,000 keys",
           .reference = apart,
           .goal = ratio_at_least(1)});
  out.add({.name = "  64 of each of 4 stores",
           .unit = "/s",
           .ours = of_four,
           .reference_name = "of one store",
           .reference = together,
           .goal = ratio_at_least(1)});
}

}  // namespace weir_bench

#endif
