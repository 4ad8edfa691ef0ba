// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/plan.hpp"
#include "soak/scenarios.hpp"
#include "soak/witness.hpp"
#include "weir/backoff/constant.hpp"
#include "weir/job_queue.hpp"
#include "weir/job_traits.hpp"
#include "weir/limiter.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/scheduler.hpp"
#include "weir/schedules.hpp"
#include "weir/testing/dice.hpp"
#include "weir/uniqueness.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>

// The processes of the application. Each does its work through the primitives, and writes down what
// it wants before and what it got after.
namespace asio = boost::asio;

namespace soak {

/// Work, of which some fails, some is put off, and some takes longer.
struct plain_job {
  std::uint32_t number = 0;
  std::string filling{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(plain_job, number, filling)

/// At most one of each name is waiting or running.
struct unique_job {
  std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(unique_job, name)

/// Three at once, thirty a second.
struct limited_job {
  std::uint32_t number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(limited_job, number)

/// What a schedule enqueues for each of its ticks.
struct tick_job {
  std::string schedule;
  std::string tick{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(tick_job, schedule, tick)

}  // namespace soak

// Records are kept, so that the auditor finds every job in its last state.
template <>
struct weir::job_traits<soak::plain_job> {
  static constexpr std::string_view kind = "plain";
  static constexpr std::uint32_t max_attempts = soak::max_attempts;
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = std::chrono::hours{24};
};
template <>
struct weir::job_traits<soak::unique_job> {
  static constexpr std::string_view kind = "unique";
  static constexpr std::string_view queue = "unique";
  static constexpr std::uint32_t max_attempts = soak::max_attempts;
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = std::chrono::hours{24};
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
  static std::string unique_key(soak::unique_job const& j) { return j.name; }
};
template <>
struct weir::job_traits<soak::limited_job> {
  static constexpr std::string_view kind = "limited";
  static constexpr std::string_view queue = "limited";
  static constexpr std::uint32_t max_attempts = soak::max_attempts;
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = std::chrono::hours{24};
  static constexpr std::uint32_t concurrency = 3;
  static constexpr weir::quota rate = weir::quota::per_second(30).burst(10);
};
template <>
struct weir::job_traits<soak::tick_job> {
  static constexpr std::string_view kind = "tick";
  static constexpr weir::constant_backoff backoff{std::chrono::milliseconds{100}};
  static constexpr weir::duration retention = std::chrono::hours{24};
};

namespace soak {
namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);
using weir::error_code;
using weir::testing::dice;
template <class T = void>
using awaitable = asio::awaitable<T>;

std::string text(weir::job_id id) { return boost::uuids::to_string(id); }

/// A process: its loop, its store, its log.
class process {
 public:
  explicit process(assignment a)
      : given{std::move(a)},
        log{given.log},
        at{open_store(io.get_executor(), given.at, given.defect)},
        chance{given.seed},
        end_{io, SIGTERM, SIGINT} {
    end_.async_wait([this](error_code, int) {
      ending = true;
      if (on_end) on_end();
    });
  }

  awaitable<> pause(weir::duration d) {
    asio::steady_timer timer{io, std::chrono::duration_cast<asio::steady_timer::duration>(d)};
    co_await timer.async_wait(token);
  }
  /// A time of the order of this, at random.
  awaitable<> think(std::chrono::milliseconds most) {
    co_await pause(std::chrono::milliseconds{
        static_cast<std::int64_t>(1 + chance.below(static_cast<std::uint64_t>(most.count())))});
    if (given.defect == "leak") hoard_.push_back(std::string(1U << 20U, 'x'));
  }
  /// Starts a client. The process ends when all of its clients have.
  void client(std::function<awaitable<>()> what) {
    ++clients_;
    asio::co_spawn(io, std::move(what), [this](std::exception_ptr e) {
      if (e) std::rethrow_exception(e);
      if (--clients_ == 0) {
        end_.cancel();
        at.close();
      }
    });
  }

  assignment given;
  witness log;
  asio::io_context io{1};
  store at;
  dice chance;
  bool ending = false;
  std::function<void()> on_end{};

 private:
  asio::signal_set end_;
  std::size_t clients_ = 0;
  std::vector<std::string> hoard_;
};

// ------------------------------------------------------------------------------ permits and locks

/// Holds for a while, now and then for longer than the lease, renewing or not; writes down how long
/// it believes to hold.
template <class Primitive, class Handle>
awaitable<> hold(process& p, Primitive const& primitive, std::string kind, std::string key,
                 std::uint64_t op, Handle handle) {
  auto const style = p.chance.below(20);
  if (style < 17) {
    co_await p.think(40ms);
  } else if (style < 19) {  // longer than the lease, and renews in time
    for (int i = 0; i != 4 && !p.ending; ++i) {
      co_await p.pause(lease / 3);
      auto const [ec, expiry] = co_await primitive.async_renew(handle, token);
      if (ec) break;
      p.log.write({.kind = "held", .op = op, .n = expiry.time_since_epoch().count()});
    }
  } else {  // longer than the lease, and does not know
    co_await p.pause(lease + lease / 4);
  }
  p.log.write({.kind = "drop", .op = op});
  auto const release = p.log.ask("release-" + kind, key, 0s);
  auto const [ec, freed] = co_await primitive.async_release(std::move(handle), token);
  p.log.end(release, ec ? word_of(ec) : freed ? "freed" : "late");
}

/// @param handle null: somebody else has it
void note_grant(process& p, std::uint64_t op, error_code ec, weir::lease const* handle) {
  if (ec || handle == nullptr) {
    p.log.end(op, ec ? word_of(ec) : "refused");
  } else {
    p.log.end(op, "granted", handle->fence(), handle->expires_at().time_since_epoch().count());
  }
}

awaitable<> permit_client(process& p) {
  while (!p.ending) {
    auto const limit = p.chance.pick(permit_limits);
    weir::limiter const limiter{p.at, {.limit = limit, .ttl = lease, .poll = poll}};
    auto const key = permit_key(limit);
    if (p.chance.chance(30)) {
      auto const op = p.log.ask("try-permit", key, 0s);
      auto [ec, some] = co_await limiter.async_try_acquire(key, token);
      note_grant(p, op, ec, some ? &*some : nullptr);
      if (some) co_await hold(p, limiter, "permit", key, op, std::move(*some));
    } else {
      auto const op = p.log.ask("permit", key, 2s);
      auto [ec, permit] = co_await limiter.async_acquire(key, {.wait = 2s}, token);
      note_grant(p, op, ec, &permit);
      if (!ec) co_await hold(p, limiter, "permit", key, op, std::move(permit));
    }
    co_await p.think(60ms);
  }
}

awaitable<> lock_client(process& p) {
  weir::uniqueness const once{p.at, {.ttl = lease, .poll = poll}};
  while (!p.ending) {
    auto const key = lock_key(p.chance.below(lock_keys));
    auto const kind = p.chance.below(10);
    if (kind < 2) {
      auto const name = claim_key(p.chance.below(lock_keys));
      auto const op = p.log.ask("claim", name, 0s);
      auto const [ec, first] = co_await once.async_claim(name, claim_ttl, token);
      p.log.end(op, ec ? word_of(ec) : first ? "granted" : "refused");
    } else if (kind < 7) {
      auto const op = p.log.ask("try-lock", key, 0s);
      auto [ec, some] = co_await once.async_try_lock(key, token);
      note_grant(p, op, ec, some ? &*some : nullptr);
      if (some) co_await hold(p, once, "lock", key, op, std::move(*some));
    } else {
      auto const op = p.log.ask("lock", key, 1s);
      auto [ec, lock] = co_await once.async_lock(key, {.wait = 1s}, token);
      note_grant(p, op, ec, &lock);
      if (!ec) co_await hold(p, once, "lock", key, op, std::move(lock));
    }
    co_await p.think(60ms);
  }
}

awaitable<> rate_client(process& p) {
  while (!p.ending) {
    auto const which = p.chance.below(quotas.size());
    weir::rate_limiter const limiter{p.at, quotas[which]};
    auto const key = bucket_key(which);
    auto const patience = p.chance.chance(30) ? weir::duration{500ms} : weir::duration{};
    auto const op = p.log.ask("take", key, patience);
    auto const [ec, d] = co_await limiter.async_take(key, {.wait = patience}, token);
    p.log.end(op, ec ? word_of(ec) : d.allowed ? "granted" : "refused");
    co_await p.think(50ms);
  }
}

// ------------------------------------------------------------------------------ jobs

template <class Job>
awaitable<> enqueue(process& p, weir::job_queue<store> const& queue, Job const& job, std::string to,
                    std::string unique, weir::duration delay) {
  std::array const ids{weir::id_source{}.job()};
  // An outcome that is not known may be asked for again: under the same id it is the same job.
  for (int attempt = 0; attempt != 3 && !p.ending; ++attempt) {
    auto const op = p.log.ask("enqueue", to, 0s,
                              text(ids[0]) + "," + unique + "," + std::to_string(ns_of(delay)));
    auto const [ec, done] =
        co_await queue.async_enqueue(job, {.delay = delay, .queue = to, .ids = ids}, token);
    if (ec) {
      p.log.end(op, word_of(ec));
    } else if (done.outcome == weir::enqueue_outcome::duplicate) {
      p.log.end(op, "duplicate," + text(done.other));
    } else {
      p.log.end(op, "enqueued");
    }
    if (ec != weir::errc::outcome_unknown || p.chance.chance(30)) co_return;
  }
}

awaitable<> enqueue_client(process& p) {
  weir::job_queue const queue{p.at};
  std::uint32_t number = 0;
  while (!p.ending) {
    ++number;
    auto const delay = p.chance.chance(20)
                           ? weir::duration{std::chrono::milliseconds{p.chance.below(1500)}}
                           : weir::duration{};
    auto const kind = p.chance.below(10);
    if (kind < 6) {
      auto const large = p.chance.chance(3) ? std::size_t{200'000} : std::size_t{20};
      plain_job const job{.number = number, .filling = std::string(large, 'x')};
      auto to = "plain-" + std::to_string(p.chance.below(plain_queues));
      co_await enqueue(p, queue, job, std::move(to), {}, delay);
    } else if (kind < 9) {
      unique_job const job{.name = "name-" + std::to_string(p.chance.below(unique_keys))};
      co_await enqueue(p, queue, job, "unique", job.name, delay);
    } else {
      limited_job const job{.number = number};
      co_await enqueue(p, queue, job, "limited", {}, delay);
    }
    co_await p.think(80ms);
  }
}

/// Says which checkpoint an attempt finds. They are instants, so that each is higher than all
/// before it. (Versions of weir without any are soaked without.)
template <class Context>
void note_checkpoint(process& p, Context const& job) {
  if constexpr (requires { job.last_checkpoint(); }) {
    std::string const found{job.last_checkpoint()};
    p.log.write({.kind = "found",
                 .key = text(job.id()),
                 .fence = job.fence(),
                 .n = found.empty() ? 0 : std::stoll(found)});
  }
}
/// Leaves one, and says so when it is acknowledged.
template <class Context>
awaitable<> leave_checkpoint(process& p, Context& job) {
  if constexpr (requires { job.async_checkpoint(std::string{}); }) {
    auto const now = boot_now();
    auto const [ec] = co_await job.async_checkpoint(std::to_string(now), token);
    if (ec) co_return;
    p.log.write({.kind = "kept", .key = text(job.id()), .fence = job.fence(), .n = now});
  }
  co_return;
}

/// What every handler does: a little, now and then badly.
awaitable<> handle(process& p, weir::job_context& job) {
  p.log.write({.kind = "run",
               .name = std::to_string(job.max_attempts()),
               .key = text(job.id()),
               .fence = job.fence(),
               .n = job.attempt(),
               .detail = std::string{job.queue()}});
  note_checkpoint(p, job);
  auto const fate = p.chance.below(100);
  if (p.chance.below(100) < 30) co_await leave_checkpoint(p, job);
  co_await p.pause(std::chrono::milliseconds{fate < 3 ? 4'000 : 1 + p.chance.below(15)});
  auto const ran = [&](char const* how) {
    p.log.write({.kind = "ran", .key = text(job.id()), .fence = job.fence(), .detail = how});
  };
  if (fate >= 96) {
    ran("gave-up");
    throw weir::give_up{"the handler gives up"};
  }
  if (fate >= 82) {
    ran("failed");
    throw std::runtime_error{"the handler fails"};
  }
  if (fate >= 77) {
    ran("snoozed");
    throw weir::snooze_for{100ms};
  }
  ran("ok");
}

// ------------------------------------------------------------------------------ schedules

/// Puts schedules again and again, as deploys do; now and then one whose jobs go to another queue.
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
    auto const op = p.log.ask("schedule", job.schedule, 0s, queue);
    auto const [ec, done] = co_await schedules.async_put(s, job, {.queue = queue}, token);
    p.log.end(op, ec ? word_of(ec) : std::string{to_string(done)});
    co_await p.think(2s);
  }
}

/// The record of a tick's job. Its instant is in whole seconds here, and so is its period.
record tick_record(tick_job const& job, weir::job_id id) {
  std::tm date{};
  ::strptime(job.tick.c_str(), "%Y-%m-%dT%H:%M:%SZ", &date);
  return {.kind = "tick",
          .name = job.schedule,
          .key = text(id),
          .n = ns_of(std::chrono::seconds{::timegm(&date)}),
          .detail = "0"};
}

void run_tick(process& p, tick_job const& job, weir::job_context& context) {
  auto r = tick_record(job, context.id());
  r.fence = context.fence();
  r.detail = std::to_string(weir::system_clock::system_now().time_since_epoch().count() - r.n);
  p.log.write(std::move(r));
}

void work(process& p, weir::worker<store>& worker) {
  auto const any = [&p](auto const&, weir::job_context& job) { return handle(p, job); };
  worker.handle<plain_job>(any).handle<unique_job>(any).handle<limited_job>(any).handle<tick_job>(
      [&p](tick_job const& job, weir::job_context& context) { run_tick(p, job, context); });
  worker.on_event([&p](weir::worker_event const& e) {
    using kind = weir::worker_event_kind;
    if (e.job == nullptr || e.job->kind == "tick") return;
    if (e.kind == kind::completed || e.kind == kind::result_dropped) {
      p.log.write({.kind = "completed", .key = text(e.job->id), .fence = e.job->fence});
    } else if (e.kind == kind::dead_lettered) {
      p.log.write({.kind = "dead", .key = text(e.job->id), .fence = e.job->fence});
    }
  });
  p.on_end = [&worker] { worker.stop(); };
}

/// Pauses, cancels, replays, purges. A paused queue goes on at the end, whatever happens.
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

// ------------------------------------------------------------------------------ the end

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

/// After the faults: waits until all has drained, then says in which state everything is.
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
    auto const found = co_await insist<std::optional<weir::job>>(p, find);
    p.log.write({.kind = "state",
                 .key = id,
                 .n = found ? found->attempts : 0,
                 .detail = found ? std::string{to_string(found->state)} : "absent"});
  }
  p.log.write({.kind = "inspected"});
}

}  // namespace

int play(assignment const& a) try {
  process p{a};
  std::optional<weir::worker<store>> worker;
  std::optional<weir::scheduler<store>> scheduler;
  auto const several = [&](int n, auto client) {
    for (int i = 0; i != n; ++i) p.client([&p, client] { return client(p); });
  };
  if (a.role == "limiter") {
    several(4, permit_client);
  } else if (a.role == "locker") {
    several(3, lock_client);
  } else if (a.role == "rater") {
    several(3, rate_client);
  } else if (a.role == "enqueuer") {
    several(2, enqueue_client);
  } else if (a.role == "administrator") {
    several(1, administrator);
  } else if (a.role == "inspector") {
    several(1, inspector);
  } else if (a.role == "worker") {
    worker.emplace(
        p.at, weir::worker_options{.concurrency = 10, .lease = lease, .poll = poll, .drain = 5s});
    work(p, *worker);
    p.client([&]() -> awaitable<> { co_await worker->async_run(token); });
  } else if (a.role == "scheduler") {
    scheduler.emplace(p.at, weir::worker_options{.lease = lease, .poll = poll, .drain = 5s});
    p.on_end = [&scheduler] { scheduler->stop(); };
    p.client([&]() -> awaitable<> { co_await scheduler->async_run(token); });
    several(1, deploys);
  } else if (a.role == "scenario") {
    p.client([&]() -> awaitable<> { co_await play_scenario(a, p.at, p.log); });
  } else {
    throw std::runtime_error{"no role is called " + a.role};
  }
  p.io.run();
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "weir_soak %s: %s\n", a.role.c_str(), e.what());
  return 1;
}

}  // namespace soak
