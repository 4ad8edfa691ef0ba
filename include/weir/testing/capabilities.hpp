// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CAPABILITIES_HPP
#define WEIR_TESTING_CAPABILITIES_HPP

#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::testing {

/// A store's own words about itself: where it may be less than the rule, and by how much. The suite
/// holds it to the rest, and says what it left out because of which line here. What a store
/// executes at all (notifications, reaping, commands at a told time) is not declared: the suite
/// asks the type.
struct capabilities {
  /// The store's time is that coarse. Spans of time may be rounded to the safe side by that much: a
  /// lease may live longer, a wait may be told longer. 1 ns: nothing is rounded.
  duration precision{1};

  /// The shortest TTL that the store accepts; shorter ones may be `invalid_ttl`.
  duration shortest_ttl{1};

  /// Refused holders that keep asking are served in the order in which they came (R1).
  bool line = true;

  /// The limit that counts is the one in the command. If not (slots in a store that has no other
  /// atomic step), it may be the largest one used while any current holder was granted.
  bool limit_of_command = true;

  /// Fences do not fall behind the store's microseconds, so that they grow across a fail-over (R5).
  bool fences_follow_time = true;

  /// Different job priorities that the store keeps apart.
  std::uint32_t priority_levels = 256;

  /// The largest payload, and the largest result, that the store takes.
  std::size_t payload_size = limits::payload_size;

  /// The bytes of the texts of one command's jobs that the store takes.
  std::size_t batch_bytes = limits::batch_bytes;

  /// What a step has found over stays over when time runs backwards, also if that step only read.
  bool ends_are_final = true;

  /// Copies of the store may be used by several threads at once.
  bool thread_safe = true;

  /// Keys, holders and queue names may be any bytes.
  bool any_bytes = true;
};

}  // namespace weir::testing

#endif
