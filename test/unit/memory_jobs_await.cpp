// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "jobs_bed.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

// Hints that a queue may be due.

namespace {

using namespace test;
namespace asio = boost::asio;

new_job delayed(std::uint64_t n, duration delay) {
  auto j = make_job(n);
  j.delay = delay;
  return j;
}

struct waiting_bed : jobs_bed {
  using jobs_bed::jobs_bed;

  /// Starts a wait; `ended[i]` says how the i-th ended.
  void await(std::uint32_t shard = 0, bool schedules = false) {
    auto const i = ended.size();
    ended.emplace_back();
    signals.emplace_back();
    asio::any_completion_handler<void(error_code, hint)> handler = asio::bind_cancellation_slot(
        signals.back().slot(),
        [this, i, alive = std::make_shared<int>()](error_code ec, hint) { ended[i] = ec; });
    jobs.await(command::await_jobs{shard, schedules}, now, std::move(handler),
               context.get_executor());
  }

  void await_cancel(std::string_view holder) {
    auto const i = ended.size();
    ended.emplace_back();
    jobs.await(
        command::await_cancel{holder}, now, [this, i](error_code ec, hint) { ended[i] = ec; },
        context.get_executor());
  }

  /// How many waits have ended, those that were posted included.
  std::size_t settle() {
    context.restart();
    context.poll();
    std::size_t n = 0;
    for (auto const& e : ended) n += e.has_value() ? 1U : 0U;
    return n;
  }

  asio::io_context context;
  std::deque<asio::cancellation_signal> signals;
  std::vector<std::optional<error_code>> ended;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_jobs_await)

BOOST_AUTO_TEST_CASE(what_is_due_already_completes_a_wait_at_once_but_never_inline) {
  waiting_bed b;
  b.enqueue(1);
  b.await();
  BOOST_TEST(!b.ended[0].has_value());
  BOOST_TEST(b.settle() == 1U);
  BOOST_TEST(!*b.ended[0]);
}

BOOST_AUTO_TEST_CASE(a_holder_is_told_of_a_cancelled_job_that_it_has_a_lease_of_and_nobody_else) {
  waiting_bed b;
  for (std::uint64_t n = 1; n <= 3; ++n) b.enqueue(n);
  b.claim(10s, "holder");
  b.await_cancel("holder");
  b.await_cancel("holder");
  b.await_cancel("another");
  BOOST_TEST((b.cancel(1) == cancel_outcome::running));
  BOOST_TEST((b.cancel(2, true) == cancel_outcome::cancelled));  // nobody has a lease of it
  BOOST_TEST(b.settle() == 0U);
  BOOST_TEST((b.cancel(1, true) == cancel_outcome::cancelled));
  BOOST_TEST(b.settle() == 2U);
  BOOST_TEST(!b.ended[2].has_value());
  b.claim(10s, "another");
  b.now += 10s;  // the lease is over
  BOOST_TEST((b.cancel(3, true) == cancel_outcome::cancelled));
  BOOST_TEST(b.settle() == 2U);
}

BOOST_AUTO_TEST_CASE(who_waits_for_schedules_hears_of_no_job_and_the_other_way_round) {
  waiting_bed b;
  b.await(0, true);
  b.await(0, false);
  b.enqueue(1);
  BOOST_TEST(b.settle() == 1U);
  BOOST_TEST(b.ended[1].has_value());
  b.await(0, false);
  BOOST_TEST(b.settle() == 2U);  // that job is due
  auto const schedule = make_job(2);
  b.get(command::enqueue_jobs{"weir.schedules/queue", {&schedule, 1}});
  BOOST_TEST(b.settle() == 3U);
  BOOST_TEST(b.ended[0].has_value());
}

BOOST_AUTO_TEST_CASE(F38_F43_each_event_wakes_one_waiter_first_come_first_woken) {
  waiting_bed b;
  for (int i = 0; i < 3; ++i) b.await();
  BOOST_TEST(b.settle() == 0U);
  b.enqueue(1);
  BOOST_TEST(b.settle() == 1U);
  BOOST_TEST(b.ended[0].has_value());
  b.enqueue(2);
  BOOST_TEST(b.settle() == 1U, "the queue was due already");
  b.queue = "r";
  b.enqueue(1);
  BOOST_TEST(b.settle() == 2U);
  BOOST_TEST(b.ended[1].has_value());
  b.queue = "s";
  b.enqueue(1);
  BOOST_TEST(b.settle() == 3U);
}

BOOST_AUTO_TEST_CASE(a_first_due_time_that_gets_earlier_is_an_event) {
  waiting_bed b;
  for (int i = 0; i < 3; ++i) b.await();
  b.enqueue(delayed(1, 10s));
  BOOST_TEST(b.settle() == 1U, "who slept for longer must know");
  b.queue = "r";
  b.enqueue(delayed(1, 20s));
  BOOST_TEST(b.settle() == 1U, "it changes nothing for anybody");
  b.enqueue(delayed(2, 5s));
  BOOST_TEST(b.settle() == 2U);
}

BOOST_AUTO_TEST_CASE(F38_whatever_makes_a_job_visible_is_an_event) {
  waiting_bed b;
  std::size_t ended = 0;
  auto const wakes = [&](auto&& what) {
    b.await();
    BOOST_TEST(b.settle() == ended);
    what();
    BOOST_TEST(b.settle() == ++ended);
  };
  b.enqueue(1);
  auto l = b.claim(1h);
  wakes([&] { b.requeue(l); });
  l = b.claim(1h);
  wakes([&] { b.snooze(l); });
  l = b.claim(1h);
  wakes([&] { b.give_back(l); });
  l = b.claim(1h);
  wakes([&] { b.extend(l, 1s); });
  b.bury(l);
  b.get(command::update_queue_pointer{.queue = "q"});
  wakes([&] { b.replay(1); });
  b.get(command::pause_queue{.queue = "q"});
  wakes([&] { b.get(command::resume_queue{.queue = "q"}); });
  b.get(command::snooze_queue{.queue = "q", .delay = 1h});
  wakes([&] { b.get(command::snooze_queue{.queue = "q", .delay = 0s}); });
}

BOOST_AUTO_TEST_CASE(a_held_queue_wakes_nobody) {
  waiting_bed b;
  b.get(command::pause_queue{.queue = "q"});
  b.await();
  b.enqueue(1);
  BOOST_TEST(b.settle() == 0U);
}

BOOST_AUTO_TEST_CASE(R7_a_cancelled_waiter_takes_no_wake_up_with_it) {
  waiting_bed b;
  for (int i = 0; i < 100; ++i) b.await();
  for (std::size_t i = 0; i < 100; ++i) {
    if (i != 40) b.signals[i].emit(asio::cancellation_type::total);
  }
  BOOST_TEST(b.settle() == 99U);
  BOOST_TEST((*b.ended[0] == asio::error::operation_aborted));
  b.enqueue(1);
  BOOST_TEST(b.settle() == 100U);
  BOOST_TEST(!*b.ended[40]);
}

BOOST_AUTO_TEST_CASE(R7_waiting_and_cancelling_again_and_again_keeps_nothing) {
  waiting_bed b;
  for (std::size_t i = 0; i < 2000; ++i) {
    b.await();
    b.signals[i].emit(asio::cancellation_type::terminal);
  }
  BOOST_TEST(b.settle() == 2000U);
}

BOOST_AUTO_TEST_CASE(R7_the_end_of_the_store_ends_the_waits) {
  asio::io_context context;
  std::optional<error_code> ended;
  {
    detail::memory_jobs jobs{memory_options{}};
    jobs.await(
        command::await_jobs{.shard = 0}, time_point{}, [&](error_code ec, hint) { ended = ec; },
        context.get_executor());
    context.poll();
    BOOST_TEST(!ended.has_value());
  }
  context.restart();
  context.run();
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST((*ended == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(R7_the_end_of_the_context_destroys_the_waits) {
  detail::memory_jobs jobs{memory_options{}};
  auto const alive = std::make_shared<int>();
  {
    asio::io_context context;
    for (int i = 0; i < 3; ++i) {
      jobs.await(
          command::await_jobs{.shard = 0}, time_point{}, [alive](error_code, hint) {},
          context.get_executor());
    }
    BOOST_TEST(alive.use_count() == 4);
  }
  BOOST_TEST(alive.use_count() == 1);
  auto const j = make_job(1);
  BOOST_TEST(
      jobs.apply(command::enqueue_jobs{.queue = "q", .jobs = {&j, 1}}, time_point{}).has_value());
}

BOOST_AUTO_TEST_CASE(a_handler_may_come_back_to_the_store) {
  waiting_bed b;
  int woken = 0;
  b.jobs.await(
      command::await_jobs{.shard = 0}, b.now,
      [&](error_code, hint) {
        ++woken;
        b.claim();
        b.await();
      },
      b.context.get_executor());
  b.enqueue(1);
  b.context.poll();
  BOOST_TEST(woken == 1);
  b.enqueue(2);
  BOOST_TEST(b.settle() == 1U);
}

BOOST_AUTO_TEST_CASE(shards_wake_their_own) {
  waiting_bed b{memory_options{.shards = 2}};
  b.await(0);
  b.await(1);
  b.await(2);
  BOOST_TEST(b.settle() == 1U);
  BOOST_TEST((*b.ended[2] == errc::invalid_shard));
  b.enqueue(1);
  BOOST_TEST(b.settle() == 2U);
  auto const home = b.scan().queues.empty() ? 1U : 0U;
  BOOST_TEST(b.ended[home].has_value());
  BOOST_TEST(!b.ended[1 - home].has_value());
}

BOOST_AUTO_TEST_SUITE_END()
