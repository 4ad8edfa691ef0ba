// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "conformance/job_defects.hpp"
#include "conformance/mutant_store.hpp"
#include "conformance/redis_driver.hpp"
#include "weir/clock/system.hpp"
#include "weir/testing/conformance/jobs.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <semaphore>
#include <utility>

// The defects in jobs once more, around the store on a server: what catches them where every
// command is a round trip?
namespace weir::testing {
namespace {

/// The store on a server, for callers that wait. Its commands are told what time it is.
class blocking_redis_store {
 public:
  using executor_type = boost::asio::any_io_executor;

  blocking_redis_store(executor_type executor, redis_driver& driver)
      : executor_{std::move(executor)},
        pool_{std::make_shared<boost::asio::thread_pool>(1)},
        store_{driver.make(pool_->get_executor())} {
    store_.async_run(boost::asio::detached);
  }

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }
  [[nodiscard]] time_point now() const { return system_clock{}.system_now(); }

  template <class C>
    requires weir::detail::redis_step<C>
  result<typename C::result> execute(command::at<C> const& a) const {
    result<typename C::result> out = make_error_code(errc::closed);
    std::binary_semaphore done{0};
    store_.async_execute(a, [&](error_code ec, typename C::result answer) {
      out = ec;
      if (!ec) out = std::move(answer);
      done.release();
    });
    done.acquire();
    return out;
  }

  template <class C, class Token>
    requires waits_for_event<C>
  auto async_execute(C const& c, Token&& token) const {
    return store_.async_execute(c, std::forward<Token>(token));
  }

  void close() const { store_.close(); }

 private:
  executor_type executor_;
  std::shared_ptr<boost::asio::thread_pool> pool_;
  redis_store store_;
};

struct redis_mutant_driver {
  using mutant = mutant_store<job_defects, blocking_redis_store>;

  /// As a store on a server is: asynchronous only.
  class store {
   public:
    using executor_type = boost::asio::any_io_executor;

    explicit store(mutant m, blocking_redis_store real)
        : mutant_{std::move(m)},
          real_{std::move(real)} {}

    [[nodiscard]] executor_type get_executor() const noexcept { return mutant_.get_executor(); }
    [[nodiscard]] std::uint32_t shard_count() const noexcept { return mutant_.shard_count(); }

    template <class C, class Token>
      requires(!is_told<C>) && executes<mutant, C>
    auto async_execute(C const& c, Token&& token) const {
      return mutant_.async_execute(c, std::forward<Token>(token));
    }
    template <class C, class Token>
      requires executes_now<mutant, command::at<C>>
    auto async_execute(command::at<C> const& a, Token&& token) const {
      return weir::detail::async_lift<typename C::result>(
          mutant_.get_executor(), [m = mutant_, a] { return m.execute(a); },
          std::forward<Token>(token));
    }

    void close() const { real_.close(); }

   private:
    mutant mutant_;
    blocking_redis_store real_;
  };

  explicit redis_mutant_driver(int w) : which{w} {}

  [[nodiscard]] capabilities declared() const { return redis_driver::declared(); }
  store make(boost::asio::any_io_executor const& ex) {
    blocking_redis_store real{ex, driver()};
    return store{mutant{real, which}, real};
  }

  int which;

 private:
  /// One server for all of them.
  static redis_driver& driver() {
    static redis_driver one;
    return one;
  }
};

BOOST_AUTO_TEST_SUITE(redis_mutants)

BOOST_AUTO_TEST_CASE(none_survives) {
  hunt<job_defects, redis_mutant_driver>(job_mutants,
                                         [](auto& driver, report& out, settings const& s) {
                                           auto first = s;
                                           first.until_first_failure = driver.which >= 0;
                                           first.histories = 20;
                                           first.real_histories = 1;
                                           conformance::jobs(driver, out, first);
                                         });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
