// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_LOGGING_HPP
#define WEIR_WORKER_LOGGING_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/config.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/log.hpp"
#include "weir/time.hpp"
#include "weir/worker/active_job.hpp"
#include "weir/worker_event.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// What the log is told of a worker, whether it has an observer or not.
namespace weir::detail {

struct worker_log_state {
  error_code failing{};  ///< the store's error that was told last, until a command succeeds
};

WEIR_DECL std::string text_of(leased_job const& job, std::string_view queue) {
  return "the job " + boost::uuids::to_string(job.id) + " of kind " + job.kind + " in queue " +
         std::string{queue};
}

WEIR_DECL void log_event_text(worker_event const& e, log::level level, log::topic topic,
                              std::string_view what) noexcept {
  if (!logs(level)) return;
  try {
    auto line = "worker: " + std::string{what};
    if (e.job != nullptr) {
      line += ": " + text_of(*e.job, e.queue) + ", attempt " + std::to_string(e.job->attempt) +
              " of " + std::to_string(e.job->max_attempts);
    } else {
      if (e.count > 1) line += ": " + std::to_string(e.count) + " jobs";
      if (!e.queue.empty()) line += ", in queue " + std::string{e.queue};
    }
    if (!e.reason.empty()) line += ": " + std::string{e.reason};
    if (e.error) line += ": " + e.error.message();
    tell_log(level, topic, line);
  } catch (...) {  // out of memory
  }
}

/// Events that go well are not told.
inline void log_worker_event(worker_event const& e, worker_log_state& state) noexcept {
  using kind = worker_event_kind;
  using log::level;
  using log::topic;
  switch (e.kind) {
    case kind::dead_lettered: return log_event_text(e, level::warning, topic::job, "dead letter");
    case kind::damaged: return log_event_text(e, level::error, topic::job, "damaged record");
    case kind::result_dropped:
      return log_event_text(e, level::warning, topic::job, "a result was not kept");
    case kind::lease_lost:
      return log_event_text(e, level::warning, topic::starvation,
                            "lease lost, so it runs again unless it was cancelled");
    case kind::store_failed:
      if (state.failing == e.error) return;
      state.failing = e.error;
      return log_event_text(e, level::warning, topic::worker, "its store fails, it goes on trying");
    default: return;
  }
}

/// Nobody has fired the schedules of this queue for so long.
WEIR_DECL void log_unfired_schedules(std::string_view queue, duration overdue) {
  if (overdue < std::chrono::minutes{1}) return;
  auto const of = queue.substr(std::min(companion_prefix.size(), queue.size()));
  tell_log(log::level::warning, log::topic::worker,
           "worker: a schedule of jobs in queue " + std::string{of} + " is due for " +
               std::to_string(std::chrono::floor<std::chrono::seconds>(overdue).count()) +
               " s: is a weir::scheduler running?");
}

/// Reports that the store refuses the successors of a job, such as a schedule's.
WEIR_DECL void log_refused_relay(active_job const& job, error_code ec) {
  tell_log(log::level::error, log::topic::job,
           "worker: what comes after " + text_of(job.job, job.queue) +
               " is refused, and it is tried again: " + ec.message());
}

/// Tells of each kind once.
WEIR_DECL void log_unknown_kind(active_job const& job, duration delay,
                                std::vector<std::string>& told) {
  constexpr std::size_t most = 100;
  if (told.size() == most || std::ranges::find(told, job.job.kind) != told.end()) return;
  told.push_back(job.job.kind);
  auto const wait = std::chrono::ceil<std::chrono::milliseconds>(delay).count();
  tell_log(log::level::warning, log::topic::job,
           "worker: no handler for " + text_of(job.job, job.queue) + ": it is put off by " +
               std::to_string(wait) + " ms, and so are others of the kind");
}

}  // namespace weir::detail

#endif
