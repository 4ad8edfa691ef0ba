// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_DIRECTORY_HPP
#define WEIR_TEST_INTEGRATION_DIRECTORY_HPP

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace weir_test {

/// A directory of one test or benchmark, with all that is in it gone at the end.
class directory {
 public:
  /// @param where in which directory it is made
  explicit directory(std::filesystem::path const& where = std::filesystem::temp_directory_path()) {
    std::string name = where / "weir-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary directory"};
    path_ = name;
  }
  directory(directory const&) = delete;
  directory& operator=(directory const&) = delete;
  ~directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(std::string_view name = "store.db") const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace weir_test

#endif
