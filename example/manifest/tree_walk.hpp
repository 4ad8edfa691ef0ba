// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_TREE_WALK_HPP
#define WEIR_EXAMPLE_MANIFEST_TREE_WALK_HPP

#include "file_descriptor.hpp"
#include "file_stamp.hpp"

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manifest {

struct found_file {
  std::string path;        ///< as `find` prints it
  std::string top;         ///< the folder right under the root that it is in; ".": the root itself
  std::uint64_t size = 0;  ///< when it was found
  file_stamp stamp{};      ///< then; nothing where it could not be looked at
};

struct walk_problem {
  std::string path;
  std::string reason;
};

struct walk_batch {
  std::vector<found_file> files;
  std::vector<walk_problem> problems;  ///< what could not be walked: its files are not found
};

/// Finds the regular files that `find -H ROOT -type f` prints, in batches.
///
/// Symbolic links are not followed but the root itself. What it holds does not grow with the number
/// of files: the names of the folders still to visit on the way down, and a few descriptors however
/// deep the tree is. A tree that changes meanwhile, that cannot be read here and there, or that
/// contains itself (by a bind mount) is walked as far as it goes.
class tree_walk {
 public:
  /// Whether a file is to be left out: the folder that it is in, and its name there.
  using filter = std::function<bool(struct stat const& folder, std::string_view name)>;

  /// Throws `std::system_error` if the root is not there or cannot be opened.
  explicit tree_walk(std::string root, filter leave_out = {})
      : leave_out_{std::move(leave_out)},
        path_{std::move(root)} {
    struct stat there{};
    if (::stat(path_.c_str(), &there) != 0) throw_errno(errno, path_);
    if (S_ISREG(there.st_mode)) {
      if (!left_out(path_)) lone_file_ = found(path_, ".", there);
      return;
    }
    if (!S_ISDIR(there.st_mode)) return;
    if (!path_.ends_with('/')) path_ += '/';
    root_size_ = path_.size();
    if (int const error = enter(::open(path_.c_str(), open_flags & ~O_NOFOLLOW))) {
      throw_errno(error, path_);
    }
  }

  /// Adds files to the batch until it has `wanted` of them, and what went wrong on the way. False:
  /// that was all.
  bool next(walk_batch& batch, std::size_t wanted) {
    if (!lone_file_.path.empty()) batch.files.push_back(std::exchange(lone_file_, {}));
    while (!levels_.empty() && batch.files.size() < wanted) {
      if (!levels_.back().listed) {
        list(batch, wanted);
      } else if (!levels_.back().folders.empty()) {
        descend(batch);
      } else {
        levels_.pop_back();
      }
    }
    return !levels_.empty();
  }

 private:
  struct close_stream {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
  };

  struct level {
    std::unique_ptr<DIR, close_stream> stream;  // null: closed to save descriptors
    struct stat identity{};
    std::vector<std::string> folders;  // in it, still to be visited
    std::size_t path_size = 0;         // of its path, with the slash at the end
    bool listed = false;
  };

  static constexpr int open_flags =
      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  static constexpr std::size_t most_open = 32;
  // Of a path. The system opens none that is longer than 4,096 bytes; the rest is courtesy.
  static constexpr std::size_t longest = 1 << 16;

  // Makes the folder whose path is in path_ the deepest level. Takes the descriptor; returns an
  // error number.
  int enter(int descriptor) {
    int const error = errno;
    file_descriptor fd{descriptor};
    if (!fd) return error;
    level entered;
    if (::fstat(fd.get(), &entered.identity) != 0) return errno;
    for (auto const& above : levels_) {
      if (same(above.identity, entered.identity)) return ELOOP;
    }
    entered.stream.reset(::fdopendir(fd.get()));
    if (!entered.stream) return errno;
    (void)fd.release();
    entered.path_size = path_.size();
    levels_.push_back(std::move(entered));
    // The root stays open: every other level can be found again from there.
    if (levels_.size() > most_open + 1) levels_[levels_.size() - 1 - most_open].stream.reset();
    return 0;
  }

  void list(walk_batch& batch, std::size_t wanted) {
    auto& here = levels_.back();
    path_.resize(here.path_size);
    while (batch.files.size() < wanted) {
      errno = 0;
      dirent const* const entry = ::readdir(here.stream.get());
      if (entry == nullptr) {
        if (errno != 0) batch.problems.push_back({folder_path(), system_text(errno)});
        here.listed = true;
        return;
      }
      std::string_view const name = entry->d_name;
      if (name == "." || name == "..") continue;
      sort_out(here, *entry, batch);
    }
  }

  void sort_out(level& here, dirent const& entry, walk_batch& batch) {
    if (entry.d_type == DT_DIR) {
      here.folders.emplace_back(entry.d_name);
      return;
    }
    if (entry.d_type != DT_REG && entry.d_type != DT_UNKNOWN) return;
    if (leave_out_ && leave_out_(here.identity, entry.d_name)) return;
    if (path_.size() > longest) {
      batch.problems.push_back({path_ + entry.d_name, system_text(ENAMETOOLONG)});
      return;
    }
    struct stat there{};
    int const failed =
        ::fstatat(::dirfd(here.stream.get()), entry.d_name, &there, AT_SYMLINK_NOFOLLOW);
    if (failed != 0 && entry.d_type == DT_UNKNOWN) {
      batch.problems.push_back({path_ + entry.d_name, system_text(errno)});
    } else if (failed != 0) {
      // It was there a moment ago, or its folder does not let us see it. Whoever opens it will
      // learn why.
      batch.files.push_back({path_ + entry.d_name, top(), 0, {}});
    } else if (S_ISREG(there.st_mode)) {
      batch.files.push_back(found(path_ + entry.d_name, top(), there));
    } else if (S_ISDIR(there.st_mode)) {
      here.folders.emplace_back(entry.d_name);
    }
  }

  void descend(walk_batch& batch) {
    std::size_t const parent = levels_.size() - 1;
    path_.resize(levels_[parent].path_size);
    if (int const error = reopen(parent)) {
      batch.problems.push_back({folder_path(), system_text(error) + " (when coming back to it)"});
      levels_[parent].folders.clear();
      return;
    }
    auto const name = std::move(levels_[parent].folders.back());
    levels_[parent].folders.pop_back();
    path_ += name;
    path_ += '/';
    if (int const error =
            enter(::openat(::dirfd(levels_[parent].stream.get()), name.c_str(), open_flags))) {
      batch.problems.push_back({folder_path(), system_text(error)});
    }
  }

  // Opens a level that was closed again, by its way from the root, if it is still the same folder.
  int reopen(std::size_t index) {
    if (levels_[index].stream) return 0;
    file_descriptor fd;
    for (std::size_t i = 1; i <= index; ++i) {
      auto const from = levels_[i - 1].path_size;
      auto const name = path_.substr(from, levels_[i].path_size - from - 1);
      int const above = fd ? fd.get() : ::dirfd(levels_.front().stream.get());
      fd = file_descriptor{::openat(above, name.c_str(), open_flags)};
      if (!fd) return errno;
    }
    struct stat now{};
    if (::fstat(fd.get(), &now) != 0) return errno;
    if (!same(now, levels_[index].identity)) return ESTALE;
    levels_[index].stream.reset(::fdopendir(fd.get()));
    if (!levels_[index].stream) return errno;
    (void)fd.release();
    return 0;
  }

  [[nodiscard]] static found_file found(std::string path, std::string top, struct stat const& s) {
    return {std::move(path), std::move(top), static_cast<std::uint64_t>(s.st_size),
            file_stamp::of(s)};
  }

  [[nodiscard]] bool left_out(std::string const& file) const {
    auto const slash = file.rfind('/');
    auto const folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
    struct stat there{};
    return leave_out_ && ::stat(folder.c_str(), &there) == 0 &&
           leave_out_(there, std::string_view{file}.substr(slash + 1));  // npos + 1 is 0
  }

  [[nodiscard]] std::string top() const {
    if (levels_.size() < 2) return ".";
    return path_.substr(root_size_, levels_[1].path_size - root_size_ - 1);
  }

  // Without the slash at the end, unless it is the root as it was given.
  [[nodiscard]] std::string folder_path() const {
    return path_.size() > root_size_ ? path_.substr(0, path_.size() - 1) : path_;
  }

  [[nodiscard]] static bool same(struct stat const& a, struct stat const& b) noexcept {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  }

  filter leave_out_;
  std::string path_;  // of the deepest level, with a slash at the end
  std::size_t root_size_ = 0;
  found_file lone_file_;  // the root, where it is a file
  std::vector<level> levels_;
};

}  // namespace manifest

#endif
