// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_HINT_LINE_HPP
#define WEIR_DETAIL_HINT_LINE_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/parking.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// A wait for a hint.
using hint_waiter = std::shared_ptr<resumable<error_code, hint>>;

/// Ends one. False: it had ended, or there was no memory to post its end; a hint promises nothing.
inline bool wake(hint_waiter const& w, error_code ec = {}) noexcept {
  try {
    return w->resume(ec, hint{});
  } catch (...) {
    return false;
  }
}

/// Those who wait for the same hints. For one thread at a time.
class hint_line {
 public:
  /// Forgets those that have ended, all of them once in a while.
  void add(hint_waiter w) {
    if (all_.size() >= crowded_) {
      drop_ended();
      crowded_ = 2 * all_.size() + 8;
    }
    all_.push_back(std::move(w));
  }
  /// Those that have ended count until they are dropped.
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  void drop_ended() {
    std::erase_if(all_, [](auto const& w) { return !w->waiting(); });
  }
  [[nodiscard]] bool any_waits() const noexcept {
    return std::ranges::any_of(all_, [](auto const& w) { return w->waiting(); });
  }

  /// The first one, which does not wait here any more.
  [[nodiscard]] hint_waiter take_first() noexcept {
    auto first = std::move(all_.front());
    all_.pop_front();
    return first;
  }
  /// All of them.
  [[nodiscard]] std::list<hint_waiter> take() noexcept { return std::exchange(all_, {}); }

  /// The first one that still waits. False: there was none.
  bool wake_one() noexcept {
    while (!all_.empty()) {
      if (wake(take_first())) return true;
    }
    return false;
  }
  void wake_all(error_code ec = {}) noexcept {
    for (auto const& w : take()) wake(w, ec);
  }

 private:
  // First come, first woken. A list, since an empty one allocates nothing and cannot throw.
  std::list<hint_waiter> all_;
  std::size_t crowded_ = 8;
};

/// The waits of holders that are to be told when a job of theirs is cancelled. For one thread at a
/// time.
class cancel_lines {
 public:
  void add(std::string_view holder, hint_waiter w) {
    drop_ended();  // there are as many holders as workers
    lines_[std::string{holder}].add(std::move(w));
  }
  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  void drop_ended() {
    for (auto& [holder, line] : lines_) line.drop_ended();
    std::erase_if(lines_, [](auto const& line) { return line.second.empty(); });
  }

  /// Those of a holder, which do not wait here any more.
  [[nodiscard]] hint_line take(std::string_view holder) noexcept {
    auto const found = lines_.find(holder);
    if (found == lines_.end()) return {};
    auto out = std::move(found->second);
    lines_.erase(found);
    return out;
  }
  void wake_all(error_code ec = {}) noexcept {
    for (auto& [holder, line] : std::exchange(lines_, {})) line.wake_all(ec);
  }

 private:
  std::map<std::string, hint_line, std::less<>> lines_;
};

}  // namespace weir::detail

#endif
