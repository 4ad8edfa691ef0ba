// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_MEMORY_DRIVER_HPP
#define WEIR_TEST_CONFORMANCE_MEMORY_DRIVER_HPP

#include "conformance/suite.hpp"
#include "weir/clock/manual.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

/// The memory store, whose time moves when it is told to.
struct manual_memory_driver {
  manual_clock clock{};

  basic_memory_store<manual_clock> make(boost::asio::any_io_executor const& ex) {
    return basic_memory_store<manual_clock>{ex, {}, clock};
  }
  basic_memory_store<manual_clock> make_bounded(boost::asio::any_io_executor const& ex,
                                                std::size_t n) {
    memory_options o;
    o.max_buckets = o.max_permits = o.max_locks = o.max_jobs = n;
    return basic_memory_store<manual_clock>{ex, o, clock};
  }
  void advance(duration d) { clock.advance(d); }
};

template <class C>
inline constexpr bool is_told = false;
template <class C>
inline constexpr bool is_told<command::at<C>> = true;

/// What a store on another machine looks like: asynchronous only, with a time of its own that
/// nobody can tell or move.
template <class Store>
class remote_store {
 public:
  using executor_type = typename Store::executor_type;

  explicit remote_store(Store store) : store_{std::move(store)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }

  template <class C, class Token>
    requires(!is_told<C>) && executes<Store, C>
  auto async_execute(C const& c, Token&& token) const {
    return store_.async_execute(c, std::forward<Token>(token));
  }

 private:
  Store store_;
};

struct remote_memory_driver {
  capabilities declared() const {
    capabilities c;
    c.precision = std::chrono::microseconds{1};
    return c;
  }
  remote_store<memory_store> make(boost::asio::any_io_executor const& ex) {
    return remote_store<memory_store>{memory_store{ex}};
  }
};

/// More and longer histories than the suite has by itself, from another seed.
[[nodiscard]] inline settings long_run() {
  settings s;
  s.seed = 1'000'000;
  s.histories = 250;
  s.steps = 200;
  return s;
}

/// More and larger concurrent histories than the suite has by itself, from another seed.
[[nodiscard]] inline settings crowd() {
  settings s;
  s.seed = 2'000'000;
  s.concurrent = 12;
  s.clients = 8;
  s.operations = 80;
  return s;
}

/// One Boost.Test assertion for each finding: nothing fails.
inline void require_all(report const& r) {
  for (auto const& f : r.findings()) {
    std::ostringstream text;
    text << f;
    BOOST_TEST((f.outcome != verdict::failed), text.str());
    if (f.outcome == verdict::skipped) BOOST_TEST_MESSAGE(text.str());
  }
  BOOST_TEST(r.count(verdict::passed) > 0U);
}

/// The same, and nothing is left out for another reason than these.
inline void require_all(report const& r, std::vector<std::string_view> const& reasons) {
  require_all(r);
  for (auto const& f : r.findings()) {
    if (f.outcome != verdict::skipped) continue;
    bool const expected =
        std::find(reasons.begin(), reasons.end(), std::string_view{f.detail}) != reasons.end();
    BOOST_TEST(expected, f.noun << ' ' << f.number << ' ' << f.promise << ": " << f.detail);
  }
}

/// Each of these failures has a check that did not only exist, but passed.
inline void require_numbers(report const& r, std::vector<std::string_view> const& numbers) {
  for (auto const n : numbers) {
    bool const passed =
        std::any_of(r.findings().begin(), r.findings().end(), [&](finding const& f) {
          return f.number == n && f.outcome == verdict::passed;
        });
    BOOST_TEST(passed, "no check of " << n << " passed");
  }
}

/// Every check passes in one of the times that the store was tested in, but for these promises.
inline void require_each(report const& r, std::vector<std::string_view> const& except = {}) {
  std::map<std::string, bool> passed;
  for (auto const& f : r.findings()) {
    passed[f.number + ": " + f.promise] |= f.outcome == verdict::passed;
  }
  for (auto const& [promise, so] : passed) {
    bool const excepted = std::any_of(except.begin(), except.end(), [&, p = promise](auto e) {
      return p.find(e) != std::string::npos;
    });
    BOOST_TEST(so != excepted, promise << (so ? " passed" : " was nowhere checked"));
  }
}

// Why something is left out.
inline constexpr std::string_view no_hints = "hints come by the store's own time";
inline constexpr std::string_view told_only =
    "told time is for tests: how its commands complete is not promised";
inline constexpr std::string_view no_way_back = "the store's time cannot be moved back";
inline constexpr std::string_view not_known = "the store's time is not known";
inline constexpr std::string_view passes = "time passes by itself";
inline constexpr std::string_view no_bound = "the driver makes no bounded store";
inline constexpr std::string_view no_transactions = "the driver does no transactions";

/// In real time, as if the stores were remote.
template <class Commands>
void remote_memory_keeps_every_promise(std::vector<std::string_view> const& reasons) {
  remote_memory_driver driver;
  report found;
  suite::of<Commands>(driver, found);
  require_all(found, reasons);
}

template <class Commands>
void memory_keeps_promises_in_long_histories() {
  manual_memory_driver driver;
  report found;
  suite::histories(factory<Commands>{driver}, found, long_run());
  require_all(found, {});
}

template <class Commands>
void memory_keeps_promises_in_a_crowd() {
  manual_memory_driver manual;
  remote_memory_driver remote;
  report found;
  suite::concurrency(factory<Commands>{manual}, found, crowd());
  suite::concurrency(factory<Commands>{remote}, found, crowd());
  require_all(found, {});
}

}  // namespace weir::testing

#endif
