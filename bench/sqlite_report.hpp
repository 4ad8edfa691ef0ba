// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_SQLITE_REPORT_HPP
#define WEIR_BENCH_SQLITE_REPORT_HPP

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir_bench {

/// Prints what the others do, and at the end what belongs together beside each other.
class side_by_side : public benchmark::ConsoleReporter {
 public:
  /// @param pairs names of benchmarks: weir's without its prefix, and the raw one
  explicit side_by_side(std::vector<std::pair<std::string, std::string>> pairs)
      : pairs_{std::move(pairs)} {}

  void ReportRuns(std::vector<Run> const& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (auto const& r : runs) {
      auto const rate = r.counters.find("items_per_second");
      if (rate != r.counters.end()) rates_[r.benchmark_name()] = rate->second.value;
      for (std::string const queue : {"empty", "million"}) {
        auto const median = r.counters.find(queue);
        if (median != r.counters.end()) rates_[queue] = median->second.value;
      }
    }
  }

  void Finalize() override {
    ConsoleReporter::Finalize();
    std::printf("\n%-24s %-12s %-9s %12s %12s %10s\n", "per second", "", "in flight", "raw", "weir",
                "raw / weir");
    for (auto const& [weir, raw] : pairs_) {
      for (int const durable : {0, 1}) {
        auto const setting = "/durable:" + std::to_string(durable);
        for (auto const& [flight, together] : {std::pair{1, 1}, std::pair{1000, 256}}) {
          show(weir, durable != 0 ? "power_loss" : "process_crash", std::to_string(flight),
               rate(raw + setting + "/together:" + std::to_string(together) + "/real_time"),
               rate("weir_" + weir + setting + "/in_flight:" + std::to_string(flight) +
                    "/real_time"));
        }
      }
    }
    auto const empty = rate("empty");
    auto const behind = rate("million");
    if (behind == 0) return;
    std::printf("\ndequeues per second (medians): %.0f from a queue with nothing else, %.0f behind "
                "1,000,000 future\njobs of a higher priority: %.2f times as long\n",
                empty, behind, empty / behind);
  }

 private:
  [[nodiscard]] double rate(std::string const& name) const {
    auto const r = rates_.find(name);
    return r == rates_.end() ? 0 : r->second;
  }

  static void show(std::string const& what, char const* setting, std::string const& flight,
                   double raw, double weir) {
    if (raw == 0 || weir == 0) return;  // not asked for
    std::printf("%-24s %-12s %9s %12.0f %12.0f %10.2f\n", what.c_str(), setting, flight.c_str(),
                raw, weir, raw / weir);
  }

  std::vector<std::pair<std::string, std::string>> pairs_;
  std::map<std::string, double> rates_;
};

}  // namespace weir_bench

#endif
