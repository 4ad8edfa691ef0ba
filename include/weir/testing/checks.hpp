// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CHECKS_HPP
#define WEIR_TESTING_CHECKS_HPP

#include "weir/testing/bench.hpp"
#include "weir/testing/driver.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

#include <boost/asio/io_context.hpp>

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

/// What a check is about.
struct topic {
  std::string_view noun;
  std::string_view number;
  std::string_view promise;

  [[nodiscard]] finding unproven(time_source t) const {
    return {std::string{noun},
            std::string{number},
            std::string{promise},
            std::string{to_text(t)},
            {},
            {},
            {}};
  }
};

/// One promise, and what finds out whether a store keeps it.
template <class Commands>
struct check {
  std::string_view number;
  std::string_view promise;
  void (*run)(bench<Commands>&);
};

/// The sources of time by which a store can be tested.
template <class Commands>
[[nodiscard]] std::vector<time_source> times_of(factory<Commands> const& f) {
  std::vector<time_source> out;
  boost::asio::io_context io;
  if (f.make(io.get_executor()).store.told()) out.push_back(time_source::told);
  out.push_back(f.advance ? time_source::advanced : time_source::real);
  return out;
}

/// Runs one check and says what became of it.
template <class Body>
finding run_check(finding f, Body&& body) {
  try {
    body();
    f.outcome = verdict::passed;
  } catch (not_applicable const& e) {
    f.outcome = verdict::skipped;
    f.detail = e.what();
  } catch (std::exception const& e) {
    f.outcome = verdict::failed;
    f.detail = e.what();
  } catch (...) {
    f.outcome = verdict::failed;
    f.detail = "something was thrown that is not a std::exception";
  }
  return f;
}

/// Is it to be checked at all?
[[nodiscard]] inline bool selected(topic const& about, settings const& s) noexcept {
  return s.only.empty() || about.number.find(s.only) != about.number.npos ||
         about.promise.find(s.only) != about.promise.npos;
}

/// Should the run stop here?
[[nodiscard]] inline bool finished(report const& out, settings const& s) noexcept {
  return s.until_first_failure && out.count(verdict::failed) > 0;
}

/// Runs checks, each on a store of its own. In real time a check that fails is tried again with
/// longer leases, because the machine may have been too slow for the short ones; one that passes
/// then says how it failed before.
template <class Commands, class Checks>
void run_checks(factory<Commands> const& f, std::string_view noun, Checks const& checks,
                report& out, settings const& s) {
  for (auto const t : times_of(f)) {
    for (auto const& c : checks) {
      topic const about{noun, c.number, c.promise};
      if (finished(out, s)) return;
      if (!selected(about, s)) continue;
      auto scaled = s;
      std::string before;
      for (int tries = t == time_source::real ? 3 : 1; tries > 0; --tries, scaled.scale *= 8) {
        auto found = run_check(about.unproven(t), [&] {
          bench<Commands> b{f, t, scaled};
          c.run(b);
        });
        if (found.outcome == verdict::failed && tries > 1) {
          before = "the first time it failed, with shorter leases: " + found.detail;
          continue;
        }
        if (found.outcome == verdict::passed) found.detail = before;
        out.add(std::move(found));
        break;
      }
    }
  }
}

}  // namespace weir::testing

#endif
