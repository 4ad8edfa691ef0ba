// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_STORE_FIXTURE_HPP
#define WEIR_TEST_INTEGRATION_STORE_FIXTURE_HPP

#include "integration/patience.hpp"
#include "weir/command/locks.hpp"
#include "weir/error.hpp"

#include <boost/asio/cancel_after.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <ostream>
#include <utility>

namespace weir {

inline std::ostream& boost_test_print_type(std::ostream& out, errc e) {
  return out << make_error_code(e).message();
}

}  // namespace weir

// Steps of the tests of all stores.
namespace weir_test {

/// Executes one command, and waits for it as `wait(ended)` does.
template <class Store, class C, class Wait>
[[nodiscard]] weir::result<typename C::result> ask_by(Store const& store, C const& c, Wait wait) {
  using answer = typename C::result;
  std::optional<weir::result<answer>> out;
  store.async_execute(c, [&](weir::error_code ec, answer a) {
    if (ec) {
      out = ec;
    } else {
      out = std::move(a);
    }
  });
  wait([&] { return out.has_value(); });
  BOOST_TEST_REQUIRE(out.has_value(), "the operation did not end");
  return *out;
}

/// Executes one command and waits for it.
template <class Store, class C>
[[nodiscard]] weir::result<typename C::result> ask(boost::asio::io_context& io, Store const& store,
                                                   C const& c) {
  return ask_by(store, c, [&](auto ended) { (void)happens(io, ended); });
}

/// A store that runs.
template <class Store>
struct running {
  template <class Address, class Options>
  running(Address&& address, Options const& options)
      : store{io.get_executor(), std::forward<Address>(address), options} {
    store.async_run([this](weir::error_code ec) { ended = ec; });
  }
  running(running const&) = delete;
  running& operator=(running const&) = delete;
  ~running() {
    store.close();
    io.restart();
    io.run();
  }

  template <class C>
  [[nodiscard]] weir::result<typename C::result> operator()(C const& c) {
    return ask(io, store, c);
  }

  boost::asio::io_context io{};
  Store store;
  std::optional<weir::error_code> ended{};
};

/// A command that is cancelled before there is a connection is not executed once there is one.
template <class Store, class Address, class Options>
void R7_cancelled_before_there_is_a_connection(Address const& address, Options const& options) {
  using weir::command::acquire_lock;
  boost::asio::io_context io;
  Store const store{io.get_executor(), address, options};
  std::optional<weir::error_code> got;
  store.async_execute(
      acquire_lock{"key", "me", std::chrono::hours{1}},
      boost::asio::cancel_after(std::chrono::milliseconds{50},
                                [&](weir::error_code ec, weir::lock_grant const&) { got = ec; }));
  BOOST_TEST_REQUIRE(happens(io, [&] { return got.has_value(); }));
  BOOST_TEST((*got == boost::asio::error::operation_aborted));
  store.async_run([](weir::error_code) {});
  BOOST_TEST(!ask(io, store, weir::command::inspect_lock{"key"}).value().held);
  store.close();
  io.restart();
  io.run();
}

}  // namespace weir_test

#endif
