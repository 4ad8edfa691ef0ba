// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The share of each of many who want the same key: see crowd.hpp.
//
//     bench_crowd_postgres [rounds]

#include "crowd.hpp"
#include "postgres_rig.hpp"
#include "report.hpp"
#include "weir/store/postgres.hpp"

#include <cstdlib>
#include <memory>
#include <string>

int main(int argc, char** argv) {
  using namespace weir_bench;
  // Not in /tmp, which may be memory, unless somebody says so.
  ::setenv("TMPDIR", "/var/tmp", 0);
  postgres_test::server const server{{.settings = {"fsync=on", "autovacuum_naptime=1s"}}};
  report out{"crowd_postgres"};
  auto const fresh = [&](int round) {
    auto const name = "crowd" + std::to_string(round);
    // It makes the database, which lasts as long.
    return [r = std::make_shared<rig>(server, name, 4), at = server.conninfo(name)](auto executor) {
      return weir::postgres_store{executor, at};
    };
  };
  show(out, fresh, argc > 1 ? std::atoi(argv[1]) : 3);
  out.finish();
}
