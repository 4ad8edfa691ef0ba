// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../../../example/manifest/hash_file.hpp"
#include "../../../example/manifest/options.hpp"
#include "../../../example/manifest/path_text.hpp"
#include "weir/job_codec.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using manifest::checksum_line;
using manifest::failure;
using manifest::options;

namespace {

options parse(std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "manifest");
  return manifest::parse_options(static_cast<int>(arguments.size()), arguments.data());
}

bool is_wrong_usage(failure const& e) {
  return e.code == manifest::wrong_usage && *e.what() != '\0';
}

}  // namespace

BOOST_AUTO_TEST_SUITE(manifest_example)

BOOST_AUTO_TEST_CASE(a_job_carries_any_path) {
  std::string path = "/";
  for (int c = 1; c < 256; ++c) path += static_cast<char>(c);
  auto const payload = weir::encode(manifest::hash_file{path});
  BOOST_REQUIRE(payload.has_value());
  auto const job = weir::decode<manifest::hash_file>(*payload);
  BOOST_TEST(job.ok);
  BOOST_TEST((job.value.path == path));
  BOOST_TEST(*weir::encode(manifest::hash_file{"/usr/include/x.h"}) ==
             R"({"path":"/usr/include/x.h"})");
}

BOOST_AUTO_TEST_CASE(what_is_no_path_is_refused) {
  for (char const* text : {"\xC4\x80", "\xE2\x82\xAC", "\xFF", "\xC3", "\xC3("}) {
    BOOST_CHECK_THROW(static_cast<void>(manifest::from_text(text)), std::invalid_argument);
  }
  for (char const* payload : {R"({"path":"€"})", R"({"path":1})", "{}", "[]", "no"}) {
    BOOST_TEST(!weir::decode<manifest::hash_file>(payload).ok, payload);
  }
}

BOOST_AUTO_TEST_CASE(a_line_is_as_sha256sum_prints_it) {
  BOOST_TEST(checksum_line("d1", "a b") == "d1  a b\n");
  BOOST_TEST(checksum_line("d1", "a\nb") == "\\d1  a\\nb\n");
  BOOST_TEST(checksum_line("d1", "a\\b\r") == "\\d1  a\\\\b\\r\n");
  BOOST_TEST(checksum_line("d1", "*\t\xFF") == "d1  *\t\xFF\n");
}

BOOST_AUTO_TEST_CASE(a_job_is_known_by_path_and_stamp) {
  std::set<weir::job_id> ids;
  for (char const* path : {"/a", "/b", "/a:", "/"}) {
    for (char const* stamp : {"", "1,2,3,4", "1,2,3,5"}) {
      auto const id = manifest::job_of(path, stamp);
      BOOST_TEST((id == manifest::job_of(path, stamp)));
      BOOST_TEST(static_cast<int>(id.version()) == 8);
      ids.insert(id);
    }
  }
  BOOST_TEST(ids.size() == 12U);
}

BOOST_AUTO_TEST_CASE(a_long_path_has_a_key_too) {
  std::string const longest(weir::limits::key_size, 'a');
  BOOST_TEST(manifest::key_of(longest) == longest);
  BOOST_TEST(manifest::key_of(longest + 'a') ==
             "sha256:" + manifest::hex_text(manifest::sha256_of(longest + 'a')));
  BOOST_TEST(manifest::key_of(longest + 'a') != manifest::key_of(longest + 'b'));
}

BOOST_AUTO_TEST_CASE(a_digest_is_that_of_all_pieces) {
  manifest::sha256 sum;
  sum.update("a");
  sum.update("bc");
  BOOST_TEST(manifest::hex_text(sum.finish()) ==
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

BOOST_AUTO_TEST_CASE(a_rate_is_what_it_says) {
  for (auto const& [text, rate] :
       std::initializer_list<std::pair<char const*, std::uint64_t>>{{"500000", 500'000},
                                                                    {"200MB/s", 200'000'000},
                                                                    {"1.5GiB/s", 1'610'612'736},
                                                                    {"0.1GB/s", 100'000'000},
                                                                    {"2K", 2'000},
                                                                    {"2kB", 2'000},
                                                                    {"3Ki/s", 3'072},
                                                                    {"1TB/s", 1'000'000'000'000}}) {
    BOOST_TEST(parse({"--rate", text}).rate == rate, text);
  }
  for (char const* text : {"", "0", "0.5", "-1", "nan", "inf", "1x", "1Mb/s", "1MiBB", "1i", "iB",
                           "1KK", "1.1TB", "1 MB", "1B/s/s"}) {
    BOOST_CHECK_EXCEPTION(parse({"--rate", text}), failure, is_wrong_usage);
  }
}

BOOST_AUTO_TEST_CASE(options_are_followed_and_the_last_one_counts) {
  BOOST_TEST(parse({}).directory == "/usr/include");
  BOOST_TEST(parse({}).output == "SHA256SUMS");
  BOOST_TEST(parse({}).database() == "manifest.db");
  auto const o =
      parse({"--store", "sqlite:a", "-o", "x", "--workers=7", "dir", "--open-files", "9",
             "--attempts", "2", "--fresh", "--plain", "--output=-", "--store", "memory"});
  BOOST_TEST(o.directory == "dir");
  BOOST_TEST(o.output == "-");
  BOOST_TEST(o.store == "memory");
  BOOST_TEST(o.database().empty());
  BOOST_TEST(o.workers == 7U);
  BOOST_TEST(o.open_files == 9U);
  BOOST_TEST(o.attempts == 2U);
  BOOST_TEST((o.fresh && o.plain));
  BOOST_TEST(parse({"--", "-d"}).directory == "-d");
  BOOST_TEST(parse({"--store", "sqlite"}).database() == "manifest.db");
  BOOST_TEST(parse({"--store", "rediss://h"}).store == "rediss://h");
}

BOOST_AUTO_TEST_CASE(a_wrong_option_is_a_typed_error) {
  using arguments = std::vector<char const*>;
  for (auto const& wrong :
       {arguments{"--bogus"}, arguments{"a", "b"}, arguments{"--output"}, arguments{"--output", ""},
        arguments{"--workers", "0"}, arguments{"--workers", "257"}, arguments{"--workers", "1x"},
        arguments{"--workers", "-1"}, arguments{"--open-files", "4097"},
        arguments{"--attempts", "101"}, arguments{"--attempts", "99999999999999999999"},
        arguments{"--store", "redsi://h"}, arguments{"--store", "sqlite:"},
        arguments{"--store", ""}, arguments{"--fresh=2x"}}) {
    BOOST_CHECK_EXCEPTION(parse(wrong), failure, is_wrong_usage);
  }
}

BOOST_AUTO_TEST_SUITE_END()
