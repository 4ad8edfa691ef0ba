// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_ANY_ZONE_HPP
#define WEIR_SCHEDULE_ANY_ZONE_HPP

#include "weir/schedule/tzif_zone.hpp"
#include "weir/schedule/zone.hpp"

#include <boost/system/result.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace weir {

/// The zone that a name stands for: `UTC`, a fixed offset such as `+05:30` or `-03:00`, or a zone
/// of the system's database, such as `Europe/Oslo`.
class any_zone {
 public:
  /// Coordinated Universal Time.
  any_zone() = default;

  /// Is the zone of this name one of the time zone database, which the host has to have?
  [[nodiscard]] static bool is_of_database(std::string_view name) {
    return name != "UTC" && !fixed_offset(name);
  }

  /// The zone of this name. Errors: those of `tzif_zone::load`.
  [[nodiscard]] static boost::system::result<any_zone> load(std::string_view name) {
    if (name == "UTC") return any_zone{};
    if (auto const offset = fixed_offset(name)) return any_zone{fixed_offset_zone{*offset}};
    auto found = tzif_zone::load(name);
    if (found.has_error()) return found.error();
    return any_zone{std::move(found).value()};
  }

  /// The period that `t` is in.
  [[nodiscard]] zone_period period_at(std::chrono::sys_seconds t) const {
    return std::visit([t](auto const& zone) { return zone.period_at(t); }, zone_);
  }

 private:
  template <class Zone>
  explicit any_zone(Zone zone) : zone_{std::move(zone)} {}

  /// `+hh:mm`, up to 25:59.
  [[nodiscard]] static std::optional<std::chrono::seconds> fixed_offset(std::string_view name) {
    if (name.size() != 6 || (name[0] != '+' && name[0] != '-') || name[3] != ':') {
      return std::nullopt;
    }
    int digits[4];
    for (std::size_t const i : {1U, 2U, 4U, 5U}) {
      if (name[i] < '0' || name[i] > '9') return std::nullopt;
      digits[i < 3 ? i - 1 : i - 2] = name[i] - '0';
    }
    int const hours = digits[0] * 10 + digits[1];
    int const minutes = digits[2] * 10 + digits[3];
    if (hours > 25 || minutes > 59) return std::nullopt;
    std::chrono::seconds const offset{std::chrono::hours{hours} + std::chrono::minutes{minutes}};
    return name[0] == '-' ? -offset : offset;
  }

  std::variant<utc_zone, fixed_offset_zone, tzif_zone> zone_;
};

}  // namespace weir

#endif
