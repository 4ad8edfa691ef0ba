// expect: weir: queue in job_traits is neither a string nor a function that takes the job
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F88: the job would go to the default queue.

#include "weir/job_traits.hpp"

struct order {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static std::string queue() { return "orders"; }
};

static_assert(weir::job_policy<order>::max_attempts() == 25);
