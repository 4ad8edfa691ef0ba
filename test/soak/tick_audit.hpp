// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_TICK_AUDIT_HPP
#define WEIR_TEST_SOAK_TICK_AUDIT_HPP

#include "soak/plan.hpp"
#include "soak/witness.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace soak {

/// Judges schedules: one job for each tick.
class tick_audit {
 public:
  using reporter = std::function<void(std::string)>;

  /// A job of a tick was run, or is there after the faults: `name` is the schedule, `n` the tick.
  void job(record const& r, reporter const& report) {
    auto const [it, first] = ticks_[r.name].try_emplace(r.n, r.key);
    if (first || it->second == r.key) return;
    report(r.name + " has two jobs for the tick " + std::to_string(r.n) + ": " + it->second +
           " and " + r.key);
    it->second = r.key;
  }
  /// What the store says of a schedule after the faults: `n` ticks were fired; `detail` says how
  /// many were not.
  void booked(record const& r) { booked_[r.key] = {r.n, r.detail}; }

  void finish(reporter const& report) const {
    for (auto const& [schedule, ticks] : ticks_) {
      auto const booking = booked_.find(schedule);
      if (booking == booked_.end()) {
        report(schedule + " has fired, and is lost");
        continue;
      }
      auto const& [fired, left_out] = booking->second;
      if (left_out != "0") report(schedule + " has left " + left_out + " ticks out");
      if (fired != static_cast<std::int64_t>(ticks.size())) {
        report(schedule + " has fired " + std::to_string(fired) + " ticks, and " +
               std::to_string(ticks.size()) + " have a job");
      }
      auto const period = ns_of(period_of(schedule));
      auto expected = ticks.begin()->first;
      for (auto const& [at, id] : ticks) {
        if (at != expected) report(schedule + " has no job for " + std::to_string(expected));
        expected = at + period;
      }
    }
  }

 private:
  std::map<std::string, std::map<std::int64_t, std::string>> ticks_;
  std::map<std::string, std::pair<std::int64_t, std::string>> booked_;
};

}  // namespace soak

#endif
