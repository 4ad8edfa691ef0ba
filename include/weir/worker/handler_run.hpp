// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_HANDLER_RUN_HPP
#define WEIR_WORKER_HANDLER_RUN_HPP

#include "weir/detail/context_gate.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/job_context.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"
#include "weir/worker/active_job.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/middleware.hpp"
#include "weir/worker/runs.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// The outcome of a handler that throws, whatever it throws. Called while that is being handled.
[[nodiscard]] inline handler_outcome thrown() noexcept try {
  using ending = handler_outcome::ending;
  try {
    throw;
  } catch (give_up const& e) {
    return {ending::gave_up, text_of(e)};
  } catch (snooze_for const& e) {
    return {ending::snoozed, text_of(e), std::clamp(e.delay(), duration{}, limits::span)};
  } catch (std::exception const& e) {
    return {ending::failed, text_of(e)};
  } catch (...) {
    return {ending::failed, "an exception that is not a std::exception"};
  }
} catch (...) {  // no memory for the text
  return {handler_outcome::ending::failed, {}};
}

[[nodiscard]] inline handler_outcome undecodable(std::string const& reason) {
  return {handler_outcome::ending::undecodable, "undecodable payload: " + reason};
}

/// Decodes the payload, in the job type's own functions.
[[nodiscard]] inline handler_outcome prepare(active_job& job) {
  using ending = handler_outcome::ending;
  std::string reason;
  try {
    job.prepared = job.handler->prepare(job.job.payload, reason);
  } catch (...) {
    return {ending::failed, thrown().text};
  }
  if (job.prepared == nullptr) return undecodable(reason);
  return {};
}

/// A handler has returned.
[[nodiscard]] inline handler_outcome finished(handler_result r) {
  using ending = handler_outcome::ending;
  return {r.storable ? ending::done : ending::unstorable, std::move(r.text)};
}

/// Runs handlers on their executor, and brings what became of them back to the bookkeeping's
/// strand: all that ended since it last looked at once. Handlers keep it, and the execution context
/// of either may end before that of the other.
class handler_run {
 public:
  /// A job whose handler ended.
  struct ended_job {
    std::shared_ptr<active_job> job;
    /// A coroutine's; another may have it now.
    std::shared_ptr<context_bound_executor const> strand{};
  };

  /// Called on the bookkeeping's strand.
  using receiver = std::function<void(std::vector<ended_job>&)>;

  handler_run(worker_setup const& setup, boost::asio::any_io_executor const& handlers,
              std::shared_ptr<gated_executor const> bookkeeping)
      : clock_{setup.clock},
        around_{setup.around},
        bookkeeping_{std::move(bookkeeping)},
        handlers_{handlers},
        posts_{context_bound_executor::make(
            boost::asio::require(handlers, boost::asio::execution::blocking.never))} {
    // A handler that ends without memory is noted all the same.
    auto const most = std::size_t{setup.options.concurrency} + setup.options.prefetch;
    strands_.reserve(most);
    delivered_.reserve(most);
    ended_.reserve(most);
  }

  /// Starts the handler of a job. Before a job that was not prepared its payload is decoded: that
  /// is work of the user's own functions, too.
  ///
  /// @return false: the execution context of its executor has ended
  [[nodiscard]] static bool start(std::shared_ptr<handler_run> const& self,
                                  std::shared_ptr<active_job> const& job) {
    job->note_deadline();
    job->outcome = not_started();
    auto const& handler = *job->handler;
    bool const pooled = handler.own == nullptr;
    auto const& gate = pooled ? self->handlers_.gate() : handler.own->gate();
    gate_pass const inside{gate};
    if (!inside) return false;
    if (!handler.traits.is_coroutine && self->around_.empty()) {
      auto step = [back = way_back{self, {job}}]() mutable {
        auto& called = *back.what.job;
        called.outcome = back.to->call(called);
      };
      // `post` would ask this executor each time whether it may run something at once.
      if (pooled) {
        self->posts_->get().execute(std::move(step));
      } else {
        boost::asio::post(handler.own->get(), std::move(step));
      }
      return true;
    }
    auto strand = pooled ? self->take_strand() : nullptr;
    auto const on = pooled ? strand->get() : boost::asio::make_strand(handler.own->get());
    auto const running =
        std::make_shared<running_coroutine>(way_back{self, {job, std::move(strand)}});
    job->gate = gate;
    job->cancel = std::shared_ptr<boost::asio::cancellation_signal>{running, &running->cancel};
    // One that is told to stop before it could begin ends with an exception of Asio's.
    auto ended = [running](std::exception_ptr const&) { running->back.bring(); };
    worker_core::begin(on, run(self, job), running->cancel.slot(), std::move(ended));
    return true;
  }

  [[nodiscard]] any_clock const& clock() const noexcept { return clock_; }
  void deliver_to(receiver who) { receive_ = std::move(who); }

  /// Takes what has ended to the receiver, on the bookkeeping's strand: when it is posted, and when
  /// there may have been no memory for that.
  void deliver() {
    {
      std::lock_guard const lock{mutex_};
      ended_.swap(delivered_);
      will_deliver_ = false;
    }
    for (auto& ended : delivered_) {
      if (ended.strand) strands_.push_back(std::move(ended.strand));
    }
    struct clearing {  // nothing is delivered twice, whatever is thrown
      std::vector<ended_job>& all;
      ~clearing() { all.clear(); }
    } const at_end{delivered_};
    if (receive_) receive_(delivered_);
  }

 private:
  /// Brings a job back when its handler has ended, or was destroyed.
  struct way_back {
    way_back(std::shared_ptr<handler_run> run, ended_job ended)
        : to{std::move(run)},
          what{std::move(ended)} {}
    way_back(way_back&&) noexcept = default;
    way_back& operator=(way_back&&) = delete;
    ~way_back() { bring(); }

    void bring() noexcept {
      if (!what.job) return;
      try {
        handler_run::bring(to, std::move(what));
      } catch (std::exception const&) {  // out of memory: the next renewal brings it
      }
    }

    std::shared_ptr<handler_run> to;
    ended_job what;
  };

  /// Belongs to a coroutine, and is destroyed with it. A signal refers to the strand of who is
  /// cancelled.
  struct running_coroutine {
    explicit running_coroutine(way_back b) : back{std::move(b)} {}
    running_coroutine(running_coroutine const&) = delete;
    running_coroutine& operator=(running_coroutine const&) = delete;
    ~running_coroutine() {
      auto* const job = back.what.job.get();
      if (job == nullptr || job->outcome.how != handler_outcome::ending::failed) return;
      try {
        job->outcome.text = "destroyed before it ended";
      } catch (std::exception const&) {  // out of memory
      }
    }

    boost::asio::cancellation_signal cancel;
    way_back back;
  };

  /// Much may have happened since the claim: a handler never starts without its lease (F12), or
  /// when the worker stops. A renewal may end at this moment: the bookkeeping starts the handler
  /// again then.
  [[nodiscard]] bool may_start(active_job const& job) const {
    return !job.context.stop_requested() &&
           clock_.steady_now() < job.starts_before.load(std::memory_order_relaxed);
  }

  [[nodiscard]] static handler_outcome not_started() {
    return {handler_outcome::ending::not_started, {}};
  }

  [[nodiscard]] handler_outcome call(active_job& job) const {
    if (!may_start(job)) return not_started();
    bool decoded = job.prepared != nullptr;
    try {
      if (decoded) return finished(job.prepared->call(job.context));
      std::string reason;
      auto got = job.handler->call(job.job.payload, job.context, reason, decoded);
      return got ? finished(std::move(*got)) : undecodable(reason);
    } catch (...) {
      if (decoded) return thrown();
      return {handler_outcome::ending::failed, thrown().text};
    }
  }

  [[nodiscard]] static boost::asio::awaitable<void> run(std::shared_ptr<handler_run> self,
                                                        std::shared_ptr<active_job> job) {
    co_await boost::asio::this_coro::reset_cancellation_state(
        boost::asio::enable_total_cancellation());
    // Asio begins a coroutine at once where it may, which is here: within the bookkeeping.
    co_await boost::asio::post(boost::asio::deferred);
    if (!self->may_start(*job)) co_return;
    if (job->prepared == nullptr) {
      job->outcome = prepare(*job);
      if (job->prepared == nullptr) co_return;
    }
    boost::asio::any_io_executor const strand = co_await boost::asio::this_coro::executor;
    job->context.notes().runs_on(&strand);
    job->outcome.how = handler_outcome::ending::failed;  // if it is destroyed
    try {
      if (self->around_.empty()) {
        auto stored = co_await job->prepared->run(job->context);
        job->outcome = finished(std::move(stored));
      } else {
        handler_chain chain{self->around_, *job->prepared, job->handler->traits.is_coroutine,
                            job->context};
        co_await chain.run(0);
        job->outcome = finished(std::move(chain.result));
      }
    } catch (...) {
      job->outcome = thrown();
    }
  }

  static void bring(std::shared_ptr<handler_run> const& self, ended_job ended) {
    {
      std::lock_guard const lock{self->mutex_};
      self->ended_.push_back(std::move(ended));
      if (std::exchange(self->will_deliver_, true)) return;
    }
    try {
      self->bookkeeping_->post([self] { self->deliver(); });
    } catch (...) {  // the next one that ends brings these, too, or the next renewal
      std::lock_guard const lock{self->mutex_};
      self->will_deliver_ = false;
      throw;
    }
  }

  /// For one coroutine at a time: making one for each would cost more than starting it.
  std::shared_ptr<context_bound_executor const> take_strand() {
    if (strands_.empty()) {
      return context_bound_executor::make(boost::asio::make_strand(handlers_.get()));
    }
    auto strand = std::move(strands_.back());
    strands_.pop_back();
    return strand;
  }

  any_clock const clock_;
  std::vector<middleware> const around_;  ///< each handler, the first outermost
  std::shared_ptr<gated_executor const> const bookkeeping_;
  gated_executor const handlers_;
  std::shared_ptr<context_bound_executor const> const posts_;  ///< never runs anything at once
  receiver receive_;
  std::vector<std::shared_ptr<context_bound_executor const>> strands_;
  std::vector<ended_job> delivered_;  ///< kept for its memory
  std::mutex mutex_;                  ///< of what follows
  std::vector<ended_job> ended_;
  bool will_deliver_ = false;
};

}  // namespace weir::detail

#endif
