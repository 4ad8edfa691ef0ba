// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// How a worker starts, waits, keeps its leases, and ends.

#include "counting_store.hpp"
#include "unit/slow_store.hpp"
#include "weir/posting.hpp"
#include "weir/testing/faulty_store.hpp"
#include "worker_fixture.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/errc.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace test {

struct ten_seconds : note {};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ten_seconds, text, number)

}  // namespace test

template <>
struct weir::job_traits<test::ten_seconds> {
  static constexpr std::string_view kind = "ten_seconds";
  static constexpr duration timeout = std::chrono::seconds{10};
};

using namespace test;
using weir_test::slow_store;
using kind = weir::worker_event_kind;

namespace {

constexpr auto one = R"({"text":"","number":1})";

/// One wait, until a certain time, finds no memory: it throws, or ends at once and says so. Or each
/// of them fails.
struct short_of_memory {
  [[nodiscard]] weir::steady_time steady_now() const noexcept { return clock.steady_now(); }
  template <class Token>
  auto async_wait_until(asio::any_io_executor ex, weir::steady_time t, Token&& token) const {
    auto initiate = [self = *this](auto handler, asio::any_io_executor on, weir::steady_time at) {
      if (self.always) {
        weir::post_completion(on, std::move(handler), weir::error_code{self.always});
        return;
      }
      if (at != *self.fails_at) {
        self.clock.async_wait_until(on, at, std::move(handler));
        return;
      }
      *self.fails_at = {};
      if (!self.says_so) throw std::bad_alloc{};
      auto const ec = make_error_code(boost::system::errc::not_enough_memory);
      weir::post_completion(on, std::move(handler), ec);
    };
    return asio::async_initiate<Token, void(weir::error_code)>(initiate, token, std::move(ex), t);
  }

  weir::manual_clock clock;
  bool says_so = false;
  weir::error_code always{};
  std::shared_ptr<weir::steady_time> fails_at = std::make_shared<weir::steady_time>();
};

/// A handler that waits until it is told to stop, and counts that.
auto until_stopped(worker_fixture& f, int& stopped) {
  return [&](note const&, weir::job_context&) -> asio::awaitable<void> {
    co_await f.clock.async_wait_until(f.io.get_executor(), f.clock.steady_now() + 1h,
                                      asio::as_tuple(asio::use_awaitable));
    ++stopped;
  };
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(worker_lifecycle, worker_fixture)

BOOST_AUTO_TEST_CASE(R8_bad_options_are_typed_errors_before_anything_is_done) {
  enqueue("note", one);
  auto const run = [&](weir::worker_options o) {
    auto w = make_worker(o);
    ended.reset();
    start(w);
    return ended.value_or(weir::error_code{});
  };
  BOOST_TEST((run({.concurrency = 0}) == weir::errc::invalid_option));
  BOOST_TEST((run({.quantum = 0}) == weir::errc::invalid_option));
  BOOST_TEST((run({.lease = -1s}) == weir::errc::invalid_ttl));
  BOOST_TEST((run({.poll = 0s}) == weir::errc::invalid_wait));
  BOOST_TEST((run({.drain = -1s}) == weir::errc::invalid_wait));
  BOOST_TEST(stats().pending == 1U);
}

BOOST_AUTO_TEST_CASE(a_job_enqueued_into_an_idle_queue_is_noticed_without_time_passing) {
  auto w = make_worker();
  int calls = 0;
  w.handle<note>([&](note const&) { ++calls; });
  start(w);
  enqueue("note", one);
  settle();
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(a_delayed_job_runs_when_it_vests_and_not_before) {
  auto w = make_worker({.poll = 1h});
  int calls = 0;
  w.handle<note>([&](note const&) { ++calls; });
  start(w);
  note const later{"later", 1};
  weir::enqueue_options options;
  options.delay = 90s;
  enqueue(later, options);
  pass(89s);
  BOOST_TEST(calls == 0);
  pass(1s);
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(R5_a_lease_is_renewed_as_long_as_the_handler_runs) {
  auto w = make_worker({.lease = 30s});
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(10min); });
  auto const id = enqueue("note", one);
  start(w);
  pass(9min);
  BOOST_TEST((find(id)->state == weir::job_state::leased));
  BOOST_TEST(find(id)->attempts == 1);
  pass(1min);
  BOOST_TEST((find(id)->state == weir::job_state::completed));
  BOOST_TEST(find(id)->attempts == 1);
}

BOOST_AUTO_TEST_CASE(R5_renewals_go_on_after_they_have_failed_for_want_of_memory) {
  short_of_memory const failing{clock};
  weir::worker<memory, short_of_memory, weir::constant_backoff> w{
      store, {.lease = 30s}, failing, weir::constant_backoff{10s}, weir::id_source::seeded(1)};
  w.on_event([this](weir::worker_event const& e) { ++events[e.kind]; });
  w.handle<note>([this](note const&) -> asio::awaitable<void> { co_await sleep(5min); });
  *failing.fails_at = clock.steady_now() + 10s;  // of the first renewal
  enqueue("note", one);
  start(w);
  BOOST_TEST((*failing.fails_at == weir::steady_time{}));
  pass(6min);
  BOOST_TEST(events[kind::lease_lost] == 0);
  BOOST_TEST(events[kind::completed] == 1);
  cancel();
}

BOOST_AUTO_TEST_CASE(F6_a_handler_whose_lease_is_lost_is_cancelled) {
  auto w = make_worker({.lease = 30s});
  bool cancelled = false;
  w.handle<note>([&](note const&, weir::job_context& c) -> asio::awaitable<void> {
    auto const [ec] = co_await clock.async_wait_until(io.get_executor(), clock.steady_now() + 1h,
                                                      asio::as_tuple(asio::use_awaitable));
    cancelled = ec == asio::error::operation_aborted && c.stop_requested();
  });
  auto const id = enqueue("note", one);
  start(w);
  ask(weir::command::bury_job{"default", id, find(id)->fence, "by somebody else"});
  settle();
  BOOST_TEST(!cancelled);
  pass(11s);  // the next renewal
  BOOST_TEST(cancelled);
  BOOST_TEST(events[kind::lease_lost] == 1);
}

BOOST_AUTO_TEST_CASE(F6_a_handler_whose_job_is_cancelled_is_told_at_once) {
  auto w = make_worker({.lease = 1h});
  int stopped = 0;
  w.handle<note>([&](note const&, weir::job_context& c) -> asio::awaitable<void> {
    auto const [ec] = co_await clock.async_wait_until(io.get_executor(), clock.steady_now() + 1h,
                                                      asio::as_tuple(asio::use_awaitable));
    stopped += ec == asio::error::operation_aborted && c.stop_requested() ? 1 : 0;
  });
  auto const first = enqueue("note", one);
  auto const second = enqueue("note", one);
  auto const kept = enqueue("note", one);
  start(w);
  // The second before anybody could hear of the first.
  for (auto const id : {first, second}) {
    auto const outcome =
        store.execute(weir::command::cancel_job{.queue = "default", .id = id, .running = true});
    BOOST_TEST((outcome.value() == weir::cancel_outcome::cancelled));
  }
  settle();
  BOOST_TEST(stopped == 2);
  BOOST_TEST(events[kind::lease_lost] == 2);
  BOOST_TEST((find(first)->state == weir::job_state::cancelled));
  BOOST_TEST((find(kept)->state == weir::job_state::leased));
  cancel();
}

BOOST_AUTO_TEST_CASE(F6_of_many_cancels_leases_are_renewed_once_a_second) {
  slow_store<memory> const near{store, clock, 0s};
  weir::worker w{near, weir::worker_options{.lease = 1h}, clock, weir::constant_backoff{10s}};
  int stopped = 0;
  w.handle<note>(until_stopped(*this, stopped));
  std::vector<weir::job_id> jobs;
  for (int i = 0; i != 5; ++i) jobs.push_back(enqueue("note", one));
  start(w);
  pass(0s);
  for (std::size_t i = 0; i != 4; ++i) {
    ask(weir::command::cancel_job{"default", jobs[i], true});
    pass(100ms);
    BOOST_TEST(stopped == 1);  // the first one at once
  }
  pass(1s);
  BOOST_TEST(stopped == 4);
  BOOST_TEST(near.of<weir::command::extend_lease>().asked == 9U);  // of five, and of four
  cancel();
}

BOOST_AUTO_TEST_CASE(F6_a_job_that_is_cancelled_before_its_claim_is_answered_hears_of_it) {
  weir::testing::fault_injector faults;
  weir::worker w{weir::testing::faulty_store{store, faults, clock},
                 weir::worker_options{.lease = 1h}, clock, weir::constant_backoff{10s}};
  int stopped = 0;
  w.handle<note>(until_stopped(*this, stopped));
  auto const id = enqueue("note", one);
  faults.next_of<weir::command::dequeue_jobs>(weir::testing::fault::late_answer, 5s);
  start(w);
  pass(1s);
  ask(weir::command::cancel_job{"default", id, true});
  pass(4s);
  BOOST_TEST(stopped == 1);
  cancel();
}

BOOST_AUTO_TEST_CASE(F6_a_hint_of_a_cancel_that_failed_is_asked_for_again) {
  slow_store<memory> const far{store, clock, 1ms};
  int asked = 0;
  far.answers<weir::command::await_cancel>([&](auto const&) -> slow_store<memory>::answer {
    if (++asked != 1) return {};
    return {.after = {}, .error = weir::errc::store_unavailable};
  });
  weir::worker w{far, weir::worker_options{.lease = 30s}, clock, weir::constant_backoff{10s}};
  int stopped = 0;
  w.handle<note>(until_stopped(*this, stopped));
  auto const id = enqueue("note", one);
  start(w);
  pass(11s);  // a renewal
  BOOST_TEST(asked == 2);
  ask(weir::command::cancel_job{"default", id, true});
  pass(10ms);
  BOOST_TEST(stopped == 1);
  cancel();
}

BOOST_AUTO_TEST_CASE(F36_a_job_whose_worker_died_is_visible_again_and_counted) {
  auto const id = enqueue("note", one);
  weir::leased_job const taken =
      ask(weir::command::dequeue_jobs{
              .queue = "default", .holder = "died", .limit = 1, .lease = 30s})
          .jobs.at(0);
  BOOST_TEST(taken.attempt == 1U);
  auto w = make_worker({.poll = 1h});
  std::uint32_t attempt = 0;
  w.handle<note>([&](note const&, weir::job_context& c) { attempt = c.attempt(); });
  start(w);
  BOOST_TEST(attempt == 0U);
  pass(30s);
  BOOST_TEST(attempt == 2U);
  BOOST_TEST((find(id)->state == weir::job_state::completed));
}

BOOST_AUTO_TEST_CASE(what_was_claimed_starts_before_a_store_in_the_same_thread_is_asked_for_more) {
  weir_test::counting_store<memory> const counted{store};
  weir::worker w{counted, weir::worker_options{}, clock, weir::constant_backoff{10s}};
  auto const scans = [&] { return counted.asked_for<weir::command::scan_visible_queues>(); };
  std::vector<std::uint64_t> at_start;
  w.handle<note>([&](note const&) { at_start.push_back(scans()); });
  start(w);
  std::uint64_t before = 0;
  for (int i = 0; i != 3; ++i) {  // the third is claimed without a look
    before = scans();
    enqueue("note", one);
    settle();
  }
  BOOST_TEST_REQUIRE(at_start.size() == 3U);
  BOOST_TEST(at_start.back() == before);
  cancel();
}

BOOST_AUTO_TEST_CASE(R7_cancelling_an_idle_worker_ends_it_at_once) {
  auto w = make_worker();
  start(w);
  BOOST_TEST(!ended.has_value());
  cancel();
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST((*ended == asio::error::operation_aborted));
  settle();
  BOOST_TEST(clock.waiters() == 0U);
}

BOOST_AUTO_TEST_CASE(stop_ends_it_without_error) {
  auto w = make_worker();
  start(w);
  w.stop();
  settle();
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST(!*ended);
}

BOOST_AUTO_TEST_CASE(R7_a_run_is_work_of_its_handlers_executor) {
  asio::io_context own;
  auto w = make_worker();
  int ran = 0;
  w.handle<note>([&](note const&) {
    ++ran;
    w.stop();
  });
  enqueue("note", one);
  w.async_run(asio::bind_executor(own, [this](weir::error_code ec) { ended = ec; }));
  for (int i = 0; i != 100 && !ended; ++i) {
    settle();
    BOOST_TEST_REQUIRE(!own.stopped());
    own.poll();
  }
  BOOST_TEST(ran == 1);
  BOOST_TEST((ended == weir::error_code{}));
}

BOOST_AUTO_TEST_CASE(destroying_it_drains_its_run) {
  int finished = 0;
  {
    auto w = make_worker();
    w.handle<note>([&](note const&) -> asio::awaitable<void> {
      co_await sleep(5s);
      ++finished;
    });
    enqueue("note", one);
    start(w);
  }
  settle();
  enqueue("note", one);
  pass(5s);
  BOOST_TEST(finished == 1);
  BOOST_TEST((ended == weir::error_code{}));
  BOOST_TEST(stats().pending == 1U);
}

BOOST_AUTO_TEST_CASE(F85_a_lease_that_was_lost_to_a_blocked_thread_says_so) {
  auto w = make_worker();
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(1h); });
  enqueue("note", one);
  start(w);
  clock.advance(40s);
  settle();
  BOOST_TEST(events[kind::lease_lost] == 1);
  BOOST_TEST(events[kind::starved] == 1);
  BOOST_TEST(std::ranges::count_if(reasons, [](std::string const& r) {
               return r.starts_with("renewals are 30000 ms late");
             }) == 2);
}

BOOST_AUTO_TEST_CASE(F76_F85_renewals_that_are_late_by_half_a_lease_are_told_before_one_is_lost) {
  weir::duration late{};
  std::uint32_t jobs = 0;
  auto w = make_worker();
  w.on_event([&](weir::worker_event const& e) {
    ++events[e.kind];
    if (e.kind != kind::starved) return;
    late = e.delay;
    jobs = e.count;
    BOOST_TEST(e.reason.find("bookkeeping_on") != e.reason.npos);
  });
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(1h); });
  for (int i = 0; i != 3; ++i) enqueue("note", one);
  start(w);
  clock.advance(24s);  // due after 10 s, of 30
  settle();
  BOOST_TEST(events[kind::starved] == 0);
  clock.advance(26s);
  settle();
  BOOST_TEST(events[kind::starved] == 1);
  BOOST_TEST(events[kind::lease_lost] == 0);
  BOOST_TEST((late == 16s));
  BOOST_TEST(jobs == 3U);
  clock.advance(10s);
  settle();
  BOOST_TEST(events[kind::starved] == 1);
}

BOOST_AUTO_TEST_CASE(F103_draining_lets_running_handlers_finish_and_keeps_their_leases) {
  auto w = make_worker({.concurrency = 2, .lease = 3s, .drain = 60s});
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(40s); });
  for (int i = 0; i != 5; ++i) enqueue("note", one);
  start(w);
  w.stop();
  settle();
  BOOST_TEST(!ended.has_value());
  pass(39s);  // F37: the heartbeats go on
  BOOST_TEST(stats().leased == 2U);
  pass(2s);
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST(stats().completed == 2U);
  BOOST_TEST(stats().pending == 3U);
}

BOOST_AUTO_TEST_CASE(
    F37_what_does_not_finish_in_the_drain_is_cut_short_and_given_back_with_its_attempt) {
  auto w = make_worker({.drain = 5s});
  w.handle<note>([&](note const&) -> asio::awaitable<void> { co_await sleep(1h); });
  auto const id = enqueue("note", one);
  start(w);
  cancel();
  pass(4s);
  BOOST_TEST(!ended.has_value());
  pass(1s);
  BOOST_TEST_REQUIRE(ended.has_value());
  BOOST_TEST((*ended == asio::error::operation_aborted));
  BOOST_TEST((find(id)->state == weir::job_state::pending));
  BOOST_TEST(find(id)->attempts == 0U);
  BOOST_TEST(events[kind::returned] == 1);
}

BOOST_AUTO_TEST_CASE(R7_destroying_the_context_with_everything_pending_is_clean) {
  auto owned = std::make_unique<asio::io_context>();
  memory elsewhere{owned->get_executor(), {}, clock};
  auto const alive = std::make_shared<int>(0);
  {
    worker_type w{elsewhere, {.concurrency = 2}, clock, weir::constant_backoff{1s}};
    w.handle<note>([this, alive, &owned](note const&) -> asio::awaitable<void> {
      auto const kept = alive;
      co_await clock.async_wait_until(owned->get_executor(), clock.steady_now() + 1h,
                                      asio::use_awaitable);
    });
    for (int i = 0; i != 4; ++i) {
      auto const job = new_job("note", one);
      elsewhere.execute(weir::command::enqueue_jobs{"default", {&job, 1}}).value();
    }
    w.async_run(asio::detached);
    while (owned->poll() != 0) {
    }
  }
  BOOST_TEST(alive.use_count() > 2);
  owned.reset();
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(R7_a_store_may_use_the_slot_of_a_hint_after_its_worker_has_ended) {
  {
    // It clears the slot of what was cancelled when that is answered, which is later.
    weir::worker w{weir::testing::faulty_store{store, weir::testing::fault_injector{}, clock},
                   weir::worker_options{}, clock, weir::constant_backoff{10s},
                   weir::id_source::seeded(1)};
    w.async_run([this](weir::error_code ec) { ended = ec; });
    settle();
    w.stop();
  }
  settle();
  BOOST_TEST((ended == weir::error_code{}));
}

BOOST_AUTO_TEST_CASE(F39_a_tenant_with_a_thousand_jobs_does_not_starve_the_others) {
  auto w = make_worker({.concurrency = 4, .quantum = 4});
  std::vector<std::string> order;
  w.handle<note>([&](note const&, weir::job_context& c) { order.emplace_back(c.queue()); });
  for (int i = 0; i != 1000; ++i) enqueue("note", one, "loud");
  pass(1s);
  for (int i = 0; i != 4; ++i) enqueue("note", one, "quiet");
  start(w);
  auto const last_quiet = std::find(order.rbegin(), order.rend(), "quiet").base() - order.begin();
  BOOST_TEST(order.size() == 1004U);
  BOOST_TEST(last_quiet < 40);
}

BOOST_AUTO_TEST_CASE(F38_without_any_hint_a_job_is_found_within_the_poll_interval) {
  // A pause hides the queue from the pointers; a resume by another process would be such a silent
  // change.
  auto w = make_worker({.poll = 5s});
  int calls = 0;
  w.handle<note>([&](note const&) { ++calls; });
  enqueue("note", one);
  ask(weir::command::snooze_queue{"default", 3s});
  start(w);
  BOOST_TEST(calls == 0);
  pass(8s);
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(R6_a_worker_whose_clock_has_no_memory_for_a_wait_looks_again) {
  short_of_memory const failing{clock, true};
  weir::worker<memory, short_of_memory, weir::constant_backoff> w{
      store, {.poll = 5s}, failing, weir::constant_backoff{10s}, weir::id_source::seeded(1)};
  int calls = 0;
  w.handle<note>([&](note const&) { ++calls; });
  enqueue("note", one);
  ask(weir::command::snooze_queue{"default", 3s});  // nobody tells of its end
  *failing.fails_at = clock.steady_now() + 3s;
  start(w);
  BOOST_TEST((*failing.fails_at == weir::steady_time{}));
  pass(8s);
  BOOST_TEST(calls == 1);
  cancel();
}

BOOST_AUTO_TEST_CASE(R6_a_worker_whose_clock_is_broken_does_not_look_again_and_again) {
  short_of_memory const broken{.clock = clock, .always = asio::error::operation_not_supported};
  weir::worker<memory, short_of_memory, weir::constant_backoff> w{
      store, {.poll = 5s}, broken, weir::constant_backoff{10s}, weir::id_source::seeded(1)};
  int calls = 0;
  w.handle<note>([&](note const&) { ++calls; });
  w.async_run(asio::bind_cancellation_slot(stop.slot(), [this](auto ec) { ended = ec; }));
  constexpr int most = 1000;
  int steps = 0;
  while (steps != most && io.poll_one() != 0) ++steps;
  BOOST_TEST(steps < most);
  if (steps == most) return;
  enqueue("note", one);
  settle();
  BOOST_TEST(calls == 1);
  cancel();
  BOOST_TEST(ended.has_value());
}

BOOST_AUTO_TEST_CASE(a_handler_has_its_time_out_although_the_clock_has_no_memory_for_it) {
  short_of_memory const failing{.clock = clock, .says_so = true};
  weir::worker<memory, short_of_memory, weir::constant_backoff> w{
      store, {.lease = 12s}, failing, weir::constant_backoff{1h}, weir::id_source::seeded(1)};
  w.handle<ten_seconds>([&](ten_seconds const&) { return sleep(1h); });
  auto const id = enqueue("ten_seconds", one);
  *failing.fails_at = clock.steady_now() + 10s;
  start(w);
  BOOST_TEST((*failing.fails_at == weir::steady_time{}));
  pass(9s);
  BOOST_TEST((find(id)->state == weir::job_state::leased));
  pass(1s);
  BOOST_TEST((find(id)->state == weir::job_state::pending));
  BOOST_TEST(find(id)->reason == "timed out");
  cancel();
}

BOOST_AUTO_TEST_SUITE_END()
