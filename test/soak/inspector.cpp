// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/process.hpp"
#include "weir/job_queue.hpp"
#include "weir/limiter.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/schedules.hpp"
#include "weir/uniqueness.hpp"

#include <boost/system/system_error.hpp>
#include <boost/uuid/string_generator.hpp>

#include <ctime>
#include <fstream>
#include <optional>

// After the faults: waits until all has drained, then says in which state everything is.
namespace soak {

// Its instant is in whole seconds here, and so is its period.
record tick_record(tick_job const& job, weir::job_id id) {
  std::tm date{};
  ::strptime(job.tick.c_str(), "%Y-%m-%dT%H:%M:%SZ", &date);
  return {.kind = "tick",
          .name = job.schedule,
          .key = text(id),
          .n = ns_of(std::chrono::seconds{::timegm(&date)}),
          .detail = "0"};
}

namespace {

/// Asks until there is an answer; 20 s are enough for that.
template <class Answer, class Ask>
awaitable<Answer> insist(process& p, Ask ask) {
  auto const until = boot_now() + ns_of(20s);
  for (;;) {
    auto [ec, answer] = co_await ask();
    if (!ec) co_return std::move(answer);
    if (boot_now() > until) throw boost::system::system_error{ec, "after the faults"};
    co_await p.pause(200ms);
  }
}

/// Waits until a queue has drained, and says what is in it.
awaitable<> drain_queue(process& p, std::string q, std::int64_t until) {
  weir::job_queue const queues{p.at};
  auto stats = [&] { return queues.async_stats(q, token); };
  auto s = co_await insist<weir::queue_stats>(p, stats);
  while (s.pending + s.leased != 0 && boot_now() < until) {
    co_await p.pause(200ms);
    s = co_await insist<weir::queue_stats>(p, stats);
  }
  std::string counts;
  for (auto const n :
       {s.enqueued, s.pending, s.leased, s.completed, s.dead, s.cancelled, s.purged}) {
    counts.append(std::to_string(n)).append(",");
  }
  p.log.write({.kind = "stats",
               .key = q,
               .n = static_cast<std::int64_t>(s.pending + s.leased),
               .detail = counts});
}

/// Says what each schedule has fired, and which jobs there are for it.
awaitable<> inspect_schedules(process& p) {
  weir::job_queue const queues{p.at};
  weir::schedules const schedules{p.at};
  for (std::uint64_t i = 0; i != schedule_count; ++i) {
    auto find = [&] { return schedules.async_find(schedule_name(i), token); };
    auto const s = co_await insist<std::optional<weir::stored_schedule>>(p, find);
    if (!s) continue;
    p.log.write({.kind = "schedule",
                 .key = s->definition.name,
                 .n = static_cast<std::int64_t>(s->progress.fired),
                 .detail = std::to_string(s->progress.missed + s->progress.skipped)});
  }
  for (auto const queue : tick_queues) {
    std::string cursor;
    do {
      auto list = [&] {
        return queues.async_list(std::string{queue}, weir::job_state::completed, 100, cursor,
                                 token);
      };
      auto const page = co_await insist<weir::job_page>(p, list);
      for (auto const& j : page.jobs) {
        p.log.write(tick_record(weir::decode<tick_job>(j.payload).value, j.id));
      }
      cursor = page.cursor;
    } while (!cursor.empty());
  }
}

bool waits(weir::job_state s) {
  return s == weir::job_state::pending || s == weir::job_state::leased;
}

}  // namespace

awaitable<> inspector(process& p) {
  weir::job_queue const queues{p.at};
  auto const until = boot_now() + ns_of(drain);
  for (auto const& q : all_queues()) {
    auto resume = [&] { return queues.async_resume(q, token); };
    co_await insist<weir::hint>(p, resume);
  }
  for (auto const& q : all_queues()) co_await drain_queue(p, q, until);
  for (auto const q : tick_queues) co_await drain_queue(p, std::string{q}, until);
  co_await inspect_schedules(p);
  for (auto const limit : permit_limits) {
    weir::limiter const limiter{p.at, {.limit = limit, .ttl = lease, .poll = poll}};
    auto census = [&] { return limiter.async_inspect(permit_key(limit), 0, token); };
    auto c = co_await insist<weir::permit_census>(p, census);
    while (c.in_use + c.waiting != 0 && boot_now() < until) {
      co_await p.pause(200ms);
      c = co_await insist<weir::permit_census>(p, census);
    }
    p.log.write({.kind = "census", .key = permit_key(limit), .n = c.in_use + c.waiting});
  }
  weir::uniqueness const once{p.at, {.ttl = lease, .poll = poll}};
  for (std::uint64_t i = 0; i != lock_keys; ++i) {
    auto look = [&] { return once.async_inspect(lock_key(i), token); };
    auto l = co_await insist<weir::lock_info>(p, look);
    while (l.held && boot_now() < until) {
      co_await p.pause(200ms);
      l = co_await insist<weir::lock_info>(p, look);
    }
    p.log.write({.kind = "census", .key = lock_key(i), .n = l.held ? 1 : 0});
  }
  for (std::size_t i = 0; i != quotas.size(); ++i) {  // a bucket gives again
    weir::rate_limiter const limiter{p.at, quotas[i]};
    auto take = [&] { return limiter.async_take(bucket_key(i), {.wait = 5s}, token); };
    auto const d = co_await insist<weir::decision>(p, take);
    p.log.write({.kind = "census", .key = bucket_key(i), .n = d.allowed ? 0 : 1});
  }
  std::ifstream in{p.given.jobs};
  for (std::string queue, id; in >> queue >> id;) {
    auto find = [&] {
      return queues.async_find(queue, boost::uuids::string_generator{}(id), token);
    };
    auto found = co_await insist<std::optional<weir::job>>(p, find);
    while (found && waits(found->state) && boot_now() < until) {  // of a queue of its own
      co_await p.pause(100ms);
      found = co_await insist<std::optional<weir::job>>(p, find);
    }
    p.log.write({.kind = "state",
                 .key = id,
                 .n = found ? found->attempts : 0,
                 .detail = found ? std::string{to_string(found->state)} : "absent"});
  }
  if (auto const box = open_outbox(p.given.at)) {
    for (auto const& id : box->rows()) p.log.write({.kind = "row", .key = id});
  }
  p.log.write({.kind = "inspected"});
}

}  // namespace soak
