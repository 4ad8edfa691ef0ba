// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_DEFERENCE_HPP
#define WEIR_WORKER_DEFERENCE_HPP

#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace weir::detail {

/// The queues with jobs of kinds that this worker does not know: it lets others claim first there.
///
/// A job that was put off becomes due for all workers at one instant. One that is first then is
/// first the next time, too, since those who came in vain leave the queue alone for longer. So a
/// worker of the version before could spend all attempts of a job that another one knows (F51).
class deference {
 public:
  /// @param head_start of the others, each time that such a queue becomes due
  explicit deference(duration head_start) noexcept : head_start_{head_start} {}

  [[nodiscard]] bool empty() const noexcept { return at_.empty(); }

  /// A job of this queue is of an unknown kind, and is put off. What else is due there now is
  /// others' first. Several workers may put it off, one after the other: so it is for so many
  /// delays.
  void put_off(std::string const& queue, steady_time now, duration delay) {
    constexpr std::size_t most = 1000;
    if (at_.size() >= most && !at_.contains(queue)) at_.erase(at_.begin());
    constexpr duration::rep delays = 32;
    auto& at = at_[queue];
    at.until = saturating_add(now, std::min(delay, limits::span / delays) * delays);
    at.from = saturating_add(now, head_start_);
    at.unknown = true;
  }
  /// A job of this queue is of a known kind.
  void met_known(std::string const& queue) {
    if (auto const found = at_.find(queue); found != at_.end()) found->second.unknown = false;
  }
  /// Was the last job of this queue of an unknown kind? Then there may be many of them, and each is
  /// out of others' reach as long as it is put off.
  [[nodiscard]] bool expects_unknown(std::string const& queue) const {
    auto const found = at_.find(queue);
    return found != at_.end() && found->second.unknown;
  }
  /// From when on a queue that is due now may be claimed from.
  [[nodiscard]] steady_time claimable_at(std::string const& queue, steady_time now) {
    auto const found = at_.find(queue);
    if (found == at_.end()) return steady_time::min();
    auto& at = found->second;
    if (now > at.until) {
      at_.erase(found);
      return steady_time::min();
    }
    at.found = true;
    if (at.from == steady_time::min()) at.from = saturating_add(now, head_start_);
    return at.from;
  }
  /// A look has found all that is due: where it did not come across one of these queues, others
  /// have claimed, and the next job is news.
  void looked() {
    for (auto& [queue, at] : at_) {
      if (!std::exchange(at.found, false)) at.from = steady_time::min();
    }
  }
  /// A claim found no more there.
  void emptied(std::string const& queue) {
    if (auto const found = at_.find(queue); found != at_.end()) {
      found->second.from = steady_time::min();
    }
  }

 private:
  struct turn {
    steady_time until = steady_time::min();
    steady_time from = steady_time::min();  ///< min: it was not due
    bool found = false;                     ///< by the look under way
    bool unknown = false;                   ///< the kind of the last job
  };

  duration head_start_;
  std::map<std::string, turn, std::less<>> at_;
};

}  // namespace weir::detail

#endif
