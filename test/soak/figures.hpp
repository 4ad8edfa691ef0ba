// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_FIGURES_HPP
#define WEIR_TEST_SOAK_FIGURES_HPP

#include "soak/audit.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace soak {

/// A fault that was.
struct past_fault {
  std::string name;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// What a run was.
struct run_summary {
  std::string engine;
  std::string version;
  std::uint64_t seed = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::vector<past_fault> faults{};
  std::size_t kills = 0;                          ///< beside them
  std::map<std::string, std::uint64_t> memory{};  ///< most, in bytes, by who has it
};

/// What a kind of operation did in some windows of time.
struct level_of_service {
  double per_second = 0;
  double p50 = 0;  ///< ms
  double p99 = 0;  ///< ms
};

/// Prints the table and writes FOLDER/soak-ENGINE.json, in the form of bench/compare.py and
/// bench/plot.py.
void tell(run_summary const& run, auditor const& judge, std::string const& folder);

}  // namespace soak

#endif
