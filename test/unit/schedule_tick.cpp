// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Ticks in zones whose clocks are changed. The oracle looks at every minute of the days around each
// change, by the C library's idea of the zone and by Debian's rule as it is stated.

#include "weir/schedule/tick.hpp"
#include "weir/schedule/tzif_zone.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono;
using weir::cron_expression;
using weir::tzif_zone;

constexpr sys_seconds utc(int y, unsigned m, unsigned d, int h = 0, int min = 0) {
  return sys_days{year{y} / static_cast<int>(m) / static_cast<int>(d)} + hours{h} + minutes{min};
}

tzif_zone zone(std::string_view name) {
  auto made = tzif_zone::load(name);
  BOOST_REQUIRE_MESSAGE(made, name);
  return *made;
}

std::vector<std::string> ticks(std::string_view text, std::string_view name, sys_seconds after,
                               std::size_t count) {
  auto const where = zone(name);
  auto const expression = cron_expression::parse(text).value();
  std::vector<std::string> found;
  weir::time_point at{after};
  while (found.size() < count) {
    auto const next = weir::next_tick(expression, where, at);
    BOOST_REQUIRE(next.has_value());
    BOOST_REQUIRE(next->at > at);
    found.push_back(to_string(*next));
    at = next->at;
  }
  return found;
}

void check_ticks(std::string_view text, std::string_view name, sys_seconds after,
                 std::vector<std::string> const& expected) {
  auto const found = ticks(text, name, after, expected.size());
  BOOST_CHECK_EQUAL_COLLECTIONS(found.begin(), found.end(), expected.begin(), expected.end());
}

/// An expression, and the same in words that need no parser.
struct expression {
  char const* text;
  bool elapsed;
  std::function<bool(std::tm const&)> due;
};

std::vector<expression> const& expressions() {
  static std::vector<expression> const all{
      {"* * * * *", true, [](auto const&) { return true; }},
      {"*/30 * * * *", true, [](auto const& t) { return t.tm_min % 30 == 0; }},
      {"*/20 1-3 * * *", true,
       [](auto const& t) { return t.tm_min % 20 == 0 && t.tm_hour >= 1 && t.tm_hour <= 3; }},
      {"15 * * * *", true, [](auto const& t) { return t.tm_min == 15; }},
      {"30 2 * * *", false, [](auto const& t) { return t.tm_min == 30 && t.tm_hour == 2; }},
      {"0/10 0-4 * * *", false, [](auto const& t) { return t.tm_min % 10 == 0 && t.tm_hour <= 4; }},
      {"0 0 * * *", false, [](auto const& t) { return t.tm_min == 0 && t.tm_hour == 0; }},
      {"45 23 * * *", false, [](auto const& t) { return t.tm_min == 45 && t.tm_hour == 23; }},
      {"0 3 * * SUN", false,
       [](auto const& t) { return t.tm_min == 0 && t.tm_hour == 3 && t.tm_wday == 0; }},
      {"0-59 1 L * *", false, [](auto const& t) {
         static int const last[]{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
         int const y = t.tm_year + 1900;
         bool const leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
         return t.tm_hour == 1 && t.tm_mday == last[t.tm_mon] + (t.tm_mon == 1 && leap ? 1 : 0);
       }}};
  return all;
}

/// The C library's wall clock, of the zone that the environment names.
struct wall {
  std::tm shown{};
  long minute = 0;  // shown, since 1970
};
wall wall_at(sys_seconds t) {
  auto const seconds = static_cast<std::time_t>(t.time_since_epoch().count());
  wall w;
  localtime_r(&seconds, &w.shown);
  w.minute = static_cast<long>((seconds + w.shown.tm_gmtoff) / 60);
  return w;
}

/// When the clocks are changed between two instants, to the minute.
std::vector<sys_seconds> changes_between(sys_seconds from, sys_seconds to) {
  std::vector<sys_seconds> found;
  for (auto at = from; at < to; at += hours{6}) {
    auto low = at;
    auto high = at + hours{6};
    auto const before = wall_at(low).shown.tm_gmtoff;
    if (wall_at(high).shown.tm_gmtoff == before) continue;
    while (high - low > minutes{1}) {
      auto const middle = low + floor<minutes>((high - low) / 2);
      (wall_at(middle).shown.tm_gmtoff == before ? low : high) = middle;
    }
    found.push_back(high);
  }
  return found;
}

void check_around(std::string const& name, tzif_zone const& where, sys_seconds change) {
  auto const from = change - hours{40};
  auto const to = change + hours{40};
  std::vector<wall> walls;
  long shown_before = 0;
  for (auto t = from - hours{60}; t < from; t += minutes{1}) {
    shown_before = std::max(shown_before, wall_at(t).minute);
  }
  for (auto t = from; t < to; t += minutes{1}) walls.push_back(wall_at(t));
  // Of each minute that the wall clock may show or skip, what it would show.
  auto const [least, most] = std::minmax_element(
      walls.begin(), walls.end(), [](auto const& a, auto const& b) { return a.minute < b.minute; });
  std::map<long, std::tm> named;
  for (auto minute = std::min(least->minute, shown_before); minute <= most->minute; ++minute) {
    auto const seconds = static_cast<std::time_t>(minute) * 60;
    gmtime_r(&seconds, &named[minute]);
  }
  for (auto const& e : expressions()) {
    std::vector<sys_seconds> expected;
    auto shown = shown_before;
    for (std::size_t i = 0; i < walls.size(); ++i) {
      auto const now = walls[i].minute;
      bool due = e.elapsed && e.due(named.at(now));
      for (; shown < now; ++shown) due = due || (!e.elapsed && e.due(named.at(shown + 1)));
      if (due) expected.push_back(from + minutes{static_cast<long>(i)});
    }
    std::vector<sys_seconds> found;
    auto const parsed = cron_expression::parse(e.text).value();
    BOOST_REQUIRE(parsed.follows_elapsed_time() == e.elapsed);
    for (weir::time_point at{from - seconds{1}};;) {
      auto const next = weir::next_tick(parsed, where, at);
      if (!next || next->at >= to) break;
      at = next->at;
      found.push_back(floor<seconds>(at));
    }
    BOOST_REQUIRE_MESSAGE(found == expected, e.text << " in " << name << " around "
                                                    << change.time_since_epoch().count() << ": "
                                                    << found.size() << " ticks, expected "
                                                    << expected.size());
  }
}

int check_zone(std::string const& name) {
  auto const where = zone(name);
  setenv("TZ", name.c_str(), 1);
  tzset();
  int checked = 0;
  for (auto const& [from, to] :
       {std::pair{utc(1993, 1, 1), utc(2012, 1, 1)}, std::pair{utc(2012, 1, 1), utc(2027, 1, 1)},
        std::pair{utc(2036, 1, 1), utc(2039, 1, 1)}, std::pair{utc(2086, 1, 1), utc(2089, 1, 1)},
        std::pair{utc(2099, 1, 1), utc(2101, 1, 1)}}) {
    for (auto const change : changes_between(from, to)) {
      check_around(name, where, change);
      ++checked;
    }
  }
  unsetenv("TZ");
  tzset();
  return checked;
}

}  // namespace

BOOST_AUTO_TEST_CASE(fixed_times_run_once_and_right_after_a_gap) {
  check_ticks("30 2 * * *", "America/New_York", utc(2026, 3, 7, 12),
              {"2026-03-08 03:00:00 -04:00 (meant for 02:30:00, which is skipped)",
               "2026-03-09 02:30:00 -04:00"});
  check_ticks("0/20 2 * * *", "America/New_York", utc(2026, 3, 7, 12),
              {"2026-03-08 03:00:00 -04:00 (meant for 02:00:00, which is skipped)",
               "2026-03-09 02:00:00 -04:00"});
  check_ticks("30 1 * * *", "America/New_York", utc(2026, 10, 31, 12),
              {"2026-11-01 01:30:00 -04:00 (the first of two)", "2026-11-02 01:30:00 -05:00"});
  // The day that Samoa left out.
  check_ticks("0 12 * * *", "Pacific/Apia", utc(2011, 12, 29, 0),
              {"2011-12-29 12:00:00 -10:00",
               "2011-12-31 00:00:00 +14:00 (meant for 12:00:00, which is skipped)",
               "2011-12-31 12:00:00 +14:00"});
}

BOOST_AUTO_TEST_CASE(wildcards_follow_elapsed_time) {
  check_ticks("*/30 1 * * *", "America/New_York", utc(2026, 11, 1, 4),
              {"2026-11-01 01:00:00 -04:00 (the first of two)",
               "2026-11-01 01:30:00 -04:00 (the first of two)",
               "2026-11-01 01:00:00 -05:00 (the second of two)",
               "2026-11-01 01:30:00 -05:00 (the second of two)", "2026-11-02 01:00:00 -05:00"});
  check_ticks("*/30 2 * * *", "America/New_York", utc(2026, 3, 8, 0),
              {"2026-03-09 02:00:00 -04:00"});
}

BOOST_AUTO_TEST_CASE(a_search_that_begins_in_the_second_pass_does_not_go_back) {
  check_ticks("30 1 * * *", "America/New_York", utc(2026, 11, 1, 6, 10),
              {"2026-11-02 01:30:00 -05:00"});
  check_ticks("*/30 1 * * *", "America/New_York", utc(2026, 11, 1, 6, 10),
              {"2026-11-01 01:30:00 -05:00 (the second of two)"});
}

/// Clocks that are put back by an hour, and again half an hour later.
struct hesitant_zone {
  static constexpr sys_seconds first = utc(2026, 1, 1, 12);
  static constexpr sys_seconds second = utc(2026, 1, 1, 12, 30);

  [[nodiscard]] static weir::zone_period period_at(sys_seconds t) {
    if (t < first) return {weir::earliest_instant, first, hours{2}};
    if (t < second) return {first, second, hours{1}};
    return {second, weir::latest_instant, hours{0}};
  }
};

// 13:45 is shown before the first change, not between the two, and again after the second.
BOOST_AUTO_TEST_CASE(a_time_that_was_shown_before_the_last_change_is_not_fresh) {
  auto const daily = cron_expression::parse("45 13 * * *").value();
  auto const next = [&](sys_seconds after) {
    return floor<seconds>(weir::next_tick(daily, hesitant_zone{}, after)->at);
  };
  BOOST_TEST((next(utc(2026, 1, 1)) == utc(2026, 1, 1, 11, 45)));
  BOOST_TEST((next(utc(2026, 1, 1, 11, 45)) == utc(2026, 1, 2, 13, 45)));
  BOOST_TEST((next(utc(2026, 1, 1, 12, 45)) == utc(2026, 1, 2, 13, 45)));
}

BOOST_AUTO_TEST_CASE(a_tick_is_strictly_after_what_was_asked_for) {
  auto const daily = cron_expression::parse("@daily").value();
  weir::time_point const midnight{utc(2026, 1, 1)};
  BOOST_TEST((next_tick(daily, weir::utc_zone{}, midnight)->at == midnight + days{1}));
  BOOST_TEST((next_tick(daily, weir::utc_zone{}, midnight - nanoseconds{1})->at == midnight));
  weir::fixed_offset_zone const plus_one{hours{1}};
  BOOST_TEST((next_tick(daily, plus_one, midnight)->at == midnight + hours{23}));
  BOOST_TEST(!next_tick(daily, plus_one, weir::time_point::max()).has_value());
  BOOST_TEST(!next_tick(daily, weir::utc_zone{}, weir::latest_instant - seconds{1}).has_value());
  BOOST_TEST(
      (next_tick(daily, weir::utc_zone{}, weir::time_point::min())->at > weir::time_point::min()));
}

// WEIR_ZONES=all: every zone that the system knows, which takes a quarter of an hour.
//
// node-cron #492 and #509, kelektiv #120 and #563, cronie #124, #217 and #218, croner #284, croncpp
// #8, #23, #24, #32 and #34, ccronexpr #15, supertinycron #14: what stops, loops, is skipped or
// comes twice when clocks are changed.
BOOST_AUTO_TEST_CASE(agrees_with_a_scan_of_every_minute) {
  std::vector<std::string> names{"Africa/Casablanca", "Africa/Cairo",     "America/Asuncion",
                                 "America/Havana",    "America/Nuuk",     "America/Scoresbysund",
                                 "America/St_Johns",  "Antarctica/Troll", "Asia/Beirut",
                                 "Asia/Gaza",         "Asia/Pyongyang",   "Australia/Lord_Howe",
                                 "Europe/Dublin",     "Pacific/Apia",     "Pacific/Chatham",
                                 "Pacific/Fakaofo",   "Pacific/Kwajalein"};
  std::string const root = "/usr/share/zoneinfo";
  auto const* const wanted = std::getenv("WEIR_ZONES");
  if (wanted != nullptr && std::string_view{wanted} == "all") {
    names.clear();
    for (auto const& file : std::filesystem::recursive_directory_iterator{root}) {
      auto const name = file.path().lexically_relative(root).string();
      if (file.is_regular_file() && name.find('.') == name.npos && name.find("right/") != 0 &&
          name.find("posix") != 0 && name != "leapseconds") {
        names.push_back(name);
      }
    }
    BOOST_REQUIRE(names.size() > 300);
  }
  int checked = 0;
  for (auto const& name : names) checked += check_zone(name);
  BOOST_TEST_MESSAGE(checked << " changes of " << names.size() << " zones");
  BOOST_TEST(checked > 300);
}
