// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_OPTIONS_HPP
#define WEIR_STORE_MEMORY_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

namespace weir {

/// The bounds of a memory store, each from 1. Reaching one is `errc::store_full` (a bucket:
/// `decision::shed`); nothing is changed then, and nothing that is held or spent is forgotten to
/// make room.
struct memory_options {
  std::size_t max_buckets = 1'000'000;  ///< keys with a rate limit that are not full; about 64
                                        ///< bytes each
  std::size_t max_permits = 1'000'000;  ///< permits and tickets of all keys together
  std::size_t max_locks = 1'000'000;    ///< held locks
  std::size_t max_jobs = 10'000'000;    ///< records of jobs in every state, over all queues
  std::uint32_t shards = 1;  ///< of the job queues, from 1 to 1,024: queues of different shards
                             ///< share nothing
};

}  // namespace weir

#endif
