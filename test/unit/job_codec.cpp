// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/job_codec.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace {

struct parcel {
  std::string name;
  nlohmann::json content;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(parcel, name, content)

std::string nested(std::size_t depth, std::string const& inner = "1") {
  return std::string(depth, '[') + inner + std::string(depth, ']');
}

std::string payload(std::string const& content) {
  return R"({"name":"a","content":)" + content + "}";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_codec)

BOOST_AUTO_TEST_CASE(R8_a_payload_that_is_nested_too_deep_is_refused_and_overflows_no_stack) {
  constexpr auto most = weir::limits::payload_depth - 1;  // the job is an object itself
  BOOST_TEST(weir::decode<parcel>(payload(nested(most))).ok);
  for (std::size_t const depth : {most + 1, std::size_t{1000}, std::size_t{500'000}}) {
    auto const refused = weir::decode<parcel>(payload(nested(depth)));
    BOOST_TEST(!refused.ok);
    BOOST_TEST(refused.reason == "nested too deep");
  }
}

BOOST_AUTO_TEST_CASE(brackets_in_strings_are_not_nesting) {
  std::string const text(1000, '[');
  for (auto const* const around : {"\\\"", "\\\\", "\\\\\\\"", ""}) {
    auto const decoded =
        weir::decode<parcel>(payload('"' + std::string{around} + text + around + '"'));
    BOOST_TEST(decoded.ok, decoded.reason);
  }
  BOOST_TEST(!weir::decode<parcel>(payload("[\"\\\\\"," + nested(1000) + "]")).ok);
}

BOOST_AUTO_TEST_CASE(many_values_beside_each_other_are_not_nesting) {
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[{}],";
  BOOST_TEST(weir::decode<parcel>(payload(wide + "0]")).ok);
  BOOST_TEST(!weir::decode<parcel>("]]]" + nested(1000)).ok);
}

BOOST_AUTO_TEST_CASE(a_job_that_could_not_be_decoded_again_is_not_encoded) {
  parcel p;
  p.content = nlohmann::json::parse(nested(weir::limits::payload_depth - 1));
  BOOST_TEST(weir::encode(p).has_value());
  p.content = nlohmann::json::parse(nested(weir::limits::payload_depth));
  auto const refused = weir::encode(p).error() == weir::errc::unencodable_payload;
  BOOST_TEST(refused);
}

BOOST_AUTO_TEST_CASE(F86_what_has_no_json_form_says_why) {
  parcel p;
  p.content = "\xff";
  auto const why = weir::encode(p).error().message();
  BOOST_TEST(why.find("not UTF-8") != why.npos, why);
}

BOOST_AUTO_TEST_SUITE_END()
