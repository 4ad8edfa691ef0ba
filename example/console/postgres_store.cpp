// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"

#ifdef CONSOLE_WITH_POSTGRES

#include "weir/store/postgres.hpp"

namespace console {

std::optional<any_store> open_postgres(asio::any_io_executor const& executor, options const& o) {
  weir::postgres_store const store{executor, o.store, {.schema = o.schema, .shards = o.shards}};
  return any_store{store.with_patience(o.patience)};
}

}  // namespace console

#else

namespace console {

std::optional<any_store> open_postgres(asio::any_io_executor const&, options const&) {
  return std::nullopt;
}

}  // namespace console

#endif
