// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_RECORD_HPP
#define WEIR_WORKER_RECORD_HPP

#include "weir/job_headers.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/job_run.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::detail {

/// Names, each with a value, as `job_headers` writes them: of as many as fit into `most` bytes.
class netstrings {
 public:
  explicit netstrings(std::size_t most = static_cast<std::size_t>(-1)) noexcept : most_{most} {}

  /// Adds one, if it fits. @return does it?
  bool add(std::string_view name, std::string_view value) {
    job_headers const one{{name, value}};
    if (text_.size() + one.text().size() > most_) return false;
    text_ += one.text();
    return true;
  }
  bool add(std::string_view name, std::int64_t value) { return add(name, std::to_string(value)); }

  [[nodiscard]] std::string const& text() const noexcept { return text_; }

 private:
  std::size_t most_;
  std::string text_;
};

/// The text of a worker's record, which `registered_worker_of` reads. What does not change is
/// written once.
class worker_record {
 public:
  worker_record(worker_options const& o, std::string_view holder,
                handler_registry const& handlers) {
    fields_.add("name", o.name);
    fields_.add("holder", holder);
    fields_.add("concurrency", o.concurrency);
    bool is_whole = true;
    netstrings queues{most_listed};
    for (auto const& q : o.queues) {
      netstrings entry;
      if (q.name.empty()) entry.add("prefix", "");
      entry.add("weight", q.weight);
      entry.add("concurrency", q.concurrency);
      is_whole = queues.add(q.name.empty() ? q.prefix : q.name, entry.text()) && is_whole;
    }
    netstrings kinds{most_listed};
    for (auto const& [kind, handler] : handlers) {
      is_whole = kinds.add(kind, text_of(handler->traits.limits)) && is_whole;
    }
    netstrings shards{most_listed};
    for (auto const shard : o.shards) {
      is_whole = shards.add(std::to_string(shard), "") && is_whole;
    }
    if (!o.queues.empty()) fields_.add("queues", queues.text());
    if (!o.shards.empty()) fields_.add("shards", shards.text());
    fields_.add("kinds", kinds.text());
    if (!is_whole) fields_.add("cut", "");
  }

  /// With what it does at the moment.
  [[nodiscard]] std::string with(worker_core const& core, duration up) const {
    auto out = fields_;
    out.add("up", up.count());
    if (core.stopping) out.add("stopping", "");
    if (core.fires_schedules) out.add("schedules", "");
    out.add("busy", static_cast<std::int64_t>(core.running()));
    out.add("jobs", running(core));
    return out.text();
  }

 private:
  static constexpr std::size_t most_listed = 16U << 10U;  // bytes of its queues, and of its kinds
  static constexpr std::size_t most_jobs = 20;

  [[nodiscard]] static std::string text_of(kind_limits const& limits) {
    netstrings out;
    if (limits.concurrency != 0) {
      out.add("concurrency", limits.concurrency);
      out.add("concurrency_key", limits.concurrency_key);
    }
    if (!limits.rate.empty()) {
      netstrings quotas;
      for (auto const& q : limits.rate) {
        netstrings rest;
        rest.add("per", q.period().count());
        rest.add("burst", std::to_string(q.capacity()));
        quotas.add(std::to_string(q.tokens()), rest.text());
      }
      out.add("rate", quotas.text());
      out.add("rate_key", limits.rate_key);
      out.add("rate_cost", std::to_string(limits.rate_cost));
    }
    return out.text();
  }

  [[nodiscard]] static std::string running(worker_core const& core) {
    std::vector<active_job const*> jobs;
    for (auto const& job : core.active) {
      if (job->started_at != steady_time::min()) jobs.push_back(job.get());
    }
    auto const shown = std::min(jobs.size(), most_jobs);
    std::ranges::partial_sort(jobs, jobs.begin() + static_cast<std::ptrdiff_t>(shown), {},
                              &active_job::started_at);
    jobs.resize(shown);
    auto const now = core.clock.steady_now();
    netstrings out;
    for (auto const* const job : jobs) {
      netstrings entry;
      entry.add("queue", job->queue);
      entry.add("kind", job->job.kind);
      entry.add("took", saturating_sub(now, job->started_at).count());
      out.add(to_string(job->job.id), entry.text());
    }
    return out.text();
  }

  netstrings fields_;
};

}  // namespace weir::detail

#endif
