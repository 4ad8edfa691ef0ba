// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../../example/manifest/checksum_lines.hpp"
#include "../../example/manifest/output_file.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace fs = std::filesystem;
using manifest::checksum;
using manifest::output_file;

namespace {

struct folder {
  folder() {
    std::string name = (fs::temp_directory_path() / "weir-output-XXXXXX").native();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
    BOOST_REQUIRE(::stat(path.c_str(), &status) == 0);
  }
  folder(folder const&) = delete;
  folder& operator=(folder const&) = delete;
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }

  [[nodiscard]] std::string file(std::string const& name) const { return (path / name).native(); }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator{path}, {}));
  }
  [[nodiscard]] std::string temporary() const {
    for (auto const& entry : fs::directory_iterator{path}) {
      if (entry.path().extension() == ".tmp") return entry.path().filename().native();
    }
    return {};
  }

  fs::path path;
  struct stat status{};
};

std::string contents(std::string const& name) {
  std::ifstream file{name, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void put(std::string const& name, std::string const& bytes) {
  std::ofstream{name, std::ios::binary} << bytes;
}

std::string line(std::string path) {
  std::string out;
  manifest::append_line(out, checksum{std::move(path), "abc"});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(manifest_output)

// What coreutils 9.1 prints; the integration test compares with the program itself.
BOOST_AUTO_TEST_CASE(lines_are_those_of_sha256sum) {
  BOOST_TEST(line("a/b c") == "abc  a/b c\n");
  BOOST_TEST(line("a\nb") == "\\abc  a\\nb\n");
  BOOST_TEST(line("a\\b") == "\\abc  a\\\\b\n");
  BOOST_TEST(line("a\rb") == "\\abc  a\\rb\n");
  BOOST_TEST(line("a\tb\x01\xFF") == "abc  a\tb\x01\xFF\n");
}

BOOST_AUTO_TEST_CASE(lines_are_ordered_by_bytes) {
  std::vector<checksum> sums;
  for (auto const* path : {"\xC3\xA4", "b", "a/b", "a", "a-b", "B", "a\nb", "\xFF"})
    sums.push_back({path, ""});
  manifest::sort_by_path(sums);
  std::string order;
  for (auto const& sum : sums) order += sum.path + "|";
  BOOST_TEST(order == "B|a|a\nb|a-b|a/b|b|\xC3\xA4|\xFF|");
}

BOOST_AUTO_TEST_CASE(the_file_appears_whole_at_commit) {
  folder const f;
  auto const name = f.file("out");
  put(name, "before");
  {
    output_file out{name};
    out.write("after");
    BOOST_TEST(contents(name) == "before");
    out.commit();
    BOOST_TEST(contents(name) == "after");
  }
  BOOST_TEST(contents(name) == "after");
  BOOST_TEST(f.entries() == 1);
}

BOOST_AUTO_TEST_CASE(without_a_commit_nothing_has_changed) {
  folder const f;
  put(f.file("out"), "before");
  {
    output_file out{f.file("out")};
    out.write("after");
    output_file other{f.file("other")};
    BOOST_TEST(f.entries() == 3);
  }
  BOOST_TEST(contents(f.file("out")) == "before");
  BOOST_TEST(f.entries() == 1);
}

BOOST_AUTO_TEST_CASE(it_knows_what_is_its_own) {
  folder const f;
  folder const other;
  output_file const out{f.file("out")};
  BOOST_TEST(out.is_mine(f.status, "out"));
  BOOST_TEST(out.is_mine(f.status, f.temporary()));
  BOOST_TEST(out.is_mine(f.status, ".out.0123abcd.tmp"));  // another run's
  BOOST_TEST(!out.is_mine(other.status, "out"));
  for (auto const* name :
       {"out2", "ou", ".out.tmp", ".out.0123abcx.tmp", ".out.0123abcd", ".other.0123abcd.tmp"}) {
    BOOST_TEST(!out.is_mine(f.status, name), name);
  }
}

BOOST_AUTO_TEST_CASE(a_link_stays_a_link) {
  folder const f;
  folder const there;
  put(there.file("target"), "before");
  fs::create_symlink(there.file("target"), f.file("link"));
  output_file out{f.file("link")};
  BOOST_TEST(out.is_mine(there.status, "target"));
  out.write("after");
  out.commit();
  BOOST_TEST(fs::is_symlink(f.file("link")));
  BOOST_TEST(contents(there.file("target")) == "after");
}

// Never tried on a device of the machine: with the defect, root would lose it.
BOOST_AUTO_TEST_CASE(a_device_or_pipe_is_written_to_and_not_replaced) {
  folder const f;
  auto const pipe = f.file("pipe");
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  int const reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  BOOST_REQUIRE(reader >= 0);
  output_file out{pipe};
  BOOST_TEST(!out.is_mine(f.status, "pipe"));
  BOOST_TEST(out.unfinished().empty());
  out.write("lines");
  out.commit();
  BOOST_TEST(fs::is_fifo(pipe));
  BOOST_TEST(f.entries() == 1);
  std::string got(10, ' ');
  BOOST_TEST(::read(reader, got.data(), got.size()) == 5);
  ::close(reader);
}

BOOST_AUTO_TEST_CASE(a_place_that_cannot_be_written_to_is_known_at_once) {
  folder const f;
  auto const error_of = [](std::string const& name) {
    try {
      output_file const out{name};
    } catch (std::system_error const& e) {
      return e.code().value();
    }
    return 0;
  };
  BOOST_TEST(error_of(f.file("nowhere/out")) == ENOENT);
  BOOST_TEST(error_of(f.path.native()) == EISDIR);
  BOOST_TEST(error_of(f.file("free/")) != 0);
  put(f.file("file"), "");
  BOOST_TEST(error_of(f.file("file/out")) == ENOTDIR);
  BOOST_TEST(error_of(f.file(std::string(300, 'x'))) != 0);
  BOOST_TEST(error_of(f.file(std::string(255, 'x'))) == 0);
  BOOST_TEST(f.entries() == 1);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error) {
  output_file full{"/dev/full"};
  BOOST_CHECK_THROW(full.write("x"), std::system_error);
}

BOOST_AUTO_TEST_SUITE_END()
