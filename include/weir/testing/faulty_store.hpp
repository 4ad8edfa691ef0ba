// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FAULTY_STORE_HPP
#define WEIR_TESTING_FAULTY_STORE_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/parking.hpp"
#include "weir/error.hpp"
#include "weir/testing/faults.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace weir::testing {

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
        clock_{std::move(clock)} {}

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
  class operation;

  template <class C>
  struct initiation {
    using handler = boost::asio::any_completion_handler<void(error_code, typename C::result)>;
    void operator()(handler h, faulty_store self, C c) const {
      auto const injected = self.faults_.template draw<C>();
      auto const op = std::make_shared<operation<C>>(std::move(self), c, injected, std::move(h));
      op->begin();
    }
  };

  Store store_;
  fault_injector faults_;
  Clock clock_;
};

/// One command under way. It is kept by whatever it waits for.
template <store Store, clock Clock>
template <class C>
class faulty_store<Store, Clock>::operation : public std::enable_shared_from_this<operation<C>> {
 public:
  using answer = typename C::result;
  using handler = typename initiation<C>::handler;

  operation(faulty_store store, C const& c, fault_injector::injected const& injected, handler h)
      : store_{std::move(store)},
        command_{c},
        injected_{injected},
        fallback_{store_.get_executor()},
        handler_{std::move(h)},
        slot_{boost::asio::get_associated_cancellation_slot(handler_)} {}

  void begin() {
    switch (injected_.what) {
      case fault::none: execute(&operation::deliver); break;
      case fault::delay: wait([](operation& self) { self.execute(&operation::deliver); }); break;
      case fault::late_answer: execute(&operation::hold_back); break;
      case fault::fail_before: finish(make_error_code(errc::store_unavailable), answer{}); break;
      case fault::fail_after: execute(&operation::lose); break;
      case fault::duplicate: execute(&operation::repeat); break;
      case fault::never: hang(); break;
      case fault::silence: execute(&operation::ignore); break;
    }
  }

 private:
  using next_step = void (operation::*)(error_code, answer);

  /// Executes the command, then goes on with `next`.
  void execute(next_step next) {
    auto step = [self = this->shared_from_this(), next](error_code ec, answer got) {
      self->slot_.clear();
      ((*self).*next)(ec, std::move(got));
    };
    store_.store_.async_execute(command_, bound(std::move(step)));
  }

  /// Waits for the delay, then goes on with `next`, unless cancelled.
  template <class Next>
  void wait(Next next) {
    auto step = [self = this->shared_from_this(), next](error_code ec) {
      self->slot_.clear();
      if (ec) {
        self->finish(ec, answer{});
      } else {
        next(*self);
      }
    };
    store_.clock_.async_wait_until(fallback_,
                                   saturating_add(store_.clock_.steady_now(), injected_.delay),
                                   bound(std::move(step)));
  }

  void deliver(error_code ec, answer got) { finish(ec, std::move(got)); }

  void hold_back(error_code ec, answer got) {
    first_error_ = ec;
    first_ = std::move(got);
    wait([](operation& self) { self.finish(self.first_error_, std::move(self.first_)); });
  }

  /// Bad input never leaves the client, so it is never unknown.
  void lose(error_code ec, answer) {
    finish(ec == condition::bad_input ? ec : make_error_code(errc::outcome_unknown), answer{});
  }

  void repeat(error_code ec, answer got) {
    first_error_ = ec;
    first_ = std::move(got);
    execute(&operation::choose);
  }

  void choose(error_code ec, answer got) {
    if (injected_.second) {
      finish(ec, std::move(got));
    } else {
      finish(first_error_, std::move(first_));
    }
  }

  void ignore(error_code, answer) { hang(); }

  void hang() {
    auto op = weir::detail::park<error_code, answer>(fallback_, std::move(handler_));
    store_.faults_.keep(std::move(op));
  }

  void finish(error_code ec, answer got) {
    weir::detail::post_completion(fallback_, std::move(handler_), ec, std::move(got));
  }

  /// The step with the executor and the cancellation slot of the handler.
  template <class Step>
  auto bound(Step step) {
    return boost::asio::bind_cancellation_slot(
        slot_, boost::asio::bind_executor(boost::asio::get_associated_executor(handler_, fallback_),
                                          std::move(step)));
  }

  faulty_store store_;
  C command_;
  fault_injector::injected injected_;
  boost::asio::any_io_executor fallback_;
  handler handler_;
  boost::asio::cancellation_slot slot_;
  error_code first_error_{};
  answer first_{};
};

}  // namespace weir::testing

#endif
