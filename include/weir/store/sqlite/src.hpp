// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_SRC_HPP
#define WEIR_STORE_SQLITE_SRC_HPP

// The engine of the SQLite store: included by one translation unit of a program that compiles weir
// apart.

#if !defined(WEIR_SEPARATE_COMPILATION)
#error "weir/store/sqlite/src.hpp is for programs that define WEIR_SEPARATE_COMPILATION"
#endif

#include "weir/command/list.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/store/sqlite.hpp"
#include "weir/store/sqlite/engine.hpp"
#include "weir/store/sqlite/session.hpp"

namespace weir::detail {

template struct engine_ways<sqlite_engine, command::permit_commands::list>;
template struct engine_ways<sqlite_engine, command::lock_commands::list>;
template struct engine_ways<sqlite_engine, command::bucket_commands::list>;
template struct engine_ways<sqlite_engine, command::job_commands::list>;

template struct step_ways<sqlite_session, told_time, command::permit_commands::list>;
template struct step_ways<sqlite_session, told_time, command::lock_commands::list>;
template struct step_ways<sqlite_session, told_time, command::bucket_commands::list>;
template struct step_ways<sqlite_session, told_time, command::job_commands::list>;

}  // namespace weir::detail

#endif
