// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FAULTY_STORE_HPP
#define WEIR_TESTING_FAULTY_STORE_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/testing/faults.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace weir::testing {

namespace detail {

/// A command with this answer under way, of any store. It is kept by whatever it waits for.
template <class Answer>
class faulty_operation : public std::enable_shared_from_this<faulty_operation<Answer>> {
 public:
  using handler = boost::asio::any_completion_handler<void(error_code, Answer)>;

  /// The way to the store behind.
  struct way {
    std::function<void(handler)> execute;
    boost::asio::any_io_executor executor;
    weir::detail::any_clock clock;
    fault_injector faults;
  };

  faulty_operation(way to, fault_injector::injected const& injected, handler h)
      : to_{std::move(to)},
        injected_{injected},
        handler_{std::move(h)},
        cancelled_{boost::asio::get_associated_cancellation_slot(handler_),
                   boost::asio::enable_total_cancellation{}} {}

  void begin() {
    switch (injected_.what) {
      case fault::none: execute(&faulty_operation::deliver); break;
      case fault::delay: wait(&faulty_operation::execute_late); break;
      case fault::late_answer: execute(&faulty_operation::hold_back); break;
      case fault::fail_before: finish(make_error_code(errc::store_unavailable), Answer{}); break;
      case fault::fail_after: execute(&faulty_operation::lose); break;
      case fault::duplicate: execute(&faulty_operation::repeat); break;
      case fault::never: hang(); break;
      case fault::silence: execute(&faulty_operation::ignore); break;
    }
  }

 private:
  using next_step = void (faulty_operation::*)(error_code, Answer);

  /// Executes the command, then goes on with `next`.
  void execute(next_step next) {
    if (gives_up()) return;
    to_.execute(bound([self = this->shared_from_this(), next](error_code ec, Answer got) {
      self->cancelled_.slot().clear();
      ((*self).*next)(ec, std::move(got));
    }));
  }

  /// Waits for the delay, then goes on with `next`, unless cancelled.
  void wait(void (faulty_operation::*next)()) {
    if (gives_up()) return;
    auto step = [self = this->shared_from_this(), next](error_code ec) {
      self->cancelled_.slot().clear();
      if (ec) {
        self->finish(ec, Answer{});
      } else {
        ((*self).*next)();
      }
    };
    to_.clock.async_wait_until(to_.executor,
                               saturating_add(to_.clock.steady_now(), injected_.delay),
                               bound(std::move(step)));
  }

  void execute_late() { execute(&faulty_operation::deliver); }
  void deliver(error_code ec, Answer got) { finish(ec, std::move(got)); }

  void hold_back(error_code ec, Answer got) {
    first_error_ = ec;
    first_ = std::move(got);
    wait(&faulty_operation::deliver_first);
  }
  void deliver_first() { finish(first_error_, std::move(first_)); }

  /// Bad input never leaves the client, so it is never unknown.
  void lose(error_code ec, Answer) {
    finish(ec == condition::bad_input ? ec : make_error_code(errc::outcome_unknown), Answer{});
  }

  void repeat(error_code ec, Answer got) {
    first_error_ = ec;
    first_ = std::move(got);
    execute(&faulty_operation::choose);
  }

  void choose(error_code ec, Answer got) {
    if (injected_.second) {
      finish(ec, std::move(got));
    } else {
      deliver_first();
    }
  }

  void ignore(error_code, Answer) { hang(); }

  void hang() {
    if (gives_up()) return;
    to_.faults.keep(weir::park<error_code, Answer>(to_.executor, std::move(handler_)));
  }

  void finish(error_code ec, Answer got) {
    weir::post_completion(to_.executor, std::move(handler_), ec, std::move(got));
  }

  /// Was it cancelled between two phases, when nobody listened? Then that is its end.
  bool gives_up() {
    bool const so = cancelled_.cancelled() != boost::asio::cancellation_type::none;
    if (so) finish(boost::asio::error::operation_aborted, Answer{});
    return so;
  }

  /// The step with the executor and the cancellation slot of the handler.
  template <class Step>
  auto bound(Step step) {
    return boost::asio::bind_cancellation_slot(
        cancelled_.slot(),
        boost::asio::bind_executor(boost::asio::get_associated_executor(handler_, to_.executor),
                                   std::move(step)));
  }

  way to_;
  fault_injector::injected injected_;
  handler handler_;
  boost::asio::cancellation_state cancelled_;
  error_code first_error_{};
  Answer first_{};
};

}  // namespace detail

/// A store whose commands meet with faults on their way: another store, and something that decides
/// what happens.
///
/// It executes, asynchronously only, whatever the other store executes. Delays are waited for by
/// `Clock`. A handle, as the other is; thread-safe where the other is.
///
/// Errors: the other store's, and what the faults are. Cancelling works in every phase: what is
/// delayed or was never sent is not executed then, and completes with `operation_aborted`; what was
/// executed already completes so, too, so a cancelled command is done or not done, as with any
/// store.
template <store Store, clock Clock = system_clock>
class faulty_store {
 public:
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  using clock_type = Clock;                            ///< by which delays are waited for

  /// @param store  what is behind the faults; copied
  /// @param faults may be kept by the caller, too, to script what happens and to read the counts
  /// @param clock  by which delays are waited for
  faulty_store(Store store, fault_injector faults, Clock clock = Clock{})
      : store_{std::move(store)},
        faults_{std::move(faults)},
        clock_{std::move(clock)},
        delays_{weir::detail::any_clock::of(clock_)} {}

  /// The other store's.
  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  /// As it was given.
  [[nodiscard]] clock_type const& get_clock() const noexcept { return clock_; }
  /// The other store's.
  [[nodiscard]] std::uint32_t shard_count() const noexcept
    requires requires(Store const& s) { s.shard_count(); }
  {
    return store_.shard_count();
  }

  /// Executes a command, if nothing befalls it: see above.
  template <class C, class Token>
    requires executes<Store, C>
  auto async_execute(C const& c, Token&& token) const {
    using answer = typename C::result;
    return boost::asio::async_initiate<Token, void(error_code, answer)>(
        weir::detail::bound_initiation{get_executor(), initiation<C>{}}, token, *this, c);
  }

 private:
  template <class C>
  struct initiation {
    using operation = detail::faulty_operation<typename C::result>;
    void operator()(typename operation::handler h, faulty_store self, C c) const {
      auto const injected = self.faults_.template draw<C>();
      auto executor = self.get_executor();
      auto execute = [store = std::move(self.store_), c = std::move(c)](auto next) mutable {
        store.async_execute(c, std::move(next));
      };
      typename operation::way to{std::move(execute), std::move(executor), std::move(self.delays_),
                                 std::move(self.faults_)};
      std::make_shared<operation>(std::move(to), injected, std::move(h))->begin();
    }
  };

  Store store_;
  fault_injector faults_;
  Clock clock_;
  weir::detail::any_clock delays_;
};

}  // namespace weir::testing

#endif
