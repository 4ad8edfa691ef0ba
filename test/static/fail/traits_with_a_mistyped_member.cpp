// expect: weir: job_traits has a member that is one letter from max_attempts: is it mistyped
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F88: the job would have 25 attempts.

#include "weir/job_traits.hpp"

struct order {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr std::uint32_t max_attempt = 3;
};

static_assert(weir::job_policy<order>::max_attempts() == 25);
