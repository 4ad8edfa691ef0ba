// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "gate.hpp"

#ifdef GATEWAY_WITH_SQLITE

#include "store_gate.hpp"
#include "weir/store/sqlite.hpp"

namespace gateway {

std::unique_ptr<gate> open_sqlite_gate(asio::any_io_executor const& executor,
                                       std::string const& path, options const& options) {
  // After a power failure a few requests more may pass: that is no reason to wait for the disk at
  // each of them.
  weir::sqlite_options const how{.durable = weir::durability::process_crash};
  weir::sqlite_store store{executor, path, how};
  return std::make_unique<store_gate<weir::sqlite_store>>(std::move(store), options);
}

}  // namespace gateway

#else

namespace gateway {

std::unique_ptr<gate> open_sqlite_gate(asio::any_io_executor const&, std::string const&,
                                       options const&) {
  return nullptr;
}

}  // namespace gateway

#endif
