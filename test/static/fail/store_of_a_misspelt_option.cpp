// expect: field designator 'max_job' does not refer to any|no non-static data member named 'max_job'
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/memory.hpp"

weir::memory_options const options{.max_job = 1};
