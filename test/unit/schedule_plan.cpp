// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What a schedule does with the ticks that have come, as a function of its definition and the time.

#include "weir/schedule/any_zone.hpp"
#include "weir/schedule/definition.hpp"
#include "weir/schedule/plan.hpp"
#include "weir/scheduler/record.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <set>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using weir::detail::ticks_due;
using weir::detail::timetable;

namespace {

/// Midnight UTC of a day of November 2026, and later.
constexpr weir::time_point on(int day, weir::duration later = {}) {
  return weir::time_point{std::chrono::sys_days{std::chrono::year{2026} / 11 / day}} + later;
}

weir::schedule hourly() { return {.name = "hourly", .when = weir::every{1h}}; }

weir::detail::due_ticks due(weir::schedule const& s, weir::time_point last, weir::time_point now) {
  return ticks_due(s, timetable{s, weir::any_zone{}}, last, now);
}

weir::error_code problem(weir::schedule const& s) { return validate(s); }

}  // namespace

BOOST_AUTO_TEST_SUITE(schedule_plan)

BOOST_AUTO_TEST_CASE(a_tick_that_has_come_is_fired_and_the_next_one_is_known) {
  auto const d = due(hourly(), on(1), on(1, 1h));
  BOOST_TEST_REQUIRE(d.fire.size() == 1U);
  BOOST_TEST((d.fire[0] == on(1, 1h)));
  BOOST_TEST((d.last == on(1, 1h)));
  BOOST_TEST((d.next == on(1, 2h)));
  BOOST_TEST(d.missed == 0U);
}

BOOST_AUTO_TEST_CASE(before_its_tick_nothing_is_fired) {
  auto const d = due(hourly(), on(1), on(1, 1h - 1ns));
  BOOST_TEST(d.fire.empty());
  BOOST_TEST((d.last == on(1)));
  BOOST_TEST((d.next == on(1, 1h)));
}

BOOST_AUTO_TEST_CASE(of_many_missed_ticks_the_policy_fires_the_latest_and_counts_the_rest) {
  auto s = hourly();
  auto const after_a_night = due(s, on(1), on(1, 9h + 30min));
  BOOST_TEST((after_a_night.fire == std::deque{on(1, 9h)}));
  BOOST_TEST(after_a_night.missed == 8U);
  s.catch_up = weir::catch_up_policy::skip();
  auto const late = due(s, on(1), on(1, 9h + 30min));
  BOOST_TEST(late.fire.empty());
  BOOST_TEST(late.missed == 9U);
  BOOST_TEST((late.next == on(1, 10h)));
  s.catch_up = weir::catch_up_policy::all(3, 24h);
  BOOST_TEST((due(s, on(1), on(1, 9h)).fire == std::deque{on(1, 7h), on(1, 8h), on(1, 9h)}));
  s.catch_up = weir::catch_up_policy::all(100, 2h);
  auto const within = due(s, on(1), on(1, 9h));
  BOOST_TEST((within.fire == std::deque{on(1, 7h), on(1, 8h), on(1, 9h)}));
  BOOST_TEST(within.missed == 6U);
}

// River #1035: two weeks off at five seconds. Kubernetes PR #81557: a hundred ticks were missed.
BOOST_AUTO_TEST_CASE(a_long_time_off_is_no_flood) {
  weir::schedule s{.name = "often", .when = weir::every{5s}};
  auto const d = due(s, on(1), on(5));
  BOOST_TEST((d.fire == std::deque{on(5)}));
  BOOST_TEST(d.missed == 4U * 24 * 720 - 1);
  auto const years =
      due({.name = "each second", .when = weir::every{1s}}, weir::time_point{}, on(1));
  BOOST_TEST((years.fire == std::deque{on(1)}));
  BOOST_TEST((years.next == on(1, 1s)));
  BOOST_TEST(years.missed >= 99'999U);
}

BOOST_AUTO_TEST_CASE(ten_years_of_seconds_are_not_gone_through) {
  auto const now = on(1);
  for (auto const& when : {decltype(weir::schedule::when){weir::every{1s}},
                           decltype(weir::schedule::when){weir::cron{"* * * * * *", "UTC"}}}) {
    weir::schedule s{.name = "each second", .when = when};
    s.catch_up = weir::catch_up_policy::last();
    auto const last = due(s, now - 87'000h, now);
    BOOST_TEST((last.fire == std::deque{now}));
    BOOST_TEST((last.next == now + 1s));
    BOOST_TEST(last.missed >= 99'999U);
    BOOST_TEST(last.missed < 101'000U);  // as many as it has looked at
    s.catch_up = weir::catch_up_policy::all(3, 87'600h);
    auto const three = due(s, now - 87'000h, now);
    BOOST_TEST((three.fire == std::deque{now - 2s, now - 1s, now}));
  }
}

BOOST_AUTO_TEST_CASE(start_and_end_bound_the_ticks) {
  auto s = hourly();
  s.start = on(2, 1h);
  s.end = on(2, 3h);
  timetable const table{s, weir::any_zone{}};
  std::vector<weir::time_point> all;
  for (auto t = table.next(on(1)); t; t = table.next(*t)) all.push_back(*t);
  BOOST_TEST((all == std::vector{on(2, 1h), on(2, 2h), on(2, 3h)}));
}

BOOST_AUTO_TEST_CASE(instants_are_ticks) {
  weir::schedule s{.name = "some", .when = weir::instants{{on(1), on(3), on(4)}}};
  s.catch_up = weir::catch_up_policy::all(10, 240h);
  auto const d = due(s, on(1), on(3));
  BOOST_TEST((d.fire == std::deque{on(3)}));
  BOOST_TEST((d.next == on(4)));
  BOOST_TEST(!due(s, on(3), on(9)).next.has_value());
}

BOOST_AUTO_TEST_CASE(a_period_counts_from_its_beginning) {
  weir::schedule s{.name = "from", .when = weir::every{7h, on(1, 30min)}};
  timetable const table{s, weir::any_zone{}};
  BOOST_TEST((table.next(weir::time_point{}) == on(1, 30min)));
  BOOST_TEST((table.next(on(1, 30min)) == on(1, 7h + 30min)));
  BOOST_TEST((table.next(on(1, 31min)) == on(1, 7h + 30min)));
  BOOST_TEST(!table.next(weir::time_point::max()).has_value());
}

BOOST_AUTO_TEST_CASE(a_period_may_count_from_any_instant) {
  auto const next = [](weir::time_point from, weir::time_point after) {
    weir::schedule const s{.name = "weekly", .when = weir::every{168h, from}};
    return timetable{s, weir::any_zone{}}.next(after);
  };
  constexpr weir::time_point monday{std::chrono::sys_days{std::chrono::December / 29 / 1969}};
  BOOST_TEST((next(monday, on(1)) == on(2)));  // a Monday
  auto const first = next(weir::time_point::min(), on(1));
  BOOST_TEST_REQUIRE(first.has_value());
  BOOST_TEST((*first > on(1) && *first <= on(8)));
  BOOST_TEST(!next(monday, weir::time_point::max()).has_value());
  BOOST_TEST(!next(weir::time_point::min(), weir::time_point::max()).has_value());
}

// Temporal #4866, APScheduler #269: another jitter at each deploy, and ticks past the end.
BOOST_AUTO_TEST_CASE(jitter_is_a_function_of_name_and_tick) {
  auto s = hourly();
  s.jitter = 10min;
  timetable const table{s, weir::any_zone{}};
  std::set<weir::duration> seen;
  for (int h = 0; h != 100; ++h) {
    auto const tick = on(1, std::chrono::hours{h});
    auto const late = table.fired_at(tick) - tick;
    BOOST_TEST((late >= 0s && late < 10min));
    BOOST_TEST((timetable{s, weir::any_zone{}}.fired_at(tick) == tick + late));
    seen.insert(late);
  }
  BOOST_TEST(seen.size() > 90U);
  auto other = s;
  other.name = "another";
  BOOST_TEST((timetable{other, weir::any_zone{}}.fired_at(on(1)) != table.fired_at(on(1))));
  auto const tick = on(1, 1h);
  auto const at = table.fired_at(tick);
  BOOST_TEST(ticks_due(s, table, on(1), at - 1ns).fire.empty());
  BOOST_TEST((ticks_due(s, table, on(1), at).fire == std::deque{tick}));
  s.end = tick;
  BOOST_TEST((timetable{s, weir::any_zone{}}.fired_at(tick) == tick));
}

BOOST_AUTO_TEST_CASE(R8_what_is_wrong_with_a_schedule_is_said) {
  auto const says = [](weir::schedule const& s, weir::errc e, std::string const& text) {
    auto const ec = problem(s);
    BOOST_TEST((ec == e), ec.message());
    BOOST_TEST(ec.message().find(text) != std::string::npos, ec.message());
  };
  BOOST_TEST(!problem(hourly()));
  says({.name = "", .when = weir::every{1h}}, weir::errc::invalid_key, "");
  says({.name = std::string(256, 'x'), .when = weir::every{1h}}, weir::errc::invalid_key, "");
  says({.name = "a", .when = weir::cron{"* * * *"}}, weir::errc::invalid_option, "five fields");
  says({.name = "a", .when = weir::cron{"0 0 30 2 *"}}, weir::errc::invalid_option, "never due");
  says({.name = "a", .when = weir::every{999ms}}, weir::errc::invalid_wait, "period");
  says({.name = "a", .when = weir::instants{}}, weir::errc::invalid_option, "instants");
  says({.name = "a", .when = weir::instants{{on(2), on(1)}}}, weir::errc::invalid_option, "order");
  says({.name = "a", .when = weir::instants{{on(1), on(1)}}}, weir::errc::invalid_option,
       "the same");
  auto s = hourly();
  s.catch_up.most = 1001;
  says(s, weir::errc::invalid_option, "catch_up.most");
  s = hourly();
  s.catch_up.window = 0s;
  says(s, weir::errc::invalid_wait, "window");
  s = hourly();
  s.jitter = 25h;
  says(s, weir::errc::invalid_wait, "jitter");
  s = hourly();
  s.start = on(2);
  s.end = on(1);
  says(s, weir::errc::invalid_option, "end is before start");
}

BOOST_AUTO_TEST_CASE(a_name_stands_for_a_zone) {
  auto const offset = [](std::string_view name) {
    return weir::any_zone::load(name).value().period_at(std::chrono::sys_seconds{}).offset;
  };
  BOOST_TEST((offset("UTC") == 0s));
  BOOST_TEST((offset("+05:30") == 5h + 30min));
  BOOST_TEST((offset("-03:00") == -3h));
  BOOST_TEST((offset("Asia/Tokyo") == 9h));
  for (auto const* wrong : {"", "+5:30", "+26:00", "+05:60", "Nowhere/At_all", "../etc/passwd"}) {
    BOOST_TEST(weir::any_zone::load(wrong).has_error(), wrong);
  }
}

BOOST_AUTO_TEST_CASE(a_stored_schedule_is_read_as_it_was_written) {
  for (auto const& when : {decltype(weir::schedule::when){weir::cron{"0 2 * * MON", "Europe/Oslo"}},
                           decltype(weir::schedule::when){weir::every{90s, on(1)}},
                           decltype(weir::schedule::when){weir::instants{{on(1), on(2)}}}}) {
    weir::stored_schedule s;
    s.definition = {.name = "a name", .when = when, .overlap = weir::overlap_policy::replace};
    s.definition.catch_up = weir::catch_up_policy::all(7, 3h);
    s.definition.jitter = 3s;
    s.definition.start = on(1);
    s.definition.version = 42;
    s.definition.tick_member = "tick";
    s.job = {"queue", "kind", R"({"tick":""})", 7, 3, 2s, 1s};
    s.generation = "generation";
    s.progress.steps = 4;
    s.progress.last = on(3);
    s.progress.next = on(4);
    s.progress.last_job = weir::detail::id_of_texts("a");
    s.progress.fired = 1;
    s.progress.skipped = 2;
    s.progress.missed = 3;
    s.progress.zone_data = "2026f";
    s.paused = true;
    s.confirmed = true;
    s.moves = 2;
    s.moved_from = "before";
    s.changes = 5;
    s.ending = true;
    s.progress.last_queue = "where";
    s.progress.job_before = weir::detail::id_of_texts("b");
    s.progress.booked = on(2);
    auto const text = weir::detail::encode_record(s);
    BOOST_TEST((weir::detail::decode_record<weir::stored_schedule>(text) == s), text);
    BOOST_TEST(weir::detail::payload_of_tick(s, on(3, 2h)).value() ==
               R"({"tick":"2026-11-03T02:00:00Z"})");
  }
  for (auto const* damaged : {"", "{}", "[]", R"({"schedule":2})", "[[[[[["}) {
    BOOST_TEST(!weir::detail::decode_record<weir::stored_schedule>(damaged).has_value(), damaged);
  }
  weir::stored_schedule s;  // whose job's text would take more of the stack than there is
  s.definition = {.name = "deep", .when = weir::every{1h}, .tick_member = "tick"};
  s.job.payload = R"({"tick":"","x":)" + std::string(60'000, '[') + std::string(60'000, ']') + "}";
  auto const text = weir::detail::encode_record(s);
  BOOST_TEST(!weir::detail::decode_record<weir::stored_schedule>(text).has_value());
  BOOST_TEST(!weir::detail::payload_of_tick(s, on(1)).has_value());
  for (auto const* none : {R"({"tick":5})", R"({"tick":{}})", R"({"other":""})", "[]"}) {
    s.job.payload = none;  // a time is a text: no job could be read
    BOOST_TEST(!weir::detail::payload_of_tick(s, on(1)).has_value(), none);
  }
}

BOOST_AUTO_TEST_CASE(ids_of_ticks_differ_by_each_of_their_parts) {
  weir::stored_schedule s;
  s.definition.name = "name";
  s.generation = "generation";
  auto const id = weir::detail::id_of_tick(s, on(1));
  BOOST_TEST((id == weir::detail::id_of_tick(s, on(1))));
  BOOST_TEST((id != weir::detail::id_of_tick(s, on(2))));
  auto other = s;
  other.generation = "another";
  BOOST_TEST((id != weir::detail::id_of_tick(other, on(1))));
  other = s;
  other.definition.name = "another";
  BOOST_TEST((id != weir::detail::id_of_tick(other, on(1))));
  // Texts are not run together.
  BOOST_TEST((weir::detail::id_of_texts("a", "bc") != weir::detail::id_of_texts("ab", "c")));
}

BOOST_AUTO_TEST_SUITE_END()
