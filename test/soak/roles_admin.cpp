// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/process.hpp"
#include "weir/job_queue.hpp"
#include "weir/schedules.hpp"

namespace soak {

namespace {

/// A put after another one that died half-way is dozens of commands, each of which may be slow.
constexpr weir::duration put_patience = 60s;

}  // namespace

// A paused queue goes on at the end, whatever happens.
awaitable<> administrator(process& p) {
  weir::job_queue const queues{p.at};
  auto const all = all_queues();
  while (!p.ending) {
    co_await p.pause(100ms);
    auto const queue = p.chance.pick(all);
    auto const kind = p.chance.below(10);
    if (kind < 1) {
      auto const op = p.log.ask("pause", queue, 0s);
      auto const [ec, done] = co_await queues.async_pause(queue, token);
      p.log.end(op, ec ? word_of(ec) : "done");
      co_await p.think(1500ms);
      for (bool on = true; on;) {
        auto const again = p.log.ask("resume", queue, 0s);
        auto const [failed, resumed] = co_await queues.async_resume(queue, token);
        p.log.end(again, failed ? word_of(failed) : "done");
        on = static_cast<bool>(failed) && !p.ending;
        if (on) co_await p.pause(200ms);
      }
    } else if (kind < 4) {
      auto const [ec, waiting] = co_await queues.async_peek(queue, 3, token);
      if (ec || waiting.empty()) continue;
      auto const id = waiting.back().id;
      auto const op = p.log.ask("cancel", text(id), 0s);
      auto const [failed, outcome] = co_await queues.async_cancel(queue, id, false, token);
      p.log.end(op, failed                                       ? word_of(failed)
                    : outcome == weir::cancel_outcome::cancelled ? "cancelled"
                                                                 : "refused");
    } else {
      auto const [ec, page] = co_await queues.async_list_dead_letters(queue, 3, {}, token);
      if (ec || page.jobs.empty()) continue;
      auto const id = page.jobs.front().id;
      if (kind < 8) {
        auto const op = p.log.ask("replay", text(id), 0s);
        auto const [failed, r] = co_await queues.async_replay(queue, id, {}, token);
        p.log.end(op, failed                                        ? word_of(failed)
                      : r.outcome == weir::replay_outcome::replayed ? "replayed"
                                                                    : "refused");
      } else {
        auto const op = p.log.ask("purge", text(id), 0s);
        auto const [failed, purged] = co_await queues.async_purge(queue, id, token);
        p.log.end(op, failed ? word_of(failed) : purged ? "purged" : "refused");
      }
    }
  }
}

awaitable<> deploys(process& p) {
  weir::schedules const schedules{p.at};
  while (!p.ending) {
    tick_job const job{.schedule = schedule_name(p.chance.below(schedule_count))};
    weir::schedule const s{.name = job.schedule,
                           .when = weir::every{period_of(job.schedule)},
                           .overlap = weir::overlap_policy::allow,
                           .catch_up = weir::catch_up_policy::all(1000, 1h),
                           .tick_member = "tick"};
    std::string const queue{tick_queues[p.chance.chance(15) ? 1 : 0]};
    auto const op = p.log.ask("schedule", job.schedule, put_patience, queue);
    auto const [ec, done] = co_await schedules.async_put(s, job, {.queue = queue}, token);
    p.log.end(op, ec ? word_of(ec) : std::string{to_string(done)});
    co_await p.think(2s);
  }
}

}  // namespace soak
