// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_BUDGET_COUNT_HPP
#define WEIR_BENCH_BUDGET_COUNT_HPP

#include <valgrind/callgrind.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace weir_bench {

constexpr std::uint64_t often = 10'000;

/// Counts `work`, which does `n` things.
template <class Work>
void count(char const* name, std::uint64_t n, Work&& work) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  std::forward<Work>(work)();
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("%s\t%llu\n", name, static_cast<unsigned long long>(n));
  std::fflush(stdout);
}

/// Counts a step, after as many that make everything warm.
template <class Step>
void count_each(char const* name, Step&& step) {
  auto const all = [&] {
    for (std::uint64_t i = 0; i != often; ++i) step();
  };
  all();
  count(name, often, all);
}

inline void must(bool fine) {
  if (!fine) throw std::runtime_error{"a step did not do what is to be counted"};
}

// The paths, each noun's in a file of its own: what a compiler inlines into one is not to depend on
// the others.
void buckets();
void leases();
void jobs();
void metrics();

}  // namespace weir_bench

#endif
