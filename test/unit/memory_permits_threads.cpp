// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Many threads on one memory store: what they can see of each other never breaks a promise.

#include "weir/store/memory/permits.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr time_point start{1'000'000s};

struct table : detail::memory_permits {
  explicit table(std::size_t capacity = 1'000'000)
      : detail::memory_permits{memory_options{.max_permits = capacity}} {}
  using detail::memory_permits::lines;
};

template <class Body>
void on_threads(int n, Body body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(n));
  for (int t = 0; t < n; ++t) threads.emplace_back(body, t);
  for (auto& t : threads) t.join();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_permits_threads)

BOOST_AUTO_TEST_CASE(R1_R5_one_key_never_above_its_limit) {
  constexpr std::uint32_t limit = 3;
  table s;
  std::atomic<std::uint32_t> inside = 0;
  std::atomic<int> violations = 0;
  on_threads(5, [&](int t) {
    auto const holder = "h" + std::to_string(t);
    std::uint64_t last = 0;
    for (int done = 0; done < 1'500;) {
      auto const patience = done % 2 == 0 ? 0s : 1h;
      auto const g =
          s.apply(command::acquire_permit{"k", holder, limit, 1h, patience}, start).value();
      if (g.in_use > limit) ++violations;
      if (!g.granted) {
        if ((g.place != 0) != (patience > 0s)) ++violations;
        std::this_thread::yield();
        continue;
      }
      if (inside.fetch_add(1) >= limit) ++violations;
      if (g.fence <= last) ++violations;
      last = g.fence;
      if (!s.apply(command::renew_permit{"k", holder, g.fence, 1h}, start)) ++violations;
      std::this_thread::yield();
      inside.fetch_sub(1);
      if (!s.apply(command::release_permit{"k", holder, g.fence}, start)->freed) ++violations;
      if (s.apply(command::release_permit{"k", holder, g.fence}, start)->freed) ++violations;
      ++done;
    }
  });
  BOOST_TEST(violations == 0);
  BOOST_TEST(s.lines().keys() == 0u);
  BOOST_TEST(s.lines().size() == 0u);
}

BOOST_AUTO_TEST_CASE(R1_R8_F11_many_keys_expiring_and_bounded) {
  constexpr std::uint32_t limit = 2;
  constexpr std::size_t capacity = 60;
  table s{capacity};
  std::atomic<duration::rep> clock = 0;
  std::atomic<int> violations = 0;
  std::atomic<std::uint64_t> full = 0, granted = 0;
  on_threads(4, [&](int t) {
    std::mt19937_64 random{static_cast<std::uint64_t>(t)};
    for (int i = 0; i < 5'000; ++i) {
      // The time is read before the lock is taken, so that it runs backwards now and then.
      auto const now = start + duration{clock.fetch_add(1'000)};
      auto const key = "k" + std::to_string(random() % 50);
      auto const holder = "h" + std::to_string(t) + "-" + std::to_string(random() % 3);
      switch (random() % 4) {
        case 0: s.apply(command::release_permit{key, holder, 0}, now).value(); break;
        case 1:
          if (s.apply(command::inspect_permits{key, 5}, now)->in_use > limit) ++violations;
          break;
        default: {
          auto const g = s.apply(command::acquire_permit{key, holder, limit, 200us, 100us}, now);
          if (!g) {
            ++full;
          } else {
            granted += g->granted ? 1 : 0;
            if (g->in_use > limit) ++violations;
          }
        }
      }
      if (s.lines().size() > capacity) ++violations;
    }
  });
  BOOST_TEST(violations == 0);
  BOOST_TEST(granted > 0u);
  BOOST_TEST(full > 0u);
  for (int i = 0; i < 3'000; ++i) {
    s.apply(command::inspect_permits{"another"}, start + 24h).value();
  }
  BOOST_TEST(s.lines().keys() == 0u);
  BOOST_TEST(s.lines().size() == 0u);
}

namespace {

// A holder that asks again only when it is told to: if ever one hint were lost, it would wait for
// ever.
struct visitor : std::enable_shared_from_this<visitor> {
  visitor(table& s, asio::io_context& io, int id, int visits)
      : permits{s},
        context{io},
        strand{asio::make_strand(io)},
        holder{"h" + std::to_string(id)},
        left{visits} {}

  static inline std::atomic<std::uint32_t> inside{0};
  static inline std::atomic<int> violations{0};
  static constexpr std::uint32_t limit = 2;

  void ask() {
    auto const g =
        permits.apply(command::acquire_permit{"k", holder, limit, 1h, 1h}, start).value();
    if (!g.granted) {
      permits.await(command::await_permit{"k", holder}, start,
                    asio::bind_executor(strand,
                                        [self = shared_from_this()](error_code ec, hint) {
                                          if (ec) ++violations;
                                          self->ask();
                                        }),
                    context.get_executor());
      return;
    }
    if (inside.fetch_add(1) >= limit) ++violations;
    asio::post(strand, [self = shared_from_this(), fence = g.fence] {
      inside.fetch_sub(1);
      auto const r =
          self->permits.apply(command::release_permit{"k", self->holder, fence}, start).value();
      if (!r.freed) ++violations;
      if (--self->left > 0) self->ask();
    });
  }

  table& permits;
  asio::io_context& context;
  asio::strand<asio::io_context::executor_type> strand;
  std::string holder;
  int left;
};

}  // namespace

BOOST_AUTO_TEST_CASE(R6_no_hint_is_ever_lost) {
  table s;
  asio::io_context io;
  for (int i = 0; i < 20; ++i) {
    auto const v = std::make_shared<visitor>(s, io, i, 100);
    asio::post(v->strand, [v] { v->ask(); });
  }
  on_threads(3, [&](int) { io.run(); });
  BOOST_TEST(visitor::violations == 0);
  BOOST_TEST(visitor::inside == 0u);
  BOOST_TEST(s.lines().keys() == 0u);
}

BOOST_AUTO_TEST_CASE(R7_waking_cancelling_and_leaving_race) {
  table s;
  asio::io_context io;
  std::atomic<int> ended = 0;
  constexpr int rounds = 400;
  for (int i = 0; i < rounds; ++i) {
    auto const key = "k" + std::to_string(i);
    s.apply(command::acquire_permit{key, "a", 1, 1h}, start).value();
    s.apply(command::acquire_permit{key, "b", 1, 1h, 1h}, start).value();
    auto const strand = asio::make_strand(io);
    auto const signal = std::make_shared<asio::cancellation_signal>();
    s.await(command::await_permit{key, "b"}, start,
            asio::bind_executor(
                strand, asio::bind_cancellation_slot(
                            signal->slot(), [&ended, signal](error_code, hint) { ++ended; })),
            io.get_executor());
    asio::post(strand, [signal] { signal->emit(asio::cancellation_type::total); });
    asio::post(io, [&s, key] { s.apply(command::release_permit{key, "a", 0}, start).value(); });
    asio::post(io, [&s, key] { s.apply(command::release_permit{key, "b", 0}, start).value(); });
  }
  on_threads(3, [&](int) { io.run(); });
  BOOST_TEST(ended == rounds);
  BOOST_TEST(s.lines().keys() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
