// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "../../example/manifest/tree_walk.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;
using manifest::tree_walk;
using manifest::walk_batch;

namespace {

struct tree {
  tree() {
    std::string name = (fs::temp_directory_path() / "weir-walk-XXXXXX").native();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    BOOST_REQUIRE(::chmod(name.c_str(), 0755) == 0);
    root = name;
  }
  tree(tree const&) = delete;
  tree& operator=(tree const&) = delete;
  ~tree() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }

  void file(std::string const& name, std::string const& bytes = "x") const {
    fs::create_directories((root / name).parent_path());
    std::ofstream{root / name, std::ios::binary} << bytes;
  }

  [[nodiscard]] std::string path(std::string const& name) const { return (root / name).native(); }

  fs::path root;
};

/// Root may read everything, so what must be unreadable is walked as somebody else.
struct ordinary_user {
  ordinary_user() {
    if (::geteuid() == 0) BOOST_REQUIRE(::seteuid(65534) == 0);
  }
  ordinary_user(ordinary_user const&) = delete;
  ordinary_user& operator=(ordinary_user const&) = delete;
  ~ordinary_user() {
    if (::getuid() == 0) (void)!::seteuid(0);
  }
};

walk_batch all_of(tree_walk& walk) {
  walk_batch batch;
  while (walk.next(batch, batch.files.size() + 3)) {
  }
  return batch;
}

std::set<std::string> paths_of(walk_batch const& batch) {
  std::set<std::string> paths;
  for (auto const& file : batch.files) BOOST_TEST(paths.insert(file.path).second, file.path);
  return paths;
}

std::set<std::string> walked(std::string const& root) {
  tree_walk walk{root};
  auto const batch = all_of(walk);
  BOOST_TEST(batch.problems.empty());
  return paths_of(batch);
}

using names = std::set<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(manifest_tree_walk)

BOOST_AUTO_TEST_CASE(only_regular_files_are_found_and_no_link_is_followed) {
  tree const t;
  t.file("a");
  t.file("d/b", "1234");
  t.file("d/e/c", "");
  fs::create_symlink("a", t.root / "link_to_file");
  fs::create_directory_symlink("d", t.root / "link_to_folder");
  fs::create_directory_symlink("..", t.root / "d" / "loop");
  fs::create_symlink("nowhere", t.root / "dangling");
  fs::create_hard_link(t.root / "a", t.root / "d" / "hard");
  BOOST_REQUIRE(::mkfifo(t.path("fifo").c_str(), 0644) == 0);
  int const s = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  t.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  BOOST_REQUIRE(::bind(s, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0);
  ::close(s);

  BOOST_TEST((walked(t.root.native()) ==
              names{t.path("a"), t.path("d/b"), t.path("d/e/c"), t.path("d/hard")}));
}

BOOST_AUTO_TEST_CASE(a_file_comes_with_its_size_and_the_folder_under_the_root) {
  tree const t;
  t.file("a", "12");
  t.file("d/b", "1234");
  t.file("d/e/c", "123456");
  tree_walk walk{t.root.native()};
  std::map<std::string, std::pair<std::string, std::uint64_t>> seen;
  for (auto const& file : all_of(walk).files) seen[file.path] = {file.top, file.size};
  BOOST_TEST((seen[t.path("a")] == std::pair{std::string{"."}, std::uint64_t{2}}));
  BOOST_TEST((seen[t.path("d/b")] == std::pair{std::string{"d"}, std::uint64_t{4}}));
  BOOST_TEST((seen[t.path("d/e/c")] == std::pair{std::string{"d"}, std::uint64_t{6}}));
}

BOOST_AUTO_TEST_CASE(paths_begin_with_the_root_as_it_was_given) {
  tree const t;
  t.file("d/a");
  auto const root = t.root.native();
  BOOST_TEST((walked(root + "/") == names{root + "/d/a"}));
  BOOST_TEST((walked(root + "//") == names{root + "//d/a"}));
  BOOST_TEST((walked(root + "/./d/..") == names{root + "/./d/../d/a"}));
  auto const before = fs::current_path();
  fs::current_path(t.root);
  BOOST_TEST((walked(".") == names{"./d/a"}));
  BOOST_TEST((walked("d") == names{"d/a"}));
  fs::current_path(before);
}

BOOST_AUTO_TEST_CASE(a_root_that_is_a_link_is_followed_and_a_root_that_is_a_file_is_found) {
  tree const t;
  t.file("d/a");
  fs::create_directory_symlink("d", t.root / "l");
  fs::create_symlink("d/a", t.root / "f");
  BOOST_TEST((walked(t.path("l")) == names{t.path("l/a")}));
  BOOST_TEST((walked(t.path("d/a")) == names{t.path("d/a")}));
  BOOST_TEST((walked(t.path("f")) == names{t.path("f")}));
  BOOST_TEST(walked("/dev/null").empty());
}

BOOST_AUTO_TEST_CASE(a_root_that_is_not_there_is_an_error) {
  tree const t;
  BOOST_CHECK_THROW(tree_walk{t.path("nowhere")}, std::system_error);
  fs::permissions(t.root, fs::perms::none);
  {
    ordinary_user const somebody;
    BOOST_CHECK_THROW(tree_walk{t.root.native()}, std::system_error);
  }
  fs::permissions(t.root, fs::perms::owner_all);
}

BOOST_AUTO_TEST_CASE(any_name_that_a_file_can_have_is_found) {
  tree const t;
  names wanted;
  for (std::string const name :
       {"new\nline", "back\\slash", "\xFF\xFE", " ", "-n", "...", "\x1B[31m", "*?[a]"}) {
    t.file(name);
    t.file("d" + name + "/f");
    wanted.insert(t.path(name));
    wanted.insert(t.path("d" + name + "/f"));
  }
  BOOST_TEST((walked(t.root.native()) == wanted));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_read_is_a_problem_and_the_walk_goes_on) {
  tree const t;
  t.file("closed/secret");
  t.file("unsearchable/named");
  t.file("open/a");
  fs::permissions(t.root / "closed", fs::perms::none);
  fs::permissions(t.root / "unsearchable", static_cast<fs::perms>(0444));
  walk_batch batch;
  {
    ordinary_user const somebody;
    tree_walk walk{t.root.native()};
    batch = all_of(walk);
  }
  fs::permissions(t.root / "closed", fs::perms::owner_all);
  fs::permissions(t.root / "unsearchable", fs::perms::owner_all);
  // The second has a name that can be seen: who opens it learns the rest.
  BOOST_TEST((paths_of(batch) == names{t.path("open/a"), t.path("unsearchable/named")}));
  BOOST_REQUIRE(batch.problems.size() == 1);
  BOOST_TEST(batch.problems[0].path == t.path("closed"));
  BOOST_TEST(batch.problems[0].reason == "Permission denied");
}

BOOST_AUTO_TEST_CASE(a_deep_tree_is_walked_to_its_bottom_with_few_descriptors) {
  tree const t;
  // 300 levels of 40 bytes: longer than a path may be, so it is made step by step. Each level has a
  // file, and side folders to which the walk has to come back: in whatever order the folder lists
  // them, some are left when it does.
  std::size_t const depth = 300;
  std::size_t const sides = 8;
  std::string const step(40, 'd');
  int at = ::open(t.root.c_str(), O_RDONLY | O_DIRECTORY);
  for (std::size_t i = 0; i < depth; ++i) {
    ::close(::openat(at, "file", O_CREAT | O_WRONLY, 0644));
    for (std::size_t s = 0; s < sides; ++s) {
      auto const side = std::to_string(s);
      BOOST_REQUIRE(::mkdirat(at, side.c_str(), 0755) == 0);
      ::close(::openat(at, (side + "/file").c_str(), O_CREAT | O_WRONLY, 0644));
    }
    BOOST_REQUIRE(::mkdirat(at, step.c_str(), 0755) == 0);
    int const next = ::openat(at, step.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = next;
    BOOST_REQUIRE(at >= 0);
  }
  ::close(at);

  tree_walk walk{t.root.native()};
  walk_batch batch;
  std::size_t most_open = 0;
  while (walk.next(batch, batch.files.size() + 1)) {
    auto const open =
        static_cast<std::size_t>(std::distance(fs::directory_iterator{"/proc/self/fd"}, {}));
    most_open = std::max(most_open, open);
  }
  BOOST_TEST(batch.problems.empty());
  BOOST_TEST(paths_of(batch).size() == (1 + sides) * depth);
  BOOST_TEST(most_open < 60);
  // remove_all copes with a path that is too long; it goes by descriptors.
}

BOOST_AUTO_TEST_CASE(batches_have_the_wanted_size_however_large_a_folder_is) {
  tree const t;
  for (int i = 0; i < 100; ++i) t.file("d/" + std::to_string(i));
  tree_walk walk{t.root.native()};
  std::size_t total = 0;
  for (bool more = true; more;) {
    walk_batch batch;
    more = walk.next(batch, 7);
    BOOST_TEST(batch.files.size() <= 7);
    total += batch.files.size();
  }
  BOOST_TEST(total == 100);
}

BOOST_AUTO_TEST_CASE(what_vanishes_during_the_walk_does_not_end_it) {
  tree const t;
  for (int i = 0; i < 5; ++i) t.file("d" + std::to_string(i) + "/f");
  tree_walk walk{t.root.native()};
  walk_batch batch;
  (void)walk.next(batch, 1);  // now all five folders are known, and one is open
  BOOST_REQUIRE(batch.files.size() == 1);
  for (auto const& entry : fs::directory_iterator{t.root}) fs::remove_all(entry.path());
  while (walk.next(batch, 100)) {
  }
  BOOST_TEST(batch.files.size() == 1);
  BOOST_REQUIRE(batch.problems.size() == 4);
  BOOST_TEST(batch.problems[0].reason == "No such file or directory");
}

BOOST_AUTO_TEST_CASE(a_folder_that_becomes_a_link_is_not_followed) {
  tree const t;
  tree const elsewhere;
  elsewhere.file("secret");
  t.file("d/f");
  t.file("e/f");
  tree_walk walk{t.root.native()};
  walk_batch batch;
  (void)walk.next(batch, 1);
  auto const other = batch.files.front().top == "d" ? "e" : "d";
  fs::remove_all(t.root / other);
  fs::create_directory_symlink(elsewhere.root, t.root / other);
  while (walk.next(batch, 100)) {
  }
  BOOST_TEST(batch.files.size() == 1);
  BOOST_TEST(batch.problems.size() == 1);
}

BOOST_AUTO_TEST_CASE(what_is_to_be_left_out_is_left_out_in_its_folder_only) {
  tree const t;
  t.file("SUMS");
  t.file("d/SUMS");
  struct stat root{};
  BOOST_REQUIRE(::stat(t.root.c_str(), &root) == 0);
  auto const mine = [&](struct stat const& folder, std::string_view name) {
    return folder.st_ino == root.st_ino && folder.st_dev == root.st_dev && name == "SUMS";
  };
  tree_walk walk{t.root.native(), mine};
  BOOST_TEST((paths_of(all_of(walk)) == names{t.path("d/SUMS")}));
  tree_walk lone{t.path("SUMS"), mine};
  BOOST_TEST(all_of(lone).files.empty());
  tree_walk other{t.path("d/SUMS"), mine};
  BOOST_TEST(all_of(other).files.size() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
