// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOBS_HPP
#define WEIR_STORE_SQLITE_JOBS_HPP

#include "weir/rule/job_machine.hpp"
#include "weir/store/sqlite/job_table.hpp"

namespace weir::detail {

/// The jobs of a file, by the same machine as those in memory.
class sqlite_jobs : public rule::job_machine<sqlite_job_table> {
 public:
  explicit sqlite_jobs(sqlite_scope& in) noexcept : job_machine{in} {}

  [[nodiscard]] sqlite_job_table& table() noexcept { return rows_; }
};

}  // namespace weir::detail

#endif
