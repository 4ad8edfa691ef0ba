// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_BUCKET_AGENT_HPP
#define WEIR_DETAIL_BUCKET_AGENT_HPP

#include "weir/command/buckets.hpp"
#include "weir/concept.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// What a rate limiter, its copies and its pending operations share. `Gate` tells whether the
/// store's execution context still exists, where a refund needs it: `enter` and `leave`.
template <class Store, class Clock, class KeyPolicy, class Gate>
class bucket_agent {
 public:
  using store_type = Store;
  using clock_type = Clock;
  using stored_key = std::invoke_result_t<KeyPolicy const&, std::string_view>;

  static constexpr bool asks_now = executes_now<Store, command::take>;
  static constexpr bool refunds_now = executes_now<Store, command::refund>;

  bucket_agent(Store s, std::span<quota const> limits, Clock c, KeyPolicy p,
               std::shared_ptr<Gate> g)
      : store{std::move(s)},
        clock{std::move(c)},
        policy{std::move(p)},
        executor{store.get_executor()},
        gate{std::move(g)},
        size_{limits.size() <= limits_.size() ? limits.size() : 0} {
    std::copy_n(limits.begin(), size_, limits_.begin());
  }

  /// None, if they were too many: not valid either.
  [[nodiscard]] std::span<quota const> limits() const noexcept { return {limits_.data(), size_}; }

  /// The stored key, for as long as the caller's lives.
  [[nodiscard]] auto borrow(std::string_view key) const {
    if constexpr (requires { policy.borrow(key); }) {
      return policy.borrow(key);
    } else {
      return policy(key);
    }
  }

  [[nodiscard]] command::take take(std::string_view key, std::uint64_t cost,
                                   duration wait) const noexcept {
    return {.key = key, .quotas = limits(), .cost = cost, .max_wait = wait};
  }
  [[nodiscard]] command::peek_bucket peek(std::string_view key, std::uint64_t cost,
                                          duration wait) const noexcept {
    return {.key = key, .quotas = limits(), .cost = cost, .max_wait = wait};
  }
  [[nodiscard]] command::refund refund(std::string_view key, std::uint64_t cost,
                                       bucket_mark const& mark,
                                       bool before_instant) const noexcept {
    return {.key = key,
            .quotas = limits(),
            .cost = cost,
            .mark = mark,
            .before_instant = before_instant};
  }

  Store store;
  Clock const clock;
  KeyPolicy const policy;
  boost::asio::any_io_executor const executor;
  std::shared_ptr<Gate> const gate;  ///< null where refunds need no context

 private:
  std::array<quota, weir::limits::quotas> limits_{};
  std::size_t size_;
};

/// Owns what one command views; see detail/async_command.hpp. `make(agent, key)` makes it.
template <class Agent, class Make>
class bucket_request {
 public:
  bucket_request(std::shared_ptr<Agent> agent, typename Agent::stored_key&& key, Make make)
      : agent_{std::move(agent)},
        key_{std::move(key)},
        make_{std::move(make)} {}

  [[nodiscard]] auto command() const { return make_(*agent_, key_.view()); }

 private:
  std::shared_ptr<Agent> agent_;  // and with it the quotas
  typename Agent::stored_key key_;
  Make make_;
};

}  // namespace weir::detail

#endif
