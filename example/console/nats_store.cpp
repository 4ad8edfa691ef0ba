// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"

#ifdef CONSOLE_WITH_NATS

#include "weir/log.hpp"
#include "weir/store/nats.hpp"

namespace console {

std::optional<any_store> open_nats(asio::any_io_executor const& executor, options const& o) {
  auto address = weir::nats_address::parse(o.store);
  if (address.has_error()) throw failure{wrong_usage, "--store: " + address.error().message()};
  if (!o.ca.empty()) address->tls(o.ca);
  if (!o.credentials.empty()) address->credentials(o.credentials);
  weir::nats_store const store{executor,
                               *address,
                               {.prefix = o.prefix,
                                .create_stream = false,
                                .offline_patience = o.patience,
                                .owner = false,
                                .shards = o.shards}};
  store.async_run(weir::log::failures{"nats"});  // keeps the connection, until `close`
  return any_store{store.with_patience(o.patience)};
}

}  // namespace console

#else

namespace console {

std::optional<any_store> open_nats(asio::any_io_executor const&, options const&) {
  return std::nullopt;
}

}  // namespace console

#endif
