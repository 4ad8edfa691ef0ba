// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_OPTIONS_HPP
#define WEIR_CONSOLE_OPTIONS_HPP

#include "weir/job.hpp"
#include "weir/time.hpp"

#include <boost/beast/http/message.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// The changes that a console may make. Each is a right of its own.
enum class console_action : std::uint8_t {
  replay,            ///< makes dead letters pending again
  cancel,            ///< ends jobs that wait
  cancel_running,    ///< ends jobs that are leased
  purge,             ///< forgets jobs that have ended
  pause,             ///< gives out none of a queue's jobs
  resume,            ///< ends a pause, and what holds a queue back
  pause_schedule,    ///< lets a schedule's ticks pass without a job
  resume_schedule,   ///< ends that
  trigger_schedule,  ///< enqueues one of a schedule's jobs now
};

/// All of them, in their order.
inline constexpr console_action console_actions[] = {
    console_action::replay,
    console_action::cancel,
    console_action::cancel_running,
    console_action::purge,
    console_action::pause,
    console_action::resume,
    console_action::pause_schedule,
    console_action::resume_schedule,
    console_action::trigger_schedule,
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(console_action a) noexcept {
  switch (a) {
    case console_action::replay: return "replay";
    case console_action::cancel: return "cancel";
    case console_action::cancel_running: return "cancel_running";
    case console_action::purge: return "purge";
    case console_action::pause: return "pause";
    case console_action::resume: return "resume";
    case console_action::pause_schedule: return "pause_schedule";
    case console_action::resume_schedule: return "resume_schedule";
    case console_action::trigger_schedule: return "trigger_schedule";
  }
  return "?";
}

/// An action that was asked for, whether it was carried out or refused. Views live for the call.
struct console_audit {
  console_action action{};   ///< what was asked for
  std::string_view who;      ///< by whom, as `console_options::who` says
  std::string_view on;       ///< the name of the queue, or of the schedule
  std::string_view job;      ///< its id, or which jobs of the queue; empty: it is about no job
  std::string_view outcome;  ///< `done`, how many were, or why it was refused
};

/// How a console looks, and what it may do. By default it changes nothing, and answers only to the
/// names of this host.
struct console_options {
  /// The heading of each page.
  std::string title = "weir";
  /// Where it is mounted, such as `/console`: its targets begin so. Letters, digits, dashes,
  /// underscores, dots and slashes; may be empty.
  std::string prefix{};
  /// The actions that may be done. None: the store can only be read.
  std::vector<console_action> allow{};
  /// The names, without ports, by which it is called. Any other is refused, so that no site can
  /// have its own name lead here.
  std::vector<std::string> hosts{"localhost", "127.0.0.1", "[::1]"};
  /// Rows of a page, 1…1,000.
  std::uint32_t page_size = 50;
  /// Pages that are kept up to date at once. Others look every ten seconds.
  std::uint32_t streams = 16;
  /// How often a page is brought up to date, from 100 ms.
  duration every = std::chrono::seconds{2};

  /// Is given each text of a job that its program wrote, and gives what is shown instead of it:
  /// the field is `payload`, `result`, `reason`, `memo`, `progress`, `unique_key`, or `header
  /// NAME`. Called by several threads at once; if it throws, nothing of the text is shown. It is
  /// not asked of records that weir keeps as jobs, such as schedules: where it is set, nothing of
  /// their texts is shown.
  std::function<std::string(job const& of, std::string_view field, std::string text)> redact{};

  /// Is told of each action. Called by several threads at once. Empty: a line on standard error.
  std::function<void(console_audit const& action)> audit{};

  /// Says who asks, such as from a field that a proxy in front of it sets: for the audit only.
  std::function<std::string(boost::beast::http::request_header<> const& request)> who{};
};

}  // namespace weir

#endif
