// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_JOBS_HPP
#define WEIR_STORE_POSTGRES_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/job_cursor.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/job_row.hpp"
#include "weir/store/postgres/queues.hpp"
#include "weir/store/postgres/rows.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

template <>
struct postgres_note<command::list_dead_letters> {
  explicit postgres_note(command::list_dead_letters const& c) noexcept : limit{c.limit} {}
  std::uint32_t limit;
};

/// The commands of jobs: how each is called, and how its answer is read.
struct postgres_jobs {
  template <class C>
  using of = postgres_note<C> const&;

  static postgres_call call(command::enqueue_jobs const& c, postgres_scope const& in) {
    bool const plain = std::ranges::none_of(
        c.jobs, [](new_job const& j) { return holds_while_waiting(j.strategy); });
    postgres_call out{"enqueue_jobs"};
    out.add(c.queue).add(postgres_shard(c.queue, in)).add(plain);
    add_jobs(out, c.jobs);
    out.add(in.own).add(in.at).add(false);
    out.let_join(c.jobs.size(), postgres_division::in_turn);
    if (!plain) {
      out.hurry_in_line();
      constexpr std::size_t queue = 0;
      constexpr std::size_t keys = 6;
      out.expect_to_wait({queue, keys});
    }
    return out;
  }
  static result<command::enqueue_jobs::result> answer(of<command::enqueue_jobs>,
                                                      postgres_rows const& r) {
    command::enqueue_jobs::result out;
    out.reserve(static_cast<std::size_t>(r.size()));
    for (int i = 0; i != r.size(); ++i) {
      out.push_back({r.one_of(i, 0, enqueue_outcome::rescheduled), r.id(i, 1)});
    }
    return out;
  }

  static postgres_call call(command::peek_jobs const& c, postgres_scope const& in) {
    postgres_call out{"peek_jobs"};
    out.add(c.queue).add(c.limit).add(in.at);
    return out;
  }
  static result<std::vector<job>> answer(of<command::peek_jobs>, postgres_rows const& r) {
    std::vector<job> out;
    for (int i = 0; i != r.size(); ++i) {
      if (auto seen = readable(r, i)) out.push_back(std::move(*seen));
    }
    return out;
  }

  static postgres_call call(command::dequeue_jobs const& c, postgres_scope const& in) {
    postgres_call out{"dequeue_jobs"};
    out.add(c.queue).add(postgres_shard(c.queue, in));
    out.add_each<std::string_view>(std::array{c.holder}, std::identity{});
    out.add_each<std::int32_t>(std::array{static_cast<std::int32_t>(c.limit)}, std::identity{});
    out.add(c.sequence).add(c.lease).add(in.own).add(in.at);
    out.repair_by("dequeue_readable");
    if (c.sequence == 0) {
      out.let_join(c.limit, postgres_division::with_tail);
    } else {
      out.let_join(c.limit, postgres_division::by_part);
      out.join_by("dequeue_each", {0, 1, 4});  // queue, shard, sequence
      out.leave_out([](postgres_rows const& r) noexcept {
        return r.says(r.size() - 1, postgres_job_row::priority);
      });
    }
    return out;
  }
  static result<dequeued> answer(of<command::dequeue_jobs>, postgres_rows const& r) {
    using row = postgres_job_row;
    dequeued out;
    out.jobs.reserve(static_cast<std::size_t>(r.size()));
    for (int i = 0; i < r.size() - 1; ++i) out.jobs.push_back(row{r, i}.lease());
    row const rest{r, r.size() - 1};
    if (rest.has_job()) throw postgres_malformed{};
    if (r.leads()) {
      out.dead_lettered = r.as<std::uint32_t>(r.size() - 1, row::attempts);
      out.damaged = r.as<std::uint32_t>(r.size() - 1, row::max_attempts);
    }
    out.more = rest.number(row::snoozes) != 0;
    out.held = rest.number(row::state) != 0;
    out.next_in = rest.optional_span(row::vesting);
    return out;
  }

  static postgres_call call(command::obtain_lease const& c, postgres_scope const& in) {
    auto out = with_job("obtain_lease", c, in);
    out.add(c.holder).add(c.lease).add(c.early).add(in.own).add(in.at);
    return out;
  }
  static result<std::optional<leased_job>> answer(of<command::obtain_lease>,
                                                  postgres_rows const& r) {
    std::optional<leased_job> out;
    if (r.size() != 0) out = postgres_job_row{r, 0}.lease();
    return out;
  }

  static postgres_call call(command::extend_lease const& c, postgres_scope const& in) {
    auto out = with_job("extend_lease", c, in);
    out.add(c.fence).add(c.lease).add(c.progress).add(c.checkpoint).add(in.own).add(in.at);
    return out;
  }
  static result<lease_renewal> answer(of<command::extend_lease>, postgres_rows const& r) {
    if (r.null(0, 0)) return errc::lease_lost;
    return lease_renewal{r.span(0, 0)};
  }

  static postgres_call call(command::start_job const& c, postgres_scope const& in) {
    postgres_call out{"start_job"};
    out.add(c.queue).add(c.id).add(c.fence).add(in.at);
    return out;
  }
  static result<started> answer(of<command::start_job>, postgres_rows const& r) {
    if (r.null(0, 0)) return errc::lease_lost;
    auto const left = r.span(0, 0);
    if (left < duration::zero()) return started{};
    return started{.outcome = start_outcome::blocked, .retry_after = left, .other = r.id(0, 1)};
  }

  static postgres_call call(command::complete_jobs const& c, postgres_scope const& in) {
    postgres_call out{"complete_jobs"};
    auto const shard = static_cast<std::int32_t>(postgres_shard(c.queue, in));
    out.add_each<std::string_view>(c.jobs, [&](finished_job const&) { return c.queue; });
    out.add_each<std::int32_t>(c.jobs, [&](finished_job const&) { return shard; });
    out.add_each<job_id>(c.jobs, [](finished_job const& j) { return j.id; });
    out.add_each<std::int64_t>(
        c.jobs, [](finished_job const& j) { return static_cast<std::int64_t>(j.fence); });
    out.add_each<std::string_view>(c.jobs, [](finished_job const& j) { return j.result; });
    out.add_each<std::int32_t>(std::array{static_cast<std::int32_t>(c.jobs.size())},
                               std::identity{});
    out.add(false);
    out.tell_of_others();
    out.add(in.own).add(in.at);
    out.let_join(c.jobs.size(), postgres_division::in_turn);
    out.leave_out([](postgres_rows const& r) noexcept { return r.lacks(0); });
    return out;
  }
  static result<command::complete_jobs::result> answer(of<command::complete_jobs>,
                                                       postgres_rows const& r) {
    command::complete_jobs::result out;
    for (int i = 0; i != r.size(); ++i) {
      out.push_back(r.yes(i, 0) ? complete_outcome::completed : complete_outcome::lease_lost);
    }
    return out;
  }

  static postgres_call call(command::relay_job const& c, postgres_scope const& in) {
    auto out = with_job("relay_job", c, in);
    out.add(c.fence).add(c.expected).add(c.stored).add(c.to);
    out.add(static_cast<std::int32_t>(c.jobs.size()));
    std::vector<new_job> all{c.jobs.begin(), c.jobs.end()};
    all.insert(all.end(), c.next.begin(), c.next.end());
    add_jobs(out, all);
    out.add(in.own).add(in.at);
    return out;
  }
  static result<relayed> answer(of<command::relay_job>, postgres_rows const& r) {
    constexpr auto lost = static_cast<std::int64_t>(relay_outcome::not_found) + 1;
    if (r.integer(0, 0) == lost) return errc::lease_lost;
    relayed out{r.one_of(0, 0, relay_outcome::not_found), {}};
    for (int i = 1; i != r.size(); ++i) {
      out.jobs.push_back({r.one_of(i, 0, enqueue_outcome::rescheduled), r.id(i, 1)});
    }
    return out;
  }

  static postgres_call call(command::requeue_job const& c, postgres_scope const& in) {
    return end_lease(c, 0, c.delay, rule::kept_reason(c.reason), in);
  }
  static result<requeue_outcome> answer(of<command::requeue_job>, postgres_rows const& r) {
    if (r.null(0, 0)) return errc::lease_lost;
    return r.yes(0, 0) ? requeue_outcome::dead_lettered : requeue_outcome::requeued;
  }

  static postgres_call call(command::snooze_job const& c, postgres_scope const& in) {
    return end_lease(c, 1, c.delay, c.memo, in);
  }
  static result<hint> answer(of<command::snooze_job>, postgres_rows const& r) { return ended(r); }

  static postgres_call call(command::return_job const& c, postgres_scope const& in) {
    return end_lease(c, 2, duration::zero(), {}, in);
  }
  static result<hint> answer(of<command::return_job>, postgres_rows const& r) { return ended(r); }

  static postgres_call call(command::bury_job const& c, postgres_scope const& in) {
    return end_lease(c, 3, duration::zero(), rule::kept_reason(c.reason), in);
  }
  static result<hint> answer(of<command::bury_job>, postgres_rows const& r) { return ended(r); }

  static postgres_call call(command::cancel_job const& c, postgres_scope const& in) {
    auto out = with_job("cancel_job", c, in);
    out.add(c.running).add(in.own).add(in.at);
    return out;
  }
  static result<cancel_outcome> answer(of<command::cancel_job>, postgres_rows const& r) {
    return r.one_of(0, 0, cancel_outcome::not_found);
  }

  static postgres_call call(command::find_job const& c, postgres_scope const& in) {
    postgres_call out{"find_job"};
    out.add(c.queue).add(c.id).add(in.at);
    return out;
  }
  static result<std::optional<job>> answer(of<command::find_job>, postgres_rows const& r) {
    std::optional<job> out;
    if (r.size() != 0) out = postgres_job_row{r, 0}.seen();
    return out;
  }

  static postgres_call call(command::list_dead_letters const& c, postgres_scope const& in) {
    postgres_call out{"list_dead_letters"};
    out.add(c.queue).add(c.limit + 1).add(cursor(c).value_or(0)).add(in.at);
    return out;
  }
  static result<job_page> answer(of<command::list_dead_letters> note, postgres_rows const& r) {
    job_page out;
    rule::answer_room room;
    for (int i = 0; i != r.size(); ++i) {
      auto seen = readable(r, i);
      if (i == static_cast<int>(note.limit) || (seen && !room.take(rule::bytes_of(*seen)))) {
        out.cursor = std::to_string(r.integer(i - 1, postgres_job_row::death));
        break;
      }
      if (seen) out.jobs.push_back(std::move(*seen));
    }
    return out;
  }

  static postgres_call call(command::list_jobs const& c, postgres_scope const& in) {
    postgres_call out{"list_jobs"};
    out.add(c.queue).add(static_cast<std::int32_t>(c.state)).add(c.limit);
    out.add(cursor(c).value_or(job_id{})).add(in.at);
    return out;
  }
  static result<job_page> answer(of<command::list_jobs>, postgres_rows const& r) {
    job_page out;
    for (int i = 0; i != r.size(); ++i) {
      if (postgres_job_row{r, i}.has_job()) {
        if (auto seen = readable(r, i)) out.jobs.push_back(std::move(*seen));
      } else {
        out.cursor = rule::cursor_text(r.text(i, postgres_job_row::payload));
      }
    }
    return out;
  }

  static postgres_call call(command::replay_dead_letter const& c, postgres_scope const& in) {
    auto out = with_job("replay_dead_letter", c, in);
    out.add(c.delay).add(in.own).add(in.at);
    return out;
  }
  static result<replayed> answer(of<command::replay_dead_letter>, postgres_rows const& r) {
    return replayed{.outcome = r.one_of(0, 0, replay_outcome::not_found), .other = r.id(0, 1)};
  }

  static postgres_call call(command::purge_job const& c, postgres_scope const& in) {
    auto out = with_job("purge_job", c, in);
    out.add(in.own).add(in.at);
    return out;
  }
  static result<bool> answer(of<command::purge_job>, postgres_rows const& r) { return r.yes(0, 0); }

  /// The place in a listing that a cursor names; empty: no page gave it.
  static std::optional<job_id> cursor(command::list_jobs const& c) {
    return rule::id_of_cursor(c.cursor);
  }
  static std::optional<std::int64_t> cursor(command::list_dead_letters const& c) noexcept {
    return rule::number_of_cursor(c.cursor);
  }

 private:
  /// Adds an array for each of their fields.
  static void add_jobs(postgres_call& out, std::span<new_job const> jobs) {
    auto const number = [](auto v) { return static_cast<std::int32_t>(v); };
    out.add_each<job_id>(jobs, [](new_job const& j) { return j.id; });
    out.add_each<std::string_view>(jobs, [](new_job const& j) { return j.kind; });
    out.add_each<std::string_view>(jobs, [](new_job const& j) { return j.payload; });
    out.add_each<std::string_view>(jobs, [](new_job const& j) { return j.unique_key; });
    out.add_each<std::int32_t>(jobs, [&](new_job const& j) { return number(j.priority); });
    out.add_each<std::int32_t>(jobs, [&](new_job const& j) { return number(j.max_attempts); });
    out.add_each<std::int32_t>(jobs, [&](new_job const& j) { return number(j.strategy); });
    out.add_each<std::int32_t>(jobs, [&](new_job const& j) { return number(j.on_conflict); });
    out.add_each<std::int64_t>(jobs, [](new_job const& j) { return j.delay.count(); });
    out.add_each<std::int64_t>(jobs, [](new_job const& j) { return j.deadline.count(); });
    out.add_each<std::int64_t>(jobs, [](new_job const& j) { return j.retention.count(); });
    out.add_each<std::int64_t>(jobs, [](new_job const& j) { return j.unique_ttl.count(); });
    out.add_each<std::string_view>(jobs, [](new_job const& j) { return j.headers; });
  }

  /// A job of a listing; empty: its record is damaged, and is left out.
  static std::optional<job> readable(postgres_rows const& r, int i) {
    try {
      return postgres_job_row{r, i}.seen();
    } catch (postgres_malformed const&) {
      return std::nullopt;
    }
  }

  template <class C>
  static postgres_call with_job(char const* function, C const& c, postgres_scope const& in) {
    postgres_call out{function};
    out.add(c.queue).add(postgres_shard(c.queue, in)).add(c.id);
    return out;
  }

  template <class C>
  static postgres_call end_lease(C const& c, std::int32_t how, duration delay,
                                 std::string_view text, postgres_scope const& in) {
    auto out = with_job("end_lease", c, in);
    out.add(c.fence).add(how).add(delay).add(text).add(in.own).add(in.at);
    return out;
  }

  static result<hint> ended(postgres_rows const& r) {
    if (r.null(0, 0)) return errc::lease_lost;
    return hint{};
  }
};

}  // namespace weir::detail

#endif
