// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/nats/absence.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <optional>

namespace {

using weir::detail::nats_absence;
using request = std::optional<std::uint64_t>;

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_absences)

BOOST_AUTO_TEST_CASE(the_request_between_two_markers_is_the_one) {
  nats_absence a;
  BOOST_TEST(!a.marking());
  BOOST_TEST((a.missed() == request{}));
  a.begin(10);
  BOOST_TEST(a.marking());
  BOOST_TEST((a.missed() == request{}));  // one of the first ten
  BOOST_TEST(a.passed(10) == 2U);
  BOOST_TEST((a.missed() == request{11}));
  BOOST_TEST(a.passed(11) == 0U);
  BOOST_TEST(a.passed(12) == 0U);
  BOOST_TEST((a.missed() == request{13}));
}

BOOST_AUTO_TEST_CASE(markers_of_an_earlier_time_say_nothing) {
  nats_absence a;
  a.begin(10);
  BOOST_TEST(a.passed(10) == 1U);
  a.end();
  BOOST_TEST(!a.marking());
  BOOST_TEST(a.passed(11) == 0U);
  a.begin(20);
  BOOST_TEST(a.passed(12) == 0U);
  BOOST_TEST((a.missed() == request{}));
  BOOST_TEST(a.passed(20) == 2U);
  BOOST_TEST((a.missed() == request{21}));
}

BOOST_AUTO_TEST_CASE(it_ends_when_nobody_has_been_missing_for_a_while) {
  nats_absence a;
  a.begin(0);
  std::uint64_t id = 0;
  for (int i = 0; i != 50; ++i) (void)a.passed(id++);
  BOOST_TEST((a.missed() == request{id}));
  for (int i = 0; i != 50; ++i) (void)a.passed(id++);
  BOOST_TEST(a.marking());
  for (int i = 0; i != 50; ++i) (void)a.passed(id++);
  BOOST_TEST(!a.marking());
}

BOOST_AUTO_TEST_CASE(where_each_is_marked_it_is_the_one_before_its_marker_or_nobody) {
  weir::detail::nats_absence a{true};
  BOOST_TEST(a.marking());
  BOOST_TEST(!a.missed().has_value());
  BOOST_TEST(a.passed_alone(1));
  BOOST_TEST(!a.passed_alone(2));
  BOOST_TEST(!a.missed().has_value());
  BOOST_TEST(!a.passed_alone(4));  // the marker of 3 was lost: it may have been either
  BOOST_TEST(!a.missed().has_value());
  BOOST_TEST(!a.missed().has_value());
  BOOST_TEST(!a.passed_alone(5));
  for (std::uint64_t id = 6; id != 200; ++id) BOOST_TEST(!a.passed_alone(id));
  BOOST_TEST(a.marking());  // however quiet it was
}

BOOST_AUTO_TEST_SUITE_END()
