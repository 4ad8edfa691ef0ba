// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_REPORT_HPP
#define WEIR_BENCH_REPORT_HPP

#include "samples.hpp"

#include <nlohmann/json.hpp>

#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace weir_bench {

/// What a row is to reach: itself, or beside its reference.
struct target {
  enum class figure { ours, ratio, difference };
  figure of = figure::ours;
  bool at_most = true;
  double value = 0;
};

inline target at_most(double value) { return {target::figure::ours, true, value}; }
inline target at_least(double value) { return {target::figure::ours, false, value}; }
/// Ours divided by the reference.
inline target ratio_at_most(double value) { return {target::figure::ratio, true, value}; }
inline target ratio_at_least(double value) { return {target::figure::ratio, false, value}; }
/// Ours less the reference, in their unit.
inline target reference_plus(double value) { return {target::figure::difference, true, value}; }

/// Where a row stands in a picture, which bench/plot.py draws: our figure over `x`.
struct point {
  std::string chart{};
  std::string line{};
  double x = 0;
  std::string counts{};  ///< what x is a number of
};

/// One line of a report: what was measured, and beside what.
struct row {
  /// What was measured; unique in its report, for it is by the name that reports are compared.
  std::string name{};
  /// Of both figures: "ns", "us", "ms", "bytes", "scripts", "instructions", or, more is better,
  /// what ends in "/s".
  std::string unit = "ns";
  samples ours{};
  /// What `reference` is of; empty: there is none.
  std::string reference_name{};
  /// Measured in the same run, in turns with ours.
  samples reference{};
  std::optional<target> goal{};
  std::string note{};
  std::optional<point> plot{};
};

/// The rows of one benchmark: a table for people, and build/bench/NAME.json for bench/compare.py.
class report {
 public:
  /// @param bench the NAME of bench/NAME.cpp
  explicit report(std::string bench) : bench_{std::move(bench)}, load_before_{load()} {}

  /// A heading above the rows that follow.
  void section(std::string text) { lines_.push_back({std::move(text), std::nullopt}); }

  /// Adds a row to the JSON at once: a run of an hour that fails is not lost.
  void add(row r) {
    if (r.ours.empty()) return;  // not asked for
    lines_.push_back({{}, std::move(r)});
    save();
  }

  /// Prints the table.
  void finish() const {
    show();
    std::printf("\nwritten: %s\n", save().c_str());
  }

 private:
  [[nodiscard]] nlohmann::json json() const {
    auto rows = nlohmann::json::array();
    for (auto const& l : lines_) {
      if (l.of) rows.push_back(json_of(*l.of));
    }
    return {{"schema", 1},
            {"bench", bench_},
            {"made", now()},
            {"machine",
             {{"processor", processor()},
              {"cores", std::thread::hardware_concurrency()},
              {"load_before", load_before_},
              {"load_after", load()}}},
            {"compiler", compiler()},
            {"rows", std::move(rows)}};
  }

  /// Writes the JSON, and says where.
  std::filesystem::path save() const {
    auto const folder = std::filesystem::path{environment("WEIR_BENCH_OUTPUT", "build/bench")};
    std::filesystem::create_directories(folder);
    auto file = folder / (bench_ + ".json");
    std::ofstream out{file};
    out << json().dump(1) << '\n';
    if (!out.flush()) throw std::runtime_error{"cannot write " + file.string()};
    return file;
  }

  struct line {
    std::string heading;
    std::optional<row> of;
  };

  static bool more_is_better(row const& r) { return r.unit.ends_with("/s"); }

  static std::optional<bool> met(row const& r) {
    if (!r.goal) return std::nullopt;
    if (r.goal->of != target::figure::ours && r.reference.empty()) return std::nullopt;
    auto const value = [&] {
      switch (r.goal->of) {
        case target::figure::ratio: return ratios(r.ours, r.reference).median();
        case target::figure::difference: return r.ours.median() - r.reference.median();
        default: return r.ours.median();
      }
    }();
    return r.goal->at_most ? value <= r.goal->value : value >= r.goal->value;
  }

  static nlohmann::json json_of(row const& r) {
    nlohmann::json out{{"name", r.name},
                       {"unit", r.unit},
                       {"better", more_is_better(r) ? "more" : "less"},
                       {"ours", r.ours.median()},
                       {"spread", r.ours.spread()},
                       {"runs", r.ours.size()}};
    if (!r.reference.empty()) {
      auto const quotient = ratios(r.ours, r.reference);
      out["reference"] = {{"name", r.reference_name},
                          {"figure", r.reference.median()},
                          {"spread", r.reference.spread()}};
      out["ratio"] = quotient.median();
      out["ratio_spread"] =
          quotient.size() > 1 ? quotient.spread() : std::max(r.ours.spread(), r.reference.spread());
    }
    if (r.goal) out["target"] = target_text(r);
    if (auto const reached = met(r)) out["met"] = *reached;
    if (!r.note.empty()) out["note"] = r.note;
    if (r.plot) {
      out["plot"] = {{"chart", r.plot->chart},
                     {"line", r.plot->line},
                     {"x", r.plot->x},
                     {"counts", r.plot->counts}};
    }
    return out;
  }

  static std::string target_text(row const& r) {
    std::string const sign = r.goal->at_most ? "<= " : ">= ";
    switch (r.goal->of) {
      case target::figure::ratio: return sign + figure_text(r.goal->value) + " x";
      case target::figure::difference: return sign + "ref + " + figure_text(r.goal->value);
      default: return sign + figure_text(r.goal->value);
    }
  }

  /// Four digits that count, and thousands set apart.
  static std::string figure_text(double value) {
    auto const size = value < 0 ? -value : value;
    char text[64];
    if (size < 1000 && value != static_cast<double>(static_cast<long long>(value))) {
      std::snprintf(text, sizeof text, "%.*f", size < 10 ? 3 : size < 100 ? 2 : 1, value);
      return text;
    }
    std::snprintf(text, sizeof text, "%.0f", value);
    std::string out = text;
    auto const first = static_cast<std::size_t>(value < 0 ? 1 : 0);
    for (auto at = out.size(); at > first + 3;) out.insert(at -= 3, 1, ',');
    return out;
  }

  void show() const {
    std::size_t widest = 24;
    std::size_t reference = 9;
    for (auto const& l : lines_) {
      if (!l.of) continue;
      widest = std::max(widest, l.of->name.size());
      reference = std::max(reference, l.of->reference_name.size());
    }
    auto const a = static_cast<int>(widest);
    auto const b = static_cast<int>(reference);
    std::printf("\n%s: medians; +-: the width of the middle half of the runs, or, beside a "
                "reference, of their ratios\n%s, %u cores; load %.1f before, %.1f after; %s\n\n",
                bench_.c_str(), processor().c_str(), std::thread::hardware_concurrency(),
                load_before_, load(), compiler().c_str());
    std::printf("%-*s %12s %-7s %12s %-*s %7s %5s  %s\n", a, "", "weir", "", "reference", b, "",
                "ratio", "+-", "target");
    for (auto const& l : lines_) {
      if (l.of) {
        show(*l.of, a, b);
      } else {
        std::printf("%s\n", l.heading.c_str());
      }
    }
  }

  static void show(row const& r, int name, int reference) {
    auto const beside = !r.reference.empty();
    auto const quotient = ratios(r.ours, r.reference);
    char ratio[32] = "";
    if (beside) std::snprintf(ratio, sizeof ratio, "%.2f", quotient.median());
    auto const spread = beside && quotient.size() > 1 ? quotient.spread() : r.ours.spread();
    auto const reached = met(r);
    std::printf("%-*s %12s %-7s %12s %-*s %7s %4.0f%%  %s%s%s%s\n", name, r.name.c_str(),
                figure_text(r.ours.median()).c_str(), r.unit.c_str(),
                beside ? figure_text(r.reference.median()).c_str() : "", reference,
                r.reference_name.c_str(), ratio, 100 * spread, r.goal ? target_text(r).c_str() : "",
                !reached   ? ""
                : *reached ? "  met"
                           : "  MISSED",
                r.note.empty() ? "" : "  ", r.note.c_str());
  }

  static std::string environment(char const* name, char const* otherwise) {
    char const* const value = std::getenv(name);
    return value == nullptr ? otherwise : value;
  }
  static double load() {
    double out = 0;
    return ::getloadavg(&out, 1) == 1 ? out : 0;
  }
  static std::string now() {
    auto const t = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&t, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
  }
  static std::string compiler() {
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "g++ " __VERSION__;
#endif
  }
  static std::string processor() {
    std::ifstream in{"/proc/cpuinfo"};
    for (std::string text; std::getline(in, text);) {
      if (text.starts_with("model name")) return text.substr(text.find(':') + 2);
    }
    return "processor unknown";
  }

  std::string bench_;
  double load_before_;
  std::vector<line> lines_;
};

}  // namespace weir_bench

#endif
