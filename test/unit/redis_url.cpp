// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/redis/address.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

using weir::redis_address;

BOOST_AUTO_TEST_SUITE(redis_url)

BOOST_AUTO_TEST_CASE(urls_say_where_and_who) {
  auto const plain = redis_address::parse("redis://example.org").value();
  BOOST_TEST(plain.host() == "example.org");
  BOOST_TEST(plain.port() == 6379);
  BOOST_TEST(plain.database() == 0U);
  BOOST_TEST(plain.password().empty());
  BOOST_TEST(!plain.uses_tls());

  auto const full = redis_address::parse("rediss://me:p%40ss%3a%2F@[::1]:7000/3").value();
  BOOST_TEST(full.host() == "::1");
  BOOST_TEST(full.port() == 7000);
  BOOST_TEST(full.user() == "me");
  BOOST_TEST(full.password() == "p@ss:/");
  BOOST_TEST(full.database() == 3U);
  BOOST_TEST(full.uses_tls());

  auto const only_password = redis_address::parse("redis://:secret@h/").value();
  BOOST_TEST(only_password.user() == "default");
  BOOST_TEST(only_password.password() == "secret");

  auto const cluster = redis_address::parse("rediss+cluster://:secret@a:1,[::2]:2,c").value();
  BOOST_TEST(cluster.is_cluster());
  BOOST_TEST(cluster.uses_tls());
  BOOST_TEST(cluster.host() == "a");
  BOOST_TEST(cluster.port() == 1);
  BOOST_TEST_REQUIRE(cluster.others().size() == 2U);
  BOOST_TEST((cluster.others()[0] == std::pair{std::string{"::2"}, std::uint16_t{2}}));
  BOOST_TEST((cluster.others()[1] == std::pair{std::string{"c"}, std::uint16_t{6379}}));
  BOOST_TEST(!plain.is_cluster());
  BOOST_TEST(redis_address::parse("redis+cluster://a/0").value().is_cluster());

  auto const sentinels = redis_address::parse("redis+sentinel://me:secret@a:1,b/m%2Fy/3")
                             .value()
                             .authenticate_sentinels("other", "us");
  BOOST_TEST(sentinels.service() == "m/y");
  BOOST_TEST((sentinels.others().at(0) == std::pair{std::string{"b"}, std::uint16_t{26'379}}));
  BOOST_TEST(sentinels.database() == 3U);
  auto const server = sentinels.at("c", 2);
  BOOST_TEST((server.service().empty() && server.others().empty()));
  BOOST_TEST((server.user() == "me" && server.password() == "secret" && server.database() == 3U));
  auto const sentinel = sentinels.sentinel_at("b", 3);
  BOOST_TEST((sentinel.host() == "b" && sentinel.port() == 3 && sentinel.service().empty()));
  BOOST_TEST((sentinel.user() == "us" && sentinel.password() == "other"));
  BOOST_TEST(sentinel.database() == 0U);
  BOOST_TEST(redis_address::parse("rediss+sentinel://a/s").value().uses_tls());
  BOOST_TEST(plain.service().empty());

  auto const known =
      redis_address::parse("rediss://h/3?cacert=/c%26a&cert=/mine&key=/secret").value();
  BOOST_TEST(known.ca_file() == "/c&a");
  BOOST_TEST(known.certificate_file() == "/mine");
  BOOST_TEST(known.key_file() == "/secret");
  BOOST_TEST(known.database() == 3U);
  BOOST_TEST(full.certificate_file().empty());
  BOOST_TEST(redis_address{}.certificate("c", "k").uses_tls());

  auto const socket = redis_address::parse("redis+unix://me:p%40@/tmp/a%20b@c?db=3").value();
  BOOST_TEST(socket.path() == "/tmp/a b@c");
  BOOST_TEST(socket.user() == "me");
  BOOST_TEST(socket.password() == "p@");
  BOOST_TEST(socket.database() == 3U);
  BOOST_TEST(redis_address::parse("unix:///s").value().path() == "/s");
  BOOST_TEST(plain.path().empty());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_url_is_said) {
  using e = weir::detail::redis_url;
  struct row {
    std::string url;
    std::string_view wrong;
  };
  std::string const too_long = "unix:///" + std::string(107, 'x');
  std::string const long_name(256, 'x');
  row const rows[] = {
      {too_long, e::bad_path},
      {"", e::no_url},
      {"redis+cluster://a,", e::bad_host},
      {"redis+cluster://,a", e::bad_host},
      {"redis+cluster://a,,b", e::bad_host},
      {"redis+cluster://a/1", e::bad_database},
      {"redis+clusters://a", e::unknown_scheme},
      {"redis+://a", e::unknown_scheme},
      {"+cluster://a", e::unknown_scheme},
      {"redis://a,", e::bad_host},
      {"redis:", e::no_url},
      {"redis:/h", e::no_url},
      {"http://h", e::unknown_scheme},
      {"redis://", e::bad_host},
      {"redis://:80", e::bad_host},
      {"redis://h:", e::bad_port},
      {"redis://h:0", e::bad_port},
      {"redis://h:65536", e::bad_port},
      {"redis://h:1x", e::bad_port},
      {"redis://h/x", e::bad_database},
      {"redis://h/-1", e::bad_database},
      {"redis://h/65536", e::bad_database},
      {"redis://h/1/2", e::bad_database},
      {"redis://me@h", e::bad_credentials},
      {"redis://me:@h", e::bad_credentials},
      {"redis://:%4@h", e::bad_credentials},
      {"redis://:%zz@h", e::bad_credentials},
      {"redis://[::1", e::bad_host},
      {"redis://[::1]x", e::bad_host},
      {"redis://[]:1", e::bad_host},
      {"redis://h?x=1", e::unknown_option},
      {"redis://h#x", e::unknown_option},
      {"redis://h%00x", e::bad_host},
      {"redis://a b", e::bad_host},
      {"unix://", e::bad_path},
      {"unix://tmp/s", e::bad_path},
      {"unix://me@/tmp/s", e::bad_credentials},
      {"unix:///tmp/s?db=", e::bad_database},
      {"unix:///tmp/s?db=1&x=1", e::unknown_option},
      {"unix:///tmp/s?x=1", e::unknown_option},
      {"unix:///tmp/s#x", e::unknown_option},
      {"unix:///tmp/%00", e::bad_path},
      {"rediss+unix:///tmp/s", e::unknown_scheme},
      {"redis+unix:/tmp/s", e::no_url},
      {"unix:///tmp/s?db=x", e::bad_database},
      {"redis://u:p@", e::bad_host},
      {"redis://[::1]:0", e::bad_port},
      {"redis+cluster://a:1,b:x", e::bad_port},
      {"unix:///tmp/%0", e::bad_path},
      {"redis+sentinel://a", e::no_service},
      {"redis+sentinel://a/", e::no_service},
      {"redis+sentinel://a//1", e::no_service},
      {"redis+sentinel://a/s%20", e::no_service},
      {"redis+sentinel://a/" + long_name, e::no_service},
      {"redis+sentinel://a/s/x", e::bad_database},
      {"redis+sentinel://a,/s", e::bad_host},
      {"redis://h?", e::unknown_option},
      {"rediss://h?cert=/c&keys=/k", e::unknown_option},
      {"rediss://h?cert=/c", e::bad_certificate},
      {"rediss://h?key=/k", e::bad_certificate},
      {"rediss://h?cacert=", e::bad_certificate},
      {"rediss://h?cacert=/%00", e::bad_certificate},
      {"redis://h?cacert=/c", e::bad_certificate},
  };
  std::set<std::string_view> seen;
  for (auto const& [url, wrong] : rows) {
    auto const read = redis_address::parse(url);
    BOOST_TEST_REQUIRE(read.has_error(), url);
    BOOST_TEST((read.error() == weir::errc::invalid_option));
    BOOST_TEST(weir::detail::explanation_of(read.error()) == wrong, url << ": " << read.error());
    seen.insert(wrong);
  }
  BOOST_TEST(seen.size() == 10U);
}

BOOST_AUTO_TEST_SUITE_END()
