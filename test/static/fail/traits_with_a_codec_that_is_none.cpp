// expect: weir: codec in job_traits is no codec of this type
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/job_codec.hpp"

struct order {};

struct writer {  // it cannot read
  static constexpr std::string_view name = "writer";
  static std::string encode(order const&) { return {}; }
};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr writer codec{};
};

constexpr weir::detail::payload_check<order> checked{};
