// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_DRIVER_HPP
#define WEIR_TESTING_DRIVER_HPP

#include "weir/command/jobs.hpp"
#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/testing/capabilities.hpp"
#include "weir/testing/commands.hpp"
#include "weir/testing/subject.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <functional>
#include <utility>

namespace weir::testing {

/// The driver of a store, which a user of the suite writes: how to make one. Every check makes a
/// fresh one, which must be empty: on a shared engine, each gets a key prefix or a schema of its
/// own. A store with `async_run` is run, and one with `close` is closed at the end.
///
/// A driver may also have:
/// - `capabilities declared()`: where the store may be less than the rule;
/// - `void advance(duration)`: moves the time of the stores that it made. Without it, the suite
///   waits in real time, for little more than the store's precision at a time;
/// - `store make_bounded(any_io_executor, std::size_t n)`: a store with room for only `n` keys,
///   leases or jobs;
/// - `result<command::enqueue_jobs::result> transact(store&, command::enqueue_jobs const&, bool)`:
///   executes the command in a transaction of the application's own on the store's engine, and
///   commits it (true) or rolls it back. It may block.
///
/// What a driver or its store lacks is left out, and the report says so.
template <class D>
concept store_driver = requires(D& d, boost::asio::any_io_executor const& ex) {
  { d.make(ex) } -> store;
};

/// Does a transaction of the application's; empty where the driver cannot.
using transaction_hook =
    std::function<result<command::enqueue_jobs::result>(command::enqueue_jobs const&, bool commit)>;

/// A driver without its type. The driver must outlive it.
template <class Commands>
class factory {
 public:
  /// Finds out what the driver has.
  template <store_driver Driver>
  explicit factory(Driver& driver)
      : make{[&driver](boost::asio::any_io_executor const& ex) {
          return wrap(driver, driver.make(ex));
        }} {
    if constexpr (requires { driver.declared(); }) can = driver.declared();
    if constexpr (requires(duration d) { driver.advance(d); }) {
      advance = [&driver](duration d) { driver.advance(d); };
    }
    if constexpr (requires(boost::asio::any_io_executor ex) {
                    driver.make_bounded(ex, std::size_t{});
                  }) {
      make_bounded = [&driver](boost::asio::any_io_executor const& ex, std::size_t n) {
        return wrap(driver, driver.make_bounded(ex, n));
      };
    }
  }

  /// A store that was made.
  struct made {
    subject<Commands> store;    ///< the store without its type
    transaction_hook transact;  ///< the application's transactions on it
  };

  capabilities can;  ///< what the driver declared, or that the store is no less than the rule
  /// A fresh store.
  std::function<made(boost::asio::any_io_executor const&)> make;
  /// A fresh store with room for that many; empty where the driver cannot.
  std::function<made(boost::asio::any_io_executor const&, std::size_t)> make_bounded;
  /// Moves the stores' time; empty where the driver cannot.
  std::function<void(duration)> advance;

 private:
  template <class Driver, class Store>
  static made wrap(Driver& driver, Store store) {
    transaction_hook transact;
    if constexpr (requires(command::enqueue_jobs c) { driver.transact(store, c, true); }) {
      transact = [&driver, store](command::enqueue_jobs const& c, bool commit) mutable {
        return driver.transact(store, c, commit);
      };
    }
    return made{subject<Commands>{std::move(store)}, std::move(transact)};
  }
};

}  // namespace weir::testing

#endif
