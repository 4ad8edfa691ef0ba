// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_PACED_HPP
#define WEIR_TABLE_PACED_HPP

#include <coroutine>
#include <cstddef>
#include <utility>

namespace weir::detail {

/// Long work that is done in portions, between which its caller does other things: a coroutine that
/// waits at each `co_await paced::pause{}` until it is told to go on, and ends with whether it
/// succeeded. What it throws comes out of `go_on`, and ends it.
class paced {
 public:
  struct promise_type;
  using pause = std::suspend_always;

  paced(paced&& other) noexcept : frame_{std::exchange(other.frame_, {})} {}
  paced(paced const&) = delete;
  paced& operator=(paced const&) = delete;
  ~paced() {
    if (frame_) frame_.destroy();
  }

  /// Goes on to its next pause, or the one after so many. False: it has ended.
  bool go_on(std::size_t pauses = 1);
  /// Once it has ended.
  [[nodiscard]] bool succeeded() const noexcept;
  /// Goes on until it has ended.
  bool finish() {
    while (go_on()) {
    }
    return succeeded();
  }

 private:
  explicit paced(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}

  std::coroutine_handle<promise_type> frame_;
};

struct paced::promise_type {
  bool succeeded = false;

  paced get_return_object() noexcept {
    return paced{std::coroutine_handle<promise_type>::from_promise(*this)};
  }
  static std::suspend_always initial_suspend() noexcept { return {}; }
  static std::suspend_always final_suspend() noexcept { return {}; }
  void return_value(bool s) noexcept { succeeded = s; }
  static void unhandled_exception() { throw; }
};

inline bool paced::go_on(std::size_t pauses) {
  for (; pauses != 0 && !frame_.done(); --pauses) frame_.resume();
  return !frame_.done();
}

inline bool paced::succeeded() const noexcept { return frame_.promise().succeeded; }

}  // namespace weir::detail

#endif
