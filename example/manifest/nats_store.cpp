// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"

#include <stdexcept>
#include <string>

#ifdef MANIFEST_WITH_NATS

#include "weir/command/jobs.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace manifest {

namespace {

/// Asks the server for something: what is wrong with it is known before anything begins.
weir::error_code probe(weir::nats_address const& address) {
  asio::io_context io;
  weir::error_code found;
  weir::nats_store const store{io.get_executor(), address};
  store.async_run(asio::detached);
  store.async_execute(weir::command::list_queues{0, 1, {}},
                      [&](weir::error_code ec, weir::queue_page const&) {
                        found = ec;
                        store.close();
                      });
  io.run();
  return found;
}

}  // namespace

any_store open_nats_store(asio::any_io_executor const& executor, std::string const& url) {
  auto const address = weir::nats_address::parse(url);
  if (address.has_error()) {
    throw std::runtime_error{"--store wants nats://[USER:PASSWORD@]HOST[:PORT], or tls://"};
  }
  if (auto const ec = probe(*address)) throw std::runtime_error{"NATS: " + ec.message()};
  weir::nats_store const store{executor, *address};
  store.async_run(asio::detached);
  return make_any_store(store);
}

}  // namespace manifest

#else

namespace manifest {

any_store open_nats_store(asio::any_io_executor const&, std::string const&) {
  throw std::runtime_error{"this program was built without NATS: use another --store"};
}

}  // namespace manifest

#endif
