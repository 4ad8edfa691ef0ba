// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_OUTPUT_FILE_HPP
#define WEIR_EXAMPLE_MANIFEST_OUTPUT_FILE_HPP

#include "file_descriptor.hpp"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

namespace manifest {

/// A file that appears whole or not at all: what is written goes to a new file beside it, which
/// takes its name at `commit`. Without a commit, what was there before stays.
///
/// `-` is standard output. That, and a name that is neither a regular file nor free (a device, a
/// pipe), is written directly. Errors are thrown as `std::system_error`.
class output_file {
 public:
  /// Begins the new file at once, so that a place that cannot be written to is known before the
  /// work and not after it.
  explicit output_file(std::string const& name) {
    if (name == "-") {
      fd_ = file_descriptor{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)};
      if (!fd_) throw_errno(errno, "standard output");
      return;
    }

    struct stat there{};
    bool const free = ::stat(name.c_str(), &there) != 0;
    if (free && errno != ENOENT) throw_errno(errno, name);
    if (!free && !S_ISREG(there.st_mode)) {
      if (S_ISDIR(there.st_mode)) throw_errno(EISDIR, name);
      if (::access(name.c_str(), W_OK) != 0) throw_errno(errno, name);
      target_ = name;
      return;
    }

    // A symbolic link stays one: the file that it leads to is replaced.
    target_ = free ? name : std::filesystem::canonical(name).native();
    auto const slash = target_.rfind('/');
    folder_name_ = slash == std::string::npos ? "." : target_.substr(0, slash + 1);
    base_ = slash == std::string::npos ? target_ : target_.substr(slash + 1);
    if (base_.empty()) throw_errno(EISDIR, name);
    folder_ = file_descriptor{::open(folder_name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!folder_ || ::fstat(folder_.get(), &folder_stat_) != 0) throw_errno(errno, name);
    begin(name);
  }

  output_file(output_file const&) = delete;
  output_file& operator=(output_file const&) = delete;

  ~output_file() {
    if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  }

  /// Whether the entry `name` of the folder `folder` is this file, or one that such a file is
  /// written to first: it changes while the manifest is made, and has no place in it.
  [[nodiscard]] bool is_mine(struct stat const& folder, std::string_view name) const {
    if (!folder_ || folder.st_dev != folder_stat_.st_dev || folder.st_ino != folder_stat_.st_ino) {
      return false;
    }
    if (name == base_) return true;
    auto const prefix = temporary_prefix();
    return name.size() == prefix.size() + random_size + suffix.size() && name.starts_with(prefix) &&
           name.ends_with(suffix) &&
           name.substr(prefix.size(), random_size).find_first_not_of(digits) ==
               std::string_view::npos;
  }

  /// The new file that is not there any more once this object ends; empty: there is none.
  [[nodiscard]] std::string unfinished() const {
    if (temporary_.empty()) return {};
    return (folder_name_ == "." ? "" : folder_name_) + temporary_;
  }

  void write(std::string_view bytes) {
    if (!fd_) fd_ = file_descriptor{::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)};
    if (!fd_) throw_errno(errno, "opening");
    while (!bytes.empty()) {
      auto const n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw_errno(errno, "writing");
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  /// Gives the file its name, once its bytes are on the disk. Nothing can be written any more.
  void commit() {
    if (!folder_) {  // written directly
      if (fd_.close() != 0) throw_errno(errno, "closing");
      return;
    }
    if (::fsync(fd_.get()) != 0) throw_errno(errno, "saving");
    if (fd_.close() != 0) throw_errno(errno, "closing");
    if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), base_.c_str()) != 0) {
      throw_errno(errno, "renaming");
    }
    temporary_.clear();
    ::fsync(folder_.get());  // a folder that cannot be synchronised has the file all the same
  }

 private:
  static constexpr std::string_view suffix = ".tmp";
  static constexpr std::string_view digits = "0123456789abcdef";
  static constexpr std::size_t random_size = 8;

  // A name that is nearly as long as a name can be leaves no room for more.
  [[nodiscard]] std::string temporary_prefix() const { return "." + base_.substr(0, 200) + "."; }

  void begin(std::string const& name) {
    std::random_device random;
    for (int left = 100; left > 0; --left) {
      temporary_ = temporary_prefix();
      auto bits = random();
      for (std::size_t i = 0; i < random_size; ++i, bits >>= 4U) temporary_ += digits[bits & 0xFU];
      temporary_ += suffix;
      fd_ = file_descriptor{::openat(folder_.get(), temporary_.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
      if (fd_) return;
      if (errno != EEXIST) break;
    }
    temporary_.clear();
    throw_errno(errno, name);
  }

  std::string target_;
  std::string folder_name_;
  std::string base_;
  std::string temporary_;  // the new file's name in its folder; empty: there is none
  file_descriptor folder_;
  struct stat folder_stat_{};
  file_descriptor fd_;
};

}  // namespace manifest

#endif
