// expect: weir: each codec in job_traits has a name of its own
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The second one would never be asked.

#include "weir/codec.hpp"

#include <nlohmann/json.hpp>

#include <tuple>

struct order {
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(order, number)

struct sealed : weir::cbor_codec {};

template <>
struct weir::job_traits<order> {
  static constexpr std::string_view kind = "order";
  static constexpr std::tuple<sealed, weir::cbor_codec> codec{};
};

constexpr weir::detail::payload_check<order> checked{};
