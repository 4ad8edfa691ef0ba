// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A worker and many queues: see queues.hpp.

#include "postgres_bed.hpp"
#include "queues.hpp"

#include <cstdlib>
#include <memory>

int main() {
  using namespace weir_bench;
  // Not in /tmp, which may be memory, unless somebody says so.
  ::setenv("TMPDIR", "/var/tmp", 0);
  postgres_test::server const durable{{.settings = {"fsync=on"}}};
  report out{"queues_postgres"};
  report_server_queues<postgres_bed>(out, at_least(2000));
  report_queues(out, postgres_bed::name, ", fsync on", 10'000, at_least(5000), [&durable] {
    return std::make_unique<postgres_bed>(durable, "synchronous_commit = on");
  });
  out.finish();
  return 0;
}
