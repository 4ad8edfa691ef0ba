// expect: weir: rate_cost in job_traits is neither a number nor a function that takes the job and gives a std::uint64_t
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F88: it would be another one.

#include "weir/job_traits.hpp"

struct order {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr quota rate = quota::per_second(1);
  static int rate_cost(order const&) { return 300; }
};

static_assert(weir::job_policy<order>::max_attempts() == 25);
