// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LOG_HPP
#define WEIR_LOG_HPP

#include "weir/log_record.hpp"

#include <string_view>

/// What weir tells its operator: that a store is away, and why; that a job has died; that a thread
/// is blocked. Warnings and errors go to standard error, a line each, unless a program wants them
/// elsewhere:
///
///     weir::log::set_sink([](weir::log::record const& r) {
///       spdlog::log(levels[int(r.level)], "{}", r.text);
///     });
///     weir::log::set_sink({});  // nowhere
///
/// Nothing is told of calls that go well, so nothing is paid by them. A program that defines
/// `WEIR_NO_LOG` in all of its translation units leaves it out.
namespace weir::log {

/// Writes `weir: LEVEL: TEXT` to standard error.
void to_stderr(record const& what) noexcept;

/// Tells this one from now on, in place of `to_stderr`; an empty one: nobody. Of each topic it gets
/// ten records in ten seconds at most; the next one says how many were left out. May be called at
/// any time, by any thread; a record that is on its way may still come to the sink before.
void set_sink(sink to);

/// What is less grave than this is not told; `warning` unless this was called.
void set_level(level least) noexcept;

}  // namespace weir::log

namespace weir::detail {

/// Would anybody be told? For texts that are dear to make.
[[nodiscard]] bool logs(log::level level) noexcept;

/// Tells the sink. Makes the text printable.
void tell_log(log::level level, log::topic topic, std::string_view text) noexcept;

}  // namespace weir::detail

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/detail/log_state.hpp"
#endif

#endif
