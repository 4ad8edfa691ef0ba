// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/engine.hpp"
#include "weir/store/sqlite.hpp"

#include <chrono>
#include <string_view>

namespace soak {

std::shared_ptr<engine> open_sqlite(boost::asio::any_io_executor const& ex, opening const& o) {
  constexpr std::string_view scheme = "sqlite:";
  weir::sqlite_options options;
  options.durable = weir::durability::process_crash;  // the power does not fail here
  options.busy_timeout = std::chrono::seconds{2};
  options.max_bytes = o.max_bytes;
  weir::sqlite_store const store{ex, o.url.substr(scheme.size()), options};
  return std::make_shared<engine_on<weir::sqlite_store>>(store);
}

}  // namespace soak
