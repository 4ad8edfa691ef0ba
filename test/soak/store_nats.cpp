// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/engine.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/detached.hpp>

#include <chrono>

namespace soak {

std::shared_ptr<engine> open_nats(boost::asio::any_io_executor const& ex, opening const& o) {
  weir::nats_options options;
  options.prefix = o.prefix;
  options.offline_patience = options.connect_timeout = options.request_timeout =
      std::chrono::seconds{2};
  options.longest_reconnect_wait = std::chrono::milliseconds{500};
  options.replicas = o.replicas;
  weir::nats_store const store{ex, weir::nats_address::parse(o.url).value(), options};
  store.async_run(boost::asio::detached);
  return std::make_shared<engine_on<weir::nats_store>>(store);
}

}  // namespace soak
