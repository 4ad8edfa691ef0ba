// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "gate.hpp"

#ifdef GATEWAY_WITH_REDIS

#include "store_gate.hpp"
#include "weir/log.hpp"
#include "weir/store/redis.hpp"

namespace gateway {

std::unique_ptr<gate> open_redis_gate(asio::any_io_executor const& executor, std::string const& url,
                                      options const& options) {
  auto const address = weir::redis_address::parse(url);
  if (address.has_error()) {
    throw usage_error{"--store wants redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]"};
  }
  weir::redis_store store{executor, *address};
  store.async_run(weir::log::failures{"redis"});  // keeps the connection, until `close`
  return std::make_unique<store_gate<weir::redis_store>>(std::move(store), options);
}

}  // namespace gateway

#else

namespace gateway {

std::unique_ptr<gate> open_redis_gate(asio::any_io_executor const&, std::string const&,
                                      options const&) {
  return nullptr;
}

}  // namespace gateway

#endif
