// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_CONTENTION_HPP
#define WEIR_WORKER_CONTENTION_HPP

#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace weir::detail {

/// How much a worker meets others at the queues that it looks up.
///
/// Workers that look at the same time are told of the same queues, those that are due for the
/// longest, and all but one of them claim in vain. Who does so a few times in a row gives the round
/// up, and looks at more queues the next time, of which it takes some by chance; less so again once
/// nobody is in the way. So a thousand workers need few claims for a job.
class contention {
 public:
  /// How many times as many queues are to be looked at as are to be claimed from.
  [[nodiscard]] std::uint32_t spread() const noexcept { return spread_; }

  /// To be called before each look.
  void looks() noexcept {
    if (!std::exchange(lost_any_, false)) spread_ = std::max(spread_ / 2, 1U);
  }
  /// A claim gave something, or says nothing of others.
  void won() noexcept { in_a_row_ = 0; }
  /// It gave nothing. Most often another worker was first, and has moved the queue's pointer.
  /// @return it is the second time for this queue: its pointer may be early, and nobody moves it
  [[nodiscard]] bool lost(std::string const& queue) {
    constexpr std::uint32_t few = 3;
    constexpr std::uint32_t widest = 64;
    lost_any_ = true;
    if (++in_a_row_ == few) {
      in_a_row_ = 0;
      gives_up_ = true;
      spread_ = std::min(2 * spread_, widest);
    }
    if (lost_once_.erase(queue) != 0) return true;
    constexpr std::size_t most = 1000;
    if (lost_once_.size() == most) lost_once_.clear();
    lost_once_.insert(queue);
    return false;
  }
  /// Is the rest of the round to be given up? Once.
  [[nodiscard]] bool gives_up() noexcept { return std::exchange(gives_up_, false); }

 private:
  std::uint32_t spread_ = 1;
  std::uint32_t in_a_row_ = 0;
  bool lost_any_ = false;  ///< since the last look
  bool gives_up_ = false;
  boost::unordered_flat_set<std::string> lost_once_;
};

}  // namespace weir::detail

#endif
