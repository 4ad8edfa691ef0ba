// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Parked operations and the execution contexts that are destroyed under them (R7).

#include "weir/parking.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using weir::error_code;
using weir::park;
using waiter = std::shared_ptr<weir::parked<error_code>>;

namespace {

/// A handler that must not be called, and whose destruction shows.
struct doomed {
  std::shared_ptr<int> witness;
  void operator()(error_code) const { BOOST_ERROR("called"); }
};

/// Calls what it was given when it is destroyed, once.
struct at_end {
  explicit at_end(std::function<void()> what) : todo{std::move(what)} {}
  at_end(at_end&& other) noexcept : todo{std::exchange(other.todo, nullptr)} {}
  ~at_end() {
    if (todo) todo();
  }
  void operator()(error_code) const {}

  std::function<void()> todo;
};

struct fixture {
  std::shared_ptr<int> witness = std::make_shared<int>(0);
  int gone = 0;
  std::optional<asio::io_context> io{std::in_place};
  std::optional<asio::io_context> other{std::in_place};

  auto told() {
    return [this]() noexcept { ++gone; };
  }
  void expect_dead(waiter const& op) {
    BOOST_TEST(witness.use_count() == 1);
    BOOST_TEST(gone == 1);
    BOOST_TEST(!op->waiting());
    BOOST_TEST(!op->resume({}));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(R7_parking_contexts, fixture)

BOOST_AUTO_TEST_CASE(a_handler_dies_with_its_context) {
  auto const op = park<error_code>(io->get_executor(), doomed{witness}, told());
  io.reset();
  expect_dead(op);
}

BOOST_AUTO_TEST_CASE(a_handler_dies_with_the_context_of_its_own_executor) {
  auto const op =
      park<error_code>(io->get_executor(), asio::bind_executor(*other, doomed{witness}), told());
  other.reset();
  expect_dead(op);
  io->run();  // nothing is left to wait for
}

BOOST_AUTO_TEST_CASE(a_handler_dies_with_the_context_of_its_fallback) {
  auto const op =
      park<error_code>(io->get_executor(), asio::bind_executor(*other, doomed{witness}), told());
  io.reset();
  expect_dead(op);
  other->run();
}

BOOST_AUTO_TEST_CASE(an_erased_handler_dies_with_the_context_of_its_own_executor) {
  asio::any_completion_handler<void(error_code)> handler =
      asio::bind_executor(asio::make_strand(*other), doomed{witness});
  auto const op = park<error_code>(io->get_executor(), std::move(handler), told());
  other.reset();
  expect_dead(op);
  io->run();
}

BOOST_AUTO_TEST_CASE(a_strand_is_let_go_before_its_context) {
  auto const op =
      park<error_code>(asio::make_strand(*io),
                       asio::bind_executor(asio::make_strand(*other), doomed{witness}), told());
  other.reset();
  expect_dead(op);
  io.reset();
}

BOOST_AUTO_TEST_CASE(what_was_resumed_and_not_run_dies_with_its_context) {
  auto const op = park<error_code>(io->get_executor(), doomed{witness}, told());
  op->resume({});
  io.reset();
  BOOST_TEST(witness.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(an_erased_handler_on_its_way_dies_with_either_context) {
  for (bool const goes_first : {true, false}) {
    BOOST_TEST_CONTEXT("its own context ends first: " << goes_first) {
      io.emplace();
      other.emplace();
      asio::any_completion_handler<void(error_code)> erased{
          asio::bind_executor(asio::make_strand(*other), doomed{witness})};
      auto const op = park<error_code>(io->get_executor(), std::move(erased));
      BOOST_TEST(op->resume({}));
      (goes_first ? other : io).reset();
      BOOST_TEST_REQUIRE(witness.use_count() == 1);
      (goes_first ? io : other)->poll();
    }
  }
}

BOOST_AUTO_TEST_CASE(an_erased_handler_on_its_way_races_with_the_end_of_its_context) {
  for (int i = 0; i != 200; ++i) {
    other.emplace();
    io->restart();
    asio::any_completion_handler<void(error_code)> erased{
        asio::bind_executor(other->get_executor(), doomed{witness})};
    auto const op = park<error_code>(io->get_executor(), std::move(erased));
    op->resume({});
    std::thread carries{[this] { io->poll(); }};
    other.reset();
    carries.join();
    BOOST_TEST_REQUIRE(witness.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_coroutine_dies_with_its_context) {
  std::vector<waiter> waiters;
  auto wait = [&](auto token) {
    return asio::async_initiate<decltype(token), void(error_code)>(
        [&](auto handler) {
          waiters.push_back(park<error_code>(io->get_executor(), std::move(handler)));
        },
        token);
  };
  auto body = [&]() -> asio::awaitable<void> {
    auto const held = witness;
    co_await wait(asio::use_awaitable);
    BOOST_ERROR("resumed");
  };
  asio::co_spawn(*io, body, asio::detached);
  io->poll();
  BOOST_TEST(waiters.size() == 1U);
  BOOST_TEST(witness.use_count() == 2);
  io.reset();
  BOOST_TEST(witness.use_count() == 1);
  BOOST_TEST(!waiters[0]->resume({}));
}

BOOST_AUTO_TEST_CASE(a_dying_handler_may_resume_another) {
  std::vector<waiter> waiters;
  waiters.push_back(
      park<error_code>(io->get_executor(), at_end{[&] { BOOST_TEST(waiters[1]->resume({})); }}));
  waiters.push_back(park<error_code>(io->get_executor(), doomed{witness}));
  io.reset();
  BOOST_TEST(witness.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_dying_handler_may_forget_another) {
  std::vector<waiter> waiters;
  waiters.push_back(park<error_code>(io->get_executor(), at_end{[&] { waiters[1].reset(); }}));
  waiters.push_back(park<error_code>(io->get_executor(), doomed{witness}));
  io.reset();
  BOOST_TEST(witness.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_dying_handler_may_own_its_owner) {
  struct owner {
    std::mutex mutex;
    std::vector<waiter> waiters;
  };
  auto const state = std::make_shared<owner>();
  std::weak_ptr<owner> const weak = state;
  auto forget = [weak]() noexcept {
    if (auto const o = weak.lock()) {
      std::lock_guard const lock{o->mutex};
      o->waiters.clear();
    }
  };
  state->waiters.push_back(park<error_code>(io->get_executor(), [state](error_code) {}, forget));
  auto const op = state->waiters[0];
  const_cast<std::shared_ptr<owner>&>(state).reset();
  BOOST_TEST(!weak.expired());  // by its own waiter
  io.reset();
  BOOST_TEST(weak.expired());
  BOOST_TEST(!op->waiting());
}

BOOST_AUTO_TEST_CASE(what_is_parked_on_a_dying_context_dies_at_once) {
  waiter late;
  auto const op = park<error_code>(io->get_executor(), at_end{[&] {
                                     late = park<error_code>(io->get_executor(), doomed{witness});
                                   }});
  auto const ex = io->get_executor();
  io.reset();
  BOOST_REQUIRE(late);
  BOOST_TEST(!late->waiting());
  BOOST_TEST(witness.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(what_is_parked_on_a_context_that_was_shut_down_dies_at_once) {
  struct mortal : asio::io_context {
    void end() { shutdown(); }
  } context;
  auto const first = park<error_code>(context.get_executor(), doomed{witness});
  context.end();
  auto const op =
      park<error_code>(io->get_executor(), asio::bind_executor(context, doomed{witness}), told());
  expect_dead(op);
  io->run();
}

BOOST_AUTO_TEST_CASE(a_context_that_nobody_parked_on_before_may_be_parked_on_while_it_dies) {
  waiter late;
  asio::post(*io, [end = at_end{[&] {
                     late = park<error_code>(io->get_executor(), doomed{witness});
                   }}] { BOOST_ERROR("called"); });
  io.reset();
  BOOST_REQUIRE(late);
  BOOST_TEST(!late->waiting());
  BOOST_TEST(witness.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_dying_handler_may_own_the_other_context) {
  auto nested = std::make_unique<asio::io_context>();
  auto const fallback = nested->get_executor();
  at_end handler{[n = std::shared_ptr<asio::io_context>{std::move(nested)}] {}};
  auto const op = park<error_code>(fallback, asio::bind_executor(*io, std::move(handler)), told());
  io.reset();  // does not wait for itself
  BOOST_TEST(!op->waiting());
  BOOST_TEST(gone == 1);
}

BOOST_AUTO_TEST_CASE(many_handlers_die_and_tell_their_owner) {
  std::vector<waiter> waiters;
  for (int i = 0; i < 1000; ++i) {
    waiters.push_back(
        park<error_code>((i % 3 == 0 ? *other : *io).get_executor(),
                         asio::bind_executor(i % 2 == 0 ? *other : *io, doomed{witness}), told()));
  }
  io.reset();
  other.reset();
  BOOST_TEST(gone == 1000);
  BOOST_TEST(witness.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(R7_parking_threads)

// Two threads end the same operations while the handlers' context is destroyed by a third.
BOOST_AUTO_TEST_CASE(resume_races_with_the_end_of_the_context) {
  asio::thread_pool home{1};
  for (int round = 0; round < 300; ++round) {
    auto context = std::make_unique<asio::io_context>();
    std::vector<waiter> waiters;
    std::atomic<int> called{0};
    std::atomic<int> gone{0};
    auto const witness = std::make_shared<int>(0);
    for (int i = 0; i < 8; ++i) {
      waiters.push_back(park<error_code>(
          home.get_executor(),
          asio::bind_executor(asio::make_strand(*context), [&, witness](error_code) { ++called; }),
          [&]() noexcept { ++gone; }));
    }
    std::atomic<int> ready{0};
    auto const meet = [&] {
      ++ready;
      while (ready.load() < 3) std::this_thread::yield();
    };
    std::atomic<int> resumed{0};
    auto const wake = [&] {
      meet();
      for (auto const& op : waiters) resumed += op->resume({}) ? 1 : 0;
    };
    std::thread first{wake};
    std::thread second{wake};
    meet();
    context->poll();
    context.reset();
    first.join();
    second.join();
    BOOST_TEST(resumed + gone == 8);
    BOOST_TEST(called <= resumed);
    BOOST_TEST(witness.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_context_waits_for_what_was_claimed) {
  auto context = std::make_unique<asio::io_context>();
  auto const op = park<error_code>(context->get_executor(), [](error_code) {});
  BOOST_TEST(op->claim());
  std::atomic<bool> finished{false};
  std::atomic<bool> destroying{false};
  std::thread owner{[&] {
    while (!destroying) std::this_thread::yield();
    finished = true;
    op->finish({});
  }};
  // Taken by another thread than the one that destroys the context.
  std::thread destroyer{[&] {
    destroying = true;
    context.reset();
    BOOST_TEST(finished.load());
  }};
  destroyer.join();
  owner.join();
}

// A waker, a canceller (on the handlers' own thread, as Asio demands) and a runner.
BOOST_AUTO_TEST_CASE(resume_races_with_cancellation) {
  for (int round = 0; round < 300; ++round) {
    asio::io_context context;
    std::vector<asio::cancellation_signal> signals(8);
    std::vector<waiter> waiters;
    int called = 0;
    int aborted = 0;
    int gone = 0;
    for (auto& signal : signals) {
      waiters.push_back(park<error_code>(
          context.get_executor(),
          asio::bind_cancellation_slot(signal.slot(),
                                       [&](error_code ec) {
                                         ++called;
                                         aborted += ec == asio::error::operation_aborted ? 1 : 0;
                                       }),
          [&]() noexcept { ++gone; }));
    }
    std::atomic<bool> go{false};
    std::atomic<int> resumed{0};
    std::thread waker{[&] {
      while (!go.load()) std::this_thread::yield();
      for (auto const& op : waiters) resumed += op->resume({}) ? 1 : 0;
    }};
    asio::post(context, [&] {
      go = true;
      for (auto signal = signals.rbegin(); signal != signals.rend(); ++signal) {
        signal->emit(asio::cancellation_type::terminal);
      }
    });
    context.run();
    waker.join();
    BOOST_TEST(called == 8);
    BOOST_TEST(aborted == gone);
    BOOST_TEST(resumed + aborted == 8);
  }
}

// Two contexts in which every operation is registered are destroyed at the same time.
BOOST_AUTO_TEST_CASE(two_contexts_end_at_the_same_time) {
  for (int round = 0; round < 300; ++round) {
    auto one = std::make_unique<asio::io_context>();
    auto two = std::make_unique<asio::io_context>();
    std::vector<waiter> waiters;
    auto const witness = std::make_shared<int>(0);
    for (int i = 0; i < 16; ++i) {
      auto& own = i % 2 == 0 ? *one : *two;
      auto& fallback = i % 2 == 0 ? *two : *one;
      waiters.push_back(
          park<error_code>(asio::make_strand(fallback),
                           asio::bind_executor(asio::make_strand(own), [witness](error_code) {})));
    }
    std::thread first{[&] { one.reset(); }};
    two.reset();
    first.join();
    BOOST_TEST(witness.use_count() == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
