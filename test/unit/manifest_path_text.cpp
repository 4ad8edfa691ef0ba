// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../../example/manifest/path_text.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>

using namespace std::string_literals;
using manifest::for_terminal;
using manifest::from_text;
using manifest::to_text;

BOOST_AUTO_TEST_SUITE(manifest_path_text)

BOOST_AUTO_TEST_CASE(utf8_stays_readable) {
  BOOST_TEST(to_text("/usr/include/x y.h") == "/usr/include/x y.h");
  BOOST_TEST(to_text("/tmp/gr\xC3\xBC\xC3\x9F/\xF0\x9F\x98\x80") ==
             "/tmp/gr\xC3\xBC\xC3\x9F/\xF0\x9F\x98\x80");
  BOOST_TEST(to_text("a\nb\\c\x01") == "a\nb\\c\x01");  // JSON's own escapes are JSON's business
  BOOST_TEST(to_text("") == "");
}

BOOST_AUTO_TEST_CASE(what_is_not_utf8_is_escaped_and_so_is_the_escape) {
  BOOST_TEST(to_text("100%") == "100%25");
  BOOST_TEST(to_text("%41") == "%2541");
  BOOST_TEST(to_text("\xFF\xFE") == "%FF%FE");
  BOOST_TEST(to_text("a\xC3") == "a%C3");                     // cut short
  BOOST_TEST(to_text("\xC3/x") == "%C3/x");                   // what follows is not swallowed
  BOOST_TEST(to_text("\xC0\xAF") == "%C0%AF");                // overlong
  BOOST_TEST(to_text("\xED\xA0\x80") == "%ED%A0%80");         // a surrogate
  BOOST_TEST(to_text("\xF4\x90\x80\x80") == "%F4%90%80%80");  // above U+10FFFF
}

BOOST_AUTO_TEST_CASE(every_path_comes_back_through_JSON_and_no_two_share_a_text) {
  std::mt19937 random{42};
  // Few different bytes, so that the same texts would be met if there were any.
  std::string_view const alphabet = "a%2F\xC3\xA4\xFF\x80\xE2\x82\n";
  std::set<std::string> paths;
  std::set<std::string> texts;
  for (int i = 0; i < 20'000; ++i) {
    std::string path;
    for (auto n = random() % 7; n > 0; --n) path += alphabet[random() % alphabet.size()];
    auto const text = to_text(path);
    nlohmann::json const json = {{"path", text}};
    auto const again = nlohmann::json::parse(json.dump()).at("path").get<std::string>();
    BOOST_REQUIRE(from_text(again) == path);
    paths.insert(path);
    texts.insert(text);
  }
  BOOST_TEST(paths.size() == texts.size());
}

BOOST_AUTO_TEST_CASE(a_text_that_no_path_has_is_refused) {
  for (auto const* text : {"%", "%2", "%2X", "%ff", "%41", "a%", "%C3%A4", "%0A"}) {
    BOOST_TEST(!from_text(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(nothing_that_a_terminal_obeys_is_shown) {
  BOOST_TEST(for_terminal("a\x1B[31mred") == "a\\x1B[31mred");
  BOOST_TEST(for_terminal("a\nb\rc\td\\e") == "a\\nb\\rc\\td\\\\e");
  BOOST_TEST(for_terminal("\x7F\x08") == "\\x7F\\x08");
  BOOST_TEST(for_terminal("\xC2\x9B"
                          "31m") == "\\xC2\\x9B31m");                   // CSI as one character
  BOOST_TEST(for_terminal("\x9B") == "\\x9B");                          // and as one byte
  BOOST_TEST(for_terminal("\xE2\x80\xAEgpj") == "\\xE2\\x80\\xAEgpj");  // right-to-left override
  BOOST_TEST(for_terminal("\0x"s) == "\\x00x");
  BOOST_TEST(for_terminal("gr\xC3\xBC\xC3\x9F") == "gr\xC3\xBC\xC3\x9F");
}

BOOST_AUTO_TEST_CASE(every_byte_shown_is_a_printable_one) {
  std::mt19937 random{7};
  for (int i = 0; i < 20'000; ++i) {
    std::string path;
    for (auto n = random() % 6; n > 0; --n) path += static_cast<char>(random());
    for (char const c : for_terminal(path)) {
      auto const byte = static_cast<unsigned char>(c);
      BOOST_REQUIRE(byte >= 0x20);
      BOOST_REQUIRE(byte != 0x7F);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
