// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Handlers on an executor of their own, which starts them when it likes, and on several threads.

#include "worker_fixture.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>

using namespace test;
using kind = weir::worker_event_kind;

namespace {

constexpr auto one = R"({"text":"","number":1})";

/// Does something in the midst of the end of its context.
class last_act final : public asio::execution_context::service {
 public:
  using key_type = last_act;
  static inline asio::execution_context::id id;

  last_act(asio::execution_context& owner, std::function<void()> what)
      : service{owner},
        act_{std::move(what)} {}

 private:
  void shutdown() noexcept override { act_(); }

  std::function<void()> act_;
};

/// The handlers' executor is a context that runs only when it is told to.
struct handlers_apart : worker_fixture {
  handlers_apart() = default;

  void start_apart(worker_type& w) {
    w.async_run(asio::bind_executor(
        handlers.get_executor(),
        asio::bind_cancellation_slot(stop.slot(), [this](weir::error_code ec) { ended = ec; })));
    settle();
  }
  void run_handlers() {
    handlers.restart();
    handlers.poll();
    settle();
  }

  /// A claimed job whose handler, a plain function and then a coroutine, waits for its thread.
  template <class Case>
  void with_each_kind(weir::worker_options options, Case run) {
    for (bool const coroutine : {false, true}) {
      BOOST_TEST_CONTEXT("coroutine: " << coroutine) {
        events.clear();
        auto w = make_worker(options);
        int ran = 0;
        if (coroutine) {
          w.handle<note>([&ran](note const&) -> asio::awaitable<void> {
            ++ran;
            co_return;
          });
        } else {
          w.handle<note>([&ran](note const&) { ++ran; });
        }
        auto const id = enqueue("note", one);
        start_apart(w);
        BOOST_TEST(events[kind::started] == 1);
        run(ran, id);
        cancel();
        run_handlers();
        BOOST_TEST(ended.has_value());
        ended.reset();
      }
    }
  }

  asio::io_context handlers;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_handler_run, handlers_apart)

BOOST_AUTO_TEST_CASE(F12_a_handler_that_waited_for_its_thread_does_not_start_without_its_lease) {
  with_each_kind({.lease = 30s}, [&](int const& ran, weir::job_id id) {
    ask(weir::command::cancel_job{"default", id, true});
    pass(11s);  // the next renewal hears of it
    run_handlers();
    run_handlers();
    BOOST_TEST(ran == 0);
    BOOST_TEST(events[kind::lease_lost] == 1);
  });
}

BOOST_AUTO_TEST_CASE(F12_nor_does_one_whose_lease_ended_while_nothing_at_all_could_run) {
  with_each_kind({.lease = 30s}, [&](int const& ran, weir::job_id) {
    clock.set(clock.steady_now() + 31s);  // and the bookkeeping has had no time to see it
    handlers.restart();
    handlers.poll();
    BOOST_TEST(ran == 0);
    settle();
    BOOST_TEST(events[kind::lease_lost] == 1);
    run_handlers();  // it was visible again, and claimed
    BOOST_TEST(ran == 1);
    BOOST_TEST(events[kind::completed] == 1);
  });
}

BOOST_AUTO_TEST_CASE(a_handler_that_waited_longer_than_a_lease_starts_if_it_was_renewed) {
  with_each_kind({.lease = 30s}, [&](int const& ran, weir::job_id id) {
    pass(45s);
    run_handlers();
    BOOST_TEST(ran == 1);
    BOOST_TEST(events[kind::started] == 1);
    BOOST_TEST((find(id)->state == weir::job_state::completed));
    BOOST_TEST(find(id)->attempts == 1U);
  });
}

// Otherwise those that came later, and have their first lease still, would start before it for
// ever.
BOOST_AUTO_TEST_CASE(a_handler_whose_lease_was_renewed_keeps_its_place_before_a_busy_thread) {
  auto w = make_worker({.lease = 30s});
  std::vector<int> order;
  w.handle<note>([&](note const& n) { order.push_back(n.number); });
  enqueue(note{"first", 1});
  start_apart(w);
  pass(45s);
  enqueue(note{"second", 2});
  handlers.restart();
  handlers.poll_one();
  BOOST_TEST(order == std::vector{1}, boost::test_tools::per_element());
  run_handlers();
  cancel();
}

BOOST_AUTO_TEST_CASE(a_worker_that_stops_gives_back_what_waits_for_a_thread) {
  with_each_kind({.drain = 1s}, [&](int const& ran, weir::job_id id) {
    cancel();
    pass(2s);
    run_handlers();
    run_handlers();
    BOOST_TEST(ran == 0);
    BOOST_TEST(events[kind::returned] == 1);
    BOOST_TEST(find(id)->attempts == 0U);
    ask(weir::command::cancel_job{"default", id, true});
  });
}

BOOST_AUTO_TEST_CASE(a_payload_is_decoded_where_the_handlers_run) {
  auto w = make_worker();
  w.handle<note>([](note const&) {});
  enqueue("note", R"({"text":1})");
  start_apart(w);
  BOOST_TEST(events[kind::dead_lettered] == 0);
  run_handlers();
  BOOST_TEST(events[kind::dead_lettered] == 1);
  cancel();
}

BOOST_AUTO_TEST_CASE(R7_handlers_may_outlive_the_execution_context_of_their_worker) {
  for (bool const coroutine : {false, true}) {
    for (bool const begun : {false, true}) {
      if (begun && !coroutine) continue;  // it would block this thread
      BOOST_TEST_CONTEXT("coroutine: " << coroutine << ", begun: " << begun) {
        auto owned = std::make_unique<asio::io_context>();
        auto const alive = std::make_shared<int>(0);
        int ran = 0;
        int told = 0;
        {
          memory const elsewhere{owned->get_executor(), {}, clock};
          worker_type w{elsewhere, {.concurrency = 2}, clock, weir::constant_backoff{1s}};
          if (coroutine) {
            w.handle<note>([&, alive](note const&, weir::job_context& c) -> asio::awaitable<void> {
              ++ran;
              c.progress(1, 2);
              co_await clock.async_wait_until(handlers.get_executor(), clock.steady_now() + 1s,
                                              asio::use_awaitable);
              c.checkpoint("lost");
              auto const [ec] = co_await c.async_checkpoint("lost", asio::as_tuple(asio::deferred));
              told += c.stop_requested() && ec == asio::error::operation_aborted ? 1 : 0;
            });
          } else {
            w.handle<note>([&, alive](note const&) { ++ran; });
          }
          for (int i = 0; i != 4; ++i) {
            auto const job = new_job("note", one);
            elsewhere.execute(weir::command::enqueue_jobs{"default", {&job, 1}}).value();
          }
          w.async_run(asio::bind_executor(handlers.get_executor(), [](weir::error_code) {}));
          while (owned->poll() != 0) {
          }
          if (begun) {
            handlers.restart();
            handlers.poll();
            owned->poll();
          }
        }
        owned.reset();
        clock.advance(2s);
        run_handlers();
        run_handlers();
        BOOST_TEST(ran == (begun ? 2 : 0));
        BOOST_TEST(told == ran);
        BOOST_TEST(alive.use_count() == 1);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(R7_a_worker_whose_handlers_context_has_ended_gives_its_jobs_back_and_ends) {
  for (bool const coroutine : {false, true}) {
    for (bool const begun : {false, true}) {
      if (begun && !coroutine) continue;
      BOOST_TEST_CONTEXT("coroutine: " << coroutine << ", begun: " << begun) {
        auto owned = std::make_unique<asio::io_context>();
        auto w = make_worker();
        if (coroutine) {
          w.handle<note>(
              asio::bind_executor(owned->get_executor(), [&](note const&) -> asio::awaitable<void> {
                co_await clock.async_wait_until(owned->get_executor(), clock.steady_now() + 1h,
                                                asio::use_awaitable);
              }));
        } else {  // the worker outlives this strand's context
          auto around = [](weir::job_context&, auto next) { next(); };
          w.handle<note>(weir::around(
              around, asio::bind_executor(asio::make_strand(*owned), [](note const&) {})));
        }
        auto const first = enqueue("note", one);
        start(w);
        if (begun) owned->poll();
        owned.reset();
        settle();
        BOOST_TEST((find(first)->state == weir::job_state::pending));
        BOOST_TEST(find(first)->attempts == (begun ? 1U : 0U));
        auto const second = enqueue("note", one);
        settle();
        BOOST_TEST(ended.has_value());
        BOOST_TEST((find(second)->state == weir::job_state::pending));
        BOOST_TEST(find(second)->attempts == 0U);
        ended.reset();
        for (auto const& id : {first, second}) ask(weir::command::cancel_job{"default", id});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(R7_who_waits_for_a_checkpoint_goes_with_the_context_of_the_worker) {
  auto owned = std::make_unique<asio::io_context>();
  auto const alive = std::make_shared<int>(0);
  int asked = 0;
  {
    memory const elsewhere{owned->get_executor(), {}, clock};
    worker_type w{elsewhere, {.concurrency = 1}, clock, weir::constant_backoff{1s}};
    w.handle<note>([&, alive](note const&, weir::job_context& c) -> asio::awaitable<void> {
      ++asked;
      co_await c.async_checkpoint("x");
      ++asked;
    });
    auto const job = new_job("note", one);
    elsewhere.execute(weir::command::enqueue_jobs{"default", {&job, 1}}).value();
    w.async_run(asio::bind_executor(handlers.get_executor(), [](weir::error_code) {}));
    owned->poll();
    handlers.poll();
  }
  owned.reset();
  handlers.restart();
  handlers.poll();
  BOOST_TEST(asked == 1);
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(R7_a_handler_is_not_begun_again_and_again_while_its_context_ends) {
  auto owned = std::make_unique<asio::io_context>();
  auto w = make_worker();
  w.handle<note>([](note const&) -> asio::awaitable<void> { co_return; });
  w.async_run(asio::bind_executor(owned->get_executor(), [](weir::error_code) {}));
  constexpr int most = 1000;
  int steps = 0;
  asio::make_service<last_act>(*owned, [&] {
    enqueue("note", one);
    io.restart();
    while (steps != most && io.poll_one() != 0) ++steps;
  });
  settle();
  enqueue("note", one);
  settle();
  owned.reset();
  BOOST_TEST(steps < most);
  settle();
  BOOST_TEST(stats().leased == 0U);
}

BOOST_AUTO_TEST_CASE(R7_a_bound_to_the_wait_for_a_checkpoint_is_of_the_handlers_context) {
  for (bool const stored : {false, true}) {
    BOOST_TEST_CONTEXT("stored: " << stored) {
      auto owned = std::make_unique<asio::io_context>();
      auto const alive = std::make_shared<int>(0);
      std::optional<weir::error_code> told;
      {
        memory const elsewhere{owned->get_executor(), {}, clock};
        worker_type w{elsewhere, {.concurrency = 1}, clock, weir::constant_backoff{1s}};
        w.handle<note>([&, alive](note const&, weir::job_context& c) -> asio::awaitable<void> {
          auto const patience = stored ? weir::duration{1h} : weir::duration{1ms};
          auto const [ec] = co_await c.async_checkpoint(
              "x", asio::cancel_after(patience, asio::as_tuple(asio::use_awaitable)));
          told = ec;
        });
        auto const job = new_job("note", one);
        elsewhere.execute(weir::command::enqueue_jobs{"default", {&job, 1}}).value();
        w.async_run(asio::bind_executor(handlers.get_executor(), [](weir::error_code) {}));
        owned->poll();
        handlers.restart();
        handlers.poll();
        if (stored) owned->poll();
      }
      if (stored) owned.reset();
      // The worker's context, if there is one, does nothing.
      handlers.restart();
      while (!told && handlers.run_one_for(10s) != 0) {
      }
      BOOST_TEST((told == (stored ? weir::error_code{} : asio::error::operation_aborted)));
      owned.reset();
      handlers.restart();
      handlers.poll();
      BOOST_TEST(alive.use_count() == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(R7_a_plain_function_may_wait_for_its_checkpoint_within_coroutines) {
  for (bool const of_the_worker : {false, true}) {
    BOOST_TEST_CONTEXT("middleware of the worker: " << of_the_worker) {
      auto w = make_worker();
      bool told = false;
      bool in_time = false;
      auto plain = [&](note const&, weir::job_context& c) {
        c.async_checkpoint("x", [&](weir::error_code ec) { told = !ec; });
        settle();  // as other threads would, while it waits
        in_time = told;
      };
      if (of_the_worker) {
        w.handle<note>(plain);
        w.around([](weir::job_context&, weir::next_handler next) -> asio::awaitable<void> {
          co_await next();
        });
      } else {
        w.handle<note>(weir::around(
            [](weir::job_context&, auto next) -> asio::awaitable<void> {
              next();
              co_return;
            },
            plain));
      }
      enqueue("note", one);
      start_apart(w);
      run_handlers();
      BOOST_TEST(in_time);
      BOOST_TEST(events[kind::completed] == 1);
      cancel();
      run_handlers();
      events.clear();
    }
  }
}

BOOST_AUTO_TEST_CASE(a_handler_that_is_bound_to_no_executor_is_called_on_the_workers) {
  auto w = make_worker();
  w.handle<note>(asio::bind_executor(asio::any_io_executor{}, [](note const&) {}));
  enqueue("note", one);
  start(w);
  BOOST_TEST(stats().completed == 1U);
}

BOOST_AUTO_TEST_CASE(R7_what_is_kept_for_coroutines_goes_with_their_context) {
  auto owned = std::make_unique<asio::io_context>();
  auto const alive = std::make_shared<int>(0);
  auto w = make_worker();
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_return; });
  enqueue("note", one);
  w.async_run(asio::bind_executor(owned->get_executor(), [alive](weir::error_code) {}));
  settle();
  owned->poll();
  settle();
  BOOST_TEST(stats().completed == 1U);
  owned.reset();
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(F42_a_handler_that_is_dropped_by_what_it_waits_for_has_failed) {
  auto w = make_worker();
  w.handle<note>([](note const&) -> asio::awaitable<void> {
    auto drop = [](auto) {};
    co_await asio::async_initiate<asio::use_awaitable_t<> const, void()>(drop, asio::use_awaitable);
  });
  auto const id = enqueue("note", one);
  start(w);
  BOOST_TEST((find(id)->state == weir::job_state::pending));
  BOOST_TEST(find(id)->attempts == 1U);
  BOOST_TEST(find(id)->reason == "destroyed before it ended");
  cancel();
  BOOST_TEST(ended.has_value());
}

BOOST_AUTO_TEST_SUITE_END()

// The interleavings are the threads' own: this is for the thread sanitizer, and for what is
// counted.
BOOST_AUTO_TEST_CASE(handlers_of_both_kinds_on_several_threads_run_each_job_once) {
  constexpr int jobs = 2000;
  asio::io_context io;
  asio::thread_pool pool{4};
  weir::memory_store store{io.get_executor()};
  auto ids = weir::id_source::seeded(1);
  for (int i = 0; i != jobs; ++i) {
    auto const payload = R"({"text":"","number":)" + std::to_string(i) + "}";
    weir::new_job job;
    job.id = ids.job();
    job.kind = "note";
    job.payload = payload;
    auto const queue = i % 2 == 0 ? "plain" : "coroutine";
    BOOST_TEST_REQUIRE(store.execute(weir::command::enqueue_jobs{queue, {&job, 1}}).has_value());
  }
  std::array<std::atomic<int>, jobs> runs{};
  std::atomic<int> completed{0};
  using worker = weir::worker<weir::memory_store>;
  std::array<worker, 2> workers{worker{store, {.concurrency = 32}},
                                worker{store, {.concurrency = 32}}};
  workers[0].handle<note>([&](note const& n) { ++runs.at(static_cast<std::size_t>(n.number)); });
  workers[1].handle<note>([&](note const& n) -> asio::awaitable<void> {
    co_await asio::post(asio::use_awaitable);
    ++runs.at(static_cast<std::size_t>(n.number));
  });
  std::atomic<int> ended{0};
  for (auto& w : workers) {
    w.on_event([&](weir::worker_event const& e) {
      if (e.kind == kind::completed && ++completed == jobs) {
        for (auto& other : workers) other.stop();
      }
    });
    w.async_run(asio::bind_executor(pool.get_executor(), [&](weir::error_code) { ++ended; }));
  }
  std::thread second{[&] { io.run(); }};
  io.run();
  second.join();
  pool.join();
  BOOST_TEST(ended == 2);
  BOOST_TEST(completed == jobs);
  for (auto const& n : runs) BOOST_TEST_REQUIRE(n == 1);
}
