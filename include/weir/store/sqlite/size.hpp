// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_SIZE_HPP
#define WEIR_STORE_SQLITE_SIZE_HPP

#include "weir/command/list.hpp"
#include "weir/rule/bytes.hpp"

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace weir::detail {

/// Bytes of the texts of the jobs or names in a command or an answer; 0 for all others, which are
/// small.
template <class T>
[[nodiscard]] std::size_t sqlite_bytes_of(T const& all) noexcept {
  std::size_t bytes = 0;
  if constexpr (requires { all.jobs; }) {
    bytes = sqlite_bytes_of(all.jobs);
  } else if constexpr (requires { all.queues; }) {
    bytes = sqlite_bytes_of(all.queues);
  } else if constexpr (requires { rule::bytes_of(*all.begin()); }) {
    for (auto const& row : all) bytes += rule::bytes_of(row);
  } else if constexpr (requires { rule::bytes_of(*all); }) {
    if (all) bytes = rule::bytes_of(*all);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    for (auto const& name : all) bytes += name.size();
  }
  return bytes;
}

/// Bytes of what an extension of a lease keeps with its job.
template <class C>
[[nodiscard]] std::size_t sqlite_notes_of([[maybe_unused]] C const& c) noexcept {
  if constexpr (requires { c.checkpoint; }) return c.progress.size() + c.checkpoint.size();
  return 0;
}

/// Does a command read and write a few rows only, whatever the file has in it? Then to execute it
/// takes less time than to hand it to another thread and back.
template <class C>
[[nodiscard]] bool sqlite_brief(C const& c) noexcept {
  constexpr std::size_t rows = 16;
  constexpr std::size_t names = 128;
  constexpr std::size_t bytes = std::size_t{16} << 10U;
  if constexpr (std::same_as<C, command::scan_visible_queues>) {
    return c.limit <= names;
  } else if constexpr (std::same_as<C, command::reap_buckets> ||
                       std::same_as<C, command::gc_stale_pointers> ||
                       std::same_as<C, command::inspect_permits> ||
                       std::same_as<C, command::read_queue_stats> ||
                       std::same_as<C, command::list_jobs> || std::same_as<C, command::relay_job>) {
    return false;
  } else if constexpr (requires { c.jobs.size(); }) {
    return c.jobs.size() <= rows && sqlite_bytes_of(c) <= bytes;
  } else if constexpr (requires { c.quotas.size(); }) {
    return c.quotas.size() <= rows;
  } else if constexpr (
      requires {
        c.queue;
        c.limit;
      } ||
      requires {
        c.shard;
        c.limit;
      }) {
    return c.limit <= rows;
  } else {
    return sqlite_notes_of(c) <= bytes;
  }
}

}  // namespace weir::detail

#endif
