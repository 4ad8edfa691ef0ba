// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_JOB_SHARD_HPP
#define WEIR_STORE_MEMORY_JOB_SHARD_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/memory/job_budget.hpp"
#include "weir/store/memory/job_pointers.hpp"
#include "weir/store/memory/job_queue.hpp"
#include "weir/time.hpp"

#include <boost/charconv/from_chars.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// How many queues without jobs a shard remembers.
inline constexpr std::size_t remembered_queues = 100'000;

/// The queues of one shard. Executes every command, for one thread at a time.
///
/// A queue without jobs keeps its counters, its pause or snooze, its lease, and nothing else. Such queues are remembered
/// up to `remembered`; beyond it the one that has been jobless for the longest is forgotten with its counters, unless it
/// is held or leased. Where only those are left, holding another one is `store_full`. The fence is the shard's and is
/// never forgotten.
class job_shard {
 public:
  explicit job_shard(job_allowance allowance, std::size_t remembered = remembered_queues)
      : common_{.allowance = allowance}, remembered_{remembered} {}
  job_shard(job_shard const&) = delete;
  job_shard& operator=(job_shard const&) = delete;
  ~job_shard() {
    for (auto& k : queues_) unlink(*k.second);
    common_.kept.clear();
    common_.expiring.clear();
  }

  /// Has some queue become due, or the first one due earlier, since this was asked last?
  [[nodiscard]] bool take_event() noexcept { return pointers_.take_event(); }
  [[nodiscard]] bool any_due(time_point now) const noexcept { return pointers_.any_due(now); }

  // -------------------------------------------------------------------------------------- jobs

  result<command::enqueue_jobs::result> apply(command::enqueue_jobs const& c, time_point now) {
    reap(now, c.jobs.size());
    auto* q = find(c.queue);
    loan room{common_.allowance};
    if (!take_room(q, c, now, room.left)) return errc::store_full;
    if (q == nullptr) q = &make(c.queue);
    command::enqueue_jobs::result out;
    out.reserve(c.jobs.size());
    settling const at_end{*this, *q, now};
    for (auto const& j : c.jobs) {
      auto const arrival = q->enqueue(j, now, common_);
      room.left -= arrival.records;
      if (arrival.vests) pointers_.no_later_than(*q, *arrival.vests, now);
      out.push_back(arrival.answer);
    }
    return out;
  }
