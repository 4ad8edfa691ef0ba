// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_TREE_HPP
#define WEIR_EXAMPLE_MANIFEST_TREE_HPP

#include "options.hpp"
#include "weir/job.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace manifest {

/// What shows, without reading it, that a file is the one that it was: its size, its time of
/// modification and its inode. A program that writes to a file and sets all of these back is not
/// noticed, as with `make` and `rsync`.
[[nodiscard]] inline std::string stamp_of(struct stat const& s) {
  return std::to_string(s.st_size) + "," + std::to_string(s.st_mtim.tv_sec) + "," +
         std::to_string(s.st_mtim.tv_nsec) + "," + std::to_string(s.st_ino);
}

/// A file that was found, and what became of it.
struct file {
  std::string path;      ///< as `find` prints it
  std::string absolute;  ///< the same file for any process
  std::string queue;     ///< the folder right under the root that it is in, absolute
  std::string stamp;     ///< when it was found; empty: it could not be looked at
  std::uint64_t size = 0;

  weir::job_id id{};  ///< of the job that reads it
  weir::job_state state = weir::job_state::pending;
  std::string digest;  ///< completed: in hexadecimal
  bool here = false;   ///< this process reads it now
};

/// A path that is not in the manifest, and why.
struct missing_path {
  std::string path;
  std::string reason;
};

struct tree {
  std::string root;         ///< absolute
  std::vector<file> files;  ///< sorted by the bytes of their paths, as `LC_ALL=C sort` has it
  std::vector<missing_path> unwalked, unread;
};

/// Finds the regular files that `find -H ROOT -type f` prints: no symbolic link is followed but the
/// root itself. Throws `failure` if the root cannot be read.
///
/// @param leave_out whether a file, by its absolute path, has no place in the manifest
[[nodiscard]] inline tree find_files(std::string const& root,
                                     std::function<bool(std::string const&)> const& leave_out) {
  namespace fs = std::filesystem;
  tree found;
  std::error_code ec;
  found.root = fs::canonical(root, ec).native();
  bool const is_folder = !ec && fs::is_directory(found.root, ec);
  if (is_folder) fs::directory_iterator const readable{root, ec};
  if (ec) throw failure{wrong_usage, root + ": " + ec.message()};

  auto const add = [&](std::string const& path, std::string const& below) {
    file f;
    f.absolute = below.empty() ? found.root : (found.root == "/" ? "" : found.root) + '/' + below;
    if (leave_out(f.absolute)) return;
    f.path = path;
    f.queue = found.root + '/' + below.substr(0, below.find('/') + 1);  // npos + 1 is 0
    if (struct stat s{}; ::lstat(f.absolute.c_str(), &s) == 0) {
      f.stamp = stamp_of(s);
      f.size = static_cast<std::uint64_t>(s.st_size);
    }
    found.files.push_back(std::move(f));
  };

  if (fs::is_regular_file(found.root)) add(root, {});
  auto const above = root.size() + (root.ends_with('/') ? 0 : 1);
  std::vector<fs::path> folders;  // still to be visited
  if (is_folder) folders.emplace_back(root);
  while (!folders.empty()) {
    auto const folder = std::move(folders.back());
    folders.pop_back();
    fs::directory_iterator entry{folder, ec};
    for (; !ec && entry != fs::directory_iterator{}; entry.increment(ec)) {
      std::error_code unknown;
      auto const& path = entry->path().native();
      if (entry->is_symlink(unknown)) continue;
      if (entry->is_directory(unknown)) folders.emplace_back(path);
      if (entry->is_regular_file(unknown)) add(path, path.substr(above));
      if (unknown) found.unwalked.push_back({path, unknown.message()});
    }
    if (ec) found.unwalked.push_back({folder.native(), ec.message()});
  }
  std::ranges::sort(found.files, {}, &file::path);
  return found;
}

}  // namespace manifest

#endif
