// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_SQLITE_BED_HPP
#define WEIR_BENCH_SQLITE_BED_HPP

#include "../test/integration/directory.hpp"
#include "bed.hpp"
#include "weir/store/sqlite.hpp"

namespace weir_bench {

/// Without an fsync for each transaction: a crash of the process loses nothing.
class sqlite_bed : public bed<weir::sqlite_store> {
 public:
  static constexpr char const* name = "sqlite";

  sqlite_bed() : store_{io().get_executor(), home_.file(), options()} {}
  [[nodiscard]] weir::sqlite_store const& store() const noexcept override { return store_; }

  [[nodiscard]] static weir::sqlite_options options() {
    weir::sqlite_options o;
    o.durable = weir::durability::process_crash;
    return o;
  }

 private:
  // Beside the program, for /tmp may be memory.
  weir_test::directory home_{std::filesystem::current_path()};
  weir::sqlite_store store_;
};

}  // namespace weir_bench

#endif
