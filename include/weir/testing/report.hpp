// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_REPORT_HPP
#define WEIR_TESTING_REPORT_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The report of a conformance suite. It knows no test framework: it collects findings, which a
/// loop hands to whatever framework there is, and which print readably by themselves.

namespace weir::testing {

/// The outcome of a check.
enum class verdict : std::uint8_t {
  passed,   ///< the promise held
  failed,   ///< it was broken
  skipped,  ///< it does not apply to this store, or the driver cannot ask
};

/// A check and its outcome.
struct finding {
  std::string noun;                   ///< permits, locks, buckets or jobs
  std::string number;                 ///< the promise or the failure that the check holds: R1, F13
  std::string promise;                ///< the same in words
  std::string time;                   ///< whose time decided: told, advanced or real
  verdict outcome = verdict::passed;  ///< what became of it
  std::string detail;  ///< failed: what was seen; skipped: why; passed: what else is to be said
  std::optional<std::uint64_t> seed;  ///< of what was generated, to run the same again
};

/// Writes one finding in one line, with its detail below it.
inline std::ostream& operator<<(std::ostream& out, finding const& f) {
  constexpr std::string_view words[] = {"passed ", "FAILED ", "skipped"};
  out << words[static_cast<std::size_t>(f.outcome)] << "  " << f.noun << ' ' << f.number << ": "
      << f.promise;
  if (!f.time.empty()) out << " [" << f.time << " time]";
  if (f.seed) out << " [seed " << *f.seed << ']';
  if (f.detail.empty()) return out;
  out << "\n         ";
  for (char const c : f.detail) {
    out << c;
    if (c == '\n') out << "         ";
  }
  return out;
}

/// The findings of a run of the suite.
class report {
 public:
  /// Adds one; the suite does.
  void add(finding f) { findings_.push_back(std::move(f)); }

  /// All of them, in the order of the checks.
  [[nodiscard]] std::vector<finding> const& findings() const noexcept { return findings_; }

  /// How many checks ended so.
  [[nodiscard]] std::size_t count(verdict v) const noexcept {
    std::size_t n = 0;
    for (auto const& f : findings_) n += f.outcome == v ? 1U : 0U;
    return n;
  }

  /// Was something checked, and nothing found broken?
  [[nodiscard]] bool ok() const noexcept {
    return count(verdict::failed) == 0 && count(verdict::passed) > 0;
  }

 private:
  std::vector<finding> findings_;
};

/// Writes what failed, what was skipped and why, what was remarkable, and the totals.
inline std::ostream& operator<<(std::ostream& out, report const& r) {
  for (auto const& f : r.findings()) {
    if (f.outcome != verdict::passed || !f.detail.empty()) out << f << '\n';
  }
  return out << r.count(verdict::passed) << " passed, " << r.count(verdict::failed) << " failed, "
             << r.count(verdict::skipped) << " skipped\n";
}

/// Thrown by a check that found its promise broken.
class broken_promise : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown by a check that does not apply to this store; says why.
class not_applicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws `broken_promise` with what should have been, and where that was asked, unless `kept`.
inline void expect(bool kept, std::string_view what,
                   std::source_location at = std::source_location::current()) {
  if (kept) return;
  std::string_view file = at.file_name();
  auto const folder = file.find_last_of("/\\", file.find_last_of("/\\") - 1);
  if (folder != file.npos) file.remove_prefix(folder + 1);
  throw broken_promise{std::string{what} + "\n(" + std::string{file} + ':' +
                       std::to_string(at.line()) + ')'};
}

}  // namespace weir::testing

#endif
