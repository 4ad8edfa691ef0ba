// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_ENGINE_MUTANTS_HPP
#define WEIR_TEST_CONFORMANCE_ENGINE_MUTANTS_HPP

#include "conformance/memory_driver.hpp"
#include "conformance/mutant_store.hpp"
#include "weir/clock/system.hpp"
#include "weir/command/at.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/report.hpp"
#include "weir/testing/settings.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <semaphore>
#include <span>
#include <utility>

// The defects once more, around a store on a server: what catches them where every command is a
// round trip, and time passes by itself?
namespace weir::testing {

/// A store on a server, for callers that wait. Its commands are told what time it is.
template <class Store>
class blocking_store {
 public:
  using executor_type = boost::asio::any_io_executor;

  template <class Driver>
  blocking_store(executor_type executor, Driver& driver)
      : executor_{std::move(executor)},
        pool_{std::make_shared<boost::asio::thread_pool>(1)},
        store_{driver.make(pool_->get_executor())} {
    store_.async_run(boost::asio::detached);
  }

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] std::uint32_t shard_count() const noexcept { return store_.shard_count(); }
  [[nodiscard]] time_point now() const { return system_clock{}.system_now(); }

  template <class C>
    requires(!waits_for_event<C>) && executes<Store, command::at<C>>
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
  Store store_;
};

/// Makes mutants of the stores that a driver makes, all with the same defect.
template <class Defects, class Driver>
struct engine_mutant_driver {
  using real_store =
      blocking_store<decltype(std::declval<Driver&>().make(boost::asio::any_io_executor{}))>;
  using mutant = mutant_store<Defects, real_store>;

  /// As a store on a server is: asynchronous only.
  class store {
   public:
    using executor_type = boost::asio::any_io_executor;

    explicit store(mutant m, real_store real) : mutant_{std::move(m)}, real_{std::move(real)} {}

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
    real_store real_;
  };

  explicit engine_mutant_driver(int w) : which{w} {}

  [[nodiscard]] static capabilities declared() { return Driver::declared(); }
  store make(boost::asio::any_io_executor const& ex) {
    real_store const real = [&] {
      static std::mutex one_at_a_time;
      std::lock_guard const lock{one_at_a_time};
      return real_store{ex, driver()};
    }();
    return store{mutant{real, which}, real};
  }

  int which;

 private:
  /// One server for all of them.
  static Driver& driver() {
    static Driver one;
    return one;
  }
};

/// Hunts them until each is caught once, several at a time: those that never answer, or never wake
/// anybody, take as long as their callers are patient.
template <class Defects, class Driver, class Suite>
void hunt_on_engine(std::span<mutant const> mutants, Suite suite) {
  hunt<Defects, engine_mutant_driver<Defects, Driver>>(
      mutants,
      [suite](auto& driver, report& out, settings const& s) {
        auto first = s;
        first.histories = 20;
        first.real_histories = 1;
        // Being slow is not what a defect is to be caught by.
        first.patience = std::max<duration>(first.patience, std::chrono::seconds{8});
        suite(driver, out, first);
      },
      8);
}

}  // namespace weir::testing

#endif
