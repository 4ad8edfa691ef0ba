// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_QUEUES_HPP
#define WEIR_STORE_POSTGRES_QUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/leases.hpp"
#include "weir/store/postgres/rows.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace weir::detail {

[[nodiscard]] inline std::uint32_t postgres_shard(std::string_view queue,
                                                  postgres_scope const& in) noexcept {
  return rule::shard_of(queue, in.shards);
}

template <>
struct postgres_note<command::list_queues> {
  explicit postgres_note(command::list_queues const& c) noexcept : limit{c.limit} {}
  std::uint32_t limit;
};

/// The commands of queues as a whole: how each is called, and how its answer is read.
struct postgres_queues {
  template <class C>
  using of = postgres_note<C> const&;

  static postgres_call call(command::min_vesting_time const& c, postgres_scope const& in) {
    postgres_call out{"min_vesting_time"};
    out.add(c.queue).add(in.at);
    return out;
  }
  static result<std::optional<duration>> answer(of<command::min_vesting_time>,
                                                postgres_rows const& r) {
    return optional_span(r, 0);
  }

  static postgres_call call(command::update_queue_pointer const& c, postgres_scope const& in) {
    auto out = whole("update_queue_pointer", c.queue, in);
    out.add(in.own).add(in.at);
    return out;
  }
  static result<std::optional<duration>> answer(of<command::update_queue_pointer>,
                                                postgres_rows const& r) {
    return optional_span(r, 0);
  }

  static postgres_call call(command::scan_visible_queues const& c, postgres_scope const& in) {
    postgres_call out{"scan_visible_queues"};
    out.add(rule::scan_number(c.shard, c.schedules)).add(c.limit).add(c.entropy).add(in.at);
    return out;
  }
  static result<visible_queues> answer(of<command::scan_visible_queues>, postgres_rows const& r) {
    visible_queues out;
    out.next_in = optional_span(r, 1);
    for (int i = 1; i < r.size(); ++i) out.queues.push_back(r.text(i, 0));
    return out;
  }

  static postgres_call call(command::gc_stale_pointers const& c, postgres_scope const& in) {
    postgres_call out{"gc_stale_pointers"};
    out.add(c.shard).add(c.limit).add(c.grace).add(in.at);
    return out;
  }
  static result<std::uint32_t> answer(of<command::gc_stale_pointers>, postgres_rows const& r) {
    return r.as<std::uint32_t>(0, 0);
  }

  static postgres_call call(command::obtain_queue_lease const& c, postgres_scope const& in) {
    auto out = whole("obtain_queue_lease", c.queue, in);
    out.add(c.holder).add(c.lease).add(in.at);
    return out;
  }
  static result<lock_grant> answer(of<command::obtain_queue_lease>, postgres_rows const& r) {
    return postgres_leases::granted(r);
  }

  static postgres_call call(command::release_queue_lease const& c, postgres_scope const& in) {
    postgres_call out{"release_queue_lease"};
    out.add(c.queue).add(c.holder).add(c.fence).add(in.at);
    return out;
  }
  static result<lease_release> answer(of<command::release_queue_lease>, postgres_rows const& r) {
    return lease_release{.freed = r.yes(0, 0)};
  }

  static postgres_call call(command::snooze_queue const& c, postgres_scope const& in) {
    auto out = whole("snooze_queue", c.queue, in);
    out.add(c.delay).add(c.at_least).add(in.own).add(in.at);
    return out;
  }
  static result<hint> answer(of<command::snooze_queue>, postgres_rows const&) { return hint{}; }

  static postgres_call call(command::pause_queue const& c, postgres_scope const& in) {
    auto out = whole("pause_queue", c.queue, in);
    out.add(in.own);
    return out;
  }
  static result<hint> answer(of<command::pause_queue>, postgres_rows const&) { return hint{}; }

  static postgres_call call(command::resume_queue const& c, postgres_scope const& in) {
    postgres_call out{"resume_queue"};
    out.add(c.queue).add(in.own).add(in.at);
    return out;
  }
  static result<hint> answer(of<command::resume_queue>, postgres_rows const&) { return hint{}; }

  static postgres_call call(command::read_queue_stats const& c, postgres_scope const& in) {
    postgres_call out{"read_queue_stats"};
    out.add(c.queue).add(in.at);
    return out;
  }
  static result<queue_stats> answer(of<command::read_queue_stats>, postgres_rows const& r) {
    queue_stats out;
    out.enqueued = r.as<std::uint64_t>(0, 0);
    out.leased = r.as<std::uint64_t>(0, 1);
    out.completed = r.as<std::uint64_t>(0, 2);
    out.dead = r.as<std::uint64_t>(0, 3);
    out.cancelled = r.as<std::uint64_t>(0, 4);
    out.purged = r.as<std::uint64_t>(0, 5);
    out.paused = r.yes(0, 6);
    out.next_in = optional_span(r, 7);
    // Each is below 2^63; damaged counters may have a larger sum.
    auto const over = out.completed + out.dead;
    auto const gone = out.cancelled + out.purged + out.leased;
    out.pending =
        over < out.enqueued && gone < out.enqueued - over ? out.enqueued - over - gone : 0;
    return out;
  }

  static postgres_call call(command::list_queues const& c, postgres_scope const&) {
    postgres_call out{"list_queues"};
    out.add(c.shard).add(c.limit + 1).add(c.cursor);
    return out;
  }
  static result<queue_page> answer(of<command::list_queues> note, postgres_rows const& r) {
    queue_page out;
    rule::answer_room room;
    for (int i = 0; i != r.size(); ++i) {
      auto name = r.text(i, 0);
      if (out.queues.size() == note.limit || !room.take(name.size())) {
        out.cursor = out.queues.back();
        break;
      }
      out.queues.push_back(std::move(name));
    }
    return out;
  }

 private:
  static postgres_call whole(char const* function, std::string_view queue,
                             postgres_scope const& in) {
    postgres_call out{function};
    out.add(queue).add(postgres_shard(queue, in));
    return out;
  }

  static std::optional<duration> optional_span(postgres_rows const& r, int column) {
    if (r.null(0, column)) return std::nullopt;
    return r.span(0, column);
  }
};

}  // namespace weir::detail

#endif
