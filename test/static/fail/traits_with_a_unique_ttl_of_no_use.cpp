// expect: weir: unique_ttl in job_traits has no meaning unless unique is until_expired
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F88: every enqueue would be refused.

#include "weir/job_traits.hpp"

struct order {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr duration unique_ttl = std::chrono::seconds{1};
};

static_assert(weir::job_policy<order>::unique_ttl() > weir::duration{});
