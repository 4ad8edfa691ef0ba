// expect: weir: on_conflict in job_traits has no meaning with while_executing
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F88: nothing would ever be in conflict.

#include "weir/job_traits.hpp"

struct order {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr auto unique = unique_strategy::while_executing;
  static constexpr auto on_conflict = conflict_policy::discard;
};

static_assert(weir::job_policy<order>::on_conflict() != weir::conflict_policy::reject);
