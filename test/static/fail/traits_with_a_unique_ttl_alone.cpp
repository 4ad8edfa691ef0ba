// expect: weir: unique_ttl in job_traits has no meaning without unique
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F88: the job would not be unique.

#include "weir/job_traits.hpp"

struct order {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr duration unique_ttl = std::chrono::seconds{1};
};

static_assert(weir::job_policy<order>::max_attempts() == 25);
