// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULE_CRON_HPP
#define WEIR_SCHEDULE_CRON_HPP

#include "weir/detail/whole_number.hpp"
#include "weir/time.hpp"

#include <boost/system/result.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

/// A field of a cron expression, in the order of its text.
enum class cron_field : std::uint8_t {
  expression,    ///< the text as a whole
  second,        ///< 0 to 59; the first of six fields, 0 in an expression of five
  minute,        ///< 0 to 59
  hour,          ///< 0 to 23
  day_of_month,  ///< 1 to 31, or `L`, the last day of the month
  month,         ///< 1 to 12, or `JAN` to `DEC`
  day_of_week,   ///< 0 (Sunday) to 7 (Sunday), or `SUN` to `SAT`; `MON#2` is the second Monday
};

/// The name of a field in English.
[[nodiscard]] constexpr std::string_view to_string(cron_field f) noexcept {
  constexpr std::array<std::string_view, 7> names{"expression",   "second", "minute",     "hour",
                                                  "day of month", "month",  "day of week"};
  return names.at(static_cast<std::size_t>(f));
}

/// Why a text is no cron expression.
struct cron_error {
  cron_field field = cron_field::expression;  ///< where
  std::size_t position = 0;                   ///< the byte of the text at which it stands
  std::string_view reason;                    ///< a phrase in English, with static storage

  /// "minute, at 3: the step is larger than the range".
  [[nodiscard]] std::string to_string() const {
    std::string text{weir::to_string(field)};
    text += ", at ";
    text += std::to_string(position);
    text += ": ";
    text += reason;
    return text;
  }

  /// By all of it.
  friend bool operator==(cron_error const&, cron_error const&) = default;
};

/// Thrown by `value()` for a text that is no cron expression.
[[noreturn]] inline void throw_exception_from_error(cron_error const& e,
                                                    boost::source_location const&) {
  throw std::invalid_argument{e.to_string()};
}

/// The times of a wall clock at which something is due, as cron has them.
///
/// Five fields (minute, hour, day of month, month, day of week), or six with seconds first. A field
/// is a list of `*`, `7`, `1-5`, `*/15`, `10-40/10` and `10/10` (from 10 on, every 10; not for days
/// of the week, where Sunday is at both ends). Months and days of the week have English names of
/// three letters, in either case. `@hourly`, `@daily` or `@midnight`, `@weekly`, `@monthly`,
/// `@yearly` or `@annually` stand for expressions.
///
/// If both days are given, either suffices; one that begins with `*` is not given, and both have to
/// match then (Debian's rule). What dialects read in different ways is refused: ranges that wrap
/// (but `FRI-SUN` is taken), steps beyond the range, `?`, `W`, `H`, `L-3`, `5L`. So is an
/// expression that is never due, such as `0 0 30 2 *`.
///
/// A plain value; `next_tick` makes instants of it in a zone.
class cron_expression {
 public:
  /// The longest text that is taken, in bytes.
  static constexpr std::size_t max_length = 1024;

  /// The expression that `text` is, or why it is none.
  [[nodiscard]] static boost::system::result<cron_expression, cron_error> parse(
      std::string_view text);

  /// Whether it follows elapsed time when clocks are changed, because its minute or hour begins
  /// with
  /// `*`: it then runs in both passes of an hour that is repeated. Otherwise its times are fixed.
  [[nodiscard]] constexpr bool follows_elapsed_time() const noexcept { return wildcard_; }

  /// Whether it is due at this time of the wall clock.
  [[nodiscard]] constexpr bool matches(std::chrono::local_seconds t) const noexcept {
    auto const day = std::chrono::floor<std::chrono::days>(t);
    return matches_day(std::chrono::year_month_day{day}) && first_time(t - day) == t - day;
  }

  /// The first time of the wall clock at or after `from`, and before `end`, at which it is due.
  [[nodiscard]] constexpr std::optional<std::chrono::local_seconds> next(
      std::chrono::local_seconds from, std::chrono::local_seconds end) const noexcept {
    using namespace std::chrono;
    auto day = floor<days>(from);
    auto time = first_time(from - day);
    for (; day < end; time = first_time(seconds{0})) {
      year_month_day const date{day};
      if (!has(months_, static_cast<unsigned>(date.month()))) {
        day = local_days{(date.year() / date.month() + std::chrono::months{1}) / 1};
        continue;
      }
      if (time && matches_day(date)) {
        if (day + *time >= end) break;
        return day + *time;
      }
      day += days{1};
    }
    return std::nullopt;
  }

  /// Whether they are due at the same times, as far as their fields say so.
  friend constexpr bool operator==(cron_expression const&, cron_expression const&) = default;

 private:
  class parser;

  cron_expression() = default;

  [[nodiscard]] static constexpr bool has(std::uint64_t set, unsigned n) noexcept {
    return (set >> n & 1U) != 0;
  }

  [[nodiscard]] constexpr bool matches_day(std::chrono::year_month_day date) const noexcept {
    using namespace std::chrono;
    auto const day = static_cast<unsigned>(date.day());
    auto const week_day = weekday{local_days{date}}.c_encoding();
    bool const last = date.day() == (date.year() / date.month() / std::chrono::last).day();
    bool const in_month = has(days_, day) || (last_day_ && last);
    bool const in_week = has(week_days_, week_day) || has(nth_.at(week_day), (day - 1) / 7 + 1);
    bool const due = days_given_ && week_days_given_ ? in_month || in_week : in_month && in_week;
    return due && has(months_, static_cast<unsigned>(date.month()));
  }

  /// The first time of day at or after `from` of which hour, minute and second match.
  [[nodiscard]] constexpr std::optional<std::chrono::seconds> first_time(
      std::chrono::seconds from) const noexcept {
    auto const at = static_cast<unsigned>(from.count());
    unsigned hour = at / 3600;
    unsigned minute = at / 60 % 60;
    unsigned second = at % 60;
    if (auto const s = at_least(seconds_, second)) {
      second = *s;
    } else {
      second = *at_least(seconds_, 0);
      ++minute;
    }
    if (auto const m = at_least(minutes_, minute)) {
      if (*m != minute) second = *at_least(seconds_, 0);
      minute = *m;
    } else {
      minute = *at_least(minutes_, 0);
      second = *at_least(seconds_, 0);
      ++hour;
    }
    auto const h = at_least(hours_, hour);
    if (!h) return std::nullopt;
    if (*h != hour) {
      minute = *at_least(minutes_, 0);
      second = *at_least(seconds_, 0);
    }
    return std::chrono::seconds{(*h * 60 + minute) * 60 + second};
  }
  [[nodiscard]] static constexpr std::optional<unsigned> at_least(std::uint64_t set,
                                                                  unsigned n) noexcept {
    if (n > 63 || set >> n == 0) return std::nullopt;
    return n + static_cast<unsigned>(std::countr_zero(set >> n));
  }

  /// Calendars of all fourteen kinds of years come in any 28 years without a century among them.
  [[nodiscard]] constexpr bool is_ever_due() const noexcept {
    using namespace std::chrono;
    return next(local_days{year{2001} / 1 / 1}, local_days{year{2029} / 1 / 1}).has_value();
  }

  // Sets of numbers, one bit for each.
  std::uint64_t seconds_ = 0;
  std::uint64_t minutes_ = 0;
  std::uint64_t hours_ = 0;
  std::uint64_t days_ = 0;
  std::uint64_t months_ = 0;
  std::uint64_t week_days_ = 0;
  std::array<std::uint8_t, 7> nth_{};  // of each day of the week, which ones of a month: bits 1 to
                                       // 5
  bool last_day_ = false;
  bool days_given_ = false;
  bool week_days_given_ = false;
  bool wildcard_ = false;
};

/// @private
class cron_expression::parser {
 public:
  explicit parser(std::string_view text) : text_{text} {}

  [[nodiscard]] boost::system::result<cron_expression, cron_error> expression() {
    if (text_.size() > max_length) {
      fail(text_, "longer than 1,024 bytes");
    } else if (auto const all = trimmed(text_); all.starts_with('@')) {
      shorthand(all);
    } else {
      fields(all);
    }
    if (!error_ && !made_.is_ever_due()) {
      field_ = cron_field::expression;
      fail(text_, "never due: there is no such day");
    }
    if (error_) return *error_;
    return made_;
  }

 private:
  /// What may stand in a field.
  struct range {
    cron_field field;
    unsigned first;
    unsigned last;
    std::string_view names = {};  // three letters each, of `first` and what follows
  };
  static constexpr std::string_view blanks = " \t";

  void shorthand(std::string_view all) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> known{
        {{"@yearly", "0 0 1 1 *"},
         {"@annually", "0 0 1 1 *"},
         {"@monthly", "0 0 1 * *"},
         {"@weekly", "0 0 * * 0"},
         {"@daily", "0 0 * * *"},
         {"@midnight", "0 0 * * *"},
         {"@hourly", "0 * * * *"}}};
    for (auto const& [name, meaning] : known) {
      if (name == all) return fields(meaning);
    }
    fail(all, "not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly");
  }

  void fields(std::string_view all) {
    std::array<std::string_view, 6> parts;
    std::size_t count = 0;
    for (auto rest = all; !rest.empty(); ++count) {
      auto const end = std::min(rest.find_first_of(blanks), rest.size());
      if (count == parts.size()) return fail(rest, "more than six fields");
      parts.at(count) = rest.substr(0, end);
      rest = trimmed(rest.substr(end));
    }
    if (count < 5) return fail(all, "fewer than five fields");
    std::size_t next = 0;
    made_.seconds_ = 1;
    if (count == 6) made_.seconds_ = set_of(parts.at(next++), {cron_field::second, 0, 59});
    auto const minute = parts.at(next++);
    auto const hour = parts.at(next++);
    auto const day = parts.at(next++);
    made_.minutes_ = set_of(minute, {cron_field::minute, 0, 59});
    made_.hours_ = set_of(hour, {cron_field::hour, 0, 23});
    made_.days_ = set_of(day, {cron_field::day_of_month, 1, 31});
    made_.months_ = set_of(parts.at(next++),
                           {cron_field::month, 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"});
    auto const week_day = parts.at(next);
    made_.week_days_ = set_of(week_day, {cron_field::day_of_week, 0, 6, "SUNMONTUEWEDTHUFRISAT"});
    made_.wildcard_ = minute.starts_with('*') || hour.starts_with('*');
    made_.days_given_ = !day.starts_with('*');
    made_.week_days_given_ = !week_day.starts_with('*');
  }

  [[nodiscard]] std::uint64_t set_of(std::string_view list, range const& r) {
    std::uint64_t set = 0;
    while (!error_) {
      auto const comma = list.find(',');
      set |= item(list.substr(0, comma), r);
      if (comma == std::string_view::npos) break;
      list.remove_prefix(comma + 1);
    }
    return set;
  }

  [[nodiscard]] std::uint64_t item(std::string_view text, range const& r) {
    field_ = r.field;
    if (text.empty()) return fail(text, "nothing stands there"), 0;
    if (r.field == cron_field::day_of_month && same(text, "L")) return made_.last_day_ = true, 0;
    if (auto const hash = text.find('#');
        hash != std::string_view::npos && r.field == cron_field::day_of_week) {
      return nth(text, hash, r), 0;
    }
    auto const slash = text.find('/');
    auto const span = text.substr(0, slash);
    unsigned first = r.first;
    unsigned last = r.last;
    if (span != "*") {
      auto const dash = span.find('-');
      auto const from = number(span.substr(0, dash), r);
      if (!from) return 0;
      first = last = *from;
      if (dash != std::string_view::npos) {
        auto const to = number(span.substr(dash + 1), r);
        if (!to) return 0;
        last = *to;
        bool const to_sunday = r.field == cron_field::day_of_week && last == 0 && first != 0;
        if (to_sunday) last = last_of(r);
        if (last < first) return fail(span, "the range ends before it begins"), 0;
      } else if (slash != std::string_view::npos) {
        if (r.field == cron_field::day_of_week) {
          return fail(text, "a step needs a range here, such as 1-5/2"), 0;
        }
        last = r.last;
      }
    }
    unsigned step = 1;
    if (slash != std::string_view::npos) {
      auto const n = detail::whole_number<unsigned>(text.substr(slash + 1));
      if (!n || *n == 0) return fail(text.substr(slash + 1), "the step is no number above 0"), 0;
      if (*n > r.last) return fail(text.substr(slash + 1), "the step is beyond the range"), 0;
      step = *n;
    }
    std::uint64_t set = 0;
    for (auto n = first; n <= last; n += step) {
      set |= std::uint64_t{1} << (r.field == cron_field::day_of_week ? n % 7 : n);
    }
    return set;
  }

  /// `MON#2`.
  void nth(std::string_view text, std::size_t hash, range const& r) {
    auto const day = number(text.substr(0, hash), r);
    if (!day) return;
    auto const n = detail::whole_number<unsigned>(text.substr(hash + 1));
    if (!n || *n == 0 || *n > 5) return fail(text.substr(hash + 1), "no number from 1 to 5");
    auto& of_day = made_.nth_.at(*day % 7);
    of_day = static_cast<std::uint8_t>(of_day | 1U << *n);
  }

  [[nodiscard]] std::optional<unsigned> number(std::string_view text, range const& r) {
    if (auto const n = detail::whole_number<unsigned>(text)) {
      if (*n >= r.first && *n <= last_of(r)) return n;
      fail(text, "beyond the range of this field");
      return std::nullopt;
    }
    if (text.size() == 3) {
      for (std::size_t i = 0; i < r.names.size(); i += 3) {
        if (same(text, r.names.substr(i, 3))) return r.first + static_cast<unsigned>(i / 3);
      }
    }
    if (text.find_first_of("?WwHhLl#") != std::string_view::npos) {
      fail(text, "?, W, H, # and L are not taken here");
    } else {
      fail(text, r.names.empty() ? "no number" : "neither a number nor a name of three letters");
    }
    return std::nullopt;
  }

  /// Sunday is 0 and 7.
  [[nodiscard]] static unsigned last_of(range const& r) {
    return r.field == cron_field::day_of_week ? 7 : r.last;
  }

  [[nodiscard]] static bool same(std::string_view text, std::string_view upper) {
    if (text.size() != upper.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      char const c = text[i];
      if ((c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c) != upper[i]) return false;
    }
    return true;
  }

  [[nodiscard]] static std::string_view trimmed(std::string_view text) {
    auto const begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return text.substr(text.size());
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
  }

  /// The first failure counts.
  void fail(std::string_view where, std::string_view reason) {
    if (error_) return;
    error_ = cron_error{field_, static_cast<std::size_t>(where.data() - text_.data()), reason};
  }

  std::string_view text_;
  cron_field field_ = cron_field::expression;
  std::optional<cron_error> error_;
  cron_expression made_;
};

inline boost::system::result<cron_expression, cron_error> cron_expression::parse(
    std::string_view text) {
  return parser{text}.expression();
}

}  // namespace weir

#endif
