// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_ALL_HPP
#define WEIR_BACKOFF_ALL_HPP

#include "weir/backoff/capped.hpp"
#include "weir/backoff/constant.hpp"
#include "weir/backoff/decaying.hpp"
#include "weir/backoff/exponential.hpp"
#include "weir/backoff/fibonacci.hpp"
#include "weir/backoff/jittered.hpp"
#include "weir/backoff/linear.hpp"
#include "weir/backoff/polynomial.hpp"

#endif
