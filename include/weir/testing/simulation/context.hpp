// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_CONTEXT_HPP
#define WEIR_TESTING_SIMULATION_CONTEXT_HPP

#include "weir/testing/dice.hpp"
#include "weir/time.hpp"

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/execution_context.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>
#include <utility>

namespace weir::testing::simulation {

/// Something to be run once; may be move-only.
class task {
 public:
  task() = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, task>)
  explicit task(F&& f) : body_{std::make_unique<model<std::decay_t<F>>>(std::forward<F>(f))} {}

  void operator()() { std::exchange(body_, nullptr)->run(); }

 private:
  struct concept_ {
    concept_() = default;
    concept_(concept_ const&) = delete;
    concept_& operator=(concept_ const&) = delete;
    virtual ~concept_() = default;
    virtual void run() = 0;
  };
  template <class F>
  struct model final : concept_ {
    template <class G>
    explicit model(G&& g) : f(std::forward<G>(g)) {}
    void run() override {
      F last = std::move(f);
      std::move(last)();
    }
    F f;
  };
  std::unique_ptr<concept_> body_;
};

/// An execution context in one simulated process: what is executed on it waits until `run_one` is
/// called, which takes one of what is ready. Not thread-safe, as the whole simulation is not.
///
/// Destroying it is the death of its process: whatever waits on it is destroyed and never run, as
/// with `io_context`.
class simulated_context : public boost::asio::execution_context {
 public:
  class executor_type;

  simulated_context() = default;
  simulated_context(simulated_context const&) = delete;
  simulated_context& operator=(simulated_context const&) = delete;
  ~simulated_context() {
    shutdown();  // of the services: what is parked is destroyed, and that may make more ready
    discard();
    destroy();
    discard();
  }

  [[nodiscard]] inline executor_type get_executor() noexcept;

  [[nodiscard]] std::size_t ready() const noexcept { return ready_.size(); }

  /// Runs one of what is ready: the first, or one that the dice pick. Executors promise no order
  /// (strands do, by themselves).
  void run_one(dice& choices, bool in_order) {
    std::size_t const at = in_order ? 0 : choices.below(ready_.size());
    auto next = std::move(ready_[at]);
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    running_ = true;
    next();
    running_ = false;
  }

  /// How many executors say that there is work to come.
  [[nodiscard]] std::int64_t outstanding_work() const noexcept { return work_; }

 private:
  void discard() {
    while (!ready_.empty()) {
      auto const gone = std::move(ready_.front());
      ready_.pop_front();
    }
  }

  bool running_ = false;
  std::int64_t work_ = 0;
  std::deque<task> ready_;
};

/// As `io_context`'s: it executes at once what does not mind, where the context runs already.
class simulated_context::executor_type {
 public:
  executor_type(executor_type const& other) noexcept
      : context_{other.context_},
        bits_{other.bits_} {
    count(1);
  }
  executor_type& operator=(executor_type const& other) noexcept {
    executor_type copy{other};
    std::swap(context_, copy.context_);
    std::swap(bits_, copy.bits_);
    return *this;
  }
  ~executor_type() { count(-1); }

  friend bool operator==(executor_type const& a, executor_type const& b) noexcept {
    return a.context_ == b.context_ && a.bits_ == b.bits_;
  }
  friend bool operator!=(executor_type const& a, executor_type const& b) noexcept {
    return !(a == b);
  }

  [[nodiscard]] boost::asio::execution_context& query(
      boost::asio::execution::context_t) const noexcept {
    return *context_;
  }
  [[nodiscard]] boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t) const noexcept {
    if ((bits_ & never) != 0) return boost::asio::execution::blocking.never;
    return boost::asio::execution::blocking.possibly;
  }
  [[nodiscard]] boost::asio::execution::relationship_t query(
      boost::asio::execution::relationship_t) const noexcept {
    if ((bits_ & continuation) != 0) return boost::asio::execution::relationship.continuation;
    return boost::asio::execution::relationship.fork;
  }
  [[nodiscard]] boost::asio::execution::outstanding_work_t query(
      boost::asio::execution::outstanding_work_t) const noexcept {
    if ((bits_ & tracked) != 0) return boost::asio::execution::outstanding_work.tracked;
    return boost::asio::execution::outstanding_work.untracked;
  }

  [[nodiscard]] executor_type require(
      boost::asio::execution::blocking_t::possibly_t) const noexcept {
    return {context_, bits_ & ~never};
  }
  [[nodiscard]] executor_type require(boost::asio::execution::blocking_t::never_t) const noexcept {
    return {context_, bits_ | never};
  }
  [[nodiscard]] executor_type require(
      boost::asio::execution::relationship_t::fork_t) const noexcept {
    return {context_, bits_ & ~continuation};
  }
  [[nodiscard]] executor_type require(
      boost::asio::execution::relationship_t::continuation_t) const noexcept {
    return {context_, bits_ | continuation};
  }
  [[nodiscard]] executor_type require(
      boost::asio::execution::outstanding_work_t::tracked_t) const noexcept {
    return {context_, bits_ | tracked};
  }
  [[nodiscard]] executor_type require(
      boost::asio::execution::outstanding_work_t::untracked_t) const noexcept {
    return {context_, bits_ & ~tracked};
  }

  template <class F>
  void execute(F&& f) const {
    if ((bits_ & never) == 0 && context_->running_) {
      std::decay_t<F> now(std::forward<F>(f));
      std::move(now)();
    } else {
      context_->ready_.emplace_back(std::forward<F>(f));
    }
  }

 private:
  friend class simulated_context;

  static constexpr unsigned never = 1;
  static constexpr unsigned continuation = 2;
  static constexpr unsigned tracked = 4;

  executor_type(simulated_context* context, unsigned bits) noexcept
      : context_{context},
        bits_{bits} {
    count(1);
  }
  void count(std::int64_t by) const noexcept {
    if ((bits_ & tracked) != 0) context_->work_ += by;
  }

  simulated_context* context_;
  unsigned bits_;
};

simulated_context::executor_type simulated_context::get_executor() noexcept { return {this, 0}; }

}  // namespace weir::testing::simulation

#endif
