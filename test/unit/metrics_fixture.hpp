// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_METRICS_FIXTURE_HPP
#define WEIR_TEST_UNIT_METRICS_FIXTURE_HPP

#include "unit/worker_fixture.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/prometheus.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace test {

inline std::string const one = R"({"text":"a","number":1})";

struct metrics_fixture : worker_fixture {
  using seen_store = weir::observed<memory, weir::prometheus_metrics, weir::manual_clock>;

  explicit metrics_fixture(weir::metrics_options options = {}) : metrics{std::move(options)} {}

  /// The samples, by name and labels.
  static std::map<std::string, double> samples_of(std::string const& text) {
    std::map<std::string, double> out;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#')) continue;
      auto const space = line.rfind(' ');
      auto const added = out.emplace(line.substr(0, space), std::stod(line.substr(space + 1)));
      BOOST_TEST(added.second, "twice: " + line);
    }
    return out;
  }
  double sample(std::string const& name) const {
    auto const all = samples_of(metrics.text());
    auto const at = all.find(name);
    BOOST_TEST_REQUIRE((at != all.end()), "there is no " + name + " in\n" + metrics.text());
    return at->second;
  }
  bool has(std::string const& name) const {
    return metrics.text().find("\n" + name) != std::string::npos;
  }
  static std::string event(std::string_view queue, std::string_view what) {
    return "weir_job_events_total{queue=\"" + std::string{queue} + "\",kind=\"note\",event=\"" +
           std::string{what} + "\"}";
  }

  weir::prometheus_metrics metrics;
  seen_store seen{store, metrics, clock};
};

}  // namespace test

#endif
