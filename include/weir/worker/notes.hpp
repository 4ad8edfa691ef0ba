// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_NOTES_HPP
#define WEIR_WORKER_NOTES_HPP

#include "weir/detail/context_gate.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/system_executor.hpp>

#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Notes that a handler wants kept with its job, until a renewal has stored them. Handlers write
/// them in any thread, the bookkeeping takes them on its strand. Most handlers never do, and pay
/// for no more than an empty pointer and a mutex.
class handler_notes {
 public:
  /// Called on the strand, once: it is stored, or why not.
  using waiter = std::function<void(error_code)>;

  /// The notes that one renewal takes along.
  struct load {
    std::string progress;
    std::string checkpoint;
    std::vector<waiter> waiters;

    [[nodiscard]] bool empty() const noexcept {
      return progress.empty() && checkpoint.empty() && waiters.empty();
    }
  };

  /// For the worker, before the handler starts.
  /// @param job    of which this is a part
  /// @param wanted called in any thread when there is something to be stored, with `job`
  /// @param by     the bookkeeping, whose execution context may end before the handler
  void kept_by(std::weak_ptr<void> job, void (*wanted)(void*) noexcept,
               std::shared_ptr<gated_executor const> by) noexcept {
    job_ = std::move(job);
    wanted_ = wanted;
    bookkeeping_ = std::move(by);
  }
  [[nodiscard]] std::shared_ptr<gated_executor const> const& bookkeeping() const noexcept {
    return bookkeeping_;
  }
  /// Keeps the job that this is a part of.
  [[nodiscard]] std::shared_ptr<void> keep() const noexcept { return job_.lock(); }
  /// While it lives the bookkeeping's context does not end. False: that has ended.
  [[nodiscard]] gate_pass enter() const noexcept {
    return gate_pass{bookkeeping_ ? bookkeeping_->gate() : nullptr};
  }
  /// For the worker: the strand of a coroutine, to stand as long as that runs; null: of none.
  ///
  /// @return the one before
  boost::asio::any_io_executor const* runs_on(boost::asio::any_io_executor const* strand) noexcept {
    return strand_.exchange(strand);
  }
  /// Where those without an executor of their own are called: the coroutine's strand, or the
  /// bookkeeping's.
  [[nodiscard]] boost::asio::any_io_executor get_executor() const {
    if (auto const* const strand = strand_.load()) return *strand;
    auto const inside = enter();
    if (!inside) return boost::asio::system_executor{};
    return executor_inside();
  }
  /// The bookkeeping's, for who has entered.
  [[nodiscard]] boost::asio::any_io_executor executor_inside() const {
    if (!bookkeeping_) return boost::asio::system_executor{};
    return bookkeeping_->get();
  }

  // ---------------------------------------------------------------------------------- any thread

  void progress(std::string text) {
    {
      std::lock_guard const lock{mutex_};
      auto& to = make();
      bool const known = !to.waiting.progress.empty();
      to.waiting.progress = std::move(text);
      if (known) return;
    }
    tell();
  }
  /// @param done may be empty
  void checkpoint(std::string bytes, waiter done) {
    {
      std::lock_guard const lock{mutex_};
      auto& to = make();
      if (!bytes.empty()) to.waiting.checkpoint = std::move(bytes);
      if (done) to.waiting.waiters.push_back(std::move(done));
      if (std::exchange(to.urgent, true)) return;
    }
    tell();
    if (wanted_ == nullptr) end(take(), {});  // no worker: somebody tests a handler
  }

  // -------------------------------------------------------------------------------- on the strand

  /// Is there anything that may not be stored yet?
  [[nodiscard]] bool unstored() const {
    std::lock_guard const lock{mutex_};
    return body_ != nullptr && (body_->under_way || has_more(*body_));
  }
  /// Was a checkpoint not stored because the lease was over, as far as it is known here?
  [[nodiscard]] bool lost() const {
    std::lock_guard const lock{mutex_};
    return body_ != nullptr && body_->lost;
  }
  /// Is there something to be stored? `urgent`: more than progress, which may wait.
  [[nodiscard]] bool waiting() const {
    std::lock_guard const lock{mutex_};
    return body_ != nullptr && has_more(*body_);
  }
  [[nodiscard]] bool urgent() const {
    std::lock_guard const lock{mutex_};
    return body_ != nullptr && body_->urgent;
  }

  [[nodiscard]] load take() {
    std::lock_guard const lock{mutex_};
    if (body_ == nullptr) return {};
    body_->urgent = false;
    body_->under_way = has_more(*body_);
    return std::exchange(body_->waiting, {});
  }
  /// It is stored, or never will be.
  void end(load taken, error_code ec) {
    {
      std::lock_guard const lock{mutex_};
      if (body_ != nullptr) {
        body_->under_way = false;
        body_->lost = body_->lost || (ec == errc::lease_lost && !taken.checkpoint.empty());
      }
    }
    for (auto const& w : taken.waiters) {
      try {
        w(ec);
      } catch (...) {  // no memory to tell it: it is told when it is destroyed
      }
    }
  }
  /// It was not stored, and is to be tried again. What was noted meanwhile counts.
  void put_back(load taken) {
    std::lock_guard const lock{mutex_};
    if (body_ == nullptr) return;
    body_->under_way = false;
    auto& to = body_->waiting;
    if (to.progress.empty()) to.progress = std::move(taken.progress);
    if (to.checkpoint.empty()) to.checkpoint = std::move(taken.checkpoint);
    to.waiters.insert(to.waiters.begin(), std::make_move_iterator(taken.waiters.begin()),
                      std::make_move_iterator(taken.waiters.end()));
    body_->urgent = body_->urgent || !to.checkpoint.empty() || !to.waiters.empty();
  }

 private:
  struct body {
    load waiting;
    bool urgent = false;     ///< more than progress
    bool under_way = false;  ///< a renewal has taken some
    bool lost = false;       ///< a checkpoint: the lease was over
  };

  [[nodiscard]] static bool has_more(body const& b) noexcept {
    return b.urgent || !b.waiting.progress.empty() || !b.waiting.checkpoint.empty();
  }
  body& make() {
    if (body_ == nullptr) body_ = std::make_unique<body>();
    return *body_;
  }
  void tell() const {
    if (auto const job = job_.lock()) wanted_(job.get());
  }

  std::weak_ptr<void> job_;
  void (*wanted_)(void*) noexcept = nullptr;
  std::shared_ptr<gated_executor const> bookkeeping_;
  std::atomic<boost::asio::any_io_executor const*> strand_{nullptr};
  mutable std::mutex mutex_;  ///< of what follows
  std::unique_ptr<body> body_;
};

}  // namespace weir::detail

#endif
