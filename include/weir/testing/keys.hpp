// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_KEYS_HPP
#define WEIR_TESTING_KEYS_HPP

#include "weir/limits.hpp"

#include <string>
#include <vector>

namespace weir::testing {

/// Keys that careless stores take for one another, or that break their scripts (F27). All are
/// different.
[[nodiscard]] inline std::vector<std::string> difficult_keys(bool any_bytes) {
  using namespace std::string_literals;
  std::vector<std::string> keys{"a",
                                "A",
                                "a ",
                                " a",
                                "a a",
                                "a_a",
                                "a-a",
                                "a.a",
                                "a.",
                                ".a",
                                "a/a",
                                "a:a",
                                "a\\a",
                                "a+a",
                                "a%20a",
                                "a*",
                                "a>",
                                "a?",
                                "*",
                                ">",
                                "{a}",
                                "{a",
                                "}a{",
                                "{}",
                                "'",
                                "\"",
                                "'; DROP TABLE weir; --",
                                "a,b",
                                "a|b",
                                "$1",
                                "%s",
                                "%",
                                "0",
                                "00",
                                "nil",
                                "null",
                                "\t",
                                "a\tb",
                                "\xc3\xa9",
                                "e\xcc\x81",  // two forms of one letter
                                std::string(limits::key_size, 'k'),
                                std::string(limits::key_size - 1, 'k')};
  if (!any_bytes) return keys;
  for (auto const& odd : {"\0"s, "a\0"s, "a\0b"s, "a\0c"s, "a\r\nb"s, "\r\n"s, "\n"s, "\xff"s,
                          "\xfe"s, "\x80"s, "a\xc3"s, "\xed\xa0\x80"s}) {
    keys.push_back(odd);
  }
  return keys;
}

}  // namespace weir::testing

#endif
