// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Cron expressions: which texts are taken, what is refused and why, and when they are due.

#include "weir/schedule/cron.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono;
using weir::cron_expression;
using weir::cron_field;

constexpr local_seconds the_end{local_days{year{2200} / 1 / 1}};

local_seconds at(int y, unsigned m, unsigned d, int h = 0, int min = 0, int s = 0) {
  return local_days{year{y} / static_cast<int>(m) / static_cast<int>(d)} + hours{h} + minutes{min} +
         seconds{s};
}

cron_expression parsed(std::string_view text) {
  auto const made = cron_expression::parse(text);
  BOOST_REQUIRE_MESSAGE(made, text << ": " << made.error().to_string());
  return *made;
}

void check_next(std::string_view text, local_seconds from, local_seconds expected) {
  auto const next = parsed(text).next(from, the_end);
  BOOST_REQUIRE_MESSAGE(next.has_value(), text);
  BOOST_CHECK_MESSAGE(*next == expected, text << ": " << (*next - expected).count() << " s off");
  BOOST_CHECK(parsed(text).matches(expected));
}

void check_refused(std::string_view text, cron_field field, std::size_t position,
                   std::string_view reason) {
  auto const made = cron_expression::parse(text);
  BOOST_REQUIRE_MESSAGE(made.has_error(), text << " was taken");
  BOOST_TEST(made.error().to_string() == (weir::cron_error{field, position, reason}.to_string()),
             text);
}

void check_same(std::string_view a, std::string_view b) {
  BOOST_CHECK_MESSAGE(parsed(a) == parsed(b), a << " is not " << b);
}

}  // namespace

BOOST_AUTO_TEST_CASE(finds_the_next_time) {
  check_next("30 2 * * *", at(2026, 11, 25, 2, 30), at(2026, 11, 25, 2, 30));
  check_next("30 2 * * *", at(2026, 11, 25, 2, 30, 1), at(2026, 11, 26, 2, 30));
  check_next("*/15 * * * *", at(2026, 12, 31, 23, 46), at(2027, 1, 1));
  check_next("59 59 23 31 12 *", at(2026, 1, 1), at(2026, 12, 31, 23, 59, 59));
  check_next("5 0 0 1 1 *", at(2026, 1, 1, 0, 0, 6), at(2027, 1, 1, 0, 0, 5));
  check_next("10/20 * * * *", at(2026, 1, 1, 0, 11), at(2026, 1, 1, 0, 30));
  check_next("0 9-17/4 * * *", at(2026, 1, 1, 14), at(2026, 1, 1, 17));
  check_next("0 0 29 2 *", at(2096, 3, 1), at(2104, 2, 29));
  check_next("0 0 L 2 *", at(2027, 2, 28, 1), at(2028, 2, 29));
  check_next("0 0 L * *", at(2026, 4, 1), at(2026, 4, 30));
  check_next("0 0 * * MON#5", at(2026, 1, 1), at(2026, 3, 30));
  // Five Mondays in a February: there is none for forty years around 2100.
  check_next("0 0 * 2 MON#5", at(2072, 3, 1), at(2112, 2, 29));
}

BOOST_AUTO_TEST_CASE(either_of_two_days_suffices_and_one_with_a_star_is_not_given) {
  check_next("0 0 13 * FRI", at(2026, 11, 14), at(2026, 11, 20));
  check_next("0 0 13 * FRI", at(2026, 12, 12), at(2026, 12, 13));
  check_next("0 0 */2 * MON", at(2026, 11, 24), at(2026, 12, 7));
  check_next("0 0 1 * */3", at(2026, 11, 2), at(2027, 5, 1));
}

BOOST_AUTO_TEST_CASE(knows_names_and_both_sundays) {
  check_same("0 0 * jan-MAR Sun,tue", "0 0 * 1-3 0,2");
  check_same("0 0 * * 7", "0 0 * * SUN");
  check_same("0 0 * * FRI-SUN", "0 0 * * 0,5,6");
  check_same("0 0 * * 5-7", "0 0 * * 0,5,6");
  check_same("0 0 * * 0-7", "0 0 * * 0-6");
  check_same("0 0 * * 1-5/2", "0 0 * * 1,3,5");
  check_same("5-5/3 * * * *", "5 * * * *");
  check_same("0 0 * * 7#1", "0 0 * * SUN#1");
  check_same(" \t0  0 * *\t* ", "0 0 * * *");
  check_same("0 0 0 * * *", "0 0 * * *");
  check_same("@hourly", "0 * * * *");
  check_same("@daily", "0 0 * * *");
  check_same("@midnight", "0 0 * * *");
  check_same("@weekly", "0 0 * * 0");
  check_same("@monthly", "0 0 1 * *");
  check_same("@yearly", "0 0 1 1 *");
  check_same("@annually", "0 0 1 1 *");
}

BOOST_AUTO_TEST_CASE(elapsed_time_is_what_begins_with_a_star) {
  for (auto const* const text :
       {"*/30 1 * * *", "0 * * * *", "* 1 * * *", "@hourly", "0 */2 * * *"}) {
    BOOST_CHECK_MESSAGE(parsed(text).follows_elapsed_time(), text);
  }
  for (auto const* const text : {"0-59 1 * * *", "0/30 1 * * *", "0,* 1 * * *", "* 30 2 * * *"}) {
    BOOST_CHECK_MESSAGE(!parsed(text).follows_elapsed_time(), text);
  }
}

BOOST_AUTO_TEST_CASE(refuses_and_says_where) {
  using enum cron_field;
  constexpr std::string_view dialect = "?, W, H, # and L are not taken here";
  check_refused("", expression, 0, "fewer than five fields");
  check_refused("* * * *", expression, 0, "fewer than five fields");
  check_refused("* * * * * * *", expression, 12, "more than six fields");
  check_refused(std::string(1025, ' '), expression, 0, "longer than 1,024 bytes");
  check_refused("@reboot", expression, 0,
                "not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly");
  check_refused("60 * * * *", minute, 0, "beyond the range of this field");
  check_refused("0 24 * * *", hour, 2, "beyond the range of this field");
  check_refused("0 0 0 * *", day_of_month, 4, "beyond the range of this field");
  check_refused("0 0 1 13 *", month, 6, "beyond the range of this field");
  check_refused("0 0 * * 8", day_of_week, 8, "beyond the range of this field");
  check_refused("61 0 0 * * *", second, 0, "beyond the range of this field");
  check_refused("*/90 * * * *", minute, 2, "the step is beyond the range");
  check_refused("*/0 * * * *", minute, 2, "the step is no number above 0");
  check_refused("*/ * * * *", minute, 2, "the step is no number above 0");
  check_refused("*/-1 * * * *", minute, 2, "the step is no number above 0");
  check_refused("0 22-2 * * *", hour, 2, "the range ends before it begins");
  check_refused("0 22-0 * * *", hour, 2, "the range ends before it begins");
  check_refused("30-0 * * * *", minute, 0, "the range ends before it begins");
  check_refused("0 0 * * SAT-MON", day_of_week, 8, "the range ends before it begins");
  check_refused("0 0 * * 1/2", day_of_week, 8, "a step needs a range here, such as 1-5/2");
  check_refused("1,,2 * * * *", minute, 2, "nothing stands there");
  check_refused("1, * * * *", minute, 2, "nothing stands there");
  check_refused("1- * * * *", minute, 2, "no number");
  check_refused("0x1 * * * *", minute, 0, "no number");
  check_refused("99999999999 * * * *", minute, 0, "no number");
  check_refused("0 0 * FOO *", month, 6, "neither a number nor a name of three letters");
  check_refused("0 0 * * FRIDAY", day_of_week, 8, "neither a number nor a name of three letters");
  check_refused("0 0 ? * *", day_of_month, 4, dialect);
  check_refused("0 0 15W * *", day_of_month, 4, dialect);
  check_refused("0 0 L-3 * *", day_of_month, 4, dialect);
  check_refused("0 0 1#2 * *", day_of_month, 4, dialect);
  check_refused("H * * * *", minute, 0, dialect);
  check_refused("0 0 * * 5L", day_of_week, 8, dialect);
  check_refused("0 0 * * FRIL", day_of_week, 8, dialect);
  check_refused("0 0 * * L", day_of_week, 8, dialect);
  check_refused("0 0 * * MON#6", day_of_week, 12, "no number from 1 to 5");
  check_refused("0 0 * * MON#0", day_of_week, 12, "no number from 1 to 5");
  BOOST_CHECK_THROW(static_cast<void>(cron_expression::parse("*").value()), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(what_is_never_due_is_refused) {
  for (auto const* const text : {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 31 2 *"}) {
    check_refused(text, cron_field::expression, 0, "never due: there is no such day");
  }
  for (auto const* const text : {"0 0 30 2 MON", "0 0 29 2 *", "0 0 31 2,3 *", "0 0 * 2 MON#5"}) {
    BOOST_CHECK_MESSAGE(cron_expression::parse(text).has_value(), text);
  }
}

// Sets of numbers that are written as text, and a clock that is asked second by second.
BOOST_AUTO_TEST_CASE(agrees_with_sets_of_numbers) {
  std::mt19937 random{20261125};
  auto const below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    struct part {
      unsigned first, last;
      std::set<unsigned> numbers;
      bool star = false;
    };
    std::vector<part> parts{{0, 59, {}}, {0, 59, {}}, {0, 23, {}},
                            {1, 31, {}}, {1, 12, {}}, {0, 6, {}}};
    std::string text;
    for (auto& p : parts) {
      if (below(3) == 0) {
        p.star = true;
        auto const step = 1 + below(p.last);
        for (auto n = p.first; n <= p.last; n += step) p.numbers.insert(n);
        text += "*/" + std::to_string(step) + ' ';
        continue;
      }
      auto const items = 1 + below(3);
      for (unsigned i = 0; i < items; ++i) {
        auto const a = p.first + below(p.last - p.first + 1);
        auto const b = a + below(p.last - a + 1);
        auto const step = 1 + below(4);
        for (auto n = a; n <= b; n += step) p.numbers.insert(n);
        text += (i == 0 ? "" : ",") + std::to_string(a) + '-' + std::to_string(b) + '/' +
                std::to_string(step);
      }
      text += ' ';
    }
    auto const made = cron_expression::parse(text);
    auto const due_on = [&](local_days day) {
      year_month_day const date{day};
      bool const month_day = parts[3].numbers.contains(static_cast<unsigned>(date.day()));
      bool const week_day = parts[5].numbers.contains(weekday{day}.c_encoding());
      bool const either = !parts[3].star && !parts[5].star;
      return parts[4].numbers.contains(static_cast<unsigned>(date.month())) &&
             (either ? month_day || week_day : month_day && week_day);
    };
    auto const start = at(2026, 1, 1) + seconds{below(86400 * 365)};
    auto day = floor<days>(start);
    auto const far = day + days{366 * 9};
    while (day < far && !due_on(day)) day += days{1};
    if (day == far) continue;
    BOOST_REQUIRE_MESSAGE(made, text);
    auto expected = std::max(start, local_seconds{day});
    auto const is_due = [&](local_seconds t) {
      hh_mm_ss const time{t - floor<days>(t)};
      return due_on(floor<days>(t)) &&
             parts[0].numbers.contains(static_cast<unsigned>(time.seconds().count())) &&
             parts[1].numbers.contains(static_cast<unsigned>(time.minutes().count())) &&
             parts[2].numbers.contains(static_cast<unsigned>(time.hours().count()));
    };
    while (!is_due(expected)) {
      BOOST_REQUIRE(!made->matches(expected));
      expected += seconds{1};
      if (auto const next = floor<days>(expected); expected == next && !due_on(next)) {
        while (!due_on(floor<days>(expected))) expected += days{1};
      }
    }
    auto const found = made->next(start, the_end);
    BOOST_REQUIRE_MESSAGE(found && *found == expected, text);
    BOOST_TEST(!made->next(start, expected).has_value());
  }
}
