// expect: this job type has no default constructor
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory.hpp"
#include "weir/worker.hpp"

#include <nlohmann/json.hpp>

struct order {
  explicit order(int number) : n{number} {}
  int n;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(order, n)
template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
};

void handle(weir::worker<weir::memory_store>& worker) {
  worker.handle<order>([](order const&) {});
}
