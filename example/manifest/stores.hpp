// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_STORES_HPP
#define WEIR_EXAMPLE_MANIFEST_STORES_HPP

#include "any_store.hpp"

#include <string>

// Each store is compiled in a file of its own.
namespace manifest {

/// The jobs live and die with the process.
[[nodiscard]] any_store open_memory_store(asio::any_io_executor const& executor);

/// The jobs live in a file. Each result is there for whoever runs next, however this process ends;
/// a power loss may take the latest ones, which are then read again.
///
/// @param fresh forgets what is there first
/// Throws `std::runtime_error`, which says what is wrong with the file, or that there are others
/// who use what is to be forgotten. Blocks.
[[nodiscard]] any_store open_sqlite_store(asio::any_io_executor const& executor,
                                          std::string const& path, bool fresh);

/// The jobs live on a Redis server, for any number of processes on any number of hosts.
///
/// @param url redis:// or, with TLS, rediss://
/// Throws `std::runtime_error`, which says what is wrong with the server. Blocks.
[[nodiscard]] any_store open_redis_store(asio::any_io_executor const& executor,
                                         std::string const& url);

/// The same in a PostgreSQL database, where weir's schema is made if need be.
///
/// @param url postgres:// or postgresql://, as libpq has it
[[nodiscard]] any_store open_postgres_store(asio::any_io_executor const& executor,
                                            std::string const& url);

/// The same in JetStream on a NATS server, where the streams are made if need be. This process
/// keeps all jobs in memory, too.
///
/// @param url nats://, several of them with commas between, or, with TLS, tls://
[[nodiscard]] any_store open_nats_store(asio::any_io_executor const& executor,
                                        std::string const& url);

}  // namespace manifest

#endif
