// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_COMPILED_HPP
#define WEIR_STORE_REDIS_COMPILED_HPP

namespace weir::detail {

/// What the linker says to a program that lacks weir/store/redis/src.hpp, before the many names of
/// Boost.Redis that it lacks, too.
void one_source_file_has_to_include_weir_store_redis_src_hpp() noexcept;

}  // namespace weir::detail

#endif
