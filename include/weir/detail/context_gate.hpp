// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_CONTEXT_GATE_HPP
#define WEIR_DETAIL_CONTEXT_GATE_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

// For commands that nobody waits for, and that are started whenever something goes: also when the
// execution context that they need is gone. And for what needs the context for its own end.
namespace weir::detail {

/// Lets threads use an execution context that may be destroyed meanwhile: its end waits for those
/// inside, and lets nobody in any more.
template <class>
class basic_context_gate {
 public:
  [[nodiscard]] bool enter() noexcept {
    if ((inside_.fetch_add(one, std::memory_order_acquire) & closed) == 0) return true;
    leave();
    return false;
  }
  void leave() noexcept {
    if (inside_.fetch_sub(one, std::memory_order_release) == (one | closed)) inside_.notify_all();
  }
  void close() noexcept {
    inside_.fetch_or(closed, std::memory_order_acq_rel);
    for (auto n = inside_.load(std::memory_order_acquire); n != closed;
         n = inside_.load(std::memory_order_acquire)) {
      inside_.wait(n, std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint32_t closed = 1;
  static constexpr std::uint32_t one = 2;
  std::atomic<std::uint32_t> inside_{0};
};

using context_gate = basic_context_gate<void>;

/// Keeps the context of a gate while it lives, if it got in.
class gate_pass {
 public:
  /// @param gate null: always open
  explicit gate_pass(std::shared_ptr<context_gate> const& gate) noexcept
      : gate_{gate.get()},
        open_{gate_ == nullptr || gate_->enter()} {}
  gate_pass(gate_pass const&) = delete;
  gate_pass& operator=(gate_pass const&) = delete;
  ~gate_pass() {
    if (gate_ != nullptr && open_) gate_->leave();
  }

  [[nodiscard]] explicit operator bool() const noexcept { return open_; }

 private:
  context_gate* gate_;
  bool open_;
};

/// Something that may outlive an execution context, with parts that cannot, such as a strand.
struct goes_with_context {
  goes_with_context() = default;
  goes_with_context(goes_with_context const&) = delete;
  goes_with_context& operator=(goes_with_context const&) = delete;
  /// The context is shut down: nobody is inside the gate, nor will be.
  virtual void context_ends() noexcept = 0;

 protected:
  ~goes_with_context() = default;
};

/// Closes the gate of a context when that is shut down, and then tells who has asked for that.
template <class>
class basic_context_watch final : public boost::asio::execution_context::service {
 public:
  using key_type = basic_context_watch;
  static inline boost::asio::execution_context::id id;

  explicit basic_context_watch(boost::asio::execution_context& owner)
      : service{owner},
        gate_{std::make_shared<context_gate>()} {}

  [[nodiscard]] std::shared_ptr<context_gate> const& gate() const noexcept { return gate_; }

  void tell(std::weak_ptr<goes_with_context> who) {
    std::lock_guard const lock{mutex_};
    if (told_.size() == told_.capacity()) {
      std::erase_if(told_, [](auto const& one) { return one.expired(); });
      told_.reserve(2 * told_.size() + 1);
    }
    told_.push_back(std::move(who));
  }

 private:
  void shutdown() noexcept override {
    gate_->close();
    std::unique_lock lock{mutex_};
    auto const all = std::exchange(told_, {});
    lock.unlock();
    for (auto const& one : all) {
      if (auto const alive = one.lock()) alive->context_ends();
    }
  }

  std::shared_ptr<context_gate> gate_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<goes_with_context>> told_;
};

using context_watch = basic_context_watch<void>;

[[nodiscard]] inline context_watch& watch_of(boost::asio::any_io_executor const& executor) {
  auto& context = boost::asio::query(executor, boost::asio::execution::context);
  // The services of a context end in the reverse order of their making. A gate that is open when
  // strands have ended would let in what goes to them for nothing, again and again.
  if (!boost::asio::has_service<context_watch>(context)) {
    static_cast<void>(boost::asio::make_strand(executor));
  }
  return boost::asio::use_service<context_watch>(context);
}

/// An executor for what may outlive its context, which a strand may not: it goes with the context.
class context_bound_executor final : public goes_with_context {
 public:
  explicit context_bound_executor(boost::asio::any_io_executor ex) noexcept
      : executor_{std::move(ex)} {}
  ~context_bound_executor() = default;

  [[nodiscard]] static std::shared_ptr<context_bound_executor const> make(
      boost::asio::any_io_executor ex) {
    auto out = std::make_shared<context_bound_executor>(std::move(ex));
    if (out->executor_) watch_of(out->executor_).tell(out);
    return out;
  }

  [[nodiscard]] boost::asio::any_io_executor const& get() const noexcept { return executor_; }
  void context_ends() noexcept override { executor_ = {}; }

 private:
  boost::asio::any_io_executor executor_;
};

/// The gate of an executor's context.
[[nodiscard]] inline std::shared_ptr<context_gate> gate_of(
    boost::asio::any_io_executor const& executor) {
  return watch_of(executor).gate();
}

/// An executor that other threads post to, perhaps when its context has ended.
class gated_executor {
 public:
  explicit gated_executor(boost::asio::any_io_executor ex)
      : gate_{gate_of(ex)},
        executor_{context_bound_executor::make(std::move(ex))} {}

  [[nodiscard]] std::shared_ptr<context_gate> const& gate() const noexcept { return gate_; }
  /// To be called within the gate.
  [[nodiscard]] boost::asio::any_io_executor const& get() const noexcept {
    return executor_->get();
  }
  /// Drops the function if the context has ended.
  template <class F>
  void post(F f) const {
    gate_pass const inside{gate_};
    if (inside) boost::asio::post(get(), std::move(f));
  }

 private:
  std::shared_ptr<context_gate> gate_;
  std::shared_ptr<context_bound_executor const> executor_;
};

}  // namespace weir::detail

#endif
