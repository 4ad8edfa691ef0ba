// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/nats/balance.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/time.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using weir::steady_time;
using weir::detail::nats_claims;
using weir::detail::nats_part_to_take;
using weir::detail::nats_reluctance;
using view = std::vector<std::string_view>;

std::optional<std::size_t> taken_by(std::string_view self, view const& owners,
                                    std::uint64_t entropy = 0) {
  return nats_part_to_take(owners, self, [](std::size_t) { return true; }, entropy);
}

/// All parts that may be chosen.
std::set<std::size_t> choices(std::string_view self, view const& owners) {
  std::set<std::size_t> out;
  for (std::uint64_t n = 0; n != 64; ++n) {
    if (auto const part = taken_by(self, owners, n)) out.insert(*part);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_balancing)

BOOST_AUTO_TEST_CASE(a_part_is_taken_from_who_has_two_more) {
  BOOST_TEST(!taken_by("a", {}));
  BOOST_TEST(!taken_by("a", {"b"}));
  BOOST_TEST(!taken_by("a", {"a", "b", "b"}));
  BOOST_TEST(!taken_by("a", {"a", "a", "a"}));
  BOOST_TEST((choices("a", {"b", "b"}) == std::set<std::size_t>{0, 1}));
  BOOST_TEST((choices("a", {"a", "b", "b", "b"}) == std::set<std::size_t>{1, 2, 3}));
  BOOST_TEST((choices("a", {"b", "c", "c", "b", "b"}) == std::set<std::size_t>{0, 3, 4}));
  // A part without an owner, or whose owner is not known, counts for no process.
  BOOST_TEST(!taken_by("a", {"", "", "", "b"}));
}

BOOST_AUTO_TEST_CASE(what_may_not_be_taken_is_not) {
  view const owners{"b", "b", "b", "c", "c"};
  auto const but = [&](std::set<std::size_t> const& held) {
    return nats_part_to_take(
        owners, "a", [&](std::size_t part) { return !held.contains(part); }, 7);
  };
  BOOST_TEST((but({0, 2}) == std::optional<std::size_t>{1}));
  BOOST_TEST((but({0, 1, 2, 3}) == std::optional<std::size_t>{4}));
  BOOST_TEST(!but({0, 1, 2, 3, 4}));
}

// Each sees what all have done, or what was so a while ago.
BOOST_AUTO_TEST_CASE(all_come_to_rest_and_none_has_two_more_than_another) {
  for (std::size_t const processes : {2U, 3U, 7U, 20U}) {
    for (std::size_t const late : {0U, 1U, 5U}) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i != processes; ++i) names.push_back("p" + std::to_string(i));
      std::vector<view> states(late + 1, view(16, names.front()));
      std::uint64_t entropy = 1;
      std::size_t takes = 0;
      std::size_t quiet = 0;
      while (quiet != 30 * processes * (late + 1)) {
        BOOST_TEST_REQUIRE(takes < 200U);
        entropy = entropy * 6364136223846793005U + 1442695040888963407U;
        auto const& self = names[(entropy >> 33U) % processes];
        // It knows of itself, and looks at the one part before it takes it.
        auto seen = states[states.size() - 1 - late];
        auto now = states.back();
        for (std::size_t i = 0; i != now.size(); ++i) {
          if (now[i] == self || seen[i] == self) seen[i] = now[i] == self ? self : "";
        }
        auto const part = taken_by(self, seen, entropy >> 17U);
        bool const still = part && now[*part] == seen[*part];
        quiet = still ? 0 : quiet + 1;
        if (still) {
          now[*part] = self;
          ++takes;
        }
        states.push_back(now);
      }
      std::map<std::string_view, std::size_t> counts;
      for (auto const& n : names) counts[n] = 0;
      for (auto const owner : states.back()) ++counts[owner];
      auto const [least, most] =
          std::ranges::minmax_element(counts, {}, [](auto const& c) { return c.second; });
      BOOST_TEST(most->second - least->second <= 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(claims_name_their_process) {
  nats_claims one;
  nats_claims other;
  auto const first = one.next(false);
  auto const second = one.next(true);
  BOOST_TEST(first != second);
  BOOST_TEST(nats_claims::process_of(first) == one.process());
  BOOST_TEST(nats_claims::process_of(second) == one.process());
  BOOST_TEST(one.process() != other.process());
  BOOST_TEST(!nats_claims::is_for_balance(first));
  BOOST_TEST(nats_claims::is_for_balance(second));
  for (auto const& claim : {first, second}) {
    BOOST_TEST(claim.size() <= 64U);
    BOOST_TEST(std::ranges::all_of(claim, weir::detail::plain_in_nats));
  }
  // Of earlier builds, and of strangers.
  for (std::string const& name : {one.process(), one.process() + "-", one.process() + "-b",
                                  one.process() + "-1x", std::string{"strange"}, std::string{}}) {
    BOOST_TEST(nats_claims::process_of(name) == name);
    BOOST_TEST(!nats_claims::is_for_balance(name));
  }
}

BOOST_AUTO_TEST_CASE(a_new_owner_says_which_part_it_has) {
  weir::detail::nats_names const names{"weir"};
  for (std::uint32_t const part : {0U, 7U, 1031U}) {
    auto const heard = names.hinted(names.owner_hint(part, "claim-1"));
    auto const got = names.claim_in(heard);
    BOOST_TEST_REQUIRE(got.has_value());
    BOOST_TEST(got->first == part);
    BOOST_TEST(got->second == "claim-1");
  }
  for (auto const* strange : {"weir.k.owner.", "weir.k.owner.1", "weir.k.owner..x",
                              "weir.k.owner.x.y", "weir.k.owner.99999999999.y", "weir.k.p.1.y"}) {
    BOOST_TEST(!names.claim_in(strange));
  }
}

BOOST_AUTO_TEST_CASE(who_loses_what_it_takes_waits_longer_each_time) {
  nats_reluctance r;
  steady_time now{};
  BOOST_TEST(r.may_take(now));
  auto wait = 1min;
  for (int i = 0; i != nats_reluctance::most_losses + 3; ++i) {
    r.lost(now, 1min);
    BOOST_TEST(!r.may_take(now + wait - 1ns));
    BOOST_TEST(r.may_take(now + wait));
    // To keep a part for a shorter time is no success.
    r.kept(now, now + wait - 1ns);
    now += wait;
    if (i < nats_reluctance::most_losses) wait *= 2;
  }
  BOOST_TEST((wait == 64min));
  r.kept(now, now + wait);
  r.lost(now, 1min);
  BOOST_TEST(r.may_take(now + 1min));
}

BOOST_AUTO_TEST_SUITE_END()
