// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../../example/manifest/byte_tokens.hpp"
#include "../../example/manifest/options.hpp"
#include "weir/rule/bucket_scale.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

using manifest::options;
using manifest::parse_rate;
using manifest::usage_error;

namespace {

options parse(std::vector<char const*> const& arguments) {
  return manifest::parse_options(arguments);
}

std::string why(std::vector<char const*> const& arguments) {
  try {
    (void)parse(arguments);
  } catch (usage_error const& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(manifest_options)

BOOST_AUTO_TEST_CASE(without_arguments_the_defaults_hold) {
  auto const o = parse({});
  BOOST_TEST(o.directory == "/usr/include");
  BOOST_TEST(o.output == "SHA256SUMS");
  BOOST_TEST(!o.in_memory);
  BOOST_TEST(o.store == "manifest.db");
  BOOST_TEST(!o.fresh);
  BOOST_TEST(o.workers >= 1);
  BOOST_TEST(o.open_files == 64);
  BOOST_TEST(o.rate == 0);
  BOOST_TEST(o.attempts == 3);
  BOOST_TEST(!o.plain);
  BOOST_TEST(!o.help);
}

BOOST_AUTO_TEST_CASE(options_take_their_value_after_a_space_or_an_equals_sign) {
  auto const o = parse({"--workers", "3", "dir", "--open-files=5", "--rate=1MB/s", "--attempts",
                        "2", "--plain", "--store", "memory", "-o", "out=1"});
  BOOST_TEST(o.directory == "dir");
  BOOST_TEST(o.workers == 3);
  BOOST_TEST(o.open_files == 5);
  BOOST_TEST(o.rate == 1'000'000);
  BOOST_TEST(o.attempts == 2);
  BOOST_TEST(o.plain);
  BOOST_TEST(o.output == "out=1");
  BOOST_TEST(parse({"--output=a=b"}).output == "a=b");
  BOOST_TEST(parse({"--output", "a", "--output", "b"}).output == "b");
  BOOST_TEST(parse({"--output", "-"}).output == "-");
}

BOOST_AUTO_TEST_CASE(a_store_is_memory_or_a_file_or_on_a_server) {
  BOOST_TEST(parse({"--store", "memory"}).in_memory);
  BOOST_TEST(parse({"--store", "sqlite"}).store == "manifest.db");
  BOOST_TEST(parse({"--store=sqlite:a=b:c"}).store == "a=b:c");
  auto const again = parse({"--store", "sqlite:/a/b", "--store", "memory", "--store", "sqlite"});
  BOOST_TEST(again.store == "/a/b");  // the last counts, and has no PATH of its own
  BOOST_TEST(!again.in_memory);
  for (std::string const url :
       {"redis://h", "rediss://h:1", "postgres://h", "postgresql://h/d", "nats://h"}) {
    BOOST_TEST(parse({"--store", url.c_str()}).server == url);
  }
  BOOST_TEST(parse({"--store", "redis://h", "--store", "memory"}).server.empty());
  BOOST_TEST(parse({"--fresh"}).fresh);
}

BOOST_AUTO_TEST_CASE(a_folder_may_be_named_like_an_option) {
  BOOST_TEST(parse({"--", "--rate"}).directory == "--rate");
  BOOST_TEST(parse({"--plain", "--", "-x"}).directory == "-x");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_followed_is_said) {
  BOOST_TEST(why({"a", "b"}) == "only one DIR can be given, not 'a' and 'b'");
  BOOST_TEST(why({""}) == "DIR is empty");
  BOOST_TEST(why({"--bogus"}) == "there is no option '--bogus'");
  BOOST_TEST(why({"-x"}) == "there is no option '-x'");
  BOOST_TEST(why({"--plain=1"}) == "--plain takes no value");
  BOOST_TEST(why({"--workers"}) == "--workers wants a value");
  BOOST_TEST(why({"--output="}) == "--output wants the name of a file");
  for (std::string const store : {"sqlit", "sqlite:", "redis", ""}) {
    BOOST_TEST(
        why({"--store", store.c_str()}) ==
        "--store knows memory, sqlite[:PATH], redis://, rediss://, postgres:// and nats://, not '" +
            store + "'");
  }
  BOOST_TEST(why({"--store", "redis://h", "--fresh"}) ==
             "--fresh forgets nothing on a server, which others use");
  BOOST_TEST(why({"--fresh=yes"}) == "--fresh takes no value");
  for (auto const* count : {"0", "-1", "257", "1.5", "many", "", " 3", "99999999999999999999"}) {
    BOOST_TEST(why({"--workers", count}) ==
               "--workers wants a number from 1 to 256, not '" + std::string{count} + "'");
  }
}

BOOST_AUTO_TEST_CASE(rates_are_exact_in_every_unit) {
  BOOST_TEST(parse_rate("1") == 1);
  BOOST_TEST(parse_rate("500000") == 500'000);
  BOOST_TEST(parse_rate("500000/s") == 500'000);
  BOOST_TEST(parse_rate("10B/s") == 10);
  BOOST_TEST(parse_rate("64k") == 64'000);
  BOOST_TEST(parse_rate("64KB/s") == 64'000);
  BOOST_TEST(parse_rate("64KiB/s") == 65'536);
  BOOST_TEST(parse_rate("200MB/s") == 200'000'000);
  BOOST_TEST(parse_rate("200M") == 200'000'000);
  BOOST_TEST(parse_rate("1.5GiB/s") == 1'610'612'736);
  BOOST_TEST(parse_rate("0.1GB/s") == 100'000'000);
  BOOST_TEST(parse_rate("0.3MB/s") == 300'000);
  BOOST_TEST(parse_rate(".5k") == 500);
  BOOST_TEST(parse_rate("1.k") == 1000);
  BOOST_TEST(parse_rate("1.9") == 1);
  BOOST_TEST(parse_rate("1TB/s") == 1'000'000'000'000);
}

BOOST_AUTO_TEST_CASE(rates_that_are_none_are_refused) {
  for (auto const* rate : {"",
                           "0",
                           "0MB/s",
                           "0.0",
                           "0.9",
                           "-1",
                           "+1",
                           ".",
                           "/s",
                           "MB/s",
                           "1e3",
                           "1,5MB/s",
                           "1.2.3",
                           "nan",
                           "inf",
                           "0x10",
                           "1 MB/s",
                           "1MB/s ",
                           "1MBps",
                           "1iB",
                           "1mB",
                           "1PB",
                           "1MM",
                           "1Mi/s/s",
                           "1.1TB/s",
                           "2TiB",
                           "1000000000001",
                           "99999999999999999999999999999999",
                           "99999999999999999999999999999999TiB/s"}) {
    BOOST_CHECK_THROW((void)parse_rate(rate), usage_error);
  }
  BOOST_TEST(why({"--rate", "8Mb/s"}) == "--rate wants bytes (B), not bits (b), not '8Mb/s'");
}

BOOST_AUTO_TEST_CASE(every_rate_is_a_quota_that_a_store_can_represent) {
  using manifest::byte_tokens;
  for (std::uint64_t rate = 1; rate <= 1'000'000'000'000; rate = rate * 3 / 2 + 1) {
    auto const t = byte_tokens::of(rate);
    BOOST_TEST(weir::rule::bucket_scale::of(t.quota()).has_value(), rate);
    // Never faster than asked for, and not much slower.
    BOOST_TEST(t.rate * t.block <= rate);
    BOOST_TEST(t.rate * t.block >= rate - rate / 1'000'000);
    // What is read at a time can be paid.
    BOOST_TEST(t.chunk % t.block == 0);
    BOOST_TEST(t.chunk > 0);
    BOOST_TEST(t.cost(t.chunk) <= t.quota().capacity());
    BOOST_TEST(t.cost(1) == 1);
    BOOST_TEST(t.cost(t.chunk - t.block + 1) == t.cost(t.chunk));
  }
  // In bytes where they are few.
  BOOST_TEST(byte_tokens::of(2'000'000).block == 1);
  BOOST_TEST(byte_tokens::of(200'000'000).block == 128);
  BOOST_TEST(byte_tokens::of(7).chunk == 1);
}

BOOST_AUTO_TEST_SUITE_END()
