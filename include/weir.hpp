// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_HPP
#define WEIR_HPP

// The four primitives, the worker, the policies and the memory store: most programs need no more of
// weir, and these need nothing but Boost's headers and nlohmann's json. The other stores are one
// include each, weir/store/NAME.hpp, since each needs its engine's client library; schedules,
// metrics, the register of workers and the console have headers of their own.

#include "weir/backoff/all.hpp"
#include "weir/clock/coarse.hpp"
#include "weir/clock/manual.hpp"
#include "weir/clock/system.hpp"
#include "weir/codec.hpp"
#include "weir/concept.hpp"
#include "weir/enqueue.hpp"
#include "weir/error.hpp"
#include "weir/execute.hpp"
#include "weir/failure.hpp"
#include "weir/http_fields.hpp"
#include "weir/id_source.hpp"
#include "weir/job_queue.hpp"
#include "weir/job_traits.hpp"
#include "weir/lease.hpp"
#include "weir/limiter.hpp"
#include "weir/log.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/trace_context.hpp"
#include "weir/uniqueness.hpp"
#include "weir/version.hpp"
#include "weir/worker.hpp"

#endif
