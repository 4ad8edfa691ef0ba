// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SHARD_COUNT_HPP
#define WEIR_STORE_REDIS_SHARD_COUNT_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/store/redis/script/generated.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace weir::detail {

[[nodiscard]] inline redis_call redis_shard_count_call(redis_names const& names) {
  redis_call out{lua::shards()};
  out.key(names.key(0, "shards")).arg(0).arg(names.shards());  // it needs no time
  return out;
}

/// A server says this of itself, beside the number of shards.
struct redis_server_facts {
  std::string policy;  ///< its maxmemory-policy, if it is known and not noeviction
  bool reads_only = false;
};

/// Error: `invalid_option` where there is another number, or a server of 32 bits.
[[nodiscard]] inline error_code redis_shard_count_error(redis_names const& names,
                                                        redis_reply& reply,
                                                        redis_server_facts& server) {
  bool const says_more = reply.is_array();
  if (says_more) reply.array(3);
  auto const there = reply.text();
  if (says_more) {
    server.policy = reply.text();
    server.reads_only = reply.boolean();
  }
  if (reply.complete() && there == std::to_string(names.shards())) return {};
  return explained(errc::invalid_option,
                   "redis_options::shards is " + std::to_string(names.shards()) +
                       ", and what is on the server has " + std::string{there.substr(0, 32)});
}

/// The same on its way through a cluster. `then` is told what came of it.
class redis_shard_count final : public redis_request {
 public:
  redis_shard_count(redis_names const& names, std::function<void(error_code)> then)
      : redis_request{redis_shard_count_call(names)},
        names_{names},
        then_{std::move(then)} {}

  [[nodiscard]] bool wanted() const noexcept override { return true; }
  void complete(redis_reply& reply) noexcept override {
    redis_server_facts server;  // each node is asked for its own
    tell(redis_shard_count_error(names_, reply, server));
  }
  void fail(error_code ec) noexcept override { tell(ec); }
  using redis_request::fail;

 private:
  void tell(error_code ec) noexcept {
    try {
      then_(ec);
    } catch (...) {  // no memory: what waits is given up in time
    }
  }

  redis_names const names_;
  std::function<void(error_code)> then_;
};

}  // namespace weir::detail

#endif
