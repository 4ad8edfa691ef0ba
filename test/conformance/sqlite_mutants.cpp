// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/job_defects.hpp"
#include "conformance/mutant_store.hpp"
#include "conformance/sqlite_driver.hpp"
#include "conformance/suite.hpp"
#include "weir/detail/engine_call.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

// The defects in jobs once more, around the file store: what catches them in a store with a thread
// and a file of its own?
namespace weir::testing {
namespace {

/// The file store, for callers that wait.
class blocking_sqlite_store {
 public:
  using executor_type = boost::asio::any_io_executor;

  blocking_sqlite_store(executor_type executor, std::string const& path, sqlite_options const& o,
                        manual_clock const& clock)
      : executor_{std::move(executor)},
        clock_{clock},
        pool_{std::make_shared<boost::asio::thread_pool>(1)},
        store_{pool_->get_executor(), path, o, clock} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }
  [[nodiscard]] time_point now() const { return clock_.system_now(); }

  template <class C>
    requires weir::detail::engine_step<C>
  result<typename C::result> execute(C const& c) const {
    return wait_for(c);
  }
  template <class C>
    requires weir::detail::engine_step<C>
  result<typename C::result> execute(command::at<C> const& a) const {
    return wait_for(a);
  }

  template <class C, class Token>
    requires waits_for_event<C>
  auto async_execute(C const& c, Token&& token) const {
    return store_.async_execute(c, std::forward<Token>(token));
  }

  void close() const noexcept { store_.close(); }

 private:
  template <class C>
  auto wait_for(C const& c) const {
    auto [ec, answer] =
        store_.async_execute(c, boost::asio::as_tuple(boost::asio::use_future)).get();
    result<decltype(answer)> out{ec};
    if (!ec) out = std::move(answer);
    return out;
  }

  executor_type executor_;
  manual_clock clock_;
  std::shared_ptr<boost::asio::thread_pool> pool_;
  basic_sqlite_store<manual_clock> store_;
};

struct sqlite_mutant_driver {
  // As a remote one: its hints come from another thread, so it is not to be taken for a store that
  // has done all when it returns.
  using mutant = mutant_store<job_defects, blocking_sqlite_store>;
  using store = remote_store<mutant>;

  explicit sqlite_mutant_driver(int w) : which{w} {}

  [[nodiscard]] capabilities declared() const { return sqlite_capabilities(); }
  store make(boost::asio::any_io_executor const& ex) { return make_with(ex, sqlite_test::quick()); }
  store make_bounded(boost::asio::any_io_executor const& ex, std::size_t n) {
    auto o = sqlite_test::quick();
    o.max_jobs = n;
    return make_with(ex, o);
  }
  void advance(duration d) { clock.advance(d); }

  int which;
  manual_clock clock{};
  sqlite_test::directory home{};
  std::size_t made = 0;

 private:
  store make_with(boost::asio::any_io_executor const& ex, sqlite_options const& o) {
    blocking_sqlite_store real{ex, home.file(std::to_string(++made)), o, clock};
    return store{mutant{std::move(real), which}};
  }
};

BOOST_AUTO_TEST_SUITE(sqlite_mutants)

BOOST_AUTO_TEST_CASE(none_survives) {
  hunt<job_defects, sqlite_mutant_driver>(job_mutants, suite::of<job_commands>);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
