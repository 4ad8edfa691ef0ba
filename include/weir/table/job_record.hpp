// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_RECORD_HPP
#define WEIR_TABLE_JOB_RECORD_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/table/job_holders.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

template <class>
class basic_memory_queue;
using memory_queue = basic_memory_queue<void>;

/// What only some jobs have.
struct job_notes {
  std::string memo;
  std::string result;
  std::string reason;
};

/// One job, in one block of memory with its texts. It is in exactly one order: its queue's index
/// until it ends, then the dead letters, or the records that are kept until their retention is
/// over. What is compared stands next to the links.
struct job_record {
  using set_hook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;

  set_hook in_records;
  job_id id{};
  /// Not ended: when it vests, or its lease ends. Kept: until when. Dead letters: unused.
  time_point vesting{};
  set_hook in_order;
  boost::intrusive::list_member_hook<> in_claimed;
  std::uint64_t death = 0;  ///< dead letters: which one of the queue's

  job_holder* holder = nullptr;    ///< of its lease, over or not; null: unclaimed
  std::uint64_t fence = 0;         ///< of its last lease
  time_point unclaimed_vesting{};  ///< claimed: the vesting time that the lease took the place of
  std::uint32_t attempts = 0;
  std::uint32_t max_attempts = 0;
  std::uint32_t snoozes = 0;
  std::uint8_t priority = 0;
  job_state ended = job_state::pending;  ///< how it ended; pending: it has not
  unique_strategy strategy = unique_strategy::none;
  conflict_policy on_conflict = conflict_policy::reject;

  std::uint16_t kind_size = 0;
  std::uint16_t key_size = 0;
  std::uint32_t payload_size = 0;

  time_point enqueued{};
  time_point deadline_from{};
  duration deadline{};  ///< from `deadline_from`; 0: none
  duration retention{};
  memory_queue* home = nullptr;
  std::unique_ptr<job_notes> rare;

  [[nodiscard]] std::string_view kind() const noexcept { return {text(), kind_size}; }
  [[nodiscard]] std::string_view unique_key() const noexcept {
    return {text() + kind_size, key_size};
  }
  [[nodiscard]] std::string_view payload() const noexcept {
    return {text() + kind_size + key_size, payload_size};
  }
  /// Kind, unique key and payload follow the record in its own block of memory.
  [[nodiscard]] char const* text() const noexcept {
    return reinterpret_cast<char const*>(this + 1);
  }
  [[nodiscard]] char* text() noexcept { return reinterpret_cast<char*>(this + 1); }

  struct destroy {
    void operator()(job_record* r) const noexcept {
      r->~job_record();
      ::operator delete(r);
    }
  };
  using owner = std::unique_ptr<job_record, destroy>;

  [[nodiscard]] std::string_view memo() const noexcept {
    return rare ? rare->memo : std::string_view{};
  }

  /// As `rule::bytes_of` the job that is described from it.
  [[nodiscard]] std::size_t text_bytes() const noexcept {
    auto const all = std::size_t{kind_size} + key_size + payload_size;
    return rare ? all + rare->memo.size() + rare->result.size() + rare->reason.size() : all;
  }

  [[nodiscard]] job_notes& notes() {
    if (!rare) rare = std::make_unique<job_notes>();
    return *rare;
  }

  [[nodiscard]] job_state state(time_point now) const noexcept {
    return is_terminal(ended) ? ended : rule::queued_state(holder != nullptr, vesting, now);
  }

  [[nodiscard]] std::optional<time_point> deadline_at() const noexcept {
    return rule::job_deadline(deadline, deadline_from);
  }
};

[[nodiscard]] inline job_record::owner make_record(new_job const& j, time_point now,
                                                   memory_queue& home) {
  auto const text_size = j.kind.size() + j.unique_key.size() + j.payload.size();
  job_record::owner r{::new (::operator new(sizeof(job_record) + text_size)) job_record};
  r->vesting = saturating_add(now, j.delay);
  r->id = j.id;
  r->max_attempts = j.max_attempts;
  r->priority = j.priority;
  r->strategy = j.strategy;
  r->on_conflict = j.on_conflict;
  r->kind_size = static_cast<std::uint16_t>(j.kind.size());
  r->key_size = static_cast<std::uint16_t>(j.unique_key.size());
  r->payload_size = static_cast<std::uint32_t>(j.payload.size());
  auto* to = std::copy(j.kind.begin(), j.kind.end(), r->text());
  to = std::copy(j.unique_key.begin(), j.unique_key.end(), to);
  std::copy(j.payload.begin(), j.payload.end(), to);
  r->enqueued = now;
  r->deadline_from = now;
  r->deadline = j.deadline;
  r->retention = j.retention;
  r->home = &home;
  return r;
}

[[nodiscard]] inline std::optional<duration> deadline_in(job_record const& r,
                                                         time_point now) noexcept {
  auto const at = r.deadline_at();
  if (!at) return std::nullopt;
  return saturating_sub(*at, now);
}

/// What a reader sees of it.
[[nodiscard]] inline job describe(job_record const& r, time_point now) {
  job out;
  out.id = r.id;
  out.kind = r.kind();
  out.payload = r.payload();
  out.priority = r.priority;
  out.state = r.state(now);
  out.attempts = r.attempts;
  out.max_attempts = r.max_attempts;
  out.snoozes = r.snoozes;
  if (!is_terminal(out.state)) out.vests_in = saturating_sub(r.vesting, now);
  out.age = saturating_sub(now, r.enqueued);
  out.deadline_in = deadline_in(r, now);
  out.strategy = r.strategy;
  out.on_conflict = r.on_conflict;
  out.unique_key = r.unique_key();
  if (r.rare) {
    out.memo = r.rare->memo;
    out.result = r.rare->result;
    out.reason = r.rare->reason;
  }
  if (out.state == job_state::leased) {
    out.holder = r.holder->name;
    out.fence = r.fence;
  }
  return out;
}

/// What a consumer gets that claims it: `attempt` and the lease's end are what the claim is about
/// to make them.
[[nodiscard]] inline leased_job describe_lease(job_record const& r, std::uint64_t fence,
                                               std::uint32_t attempt, duration expires_in,
                                               time_point now) {
  leased_job out;
  out.id = r.id;
  out.fence = fence;
  out.expires_in = expires_in;
  out.kind = r.kind();
  out.payload = r.payload();
  out.priority = r.priority;
  out.attempt = attempt;
  out.max_attempts = r.max_attempts;
  out.snoozes = r.snoozes;
  out.age = saturating_sub(now, r.enqueued);
  out.deadline_in = deadline_in(r, now);
  out.strategy = r.strategy;
  out.unique_key = r.unique_key();
  out.memo = r.memo();
  return out;
}

}  // namespace weir::detail

#endif
