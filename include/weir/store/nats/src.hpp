// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_SRC_HPP
#define WEIR_STORE_NATS_SRC_HPP

// The engine of the NATS store: included by one translation unit of a program that compiles weir
// apart.

#if !defined(WEIR_SEPARATE_COMPILATION)
#error "weir/store/nats/src.hpp is for programs that define WEIR_SEPARATE_COMPILATION"
#endif

#include "weir/command/list.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/store/nats.hpp"
#include "weir/store/nats/engine.hpp"

namespace weir::detail {

template struct engine_ways<nats_engine, command::permit_commands::list>;
template struct engine_ways<nats_engine, command::lock_commands::list>;
template struct engine_ways<nats_engine, command::list_of<command::take, command::peek_bucket,
                                                          command::refund, command::reset_bucket>>;
template struct engine_ways<nats_engine, command::job_commands::list>;

}  // namespace weir::detail

#endif
