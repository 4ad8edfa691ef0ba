// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_REQUIREMENTS_HPP
#define WEIR_DETAIL_REQUIREMENTS_HPP

// What weir needs, said in its own words before the compiler says it in many others.

#include <version>

#if !defined(__cpp_impl_coroutine) || !defined(__cpp_concepts)
#error "weir needs C++20 with coroutines and concepts: compile with -std=c++20 or later"
#endif

#if !defined(__cpp_exceptions) || !defined(__cpp_rtti)
#error "weir needs exceptions and run-time type information, which a flag has switched off"
#endif

#if !__has_include(<boost/version.hpp>)
#error "weir needs the headers of Boost 1.88 or later on the include path"
#endif

#include <boost/version.hpp>

#if BOOST_VERSION < 108800
#error "weir needs Boost 1.88 or later; an older one comes first on the include path"
#endif

#if !__has_include(<nlohmann/json.hpp>)
#error "weir needs the headers of nlohmann/json 3.10 or later on the include path"
#endif

#endif
