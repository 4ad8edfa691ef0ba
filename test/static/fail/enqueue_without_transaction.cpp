// expect: weir::enqueue: this is no transaction of weir's
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/enqueue.hpp"

#include <nlohmann/json.hpp>

struct welcome {
  std::string to;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(welcome, to)

template <>
struct weir::job_traits<welcome> {
  static constexpr std::string_view kind = "welcome";
};

struct connection;

void enqueue(connection* raw) { (void)weir::enqueue(raw, welcome{"bob"}); }
