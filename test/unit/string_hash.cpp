// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/detail/string_hash.hpp"

#include <boost/container_hash/hash.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

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
