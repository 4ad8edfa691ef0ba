// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_MEMORY_DRIVER_HPP
#define WEIR_TEST_CONFORMANCE_MEMORY_DRIVER_HPP

#include "weir/clock/manual.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <sstream>

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
    requires executes<Store, C> && (!is_told<C>)
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

/// One Boost.Test assertion for each finding.
inline void require_all(report const& r) {
  std::ostringstream skipped;
  for (auto const& f : r.findings()) {
    std::ostringstream text;
    text << f;
    BOOST_TEST((f.outcome != verdict::failed), text.str());
    if (f.outcome == verdict::skipped) skipped << f << '\n';
  }
  BOOST_TEST_MESSAGE(skipped.str());
  BOOST_TEST(r.count(verdict::passed) > 0U);
}

}  // namespace weir::testing

#endif
