// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_ALLOCATIONS_HPP
#define WEIR_BENCH_ALLOCATIONS_HPP

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

/// @file
/// Counts what a program takes of the heap: it replaces the global operators, so exactly one file
/// of a program may include it. Sizes are those that the allocator really gives, rounding included.

namespace weir_bench {

/// Of the whole program, all threads together.
struct allocations {
  static inline std::atomic<std::uint64_t> made{0};  ///< calls of `operator new`
  static inline std::atomic<std::size_t> held{0};    ///< bytes that were not given back yet

  static void* note(void* p) {
    if (p == nullptr) throw std::bad_alloc{};
    made.fetch_add(1, std::memory_order_relaxed);
    held.fetch_add(::malloc_usable_size(p), std::memory_order_relaxed);
    return p;
  }
  static void give_back(void* p) noexcept {
    held.fetch_sub(::malloc_usable_size(p), std::memory_order_relaxed);
    std::free(p);
  }
};

}  // namespace weir_bench

// Not inlined: g++ 12 otherwise sees memory of one operator go back by another and warns.
[[gnu::noinline]] void* operator new(std::size_t n) {
  return weir_bench::allocations::note(std::malloc(n == 0 ? 1 : n));
}
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) {
  auto const alignment = static_cast<std::size_t>(a);
  return weir_bench::allocations::note(
      std::aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment));
}
[[gnu::noinline]] void operator delete(void* p) noexcept { weir_bench::allocations::give_back(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  weir_bench::allocations::give_back(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept {
  weir_bench::allocations::give_back(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  weir_bench::allocations::give_back(p);
}

#endif
