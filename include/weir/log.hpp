// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LOG_HPP
#define WEIR_LOG_HPP

#include "weir/error.hpp"
#include "weir/log_record.hpp"

#include <exception>
#include <string_view>

namespace weir::detail {

/// Would anybody be told? For texts that are dear to make.
[[nodiscard]] bool logs(log::level level) noexcept;

/// Tells the sink. Makes the text printable.
void tell_log(log::level level, log::topic topic, std::string_view text) noexcept;

void tell_failure_of(std::string_view operation, error_code const& ec) noexcept;
void tell_failure_of(std::string_view operation, std::exception_ptr const& e) noexcept;

}  // namespace weir::detail

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
/// any time, by any thread; a record that is on its way may still come to the earlier sink.
void set_sink(sink to);

/// Sets the least grave level that is told; `warning` unless this is called.
void set_level(level least) noexcept;

/// A completion handler for what nobody waits for, in place of `boost::asio::detached`, which
/// swallows errors: it tells the log of them (`topic::application`), but not of cancellations.
///
///     worker.async_run(weir::log::failures{"worker"});
///     asio::co_spawn(io, enqueue(queue), weir::log::failures{"enqueue"});
class failures {
 public:
  /// @param of names the operation in the log; must live until it ends, as a literal does
  explicit constexpr failures(std::string_view of) noexcept : of_{of} {}

  /// Of an operation that completes with an error code.
  template <class... Results>
  void operator()(error_code ec, Results const&...) const noexcept {
    detail::tell_failure_of(of_, ec);
  }
  /// Of one that completes with an exception.
  template <class... Results>
  void operator()(std::exception_ptr const& e, Results const&...) const noexcept {
    detail::tell_failure_of(of_, e);
  }

 private:
  std::string_view of_;
};

}  // namespace weir::log

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/detail/log_state.hpp"
#endif

#endif
