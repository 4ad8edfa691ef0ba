// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "count.hpp"
#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <string_view>

namespace weir_bench {

using namespace weir;
using namespace std::chrono_literals;

void leases() {
  constexpr std::string_view key = "tenant/00000000000001";
  boost::asio::io_context io;
  memory_store const store{io.get_executor()};
  count_each("permit, acquire + release, the store's steps", [&] {
    auto const grant = store.execute(command::acquire_permit{key, "holder", 2, 30s, {}});
    must(grant->granted);
    (void)store.execute(command::release_permit{key, "holder", grant->fence});
  });
  limiter const l{store, limiter_options{}};
  count_each("permit, acquire + release", [&] {
    must(l.try_acquire(key)->has_value());
    // A permit that ends gives itself back on the executor.
    io.restart();
    io.poll();
  });
}

}  // namespace weir_bench
