// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A store of your own behind something that answers later: here a thread, elsewhere a connection.
// A caller may be cancelled meanwhile, or its context destroyed, and may wait for a permit's
// turn for hours. So the store copies each command (`owned_command`), parks each operation
// (`park`), and is held to weir's promises.

#include "weir/clock/manual.hpp"
#include "weir/command/permits.hpp"
#include "weir/concept.hpp"
#include "weir/owned_command.hpp"
#include "weir/parking.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/conformance/permits.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <iostream>
#include <memory>
#include <thread>
#include <utility>

namespace asio = boost::asio;

namespace {

// Stands for the other side: a store with a thread of its own, and none of ours. It has a time
// that tests can move.
class other_side {
 public:
  explicit other_side(weir::manual_clock clock)
      : store_{io_.get_executor(), {}, std::move(clock)} {}
  other_side(other_side const&) = delete;
  other_side& operator=(other_side const&) = delete;
  ~other_side() {
    io_.stop();  // what waits still ends with `operation_aborted`, as its owner forgets it
    thread_.join();
  }

  // A step. Until it is its turn it may be cancelled, and is not done then; from `claim` to
  // `finish` it can no longer be.
  template <class C>
  void ask(C const& c, std::shared_ptr<weir::parked<weir::error_code, typename C::result>> op) {
    auto content = std::make_shared<weir::owned_command<C> const>(c);
    asio::post(io_, [this, content = std::move(content), op = std::move(op)] {
      if (!op->claim()) return;
      auto answer = store_.execute(content->get());
      op->finish(answer.error(), answer ? std::move(*answer) : typename C::result{});
    });
  }

  // A wait, which may take for ever. The signal ends it on this side, too.
  template <class C>
  void wait(C const& c, std::shared_ptr<asio::cancellation_signal> signal,
            std::shared_ptr<weir::parked<weir::error_code, typename C::result>> op) {
    auto content = std::make_shared<weir::owned_command<C> const>(c);
    asio::post(io_, [this, content = std::move(content), signal = std::move(signal),
                     op = std::move(op)]() mutable {
      if (!op->waiting()) return;
      auto const slot = signal->slot();
      auto told = [content, signal = std::move(signal), op = std::move(op)](
                      weir::error_code ec, typename C::result r) { op->resume(ec, r); };
      store_.async_execute(content->get(), asio::bind_cancellation_slot(slot, std::move(told)));
    });
  }
  void end(std::shared_ptr<asio::cancellation_signal> signal) {
    asio::post(io_, [signal = std::move(signal)] { signal->emit(asio::cancellation_type::all); });
  }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  weir::basic_memory_store<weir::manual_clock> store_;
  std::thread thread_{[this] { io_.run(); }};
};

// The handle that users have. It is copied as they like.
class remote_store {
 public:
  using executor_type = asio::any_io_executor;

  remote_store(executor_type executor, weir::manual_clock clock)
      : executor_{std::move(executor)},
        other_side_{std::make_shared<other_side>(std::move(clock))} {}

  executor_type get_executor() const noexcept { return executor_; }

  // The commands of permits, locks and buckets: each has a key. (One with `at`, a time of its
  // caller's, has none: here the other side's time counts.)
  template <class C, class Token>
    requires weir::executes<weir::basic_memory_store<weir::manual_clock>, C> &&
             requires(C const& c) { c.key; }
  auto async_execute(C const& c, Token&& token) {
    using result = typename C::result;
    auto start = [self = *this](auto handler, C const& command) {
      if constexpr (weir::command::waits_for_event<C>) {
        auto signal = std::make_shared<asio::cancellation_signal>();
        std::weak_ptr<other_side> const there = self.other_side_;
        auto gone = [there, signal]() noexcept {
          if (auto const to = there.lock()) to->end(signal);
        };
        auto op = weir::park<weir::error_code, result>(self.executor_, std::move(handler), gone);
        self.other_side_->wait(command, std::move(signal), std::move(op));
      } else {
        auto op = weir::park<weir::error_code, result>(self.executor_, std::move(handler));
        self.other_side_->ask(command, std::move(op));
      }
    };
    auto bound = asio::bind_executor(executor_, std::move(start));  // `cancel_after` asks for it
    return asio::async_initiate<Token, void(weir::error_code, result)>(std::move(bound), token, c);
  }

 private:
  executor_type executor_;
  std::shared_ptr<other_side> other_side_;
};

struct remote_driver {
  weir::manual_clock clock{};

  remote_store make(asio::any_io_executor const& executor) { return {executor, clock}; }
  void advance(weir::duration d) { clock.advance(d); }
};

}  // namespace

int main() {
  remote_driver driver;
  weir::testing::report found;
  weir::testing::conformance::permits(driver, found);
  std::cout << found;
  return found.ok() ? 0 : 1;
}
