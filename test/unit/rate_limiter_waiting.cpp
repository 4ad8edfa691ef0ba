// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/clock/manual.hpp"
#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/error.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
namespace asio = boost::asio;
namespace command = weir::command;
using weir::decision;
using weir::error_code;
using weir::quota;

namespace {

constexpr auto one = quota::per_second(1);
constexpr asio::cancellation_type kinds[] = {asio::cancellation_type::terminal,
                                             asio::cancellation_type::partial,
                                             asio::cancellation_type::total};

using memory = weir::basic_memory_store<weir::manual_clock>;

// A store beyond a network: it executes a command when the test lets it, and knows nothing of
// cancellation.
class distant_store {
 public:
  using executor_type = asio::any_io_executor;

  explicit distant_store(memory store)
      : store_{std::move(store)},
        mail_{std::make_shared<std::list<std::function<void()>>>()} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }

  template <class C, class Token>
    requires weir::executes_now<memory const, C>
  auto async_execute(C const& c, Token&& token) const {
    using result = typename C::result;
    return asio::async_initiate<Token, void(error_code, result)>(
        [](asio::any_completion_handler<void(error_code, result)> handler, distant_store self,
           C what) {
          auto shared = std::make_shared<decltype(handler)>(std::move(handler));
          auto const store = self.store_;
          self.mail_->push_back([store, shared, what] {
            auto answer = store.execute(what);
            auto complete = [shared, answer] {
              if (answer.has_value()) {
                std::move (*shared)(error_code{}, answer.value());
              } else {
                std::move (*shared)(answer.error(), result{});
              }
            };
            asio::post(store.get_executor(), complete);
          });
        },
        token, *this, c);
  }

  [[nodiscard]] std::size_t waiting() const { return mail_->size(); }
  void deliver() const {
    auto const next = std::move(mail_->front());
    mail_->pop_front();
    next();
  }
  void lose_all() const { mail_->clear(); }

 private:
  memory store_;
  std::shared_ptr<std::list<std::function<void()>>> mail_;
};
static_assert(weir::bucket_store<distant_store>);
static_assert(!weir::executes_now<distant_store, command::take>);

struct outcome {
  bool done = false;
  error_code ec;
  decision answer;

  auto handler() {
    return [this](error_code e, decision const& d) {
      BOOST_TEST(!done);
      done = true;
      ec = e;
      answer = d;
    };
  }
};

struct bed {
  asio::io_context io;
  weir::manual_clock clock;
  memory store{io.get_executor(), {}, clock};
  weir::rate_limiter<memory, weir::manual_clock> limiter{store, one, clock};
  distant_store far{store};
  weir::rate_limiter<distant_store, weir::manual_clock> far_limiter{far, one, clock};

  void run() {
    io.restart();
    io.poll();
  }
  void advance(weir::duration d) {
    clock.advance(d);
    run();
  }
  // How long the next one would have to wait.
  weir::duration queue() const { return limiter.peek("k", {.cost = 1, .wait = 1h}).value().wait; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rate_limiter_waiting)

BOOST_AUTO_TEST_CASE(a_grant_comes_at_its_instant) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  outcome o;
  b.limiter.async_take("k", {.cost = 1, .wait = 2s}, o.handler());
  b.advance(1s - 1ns);
  BOOST_TEST(!o.done);
  b.advance(1ns);
  BOOST_TEST(o.done);
  BOOST_TEST(!o.ec);
  BOOST_TEST(o.answer.allowed);
  BOOST_TEST((o.answer.wait == 1s));
  BOOST_TEST((b.queue() == 1s));
}

BOOST_AUTO_TEST_CASE(who_waits_is_served_in_order_and_not_overtaken) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  std::vector<outcome> waiters(5);
  for (auto& w : waiters) b.limiter.async_take("k", {.cost = 1, .wait = 1h}, w.handler());
  for (std::size_t i = 0; i != waiters.size(); ++i) {
    b.run();
    BOOST_TEST(!waiters[i].done);
    BOOST_TEST(!b.limiter.try_take("k").value().allowed);
    b.advance(1s);
    BOOST_TEST(waiters[i].done);
  }
}

BOOST_AUTO_TEST_CASE(a_wait_longer_than_allowed_is_refused_at_once_with_no_change) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  outcome o;
  b.limiter.async_take("k", {.cost = 1, .wait = 999ms}, o.handler());
  BOOST_TEST(!o.done);
  b.run();
  BOOST_TEST(o.done);
  BOOST_TEST(!o.ec);
  BOOST_TEST(!o.answer.allowed);
  BOOST_TEST((o.answer.retry_after == 1ms));
  BOOST_TEST((b.queue() == 1s));
  BOOST_TEST(b.clock.waiters() == 0U);
}

BOOST_AUTO_TEST_CASE(F23_a_cancelled_waiter_gives_everything_back) {
  for (auto const kind : kinds) {
    bed b;
    BOOST_TEST(b.limiter.try_take("k").value().allowed);
    outcome o;
    asio::cancellation_signal signal;
    b.limiter.async_take("k", {.cost = 1, .wait = 1h},
                         asio::bind_cancellation_slot(signal.slot(), o.handler()));
    b.advance(500ms);
    BOOST_TEST((b.queue() == 1500ms));
    signal.emit(kind);
    b.run();
    BOOST_TEST(o.done);
    BOOST_TEST((o.ec == asio::error::operation_aborted));
    BOOST_TEST(!o.answer.allowed);
    BOOST_TEST((b.queue() == 500ms));
    b.advance(1h);
    BOOST_TEST(b.clock.waiters() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_cancellation_before_the_first_turn_of_the_executor_counts) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  outcome o;
  asio::cancellation_signal signal;
  b.limiter.async_take("k", {.cost = 1, .wait = 1h},
                       asio::bind_cancellation_slot(signal.slot(), o.handler()));
  signal.emit(asio::cancellation_type::total);
  b.run();
  BOOST_TEST(o.done);
  BOOST_TEST((o.ec == asio::error::operation_aborted));
  BOOST_TEST((b.queue() == 1s));
}

BOOST_AUTO_TEST_CASE(what_was_taken_after_a_cancelled_waiter_keeps_its_place) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  outcome first;
  outcome second;
  asio::cancellation_signal signal;
  b.limiter.async_take("k", {.cost = 1, .wait = 1h},
                       asio::bind_cancellation_slot(signal.slot(), first.handler()));
  b.limiter.async_take("k", {.cost = 1, .wait = 1h}, second.handler());
  b.run();
  signal.emit(asio::cancellation_type::total);
  b.run();
  BOOST_TEST(first.done);
  BOOST_TEST((b.queue() == 3s));  // nothing could go back
  b.advance(2s - 1ns);
  BOOST_TEST(!second.done);
  b.advance(1ns);
  BOOST_TEST(second.done);
}

BOOST_AUTO_TEST_CASE(R7_a_destroyed_context_gives_everything_back) {
  auto io = std::make_unique<asio::io_context>();
  weir::manual_clock clock;
  memory const store{io->get_executor(), {}, clock};
  weir::rate_limiter const limiter{store, one, clock};
  BOOST_TEST(limiter.try_take("k").value().allowed);
  auto body = [&]() -> asio::awaitable<void> {
    co_await limiter.async_take("k", {.cost = 1, .wait = 1h});
    BOOST_ERROR("went on");
  };
  asio::co_spawn(*io, body, asio::detached);
  io->poll();
  auto const queue = [&] { return limiter.peek("k", {.cost = 1, .wait = 1h}).value().wait; };
  BOOST_TEST((queue() == 2s));
  io.reset();
  BOOST_TEST((queue() == 1s));
}

BOOST_AUTO_TEST_CASE(R7_so_does_a_destroyed_context_of_the_handler) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  {
    asio::io_context theirs;
    b.limiter.async_take(
        "k", {.cost = 1, .wait = 1h},
        asio::bind_executor(theirs, [](error_code, decision const&) { BOOST_ERROR("called"); }));
    b.run();
    BOOST_TEST((b.queue() == 2s));
  }
  b.run();
  BOOST_TEST((b.queue() == 1s));
  b.advance(1h);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(rate_limiter_on_a_distant_store)

BOOST_AUTO_TEST_CASE(one_round_trip_and_then_a_wait_from_the_reply_on) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  outcome o;
  b.far_limiter.async_take("k", {.cost = 1, .wait = 2s}, o.handler());
  b.run();
  BOOST_TEST(b.far.waiting() == 1U);
  b.advance(400ms);
  b.far.deliver();
  b.run();
  BOOST_TEST(!o.done);
  b.advance(600ms - 1ns);
  BOOST_TEST(!o.done);
  b.advance(1ns);
  BOOST_TEST(o.done);
  BOOST_TEST((o.answer.wait == 600ms));
  BOOST_TEST(b.far.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(a_grant_without_wait_and_a_refusal_come_at_once) {
  bed b;
  outcome granted;
  outcome refused;
  b.far_limiter.async_take("k", {.cost = 1, .wait = 1s}, granted.handler());
  b.run();
  b.far.deliver();
  b.run();
  BOOST_TEST(granted.answer.allowed);
  b.far_limiter.async_take("k", {.cost = 1}, refused.handler());
  b.run();
  b.far.deliver();
  b.run();
  BOOST_TEST(refused.done);
  BOOST_TEST(!refused.answer.allowed);
  // Delivered, so nothing goes back.
  BOOST_TEST(b.far.waiting() == 0U);
  BOOST_TEST((b.queue() == 1s));
}

BOOST_AUTO_TEST_CASE(F23_a_waiter_that_is_cancelled_while_it_waits_starts_its_refund) {
  bed b;
  BOOST_TEST(b.limiter.try_take("k").value().allowed);
  outcome o;
  asio::cancellation_signal signal;
  b.far_limiter.async_take("k", {.cost = 1, .wait = 2s},
                           asio::bind_cancellation_slot(signal.slot(), o.handler()));
  b.run();
  b.far.deliver();
  b.run();
  BOOST_TEST((b.queue() == 2s));
  signal.emit(asio::cancellation_type::partial);
  b.run();
  BOOST_TEST((o.ec == asio::error::operation_aborted));
  BOOST_TEST_REQUIRE(b.far.waiting() == 1U);
  b.far.deliver();
  b.run();
  BOOST_TEST((b.queue() == 1s));
}

BOOST_AUTO_TEST_CASE(F23_a_grant_that_comes_after_the_cancellation_goes_back) {
  for (bool const late : {false, true}) {
    bed b;
    if (late) BOOST_TEST(b.limiter.try_take("k").value().allowed);
    auto const before = b.queue();
    outcome o;
    asio::cancellation_signal signal;
    b.far_limiter.async_take("k", {.cost = 1, .wait = 2s},
                             asio::bind_cancellation_slot(signal.slot(), o.handler()));
    b.run();
    signal.emit(asio::cancellation_type::total);
    b.run();
    BOOST_TEST((o.ec == asio::error::operation_aborted));  // at once
    b.far.deliver();
    b.run();
    BOOST_TEST((b.queue() == before + 1s));
    b.advance(500ms);  // what has refilled of it meanwhile is no reason to keep the rest
    BOOST_TEST_REQUIRE(b.far.waiting() == 1U);
    b.far.deliver();
    b.run();
    BOOST_TEST((b.queue() == (late ? 500ms : 0ms)));
  }
}

BOOST_AUTO_TEST_CASE(an_error_of_the_store_is_reported_and_refunds_nothing) {
  bed b;
  outcome o;
  b.far_limiter.async_take("k", {.cost = 2, .wait = 2s}, o.handler());
  b.run();
  b.far.deliver();
  b.run();
  BOOST_TEST((o.ec == weir::errc::cost_exceeds_capacity));
  BOOST_TEST(b.far.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(R7_contexts_destroyed_at_every_point_leak_nothing) {
  for (int point = 0; point != 4; ++point) {
    auto b = std::make_unique<bed>();
    BOOST_TEST(b->limiter.try_take("k").value().allowed);
    auto& limiter = b->far_limiter;
    auto body = [&]() -> asio::awaitable<void> {
      co_await limiter.async_take("k", {.cost = 1, .wait = 1h});
    };
    asio::co_spawn(b->io, body, asio::detached);
    if (point > 0) b->run();
    if (point > 1) b->far.deliver();
    if (point > 2) b->run();
    auto const far = b->far;
    far.lose_all();
    b.reset();
    far.lose_all();  // a refund may have left before the context was gone
  }
}

BOOST_AUTO_TEST_CASE(one_command_operations_work_there_too) {
  bed b;
  auto taken = b.far_limiter.async_try_take("k", asio::use_future);
  b.run();
  b.far.deliver();
  b.run();
  auto d = taken.get();
  BOOST_TEST(d.allowed);
  auto refunded = b.far_limiter.async_refund("k", d, asio::use_future);
  BOOST_TEST(!d.allowed);
  b.far.deliver();
  b.run();
  BOOST_TEST(refunded.get().credited == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
