// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_GATEWAY_STORE_GATE_HPP
#define WEIR_EXAMPLE_GATEWAY_STORE_GATE_HPP

#include "gate.hpp"
#include "options.hpp"
#include "weir/console.hpp"
#include "weir/limiter.hpp"
#include "weir/rate_limiter.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <utility>

namespace gateway {

/// The gate on one kind of store: here is what weir does for the gateway.
template <class Store>
class store_gate final : public gate {
 public:
  store_gate(Store store, options const& o)
      : store_{std::move(store)},
        rate_{store_, o.rate},  // the store sees the keys' SHA-256 only
        turns_{store_, {.limit = o.limit, .ttl = o.ttl}},
        console_{store_, {.title = "gateway", .prefix = std::string{console_prefix}}},
        wait_{o.wait} {}

  asio::awaitable<passage> pass(std::string_view api_key, work const& what) override {
    passage result;
    try {
      result.rate = co_await rate_.async_try_take(api_key, asio::use_awaitable);
    } catch (boost::system::system_error const& e) {
      result.problem = failure(e);
      co_return result;
    }
    if (!result.rate.allowed) {
      result.outcome = verdict::too_often;
      co_return result;
    }
    // Waits in line with all other gateways' requests, then renews the permit for as long as the
    // backend works; if the permit is lost, the work is cancelled.
    auto body = [&what]() -> asio::awaitable<weir::result<std::string>> { return what(); };
    try {
      weir::acquire_options const patience{.wait = wait_};
      result.answer =
          co_await turns_.async_with_permit(backend, patience, body, asio::use_awaitable);
      result.outcome = verdict::done;
    } catch (boost::system::system_error const& e) {
      result.problem = failure(e);
      if (result.problem == weir::errc::timed_out) result.outcome = verdict::no_turn;
      if (result.problem == weir::errc::lease_lost) result.outcome = verdict::permit_lost;
    }
    if (result.outcome == verdict::no_turn) co_await give_back(api_key, result.rate);
    co_return result;
  }

  asio::awaitable<occupancy> look() override {
    auto const census = co_await turns_.async_inspect(backend, 0, asio::use_awaitable);
    co_return occupancy{census.in_use, census.waiting};
  }

  asio::awaitable<serving::response> page(serving::request const& asked) override {
    return console_.async_handle(asked, asio::use_awaitable);
  }

  asio::awaitable<void> close() override {
    co_await turns_.async_drain(asio::use_awaitable);
    if constexpr (requires { store_.close(); }) store_.close();
  }

 private:
  static constexpr char const* backend = "backend";

  [[nodiscard]] static weir::error_code failure(boost::system::system_error const& e) {
    if (e.code() == asio::error::operation_aborted) throw e;  // the client has gone
    return e.code();
  }

  /// It was not served, so it need not pay: as far as nothing was
  /// taken after it, and it has not refilled.
  asio::awaitable<void> give_back(std::string_view api_key, weir::decision& rate) {
    auto grant = rate;
    try {
      auto const receipt = co_await rate_.async_refund(api_key, grant, asio::use_awaitable);
      rate.remaining += receipt.credited;
    } catch (boost::system::system_error const& e) {
      (void)failure(e);  // it has paid, then
    }
  }

  Store store_;
  weir::rate_limiter<Store> rate_;
  weir::limiter<Store> turns_;
  weir::console console_;
  weir::duration wait_;
};

}  // namespace gateway

#endif
