// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Executes what other processes ask of a NATS store, and does nothing else, until SIGTERM:
// nats_owner nats://127.0.0.1:4222 [SHARDS]. The others say `owner = false`, and keep no jobs in
// their memory. Run it twice, on two hosts: they share the work, and one takes over from the other.

#include "weir/job_queue.hpp"
#include "weir/log.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

int main(int argc, char** argv) try {
  int const shards = argc == 3 ? std::atoi(argv[2]) : 1;
  if (argc < 2 || argc > 3 || shards < 1) {
    throw std::runtime_error{"usage: nats_owner NATS_URL [SHARDS]"};
  }
  boost::asio::io_context io;
  weir::nats_store store{io.get_executor(),
                         argv[1],
                         {.owns_unused = true, .shards = static_cast<std::uint32_t>(shards)}};
  store.async_run(weir::log::failures{"nats"});
  // Another number of shards than there is, say, is told in the answer to a question only.
  weir::job_queue{store}.async_stats("any", weir::log::failures{"nats_owner"});
  boost::asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](weir::error_code const& cancelled, int) {
    if (!cancelled) store.close();
  });
  io.run();
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
