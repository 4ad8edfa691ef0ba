// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_TICK_HPP
#define WEIR_SCHEDULE_TICK_HPP

#include "weir/schedule/cron.hpp"
#include "weir/schedule/zone.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace weir {

/// The effect of a change of the clocks on a tick.
enum class clock_change : std::uint8_t {
  none,         ///< nothing
  skipped,      ///< its time did not exist, and it comes when the clocks have been put forward
  first_pass,   ///< its time is shown twice, and this is the first
  second_pass,  ///< its time is shown twice, and this is the second
};

/// One time at which a schedule is due.
struct tick {
  time_point at;                     ///< the instant
  std::chrono::local_seconds meant;  ///< the time of the wall clock that the expression names
  std::chrono::seconds offset;       ///< what the wall clock is ahead of UTC at that instant
  clock_change change;               ///< why `at + offset` is not `meant`, or is ambiguous

  /// By all of it.
  friend bool operator==(tick const&, tick const&) = default;
};

/// "2026-03-08 03:00:00 -04:00 (meant for 02:30:00, which is skipped)".
[[nodiscard]] inline std::string to_string(tick const& t) {
  using namespace std::chrono;
  auto const write = [](std::string& text, char const* format, auto... values) {
    std::array<char, 64> room{};
    std::snprintf(room.data(), room.size(), format, values...);
    text += room.data();
  };
  auto const time_of = [&](std::string& text, local_seconds shown) {
    hh_mm_ss const time{shown - floor<days>(shown)};
    write(text, "%02d:%02d:%02d", static_cast<int>(time.hours().count()),
          static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  };
  local_seconds const shown{floor<seconds>(t.at).time_since_epoch() + t.offset};
  year_month_day const date{floor<days>(shown)};
  hh_mm_ss const offset{abs(t.offset)};
  std::string text;
  write(text, "%04d-%02u-%02u ", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()));
  time_of(text, shown);
  write(text, " %c%02d:%02d", t.offset < seconds{0} ? '-' : '+',
        static_cast<int>(offset.hours().count()), static_cast<int>(offset.minutes().count()));
  switch (t.change) {
    case clock_change::none: break;
    case clock_change::skipped:
      text += " (meant for ";
      time_of(text, t.meant);
      text += ", which is skipped)";
      break;
    case clock_change::first_pass: text += " (the first of two)"; break;
    case clock_change::second_pass: text += " (the second of two)"; break;
  }
  return text;
}

namespace detail {

/// The least time that the wall clock has not shown before `period` began.
///
/// Local times of periods that ended 52 hours earlier are below, since no offset exceeds 26 hours.
template <time_zone Zone>
[[nodiscard]] std::chrono::local_seconds not_shown_before(Zone const& zone,
                                                          zone_period const& period) {
  using namespace std::chrono;
  local_seconds shown{period.begin.time_since_epoch() - hours{26}};
  for (auto at = period.begin; at > earliest_instant && period.begin - at <= hours{52};) {
    auto const earlier = zone.period_at(at - seconds{1});
    shown = std::max(shown, local_seconds{earlier.end.time_since_epoch() + earlier.offset});
    at = earlier.begin;
  }
  return shown;
}

}  // namespace detail

/// The first tick of an expression strictly after `after` in a zone; none before the end of time
/// (2262) if there is none.
///
/// When clocks are changed, Debian's rule for cron holds. An expression whose minute or hour begins
/// with `*` follows elapsed time: it is due whenever the wall clock shows a time that matches. Any
/// other one names times of the wall clock, and each is due once: when the clock first shows it,
/// or, if it is skipped, when the clocks have been put forward past it, together with all others
/// that were skipped. That holds for gaps of any length, such as the day that Samoa left out.
///
/// Throws what the zone throws.
template <time_zone Zone>
[[nodiscard]] std::optional<tick> next_tick(cron_expression const& expression, Zone const& zone,
                                            time_point after) {
  using namespace std::chrono;
  if (after >= latest_instant) return std::nullopt;
  auto const from = floor<seconds>(after) + seconds{1};
  bool const elapsed = expression.follows_elapsed_time();
  auto period = zone.period_at(from);
  auto fresh = detail::not_shown_before(zone, period);
  while (true) {
    local_seconds const begin{period.begin.time_since_epoch() + period.offset};
    local_seconds const end{period.end.time_since_epoch() + period.offset};
    bool const changes_now = period.begin >= from && period.begin > earliest_instant;
    if (!elapsed && changes_now && fresh < begin) {
      if (auto const skipped = expression.next(fresh, begin)) {
        return tick{period.begin, *skipped, period.offset, clock_change::skipped};
      }
    }
    auto first = std::max(begin, local_seconds{from.time_since_epoch() + period.offset});
    if (!elapsed) first = std::max(first, fresh);
    bool const last = period.end >= latest_instant;
    auto const following = last ? period : zone.period_at(period.end);
    local_seconds const again{period.end.time_since_epoch() + following.offset};
    if (auto const shown = expression.next(first, end)) {
      auto change = clock_change::none;
      if (*shown < fresh) {
        change = clock_change::second_pass;
      } else if (!last && *shown >= again) {
        change = clock_change::first_pass;
      }
      return tick{sys_seconds{shown->time_since_epoch() - period.offset}, *shown, period.offset,
                  change};
    }
    if (last) return std::nullopt;
    fresh = std::max(fresh, end);
    period = following;
  }
}

}  // namespace weir

#endif
