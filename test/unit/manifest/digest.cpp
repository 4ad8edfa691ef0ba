// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../../../example/manifest/file_digest.hpp"
#include "../../../example/manifest/hash_file.hpp"
#include "weir/job_codec.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fs = std::filesystem;
using manifest::file_digest;
using manifest::hash_file;
using manifest::next_read;
using manifest::unreadable;

namespace {

struct temporary_file {
  explicit temporary_file(std::string const& bytes) {
    std::string made = (fs::temp_directory_path() / "weir-digest-XXXXXX").native();
    int const fd = ::mkstemp(made.data());
    BOOST_REQUIRE(fd >= 0);
    ::close(fd);
    name = made;
    add(bytes);
  }
  temporary_file(temporary_file const&) = delete;
  temporary_file& operator=(temporary_file const&) = delete;
  ~temporary_file() {
    std::error_code ignored;
    fs::remove(name, ignored);
  }

  void add(std::string const& bytes) const {
    std::ofstream{name, std::ios::binary | std::ios::app} << bytes;
  }

  std::string name;
};

std::string digest_of(std::string const& name, std::uint64_t chunk) {
  file_digest file{name};
  while (file.read(chunk) == chunk) {
  }
  return file.finish();
}

std::string reason(std::string const& name) {
  try {
    (void)digest_of(name, 100);
  } catch (unreadable const& e) {
    return e.what();
  }
  return "read";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(manifest_digest)

// The vectors are those of FIPS 180-4's examples.
BOOST_AUTO_TEST_CASE(digests_are_SHA_256) {
  BOOST_TEST(digest_of(temporary_file{""}.name, 1) ==
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(digest_of(temporary_file{"abc"}.name, 100) ==
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  temporary_file const million{std::string(1'000'000, 'a')};
  for (std::uint64_t const chunk : {std::uint64_t{777}, std::uint64_t{1} << 17U,
                                    std::uint64_t{1'000'000}, std::uint64_t{1} << 30U}) {
    BOOST_TEST(digest_of(million.name, chunk) ==
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

BOOST_AUTO_TEST_CASE(why_a_file_cannot_be_read_is_said_in_the_system_s_words) {
  temporary_file const f{"x"};
  BOOST_TEST(reason(f.name + ".gone") == "No such file or directory");
  BOOST_TEST(reason(f.name + "/x") == "Not a directory");
  BOOST_TEST(reason("/tmp/" + std::string(300, 'x')) == "File name too long");
  BOOST_TEST(reason("/dev/null") == "not a regular file any more");
  BOOST_TEST(reason("/tmp") == "not a regular file any more");
  fs::create_symlink(f.name, f.name + ".link");
  BOOST_TEST(reason(f.name + ".link") == "Too many levels of symbolic links");
  fs::remove(f.name + ".link");
  // A pipe without a writer would keep who opens it waiting.
  BOOST_REQUIRE(::mkfifo((f.name + ".pipe").c_str(), 0600) == 0);
  BOOST_TEST(reason(f.name + ".pipe") == "not a regular file any more");
  fs::remove(f.name + ".pipe");
}

BOOST_AUTO_TEST_CASE(a_file_that_changes_while_it_is_read_has_no_digest) {
  temporary_file const f{std::string(1'000, 'x')};
  for (bool const grow : {true, false}) {
    file_digest file{f.name};
    BOOST_TEST(file.read(500) == 500);
    if (grow) {
      f.add("more");
    } else {
      fs::last_write_time(f.name, fs::last_write_time(f.name) + std::chrono::seconds{1});
    }
    (void)file.read(10'000);
    BOOST_CHECK_EXCEPTION((void)file.finish(), unreadable, [](unreadable const& e) {
      return std::string{e.what()} == "changed while it was read";
    });
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_deleted_while_it_is_read_is_read_to_its_end) {
  temporary_file const f{"abc"};
  file_digest file{f.name};
  fs::remove(f.name);
  BOOST_TEST(file.read(10) == 3);
  BOOST_TEST(file.finish() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

BOOST_AUTO_TEST_CASE(reads_ask_for_what_is_there_and_end_with_one_byte_more) {
  BOOST_TEST(next_read(1'000, 0, 300) == 300);
  BOOST_TEST(next_read(1'000, 900, 300) == 100);
  BOOST_TEST(next_read(1'000, 1'000, 300) == 1);
  BOOST_TEST(next_read(0, 0, 300) == 1);
  BOOST_TEST(next_read(0, 1, 300) == 300);  // more than its size tells
  BOOST_TEST(next_read(0, 1, 1 << 20) == 4096);
}

BOOST_AUTO_TEST_CASE(a_job_carries_any_path_through_JSON) {
  for (std::string const path : {"/a/b", "/a\nb", "/\xFF\xFE%", "/gr\xC3\xBC\xC3\x9F"}) {
    auto const text = weir::encode(hash_file{path});
    BOOST_REQUIRE(text.has_value());
    auto const job = weir::decode<hash_file>(text.value());
    BOOST_TEST(job.ok);
    BOOST_TEST(job.value.path == path);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_job_is_refused) {
  for (auto const* text :
       {"{}", "[]", "3", R"({"path":3})", R"({"path":"%"})", R"({"path":"%41"})"}) {
    auto const json = nlohmann::json::parse(text);
    BOOST_CHECK_THROW((void)json.get<hash_file>(), std::exception);
  }
}

BOOST_AUTO_TEST_CASE(every_path_has_a_key_of_its_own_that_is_short_enough) {
  using manifest::unique_key_of;
  BOOST_TEST(unique_key_of("/a\nb") == "path:/a\nb");
  std::string const longest(weir::limits::key_size - 5, 'x');
  BOOST_TEST(unique_key_of(longest) == "path:" + longest);
  auto const key = unique_key_of(longest + "x");
  BOOST_TEST(key.starts_with("sha256:"));
  BOOST_TEST(key.size() == 7 + 64);
  BOOST_TEST(unique_key_of(longest + "y") != key);
  BOOST_TEST(unique_key_of(key) != key);
}

BOOST_AUTO_TEST_SUITE_END()
