// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_OS_ENTROPY_HPP
#define WEIR_DETAIL_OS_ENTROPY_HPP

#include <boost/uuid/random_generator.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#if !defined(_WIN32) && __has_include(<pthread.h>)
#define WEIR_HAS_FORK 1
#include <pthread.h>
#endif

namespace weir::detail {

/// How often this process was forked off: a child must not go on with its parent's random numbers.
inline std::atomic<std::uint32_t> forks{0};

#ifdef WEIR_HAS_FORK
inline int const forks_are_counted =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
#endif

/// 122 random bits in 128, of a cryptographic generator, one in each thread, that the operating
/// system has seeded. All bits of `[0] ^ [1]` are random: the six that are not (a version 4 UUID's)
/// stand in different places.
[[nodiscard]] inline std::array<std::uint64_t, 2> os_entropy() {
  struct generator {
    boost::uuids::random_generator next;
    std::uint32_t born = forks.load(std::memory_order_relaxed);
  };
  thread_local generator mine;
  if (mine.born != forks.load(std::memory_order_relaxed)) [[unlikely]]
    mine = generator{};

  auto const id = mine.next();
  std::array<std::uint64_t, 2> bits;
  static_assert(sizeof(id) == sizeof(bits));
  std::memcpy(&bits, &id, sizeof(bits));
  return bits;
}

}  // namespace weir::detail

#endif
