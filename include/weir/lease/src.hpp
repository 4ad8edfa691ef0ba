// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LEASE_SRC_HPP
#define WEIR_LEASE_SRC_HPP

#if !defined(WEIR_SEPARATE_COMPILATION)
#error "weir/lease/src.hpp is for programs that define WEIR_SEPARATE_COMPILATION"
#endif

#include "weir/clock/coarse.hpp"
#include "weir/clock/system.hpp"
#include "weir/clock/timer_wait.hpp"
#include "weir/detail/bucket_operations.hpp"
#include "weir/lease/operations.hpp"
#include "weir/limiter.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/uniqueness.hpp"

template struct weir::detail::timed_by<weir::coarse_clock>;
template struct weir::detail::timed_by<weir::system_clock>;
template class weir::detail::basic_bucket_agent<void>;
template class weir::detail::lease_agent<weir::detail::limiter_noun>;
template class weir::detail::lease_agent<weir::detail::uniqueness_noun>;

#endif
