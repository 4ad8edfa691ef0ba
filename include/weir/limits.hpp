// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LIMITS_HPP
#define WEIR_LIMITS_HPP

#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>

/// The bounds of what may be asked of any store. They are checked before any I/O; a store may be
/// stricter.
namespace weir::limits {

inline constexpr std::size_t key_size = 1024;         ///< bytes of a key, queue name or job kind
inline constexpr std::size_t holder_size = 128;       ///< bytes of a holder id
inline constexpr std::size_t payload_size = 1 << 20;  ///< bytes of a job's payload, and of its
                                                      ///< result
inline constexpr std::size_t payload_depth = 256;  ///< arrays and objects within each other in the
                                                   ///< JSON form of a job
inline constexpr std::size_t schedule_name_size = 255;  ///< bytes of the name of a schedule
inline constexpr std::size_t scheduled_payload_size = 128U << 10U;  ///< bytes of a scheduled job
inline constexpr std::size_t memo_size = 1024;  ///< bytes of what a worker notes on a snoozed job
inline constexpr std::size_t headers_size = 4096;   ///< bytes of a job's headers, as `job_headers`
                                                    ///< writes them
inline constexpr std::size_t progress_size = 1024;  ///< bytes of a job's progress, as
                                                    ///< `job_progress` writes it
inline constexpr std::size_t checkpoint_size = 64 << 10;  ///< bytes of a job's checkpoint
inline constexpr std::size_t reason_size = 4096;  ///< bytes kept of a failure's reason; longer ones
                                                  ///< are cut
inline constexpr std::uint32_t permits = 1'000'000;   ///< the largest concurrency limit
inline constexpr std::uint32_t attempts = 1'000'000;  ///< the largest max_attempts
inline constexpr std::uint32_t batch = 10'000;        ///< jobs in one command, and rows in one page
inline constexpr std::size_t batch_bytes = 16 << 20;  ///< bytes of the texts of all jobs in one
                                                      ///< command; a job that is legal alone fits
inline constexpr std::size_t answer_bytes = 4 << 20;  ///< bytes of the texts in one answer: it ends
                                                      ///< before the row that would exceed them,
                                                      ///< and gives at least one
inline constexpr std::size_t quotas = 4;              ///< quotas on one key
inline constexpr duration span = std::chrono::hours{24 * 3650};  ///< the longest TTL, delay, wait,
                                                                 ///< deadline, retention

}  // namespace weir::limits

#endif
