// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Files of time zones: their names, and files that are damaged.

#include "weir/schedule/tzif_zone.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono;
using namespace boost::system::errc;
using weir::tzif_zone;
using weir::zone_period;

std::string bytes_of(std::string const& name) {
  std::ifstream file{"/usr/share/zoneinfo/" + name, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// A file without any change, and with this footer.
std::string with_footer(std::string_view footer) {
  auto bytes = bytes_of("UTC");
  BOOST_REQUIRE(bytes.ends_with("\nUTC0\n"));
  bytes.resize(bytes.size() - 5);
  return bytes.append(footer) + '\n';
}

constexpr sys_seconds utc(int y, unsigned m, unsigned d, int h = 0) {
  return sys_days{year{y} / static_cast<int>(m) / static_cast<int>(d)} + hours{h};
}

/// The periods follow each other without a gap, each with another offset.
void check_periods(tzif_zone const& zone) {
  auto at = weir::earliest_instant;
  for (int i = 0; i < 3000 && at < weir::latest_instant; ++i) {
    auto const p = zone.period_at(at);
    BOOST_REQUIRE(p.begin == at || i == 0);
    BOOST_REQUIRE(p.end > p.begin);
    BOOST_REQUIRE(abs(p.offset) < hours{26});
    BOOST_REQUIRE(zone.period_at(p.end - seconds{1}) == p);
    BOOST_REQUIRE(zone.period_at(p.begin + (p.end - p.begin) / 2) == p);
    at = p.end;
  }
  BOOST_TEST((at == weir::latest_instant));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_zone_is_found_by_its_name_only) {
  for (auto const* const name : {"", "/etc/passwd", "../zoneinfo/UTC", "Europe/", "Europe/Os lo"}) {
    BOOST_CHECK_MESSAGE(tzif_zone::load(name).error() == invalid_argument, name);
  }
  BOOST_TEST((tzif_zone::load("Europe/Atlantis").error() == no_such_file_or_directory));
  BOOST_TEST((tzif_zone::load("Europe").error() == no_such_file_or_directory));
  BOOST_TEST((tzif_zone::load("UTC", "/nonexistent").error() == no_such_file_or_directory));
  BOOST_TEST(tzif_zone::release().size() >= 5);
  BOOST_TEST(tzif_zone::release("/nonexistent").empty());
}

BOOST_AUTO_TEST_CASE(periods_follow_each_other) {
  for (auto const* const name : {"UTC", "America/New_York", "Europe/Dublin", "Africa/Casablanca",
                                 "Asia/Kathmandu", "Pacific/Apia", "Etc/GMT+12"}) {
    check_periods(tzif_zone::load(name).value());
  }
}

BOOST_AUTO_TEST_CASE(the_footer_is_a_rule_for_the_future) {
  auto const zone = [](std::string_view footer) {
    return tzif_zone::parse(with_footer(footer)).value();
  };
  zone_period const eastern{utc(2222, 3, 10, 7), utc(2222, 11, 3, 6), hours{-4}};
  BOOST_TEST((zone("EST5EDT,M3.2.0,M11.1.0").period_at(utc(2222, 7, 1)) == eastern));
  auto const nuuk = zone("<-02>2<-01>,M3.5.0/-1,M10.5.0/0").period_at(utc(2026, 7, 1));
  BOOST_TEST((nuuk == zone_period{utc(2026, 3, 29, 1), utc(2026, 10, 25, 1), hours{-1}}));
  auto const dublin = zone("IST-1GMT0,M10.5.0,M3.5.0/1").period_at(utc(2026, 12, 1));
  BOOST_TEST((dublin == zone_period{utc(2026, 10, 25, 1), utc(2027, 3, 28, 1), hours{0}}));
  // 29 February is not counted, and is.
  BOOST_TEST((zone("AAA0BBB,J60/0,J300/0").period_at(utc(2028, 3, 1)).begin == utc(2028, 3, 1)));
  BOOST_TEST((zone("AAA0BBB,59/0,299/0").period_at(utc(2028, 2, 29)).begin == utc(2028, 2, 29)));
  auto const always_summer = zone("XXX3EDT4,0/0,J365/23").period_at(utc(2026, 1, 1, 3));
  BOOST_TEST((always_summer.offset == hours{-4}));
  BOOST_TEST((always_summer.end == weir::latest_instant));
  auto const fixed = zone("<+0545>-5:45").period_at(utc(2026, 1, 1));
  BOOST_TEST((fixed.offset == hours{5} + minutes{45}));
  for (auto const* const footer :
       {"UTC", "U0", "UTC25", "UTC0X", "EST5EDT", "EST5EDT,M3.2.0", "EST5EDT,M13.2.0,M11.1.0",
        "EST5EDT,M3.6.0,M11.1.0", "EST5EDT,M3.2.7,M11.1.0", "EST5EDT,J0,J5", "EST5EDT,366,5",
        "EST5EDT,M3.2.0/168,M11.1.0", "EST5EDT,M3.2.0,M11.1.0,", "<UTC0", "UTC0:60", "UTC-"}) {
    BOOST_CHECK_MESSAGE(tzif_zone::parse(with_footer(footer)).has_error(), footer);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_ends_too_early_is_damaged) {
  for (auto const* const name : {"America/New_York", "UTC"}) {
    auto const whole = bytes_of(name);
    BOOST_TEST(tzif_zone::parse(whole).has_value());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      BOOST_REQUIRE(tzif_zone::parse(std::string_view{whole}.substr(0, size)).error() ==
                    illegal_byte_sequence);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_refused_or_a_zone) {
  std::mt19937 random{20261125};
  auto const whole = bytes_of("America/New_York");
  int zones = 0;
  for (int round = 0; round < 4000; ++round) {
    auto bytes = whole;
    for (auto n = 1 + random() % 4; n > 0; --n) {
      // Half of them where the numbers and the footer stand.
      auto const head = random() % 2 == 0 ? bytes.size() : std::size_t{64};
      bytes[random() % head] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    if (auto const made = tzif_zone::parse(bytes)) {
      ++zones;
      check_periods(*made);
    }
  }
  BOOST_TEST(zones > 100);
}
