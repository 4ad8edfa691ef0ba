// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs that are not written as JSON, or were before.
#include "unit/worker_fixture.hpp"
#include "weir/codec.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace test {

struct parcel {
  std::string name;
  std::vector<int> weights;
  nlohmann::json content;
  bool operator==(parcel const&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(parcel, name, weights, content)

struct in_cbor : parcel {};
struct in_message_pack : parcel {};
struct in_either : parcel {};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(in_cbor, name, weights, content)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(in_message_pack, name, weights, content)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(in_either, name, weights, content)

struct frame {  // no JSON form
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint8_t pixels[8] = {};
  bool operator==(frame const&) const = default;
};

/// Of the user's, with a form of its own.
struct secret {
  std::string text;
};
struct backwards {
  static constexpr std::string_view name = "backwards";
  static std::string encode(secret const& s) {
    if (s.text == "refused") throw std::runtime_error{"no"};
    return {s.text.rbegin(), s.text.rend()};
  }
  template <class T>
  static T decode(std::string_view bytes) {
    if (bytes == "odd") throw std::runtime_error{"it is odd"};
    return T{{bytes.rbegin(), bytes.rend()}};
  }
};

}  // namespace test

template <>
struct weir::job_traits<test::in_cbor> {
  static constexpr std::string_view kind = "parcel";
  static constexpr weir::cbor_codec codec{};
};
template <>
struct weir::job_traits<test::in_message_pack> {
  static constexpr std::string_view kind = "parcel";
  static constexpr weir::message_pack_codec codec{};
};
template <>
struct weir::job_traits<test::in_either> {
  static constexpr std::string_view kind = "parcel";
  static constexpr std::tuple<weir::message_pack_codec, weir::cbor_codec> codec{};
};
template <>
struct weir::job_traits<test::frame> {
  static constexpr std::string_view kind = "frame";
  static constexpr weir::raw_codec codec{};
};
template <>
struct weir::job_traits<test::secret> {
  static constexpr std::string_view kind = "secret";
  static constexpr test::backwards codec{};
};

using namespace test;
using namespace std::string_literals;
using kind = weir::worker_event_kind;

namespace {

template <class T>
T a_parcel() {
  T out;
  out.name = "a\xff";  // not UTF-8, which only JSON text has to be
  out.weights = {1, -2, 3'000'000};
  out.content = {{"deep", {{"deeper", {1.5, nullptr, true}}}}};
  return out;
}

std::string nested(std::size_t depth, char one) { return std::string(depth, one) + '\x01'; }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(codecs, worker_fixture)

BOOST_AUTO_TEST_CASE(what_a_codec_writes_it_reads) {
  auto const check = [](auto const& job, std::string_view name) {
    using type = std::remove_cvref_t<decltype(job)>;
    auto const payload = weir::encode(job);
    BOOST_TEST_REQUIRE(payload.has_value());
    BOOST_TEST(payload->starts_with('\0' + std::string{name} + '\0'));
    auto const back = weir::decode<type>(*payload);
    BOOST_TEST_REQUIRE(back.ok, back.reason);
    BOOST_TEST((back.value == job));
  };
  check(a_parcel<in_cbor>(), "cbor");
  check(a_parcel<in_message_pack>(), "msgpack");
  check(a_parcel<in_either>(), "msgpack");
  check(frame{640, 480, {1, 2, 0, 255}}, "raw");
}

BOOST_AUTO_TEST_CASE(what_was_written_before_stays_readable) {
  auto const old = weir::encode(a_parcel<in_cbor>());
  BOOST_TEST(weir::decode<in_either>(*old).ok);
  BOOST_TEST(weir::decode<in_message_pack>(*old).reason == "this type has no codec named cbor");
  BOOST_TEST(weir::decode<parcel>(*old).reason ==
             "it was written by a codec, and its type has none");
  auto const json = R"({"name":"a","weights":[],"content":null})";
  BOOST_TEST(weir::decode<in_cbor>(json).ok);
  BOOST_TEST(weir::decode<frame>(json).reason ==
             "it was not written by a codec, and its type has no JSON form");
}

BOOST_AUTO_TEST_CASE(bad_payloads_are_told) {
  auto const reason = [](std::string const& payload) {
    auto const got = weir::decode<in_cbor>(payload);
    BOOST_TEST(!got.ok);
    return got.reason;
  };
  for (auto const& payload :
       {"\0"s, "\0\0"s, "\0cbor"s, "\0c bor\0\xa0"s, '\0' + std::string(33, 'a') + "\0"s}) {
    BOOST_TEST(reason(payload) == "it does not begin with the name of a codec");
  }
  BOOST_TEST(reason("\0other\0"s) == "this type has no codec named other");
  BOOST_TEST(reason("\0cbor\0"s).find("unexpected end of input") != std::string::npos);
  BOOST_TEST(reason("\0cbor\0\xa0\x01"s).find("expected end of input") != std::string::npos);
  BOOST_TEST(weir::decode<frame>("\0raw\0short"s).reason == "it is of another size");
  BOOST_TEST(weir::decode<secret>("\0backwards\0odd"s).reason == "it is odd");
  auto refused = weir::encode(secret{"refused"}).error() == weir::errc::unencodable_payload;
  BOOST_TEST(refused);
  in_cbor tagged;
  tagged.content = nlohmann::json::binary({1, 2}, 3);
  refused = weir::encode(tagged).error() == weir::errc::unencodable_payload;
  BOOST_TEST(refused);
  tagged.content = nlohmann::json::binary({1, 2});
  BOOST_TEST(weir::decode<in_cbor>(*weir::encode(tagged)).ok);
}

BOOST_AUTO_TEST_CASE(R8_a_payload_that_is_nested_too_deep_overflows_no_stack) {
  for (std::size_t const depth :
       {std::size_t{weir::limits::payload_depth} + 1, std::size_t{500'000}}) {
    // Arrays of one, in each form.
    BOOST_TEST(weir::decode<in_cbor>("\0cbor\0"s + nested(depth, '\x81')).reason ==
               "nested too deep");
    BOOST_TEST(weir::decode<in_message_pack>("\0msgpack\0"s + nested(depth, '\x91')).reason ==
               "nested too deep");
  }
  // Chunks within chunks, of which no reader's callback is told.
  for (auto const* const open : {"\x5f", "\x7f", "\xa1\x7f"}) {
    auto const head = std::string{open};
    std::string const payload = "\0cbor\0"s + head + std::string(500'000, head.back());
    BOOST_TEST(weir::decode<in_cbor>(payload).reason == "nested too deep");
    BOOST_TEST(weir::decode<in_cbor>("\0cbor\0"s + head + std::string{head.back(), 0x61}).reason ==
               "nested too deep");
  }
  auto const chunks = "\x7f\x61"s + "a" + "\x61"s + "b\xff";
  in_cbor const whole = weir::decode<in_cbor>("\0cbor\0\xa3\x64name"s + chunks +
                                              "\x67weights\x80\x67"s + "content" + chunks)
                            .value;
  BOOST_TEST(whole.name == "ab");
  BOOST_TEST(whole.content == "ab");
  in_cbor deep;
  for (std::size_t i = 0; i <= weir::limits::payload_depth; ++i) {
    deep.content = nlohmann::json::array({std::move(deep.content)});
  }
  auto const refused = weir::encode(deep).error() == weir::errc::unencodable_payload;
  BOOST_TEST(refused);
}

BOOST_AUTO_TEST_CASE(workers_read_what_is_enqueued) {
  auto w = make_worker();
  std::vector<std::string> heard;
  w.handle<frame>([&](frame const& f) { heard.push_back(std::to_string(f.width)); });
  w.handle<secret>([&](secret const& s) { heard.push_back(s.text); });
  enqueue(frame{640, 480, {}});
  enqueue(secret{"drawkcab"});
  BOOST_TEST(ask(weir::command::peek_jobs{"default", 2}).at(1).payload == "\0backwards\0backward"s);
  auto const damaged = enqueue("frame", "\0raw\0short"s);
  start(w);
  BOOST_TEST(heard == (std::vector<std::string>{"640", "drawkcab"}),
             boost::test_tools::per_element());
  BOOST_TEST(events[kind::dead_lettered] == 1);
  BOOST_TEST(find(damaged)->reason.find("size") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
