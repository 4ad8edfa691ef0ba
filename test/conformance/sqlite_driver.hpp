// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_SQLITE_DRIVER_HPP
#define WEIR_TEST_CONFORMANCE_SQLITE_DRIVER_HPP

#include "conformance/memory_driver.hpp"
#include "integration/sqlite_bed.hpp"
#include "weir/clock/manual.hpp"
#include "weir/store/sqlite.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::testing {

/// Where the file store is less than the rule.
[[nodiscard]] inline capabilities sqlite_capabilities() {
  capabilities c;
  c.ends_are_final = false;  // a step that only reads writes nothing down
  return c;
}

/// Stores on files of their own, in a directory that goes with the driver.
template <class Clock>
class sqlite_driver {
 public:
  using store = basic_sqlite_store<Clock>;

  [[nodiscard]] capabilities declared() const { return sqlite_capabilities(); }

  store make(boost::asio::any_io_executor const& ex) { return make_with(ex, sqlite_test::quick()); }
  store make_bounded(boost::asio::any_io_executor const& ex, std::size_t n) {
    auto o = sqlite_test::quick();
    o.max_buckets = o.max_permits = o.max_locks = o.max_jobs = n;
    return make_with(ex, o);
  }

  result<command::enqueue_jobs::result> transact(store&, command::enqueue_jobs const& c,
                                                 bool commit) {
    return in_transaction(c, commit);
  }

 protected:
  /// An application's transaction on the file of the store that was made last.
  result<command::enqueue_jobs::result> in_transaction(command::enqueue_jobs const& c,
                                                       bool commit) {
    {  // the one that was made may not have been asked for anything yet
      boost::asio::io_context io;
      sqlite_store const there{io.get_executor(), file_, sqlite_test::quick()};
      there.async_open([](error_code ec) { BOOST_TEST_REQUIRE(!ec); });
      io.run();
    }
    sqlite_test::connection db{file_};
    db.must("BEGIN IMMEDIATE");
    auto const answer = [&] {
      basic_sqlite_transaction<Clock> tx{db.get(), {}, clock_};
      return tx.execute(c);
    }();
    db.must(commit ? "COMMIT" : "ROLLBACK");
    return answer;
  }

  /// Where the next store is.
  std::string const& next_file() { return file_ = home_.file(std::to_string(++made_)); }

  Clock clock_{};

 private:
  store make_with(boost::asio::any_io_executor const& ex, sqlite_options const& o) {
    return store{ex, next_file(), o, clock_};
  }

  sqlite_test::directory home_{};
  std::string file_;
  std::size_t made_ = 0;
};

struct manual_sqlite_driver : sqlite_driver<manual_clock> {
  void advance(duration d) { clock_.advance(d); }
};

/// Why the suite may leave something out here.
inline constexpr std::string_view own_time =
    "an application's transaction has the store's own time";
inline constexpr std::string_view too_slow = "the store was too slow for its precision to judge";

/// Nothing fails, and what is left out is left out because of how time passes.
inline void require_sqlite(report const& r) {
  require_all(r, {no_hints, told_only, no_way_back, not_known, passes, own_time, too_slow});
}

}  // namespace weir::testing

#endif
