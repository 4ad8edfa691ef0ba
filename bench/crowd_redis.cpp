// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The share of each of many who want the same key: see crowd.hpp.
//
//     bench_crowd_redis [rounds]

#include "../test/integration/redis_process.hpp"
#include "crowd.hpp"
#include "report.hpp"
#include "weir/store/redis.hpp"

#include <cstdlib>
#include <memory>

int main(int argc, char** argv) {
  using namespace weir_bench;
  report out{"crowd_redis"};
  auto const fresh = [](int) {
    return [server = std::make_shared<redis_test::server>()](auto executor) {
      return weir::redis_store{executor, server->address()};
    };
  };
  show(out, fresh, argc > 1 ? std::atoi(argv[1]) : 3);
  out.finish();
}
