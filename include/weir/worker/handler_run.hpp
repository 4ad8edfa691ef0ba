// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_HANDLER_RUN_HPP
#define WEIR_WORKER_HANDLER_RUN_HPP

#include "weir/error.hpp"
#include "weir/job_context.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"
#include "weir/worker/active_job.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/middleware.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// What is being thrown out of a handler, whatever it is.
[[nodiscard]] inline handler_outcome thrown() noexcept try {
  using ending = handler_outcome::ending;
  try {
    throw;
  } catch (give_up const& e) {
    return {ending::gave_up, e.what()};
  } catch (snooze_for const& e) {
    return {ending::snoozed, e.what(), std::clamp(e.delay(), duration{}, limits::span)};
  } catch (std::exception const& e) {
    return {ending::failed, text_of(e)};
  } catch (...) {
    return {ending::failed, "an exception that is not a std::exception"};
  }
} catch (...) {  // no memory for the text
  return {handler_outcome::ending::failed, {}};
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
  if (job.prepared == nullptr) return {ending::undecodable, "undecodable payload: " + reason};
  return {};
}

/// A handler has returned.
[[nodiscard]] inline handler_outcome finished(handler_result r) {
  using ending = handler_outcome::ending;
  return {r.storable ? ending::done : ending::unstorable, std::move(r.text)};
}

/// Runs handlers on their executor, and brings what became of them back to the bookkeeping's
/// strand: all that ended since it last looked at once.
class handler_run {
 public:
  /// A job whose handler ended.
  struct ended_job {
    std::shared_ptr<active_job> job;
    boost::asio::any_io_executor strand{};  ///< a coroutine's; another may have it now
  };

  /// Called on the bookkeeping's strand.
  using receiver = std::function<void(std::vector<ended_job>&)>;

  explicit handler_run(std::shared_ptr<worker_core> core) : core_{std::move(core)} {}

  /// Starts the handler of a job. Before a job that was not prepared its payload is decoded: that
  /// is work of the user's own functions, too.
  static void start(std::shared_ptr<handler_run> const& self, std::shared_ptr<active_job> job) {
    auto& core = *self->core_;
    job->note_deadline();
    auto const& handler = *job->handler;
    bool const pooled = !handler.executor;
    if (!handler.traits.is_coroutine && core.around.empty()) {
      auto step = [self, job = std::move(job)]() mutable {
        job->outcome = call(*self->core_, *job);
        bring(self, {std::move(job)});
      };
      // `post` would ask this executor each time whether it may run something at once.
      if (pooled) {
        core.handler_posts.execute(std::move(step));
      } else {
        boost::asio::post(handler.executor, std::move(step));
      }
      return;
    }
    auto strand = pooled ? self->take_strand() : boost::asio::make_strand(handler.executor);
    auto slot = job->cancel.slot();
    auto coroutine = run(self->core_, job);
    // One that is told to stop before it could begin ends with an exception of Asio's.
    auto ended = [self, strand, pooled,
                  job = std::move(job)](std::exception_ptr const& stopped) mutable {
      if (stopped) job->outcome = not_started();
      bring(self, {std::move(job), pooled ? std::move(strand) : boost::asio::any_io_executor{}});
    };
    worker_core::begin(strand, std::move(coroutine), slot, std::move(ended));
  }

  void deliver_to(receiver who) { receive_ = std::move(who); }

 private:
  /// Much may have happened since the claim: a handler never starts without its lease (F12), or
  /// when the worker stops. A renewal may end at this moment: the bookkeeping starts the handler
  /// again then.
  [[nodiscard]] static bool may_start(worker_core const& core, active_job const& job) {
    return !job.context.stop_requested() &&
           core.clock.steady_now() < job.starts_before.load(std::memory_order_relaxed);
  }

  [[nodiscard]] static handler_outcome not_started() {
    return {handler_outcome::ending::not_started, {}};
  }

  [[nodiscard]] static handler_outcome call(worker_core const& core, active_job& job) {
    if (!may_start(core, job)) return not_started();
    if (job.prepared == nullptr) {
      if (auto decoded = prepare(job); job.prepared == nullptr) return decoded;
    }
    try {
      return finished(job.prepared->call(job.context));
    } catch (...) {
      return thrown();
    }
  }

  [[nodiscard]] static boost::asio::awaitable<void> run(std::shared_ptr<worker_core> core,
                                                        std::shared_ptr<active_job> job) {
    co_await boost::asio::this_coro::reset_cancellation_state(
        boost::asio::enable_total_cancellation());
    job->outcome = not_started();
    // Asio begins a coroutine at once where it may, which is here: within the bookkeeping.
    co_await boost::asio::post(boost::asio::deferred);
    if (!may_start(*core, *job)) co_return;
    if (job->prepared == nullptr) {
      job->outcome = prepare(*job);
      if (job->prepared == nullptr) co_return;
    }
    try {
      if (core->around.empty()) {
        auto stored = co_await job->prepared->run(job->context);
        job->outcome = finished(std::move(stored));
      } else {
        handler_chain chain{core->around, *job->prepared, job->handler->traits.is_coroutine,
                            job->context};
        co_await chain.run(0);
        job->outcome = finished(std::move(chain.result));
      }
    } catch (...) {
      job->outcome = thrown();
    }
  }

  static void bring(std::shared_ptr<handler_run> const& self, ended_job ended) {
    bool first = false;
    {
      std::lock_guard const lock{self->mutex_};
      first = self->ended_.empty();
      self->ended_.push_back(std::move(ended));
    }
    if (first) boost::asio::post(self->core_->strand, [self] { self->deliver(); });
  }

  void deliver() {
    {
      std::lock_guard const lock{mutex_};
      ended_.swap(delivered_);
    }
    for (auto& ended : delivered_) {
      if (ended.strand) strands_.push_back(std::move(ended.strand));
    }
    if (receive_) receive_(delivered_);
    delivered_.clear();
  }

  /// For one coroutine at a time: making one for each would cost more than starting it.
  boost::asio::any_io_executor take_strand() {
    if (strands_.empty()) return boost::asio::make_strand(core_->handler_executor);
    auto strand = std::move(strands_.back());
    strands_.pop_back();
    return strand;
  }

  std::shared_ptr<worker_core> core_;
  receiver receive_;
  std::vector<boost::asio::any_io_executor> strands_;
  std::vector<ended_job> delivered_;  ///< kept for its memory
  std::mutex mutex_;                  ///< of what follows
  std::vector<ended_job> ended_;
};

}  // namespace weir::detail

#endif
