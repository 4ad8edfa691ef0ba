// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "endless.hpp"
#include "lease_bed.hpp"
#include "weir/clock/manual.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/uniqueness.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Primitives shared by threads: for the thread sanitizer, above all.
using namespace lease_test;

namespace {

constexpr int tasks = 150;

/// Boost.Test is not for several threads.
std::atomic<int> mistakes{0};
void require(bool ok) {
  if (!ok) ++mistakes;
}

/// How many are inside, and the most there ever were.
struct crowd {
  void enter() {
    auto const n = ++inside;
    for (auto seen = most.load(); seen < n && !most.compare_exchange_weak(seen, n);) {
    }
  }
  void leave() { --inside; }
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
};

/// Runs `start(done)` many times on threads of a pool, and lets time pass until all are done.
template <class Start>
void run_all(asio::thread_pool& pool, manual_clock& clock, Start start) {
  auto const left = std::make_shared<std::atomic<int>>(tasks);
  for (int i = 0; i < tasks; ++i) {
    asio::post(pool, [=] { start(i, [left] { --*left; }); });
  }
  while (left->load() > 0) {
    clock.advance(50ms);
    std::this_thread::yield();
  }
  pool.join();
  BOOST_TEST(mistakes.load() == 0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lease_threads)

BOOST_AUTO_TEST_CASE(R1_never_more_than_the_limit) {
  asio::thread_pool pool{3};
  manual_clock clock;
  local_store const store{pool.get_executor(), clock};
  limiter const of{store, {.limit = 3, .ttl = 24h}, clock};
  crowd c;
  run_all(pool, clock, [&](int i, auto done) {
    if (i % 3 == 0) {
      of.async_acquire("k", [&c, done](error_code ec, permit const& p) {
        require(!ec);
        require(p.in_use() <= 3u);
        c.enter();
        std::this_thread::yield();
        c.leave();
        done();
      });
    } else if (i % 3 == 1) {
      auto body = [&c, ex = pool.get_executor()](permit const&) -> asio::awaitable<void> {
        c.enter();
        co_await asio::post(ex, asio::use_awaitable);
        c.leave();
      };
      of.async_with_permit("k", std::move(body), [done](std::exception_ptr e) {
        require(!e);
        done();
      });
    } else {
      auto p = of.try_acquire("k").value();
      if (p) {
        c.enter();
        c.leave();
      }
      p.reset();
      done();
    }
  });
  BOOST_TEST(c.most.load() <= 3);
  BOOST_TEST(census(store, "k").in_use == 0u);
  BOOST_TEST(census(store, "k").waiting == 0u);
}

BOOST_AUTO_TEST_CASE(R7_cancelled_from_all_sides) {
  asio::thread_pool pool{3};
  manual_clock clock;
  local_store const store{pool.get_executor(), clock};
  limiter const of{store, {.limit = 2, .ttl = 24h}, clock};
  run_all(pool, clock, [&](int i, auto done) {
    auto const strand = asio::make_strand(pool);
    auto const signal = std::make_shared<asio::cancellation_signal>();
    asio::post(strand, [=, &clock, &pool, &of] {
      auto const on_strand = [&](auto handler) {
        return asio::bind_cancellation_slot(signal->slot(),
                                            asio::bind_executor(strand, std::move(handler)));
      };
      if (i % 2 == 0) {
        of.async_acquire("k", on_strand([signal, done](error_code, permit const&) { done(); }));
      } else {
        auto body = [&clock, ex = pool.get_executor()]() -> asio::awaitable<void> {
          co_await clock.async_wait_until(ex, clock.steady_now() + 200ms, asio::use_awaitable);
        };
        of.async_with_permit("k", std::move(body),
                             on_strand([signal, done](std::exception_ptr) { done(); }));
      }
    });
    if (i % 3 != 0) {
      asio::post(strand, [signal] { signal->emit(asio::cancellation_type::terminal); });
    }
  });
  BOOST_TEST(census(store, "k").in_use == 0u);
  BOOST_TEST(census(store, "k").waiting == 0u);
}

BOOST_AUTO_TEST_CASE(R2_one_at_a_time) {
  asio::thread_pool pool{3};
  manual_clock clock;
  local_store const store{pool.get_executor(), clock};
  uniqueness const of{store, {.ttl = 24h}, clock};
  crowd c;
  run_all(pool, clock, [&](int, auto done) {
    auto body = [&c, ex = pool.get_executor()]() -> asio::awaitable<void> {
      c.enter();
      co_await asio::post(ex, asio::use_awaitable);
      c.leave();
    };
    of.async_with_lock("k", {.wait = limits::span}, std::move(body),
                       [done](std::exception_ptr e, bool ran) {
                         require(!e);
                         require(ran);
                         done();
                       });
  });
  BOOST_TEST(c.most.load() == 1);
}

// An engine has strands and timers, which cannot go later than their context.
BOOST_AUTO_TEST_CASE(R7_a_handle_that_outlives_its_context_keeps_nothing_of_the_store) {
  auto const wire = std::make_shared<engine>(manual_clock{});
  permit held;
  asio::io_context other;
  {
    asio::io_context io;
    limiter of{remote_store{asio::make_strand(io), wire}, {}, wire->clock};
    of.renew_on(asio::make_strand(io));
    of.async_try_acquire("k", [&](error_code, std::optional<permit> p) { held = std::move(*p); });
    io.run();
    BOOST_TEST_REQUIRE(bool{held});
    BOOST_TEST(wire.use_count() > 1);
  }
  BOOST_TEST(wire.use_count() == 1);
  held.release();
  BOOST_TEST(!held);
}

// A store in memory gives a lease back without any executor.
BOOST_AUTO_TEST_CASE(R7_a_handle_that_outlives_its_context_keeps_no_strand_of_a_memory_store) {
  permit held;
  std::optional<memory_store> store;
  {
    asio::io_context io;
    store.emplace(asio::make_strand(io));
    limiter of{*store};
    asio::io_context renews;
    of.renew_on(asio::make_strand(renews));
    held = std::move(of.try_acquire("k").value().value());
  }
  BOOST_TEST(!store->get_executor());
  auto const in_use = [&] {
    return store->execute(command::inspect_permits{.key = "k"}).value().in_use;
  };
  BOOST_TEST(in_use() == 1u);
  held.release();
  BOOST_TEST(in_use() == 0u);
}

BOOST_AUTO_TEST_CASE(R7_handles_go_in_other_threads_while_the_context_ends) {
  for (int round = 0; round < 20; ++round) {
    auto const wire = std::make_shared<engine>(manual_clock{});
    auto io = std::make_unique<asio::io_context>();
    std::vector<permit> held;
    {
      limiter const of{
          remote_store{io->get_executor(), wire}, {.limit = 50, .ttl = 24h}, wire->clock};
      for (int i = 0; i < 50; ++i) {
        of.async_try_acquire(
            "k", [&](error_code, std::optional<permit> p) { held.push_back(std::move(*p)); });
      }
      io->run();
    }
    BOOST_REQUIRE(held.size() == 50u);
    std::thread other{[gone = std::move(held)]() mutable { gone.clear(); }};
    io.reset();
    other.join();
  }
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// Bodies that never end by themselves, on four threads; the leases are kept on two others.
struct bodies {
  explicit bodies(duration ttl)
      : permits{store, {.limit = tasks, .ttl = ttl}, clock},
        locks{store, {.ttl = ttl}, clock} {}

  static std::string key(int i) { return "lock " + std::to_string(i); }

  /// Starts as many of each, and lets time pass until all have ended. `step` is called in between.
  void run(std::function<void()> const& step) {
    auto const with_signal = [&](auto handler) {
      return asio::bind_executor(
          pool.get_executor(),
          asio::bind_cancellation_slot(signals.emplace_back().slot(), std::move(handler)));
    };
    auto const body = [this]() {
      ++begun;
      return test::wait_for_ever();
    };
    for (int i = 0; i != tasks; ++i) {
      permits.async_with_permit("k", {}, body,
                                with_signal([this](std::exception_ptr e) { end(e); }));
      locks.async_with_lock(key(i), {}, body,
                            with_signal([this](std::exception_ptr e, bool) { end(e); }));
    }
    auto work = asio::make_work_guard(io);
    std::thread first{[this] { io.run(); }};
    std::thread second{[this] { io.run(); }};
    while (lost + cancelled + wrong != 2 * tasks) {
      clock.advance(1ms);
      step();
      std::this_thread::yield();
    }
    work.reset();
    first.join();
    second.join();
    pool.join();
    BOOST_TEST(wrong.load() == 0);
  }

  /// Takes the leases away that there are.
  void lose_all() const {
    for (auto const& h : census(store, "k").holders) {
      store.execute(command::release_permit{"k", h.holder, 0}).value();
    }
    for (int i = 0; i != tasks; ++i) {
      auto const held = store.execute(command::inspect_lock{key(i)}).value();
      if (held.held) store.execute(command::release_lock{key(i), held.holder, 0}).value();
    }
  }

  /// Cancels the next one, on this thread.
  void cancel_next() {
    if (next == signals.size()) return;
    signals[next++].emit(asio::cancellation_type::terminal);
  }

  void end(std::exception_ptr const& e) {
    auto const ec = detail::error_of(e);
    ++(ec == errc::lease_lost ? lost : ec == asio::error::operation_aborted ? cancelled : wrong);
  }

  manual_clock clock;
  asio::io_context io;
  asio::thread_pool pool{4};
  local_store store{io.get_executor(), clock};
  limiter<local_store, manual_clock> permits;
  uniqueness<local_store, manual_clock> locks;
  std::deque<asio::cancellation_signal> signals;
  std::size_t next = 0;  // of those, to be emitted
  std::atomic<std::size_t> begun{0};
  std::atomic<int> lost{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> wrong{0};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(bodies_on_other_threads)

BOOST_AUTO_TEST_CASE(F56_bodies_whose_leases_are_lost) {
  bodies b{200ms};
  b.run([&] { b.lose_all(); });
  BOOST_TEST(b.lost.load() == 2 * tasks);
}

BOOST_AUTO_TEST_CASE(F56_bodies_that_another_thread_cancels) {
  for (int round = 0; round != 4; ++round) {
    bodies b{24h};
    b.run([&] {
      if (b.begun > b.next) b.cancel_next();
    });
    BOOST_TEST(b.cancelled.load() == 2 * tasks);
  }
}

// co_spawn brings each cancellation to the body's strand, too. What two of them from two threads
// share beside that is the record of what was asked for: the thread sanitizer sees who writes it.
BOOST_AUTO_TEST_CASE(F56_bodies_that_are_cancelled_while_their_leases_are_lost) {
  for (int round = 0; round != 4; ++round) {
    bodies b{200ms};
    b.run([&] {
      b.lose_all();
      if (b.begun > b.next) b.cancel_next();
    });
    BOOST_TEST(b.lost + b.cancelled == 2 * tasks);
  }
}

BOOST_AUTO_TEST_SUITE_END()
