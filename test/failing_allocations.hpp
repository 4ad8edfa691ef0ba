// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_FAILING_ALLOCATIONS_HPP
#define WEIR_TEST_FAILING_ALLOCATIONS_HPP

#include <cstddef>
#include <cstdlib>
#include <new>

// Lets an allocation of a thread fail. It defines `operator new`, so that it belongs into
// one source of a program that is by itself.
namespace weir_test {

inline thread_local int allocations_left = -1;  ///< before one fails; negative: none does
inline thread_local bool all_fail = false;      ///< that one, and all after it

}  // namespace weir_test

// Never inlined: the compiler must not see that what is deleted was allocated by malloc.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (weir_test::allocations_left >= 0 && weir_test::allocations_left-- == 0) {
    if (weir_test::all_fail) weir_test::allocations_left = 0;
    throw std::bad_alloc{};
  }
  if (void* const p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t size, std::nothrow_t const&) noexcept {
  try {
    return operator new(size);
  } catch (std::bad_alloc const&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

#endif
