// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/process.hpp"
#include "weir/enqueue.hpp"
#include "weir/id_source.hpp"
#include "weir/job_queue.hpp"
#include "weir/worker.hpp"

#include <array>
#include <memory>
#include <stdexcept>

namespace soak {

namespace {

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

}  // namespace

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
      auto const large = p.chance.chance(3)         ? std::size_t{200'000}
                         : p.chance.below(200) == 0 ? largest
                                                    : std::size_t{20};
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

awaitable<> sprawl_client(process& p) {
  weir::job_queue const queue{p.at};
  auto const name = "sprawl-" + std::to_string(p.chance.bits()) + "-";
  for (std::uint32_t i = 0; i != sprawl_queues && !p.ending; ++i) {
    co_await enqueue(p, queue, plain_job{.number = i}, name + std::to_string(i), {}, {});
  }
  while (!p.ending) co_await p.pause(50ms);
}

std::unique_ptr<outbox> open_outbox(opening const& o) {
  if (o.url.starts_with("sqlite:")) return open_sqlite_outbox(o);
  if (o.url.starts_with("postgres")) return open_postgres_outbox(o);
  return {};
}

awaitable<> outbox_client(process& p) {
  // The store's tables are there before the application's own connection uses them.
  weir::job_queue const queue{p.at};
  while (!p.ending) {
    auto const [ec, stats] = co_await queue.async_stats("outbox", token);
    if (!ec) break;
    co_await p.pause(100ms);
  }
  auto const box = open_outbox(p.given.at);
  if (!box) co_return;
  for (std::uint32_t n = 0; !p.ending; ++n) {
    std::array const ids{weir::id_source{}.job()};
    bool const commits = !p.chance.chance(20);
    auto const op = p.log.ask("enqueue", "outbox", 20s, text(ids[0]) + ",,0");
    if (!box->begin()) {
      p.log.end(op, "store_unavailable");
    } else {
      auto const done =
          weir::enqueue(*box, plain_job{.number = n}, {.queue = "outbox", .ids = ids});
      co_await p.think(20ms);  // as an application does something else
      auto const end = box->end(commits && done.has_value());
      p.log.end(op, end == outbox::outcome::committed     ? "enqueued"
                    : end == outbox::outcome::rolled_back ? "rolled_back"
                                                          : "outcome_unknown");
    }
    co_await p.think(60ms);
  }
}

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

}  // namespace soak
