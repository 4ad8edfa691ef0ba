// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_DIRECTORY_HPP
#define WEIR_BENCH_DIRECTORY_HPP

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace weir_bench {

/// A folder for one file, which ends with it.
class directory {
 public:
  directory() {
    // Beside the program, for /tmp may be memory.
    std::string name = std::filesystem::current_path() / "weir-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary directory"};
    path_ = name;
  }
  directory(directory const&) = delete;
  directory& operator=(directory const&) = delete;
  ~directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file() const { return path_ / "bench.db"; }

 private:
  std::filesystem::path path_;
};

}  // namespace weir_bench

#endif
