// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/clock/manual.hpp"
#include "weir/lease/keeper.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
namespace asio = boost::asio;
using namespace weir;
using detail::lease_keeper;

namespace {

/// Keeps a lease of 30 s by hand: what the keeper asks lands in `asked`, and the test answers.
struct bench {
  explicit bench(std::unique_ptr<asio::io_context> context = std::make_unique<asio::io_context>())
      : io{std::move(context)} {}

  void keep(duration ttl = 30s) {
    lease_keeper::duty d{[this](lease_keeper::renewal r) {
      sent.push_back(clock.steady_now() - start);
      asked.push_back(std::move(r));
    }};
    d.on_lost = [this] { ++lost; };
    d.on_renewed = [this](steady_time t) { expiry = t - start; };
    keeper.emplace(io->get_executor(), detail::any_clock::of(clock), ttl, clock.steady_now() + ttl,
                   std::move(d));
    settle();
  }
  void settle() {
    io->restart();
    io->poll();
  }
  void pass(duration d) {
    auto const end = clock.steady_now() + d;
    for (auto next = clock.next_deadline(); next && *next <= end; next = clock.next_deadline()) {
      clock.advance_to_next();
      settle();
    }
    clock.set(end);
    settle();
  }
  void answer(error_code ec, duration expires_in = 30s) {
    auto const handler = std::make_shared<lease_keeper::renewal>(std::move(asked.front()));
    asked.pop_front();
    asio::post(*io, [handler, ec, expires_in] { (*handler)(ec, lease_renewal{expires_in}); });
    settle();
  }

  manual_clock clock;
  steady_time start = clock.steady_now();
  std::unique_ptr<asio::io_context> io;
  std::deque<lease_keeper::renewal> asked;
  std::vector<duration> sent;  ///< when, since the start
  int lost = 0;
  duration expiry{};
  std::optional<lease_keeper> keeper;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(keeper)

BOOST_FIXTURE_TEST_CASE(renews_when_a_third_has_passed, bench) {
  keep();
  pass(10s - 1ns);
  BOOST_TEST(asked.empty());
  pass(1ns);
  BOOST_TEST(asked.size() == 1u);
  pass(1s);
  answer({});
  BOOST_TEST((expiry == 40s));  // counted from before the request, not from its answer
  BOOST_TEST((keeper->deadline() == start + 40s - 1s));
  pass(8s);
  BOOST_TEST(asked.empty());
  pass(1s);
  BOOST_TEST(asked.size() == 1u);
  BOOST_TEST((sent == std::vector<duration>{10s, 20s}));
  BOOST_TEST(lost == 0);
}

BOOST_FIXTURE_TEST_CASE(goes_on_for_as_long_as_it_is_asked_to, bench) {
  keep();
  for (int i = 0; i < 100; ++i) {
    pass(10s);
    answer({});
  }
  BOOST_TEST(lost == 0);
  BOOST_TEST(sent.size() == 100u);
}

BOOST_FIXTURE_TEST_CASE(the_margin_is_a_tenth_and_at_most_a_second, bench) {
  keep(5s);
  BOOST_TEST((keeper->deadline() == start + 4500ms));
  keep(1h);
  BOOST_TEST((keeper->deadline() == start + 1h - 1s));
  keep(1ns);
  BOOST_TEST((keeper->deadline() == start + 1ns));
}

BOOST_FIXTURE_TEST_CASE(the_store_says_that_the_lease_is_lost, bench) {
  keep();
  pass(10s);
  answer(make_error_code(errc::lease_lost));
  BOOST_TEST(lost == 1);
  BOOST_TEST(keeper->lost());
  pass(100s);
  BOOST_TEST(sent.size() == 1u);
  BOOST_TEST(lost == 1);
}

BOOST_FIXTURE_TEST_CASE(an_outage_is_outlived, bench) {
  keep();
  pass(10s);
  for (int i = 0; i < 5; ++i) {
    answer(make_error_code(i % 2 == 0 ? errc::store_unavailable : errc::outcome_unknown));
    pass(3s);
  }
  BOOST_TEST((sent == std::vector<duration>{10s, 13s, 16s, 19s, 22s, 25s}));
  answer({});
  BOOST_TEST(lost == 0);
  BOOST_TEST((expiry == 55s));
}

BOOST_FIXTURE_TEST_CASE(F6_an_outage_longer_than_the_lease_loses_it_for_good, bench) {
  keep();
  pass(10s);
  while (lost == 0) {
    if (!asked.empty()) answer(make_error_code(errc::store_unavailable));
    pass(1s);
  }
  BOOST_TEST((clock.steady_now() == start + 29s));
  auto const asks = sent.size();
  asked.clear();
  pass(1h);  // the engine is back, and nobody asks it
  BOOST_TEST(sent.size() == asks);
  BOOST_TEST(lost == 1);
}

BOOST_FIXTURE_TEST_CASE(F6_a_renewal_that_hangs_does_not_outlive_the_deadline, bench) {
  keep();
  pass(10s);
  BOOST_TEST(asked.size() == 1u);
  pass(19s - 1ns);
  BOOST_TEST(lost == 0);
  pass(1ns);
  BOOST_TEST(lost == 1);
  answer({});  // too late
  pass(1h);
  BOOST_TEST(lost == 1);
  BOOST_TEST(sent.size() == 1u);
  BOOST_TEST((expiry == 0s));
}

BOOST_FIXTURE_TEST_CASE(F52_the_host_was_suspended_while_it_waited, bench) {
  keep();
  clock.advance(1h);
  settle();
  BOOST_TEST(lost == 1);
  BOOST_TEST(sent.empty());
}

BOOST_FIXTURE_TEST_CASE(F52_the_host_was_suspended_while_the_answer_was_on_its_way, bench) {
  keep();
  pass(10s);
  auto const handler = std::make_shared<lease_keeper::renewal>(std::move(asked.front()));
  asio::post(*io, [handler] { (*handler)({}, lease_renewal{30s}); });
  clock.advance(1h);
  settle();
  BOOST_TEST(lost == 1);
  BOOST_TEST(keeper->lost());
}

BOOST_FIXTURE_TEST_CASE(a_lease_shorter_than_asked_for_is_renewed_sooner, bench) {
  keep();
  pass(10s);
  answer({}, 6s);  // the store gave less than was asked for
  BOOST_TEST((keeper->deadline() == start + 10s + 6s - 600ms));
  pass(2s);
  BOOST_TEST((sent == std::vector<duration>{10s, 12s}));
  pass(4s);
  BOOST_TEST(lost == 1);
}

BOOST_FIXTURE_TEST_CASE(a_renewal_that_throws_is_one_that_failed, bench) {
  lease_keeper::duty d{[this](lease_keeper::renewal) {
    sent.push_back(clock.steady_now() - start);
    throw std::bad_alloc{};
  }};
  d.on_lost = [this] { ++lost; };
  keeper.emplace(io->get_executor(), detail::any_clock::of(clock), 30s, start + 30s, std::move(d));
  settle();
  pass(28s);
  BOOST_TEST(sent.size() == 7u);
  BOOST_TEST(lost == 0);
  pass(1s);
  BOOST_TEST(lost == 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(keeper_stops)

BOOST_FIXTURE_TEST_CASE(while_it_waits, bench) {
  keep();
  keeper->stop();
  settle();
  BOOST_TEST(clock.waiters() == 0u);
  pass(1h);
  BOOST_TEST(lost == 0);
  BOOST_TEST(sent.empty());
  BOOST_TEST(io->stopped());
}

BOOST_FIXTURE_TEST_CASE(while_a_renewal_is_under_way, bench) {
  keep();
  pass(10s);
  keeper->stop();
  settle();
  answer({});
  BOOST_TEST((expiry == 0s));
  BOOST_TEST(lost == 0);
}

BOOST_FIXTURE_TEST_CASE(by_its_destructor_and_twice, bench) {
  keep();
  keeper->stop();
  keeper->stop();
  keeper.reset();
  pass(1h);
  BOOST_TEST(lost == 0);
}

BOOST_FIXTURE_TEST_CASE(after_it_has_lost, bench) {
  keep();
  pass(30s);
  BOOST_TEST(lost == 1);
  keeper->stop();
  keeper.reset();
  BOOST_TEST(lost == 1);
}

BOOST_FIXTURE_TEST_CASE(F6_its_own_context_is_destroyed_and_it_says_so, bench) {
  keep();
  pass(10s);
  asked.clear();
  io.reset();
  BOOST_TEST(lost == 1);
  BOOST_TEST(keeper->lost());
  keeper.reset();
}

BOOST_FIXTURE_TEST_CASE(its_context_is_destroyed_after_it_was_stopped, bench) {
  keep();
  keeper->stop();
  io.reset();
  BOOST_TEST(lost == 0);
}

BOOST_AUTO_TEST_CASE(from_another_thread_while_it_loses) {
  for (int round = 0; round < 30; ++round) {
    asio::thread_pool pool{2};
    manual_clock clock;
    auto const told = std::make_shared<std::atomic<int>>(0);
    auto const over = std::make_shared<std::atomic<bool>>(false);
    lease_keeper::duty d{[clock](lease_keeper::renewal r) mutable {
      clock.advance(1s);
      r({}, lease_renewal{2s});
    }};
    d.on_lost = [told, over] {
      BOOST_TEST(!over->load());
      ++*told;
    };
    {
      lease_keeper keeper{pool.get_executor(), detail::any_clock::of(clock), 3s,
                          clock.steady_now() + 3s, std::move(d)};
      if (round % 2 == 0) clock.advance(1s);
      clock.advance(2s);
      keeper.stop();
      over->store(true);
    }
    pool.join();
    BOOST_TEST(told->load() <= 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
