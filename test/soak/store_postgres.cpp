// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/engine.hpp"
#include "weir/store/postgres.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>

namespace soak {

void migrate_postgres(opening const& o) {
  boost::asio::io_context io;
  weir::postgres_options options;
  options.schema = o.prefix;
  weir::postgres_store const store{io.get_executor(), o.url, options};
  store.async_migrate([&](weir::error_code ec) {
    store.close();
    if (ec) throw boost::system::system_error{ec, "the schema"};
  });
  io.run();
}

std::shared_ptr<engine> open_postgres(boost::asio::any_io_executor const& ex, opening const& o) {
  weir::postgres_options options;
  options.schema = o.prefix;
  options.connections = 3;
  options.connect_timeout = std::chrono::seconds{2};
  options.command_timeout = std::chrono::seconds{5};
  weir::postgres_store const store{ex, o.url, options};
  return std::make_shared<engine_on<weir::postgres_store>>(store);
}

}  // namespace soak
