// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_STORE_FILES_HPP
#define WEIR_EXAMPLE_MANIFEST_STORE_FILES_HPP

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace manifest {

/// The files of a sqlite store: they change while the manifest is made, and have no place in it.
class store_files {
 public:
  /// @param path of the store; empty: it has no files
  explicit store_files(std::string const& path) {
    auto const slash = path.rfind('/');
    base_ = slash == std::string::npos ? path : path.substr(slash + 1);
    auto const folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    there_ = !path.empty() && ::stat(folder.c_str(), &folder_) == 0;
  }

  [[nodiscard]] bool is_mine(struct stat const& folder, std::string_view name) const {
    if (!there_ || folder.st_dev != folder_.st_dev || folder.st_ino != folder_.st_ino) return false;
    if (!name.starts_with(base_)) return false;
    auto const rest = name.substr(base_.size());
    return rest.empty() || rest == "-wal" || rest == "-shm" || rest == "-journal" ||
           rest == "-used";
  }

 private:
  std::string base_;
  struct stat folder_{};
  bool there_ = false;
};

}  // namespace manifest

#endif
