// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_SRC_HPP
#define WEIR_STORE_MEMORY_SRC_HPP

// The part of weir/src.hpp that is the memory store's.

#if !defined(WEIR_SEPARATE_COMPILATION)
#error "weir/store/memory/src.hpp is for programs that define WEIR_SEPARATE_COMPILATION"
#endif

#include "weir/command/list.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/memory/engine.hpp"
#include "weir/store/memory/time.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir::detail {

template std::shared_ptr<memory_state> make_memory_state(
    std::shared_ptr<context_bound_executor const>, memory_options const&, memory_buckets*&);

template struct engine_way<memory_state, command::await_permit>;
template struct engine_way<memory_state, command::await_jobs>;
template struct engine_way<memory_state, command::await_cancel>;

template struct step_ways<memory_state, memory_time, command::permit_commands::list>;
template struct step_ways<memory_state, memory_time, command::lock_commands::list>;
template struct step_ways<memory_state, memory_time, command::bucket_commands::list>;
template struct step_ways<memory_state, memory_time, command::job_commands::list>;

template result<decision> basic_memory_buckets<void>::ask_and_pin(command::take const&, bucket_pin&,
                                                                  duration);
template result<decision> basic_memory_buckets<void>::ask_slowly(command::take const&, duration);
template result<decision> basic_memory_buckets<void>::ask_apart(command::take const&,
                                                                bucket_key const&, std::uint64_t,
                                                                bucket_place, duration);

}  // namespace weir::detail

#endif
