// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_SAMPLES_HPP
#define WEIR_BENCH_SAMPLES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace weir_bench {

/// One figure, as often as it was measured: its median is what is reported, its spread is how far
/// to trust it.
class samples {
 public:
  samples() = default;
  samples(double only) : all_{only} {}  // NOLINT: a figure that was measured once
  samples(std::initializer_list<double> all) : all_{all} {}
  explicit samples(std::vector<double> all) : all_{std::move(all)} {}

  void push_back(double figure) { all_.push_back(figure); }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] double operator[](std::size_t i) const { return all_[i]; }

  /// The value below which `share` (0 to 1) of the measurements are; between two, in proportion.
  /// 0 where there are none.
  [[nodiscard]] double quantile(double share) const {
    if (all_.empty()) return 0;
    auto sorted = all_;
    std::ranges::sort(sorted);
    auto const at = share * static_cast<double>(sorted.size() - 1);
    auto const below = static_cast<std::size_t>(at);
    auto const above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
  }
  [[nodiscard]] double median() const { return quantile(0.5); }

  /// How wide the middle half of the measurements is, as a share of their median; of fewer than
  /// four, how far the outermost are apart.
  [[nodiscard]] double spread() const {
    auto const middle = median();
    if (all_.size() < 2 || middle == 0) return 0;
    auto const width =
        all_.size() < 4 ? quantile(1) - quantile(0) : quantile(0.75) - quantile(0.25);
    return std::abs(width / middle);
  }

 private:
  std::vector<double> all_;
};

/// What `ours` is of `reference`, round by round where they were measured in turns, so that what
/// the machine did meanwhile falls on both.
inline samples ratios(samples const& ours, samples const& reference) {
  samples out;
  if (ours.size() == reference.size()) {
    for (std::size_t i = 0; i != ours.size(); ++i) out.push_back(ours[i] / reference[i]);
  } else if (!ours.empty() && !reference.empty()) {
    out.push_back(ours.median() / reference.median());
  }
  return out;
}

}  // namespace weir_bench

#endif
