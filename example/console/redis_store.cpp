// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"

#ifdef CONSOLE_WITH_REDIS

#include "weir/log.hpp"
#include "weir/store/redis.hpp"

namespace console {

std::optional<any_store> open_redis(asio::any_io_executor const& executor, options const& o) {
  auto address = weir::redis_address::parse(o.store);
  if (address.has_error()) throw failure{wrong_usage, "--store: " + address.error().message()};
  if (!o.ca.empty()) address->tls(o.ca);
  // A server that may forget what it has is no reason not to look at it.
  weir::redis_store const store{executor,
                                *address,
                                {.prefix = o.prefix,
                                 .shards = o.shards,
                                 .offline_patience = o.patience,
                                 .allow_eviction = true}};
  store.async_run(weir::log::failures{"redis"});  // keeps the connection, until `close`
  return any_store{store.with_patience(o.patience)};
}

}  // namespace console

#else

namespace console {

std::optional<any_store> open_redis(asio::any_io_executor const&, options const&) {
  return std::nullopt;
}

}  // namespace console

#endif
