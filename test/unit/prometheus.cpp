// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Observed stores and workers, and what Prometheus reads of them.
#include "weir/observe/prometheus.hpp"

#include "unit/metrics_fixture.hpp"
#include "unit/slow_store.hpp"
#include "weir/limiter.hpp"
#include "weir/limits.hpp"
#include "weir/observe/metric_writer.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/series.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/testing/faulty_store.hpp"
#include "weir/uniqueness.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace test;
using weir_test::slow_store;

BOOST_FIXTURE_TEST_SUITE(prometheus, metrics_fixture)

BOOST_AUTO_TEST_CASE(commands_are_counted_by_what_became_of_them) {
  weir::command::find_job const look{.queue = "default", .id = ids.job()};
  for (int i = 0; i != 3; ++i) BOOST_TEST(seen.execute(look).has_value());
  BOOST_TEST(seen.execute(weir::command::find_job{.queue = ""}).has_error());
  BOOST_TEST(seen.execute(weir::command::extend_lease{"q", ids.job(), 1, 1s}).has_error());
  BOOST_TEST(sample("weir_commands_total{command=\"find_job\",result=\"ok\"}") == 3);
  BOOST_TEST(sample("weir_commands_total{command=\"find_job\",result=\"bad_input\"}") == 1);
  BOOST_TEST(sample("weir_commands_total{command=\"extend_lease\",result=\"refused\"}") == 1);
  BOOST_TEST(!has("weir_commands_total{command=\"bury_job\""));
}

BOOST_AUTO_TEST_CASE(what_a_distant_store_takes_is_measured) {
  weir::observed const far{slow_store<memory>{store, clock, 30ms}, metrics, clock};
  int answers = 0;
  for (int i = 0; i != 2; ++i) {
    far.async_execute(weir::command::find_job{.queue = "default", .id = ids.job()},
                      [&](weir::error_code ec, std::optional<weir::job> const&) {
                        BOOST_TEST(!ec);
                        ++answers;
                      });
  }
  pass(1s);
  BOOST_TEST(answers == 2);
  std::string const of = "{command=\"find_job\"";
  BOOST_TEST(sample("weir_command_duration_seconds_sum" + of + "}") == 0.06);
  BOOST_TEST(sample("weir_command_duration_seconds_bucket" + of + ",le=\"0.025\"}") == 0);
  BOOST_TEST(sample("weir_command_duration_seconds_bucket" + of + ",le=\"0.05\"}") == 2);
  BOOST_TEST(sample("weir_command_duration_seconds_bucket" + of + ",le=\"+Inf\"}") == 2);
}

BOOST_AUTO_TEST_CASE(a_sum_of_long_times_only_grows) {
  std::array const bounds{weir::duration{1s}};
  weir::detail::histogram_cells cells{bounds};
  double before = 0;
  for (int i = 0; i != 80; ++i) {  // 29 of them are all that a duration holds
    cells.add(weir::limits::span);
    BOOST_TEST(cells.sum() > before);
    before = cells.sum();
  }
  BOOST_TEST(before == 80 * std::chrono::duration<double>{weir::limits::span}.count());
  weir::detail::metric_writer text{false};
  text.family("weir_x_seconds", "histogram", "x");
  text.sample({}, cells);
  BOOST_TEST(std::move(text).take().find("_sum 25228800000.0\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(failures_and_cancellations_are_told_apart) {
  weir::testing::fault_injector faults;
  weir::observed const away{weir::testing::faulty_store{store, faults, clock}, metrics, clock};
  faults.next(weir::testing::fault::fail_before);
  faults.next(weir::testing::fault::never);
  asio::cancellation_signal given_up;
  std::vector<weir::error_code> told;
  for (int i = 0; i != 2; ++i) {
    away.async_execute(
        weir::command::find_job{.queue = "default", .id = ids.job()},
        asio::bind_cancellation_slot(
            given_up.slot(),
            [&](weir::error_code ec, std::optional<weir::job> const&) { told.push_back(ec); }));
  }
  settle();
  given_up.emit(asio::cancellation_type::terminal);
  settle();
  BOOST_TEST(told.size() == 2U);
  BOOST_TEST(sample("weir_commands_total{command=\"find_job\",result=\"transient\"}") == 1);
  BOOST_TEST(sample("weir_commands_total{command=\"find_job\",result=\"cancelled\"}") == 1);
}

BOOST_AUTO_TEST_CASE(all_primitives_work_on_an_observed_store) {
  weir::limiter const limiter{seen, {.limit = 1}, clock};
  weir::uniqueness const unique{seen, {}, clock};
  weir::rate_limiter const rate{seen, weir::quota::per_hour(2), clock};
  auto const permit = limiter.try_acquire("k");
  BOOST_TEST(permit.value().has_value());
  BOOST_TEST(!limiter.try_acquire("k").value().has_value());
  std::optional<weir::error_code> locked;
  unique.async_try_lock("k", [&](weir::error_code ec, auto const& lock) {
    BOOST_TEST(lock.has_value());
    locked = ec;
  });
  settle();
  BOOST_TEST((locked == weir::error_code{}));
  for (int i = 0; i != 3; ++i) BOOST_TEST(rate.try_take("k").has_value());
  BOOST_TEST(sample("weir_permits_total{result=\"granted\"}") == 1);
  BOOST_TEST(sample("weir_permits_total{result=\"refused\"}") == 1);
  BOOST_TEST(sample("weir_locks_total{result=\"granted\"}") == 1);
  BOOST_TEST(sample("weir_takes_total{result=\"allowed\"}") == 2);
  BOOST_TEST(sample("weir_takes_total{result=\"denied\"}") == 1);

  std::array<std::string_view, 2> const keys{"a", "b"};
  std::array<weir::result<weir::decision>, 2> answers{weir::error_code{}, weir::error_code{}};
  rate.try_take_many(keys, answers);
  BOOST_TEST((answers[0].has_value() && answers[1].has_value()));
  auto bucket = rate.bucket("c");
  BOOST_TEST(bucket.try_take().has_value());
  BOOST_TEST(sample("weir_takes_total{result=\"allowed\"}") == 5);
}

BOOST_AUTO_TEST_CASE(the_handler_keeps_its_executor_and_its_thread) {
  asio::thread_pool pool{1};
  std::promise<std::thread::id> ran;
  seen.async_execute(weir::command::find_job{.queue = "default", .id = ids.job()},
                     asio::bind_executor(pool, [&](weir::error_code, std::optional<weir::job>) {
                       ran.set_value(std::this_thread::get_id());
                     }));
  settle();
  auto const where = ran.get_future().get();
  BOOST_TEST((where != std::this_thread::get_id()));
  pool.join();
}

BOOST_AUTO_TEST_CASE(jobs_are_counted_by_queue_kind_and_event) {
  weir::worker w{seen, weir::worker_options{}, clock, weir::constant_backoff{10s},
                 weir::id_source::seeded(1)};
  w.on_event(metrics.watch_worker([this](weir::worker_event const& e) { ++events[e.kind]; }));
  w.handle<note>([&](note const& n) -> asio::awaitable<void> {
    co_await clock.async_wait_until(io.get_executor(), clock.steady_now() + 20ms,
                                    asio::use_awaitable);
    if (n.number == 2) throw std::runtime_error{"failed"};
    if (n.number == 3) throw weir::give_up{"hopeless"};
  });
  weir::job_queue const queue{seen, ids};
  for (int i = 1; i <= 3; ++i) {
    queue.async_enqueue(note{"", i}, {}, [](weir::error_code, weir::enqueued_job const&) {});
  }
  settle();
  clock.advance(3s);
  w.async_run([](weir::error_code) {});
  settle();
  BOOST_TEST(sample("weir_jobs_running") == 3);
  pass(1s);
  BOOST_TEST(sample("weir_jobs_running") == 0);
  BOOST_TEST(sample(event("default", "started")) == 3);
  BOOST_TEST(sample(event("default", "completed")) == 1);
  BOOST_TEST(sample(event("default", "retried")) == 1);
  BOOST_TEST(sample(event("default", "dead_lettered")) == 1);
  BOOST_TEST(events[weir::worker_event_kind::started] == 3);
  std::string const labels = "{queue=\"default\",kind=\"note\"";
  // By the worker's clock.
  BOOST_TEST(sample("weir_job_duration_seconds_bucket" + labels + ",le=\"0.01\"}") == 0);
  BOOST_TEST(sample("weir_job_duration_seconds_count" + labels + "}") == 3);
  BOOST_TEST(sample("weir_job_age_seconds_bucket" + labels + ",le=\"1.0\"}") == 0);
  BOOST_TEST(sample("weir_job_age_seconds_bucket" + labels + ",le=\"5.0\"}") == 3);
  BOOST_TEST(sample("weir_jobs_enqueued_total{queue=\"default\",outcome=\"enqueued\"}") == 3);
  w.stop();
  settle();
}

BOOST_AUTO_TEST_CASE(a_store_that_is_away_shows_until_it_is_back) {
  weir::testing::fault_injector faults;
  weir::worker w{weir::testing::faulty_store{store, faults, clock}, weir::worker_options{}, clock,
                 weir::constant_backoff{10s}, weir::id_source::seeded(1)};
  w.on_event(metrics.watch_worker());
  for (int i = 0; i != 3; ++i) faults.next(weir::testing::fault::fail_before);
  w.async_run([](weir::error_code) {});
  settle();
  BOOST_TEST(sample("weir_workers_without_store") == 1);
  BOOST_TEST(sample("weir_store_failures_total") >= 1);
  pass(5s);
  BOOST_TEST(sample("weir_workers_without_store") == 0);
  w.stop();
  pass(1s);
}

BOOST_AUTO_TEST_CASE(what_a_worker_still_ran_is_forgotten_with_it) {
  {
    auto const observer = metrics.watch_worker();
    weir::leased_job const job;
    observer({.kind = weir::worker_event_kind::started, .queue = "q", .job = &job});
    observer(
        {.kind = weir::worker_event_kind::store_failed, .error = weir::errc::store_unavailable});
    BOOST_TEST(sample("weir_jobs_running") == 1);
    BOOST_TEST(sample("weir_workers_without_store") == 1);
  }
  BOOST_TEST(sample("weir_jobs_running") == 0);
  BOOST_TEST(sample("weir_workers_without_store") == 0);
}

BOOST_AUTO_TEST_CASE(queues_are_read_together) {
  enqueue("note", one, "mail");
  enqueue("note", one, "mail");
  enqueue("note", one, "reports");
  ask(weir::command::pause_queue{"reports"});
  clock.advance(7s);
  auto const claimed = ask(weir::command::dequeue_jobs{"mail", "me", 0, 1, 1min}).jobs.at(0);
  std::optional<weir::error_code> told;
  metrics.async_collect(seen, [&](weir::error_code ec, weir::hint) { told = ec; });
  settle();
  BOOST_TEST((told == weir::error_code{}));
  BOOST_TEST(sample("weir_queue_jobs{queue=\"mail\",state=\"pending\"}") == 1);
  BOOST_TEST(sample("weir_queue_jobs{queue=\"mail\",state=\"leased\"}") == 1);
  BOOST_TEST(sample("weir_queue_oldest_due_seconds{queue=\"mail\"}") == 7);
  BOOST_TEST(sample("weir_queue_oldest_due_seconds{queue=\"reports\"}") == 0);
  BOOST_TEST(sample("weir_queues_paused{queue=\"reports\"}") == 1);
  BOOST_TEST(sample("weir_queues_left_out") == 0);

  ask(weir::command::bury_job{"mail", claimed.id, claimed.fence, "why"});
  metrics.async_collect(
      slow_store<memory>{store, clock, 4ms}, [&](weir::error_code ec, weir::hint) { told = ec; },
      1);
  pass(1s);
  BOOST_TEST((told == weir::error_code{}));
  BOOST_TEST(sample("weir_queue_jobs{queue=\"mail\",state=\"dead\"}") == 1);
  BOOST_TEST(sample("weir_queues_left_out") == 1);
  BOOST_TEST(!has("weir_queues_paused{queue=\"reports\"}"));
}

BOOST_AUTO_TEST_CASE(a_reading_that_fails_changes_nothing) {
  enqueue("note", one, "mail");
  metrics.async_collect(seen, [](weir::error_code, weir::hint) {});
  settle();
  enqueue("note", one, "mail");
  weir::testing::fault_injector faults;
  faults.next_of<weir::command::read_queue_stats>(weir::testing::fault::fail_before);
  std::optional<weir::error_code> told;
  metrics.async_collect(weir::testing::faulty_store{store, faults, clock},
                        [&](weir::error_code ec, weir::hint) { told = ec; });
  settle();
  BOOST_TEST((told == weir::errc::store_unavailable));
  BOOST_TEST(sample("weir_queue_jobs{queue=\"mail\",state=\"pending\"}") == 1);
}

BOOST_AUTO_TEST_CASE(what_the_observer_has_no_word_for_is_passed_on) {
  weir::command::at<weir::command::find_job> const told{
      .command = {.queue = "default", .id = ids.job()}, .time = {}};
  BOOST_TEST(seen.execute(told).has_value());
  BOOST_TEST(!has("weir_commands_total{command=\"find_job\""));
}

BOOST_AUTO_TEST_CASE(a_store_that_is_back_in_another_run_is_back) {
  auto const observer = metrics.watch_worker();
  weir::leased_job const job;
  observer({.kind = weir::worker_event_kind::store_failed, .error = weir::errc::store_unavailable});
  BOOST_TEST(sample("weir_workers_without_store") == 1);
  observer({.kind = weir::worker_event_kind::started, .queue = "q", .job = &job});
  BOOST_TEST(sample("weir_workers_without_store") == 0);
}

BOOST_AUTO_TEST_CASE(limits_are_noted_by_who_reads_them) {
  metrics.set_limit("gpt", {.in_use = 3, .waiting = 7, .holders = {}});
  BOOST_TEST(sample("weir_limit_permits_in_use{limit=\"gpt\"}") == 3);
  BOOST_TEST(sample("weir_limit_waiting{limit=\"gpt\"}") == 7);
}

BOOST_AUTO_TEST_CASE(labels_cannot_break_the_text) {
  std::string const hostile = "a\"b\\c\nd\xff{},#";
  enqueue("note", one, hostile);
  metrics.async_collect(seen, [](weir::error_code, weir::hint) {});
  settle();
  auto const text = metrics.text();
  BOOST_TEST(text.find("queue=\"a\\\"b\\\\c d\\\\xFF{},#\"") != std::string::npos, text);
  for (char const c : text) {
    BOOST_TEST_REQUIRE((c == '\n' || (c >= ' ' && c <= '~')));
  }
}

BOOST_AUTO_TEST_CASE(openmetrics_differs_where_it_must) {
  BOOST_TEST(seen.execute(weir::command::find_job{.queue = "q", .id = ids.job()}).has_value());
  auto const open = metrics.openmetrics();
  BOOST_TEST(open.ends_with("\n# EOF\n"));
  BOOST_TEST(open.find("# TYPE weir_commands counter\n") != std::string::npos);
  BOOST_TEST(metrics.text().find("# TYPE weir_commands_total counter\n") != std::string::npos);
  BOOST_TEST(metrics.text().find("# EOF") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(options_outside_their_ranges_are_refused) {
  auto const refused = [](weir::metrics_options options) {
    try {
      weir::prometheus_metrics const made{std::move(options)};
      return false;
    } catch (boost::system::system_error const& e) {
      return e.code() == weir::errc::invalid_option;
    }
  };
  BOOST_TEST(refused({.bounds = {}}));
  BOOST_TEST(refused({.bounds = {2s, 1s}}));
  BOOST_TEST(refused({.bounds = {1s, 1s}}));
  BOOST_TEST(refused({.bounds = {0s, 1s}}));
  BOOST_TEST(refused({.most_series = 0}));
  BOOST_TEST(refused({.most_series = 100'001}));
  BOOST_TEST(!refused({}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(prometheus_bounds)

BOOST_AUTO_TEST_CASE(any_number_of_queues_has_few_series) {
  metrics_fixture f{{.most_series = 10}};
  auto const observer = f.metrics.watch_worker();
  weir::leased_job job;
  for (int i = 0; i != 1000; ++i) {
    auto const queue = "tenant " + std::to_string(i);
    job.kind = "kind " + std::to_string(i);
    observer({.kind = weir::worker_event_kind::started, .queue = queue, .job = &job});
    observer({.kind = weir::worker_event_kind::completed, .queue = queue, .job = &job});
    f.enqueue("note", one, queue);
    f.metrics.set_limit(queue, {.in_use = 1, .waiting = 0, .holders = {}});
    weir::new_job made;
    made.id = f.ids.job();
    made.kind = "k";
    BOOST_TEST_REQUIRE(f.seen.execute(weir::command::enqueue_jobs{queue, {&made, 1}}).has_value());
  }
  f.metrics.async_collect(f.seen, [](weir::error_code, weir::hint) {});
  f.settle();
  auto const all = metrics_fixture::samples_of(f.metrics.text());
  BOOST_TEST(all.size() < 1200U);
  BOOST_TEST(all.at("weir_job_events_total{queue=\"other\",kind=\"other\",event=\"started\"}") ==
             990);
  BOOST_TEST(all.at("weir_queue_jobs{queue=\"other\",state=\"pending\"}") == 2 * 990);
  BOOST_TEST(all.at("weir_jobs_enqueued_total{queue=\"other\",outcome=\"enqueued\"}") == 990);
  BOOST_TEST(all.at("weir_limits_left_out_total") == 990);
}

BOOST_AUTO_TEST_CASE(queues_of_a_template_are_one_series) {
  metrics_fixture f{{.queue_label = [](std::string_view queue) {
    return std::string{queue.starts_with("tenant/") ? "tenant/*" : queue};
  }}};
  for (char const* const queue : {"tenant/a", "tenant/b", "mail"}) f.enqueue("note", one, queue);
  f.metrics.async_collect(f.seen, [](weir::error_code, weir::hint) {});
  f.settle();
  BOOST_TEST(f.sample("weir_queue_jobs{queue=\"tenant/*\",state=\"pending\"}") == 2);
  BOOST_TEST(f.sample("weir_queue_jobs{queue=\"mail\",state=\"pending\"}") == 1);
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_counts) {
  metrics_fixture f;
  std::array<std::thread, 4> threads;
  for (auto& t : threads) {
    t = std::thread{[&f] {
      for (int i = 0; i != 2000; ++i) {
        (void)f.seen.execute(weir::command::find_job{.queue = "q", .id = f.ids.job()});
        if (i % 100 == 0) (void)f.metrics.text();
      }
    }};
  }
  for (auto& t : threads) t.join();
  BOOST_TEST(f.sample("weir_commands_total{command=\"find_job\",result=\"ok\"}") == 8000);
}

BOOST_AUTO_TEST_SUITE_END()
