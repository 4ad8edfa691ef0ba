// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A store that executes some of its commands in the calling thread, and the others only in their
// time. What is built on stores asks each in a way that it has.

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <concepts>
#include <exception>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace weir;

/// Executes `Now` in the calling thread.
template <class Now>
class mixed_store {
 public:
  using executor_type = asio::any_io_executor;

  explicit mixed_store(executor_type executor) : store_{std::move(executor)} {}
  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }

  result<typename Now::result> execute(Now const& c) const { return store_.execute(c); }

  template <class C, class Token>
    requires executes<memory_store const, C>
  auto async_execute(C const& c, Token&& token) const {
    return store_.async_execute(c, std::forward<Token>(token));
  }

 private:
  memory_store store_;
};

template <class Now>
asio::awaitable<void> use(limiter<mixed_store<Now>> limiter) {
  auto tried = co_await limiter.async_try_acquire("k", asio::use_awaitable);
  BOOST_TEST_REQUIRE(tried.has_value());
  (void)co_await limiter.async_renew(*tried, asio::use_awaitable);
  BOOST_TEST(co_await limiter.async_release(std::move(*tried), asio::use_awaitable));
  auto const held = co_await limiter.async_acquire("k", {.wait = 1s}, asio::use_awaitable);
  BOOST_TEST(!held.key().empty());
  auto const census = co_await limiter.async_inspect("k", 10, asio::use_awaitable);
  BOOST_TEST(census.in_use == 1U);
}

template <class Now>
bool works() {
  asio::io_context io;
  bool ended = false;
  limiter<mixed_store<Now>> const on{mixed_store<Now>{io.get_executor()}, {.limit = 1, .ttl = 1h}};
  static_assert(std::same_as<typename limiter<mixed_store<Now>>::store_type, mixed_store<Now>>);
  asio::co_spawn(io, use(on), [&](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
    ended = true;
  });
  io.run();
  return ended;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mixed_stores)

BOOST_AUTO_TEST_CASE(each_command_is_asked_in_a_way_that_the_store_has) {
  BOOST_TEST(works<command::acquire_permit>());
  BOOST_TEST(works<command::renew_permit>());
  BOOST_TEST(works<command::release_permit>());
  BOOST_TEST(works<command::inspect_permits>());
}

BOOST_AUTO_TEST_SUITE_END()
