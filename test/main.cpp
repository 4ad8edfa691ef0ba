// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Boost.Test's implementation and main, compiled once for all test programs.
#define BOOST_TEST_MODULE weir
#include <boost/test/included/unit_test.hpp>
