// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_ZONE_HPP
#define WEIR_SCHEDULE_ZONE_HPP

#include "weir/time.hpp"

#include <chrono>
#include <concepts>

#if defined(__cpp_lib_chrono) && __cpp_lib_chrono >= 201907L
#include <algorithm>
#endif

namespace weir {

/// A time during which a zone's clocks were not changed.
struct zone_period {
  std::chrono::sys_seconds begin;  ///< its first instant
  std::chrono::sys_seconds end;    ///< the instant after its last one
  std::chrono::seconds offset;     ///< local time less UTC, less than 26 hours either way

  /// By all of it.
  friend bool operator==(zone_period const&, zone_period const&) = default;
};

/// The instants that schedules know: those of `time_point`, in whole seconds.
inline constexpr auto earliest_instant = std::chrono::ceil<std::chrono::seconds>(time_point::min());
/// The last of them.
inline constexpr auto latest_instant = std::chrono::floor<std::chrono::seconds>(time_point::max());

/// A zone says which of its periods an instant is in. Those of `earliest_instant` and
/// `latest_instant` end there.
template <class Z>
concept time_zone = requires(Z const& zone, std::chrono::sys_seconds t) {
  { zone.period_at(t) } -> std::same_as<zone_period>;
};

/// Coordinated Universal Time.
struct utc_zone {
  /// All time is one period.
  [[nodiscard]] static constexpr zone_period period_at(std::chrono::sys_seconds) noexcept {
    return {earliest_instant, latest_instant, std::chrono::seconds{0}};
  }
};

/// A zone whose clocks are never changed.
struct fixed_offset_zone {
  std::chrono::seconds offset;  ///< local time less UTC, less than 26 hours either way

  /// All time is one period.
  [[nodiscard]] constexpr zone_period period_at(std::chrono::sys_seconds) const noexcept {
    return {earliest_instant, latest_instant, offset};
  }
};

#if defined(__cpp_lib_chrono) && __cpp_lib_chrono >= 201907L
/// A zone of the standard library's database: `std_zone{std::chrono::locate_zone("Europe/Oslo")}`.
struct std_zone {
  std::chrono::time_zone const* zone;  ///< lives as long as the program

  /// The standard library's answer.
  [[nodiscard]] zone_period period_at(std::chrono::sys_seconds t) const {
    auto const info = zone->get_info(t);
    return {std::max(info.begin, earliest_instant), std::min(info.end, latest_instant),
            info.offset};
  }
};
#endif

}  // namespace weir

#endif
