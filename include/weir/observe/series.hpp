// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_SERIES_HPP
#define WEIR_OBSERVE_SERIES_HPP

#include "weir/time.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Counters and histograms. Commands and jobs are counted in cells, which one thread writes without
// a locked instruction; what happens rarely, in counters.
namespace weir::detail {

/// A number that only grows. Any number of threads.
class metric_counter {
 public:
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A number that only grows. One thread at a time adds, any number reads.
template <class Number>
class basic_metric_cell {
 public:
  basic_metric_cell() = default;
  basic_metric_cell(basic_metric_cell const& other) noexcept : value_{other.value()} {}
  basic_metric_cell& operator=(basic_metric_cell const&) = delete;
  ~basic_metric_cell() = default;

  void add(Number n = 1) noexcept { value_.store(value() + n, std::memory_order_relaxed); }
  void add(basic_metric_cell const& other) noexcept { add(other.value()); }
  [[nodiscard]] Number value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Number> value_{0};
};
using metric_cell = basic_metric_cell<std::uint64_t>;

/// How long things took. One thread at a time adds; one that reads meanwhile may miss the last.
class histogram_cells {
 public:
  /// @param bounds of its buckets, growing; outlive this
  explicit histogram_cells(std::span<duration const> bounds)
      : bounds_{bounds},
        counts_(bounds.size() + 1),
        upto_{bounds.front()} {}

  void add(duration d) noexcept {
    d = std::max(d, duration::zero());
    if (d <= above_ || d > upto_) find(d);  // most are in the bucket of the one before
    counts_[bucket_].add();
    sum_.add(static_cast<double>(d.count()));
  }
  /// @param other of the same bounds
  void add(histogram_cells const& other) noexcept {
    for (std::size_t i = 0; i != counts_.size(); ++i) counts_[i].add(other.counts_[i]);
    sum_.add(other.sum_);
  }

  [[nodiscard]] std::span<duration const> bounds() const noexcept { return bounds_; }
  /// Of each bucket, and of what is above all of them.
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> out;
    out.reserve(counts_.size());
    for (auto const& c : counts_) out.push_back(c.value());
    return out;
  }
  /// How many.
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t out = 0;
    for (auto const& c : counts_) out += c.value();
    return out;
  }
  /// In seconds: ages of delayed jobs add up to more than a duration holds.
  [[nodiscard]] double sum() const noexcept { return sum_.value() / 1e9; }

 private:
  void find(duration d) noexcept {
    auto const at = std::ranges::lower_bound(bounds_, d);
    bucket_ = static_cast<std::size_t>(at - bounds_.begin());
    above_ = at == bounds_.begin() ? duration{-1} : *(at - 1);
    upto_ = at == bounds_.end() ? duration::max() : *at;
  }

  std::span<duration const> bounds_;
  std::vector<metric_cell> counts_;
  basic_metric_cell<double> sum_;  ///< nanoseconds
  std::size_t bucket_ = 0;  ///< the last that was added to: those above `above_`, up to `upto_`
  duration above_{-1};
  duration upto_;
};

}  // namespace weir::detail

#endif
