// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/figures.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>

namespace soak {

namespace {

constexpr std::int64_t second = 1'000'000'000;
/// Before and after a fault it is looked at for this long.
constexpr std::int64_t near = 4 * second;
constexpr std::array<std::string_view, 8> kinds{"enqueue", "run",  "permit", "try-permit",
                                                "lock",    "take", "claim",  "tick"};

using window = std::pair<std::int64_t, std::int64_t>;
using samples_by_kind = std::map<std::string_view, std::vector<sample>>;

level_of_service measure(std::vector<sample> const& all, std::vector<window> const& when) {
  std::vector<double> latencies;
  double seconds = 0;
  for (auto const& [from, to] : when) {
    seconds += static_cast<double>(to - from) / 1e9;
    auto const first = std::ranges::lower_bound(all, from, {}, &sample::at);
    for (auto s = first; s != all.end() && s->at < to; ++s) {
      if (s->ok) latencies.push_back(static_cast<double>(s->latency) / 1e6);
    }
  }
  if (latencies.empty() || seconds <= 0) return {};
  std::ranges::sort(latencies);
  auto const at = [&](double share) {
    return latencies[static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1))];
  };
  return {static_cast<double>(latencies.size()) / seconds, at(0.5), at(0.99)};
}

/// From a fault's end until a second in which half as much is done as before it.
std::optional<double> recovery(std::vector<sample> const& all, past_fault const& f,
                               std::int64_t end) {
  auto const before = measure(all, {{f.from - near, f.from}}).per_second;
  if (before == 0) return 0.0;
  for (auto at = f.to; at + second <= end; at += second / 10) {
    if (measure(all, {{at, at + second}}).per_second >= before / 2) {
      return static_cast<double>(at - f.to) / 1e9;
    }
  }
  return std::nullopt;
}

void sparkline(std::vector<sample> const& all, run_summary const& run) {
  constexpr std::array<char const*, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::int64_t columns = 100;
  auto const step = std::max<std::int64_t>((run.to - run.from) / columns, second);
  std::vector<double> rates;
  std::string faults;
  for (auto at = run.from; at + step <= run.to; at += step) {
    rates.push_back(measure(all, {{at, at + step}}).per_second);
    bool const faulty = std::ranges::any_of(
        run.faults, [&](past_fault const& f) { return f.from < at + step && f.to > at; });
    faults += faulty ? 'x' : ' ';
  }
  if (rates.empty()) return;
  auto const most = std::max(std::ranges::max(rates), 1.0);
  std::string line;
  for (auto const r : rates) line += bars[static_cast<std::size_t>(r / most * 7.0)];
  std::printf("\noperations per second, up to %.0f; x: a fault\n%s\n%s\n", most, line.c_str(),
              faults.c_str());
}

}  // namespace

void tell(run_summary const& run, auditor const& judge, std::string const& folder) {
  samples_by_kind by_kind;
  std::vector<sample> answered;
  for (auto const& s : judge.samples()) {
    auto const kind = std::ranges::find(kinds, s.name);
    if (kind != kinds.end()) by_kind[*kind].push_back(s);
    if (s.ok) answered.push_back(s);
  }
  for (auto& [kind, all] : by_kind) std::ranges::sort(all, {}, &sample::at);
  std::ranges::sort(answered, {}, &sample::at);

  nlohmann::json rows = nlohmann::json::array();
  auto const row = [&](std::string const& name, char const* unit, double value) -> nlohmann::json& {
    rows.push_back({{"name", name}, {"unit", unit}, {"ours", std::round(value * 1000) / 1000}});
    return rows.back();
  };

  std::map<std::string, std::vector<past_fault>> by_name;
  for (auto const& f : run.faults) by_name[f.name].push_back(f);
  std::printf("\n%-18s %-10s %26s %26s %26s %9s\n%-18s %-10s", "", "", "before", "during", "after",
              "recovered", "fault", "operation");
  for (int i = 0; i != 3; ++i) std::printf(" %8s %8s %8s", "/s", "p50 ms", "p99 ms");
  std::printf(" %9s\n", "after s");
  for (auto const& [name, all] : by_name) {
    std::array<std::vector<window>, 3> when;
    for (auto const& f : all) {
      when[0].emplace_back(f.from - near, f.from);
      when[1].emplace_back(f.from, f.to);
      when[2].emplace_back(f.to, std::min(f.to + near, run.to));
    }
    bool first = true;
    for (auto const& [kind, samples] : by_kind) {
      auto const title = name + " x" + std::to_string(all.size());
      std::printf("%-18s %-10s", first ? title.c_str() : "", std::string{kind}.c_str());
      constexpr std::array phases{"before", "during", "after"};
      for (std::size_t i = 0; i != when.size(); ++i) {
        auto const m = measure(samples, when[i]);
        std::printf(" %8.1f %8.1f %8.1f", m.per_second, m.p50, m.p99);
        auto const at = name + "/" + std::string{kind} + "/" + phases[i];
        row(at + "/rate", "/s", m.per_second);
        row(at + "/p50", "ms", m.p50);
        row(at + "/p99", "ms", m.p99);
      }
      double worst = 0;
      bool recovered = true;
      for (auto const& f : all) {
        auto const r = recovery(samples, f, run.to);
        recovered = recovered && r;
        worst = std::max(worst, r.value_or(0));
      }
      if (recovered) {
        std::printf(" %9.1f\n", worst);
        row(name + "/" + std::string{kind} + "/recovery", "s", worst);
      } else {
        std::printf(" %9s\n", "-");
      }
      first = false;
    }
  }
  std::printf("\nmost memory, MiB:");
  for (auto const& [who, bytes] : run.memory) {
    std::printf("  %s %.0f", who.c_str(), static_cast<double>(bytes) / 1048576);
    row("memory/" + who, "MiB", static_cast<double>(bytes) / 1048576);
  }
  std::printf("\n");
  sparkline(answered, run);
  // For the picture: a point for each two seconds.
  for (auto const& [kind, samples] : by_kind) {
    for (auto at = run.from; at + 2 * second <= run.to; at += 2 * second) {
      auto const m = measure(samples, {{at, at + 2 * second}});
      auto const x = static_cast<double>(at + 2 * second - run.from) / 1e9;
      row("time/" + std::string{kind} + "/" + std::to_string(static_cast<int>(x)), "ms",
          m.p50)["plot"] = {{"chart", "soak " + run.engine + ", median latency"},
                            {"line", kind},
                            {"x", x},
                            {"counts", "seconds"}};
    }
  }
  nlohmann::json faults = nlohmann::json::array();
  for (auto const& f : run.faults) {
    faults.push_back({{"name", f.name},
                      {"from", static_cast<double>(f.from - run.from) / 1e9},
                      {"to", static_cast<double>(f.to - run.from) / 1e9}});
  }
  nlohmann::json findings = nlohmann::json::array();
  for (auto const& f : judge.findings()) {
    findings.push_back({{"promise", f.promise}, {"what", f.what}});
  }
  std::ofstream{folder + "/soak-" + run.engine + ".json"}
      << nlohmann::json{{"engine", run.engine},     {"version", run.version},
                        {"seed", run.seed},         {"seconds", (run.to - run.from) / second},
                        {"counts", judge.counts()}, {"faults", faults},
                        {"findings", findings},     {"rows", rows}}
             .dump(1)
      << '\n';
}

}  // namespace soak
