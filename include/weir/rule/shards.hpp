// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_SHARDS_HPP
#define WEIR_RULE_SHARDS_HPP

#include "weir/command/jobs.hpp"

#include <boost/hash2/fnv1a.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::rule {

/// The name by which a queue, or a key, is given to a shard.
[[nodiscard]] constexpr std::string_view placed_by(std::string_view name) noexcept {
  while (name.starts_with(companion_prefix)) name.remove_prefix(companion_prefix.size());
  return name;
}

/// Is it a queue of schedules?
[[nodiscard]] constexpr bool holds_schedules(std::string_view queue) noexcept {
  return queue.starts_with(companion_prefix);
}

/// No store has more.
inline constexpr std::uint32_t most_shards = 1024;

/// The number of a scan. A shard has two: that of the queues of schedules, and that of all others.
[[nodiscard]] constexpr std::uint32_t scan_number(std::uint32_t shard, bool schedules) noexcept {
  return shard + (schedules ? most_shards : 0);
}

/// A shard is a matter of the name alone, and of how many there are: the same for every process,
/// whatever it was compiled with.
[[nodiscard]] inline std::uint32_t shard_of(std::string_view name, std::size_t count) noexcept {
  if (count <= 1) return 0;
  name = placed_by(name);
  boost::hash2::fnv1a_64 hash;
  hash.update(name.data(), name.size());
  return static_cast<std::uint32_t>(hash.result() % count);
}

}  // namespace weir::rule

#endif
