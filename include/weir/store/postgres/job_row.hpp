// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_JOB_ROW_HPP
#define WEIR_STORE_POSTGRES_JOB_ROW_HPP

#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <optional>

namespace weir::detail {

/// A row that describes a job: see `job_row` in schema/queues.sql.
class postgres_job_row {
 public:
  postgres_job_row(postgres_rows const& rows, int row) : rows_{rows}, row_{row} {}

  /// Is it one? The row after the last job of a dequeue is not.
  [[nodiscard]] bool has_job() const { return !rows_.null(row_, id); }
  [[nodiscard]] std::int64_t number(int column) const { return rows_.integer(row_, column); }
  [[nodiscard]] std::optional<duration> optional_span(int column) const {
    if (rows_.null(row_, column)) return std::nullopt;
    return rows_.span(row_, column);
  }

  /// What a reader sees of it.
  [[nodiscard]] job seen() const {
    job out;
    bool const claimed = !rows_.null(row_, holder);
    auto const how = rows_.one_of(row_, state, job_state::cancelled);
    out.id = rows_.id(row_, id);
    out.kind = rows_.text(row_, kind);
    out.payload = rows_.text(row_, payload);
    out.priority = rows_.as<std::uint8_t>(row_, priority);
    out.state = is_terminal(how) ? how : rule::queued_state(claimed, at(vesting), at(now));
    out.attempts = rows_.as<std::uint32_t>(row_, attempts);
    out.max_attempts = rows_.as<std::uint32_t>(row_, max_attempts);
    out.snoozes = rows_.as<std::uint32_t>(row_, snoozes);
    if (!is_terminal(how)) out.vests_in = saturating_sub(at(vesting), at(now));
    out.age = saturating_sub(at(now), at(enqueued));
    out.deadline_in = deadline_in();
    out.strategy = rows_.one_of(row_, strategy, unique_strategy::until_expired);
    out.on_conflict = rows_.one_of(row_, policy, conflict_policy::reschedule);
    out.unique_key = rows_.text(row_, unique_key);
    out.headers = rows_.text(row_, headers);
    out.memo = rows_.text(row_, memo);
    out.progress = rows_.text(row_, progress);
    out.checkpoint = rows_.text(row_, checkpoint);
    out.result = rows_.text(row_, result);
    out.reason = rows_.text(row_, reason);
    if (out.state == job_state::leased) {
      out.holder = rows_.text(row_, holder);
      out.fence = rows_.as<std::uint64_t>(row_, fence);
    }
    return out;
  }

  /// What a consumer gets that has claimed it.
  [[nodiscard]] leased_job lease() const {
    leased_job out;
    out.id = rows_.id(row_, id);
    out.fence = rows_.as<std::uint64_t>(row_, fence);
    out.expires_in = saturating_sub(at(vesting), at(now));
    out.kind = rows_.text(row_, kind);
    out.payload = rows_.text(row_, payload);
    out.priority = rows_.as<std::uint8_t>(row_, priority);
    out.attempt = rows_.as<std::uint32_t>(row_, attempts);
    out.max_attempts = rows_.as<std::uint32_t>(row_, max_attempts);
    out.snoozes = rows_.as<std::uint32_t>(row_, snoozes);
    out.age = saturating_sub(at(now), at(enqueued));
    out.deadline_in = deadline_in();
    out.strategy = rows_.one_of(row_, strategy, unique_strategy::until_expired);
    out.unique_key = rows_.text(row_, unique_key);
    out.headers = rows_.text(row_, headers);
    out.memo = rows_.text(row_, memo);
    out.checkpoint = rows_.text(row_, checkpoint);
    return out;
  }

  // The columns, in order.
  enum : int {
    now,
    id,
    priority,
    state,
    strategy,
    policy,
    attempts,
    max_attempts,
    snoozes,
    vesting,
    death,
    fence,
    enqueued,
    deadline_from,
    deadline,
    holder,
    unique_key,
    kind,
    payload,
    memo,
    reason,
    result,
    headers,
    progress,
    checkpoint,
    part  // the last one: of several dequeues, which one it is of
  };

 private:
  [[nodiscard]] time_point at(int column) const { return rows_.time(row_, column); }
  [[nodiscard]] std::optional<duration> deadline_in() const {
    auto const due = rule::job_deadline(rows_.span(row_, deadline), at(deadline_from));
    if (!due) return std::nullopt;
    return saturating_sub(*due, at(now));
  }

  postgres_rows const& rows_;
  int row_;
};

}  // namespace weir::detail

#endif
