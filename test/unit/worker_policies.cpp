// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// unique → concurrency → rate → run, and what a refusal at each of them leaves behind.

#include "slow_store.hpp"
#include "worker_fixture.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace test {

struct limited : note {};
inline void from_json(nlohmann::json const& j, limited& l) { from_json(j, static_cast<note&>(l)); }
inline void to_json(nlohmann::json& j, limited const& l) {
  to_json(j, static_cast<note const&>(l));
}

/// Its policy function runs between the claim and the first request for a permit.
struct watched : note {
  static inline std::function<void()> between;
};
inline void from_json(nlohmann::json const& j, watched& w) { from_json(j, static_cast<note&>(w)); }
inline void to_json(nlohmann::json& j, watched const& w) {
  to_json(j, static_cast<note const&>(w));
}

/// Its own backoff cannot say how long to wait.
struct undecided : note {};
inline void from_json(nlohmann::json const& j, undecided& l) {
  from_json(j, static_cast<note&>(l));
}
inline void to_json(nlohmann::json& j, undecided const& l) {
  to_json(j, static_cast<note const&>(l));
}

struct metered : note {};
inline void from_json(nlohmann::json const& j, metered& l) { from_json(j, static_cast<note&>(l)); }
inline void to_json(nlohmann::json& j, metered const& l) {
  to_json(j, static_cast<note const&>(l));
}

/// Its policy function runs before it asks for tokens.
struct rationed : note {
  static inline std::function<void()> between;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(rationed, text, number)

struct whole_queue : note {};
inline void from_json(nlohmann::json const& j, whole_queue& l) {
  from_json(j, static_cast<note&>(l));
}
inline void to_json(nlohmann::json& j, whole_queue const& l) {
  to_json(j, static_cast<note const&>(l));
}

struct single : note {};
inline void from_json(nlohmann::json const& j, single& l) { from_json(j, static_cast<note&>(l)); }
inline void to_json(nlohmann::json& j, single const& l) { to_json(j, static_cast<note const&>(l)); }

struct timed : note {};
inline void from_json(nlohmann::json const& j, timed& l) { from_json(j, static_cast<note&>(l)); }
inline void to_json(nlohmann::json& j, timed const& l) { to_json(j, static_cast<note const&>(l)); }

struct all_policies : note {};
inline void from_json(nlohmann::json const& j, all_policies& l) {
  from_json(j, static_cast<note&>(l));
}
inline void to_json(nlohmann::json& j, all_policies const& l) {
  to_json(j, static_cast<note const&>(l));
}

}  // namespace test

template <>
struct weir::job_traits<test::limited> {
  static constexpr std::string_view kind = "limited";
  static constexpr std::uint32_t concurrency = 2;
  static constexpr std::uint32_t max_snoozes = 1000;
};
template <>
struct weir::job_traits<test::watched> {
  static constexpr std::string_view kind = "watched";
  static constexpr std::uint32_t concurrency = 1;
  static std::string concurrency_key(test::watched const&) {
    if (test::watched::between) test::watched::between();
    return "watched";
  }
};
template <>
struct weir::job_traits<test::undecided> {
  struct throwing_backoff {
    duration operator()(std::uint32_t, duration, std::uint64_t) const {
      throw std::runtime_error{"no idea"};
    }
  };
  static constexpr std::string_view kind = "undecided";
  static constexpr std::uint32_t concurrency = 1;
  static constexpr throwing_backoff backoff{};
};
template <>
struct weir::job_traits<test::metered> {
  static constexpr std::string_view kind = "metered";
  static constexpr quota rate = quota::per_second(1).burst(1);
  static std::string rate_key(test::metered const& m) { return m.text; }
};
template <>
struct weir::job_traits<test::rationed> {
  static constexpr std::string_view kind = "rationed";
  static constexpr std::uint32_t concurrency = 1;
  static constexpr quota rate = quota::per_hour(1);
  static std::string rate_key(test::rationed const&) {
    if (test::rationed::between) test::rationed::between();
    return "rationed";
  }
};
template <>
struct weir::job_traits<test::whole_queue> {
  static constexpr std::string_view kind = "whole_queue";
  static constexpr std::string_view queue = "slow lane";
  static constexpr quota rate = quota::per_second(1).burst(1);
  static constexpr limit_scope rate_scope = limit_scope::queue;
};
template <>
struct weir::job_traits<test::single> {
  static constexpr std::string_view kind = "single";
  static constexpr auto unique = unique_strategy::while_executing;
  static std::string unique_key(test::single const& s) { return s.text; }
};
template <>
struct weir::job_traits<test::timed> {
  static constexpr std::string_view kind = "timed";
  static constexpr std::uint32_t max_attempts = 2;
  static constexpr duration timeout = std::chrono::seconds{5};
};
template <>
struct weir::job_traits<test::all_policies> {
  static constexpr std::string_view kind = "all";
  static constexpr auto unique = unique_strategy::until_and_while_executing;
  static std::string unique_key(test::all_policies const& a) { return std::to_string(a.number); }
  static constexpr std::uint32_t concurrency = 3;
  static constexpr quota rate = quota::per_second(10).burst(2);
  static constexpr std::uint32_t max_attempts = 1;
};

using namespace test;
using kind = weir::worker_event_kind;

namespace {

/// Counts handlers that run at once, and keeps the instants of their starts.
struct gauge {
  asio::awaitable<void> run(worker_fixture& f, weir::duration length) {
    starts.push_back(f.clock.steady_now());
    most = std::max(most, ++now);
    co_await f.clock.async_wait_until(f.io.get_executor(), f.clock.steady_now() + length,
                                      asio::use_awaitable);
    --now;
  }

  int now = 0;
  int most = 0;
  std::vector<weir::steady_time> starts;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_policies, worker_fixture)

BOOST_AUTO_TEST_CASE(R1_concurrency_is_never_exceeded_and_refusals_burn_no_attempts) {
  auto w = make_worker({.concurrency = 10});
  gauge g;
  w.handle<limited>([&](limited const&) { return g.run(*this, 5s); });
  for (int i = 0; i != 12; ++i) enqueue(limited{});
  start(w);
  BOOST_TEST(g.now == 2);
  pass(2min);
  BOOST_TEST(g.most == 2);
  BOOST_TEST(g.starts.size() == 12U);
  BOOST_TEST(stats().completed == 12U);
  BOOST_TEST(events[kind::snoozed] > 0);
  BOOST_TEST(std::ranges::count(reasons, "its concurrency limit is reached") ==
             events[kind::snoozed]);
  BOOST_TEST(events[kind::dead_lettered] == 0);
  auto const census = ask(weir::command::inspect_permits{"limited", 10});
  BOOST_TEST(census.in_use == 0U);
}

BOOST_AUTO_TEST_CASE(concurrency_is_shared_by_workers) {
  auto first = make_worker({.concurrency = 4});
  auto second = make_worker({.concurrency = 4});
  gauge g;
  first.handle<limited>([&](limited const&) { return g.run(*this, 5s); });
  second.handle<limited>([&](limited const&) { return g.run(*this, 5s); });
  for (int i = 0; i != 8; ++i) enqueue(limited{});
  first.async_run([](weir::error_code) {});
  start(second);
  pass(1min);
  BOOST_TEST(g.most == 2);
  BOOST_TEST(g.starts.size() == 8U);
}

// Found by simulation: the permit's end was not looked at, and it ended while the handler ran.
BOOST_AUTO_TEST_CASE(F6_a_permit_that_an_earlier_lost_request_took_lasts_as_long_as_its_handler) {
  auto w = make_worker({.lease = 30s});
  gauge g;
  w.handle<watched>([&](watched const&) { return g.run(*this, 1min); });
  auto const id = enqueue("watched", R"({"text":"","number":0})");
  watched::between = [&] {
    auto const claimed = find(id);
    BOOST_TEST_REQUIRE(claimed.has_value());
    auto const holder = to_string(id) + '/' + std::to_string(claimed->fence);
    ask(weir::command::acquire_permit{
        .key = "watched", .holder = holder, .limit = 1, .ttl = 500ms, .patience = {}});
  };
  start(w);
  std::exchange(watched::between, nullptr);
  BOOST_TEST(g.now == 1);
  for (int i = 0; i != 59; ++i) {
    pass(1s);
    BOOST_TEST_REQUIRE(g.now == 1);
    BOOST_TEST_REQUIRE(ask(weir::command::inspect_permits{"watched", 1}).in_use == 1U);
  }
  pass(2s);
  BOOST_TEST(stats().completed == 1U);
}

// As when a store fails over and has forgotten the permit.
BOOST_AUTO_TEST_CASE(F6_a_handler_whose_permit_is_lost_is_cancelled_and_its_job_given_back) {
  auto w = make_worker({.lease = 30s});
  gauge g;
  w.handle<limited>([&](limited const&) { return g.run(*this, 1h); });
  enqueue(limited{});
  start(w);
  BOOST_TEST(g.now == 1);
  auto const held = ask(weir::command::inspect_permits{"limited", 1}).holders.at(0);
  ask(weir::command::release_permit{"limited", held.holder, held.fence});
  pass(10s);
  BOOST_TEST(events[kind::returned] == 1);
  BOOST_TEST(events[kind::dead_lettered] == 0);
}

BOOST_AUTO_TEST_CASE(F55_R3_a_rate_refused_job_reserves_and_runs_at_its_own_instant_in_order) {
  auto w = make_worker({.concurrency = 5, .poll = 1h});
  std::vector<int> order;
  std::vector<weir::duration> at;
  auto const begin = clock.steady_now();
  w.handle<metered>([&](metered const& m) {
    order.push_back(m.number);
    at.push_back(clock.steady_now() - begin);
  });
  for (int i = 0; i != 5; ++i) {
    metered m;
    m.text = "key";
    m.number = i;
    enqueue(m);
  }
  start(w);
  for (int i = 5; i != 8; ++i) {  // fresh arrivals, while the others wait for their instants
    pass(1s);
    metered m;
    m.text = "key";
    m.number = i;
    enqueue(m);
  }
  pass(20s);
  BOOST_TEST(order == (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}), boost::test_tools::per_element());
  for (std::size_t i = 0; i != at.size(); ++i) {
    BOOST_TEST(at[i].count() == weir::duration{std::chrono::seconds{i}}.count());
  }
  BOOST_TEST(events[kind::snoozed] == 7);  // each was refused once, and paid once
  BOOST_TEST(std::ranges::count(reasons, "its rate is used up") == 7);
}

BOOST_AUTO_TEST_CASE(F55_a_worker_that_stops_spends_no_tokens_on_what_it_does_not_start) {
  auto w = make_worker();
  int runs = 0;
  w.handle<rationed>([&](rationed const&) { ++runs; });
  enqueue(rationed{});
  rationed::between = [&] { w.stop(); };
  start(w);
  rationed::between = {};
  BOOST_TEST(ended.has_value());
  BOOST_TEST(events[kind::returned] == 1);
  auto next = make_worker();
  next.handle<rationed>([&](rationed const&) { ++runs; });
  start(next);
  BOOST_TEST(runs == 1);
}

BOOST_AUTO_TEST_CASE(F55_tokens_that_come_while_the_worker_stops_are_kept_for_the_next_claim) {
  using slow = weir_test::slow_store<memory>;
  slow const far{store, clock, 1ms};
  weir::worker<slow, weir::manual_clock, weir::constant_backoff> w{
      far, {}, clock, weir::constant_backoff{1s}, weir::id_source::seeded(7)};
  far.answers<weir::command::take>([&](weir::command::take const&) -> slow::answer {
    w.stop();
    return {1ms};
  });
  int runs = 0;
  w.handle<rationed>([&](rationed const&) { ++runs; });
  enqueue(rationed{});
  start(w);
  pass(1s);
  BOOST_TEST(ended.has_value());
  BOOST_TEST(runs == 0);
  auto next = make_worker();
  next.handle<rationed>([&](rationed const&) { ++runs; });
  start(next);
  pass(1s);
  BOOST_TEST(runs == 1);
}

BOOST_AUTO_TEST_CASE(a_reservation_holds_for_its_attempt_only) {
  auto w = make_worker({.concurrency = 5});
  int calls = 0;
  std::vector<weir::duration> at;
  auto const begin = clock.steady_now();
  w.handle<metered>([&](metered const&) {
    at.push_back(clock.steady_now() - begin);
    if (++calls == 1) throw std::runtime_error{"once"};
  });
  metered m;
  m.text = "key";
  enqueue(m);
  enqueue(m);
  start(w);
  pass(1min);
  BOOST_TEST(calls == 3);
  BOOST_TEST(stats().completed == 2U);
  std::sort(at.begin(), at.end());
  for (std::size_t i = 1; i != at.size(); ++i) BOOST_TEST((at[i] - at[i - 1] >= 1s));
}

BOOST_AUTO_TEST_CASE(R3_a_job_that_is_replayed_pays_again) {
  auto w = make_worker({.concurrency = 5});
  bool fails = true;
  std::vector<weir::duration> at;
  auto const begin = clock.steady_now();
  w.handle<metered>([&](metered const&) {
    at.push_back(clock.steady_now() - begin);
    if (fails) throw weir::give_up{"away"};
  });
  metered m;
  m.text = "key";
  for (int i = 0; i != 5; ++i) enqueue(m);
  start(w);
  pass(10s);
  BOOST_TEST(stats().dead == 5U);
  fails = false;
  for (auto const& job : dead()) ask(weir::command::replay_dead_letter{"default", job.id});
  pass(10s);
  BOOST_TEST(stats().completed == 5U);
  for (std::size_t i = 1; i != at.size(); ++i) BOOST_TEST((at[i] - at[i - 1] >= 1s));
}

// Beyond what may be reserved, too, and no second is lost.
BOOST_AUTO_TEST_CASE(F73_a_long_backlog_of_a_rate_is_refused_now_and_then) {
  auto w = make_worker({.concurrency = 5, .max_reservation = 10s});
  int done = 0;
  w.handle<metered>([&](metered const&) { ++done; });
  metered m;
  m.text = "key";
  for (int i = 0; i != 200; ++i) enqueue(m);
  start(w);
  pass(1min);
  BOOST_TEST(done >= 60);
  BOOST_TEST(events[kind::snoozed] < 2500);
}

BOOST_AUTO_TEST_CASE(a_refusal_of_the_whole_queues_key_snoozes_the_queue_and_not_each_job) {
  auto w = make_worker({.concurrency = 8});
  std::vector<int> order;
  w.handle<whole_queue>([&](whole_queue const& q) { order.push_back(q.number); });
  for (int i = 0; i != 6; ++i) {
    whole_queue q;
    q.number = i;
    enqueue(q);
  }
  start(w);
  pass(20s);
  BOOST_TEST(order == (std::vector<int>{0, 1, 2, 3, 4, 5}), boost::test_tools::per_element());
  BOOST_TEST(events[kind::snoozed] == 0);
  BOOST_TEST(events[kind::queue_snoozed] > 0);
  BOOST_TEST(stats("slow lane").completed == 6U);
}

BOOST_AUTO_TEST_CASE(F16_while_executing_lets_one_run_at_a_time_and_a_failure_frees_it) {
  auto w = make_worker({.concurrency = 5});
  gauge g;
  int calls = 0;
  w.handle<single>([&](single const&) -> asio::awaitable<void> {
    co_await g.run(*this, 2s);
    if (++calls == 1) throw std::runtime_error{"first"};
  });
  for (int i = 0; i != 4; ++i) {
    single s;
    s.text = "same";
    enqueue(s);
  }
  start(w);
  pass(5min);
  BOOST_TEST(g.most == 1);
  BOOST_TEST(calls == 5);
  BOOST_TEST(stats().completed == 4U);
  BOOST_TEST(stats().dead == 0U);
}

BOOST_AUTO_TEST_CASE(while_executing_does_not_hold_back_other_keys) {
  auto w = make_worker({.concurrency = 5});
  gauge g;
  w.handle<single>([&](single const&) { return g.run(*this, 2s); });
  for (auto const* key : {"a", "b", "c"}) {
    single s;
    s.text = key;
    enqueue(s);
  }
  start(w);
  BOOST_TEST(g.now == 3);
}

BOOST_AUTO_TEST_CASE(a_timeout_cancels_the_handler_and_fails_the_attempt) {
  auto w = make_worker();
  int calls = 0;
  w.handle<timed>([&](timed const&) -> asio::awaitable<void> {
    ++calls;
    co_await sleep(1h);
  });
  enqueue(timed{});
  start(w);
  pass(5s);
  BOOST_TEST(events[kind::retried] == 1);
  BOOST_TEST(reasons.back() == "timed out");
  pass(1min);
  BOOST_TEST(calls == 2);
  BOOST_TEST(stats().dead == 1U);
  BOOST_TEST(dead().at(0).reason == "timed out");
}

BOOST_AUTO_TEST_CASE(R6_with_all_policies_on_everything_drains_and_nothing_stays_held) {
  auto w = make_worker({.concurrency = 10});
  gauge g;
  w.handle<all_policies>([&](all_policies const&) { return g.run(*this, 300ms); });
  for (int i = 0; i != 30; ++i) {
    all_policies a;
    a.number = i;
    enqueue(a);
  }
  start(w);
  pass(5min);
  BOOST_TEST(stats().completed == 30U);
  BOOST_TEST(stats().dead == 0U);  // max_attempts is 1: one burnt attempt would show
  BOOST_TEST(g.most <= 3);
  BOOST_TEST(ask(weir::command::inspect_permits{"all", 10}).in_use == 0U);
  // R3: in any window of the starts no more than burst + rate · window.
  for (std::size_t i = 0; i != g.starts.size(); ++i) {
    for (std::size_t j = i; j != g.starts.size(); ++j) {
      auto const window = g.starts[j] - g.starts[i];
      BOOST_TEST((static_cast<long>(j - i + 1) <= 2 + window / 100ms));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_backoff_of_a_job_type_that_throws_costs_neither_attempts_nor_permits) {
  auto w = make_worker();
  int calls = 0;
  w.handle<undecided>([&](undecided const&) {
    if (++calls == 1) throw std::runtime_error{"failed"};
  });
  enqueue(undecided{});
  start(w);
  BOOST_TEST(calls == 1);
  BOOST_TEST(ask(weir::command::inspect_permits{"undecided", 10}).in_use == 0U);
  BOOST_TEST(events[kind::retried] == 1);
  BOOST_TEST(reasons.back() == "failed");
  pass(10s);  // by the worker's own backoff
  BOOST_TEST(calls == 2);
  BOOST_TEST(events[kind::completed] == 1);
}

BOOST_AUTO_TEST_CASE(a_backoff_of_the_worker_that_throws_costs_no_permit) {
  using throwing = weir::job_traits<undecided>::throwing_backoff;
  weir::worker<memory, weir::manual_clock, throwing> w{
      store, {}, clock, throwing{}, weir::id_source::seeded(1)};
  int calls = 0;
  w.handle<limited>([&](limited const&) {
    ++calls;
    throw std::runtime_error{"failed"};
  });
  enqueue(limited{});
  start(w);
  BOOST_TEST(calls == 1);
  BOOST_TEST(ask(weir::command::inspect_permits{"limited", 10}).in_use == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
