// expect: weir: a unique job with a codec in its job_traits needs a unique_key
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Encrypted twice, the same job would have two keys.

#include "weir/codec.hpp"
#include "weir/job_traits.hpp"

struct order {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr auto unique = weir::unique_strategy::until_executed;
  static constexpr weir::cbor_codec codec{};
};

static_assert(weir::job_policy<order>::max_attempts() == 25);
