// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_SRC_HPP
#define WEIR_STORE_REDIS_SRC_HPP

// For programs that do not link the CMake target weir::redis: exactly one of their source files
// includes this, and they link OpenSSL (ssl, crypto). It is what Boost.Redis has to have compiled,
// and takes the place of <boost/redis/src.hpp>.

#include "weir/store/redis/compiled.hpp"

#include <boost/redis/src.hpp>

namespace weir::detail {

void one_source_file_has_to_include_weir_store_redis_src_hpp() noexcept {}

}  // namespace weir::detail

#endif
