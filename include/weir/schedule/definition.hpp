// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_DEFINITION_HPP
#define WEIR_SCHEDULE_DEFINITION_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/schedule/cron.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir {

/// Due at the times of a wall clock that a cron expression names.
struct cron {
  std::string expression;    ///< see `cron_expression`
  std::string zone = "UTC";  ///< whose wall clock: see `any_zone`

  /// By all of it.
  friend bool operator==(cron const&, cron const&) = default;
};

/// Due at `from`, and then whenever a period of elapsed time has passed.
struct every {
  duration period{};  ///< [1 s, `limits::span`]
  time_point from{};  ///< the midnight UTC of 1970 by default, so that periods that divide a day
                      ///< are due at round times

  /// By all of it.
  friend bool operator==(every const&, every const&) = default;
};

/// Due at these instants.
struct instants {
  std::vector<time_point> at;  ///< 1…1,000 of them, in order, no two the same

  /// By all of it.
  friend bool operator==(instants const&, instants const&) = default;
};

/// The rule for a tick that comes while the job of the last one has not ended. It has when it is
/// completed, dead or cancelled; a retry that waits has not, nor has a lease that is over while
/// nobody serves the queue.
enum class overlap_policy : std::uint8_t {
  allow,       ///< its job is enqueued all the same
  skip,        ///< it is left out, and counted as skipped
  buffer_one,  ///< its job waits until the running one has ended; left out if one waits already
  replace,     ///< the last job is cancelled, also if it runs, and this one enqueued
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(overlap_policy p) noexcept {
  switch (p) {
    case overlap_policy::allow: return "allow";
    case overlap_policy::skip: return "skip";
    case overlap_policy::buffer_one: return "buffer_one";
    case overlap_policy::replace: return "replace";
  }
  return "?";
}

/// The ticks that are still fired when nobody fired them in time, after a night off. All others are
/// counted as missed, and told.
struct catch_up_policy {
  std::uint32_t most = 1;                    ///< how many are fired, the latest ones: 1…1,000
  duration window = std::chrono::hours{24};  ///< which are fired: those no longer ago than this,
                                             ///< (0, `limits::span`]

  /// None that is more than a minute late.
  [[nodiscard]] static constexpr catch_up_policy skip() noexcept {
    return {1, std::chrono::minutes{1}};
  }
  /// The latest one, however late.
  [[nodiscard]] static constexpr catch_up_policy last() noexcept { return {1, limits::span}; }
  /// The latest ones, which come at once: several of them only under `overlap_policy::allow`.
  [[nodiscard]] static constexpr catch_up_policy all(std::uint32_t most, duration window) noexcept {
    return {most, window};
  }

  /// By all of it.
  friend bool operator==(catch_up_policy const&, catch_up_policy const&) = default;
};

/// When jobs are to be enqueued, again and again, and how. The job is given beside it.
struct schedule {
  std::string name;  ///< one schedule of a store has it: 1…`limits::schedule_name_size` bytes
  std::variant<cron, every, instants> when;       ///< its ticks
  overlap_policy overlap = overlap_policy::skip;  ///< while the last tick's job has not ended
  catch_up_policy catch_up{};                     ///< for ticks that nobody fired in time
  duration jitter{};  ///< each tick is put off by a time below this that its instant determines,
                      ///< but not past the next tick, nor beyond `end`: [0, 24 h]
  std::optional<time_point> start{};  ///< no tick before this
  std::optional<time_point> end{};    ///< no tick after this
  std::uint64_t version = 0;          ///< of the definition: an older one never replaces a newer
  std::string tick_member{};          ///< the text in the job's JSON form that is set to its tick,
                                      ///< as `2026-11-25T02:30:00Z`; empty: none

  /// By all of it.
  friend bool operator==(schedule const&, schedule const&) = default;
};

namespace detail {

/// The most instants, and the most ticks that are fired at once.
inline constexpr std::size_t most_ticks = 1000;

[[nodiscard]] inline error_code wrong_timetable(cron const& when) {
  auto const parsed = cron_expression::parse(when.expression);
  if (parsed.has_value()) return {};
  return explained(errc::invalid_option,
                   "schedule: cron expression: " + parsed.error().to_string());
}
[[nodiscard]] inline error_code wrong_timetable(every const& when) {
  if (when.period >= std::chrono::seconds{1} && when.period <= limits::span) return {};
  return explained(errc::invalid_wait, "schedule: every::period is from 1 s to limits::span");
}
[[nodiscard]] inline error_code wrong_timetable(instants const& when) {
  auto const& at = when.at;
  bool const fits = !at.empty() && at.size() <= most_ticks;
  if (fits && std::ranges::adjacent_find(at, std::ranges::greater_equal{}) == at.end()) return {};
  return explained(errc::invalid_option,
                   "schedule: instants are from 1 to 1,000, in order, no two the same");
}

}  // namespace detail

/// Checks a schedule; no error: it is good. Errors: `invalid_key` (its name), `invalid_option`,
/// `invalid_wait`.
[[nodiscard]] inline error_code validate(schedule const& s) {
  auto const option = [](char const* what) {
    return detail::explained(errc::invalid_option, std::string{"schedule: "} + what);
  };
  if (s.name.empty() || s.name.size() > limits::schedule_name_size) return errc::invalid_key;
  if (auto const ec =
          std::visit([](auto const& w) { return detail::wrong_timetable(w); }, s.when)) {
    return ec;
  }
  auto const& c = s.catch_up;
  if (c.most == 0 || c.most > detail::most_ticks) return option("catch_up.most is from 1 to 1,000");
  if (c.window <= duration::zero() || c.window > limits::span) {
    return detail::explained(errc::invalid_wait, "schedule: catch_up.window");
  }
  if (s.jitter < duration::zero() || s.jitter > std::chrono::hours{24}) {
    return detail::explained(errc::invalid_wait, "schedule: jitter is from 0 to 24 h");
  }
  if (s.start && s.end && *s.end < *s.start) return option("end is before start");
  if (s.overlap > overlap_policy::replace) return option("overlap");
  return {};
}

}  // namespace weir

#endif
