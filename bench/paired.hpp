// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_PAIRED_HPP
#define WEIR_BENCH_PAIRED_HPP

#include "samples.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace weir_bench {

/// Takes several measurements in turn, `rounds` times, every other round backwards, after one round
/// that does not count: whatever else the machine does, and whatever grows warm, falls on all.
///
/// @param measurements each returns one figure
/// @returns for each, in their order, what it returned: the n-th of one belongs to the n-th of the
///   others
inline std::vector<samples> in_turn(std::size_t rounds,
                                    std::vector<std::function<double()>> const& measurements) {
  std::vector<samples> out(measurements.size());
  for (auto const& measure : measurements) (void)measure();
  for (std::size_t round = 0; round != rounds; ++round) {
    for (std::size_t i = 0; i != measurements.size(); ++i) {
      auto const which = round % 2 == 0 ? i : measurements.size() - 1 - i;
      out[which].push_back(measurements[which]());
    }
  }
  return out;
}

/// The time that `work` takes, in nanoseconds.
template <class Work>
double nanoseconds_of(Work&& work) {
  auto const start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>{std::chrono::steady_clock::now() - start}.count();
}

/// The time of one `step()`, in nanoseconds, as the mean of `n`.
template <class Step>
double nanoseconds_each(std::uint64_t n, Step&& step) {
  return nanoseconds_of([&] {
           for (std::uint64_t i = 0; i != n; ++i) step();
         }) /
         static_cast<double>(n);
}

/// How many of `n` things in a second `work`, which does them all, gets done.
template <class Work>
double per_second(std::uint64_t n, Work&& work) {
  return static_cast<double>(n) * 1e9 / nanoseconds_of(work);
}

}  // namespace weir_bench

#endif
