// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_OPTIONS_HPP
#define WEIR_STORE_POSTGRES_OPTIONS_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir {

/// How a PostgreSQL store behaves. Durations and counts outside their ranges are held at the ends
/// of them. `schema` and `shards` are properties of the database: its stores must agree on them.
struct postgres_options {
  /// Where weir's tables and functions are: up to 48 lower-case letters, digits and underscores,
  /// not beginning with a digit; anything else is `invalid_option`. Copied by the store.
  std::string_view schema = "weir";

  std::uint32_t shards = 1;  ///< of the job queues, from 1 to 1,024; for good

  /// The most connections, from 1 to 1,000; they are made as they are needed. Of several, one is
  /// for commands that were refused on another one because a transaction, of an application or not,
  /// has a lock.
  std::uint32_t connections = 4;

  /// Commands under way on one connection, of which the server executes one at a time; from 1.
  std::uint32_t pipeline = 16;

  /// Commands that wait for a connection; more are `store_full`.
  std::size_t max_pending = 100'000;

  /// How long making a connection to one host may take, and looking up where the hosts are; from
  /// 10 ms. Several hosts are tried one after another, each for as long.
  duration connect_timeout = std::chrono::seconds{10};

  /// How long the server may be silent while commands are under way; then the connection is given
  /// up, and they are `outcome_unknown`. From 10 ms.
  duration command_timeout = std::chrono::seconds{30};

  /// How often a waiter for a hint (`await_jobs`, `await_permit`) looks whether there is reason for
  /// one; from 1 ms.
  duration poll_interval = std::chrono::seconds{1};

  /// Whether the server also notifies those who wait, by NOTIFY. The store then has one more
  /// connection, from the first wait on.
  bool listen = true;

  /// Where to listen, as a connection string; empty: where commands go. A pooler in between that
  /// assigns connections to transactions does not pass notifications on: name the server itself.
  /// Copied by the store.
  std::string_view listen_conninfo = "";

  /// The longest time until a store that is used removes some of what has expired; from 10 ms.
  duration tidy_interval = std::chrono::seconds{5};
};

namespace detail {

[[nodiscard]] constexpr bool valid_schema(std::string_view name) noexcept {
  constexpr std::size_t longest = 48;
  auto const letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && name.size() <= longest && letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

[[nodiscard]] inline error_code postgres_bad_schema() noexcept {
  return explained(errc::invalid_option, "postgres_options::schema is up to 48 lower-case letters, "
                                         "digits and _, and begins with none of the digits");
}

[[nodiscard]] constexpr postgres_options bounded(postgres_options o) noexcept {
  using namespace std::chrono_literals;
  o.shards = std::clamp(o.shards, std::uint32_t{1}, std::uint32_t{1024});
  o.connections = std::clamp(o.connections, std::uint32_t{1}, std::uint32_t{1000});
  o.pipeline = std::max(o.pipeline, std::uint32_t{1});
  o.max_pending = std::max(o.max_pending, std::size_t{1});
  o.connect_timeout = std::max<duration>(o.connect_timeout, 10ms);
  o.command_timeout = std::max<duration>(o.command_timeout, 10ms);
  o.poll_interval = std::max<duration>(o.poll_interval, 1ms);
  o.tidy_interval = std::max<duration>(o.tidy_interval, 10ms);
  return o;
}

}  // namespace detail
}  // namespace weir

#endif
