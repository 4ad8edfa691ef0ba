// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_TEXT_HPP
#define WEIR_CONSOLE_TEXT_HPP

#include "weir/job.hpp"
#include "weir/job_progress.hpp"
#include "weir/limits.hpp"
#include "weir/registered_worker.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <variant>

// How consoles say numbers, times and states to people: `weirctl`, and the page.
namespace weir::detail {

/// A number with a comma for each thousand.
[[nodiscard]] inline std::string count_text(std::uint64_t n) {
  auto text = std::to_string(n);
  for (auto at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

/// A time in its two largest units: `59m55s`, `2d04h`, `3.4s`, `120ms`.
[[nodiscard]] inline std::string time_text(duration time) {
  using namespace std::chrono;
  auto const number = [](auto n) { return std::to_string(n); };
  auto const two = [&](auto n) { return (n < 10 ? "0" : "") + number(n); };
  auto const ms = duration_cast<milliseconds>(time).count();
  if (ms < 0) return "-" + time_text(time == duration::min() ? -(time + 1ns) : -time);
  auto const s = ms / 1000;
  if (ms < 1000) return number(ms) + "ms";
  if (s < 10) return number(s) + "." + number(ms / 100 % 10) + "s";
  if (s < 60) return number(s) + "s";
  if (s < 3600) return number(s / 60) + "m" + two(s % 60) + "s";
  if (s < 86'400) return number(s / 3600) + "h" + two(s / 60 % 60) + "m";
  return number(s / 86'400) + "d" + two(s / 3600 % 24) + "h";
}

/// A time in its largest unit.
[[nodiscard]] inline std::string brief_text(duration time) {
  auto text = time_text(time);
  auto const unit = text.find_first_of("mhd");
  return unit == text.npos || text[unit + 1] == 's' ? text : text.substr(0, unit + 1);
}

/// `in 5s`, or `5s ago`.
[[nodiscard]] inline std::string due_text(duration in, std::string (*to_text)(duration)) {
  return in > duration{} ? "in " + to_text(in) : to_text(-in) + " ago";
}

/// An instant: `2026-11-25 02:30:00 UTC`.
[[nodiscard]] inline std::string date_text(time_point at) {
  using namespace std::chrono;
  auto const day = floor<days>(at);
  year_month_day const date{day};
  hh_mm_ss const time{floor<seconds>(at - day)};
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d UTC",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  return text;
}

/// How far a handler has come: `3 of 10: the third page`.
[[nodiscard]] inline std::string progress_text(std::string const& stored) {
  auto const p = job_progress::of(stored);
  if (!p) return stored;
  auto text = count_text(p->done) + (p->total == 0 ? "" : " of " + count_text(p->total));
  return p->note.empty() ? text : text + ": " + p->note;
}

/// The note on a job in a list: the one thing most worth knowing.
[[nodiscard]] inline std::string note_text(job const& j) {
  if (j.state == job_state::leased && !j.progress.empty()) return j.progress;
  if (!j.reason.empty()) return j.reason;
  return j.memo.empty() ? j.result : j.memo;
}

/// When a job is due; empty: it has ended.
[[nodiscard]] inline std::optional<duration> due_of(job const& j) {
  if (is_terminal(j.state)) return std::nullopt;
  return j.vests_in;
}

/// When a schedule has ticks.
[[nodiscard]] inline std::string when_text(schedule const& s) {
  struct words {
    std::string operator()(cron const& c) const { return c.expression + " " + c.zone; }
    std::string operator()(every const& e) const { return "every " + time_text(e.period); }
    std::string operator()(instants const& i) const {
      return count_text(i.at.size()) + " instants";
    }
  };
  return std::visit(words{}, s.when);
}

/// For how long a worker has run, if it still does.
[[nodiscard]] inline duration up_of(registered_worker const& w) {
  return std::min(w.up, limits::span) + (w.seems_alive() ? w.seen : duration{});
}

/// The queues that a worker serves, in a few words.
[[nodiscard]] inline std::string served_text(registered_worker const& w) {
  if (w.fires_schedules) return "schedules";
  std::string out;
  std::size_t named = 0;
  for (auto const& q : w.queues) {
    if (++named > 5) return out + ", ...";
    out.append(out.empty() ? "" : ", ");
    if (!q.name.empty()) {
      out += q.name;
    } else {
      out += q.prefix.empty() ? std::string{"all others"} : q.prefix + "...";
    }
  }
  if (w.queues.empty()) out = "all";
  if (!w.shards.empty()) {
    out += "; shards";
    for (std::size_t i = 0; i != std::min<std::size_t>(w.shards.size(), 8); ++i) {
      out += " " + std::to_string(w.shards[i]);
    }
    if (w.shards.size() > 8) out += " ...";
  }
  return out;
}
/// The kinds that it has handlers for.
[[nodiscard]] inline std::string kinds_text(registered_worker const& w) {
  std::string out;
  std::size_t named = 0;
  for (auto const& k : w.kinds) {
    if (++named > 5) return out + ", ...";
    out.append(out.empty() ? "" : ", ").append(k.kind);
  }
  return out;
}

}  // namespace weir::detail

#endif
