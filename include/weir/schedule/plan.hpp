// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_PLAN_HPP
#define WEIR_SCHEDULE_PLAN_HPP

#include "weir/job.hpp"
#include "weir/schedule/any_zone.hpp"
#include "weir/schedule/cron.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/tick.hpp"
#include "weir/time.hpp"

#include <boost/hash2/fnv1a.hpp>
#include <boost/hash2/sha1.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <variant>

// The ticks of a schedule, as functions of its definition and of the time alone.
namespace weir::detail {

/// The ticks of a schedule, in order.
class timetable {
 public:
  /// @param zone that of a cron expression
  timetable(schedule const& s, any_zone zone) : schedule_{s}, zone_{std::move(zone)} {
    if (auto const* const c = std::get_if<cron>(&s.when)) {
      expression_ = cron_expression::parse(c->expression).value();
    }
  }

  /// The first tick after an instant.
  [[nodiscard]] std::optional<time_point> next(time_point after) const {
    if (schedule_.start) after = std::max(after, saturating_sub_tick(*schedule_.start));
    auto const found = std::visit([&](auto const& w) { return next_of(w, after); }, schedule_.when);
    if (found && schedule_.end && *found > *schedule_.end) return std::nullopt;
    return found;
  }

  /// When a tick is fired: later by its jitter, which is a function of the definition and the tick,
  /// so that every process means the same. It comes before the next tick does, so that none waits
  /// for the one before it.
  [[nodiscard]] time_point fired_at(time_point tick) const {
    if (schedule_.jitter == duration::zero()) return tick;
    boost::hash2::fnv1a_64 hash;
    hash.update(schedule_.name.data(), schedule_.name.size());
    auto const count = static_cast<std::uint64_t>(tick.time_since_epoch().count());
    for (unsigned i = 0; i != 8; ++i) {
      auto const byte = static_cast<unsigned char>(count >> (8 * i));
      hash.update(&byte, 1);
    }
    auto most = schedule_.jitter;
    if (auto const after = next(tick)) most = std::min(most, saturating_sub(*after, tick));
    auto const below = static_cast<std::uint64_t>(most.count());
    auto const late =
        saturating_add(tick, duration{static_cast<duration::rep>(hash.result() % below)});
    return schedule_.end ? std::min(late, *schedule_.end) : late;
  }

 private:
  [[nodiscard]] static time_point saturating_sub_tick(time_point t) noexcept {
    return t == time_point::min() ? t : t - duration{1};
  }

  [[nodiscard]] std::optional<time_point> next_of(cron const&, time_point after) const {
    auto const found = next_tick(*expression_, zone_, after);
    if (!found) return std::nullopt;
    return found->at;
  }
  [[nodiscard]] static std::optional<time_point> next_of(every const& w, time_point after) {
    if (after < w.from) return w.from;
    // Two instants may be further apart than a duration says; in numbers without a sign they are
    // not.
    auto const count = [](auto t) { return static_cast<std::uint64_t>(t.count()); };
    auto const from = count(w.from.time_since_epoch());
    auto const period = count(w.period);
    auto const passed = (count(after.time_since_epoch()) - from) / period + 1;
    if (passed > (count(time_point::max().time_since_epoch()) - from) / period) return std::nullopt;
    return time_point{duration{static_cast<duration::rep>(from + passed * period)}};
  }
  [[nodiscard]] static std::optional<time_point> next_of(instants const& w, time_point after) {
    auto const found = std::ranges::upper_bound(w.at, after);
    if (found == w.at.end()) return std::nullopt;
    return *found;
  }

  schedule const& schedule_;
  any_zone zone_;
  std::optional<cron_expression> expression_;
};

/// The ticks that have come: which are fired, and which are not.
struct due_ticks {
  std::deque<time_point> fire;       ///< those to be fired, in order
  std::uint64_t missed = 0;          ///< how many are not, since they come too late
  time_point last{};                 ///< the last that was looked at
  std::optional<time_point> next{};  ///< the one after that; empty: there is none
};

/// An instant from which on there are more than `most` ticks until `now`, or `last`. It takes as
/// many looks as that for each doubling of the time.
[[nodiscard]] inline time_point shortly_before(timetable const& table, std::uint32_t most,
                                               time_point last, time_point now) {
  for (duration span = std::chrono::minutes{1}; saturating_add(last, span) < now; span *= 2) {
    auto const from = now - span;
    std::uint32_t ticks = 0;
    for (auto t = table.next(from); t && *t <= now && ticks <= most; t = table.next(*t)) ++ticks;
    if (ticks > most) return from;
  }
  return last;
}

/// The ticks after `last` that have come by `now`, and whose jitter is over.
///
/// After more than 100,000 ticks it goes on with those that may still be fired, and `missed` is a
/// lower bound.
[[nodiscard]] inline due_ticks ticks_due(schedule const& s, timetable const& table, time_point last,
                                         time_point now) {
  constexpr std::size_t most_looks = 100'000;
  auto const& policy = s.catch_up;
  auto const oldest = saturating_add(now, -policy.window);
  due_ticks out;
  out.last = last;
  out.next = table.next(last);
  for (std::size_t looks = 0; out.next && table.fired_at(*out.next) <= now; ++looks) {
    if (looks == most_looks) {
      auto const later = shortly_before(table, policy.most, *out.next, now);
      if (later > *out.next) {
        out.missed += out.fire.size();
        out.fire.clear();
        out.next = table.next(later);
        continue;
      }
    }
    out.last = *out.next;
    if (table.fired_at(out.last) < oldest) {
      ++out.missed;
    } else {
      out.fire.push_back(out.last);
      if (out.fire.size() > policy.most) {
        out.fire.pop_front();
        ++out.missed;
      }
    }
    out.next = table.next(out.last);
  }
  return out;
}

/// An id that is the same wherever it is made: a UUID of version 8 (RFC 9562) of texts.
template <class... Texts>
[[nodiscard]] job_id id_of_texts(Texts const&... texts) {
  boost::hash2::sha1_160 hash;
  auto const add = [&](std::string_view text) {
    auto const size = static_cast<std::uint64_t>(text.size());
    for (unsigned i = 0; i != 8; ++i) {
      auto const byte = static_cast<unsigned char>(size >> (8 * i));
      hash.update(&byte, 1);
    }
    hash.update(text.data(), text.size());
  };
  (add(texts), ...);
  auto const digest = hash.result();
  job_id id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  id.data[6] = static_cast<std::uint8_t>((id.data[6] & 0x0f) | 0x80);
  id.data[8] = static_cast<std::uint8_t>((id.data[8] & 0x3f) | 0x80);
  return id;
}

}  // namespace weir::detail

#endif
