// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_GOOGLE_HPP
#define WEIR_BENCH_GOOGLE_HPP

#include "report.hpp"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir_bench {

/// A row whose figures are those of Google Benchmark. Both names as it prints them, such as
/// "one_key_accept/real_time/threads:2".
struct google_row {
  std::string benchmark{};
  /// The one that it stands beside; empty: none.
  std::string reference{};
  std::optional<target> goal{};
  std::string note{};
  /// A counter in place of the time of one iteration, and its unit.
  std::string counter{};
  std::string unit = "ns";
  /// The reference's counter, if not the same.
  std::string reference_counter{};
  /// What the row and its reference are called, if not as their benchmarks.
  std::string name{};
  std::string reference_name{};
};

/// Keeps what all repetitions measured, and says on the terminal how far it is.
class google_figures : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(Context const&) override { return true; }

  void ReportRuns(std::vector<Run> const& runs) override {
    for (auto const& r : runs) {
      auto const name = r.benchmark_name();
      if (r.error_occurred) {
        std::fprintf(stderr, "%s: %s\n", name.c_str(), r.error_message.c_str());
        failed_ = true;
        continue;
      }
      if (r.run_type != Run::RT_Iteration) continue;  // Google's own medians
      auto const each = r.iterations == 0 ? 1.0 : static_cast<double>(r.iterations);
      if (!times_.contains(name)) order_.push_back(name);
      times_[name].push_back(r.real_accumulated_time * 1e9 / each);
      for (auto const& [counter, value] : r.counters) {
        counters_[{name, counter}].push_back(value.value);
      }
    }
  }

  [[nodiscard]] samples figures(std::string const& name, std::string const& counter) const {
    if (counter.empty()) {
      auto const found = times_.find(name);
      return found == times_.end() ? samples{} : found->second;
    }
    auto const found = counters_.find({name, counter});
    return found == counters_.end() ? samples{} : found->second;
  }
  [[nodiscard]] std::vector<std::string> const& names() const noexcept { return order_; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  std::map<std::string, samples> times_;
  std::map<std::pair<std::string, std::string>, samples> counters_;
  std::vector<std::string> order_;
  bool failed_ = false;
};

/// Runs what is registered with BENCHMARK, five times in turns of a random order, unless the
/// options say otherwise, and reports `rows`; after them, what was measured and is in none of them.
///
/// @returns what main() is to return
inline int run_google(int argc, char** argv, std::string const& bench,
                      std::vector<google_row> const& rows) {
  std::vector<char*> arguments{argv, argv + argc};
  std::string repetitions = "--benchmark_repetitions=5";
  std::string interleaving = "--benchmark_enable_random_interleaving=true";
  std::string least = "--benchmark_min_time=0.2";
  arguments.insert(arguments.begin() + 1, {repetitions.data(), interleaving.data(), least.data()});
  auto count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  google_figures all;
  report out{bench};
  benchmark::RunSpecifiedBenchmarks(&all);
  std::map<std::string, bool> told;
  for (auto const& r : rows) {
    told[r.benchmark] = told[r.reference] = true;
    auto const counted = r.counter.empty() ? "" : ", " + r.counter;
    out.add({.name = r.name.empty() ? r.benchmark + counted : r.name,
             .unit = r.unit,
             .ours = all.figures(r.benchmark, r.counter),
             .reference_name = r.reference_name.empty() ? r.reference : r.reference_name,
             .reference = all.figures(
                 r.reference, r.reference_counter.empty() ? r.counter : r.reference_counter),
             .goal = r.goal,
             .note = r.note});
  }
  bool first = true;
  for (auto const& name : all.names()) {
    if (told.contains(name)) continue;
    if (std::exchange(first, false)) out.section("besides");
    out.add({.name = name, .ours = all.figures(name, "")});
  }
  out.finish();
  benchmark::Shutdown();
  return all.failed() ? 1 : 0;
}

}  // namespace weir_bench

#endif
