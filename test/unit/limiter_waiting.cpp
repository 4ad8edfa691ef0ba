// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "lease_bed.hpp"
#include "weir/backoff/constant.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/limiter.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <tuple>
#include <utility>

using namespace lease_test;

namespace {

/// One permit, taken, and a poll of a second.
template <class Store>
struct busy : ground {
  explicit busy(Store ground::* which) : of{this->*which, {.limit = 1, .ttl = 30s}, clock} {
    outcome<std::optional<permit>> got;
    of.async_try_acquire("k", got.handler());
    settle();
    taken = std::move(got.value.value());
  }

  struct waiter : outcome<permit> {
    asio::cancellation_signal signal;
  };
  std::shared_ptr<waiter> wait(duration d = limits::span) {
    auto w = std::make_shared<waiter>();
    of.async_acquire("k", {.wait = d},
                     asio::bind_cancellation_slot(w->signal.slot(), w->handler()));
    settle();
    return w;
  }

  limiter<Store, manual_clock> of;
  permit taken;
};

struct busy_here : busy<local_store> {
  busy_here() : busy{&ground::local} {}
};
struct busy_away : busy<remote_store> {
  busy_away() : busy{&ground::remote} {}
};

template <class Test>
void on_both(Test test) {
  {
    busy_here b;
    test(b);
  }
  {
    busy_away b;
    test(b);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(limiter_line)

BOOST_AUTO_TEST_CASE(R1_first_come_first_served) {
  on_both([](auto& b) {
    auto const a = b.wait();
    auto const c = b.wait();
    auto const d = b.wait();
    b.taken.release();
    b.pass(1s);
    BOOST_TEST((a->done() && !c->done() && !d->done()));
    a->value.release();
    b.pass(1s);
    BOOST_TEST((c->done() && !d->done()));
    c->value.release();
    b.pass(1s);
    BOOST_TEST(d->done());
    BOOST_TEST(!d->ec);
    BOOST_TEST(d->value.in_use() == 1u);
  });
}

BOOST_AUTO_TEST_CASE(R1_trying_does_not_overtake) {
  on_both([](auto& b) {
    auto const a = b.wait();
    b.taken.release();  // the waiter may not have been told yet
    outcome<std::optional<permit>> cheeky;
    b.of.async_try_acquire("k", cheeky.handler());
    b.settle();
    BOOST_TEST(!cheeky.value.has_value());
    b.pass(1s);
    BOOST_TEST(a->done());
  });
}

BOOST_AUTO_TEST_CASE(times_out_exactly_when_the_wait_is_over) {
  on_both([](auto& b) {
    auto const a = b.wait(3s);
    b.pass(3s - 1ns);
    BOOST_TEST(a->calls == 0);
    b.pass(1ns);
    BOOST_TEST(a->done());
    BOOST_TEST(a->ec == code(errc::timed_out));
    BOOST_TEST(!a->value);
    auto const b1 = b.wait(3s);  // its place is free again
    b.taken.release();
    b.pass(1s);
    BOOST_TEST(!b1->ec);
    BOOST_TEST(b1->done());
  });
}

BOOST_AUTO_TEST_CASE(a_wait_of_0_asks_once_and_takes_no_place) {
  busy_away b;
  auto const before = b.wire->seen["acquire"];
  auto const a = b.wait(0s);
  BOOST_TEST(a->done());
  BOOST_TEST(a->ec == code(errc::timed_out));
  BOOST_TEST(b.wire->seen["acquire"] == before + 1);
  BOOST_TEST(b.wire->seen["release"] == 0);
  BOOST_TEST(census(*b.wire, "k").waiting == 0u);
  busy_here h;
  BOOST_TEST(h.wait(0s)->ec == code(errc::timed_out));
}

BOOST_AUTO_TEST_CASE(a_wait_of_0_waits_for_the_answer) {
  busy_away b;
  b.taken.release();
  b.settle();
  b.wire->usual.answers = false;
  auto const a = b.wait(0s);
  b.pass(5s);
  BOOST_TEST(a->calls == 0);
  b.wire->deliver();
  b.settle();
  BOOST_TEST(a->done());
  BOOST_TEST(!a->ec);
}

BOOST_FIXTURE_TEST_CASE(F10_a_hint_wakes_one_and_no_time_passes, busy_here) {
  auto const a = wait();
  auto const c = wait();
  taken.release();
  settle();
  BOOST_TEST(a->done());
  BOOST_TEST(!c->done());
  BOOST_TEST(census(local, "k").waiting == 1u);
}

BOOST_AUTO_TEST_CASE(an_expiry_is_not_slept_through) {
  on_both([](auto& b) {
    auto const a = b.wait();
    b.pass(30s - 1ns);
    BOOST_TEST(!a->done());
    b.pass(1ns);
    BOOST_TEST(a->done());
    BOOST_TEST((a->value.expires_at() == b.clock.steady_now() + 30s));
  });
}

BOOST_FIXTURE_TEST_CASE(R6_without_hints_a_free_permit_is_found_within_the_poll, busy_away) {
  auto const a = wait();
  pass(200ms);
  taken.release();
  pass(1s);
  BOOST_TEST(a->done());
}

BOOST_AUTO_TEST_CASE(R6_a_waiter_that_died_holds_up_the_next_no_longer_than_its_ticket) {
  ground b;
  limiter of{b.remote, {.limit = 1, .ttl = 30s}, b.clock};
  outcome<std::optional<permit>> taken;
  of.async_try_acquire("k", taken.handler());
  b.settle();
  auto doomed = std::make_unique<asio::io_context>();
  limiter dying{remote_store{doomed->get_executor(), b.wire}, {.limit = 1, .ttl = 30s}, b.clock};
  dying.async_acquire("k", [](error_code, permit const&) { BOOST_ERROR("it is dead"); });
  doomed->poll();
  outcome<permit> next;
  of.async_acquire("k", next.handler());
  b.settle();
  doomed.reset();
  taken.value.reset();
  b.pass(1s);
  BOOST_TEST(!next.done());
  b.pass(2s);
  BOOST_TEST(next.done());
}

BOOST_FIXTURE_TEST_CASE(R6_a_place_is_kept_while_its_holder_sleeps, busy_away) {
  auto const a = wait();
  for (int i = 0; i < 20; ++i) {
    BOOST_TEST(census(*wire, "k").waiting == 1u);
    pass(1s);
  }
  BOOST_TEST(!a->done());
}

BOOST_FIXTURE_TEST_CASE(the_ticket_does_not_outlive_the_wait, busy_away) {
  auto const a = wait(500ms);
  wire->usual = {.executes = false, .error = code(errc::store_unavailable)};  // nothing can be
                                                                              // cleaned up
  pass(500ms);
  BOOST_TEST(a->ec == code(errc::timed_out));
  BOOST_TEST(census(*wire, "k").waiting == 0u);
}

BOOST_AUTO_TEST_CASE(R7_the_context_of_a_waiters_handler_ends_first) {
  on_both([](auto& b) {
    auto theirs = std::make_unique<asio::io_context>();
    auto const owned = std::make_shared<int>(1);
    b.of.async_acquire("k", asio::bind_executor(*theirs, [owned](error_code, permit const&) {
                         BOOST_ERROR("called");
                       }));
    b.settle();
    auto const behind = b.wait();
    BOOST_TEST(owned.use_count() == 2);
    theirs.reset();
    BOOST_TEST(owned.use_count() == 1);
    b.settle();
    b.taken.release();  // the next one is served, since the place was given up
    b.pass(1s);
    BOOST_TEST((behind->done() && !behind->ec));
  });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(limiter_outages)

BOOST_FIXTURE_TEST_CASE(F45_an_outage_is_waited_out_under_the_same_name, busy_away) {
  auto const first = wait();
  auto const second = wait();
  wire->usual.error = code(errc::outcome_unknown);  // all is done, nothing is heard
  pass(5s);
  BOOST_TEST((!first->done() && !second->done()));
  BOOST_TEST(census(*wire, "k").waiting == 2u);  // a new name each time would be many
  taken.release();
  pass(2s);
  BOOST_TEST(census(*wire, "k").in_use == 1u);
  wire->usual.error = {};
  pass(1s);
  BOOST_TEST(first->done());  // it has what it was given unheard
  BOOST_TEST(!second->done());
  BOOST_TEST(census(*wire, "k").in_use == 1u);
}

BOOST_FIXTURE_TEST_CASE(an_outage_that_lasts_is_what_is_reported, busy_away) {
  wire->usual = {.executes = false, .error = code(errc::store_unavailable)};
  auto const a = wait(3s);
  pass(3s - 1ns);
  BOOST_TEST(a->calls == 0);
  pass(1ns);
  BOOST_TEST(a->ec == code(errc::store_unavailable));
  BOOST_TEST(wire->seen["release"] == 0);  // nothing was ever done
}

BOOST_FIXTURE_TEST_CASE(an_outage_that_is_over_is_not_reported, busy_away) {
  wire->usual = {.executes = false, .error = code(errc::store_unavailable)};
  auto const a = wait(3s);
  pass(1s);
  wire->usual = {};
  pass(2s);
  BOOST_TEST(a->ec == code(errc::timed_out));
}

BOOST_FIXTURE_TEST_CASE(what_cannot_pass_ends_the_wait, busy_away) {
  for (error_code const e : {code(errc::closed), error_code{asio::error::access_denied}}) {
    wire->next.push_back({.executes = false, .error = e});
    auto const a = wait(3s);
    BOOST_TEST(a->done());
    BOOST_TEST(a->ec == e);
  }
}

BOOST_AUTO_TEST_CASE(F87_a_store_that_never_answers_does_not_prolong_the_wait_and_is_named) {
  for (bool const deaf : {false, true}) {
    busy_away b;
    b.wire->usual = {.answers = false, .deaf = deaf};
    auto const a = b.wait(3s);
    b.pass(3s);
    BOOST_TEST(a->done());
    BOOST_TEST(a->ec == code(errc::store_unavailable));
  }
}

BOOST_FIXTURE_TEST_CASE(F87_a_store_that_answers_no_more_is_named, busy_away) {
  auto const a = wait(20s);
  pass(2s);  // the limit is in use
  wire->usual = {.answers = false};
  pass(18s);
  BOOST_TEST(a->ec == code(errc::store_unavailable));
}

BOOST_FIXTURE_TEST_CASE(F87_a_last_question_without_answer_leaves_a_limit_in_use, busy_away) {
  auto const a = wait(3s);
  pass(3s - 1ns);
  wire->usual = {.answers = false};
  pass(1ns);
  BOOST_TEST(a->ec == code(errc::timed_out));
}

BOOST_FIXTURE_TEST_CASE(F2_a_grant_after_the_end_of_the_wait_is_given_back, busy_away) {
  taken.release();
  settle();
  wire->usual = {.answers = false, .deaf = true};
  auto const a = wait(3s);
  pass(3s);
  BOOST_TEST(a->ec == code(errc::store_unavailable));
  wire->usual = {};
  wire->deliver_all();
  BOOST_TEST(census(*wire, "k").in_use == 1u);
  settle();
  BOOST_TEST(census(*wire, "k").in_use == 0u);
  BOOST_TEST(a->calls == 1);
}

BOOST_FIXTURE_TEST_CASE(F12_a_grant_that_is_over_when_it_comes_is_asked_for_again, busy_away) {
  taken.release();
  settle();
  wire->next.push_back({.answers = false});
  auto const a = wait();
  auto const first = wire->fence;
  wire->deliver();
  clock.advance(29500ms);
  settle();
  pass(1s);
  BOOST_REQUIRE(a->done());
  BOOST_TEST(!a->ec);
  BOOST_TEST(a->value.fence() > first + 1);
  BOOST_TEST((a->value.expires_at() > clock.steady_now() + 28s));
  BOOST_TEST(census(*wire, "k").in_use == 1u);
}

BOOST_FIXTURE_TEST_CASE(F12_R7_a_late_grant_that_could_not_be_returned_leaves_no_ticket,
                        busy_away) {
  taken.release();
  settle();
  wire->next.push_back({.answers = false});
  auto const a = wait();
  wire->deliver();
  clock.advance(29500ms);
  treatment const fails{.executes = false, .error = errc::store_unavailable};
  wire->next = {fails, {}, fails};  // the return, the next question, and the return once more
  settle();
  clock.advance(1s);  // and its lease is over
  auto const line =
      command::acquire_permit{.key = "k", .holder = "x", .limit = 1, .ttl = 1h, .patience = {}};
  BOOST_TEST(wire->apply(line)->granted);
  pass(1ms);
  BOOST_TEST_REQUIRE(wire->next.empty());
  BOOST_TEST_REQUIRE(census(*wire, "k").waiting == 1u);
  a->signal.emit(asio::cancellation_type::terminal);
  settle();
  BOOST_TEST(a->ec == asio::error::operation_aborted);
  BOOST_TEST(census(*wire, "k").waiting == 0u);
  BOOST_TEST(census(*wire, "k").in_use == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// Hints all the time, for nothing.
class eager_store : public remote_store {
 public:
  eager_store(executor_type ex, std::shared_ptr<engine> e, int& hints)
      : remote_store{std::move(ex), std::move(e)},
        hints_{&hints} {}

  using remote_store::async_execute;
  template <class Token>
  auto async_execute(command::await_permit const&, Token&& token) const {
    auto* const hints = hints_;
    return detail::async_lift<hint>(
        get_executor(),
        [hints]() -> result<hint> {
          ++*hints;
          return hint{};
        },
        std::forward<Token>(token));
  }

 private:
  int* hints_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(limiter_hints)

BOOST_AUTO_TEST_CASE(a_store_that_hints_in_vain_is_not_asked_in_a_circle) {
  ground b;
  int hints = 0;
  limiter of{eager_store{b.io.get_executor(), b.wire, hints}, {.limit = 1, .ttl = 1h}, b.clock};
  outcome<std::optional<permit>> taken;
  of.async_try_acquire("k", taken.handler());
  b.settle();
  outcome<permit> a;
  of.async_acquire("k", a.handler());
  b.settle();  // ends
  BOOST_TEST(hints < 10);
  b.pass(10s);
  BOOST_TEST(hints < 200);
  taken.value.reset();
  b.pass(1s);
  BOOST_TEST(a.done());
}

namespace {

/// Counts how often it is asked.
struct counted_backoff {
  duration operator()(std::uint32_t, duration, std::uint64_t) const {
    ++*asked;
    return pause;
  }
  int* asked;
  duration pause;
};

}  // namespace

BOOST_AUTO_TEST_CASE(F93_a_key_that_fails_is_asked_five_times_a_pause_at_most_whatever_is_hinted) {
  for (auto const& [pause, time, most] :
       {std::tuple{duration{100ms}, duration{10s}, 506}, {duration{}, duration{20us}, 5}}) {
    ground b;
    int hints = 0;
    int asked = 0;
    limiter of{eager_store{b.io.get_executor(), b.wire, hints},
               {.limit = 1, .ttl = 1h},
               b.clock,
               counted_backoff{&asked, pause}};
    b.wire->usual = {.executes = false, .error = code(errc::disk_full)};
    outcome<permit> a;
    of.async_acquire("k", a.handler());
    b.pass(time);
    BOOST_TEST(a.calls == 0);
    BOOST_TEST(asked <= most);
    b.wire->usual.error = code(errc::store_corrupt);
    b.pass(1s);
    BOOST_TEST(a.ec == code(errc::store_corrupt));
  }
}

BOOST_AUTO_TEST_CASE(the_backoff_is_asked_and_held_within_the_poll) {
  ground b;
  limiter quick{b.remote, {.limit = 1, .ttl = 1h}, b.clock, constant_backoff{100ms}};
  limiter slow{b.remote, {.limit = 1, .ttl = 1h, .poll = 2s}, b.clock, constant_backoff{1h}};
  outcome<std::optional<permit>> taken;
  quick.async_try_acquire("k", taken.handler());
  b.settle();
  for (bool const fast : {true, false}) {
    outcome<permit> a;
    auto const before = b.wire->seen["acquire"];
    if (fast) {
      quick.async_acquire("k", {.wait = 10s}, a.handler());
    } else {
      slow.async_acquire("k", {.wait = 10s}, a.handler());
    }
    b.pass(10s);
    BOOST_TEST(a.ec == code(errc::timed_out));
    BOOST_TEST(b.wire->seen["acquire"] - before == (fast ? 100 : 5));
  }
}

BOOST_AUTO_TEST_CASE(an_uncontended_permit_needs_no_suspension) {
  ground b;
  limiter of{b.local, {.limit = 1}, b.clock};
  outcome<permit> a;
  of.async_acquire("k", a.handler());
  BOOST_TEST(a.calls == 0);
  BOOST_TEST(b.settle() == 1u);  // one posted handler
  BOOST_TEST(a.done());
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// Leaves in the slot what refers to the wait, as Asio's timers do: who emits after the end uses
/// what is gone.
class fussy_clock {
 public:
  explicit fussy_clock(manual_clock c) : clock_{std::move(c)} {}

  [[nodiscard]] steady_time steady_now() const noexcept { return clock_.steady_now(); }

  template <class Token>
  auto async_wait_until(asio::any_io_executor ex, steady_time t, Token&& token) const {
    return asio::async_initiate<Token, void(error_code)>(
        [](auto handler, asio::any_io_executor const& e, steady_time until,
           manual_clock const& clock) {
          auto slot = asio::get_associated_cancellation_slot(handler);
          auto const own = asio::get_associated_executor(handler, e);
          auto wait = std::make_unique<asio::cancellation_signal>();
          if (slot.is_connected()) {
            slot.assign([raw = wait.get()](asio::cancellation_type_t type) { raw->emit(type); });
          }
          auto const inner = wait->slot();
          clock.async_wait_until(
              e, until,
              asio::bind_cancellation_slot(
                  inner, asio::bind_executor(own, [h = std::move(handler),
                                                   w = std::move(wait)](error_code ec) mutable {
                    w.reset();
                    std::move(h)(ec);
                  })));
        },
        token, ex, t, clock_);
  }

 private:
  manual_clock clock_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(R7_nobody_cancels_what_has_ended) {
  ground b;
  limiter of{b.remote, {.limit = 1, .ttl = 30s}, fussy_clock{b.clock}};
  outcome<std::optional<permit>> taken;
  of.async_try_acquire("k", taken.handler());
  b.settle();
  outcome<permit> a;
  of.async_acquire("k", {.wait = 5s}, a.handler());
  b.pass(3s);
  taken.value.reset();
  b.pass(1s);
  BOOST_TEST(a.done());
  BOOST_TEST(!a.ec);
  outcome<permit> late;
  of.async_acquire("k", {.wait = 3s}, late.handler());
  b.wire->usual = {.answers = false};
  b.pass(3s);
  BOOST_TEST(late.ec == code(errc::store_unavailable));
}
