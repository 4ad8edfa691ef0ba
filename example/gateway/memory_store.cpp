// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "store_gate.hpp"
#include "weir/store/memory.hpp"

#include <string_view>

namespace gateway {

std::unique_ptr<gate> open_memory_gate(asio::any_io_executor const& executor,
                                       options const& options) {
  return std::make_unique<store_gate<weir::memory_store>>(weir::memory_store{executor}, options);
}

std::unique_ptr<gate> open_gate(asio::any_io_executor const& executor, options const& options) {
  std::string_view const store = options.store;
  constexpr std::string_view sqlite = "sqlite:";
  std::unique_ptr<gate> opened;
  if (store == "memory") {
    opened = open_memory_gate(executor, options);
  } else if (store.starts_with(sqlite) && store.size() > sqlite.size()) {
    opened = open_sqlite_gate(executor, std::string{store.substr(sqlite.size())}, options);
  } else if (store.starts_with("redis://") || store.starts_with("rediss://")) {
    opened = open_redis_gate(executor, options.store, options);
  } else {
    throw usage_error{"--store knows memory, sqlite:FILE and redis://HOST:PORT, not '" +
                      options.store + "'"};
  }
  if (!opened)
    throw usage_error{"this program was built without what '" + options.store + "' needs"};
  return opened;
}

}  // namespace gateway
