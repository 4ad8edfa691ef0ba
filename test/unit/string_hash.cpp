// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/detail/string_hash.hpp"

#include <boost/container_hash/hash.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

using weir::detail::sip_hash;
using weir::detail::string_hash;

BOOST_AUTO_TEST_SUITE(string_hash_of_a_process)

BOOST_AUTO_TEST_CASE(equal_texts_are_found_again) {
  for (std::size_t n = 0; n != 100; ++n) {
    std::string const text(n, 'x');
    BOOST_TEST(string_hash{}(text) == string_hash{}(std::string_view{std::string(text)}));
  }
}

BOOST_AUTO_TEST_CASE(different_texts_are_told_apart) {
  std::set<std::size_t> seen;
  for (std::size_t n = 0; n != 10'000; ++n) seen.insert(string_hash{}(std::to_string(n)));
  BOOST_TEST(seen.size() == 10'000U);
}

// With the key and the inputs of the paper. The numbers are those of an independent
// implementation, whose SipHash-2-4 gives the one in the paper.
BOOST_AUTO_TEST_CASE(it_is_siphash_1_3) {
  constexpr sip_hash::key key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  constexpr std::pair<std::size_t, std::uint64_t> known[] = {
      {0, 0xabac0158050fc4dc}, {1, 0xc9f49bf37d57ca93},  {7, 0xd3927d989bb11140},
      {8, 0x369095118d299a8e}, {15, 0xd320d86d2a519956}, {63, 0x9d199062b7bbb3a8},
  };
  for (auto const& [size, hash] : known) {
    std::string text;
    for (std::size_t i = 0; i != size; ++i) text += static_cast<char>(i);
    BOOST_TEST(sip_hash::of(text, key) == hash);
  }
}

// Nobody can work out beforehand where a text will be.
BOOST_AUTO_TEST_CASE(it_is_not_the_hash_without_a_seed) {
  int equal = 0;
  for (int n = 0; n != 100; ++n) {
    auto const text = std::to_string(n);
    equal += static_cast<int>(string_hash{}(text) == boost::hash<std::string_view>{}(text));
  }
  BOOST_TEST(equal == 0);
}

BOOST_AUTO_TEST_SUITE_END()
