// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_CONSOLE_STORES_HPP
#define WEIR_EXAMPLE_CONSOLE_STORES_HPP

#include "any_store.hpp"
#include "options.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <optional>

namespace console {

/// Opens the store that `options.store` names, and makes none. Throws `failure`.
[[nodiscard]] any_store open_store(asio::any_io_executor const& executor, options const& o);

// Each in a file of its own, and empty if the program was built without it.
[[nodiscard]] std::optional<any_store> open_sqlite(asio::any_io_executor const& executor,
                                                   options const& o);
[[nodiscard]] std::optional<any_store> open_redis(asio::any_io_executor const& executor,
                                                  options const& o);
[[nodiscard]] std::optional<any_store> open_postgres(asio::any_io_executor const& executor,
                                                     options const& o);
[[nodiscard]] std::optional<any_store> open_nats(asio::any_io_executor const& executor,
                                                 options const& o);

}  // namespace console

#endif
