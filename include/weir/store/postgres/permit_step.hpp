// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_PERMIT_STEP_HPP
#define WEIR_STORE_POSTGRES_PERMIT_STEP_HPP

#include <cstdint>

namespace weir::detail {

/// The kinds of step that `permit_steps` in schema/leases.sql takes.
enum class postgres_permit_step : std::uint8_t {
  acquire,
  renew,
  release,
};

}  // namespace weir::detail

#endif
