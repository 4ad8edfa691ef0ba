// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_BUCKET_AGENT_HPP
#define WEIR_DETAIL_BUCKET_AGENT_HPP

#include "weir/command/buckets.hpp"
#include "weir/decision.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/take_options.hpp"
#include "weir/time.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// Is a take with this error answered as its options say for a store that is away?
[[nodiscard]] inline bool is_away(error_code ec, take_options const& o) noexcept {
  bool const away = ec == errc::store_unavailable || ec == errc::outcome_unknown;
  return away && o.while_away != while_away::fail;
}
[[nodiscard]] inline decision decision_while_away(take_options const& o) noexcept {
  decision out;
  out.allowed = o.while_away == while_away::allow;
  out.cost = o.cost;
  out.mark = bucket_mark::none();
  if (!out.allowed) out.retry_after = std::chrono::seconds{1};
  return out;
}

template <class>
class basic_context_gate;
using context_gate = basic_context_gate<void>;

/// What a rate limiter, its copies and its pending operations share. What it does on any store,
/// with any clock, is compiled once: detail/bucket_operations.hpp.
template <class Same>
class basic_bucket_agent : public std::enable_shared_from_this<basic_bucket_agent<Same>> {
 public:
  using store_type =
      any_store<command::take, command::peek_bucket, command::refund, command::reset_bucket>;
  template <class R>
  using handler = boost::asio::any_completion_handler<void(error_code, R)>;

  /// None, if they were too many: not valid either.
  [[nodiscard]] std::span<quota const> limits() const noexcept { return {limits_.data(), size_}; }

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

  // Keys become part of the operation.

  /// Takes, and waits for the tokens.
  void start_take(handler<decision> handler, std::string key, take_options options);
  void start_reserve(handler<decision> handler, std::string key, take_options options);
  void start_peek(handler<bucket_info> handler, std::string key, take_options options);
  void start_refund(handler<refund_receipt> handler, std::string key, decision grant,
                    refund_options options);
  void start_reset(handler<hint> handler, std::string key);

  store_type const any;
  any_clock const clock;
  boost::asio::any_io_executor const executor;
  std::shared_ptr<context_gate> const gate;  ///< null where refunds need no context

 protected:
  basic_bucket_agent(store_type s, std::span<quota const> limits, any_clock c);
  ~basic_bucket_agent() = default;

 private:
  template <class Result, class Make>
  void ask(handler<Result> handler, std::string key, Make make);

  std::array<quota, weir::limits::quotas> limits_{};
  std::size_t size_;
};

using bucket_agent = basic_bucket_agent<void>;

/// The same, which knows its store: for what answers in the calling thread.
template <class Store, class KeyPolicy>
class typed_bucket_agent final : public bucket_agent {
 public:
  static constexpr bool asks_now = executes_now<Store, command::take>;
  using stored_key = std::invoke_result_t<KeyPolicy const&, std::string_view>;

  typed_bucket_agent(Store s, std::span<quota const> limits, any_clock c, KeyPolicy p)
      : bucket_agent{store_type::of(s), limits, std::move(c)},
        store{std::move(s)},
        policy{std::move(p)} {}

  /// The stored key, for as long as the caller's lives.
  [[nodiscard]] auto borrow(std::string_view key) const {
    if constexpr (requires { policy.borrow(key); }) {
      return policy.borrow(key);
    } else {
      return policy(key);
    }
  }

  Store store;
  KeyPolicy const policy;
};

}  // namespace weir::detail

#endif
