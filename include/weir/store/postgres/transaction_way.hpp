// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_TRANSACTION_WAY_HPP
#define WEIR_STORE_POSTGRES_TRANSACTION_WAY_HPP

#include "weir/detail/engine_call.hpp"
#include "weir/error.hpp"

#include <cstdint>
#include <string>

struct pg_conn;  // libpq's PGconn

namespace weir::detail {

/// An application's connection, and where weir's schema is there.
struct postgres_session {
  pg_conn* connection;
  std::string schema;
  std::uint32_t shards;
};

/// From an application's transaction to how a command is executed in it.
template <class C>
struct postgres_transaction_way {
  static result<typename C::result> execute(postgres_session& in, C const& c, told_time at);
};

}  // namespace weir::detail

#endif
