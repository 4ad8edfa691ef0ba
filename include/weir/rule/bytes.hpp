// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_BYTES_HPP
#define WEIR_RULE_BYTES_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

/// @file
/// The size of a job is that of its texts. Ten thousand jobs may be in one command or one answer,
/// and each may be a megabyte: without a bound in bytes together they exceed what an engine takes
/// in one message, and whatever shares the connection fails with them (F59, F60).

namespace weir::rule {

/// @{

/// Bytes of the texts of a job.
[[nodiscard]] constexpr std::size_t bytes_of(new_job const& j) noexcept {
  return j.kind.size() + j.payload.size() + j.unique_key.size() + j.headers.size();
}
[[nodiscard]] constexpr std::size_t bytes_of(finished_job const& j) noexcept {
  return j.result.size();
}
[[nodiscard]] constexpr std::size_t bytes_of(leased_job const& j) noexcept {
  return j.kind.size() + j.payload.size() + j.unique_key.size() + j.headers.size() + j.memo.size() +
         j.checkpoint.size();
}
[[nodiscard]] constexpr std::size_t bytes_of(job const& j) noexcept {
  return j.kind.size() + j.payload.size() + j.unique_key.size() + j.headers.size() + j.memo.size() +
         j.progress.size() + j.checkpoint.size() + j.result.size() + j.reason.size();
}

/// @}

/// Do the jobs of one command keep to `limits::batch_bytes` together?
template <class... Jobs>
[[nodiscard]] constexpr bool within_batch_bytes(std::span<Jobs const>... jobs) noexcept {
  std::size_t left = limits::batch_bytes;
  auto const fits = [&](auto const& j) {
    auto const bytes = bytes_of(j);
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  return (std::ranges::all_of(jobs, fits) && ...);
}

/// The bytes that the answer to a command may have, where those are many; otherwise 0.
template <class C>
[[nodiscard]] constexpr std::size_t largest_answer([[maybe_unused]] C const& c) noexcept {
  constexpr auto texts = 2 * limits::key_size + limits::headers_size + limits::memo_size +
                         limits::progress_size + limits::checkpoint_size + limits::reason_size +
                         limits::payload_size;
  [[maybe_unused]] constexpr auto rows = [](std::size_t limit, std::size_t each) {
    return std::min(limits::answer_bytes, limit * each);
  };
  if constexpr (std::is_same_v<C, command::dequeue_jobs>) {
    return rows(c.limit, texts);
  } else if constexpr (std::is_same_v<C, command::obtain_lease>) {
    return texts;
  } else if constexpr (std::is_same_v<C, command::find_job>) {
    return texts + limits::payload_size;  // its result
  } else if constexpr (std::is_same_v<C, command::peek_jobs> ||
                       std::is_same_v<C, command::list_dead_letters> ||
                       std::is_same_v<C, command::list_jobs>) {
    return rows(c.limit, texts + limits::payload_size);
  } else if constexpr (std::is_same_v<C, command::scan_visible_queues> ||
                       std::is_same_v<C, command::list_queues>) {
    return rows(c.limit, limits::key_size);
  } else if constexpr (std::is_same_v<C, command::inspect_permits>) {
    return rows(c.limit, limits::holder_size + 64);  // its fence, its end, and what surrounds it
  } else {
    return 0;
  }
}

/// The room in one answer.
class answer_room {
 public:
  /// Takes room for a row's texts. False: they exceed what is left, and the answer ends before
  /// that row. The first row always fits.
  [[nodiscard]] constexpr bool take(std::size_t bytes) noexcept {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  // A job's payload and its result, each of a megabyte at most, and its small texts.
  static_assert(2 * limits::payload_size + 2 * limits::key_size + limits::headers_size +
                    limits::memo_size + limits::progress_size + limits::checkpoint_size +
                    limits::reason_size <=
                limits::answer_bytes);

  std::size_t left_ = limits::answer_bytes;
};

}  // namespace weir::rule

#endif
