// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_GATE_HPP
#define WEIR_WORKER_GATE_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/key_policy.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/limit_lines.hpp"
#include "weir/worker/memo.hpp"
#include "weir/worker/permit.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Why a job was refused, for observers.
[[nodiscard]] constexpr std::string_view reason_of(refusing_policy p) noexcept {
  switch (p) {
    case refusing_policy::none: break;
    case refusing_policy::unique: return "its unique key is taken";
    case refusing_policy::concurrency: return "its concurrency limit is reached";
    case refusing_policy::rate: return "its rate is used up";
  }
  return {};
}

/// What a job's policies say about starting it now.
struct gate_answer {
  enum class verdict : std::uint8_t {
    run,
    snooze,        ///< the job waits for `delay`, with `memo` noted on it
    snooze_queue,  ///< its whole queue waits for `delay`
    line,          ///< it waits in its limit's line, with `memo` noted on it
    lost,          ///< its lease is over
    fail,          ///< a command failed: the attempt has, too
    bury,          ///< it can never be allowed
  };

  gate_answer() = default;
  explicit gate_answer(verdict v, duration d = {}, std::string t = {},
                       refusing_policy b = refusing_policy::none)
      : what{v},
        delay{d},
        text{std::move(t)},
        by{b} {}

  verdict what = verdict::run;
  duration delay{};
  std::string text;                            ///< snooze: the memo; fail and bury: the reason
  refusing_policy by = refusing_policy::none;  ///< snooze, snooze_queue and line
};

/// Asks a job's policies in their order: unique → concurrency → rate. It holds nothing while
/// waiting: a refusal gives back what was taken before it, and tokens are taken last, for a job
/// that has all else (F55).
///
/// A job that the rate refuses reserves its tokens ahead, notes that on itself, and comes back at
/// its own instant, so that fresh arrivals do not overtake it for ever. The note holds for this
/// attempt only.
class gate {
 public:
  gate(std::shared_ptr<worker_core> core, std::shared_ptr<limit_lines> lines)
      : core_{std::move(core)},
        lines_{std::move(lines)} {}

  boost::asio::awaitable<gate_answer> pass(std::shared_ptr<active_job> job) {
    using verdict = gate_answer::verdict;
    auto& core = *core_;

    if (needs_start(job->job.strategy)) {
      question<command::start_job> start{
          {.queue = job->queue, .id = job->job.id, .fence = job->job.fence}};
      co_await core.ask(start, job->deadline);
      if (start.error == condition::transient) co_return unanswered(*job);
      if (start.error) co_return failure(start.error);
      if (start.answer->outcome == start_outcome::blocked) {
        co_return refused(*job, start.answer->retry_after, refusing_policy::unique);
      }
    }

    if (job->prepared->concurrency != 0) {
      auto answer = co_await enter(job);
      if (answer.what != verdict::run) co_return answer;
    }

    // A worker that stops starts no job, and would spend them for nothing.
    if (!core.stopping && !job->prepared->rate.empty() && !has_reserved(*job)) {
      auto answer = co_await pay(job);
      if (answer.what != verdict::run) {
        co_await leave(job);
        co_return answer;
      }
    }
    co_return gate_answer{};
  }

  /// The memo by which its claim after a snooze finds what was reserved for this one; empty:
  /// nothing was.
  [[nodiscard]] static std::string kept(active_job const& job) {
    return has_reserved(job) ? reservation(job) : std::string{};
  }

  /// Gives back the permit, if it has one.
  boost::asio::awaitable<void> leave(std::shared_ptr<active_job> job) {
    if (!job->permit) co_return;
    active_permit permit = *std::exchange(job->permit, std::nullopt);
    job->permit_deadline = steady_time::max();
    std::string const key = permit.key;
    co_await give_back_permit(*core_, std::move(permit));
    lines_->freed(key);
  }

 private:
  /// Takes a permit, unless the job was brought forward with one.
  boost::asio::awaitable<gate_answer> enter(std::shared_ptr<active_job> job) {
    using verdict = gate_answer::verdict;
    auto const& wanted = *job->prepared;
    if (job->permit && job->permit->key == wanted.concurrency_key) co_return gate_answer{};
    co_await leave(job);
    bool const whole_queue = wanted.concurrency_scope == limit_scope::queue;
    if (!whole_queue && lines_->stands_in(wanted.concurrency_key)) {
      co_return in_line(*job);
    }
    std::string const holder = to_string(job->job.id) + '/' + std::to_string(job->job.fence);
    auto const answer = co_await ask_for_permit(*core_, wanted.concurrency_key, holder,
                                                wanted.concurrency, {}, job->deadline);
    // With an unknown outcome the holder may have one, which nobody would give back; whatever was
    // answered to the requests after that.
    if (answer.fence != 0 || answer.in_doubt) {
      job->permit = active_permit{wanted.concurrency_key, holder, answer.fence};
    }
    if (answer.error) {
      co_await leave(job);
      if (answer.error == condition::transient) co_return unanswered(*job);
      co_return failure(answer.error);
    }
    if (answer.granted) {
      job->permit_deadline = answer.deadline;
      co_return gate_answer{};
    }
    if (whole_queue) {
      co_return gate_answer{
          verdict::snooze_queue, pause(*job, answer.retry_after), {}, refusing_policy::concurrency};
    }
    co_return in_line(*job);
  }

  /// Takes the job's tokens, or reserves them.
  boost::asio::awaitable<gate_answer> pay(std::shared_ptr<active_job> job) {
    using verdict = gate_answer::verdict;
    auto& core = *core_;
    bool const whole_queue = job->prepared->rate_scope == limit_scope::queue;
    sha256_key const digest;
    auto const key = digest(job->prepared->rate_key);
    question<command::take> take{
        {.key = key.view(),
         .quotas = job->prepared->rate,
         .cost = job->prepared->rate_cost,
         .max_wait = whole_queue ? duration{} : core.options.max_reservation}};
    co_await core.ask_once(take);
    if (auto const ec = take.error) {
      // An unknown outcome counts as spent; asking again later costs at most the same again.
      if (ec == condition::transient) co_return unanswered(*job);
      if (ec == condition::bad_input) co_return gate_answer{verdict::bury, {}, ec.message()};
      co_return gate_answer{verdict::fail, {}, ec.message()};
    }
    auto const& decision = *take.answer;
    // A worker that stops meanwhile does not start it: its next claim has the tokens. Where the
    // limit is the whole queue's they are lost, since a snoozed job loses its place there.
    bool const starts = decision.wait <= duration::zero() && (!core.stopping || whole_queue);
    if (decision.allowed && starts) co_return gate_answer{};
    if (decision.allowed) {
      co_return gate_answer{verdict::snooze, decision.wait, reservation(*job),
                            refusing_policy::rate};
    }
    auto delay = std::max(decision.retry_after, duration{std::chrono::milliseconds{1}});
    // All tokens are reserved as far ahead as they may be. Jobs that came back for the next token
    // would come back for each one, and all but one of them in vain (F73).
    if (!whole_queue) {
      auto const half = core.options.max_reservation / 2;
      delay = std::max(delay, half + part_of(half, core.ids.entropy()));
    }
    co_return gate_answer{
        whole_queue ? verdict::snooze_queue : verdict::snooze, delay, {}, refusing_policy::rate};
  }

  [[nodiscard]] static gate_answer failure(error_code ec) {
    using verdict = gate_answer::verdict;
    if (ec == errc::lease_lost) return gate_answer{verdict::lost};
    if (ec == condition::bad_input) return gate_answer{verdict::bury, {}, ec.message()};
    return gate_answer{verdict::fail, {}, ec.message()};
  }

  /// A refusal keeps a reservation that was made before it: its tokens are spent.
  [[nodiscard]] gate_answer refused(active_job const& job, duration retry_after,
                                    refusing_policy by) {
    return gate_answer{gate_answer::verdict::snooze, pause(job, retry_after), kept(job), by};
  }
  /// The store fails: no limit has refused the job, and no attempt is spent, since it has not been
  /// tried (F33).
  [[nodiscard]] gate_answer unanswered(active_job const& job) {
    return refused(job, {}, refusing_policy::none);
  }
  [[nodiscard]] static gate_answer in_line(active_job const& job) {
    return gate_answer{gate_answer::verdict::line, {}, kept(job), refusing_policy::concurrency};
  }

  /// By backoff, so that the refused spread out; no longer than the other's lease lasts, and never
  /// not at all.
  [[nodiscard]] duration pause(active_job const& job, duration retry_after) {
    auto const wait = core_->pause_after(job.job.snoozes, {});
    return retry_after > duration::zero() ? std::min(wait, retry_after) : wait;
  }

  [[nodiscard]] static bool has_reserved(active_job const& job) {
    return job.job.memo == reservation_memo(job.job.attempt, job.job.snoozes);
  }
  /// For its claim after this snooze.
  [[nodiscard]] static std::string reservation(active_job const& job) {
    return reservation_memo(job.job.attempt, job.job.snoozes + 1);
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<limit_lines> lines_;
};

}  // namespace weir::detail

#endif
