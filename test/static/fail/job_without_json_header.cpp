// expect: include <nlohmann/json.hpp>: jobs are kept in their JSON form
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Not precompiled: that has the header.

#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

struct order {
  int n = 0;
};
template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
};

void handle(weir::worker<weir::memory_store>& worker) {
  worker.handle<order>([](order const&) {});
}
