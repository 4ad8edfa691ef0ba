// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_REGISTERED_WORKER_HPP
#define WEIR_REGISTERED_WORKER_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/whole_number.hpp"
#include "weir/job.hpp"
#include "weir/job_headers.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/shards.hpp"
#include "weir/time.hpp"
#include "weir/worker/options.hpp"

#include <boost/uuid/string_generator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The register of workers. A worker with a name (`worker_options::name`) keeps a record of itself
/// in its store, and renews it every ten seconds. The records are jobs of the queue
/// `workers_queue`, which is paused: they are listed as jobs are, and nobody runs them.

namespace weir {

/// A kind of jobs that a worker has a handler for, and the limits of the kind.
struct served_kind {
  std::string kind{};             ///< as jobs bear it
  std::uint32_t concurrency = 0;  ///< of its concurrency limit; 0: it has none
  std::string concurrency_key{};  ///< of that limit; empty: it is made of each job
  std::vector<quota> rate{};      ///< of its rate limit; empty: it has none
  std::string rate_key{};         ///< of that limit; empty: it is made of each job
  std::uint64_t rate_cost = 0;    ///< in tokens; 0: it is made of each job
};

/// A job that a worker runs.
struct running_job {
  std::string queue{};  ///< its queue
  job_id id{};          ///< of the job
  std::string kind{};   ///< its kind
  duration took{};      ///< since its handler started
};

/// A worker, as it last described itself.
struct registered_worker {
  /// A worker that has said nothing for longer than this has most likely ended.
  static constexpr duration patience = std::chrono::seconds{30};

  std::string name{};                   ///< `worker_options::name`; several may have the same
  std::string holder{};                 ///< the holder of its jobs' leases
  duration seen{};                      ///< since it described itself, by the store's clock
  duration up{};                        ///< from its start until then
  bool fires_schedules = false;         ///< it is a `scheduler`, and serves nothing else
  bool stopping = false;                ///< it claims nothing more, and drains
  std::uint32_t concurrency = 0;        ///< handlers at once
  std::uint32_t busy = 0;               ///< hands that have a job
  std::vector<served_queues> queues{};  ///< which it serves; empty: all
  std::vector<std::uint32_t> shards{};  ///< in which it looks for them; empty: in all
  std::vector<served_kind> kinds{};     ///< that it has handlers for
  std::vector<running_job> jobs{};      ///< up to 20 of those that it runs, the longest first
  bool is_whole = true;  ///< false: it serves more queues or kinds than its record has room for

  /// Has it been heard of lately?
  [[nodiscard]] bool seems_alive() const noexcept { return seen <= patience; }

  /// Does it claim jobs of this queue, by what stands in its record? One whose record is not whole
  /// may do so all the same.
  ///
  /// @param queue its name
  /// @param shard_count of the store, at least 1
  [[nodiscard]] bool serves(std::string_view queue, std::uint32_t shard_count) const {
    auto const named = [queue](served_queues const& q) { return q.name == queue; };
    if (std::ranges::any_of(queues, named)) return true;  // in any shard
    auto const shard = rule::shard_of(queue, shard_count);
    if (!shards.empty() && std::ranges::find(shards, shard) == shards.end()) return false;
    auto const fits = [queue](served_queues const& q) {
      return q.name.empty() && queue.starts_with(q.prefix);
    };
    return !fires_schedules && (queues.empty() || std::ranges::any_of(queues, fits));
  }
  /// Its entry for this kind of jobs; null: it has no handler for it, or none that is known.
  [[nodiscard]] served_kind const* find_kind(std::string_view kind) const {
    auto const found = std::ranges::find(kinds, kind, &served_kind::kind);
    return found == kinds.end() ? nullptr : &*found;
  }
};

namespace detail {

/// How long a record outlasts the last word of its worker.
inline constexpr duration worker_record_life = std::chrono::hours{1};

/// Reads the record of a worker. What is missing, or cannot be read, stays as it is by default.
class worker_record_reader {
 public:
  explicit worker_record_reader(std::string_view text) noexcept : fields_{text} {}

  [[nodiscard]] std::string text(std::string_view name) const {
    return std::string{fields_.find(name).value_or(std::string_view{})};
  }
  template <class Number>
  [[nodiscard]] Number number(std::string_view name) const {
    return whole_number<Number>(fields_.find(name).value_or(std::string_view{})).value_or(Number{});
  }
  [[nodiscard]] duration time(std::string_view name) const {
    return duration{std::max<duration::rep>(number<duration::rep>(name), 0)};
  }
  [[nodiscard]] bool has(std::string_view name) const { return fields_.find(name).has_value(); }
  /// Calls `f` with the name and the value of each member of a list.
  template <class F>
  void each(std::string_view list, F f) const {
    auto const found = fields_.find(list).value_or(std::string_view{});
    for (auto const& [name, value] : job_headers_view{found}) f(name, value);
  }

 private:
  job_headers_view fields_;
};

[[nodiscard]] inline std::vector<quota> rate_of(worker_record_reader const& from) {
  std::vector<quota> out;
  from.each("rate", [&out](std::string_view tokens, std::string_view rest) {
    worker_record_reader const more{rest};
    auto const n = whole_number<std::uint64_t>(tokens).value_or(0);
    out.push_back(quota::per(n, more.time("per")).burst(more.number<std::uint64_t>("burst")));
  });
  return out;
}

}  // namespace detail

/// A worker of the register. The register is read as queues are:
///
///     auto [ec, page] = co_await queue.async_list(std::string{weir::workers_queue},
///                                                 weir::job_state::pending);
///     for (auto const& j : page.jobs) show(weir::registered_worker_of(j));
///
/// A worker that has ended by itself is not there. One that has died is there for an hour.
///
/// @param record a job of `workers_queue`
/// @return the worker; what is damaged of its record is left out
[[nodiscard]] inline registered_worker registered_worker_of(job const& record) {
  detail::worker_record_reader const from{record.payload};
  registered_worker out;
  out.name = from.text("name");
  out.holder = from.text("holder");
  out.seen =
      std::max(detail::worker_record_life - std::max(record.vests_in, -limits::span), duration{});
  out.up = from.time("up");
  out.stopping = from.has("stopping");
  out.is_whole = !from.has("cut");
  out.fires_schedules = from.has("schedules");
  out.concurrency = from.number<std::uint32_t>("concurrency");
  out.busy = from.number<std::uint32_t>("busy");
  from.each("queues", [&out](std::string_view name, std::string_view value) {
    detail::worker_record_reader const more{value};
    served_queues q;
    (more.has("prefix") ? q.prefix : q.name) = name;
    q.weight = more.number<std::uint32_t>("weight");
    q.concurrency = more.number<std::uint32_t>("concurrency");
    out.queues.push_back(std::move(q));
  });
  from.each("shards", [&out](std::string_view number, std::string_view) {
    if (auto const n = detail::whole_number<std::uint32_t>(number)) out.shards.push_back(*n);
  });
  from.each("kinds", [&out](std::string_view kind, std::string_view value) {
    detail::worker_record_reader const more{value};
    out.kinds.push_back({std::string{kind}, more.number<std::uint32_t>("concurrency"),
                         more.text("concurrency_key"), detail::rate_of(more), more.text("rate_key"),
                         more.number<std::uint64_t>("rate_cost")});
  });
  from.each("jobs", [&out](std::string_view id, std::string_view value) {
    detail::worker_record_reader const more{value};
    try {
      out.jobs.push_back({more.text("queue"),
                          boost::uuids::string_generator{}(id.begin(), id.end()), more.text("kind"),
                          more.time("took")});
    } catch (std::exception const&) {  // it is no id
    }
  });
  return out;
}

}  // namespace weir

#endif
