// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_PARKING_HPP
#define WEIR_PARKING_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/parking_lot.hpp"
#include "weir/error.hpp"
#include "weir/posting.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/strand.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

// Where an operation is kept that waits for an event: a time, a freed permit, an engine's answer.
// For authors of stores and of clocks. Its owner (a clock, a store) keeps the shared_ptr that
// `park` gives it, and calls `resume` when the event has come.
//
// The operation ends in exactly one way, whichever comes first:
// - its owner resumes it;
// - it is cancelled, before its owner `begins` with it: it completes with `operation_aborted`;
// - its time is over (`lapse`): it completes with `outcome_unknown` if it left or has begun, and
//   otherwise with the error that `lapse` is given;
// - its owner forgets it (drops the last shared_ptr): it completes with `operation_aborted`, too;
// - the execution context of its handler or of its fallback executor is destroyed: its handler is
//   destroyed, and not called.
//
// After that the owner's shared_ptr refers to no handler, executor or context any more.
//
// How to own operations without keeping dead ones and without missing an event:
//
//     auto const op = park<error_code>(executor, std::move(handler), [weak, place]() noexcept {
//       if (auto owner = weak.lock()) owner->forget(place);  // locks and erases
//     });
//     std::unique_lock lock{mutex_};
//     if (event_has_come) { lock.unlock(); op->resume({}); return; }
//     if (op->waiting()) waiters_.emplace(place, op);  // if not, `forget` has been here already
//
// Park before locking, and resume after unlocking: neither calls a handler, but they move it and
// may destroy it, and its destructor may well come back to the owner. Erasing a shared_ptr under
// the lock is harmless. `resume` returning false means that nobody was woken: the event is still to
// be given to someone.
namespace weir {

namespace detail {

/// An operation that its owner resumes, parked or not.
template <class... Args>
class resumable : public parked_base {
 public:
  /// Ends it with these, if it still waits: only the first call wins. Returns whether this call
  /// did. It may throw: out of memory.
  virtual bool resume(Args... args) = 0;
};

}  // namespace detail

/// An operation that waits: `park` makes it. Each member may be called by any thread.
///
/// Its base has more, for a store whose callers may bound their operations (`with_patience`):
///
/// - `waiting()`: has it not ended yet?
/// - `lapse()` ends an operation whose time is over.
/// - `leaves()` is called right before the owner sends it, and `stays()` if it was not sent after
///   all.
/// - `begins()` is called right before an owner does by itself what the operation waits for. Then
///   it can still lapse, but not be cancelled any more.
/// - `answered()` says that it was done, and that `resume` is on its way: it does not lapse now.
///
/// `leaves()` and `begins()` return false if it has ended already.
///
/// @tparam Args the handler's arguments, the first of which is an error_code
template <class... Args>
class parked : public detail::resumable<Args...> {
 public:
  /// Posts the handler with these arguments, never inline, if the operation still waits: only the
  /// first call wins. Returns whether this call did. Throws what posting throws: out of memory.
  bool resume(Args... args) override = 0;

  /// The first half of `resume`, for an owner that is about to do what the operation waits for: it
  /// can no longer be cancelled, and contexts that are destroyed meanwhile wait for `finish`.
  /// Returns false if it has ended already.
  [[nodiscard]] bool claim() noexcept { return this->take(); }

  /// Between the two halves: the executor that `park` was given.
  [[nodiscard]] virtual boost::asio::any_io_executor const& fallback() const noexcept = 0;

  /// The second half, which must follow once, before the last shared_ptr is gone. Throws what
  /// `resume` throws.
  virtual void finish(Args... args) = 0;
};

namespace detail {

/// Does nothing when an operation is gone: for owners that look at `waiting()` instead.
struct not_told {
  void operator()() const noexcept {}
};

template <class Handler, class OnGone, class... Args>
class parked_operation final : public parked<Args...> {
 public:
  using executor_type = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;

  parked_operation(boost::asio::any_io_executor const& fallback, Handler&& handler,
                   OnGone&& on_gone)
      : body_{std::in_place, fallback, boost::asio::get_associated_executor(handler, fallback),
              std::move(handler)},
        on_gone_{std::move(on_gone)} {}

  ~parked_operation() override {
    if (!this->take()) return;
    try {
      abort();
    } catch (...) {  // nothing can be posted: the handler was destroyed
    }
  }

  bool resume(Args... args) override {
    if (!this->take()) return false;
    complete(std::move(args)...);
    return true;
  }

  [[nodiscard]] boost::asio::any_io_executor const& fallback() const noexcept override {
    return body_->fallback;
  }
  void finish(Args... args) override { complete(std::move(args)...); }

  void lapse(error_code untouched) override {
    if (!this->take_unanswered()) return;
    constexpr auto in_doubt = errc::outcome_unknown;
    end_with(this->left() ? explained(in_doubt, "no answer within its patience") : untouched);
  }

  void cancel() {
    if (!this->take_unbegun()) return;
    departure const tell_owner{this};
    abort();
  }

  void enter_lots() {
    auto* const first = context_of(body_->fallback);
    auto* const second = body_->own_context;
    if (!this->enter(first, second == first ? nullptr : second)) discard();
  }

  /// Destroys the handler, if the operation still waits.
  void discard() noexcept {
    if (this->take()) abandon();
  }

 private:
  // Both contexts have work to do as long as the operation waits: its own has the handler to run,
  // and the fallback's may have to carry it there. Copies of an erased handler's executor, and the
  // way through another one, cost as much as all the rest: so there are none where that is the
  // fallback.
  struct body {
    body(boost::asio::any_io_executor const& f, executor_type const& e, Handler&& h)
        : handler{std::move(h)},
          fallback{f},
          fallback_work{work_of(f)} {
      if (is_same_executor(e, f)) return;
      own.emplace(tracked(e));
      own_context = context_of(e);
    }

    Handler handler;
    boost::asio::any_io_executor fallback;
    boost::asio::any_io_executor fallback_work;
    std::optional<tracked_executor<executor_type>> own;
    boost::asio::execution_context* own_context = nullptr;
  };

  // A strand's is that of the executor inside, which needs no memory.
  [[nodiscard]] static boost::asio::any_io_executor work_of(boost::asio::any_io_executor const& e) {
    auto const* const through = e.target<boost::asio::strand<boost::asio::any_io_executor>>();
    return tracked(through != nullptr ? through->get_inner_executor() : e);
  }

  struct departure {
    parked_operation* self;
    ~departure() { self->on_gone_(); }
  };

  // The contexts wait until `leave`, so nothing of the body may live longer than that.
  struct clearance {
    parked_operation* self;
    ~clearance() {
      self->body_.reset();
      self->leave();
    }
  };

  void complete(Args... args) {
    clearance const at_end{this};
    auto& b = *body_;
    if (!b.own) {
      post_task(b.fallback, [handler = std::move(b.handler), ... args = std::move(args)]() mutable {
        std::move(handler)(std::move(args)...);
      });
    } else if constexpr (never_blocks<executor_type>) {
      boost::asio::post(*b.own, boost::asio::append(std::move(b.handler), std::move(args)...));
    } else {
      post_through(b.fallback, *std::move(b.own), b.own_context, std::move(b.handler),
                   std::move(args)...);
    }
  }

  void abort() { end_with(boost::asio::error::operation_aborted); }

  void end_with(error_code why) { end_with(why, static_cast<parked<Args...>*>(this)); }
  template <class Error, class... Rest>
  void end_with(error_code why, parked<Error, Rest...>*) {
    complete(why, Rest{}...);
  }

  void abandon() noexcept override {
    clearance const at_end{this};
    departure const tell_owner{this};
  }

  std::optional<body> body_;
  [[no_unique_address]] OnGone on_gone_;
};

}  // namespace detail

/// Parks an operation until it is resumed.
///
/// @param fallback the executor of a handler that has none, and the way to that of an erased one
/// @param handler  `void(Args...)`, the first of which is an error_code; may be move-only or erased
/// @param on_gone  `void() noexcept`: tells the owner that it was not the owner who ended the
///                 operation, but a cancellation or the end of a context; called once, in
///                 whatever thread, without any lock held
///
/// Every kind of cancellation through the handler's slot ends the wait, with `operation_aborted`
/// and value-initialised other arguments, unless the owner has begun with it (`begins`, `claim`).
///
/// While it waits, both executors' contexts have work, so that their `run` does not return. The
/// operation's own memory comes from Asio's recycling allocator and not from the handler's: an
/// owner may hold it longer than the handler lives.
template <class... Args, class Handler, class OnGone = detail::not_told>
[[nodiscard]] std::shared_ptr<parked<Args...>> park(boost::asio::any_io_executor const& fallback,
                                                    Handler handler, OnGone on_gone = {}) {
  namespace asio = boost::asio;
  using operation = detail::parked_operation<Handler, OnGone, Args...>;
  static_assert(std::is_nothrow_invocable_v<OnGone&>);

  auto slot = asio::get_associated_cancellation_slot(handler);
  auto const op = std::allocate_shared<operation>(asio::recycling_allocator<operation>{}, fallback,
                                                  std::move(handler), std::move(on_gone));
  try {
    op->enter_lots();
    if (slot.is_connected() && op->waiting()) {
      slot.assign([weak = std::weak_ptr<operation>{op}](asio::cancellation_type_t type) {
        if (type == asio::cancellation_type::none) return;
        if (auto const waiting = weak.lock()) waiting->cancel();
      });
    }
  } catch (...) {  // an initiation that throws does not complete, too
    op->discard();
    throw;
  }
  return op;
}

}  // namespace weir

#endif
