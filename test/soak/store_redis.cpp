// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/engine.hpp"
#include "weir/store/redis.hpp"

#include <boost/asio/detached.hpp>

#include <chrono>

namespace soak {

std::shared_ptr<engine> open_redis(boost::asio::any_io_executor const& ex, opening const& o) {
  weir::redis_options options;
  options.prefix = o.prefix;
  options.shards = o.shards;
  options.offline_patience = options.connect_timeout = std::chrono::seconds{2};
  options.longest_reconnect_wait = std::chrono::milliseconds{500};
  weir::redis_store const store{ex, weir::redis_address::parse(o.url).value(), options};
  store.async_run(boost::asio::detached);
  return std::make_shared<engine_on<weir::redis_store>>(store);
}

}  // namespace soak
