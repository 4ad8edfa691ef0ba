// expect: weir: unique = until_expired in job_traits needs a unique_ttl
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <nlohmann/json.hpp>

struct order {
  int n = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(order, n)
template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr auto unique = unique_strategy::until_expired;
};

void handle(weir::job_queue<weir::memory_store>& queue) {
  order const o{};
  queue.async_enqueue(o, {}, [](weir::error_code, weir::enqueued_job) {});
}
