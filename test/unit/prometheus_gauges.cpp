// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The metrics of limits, refusals and schedules, and how the counts of threads become one.
#include "unit/metrics_fixture.hpp"
#include "weir/limiter.hpp"
#include "weir/scheduler.hpp"
#include "weir/schedules.hpp"
#include "weir/testing/faulty_store.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace test;

namespace test {

/// Jobs that a policy refuses.
template <int Policy>
struct refused {
  int number = 0;
};
template <int Policy>
void from_json(nlohmann::json const& j, refused<Policy>& r) {
  r.number = j.get<int>();
}
template <int Policy>
void to_json(nlohmann::json& j, refused<Policy> const& r) {
  j = r.number;
}
using by_concurrency = refused<0>;
using by_rate = refused<1>;
using by_unique = refused<2>;
using by_queue_rate = refused<3>;

}  // namespace test

template <>
struct weir::job_traits<by_concurrency> {
  static constexpr std::string_view kind = "limited";
  static constexpr std::uint32_t concurrency = 1;
};
template <>
struct weir::job_traits<by_rate> {
  static constexpr std::string_view kind = "metered";
  static constexpr auto rate = weir::quota::per_minute(1);
};
template <>
struct weir::job_traits<by_unique> {
  static constexpr std::string_view kind = "single";
  static constexpr auto unique = weir::unique_strategy::while_executing;
  static std::string unique_key(by_unique const&) { return "the one"; }
};
template <>
struct weir::job_traits<refused<4>> {
  static constexpr std::string_view kind = "failing";
};
template <>
struct weir::job_traits<by_queue_rate> {
  static constexpr std::string_view kind = "shared";
  static constexpr std::string_view queue = "calls";
  static constexpr auto rate = weir::quota::per_minute(1);
  static constexpr auto rate_scope = weir::limit_scope::queue;
};

namespace {

/// A worker whose events are counted, and whose handlers take ten seconds.
struct refusals_fixture : metrics_fixture {
  explicit refusals_fixture() {
    w.on_event(metrics.watch_worker([this](weir::worker_event const& e) { ++events[e.kind]; }));
  }
  template <class Job>
  void handle() {
    w.handle<Job>([this](Job const&) -> asio::awaitable<void> {
      co_await clock.async_wait_until(io.get_executor(), clock.steady_now() + 10s,
                                      asio::use_awaitable);
    });
  }
  static std::string by(std::string_view queue, std::string_view kind, std::string_view policy) {
    return "weir_job_refusals_total{queue=\"" + std::string{queue} + "\",kind=\"" +
           std::string{kind} + "\",by=\"" + std::string{policy} + "\"}";
  }

  weir::worker<memory, weir::manual_clock, weir::constant_backoff> w{
      store, weir::worker_options{.concurrency = 5, .poll = 1h}, clock,
      weir::constant_backoff{1min}, weir::id_source::seeded(7)};
};

}  // namespace

namespace {

/// A worker that looks once a second, and whose store gives hints unless they are lost.
struct hints_fixture : metrics_fixture {
  hints_fixture() {
    w.on_event(metrics.watch_worker());
    w.handle<note>([](note const&) {});
  }
  static std::string lag(std::string_view what, std::string_view by) {
    return "weir_hint_lag_seconds_" + std::string{what} + "{by=\"" + std::string{by} + "\"}";
  }

  weir::testing::fault_injector faults;
  weir::worker<weir::testing::faulty_store<memory, weir::manual_clock>, weir::manual_clock,
               weir::constant_backoff>
      w{weir::testing::faulty_store{store, faults, clock}, weir::worker_options{.poll = 1s}, clock,
        weir::constant_backoff{1min}, weir::id_source::seeded(7)};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(prometheus_hints, hints_fixture)

BOOST_AUTO_TEST_CASE(a_job_that_a_hint_tells_of_has_its_lag) {
  start(w);
  pass(10s);
  enqueue("note", one);
  settle();
  BOOST_TEST(sample(lag("count", "hint")) == 1);
  BOOST_TEST(sample(lag("sum", "hint")) == 0);
  BOOST_TEST(sample(lag("count", "poll")) == 0);
  cancel();
}

BOOST_AUTO_TEST_CASE(a_job_whose_hint_is_lost_is_found_by_a_poll) {
  faults.next_of<weir::command::await_jobs>(weir::testing::fault::never);
  start(w);
  pass(200ms);
  enqueue("note", one);
  settle();
  BOOST_TEST(sample(lag("count", "hint")) == 0);
  pass(1s);
  BOOST_TEST(sample(lag("count", "hint")) == 0);
  BOOST_TEST(sample(lag("count", "poll")) == 1);
  auto const waited = sample(lag("sum", "poll"));
  BOOST_TEST((waited > 0 && waited <= 0.8));
  cancel();
}

BOOST_AUTO_TEST_CASE(what_waited_for_something_else_has_no_lag) {
  w.handle<refused<4>>([&](refused<4> const&, weir::job_context& job) {
    if (job.attempt() == 1) throw std::runtime_error{"failed"};
  });
  start(w);
  weir::enqueue_options later;
  later.delay = 300ms;  // it is known when it comes, after a look
  enqueue(note{}, later);
  pass(10s);
  BOOST_TEST(sample(event("default", "completed")) == 1);
  BOOST_TEST(sample(lag("count", "hint")) == 0);
  BOOST_TEST(sample(lag("count", "poll")) == 0);
  enqueue(refused<4>{});
  pass(2min);
  BOOST_TEST(sample(lag("count", "hint")) == 1);  // the first attempt, and no other
  BOOST_TEST(sample(lag("count", "poll")) == 0);
  cancel();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(prometheus_refusals, refusals_fixture)

BOOST_AUTO_TEST_CASE(refusals_are_counted_by_the_policy_that_refuses) {
  handle<by_concurrency>();
  handle<by_rate>();
  handle<by_unique>();
  for (int i = 0; i != 3; ++i) enqueue(by_concurrency{i});
  for (int i = 0; i != 2; ++i) enqueue(by_rate{i});
  for (int i = 0; i != 2; ++i) enqueue(by_unique{i});
  start(w);
  BOOST_TEST(events[weir::worker_event_kind::started] == 3);
  BOOST_TEST(sample(by("default", "limited", "concurrency")) == 2);
  BOOST_TEST(sample(by("default", "metered", "rate")) == 1);
  BOOST_TEST(sample(by("default", "single", "unique")) == 1);
  BOOST_TEST(
      sample("weir_job_events_total{queue=\"default\",kind=\"limited\",event=\"snoozed\"}") == 2);
  w.stop();
  pass(1min);
}

BOOST_AUTO_TEST_CASE(a_queue_that_is_held_back_is_a_refusal) {
  handle<by_queue_rate>();
  for (int i = 0; i != 2; ++i) enqueue(by_queue_rate{i});
  start(w);
  BOOST_TEST(events[weir::worker_event_kind::queue_snoozed] == 1);
  BOOST_TEST(sample(by("calls", "shared", "rate")) == 1);
  w.stop();
  pass(1min);
}

BOOST_AUTO_TEST_CASE(a_handler_that_snoozes_its_job_is_no_refusal) {
  w.handle<note>([](note const&) { throw weir::snooze_for{1h}; });
  enqueue(note{"", 1});
  start(w);
  BOOST_TEST(sample(event("default", "snoozed")) == 1);
  BOOST_TEST(!has("weir_job_refusals_total{"));
  w.stop();
  pass(1min);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(prometheus_gauges, metrics_fixture)

BOOST_AUTO_TEST_CASE(ticks_are_counted_as_fired_missed_and_late) {
  weir::schedules<memory, weir::manual_clock> const schedules{store, clock, ids};
  note const job{"daily", 1};
  weir::error_code failed;
  schedules.async_put(
      {.name = "hourly", .when = weir::every{1h}, .overlap = weir::overlap_policy::allow}, job, {},
      [&](weir::error_code ec, weir::put_outcome) { failed = ec; });
  settle();
  BOOST_TEST_REQUIRE(!failed);
  auto const first = std::chrono::floor<std::chrono::hours>(clock.system_now()) + 1h;
  clock.advance(first - clock.system_now() + 5h + 7s);  // nobody fires meanwhile
  weir::observed const counted{store, metrics, clock};
  weir::scheduler scheduler{counted, weir::worker_options{.poll = 1h}, clock,
                            weir::id_source::seeded(9)};
  std::uint64_t fired = 0;
  scheduler.on_event(
      metrics.watch_scheduler([&](weir::schedule_event const& e) { fired += e.fired; }));
  scheduler.async_run([](weir::error_code) {});
  settle();
  auto const stands = [](std::string_view outcome) {
    return "weir_schedule_ticks_total{schedule=\"hourly\",outcome=\"" + std::string{outcome} +
           "\"}";
  };
  BOOST_TEST(fired == 1U);
  BOOST_TEST(sample(stands("fired")) == 1);
  BOOST_TEST(sample(stands("missed")) == 5);
  BOOST_TEST(sample(stands("skipped")) == 0);
  BOOST_TEST(sample("weir_schedule_lateness_seconds_sum{schedule=\"hourly\"}") == 7);
  BOOST_TEST(sample("weir_schedule_unserved_total{schedule=\"hourly\"}") == 0);
  // Its job came by a relay.
  BOOST_TEST(sample("weir_jobs_enqueued_total{queue=\"default\",outcome=\"enqueued\"}") == 1);
  scheduler.stop();
  pass(1min);
}

BOOST_AUTO_TEST_CASE(schedules_whose_jobs_nobody_claims_show) {
  auto const observer = metrics.watch_scheduler();
  observer({.name = "daily", .skipped = 2, .unserved = true});
  observer({.name = "daily", .fired = 1, .lateness = 20ms});
  BOOST_TEST(sample("weir_schedule_unserved_total{schedule=\"daily\"}") == 1);
  BOOST_TEST(sample("weir_schedule_ticks_total{schedule=\"daily\",outcome=\"skipped\"}") == 2);
  std::string const late = "weir_schedule_lateness_seconds_bucket{schedule=\"daily\",le=";
  BOOST_TEST(sample(late + "\"0.01\"}") == 0);
  BOOST_TEST(sample(late + "\"0.025\"}") == 1);
}

BOOST_AUTO_TEST_CASE(any_number_of_schedules_has_few_series) {
  metrics_fixture f{{.most_series = 10}};
  auto const observer = f.metrics.watch_scheduler();
  for (int i = 0; i != 100; ++i) {
    auto const name = "schedule " + std::to_string(i);
    observer({.name = name, .fired = 1});
  }
  BOOST_TEST(f.sample("weir_schedule_ticks_total{schedule=\"other\",outcome=\"fired\"}") == 90);
}

BOOST_AUTO_TEST_CASE(limits_are_read_by_their_names) {
  weir::limiter const limiter{store, {.limit = 2}, clock};
  auto const first = limiter.try_acquire("gpt").value();
  auto const second = limiter.try_acquire("gpt").value();
  limiter.async_acquire("gpt", [](weir::error_code, weir::permit const&) {});
  settle();
  std::optional<weir::error_code> told;
  auto const collect = [&](auto const& by, std::vector<std::string> names) {
    told.reset();
    metrics.async_collect_limits(by, std::move(names),
                                 [&](weir::error_code ec, weir::hint) { told = ec; });
    settle();
  };
  collect(limiter, {"gpt", "db"});
  BOOST_TEST((told == weir::error_code{}));
  BOOST_TEST(sample("weir_limit_permits_in_use{limit=\"gpt\"}") == 2);
  BOOST_TEST(sample("weir_limit_waiting{limit=\"gpt\"}") == 1);
  BOOST_TEST(sample("weir_limit_permits_in_use{limit=\"db\"}") == 0);

  // One that cannot be read leaves all as they were.
  auto const third = limiter.try_acquire("db").value();
  collect(limiter, {"db", ""});
  BOOST_TEST((told == weir::errc::invalid_key));
  BOOST_TEST(sample("weir_limit_permits_in_use{limit=\"db\"}") == 0);
  weir::testing::fault_injector faults;
  faults.next_of<weir::command::inspect_permits>(weir::testing::fault::fail_before);
  weir::limiter const away{weir::testing::faulty_store{store, faults, clock}, {.limit = 2}, clock};
  collect(away, {"db"});
  BOOST_TEST((told == weir::errc::store_unavailable));
  collect(limiter, {"db"});
  BOOST_TEST(sample("weir_limit_permits_in_use{limit=\"db\"}") == 1);
}

BOOST_AUTO_TEST_CASE(claims_are_counted) {
  for (int i = 0; i != 3; ++i) enqueue("note", one, "mail");
  weir::command::dequeue_jobs const two{"mail", "me", 0, 2, 1min};
  for (int i = 0; i != 3; ++i) BOOST_TEST(seen.execute(two).has_value());
  BOOST_TEST(sample("weir_jobs_claimed_total{queue=\"mail\"}") == 3);
}

BOOST_AUTO_TEST_CASE(of_commands_in_the_calling_thread_one_in_16_is_timed) {
  weir::command::find_job const look{.queue = "default", .id = ids.job()};
  for (int i = 0; i != 33; ++i) BOOST_TEST(seen.execute(look).has_value());
  BOOST_TEST(sample("weir_commands_total{command=\"find_job\",result=\"ok\"}") == 33);
  BOOST_TEST(sample("weir_command_duration_seconds_count{command=\"find_job\"}") == 3);
}

BOOST_AUTO_TEST_CASE(a_duration_falls_into_its_bucket_whatever_was_before) {
  auto const observer = metrics.watch_worker();
  weir::leased_job job;
  for (auto const age : {0s, 700s, 0s, 60s, 61s, 60s, 700s, 5s}) {
    job.age = age;
    observer({.kind = weir::worker_event_kind::started, .queue = "q", .job = &job});
  }
  auto const upto = [&](std::string_view bound) {
    return sample("weir_job_age_seconds_bucket{queue=\"q\",kind=\"\",le=\"" + std::string{bound} +
                  "\"}");
  };
  BOOST_TEST(upto("0.0001") == 2);
  BOOST_TEST(upto("1.0") == 2);
  BOOST_TEST(upto("5.0") == 3);
  BOOST_TEST(upto("60.0") == 5);
  BOOST_TEST(upto("600.0") == 6);
  BOOST_TEST(upto("+Inf") == 8);
  BOOST_TEST(sample("weir_job_age_seconds_sum{queue=\"q\",kind=\"\"}") == 1586);
}

BOOST_AUTO_TEST_CASE(each_run_of_a_worker_counts_for_itself) {
  auto const observer = metrics.watch_worker();
  weir::leased_job const job;
  weir::worker_event const away{.kind = weir::worker_event_kind::store_failed,
                                .error = weir::errc::store_unavailable};
  auto another = std::make_optional(observer);  // as each run copies it
  observer(away);
  (*another)(away);
  (*another)({.kind = weir::worker_event_kind::started, .queue = "q", .job = &job});
  BOOST_TEST(sample("weir_workers_without_store") == 1);
  BOOST_TEST(sample("weir_jobs_running") == 1);
  another.reset();
  BOOST_TEST(sample("weir_workers_without_store") == 1);
  BOOST_TEST(sample("weir_jobs_running") == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(prometheus_threads)

BOOST_AUTO_TEST_CASE(workers_of_many_threads_are_counted_while_they_are_read) {
  weir::prometheus_metrics const metrics;
  constexpr int jobs = 2000;
  std::atomic<int> left{4};
  std::vector<std::thread> threads;
  for (int t = 0; t != 4; ++t) {
    threads.emplace_back([&metrics, &left, t] {
      auto const observer = metrics.watch_worker();
      weir::leased_job job;
      for (int i = 0; i != jobs; ++i) {
        job.kind = "kind " + std::to_string((i + t) % 50);
        observer({.kind = weir::worker_event_kind::started, .queue = "q", .job = &job});
        observer(
            {.kind = weir::worker_event_kind::completed, .queue = "q", .job = &job, .took = {}});
      }
      --left;
    });
  }
  double last = 0;
  auto const completed = [&metrics] {
    double sum = 0;
    for (auto const& [name, value] : metrics_fixture::samples_of(metrics.text())) {
      if (name.ends_with("event=\"completed\"}")) sum += value;
    }
    return sum;
  };
  while (left != 0) {
    auto const now = completed();
    BOOST_TEST(now >= last);
    last = now;
  }
  for (auto& t : threads) t.join();
  BOOST_TEST(completed() == 4 * jobs);
  BOOST_TEST(metrics.text().find("\nweir_jobs_running 0\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_counts_of_a_thread_that_ended_go_on_with_another) {
  weir::detail::metrics_state state{{}};
  std::array<weir::detail::metrics_shard*, 3> used{};
  for (auto& shard : used) {
    std::thread{[&] {
      shard = state.shard();
      shard->takes[1].add();
    }}.join();
  }
  BOOST_TEST(used[0] == used[1]);
  BOOST_TEST(used[1] == used[2]);
  BOOST_TEST(state.shard() == used[0]);
  std::thread{[&] { BOOST_TEST(state.shard() != used[0]); }}.join();
  BOOST_TEST(state.total()->takes[1].value() == 3U);
}

BOOST_AUTO_TEST_CASE(metrics_of_one_thread_are_kept_apart) {
  metrics_fixture a;
  metrics_fixture b;
  auto const observe_a = a.metrics.watch_worker();
  auto const observe_b = b.metrics.watch_worker();
  weir::leased_job const job;
  for (int i = 0; i != 3; ++i) {
    observe_a({.kind = weir::worker_event_kind::completed, .queue = "q", .job = &job});
    observe_b({.kind = weir::worker_event_kind::retried, .queue = "q", .job = &job});
  }
  std::string const of = "weir_job_events_total{queue=\"q\",kind=\"\",event=";
  BOOST_TEST(a.sample(of + "\"completed\"}") == 3);
  BOOST_TEST(a.sample(of + "\"retried\"}") == 0);
  BOOST_TEST(b.sample(of + "\"retried\"}") == 3);
}

BOOST_AUTO_TEST_SUITE_END()
