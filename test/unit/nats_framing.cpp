// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What of a NATS server's words reaches the C client (F90).

#include "weir/store/nats/framing.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace {

/// What passes, however it is cut; empty: the connection ends.
std::optional<std::string> passed(std::string_view bytes) {
  std::optional<std::string> whole = std::string{};
  weir::detail::nats_framing at_once;
  if (!at_once.pass(bytes, *whole)) whole.reset();
  std::optional<std::string> cut = std::string{};
  weir::detail::nats_framing by_bytes;
  for (std::size_t i = 0; cut && i != bytes.size(); ++i) {
    if (!by_bytes.pass(bytes.substr(i, 1), *cut)) cut.reset();
  }
  BOOST_TEST((whole == cut));
  return whole;
}

bool passes(std::string const& bytes) { return passed(bytes) == bytes; }
bool ends(std::string const& bytes) { return !passed(bytes); }

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_framing)

BOOST_AUTO_TEST_CASE(what_a_server_says_passes) {
  BOOST_TEST(passes("PING\r\nPONG\r\n+OK\r\n-ERR 'Stale Connection'\r\n"));
  BOOST_TEST(passes("MSG a.b 1 5\r\nhello\r\nMSG a 2 reply 0\r\n\r\n"));
  BOOST_TEST(passes(
      "HMSG a 1 12 17\r\nNATS/1.0\r\n\r\nhello\r\nHMSG a 1 b 12 12\r\nNATS/1.0\r\n\r\n\r\n"));
  BOOST_TEST(passes("MSG a 1 4\r\n\r\n\r\n\r\nPING\r\n"));
}

BOOST_AUTO_TEST_CASE(F90_a_size_that_no_server_may_use_ends_the_connection) {
  for (auto const* const size : {"2147483640", "2147483647", "4294967301", "67108865", "-1", "",
                                 "x", "1x", "99999999999999999999"}) {
    BOOST_TEST(ends("MSG a 1 " + std::string{size} + "\r\n"), size);
    BOOST_TEST(ends("HMSG a 1 12 " + std::string{size} + "\r\n"), size);
  }
  BOOST_TEST(ends("HMSG a 1 13 12\r\n"));
  BOOST_TEST(ends("MSG a -1 1\r\n"));
  BOOST_TEST(ends("MSG a 1\r\n"));
  BOOST_TEST(ends("MSG a b c d 1\r\n"));
  BOOST_TEST(ends("MSG a 1 2\r\nabc\r\n"));
  BOOST_TEST(ends("MSG a\r 1 2\r\n"));
}

BOOST_AUTO_TEST_CASE(F90_a_line_without_an_end_ends_the_connection) {
  for (auto const* const begin : {"INFO {", "MSG a", "-ERR '", "x"}) {
    BOOST_TEST(ends(begin + std::string(40'000, 'x')));
  }
  BOOST_TEST(ends("nonsense\r\n"));
  BOOST_TEST(ends("PING\n"));
}

BOOST_AUTO_TEST_CASE(F90_a_message_passes_when_it_is_whole) {
  BOOST_TEST((passed("PING\r\nMSG a 1 60000000\r\nbegins") == "PING\r\n"));
  BOOST_TEST((passed("PING\r\nMSG a 1 3\r\nabc\r") == "PING\r\n"));
}

BOOST_AUTO_TEST_CASE(F90_a_message_that_the_client_has_no_room_for_is_left_out) {
  auto const longer = "MSG " + std::string(600, 's') + " 1 3\r\nabc\r\n";
  BOOST_TEST((passed("PING\r\n" + longer + "PONG\r\n") == "PING\r\nPONG\r\n"));
}

BOOST_AUTO_TEST_CASE(F96_of_INFO_only_what_the_client_needs_passes) {
  auto const said =
      passed(R"(INFO {"server_id":"A","nonce":"n","max_payload":99999999999,"headers":true,)"
             R"("connect_urls":["10.0.0.1:4222"],"port":"x","deep":[[1]]})"
             "\r\n");
  BOOST_TEST_REQUIRE(said.has_value());
  BOOST_TEST(
      *said ==
      "INFO {\"headers\":true,\"max_payload\":67108864,\"nonce\":\"n\",\"server_id\":\"A\"}\r\n");
  BOOST_TEST(ends("INFO []\r\n"));
  BOOST_TEST(ends("INFO {\r\n"));
  BOOST_TEST(ends("INFO {\"a\":" + std::string(100, '[') + std::string(100, ']') + "}\r\n"));
}

BOOST_AUTO_TEST_SUITE_END()
