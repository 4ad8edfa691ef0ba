// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_LOG_RECORD_HPP
#define WEIR_LOG_RECORD_HPP

#include <cstdint>
#include <functional>
#include <string_view>

namespace weir::log {

/// How grave something is.
enum class level : std::uint8_t {
  error,    ///< does not pass by itself: somebody has to do something
  warning,  ///< may pass by itself, or has passed
  info,     ///< good to know
};

/// The subject of a record, by which a sink may choose.
enum class topic : std::uint8_t {
  store,        ///< is away or refuses, since when and why; or answers again
  settings,     ///< an engine's settings that endanger what weir keeps, or rights that a user lacks
  hints,        ///< they are lost: waiters look now and then instead
  worker,       ///< could not start, or gets nothing from its store
  job,          ///< is a dead letter, or has no handler here
  application,  ///< what a program gave to `failures`
  starvation,   ///< renewals come late, since a thread is blocked, or a lease was lost
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(level l) noexcept {
  switch (l) {
    case level::error: return "error";
    case level::warning: return "warning";
    case level::info: return "info";
  }
  return "?";
}

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(topic t) noexcept {
  switch (t) {
    case topic::store: return "store";
    case topic::settings: return "settings";
    case topic::hints: return "hints";
    case topic::worker: return "worker";
    case topic::job: return "job";
    case topic::application: return "application";
    case topic::starvation: return "starvation";
  }
  return "?";
}

/// One thing that is told.
struct record {
  log::level level = log::level::warning;  ///< how grave it is
  log::topic topic = log::topic::store;    ///< what it is about
  std::string_view text{};  ///< one line of printable ASCII, without passwords; lives for the call
};

/// Is given all that is told, in any thread, several at a time. Must not throw, or wait for weir.
using sink = std::function<void(record const&)>;

}  // namespace weir::log

#endif
