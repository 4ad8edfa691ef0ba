// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_LIMIT_LINES_HPP
#define WEIR_WORKER_LIMIT_LINES_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/time.hpp"
#include "weir/worker/active_job.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/permit.hpp"
#include "weir/worker/wakeup.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// The concurrency limits that have refused this worker's jobs, and the jobs, which wait snoozed.
///
/// The worker stands in a limit's line once for all of them. Granted a permit, it brings the first
/// one forward, so no permit is idle while one waits, and none is claimed only to be refused again.
/// A job's snooze ends at about its turn, as far as that can be told: it needs nobody who remembers
/// it, after a crash or in another worker. The permit needs a free hand; the lines have every
/// other one that gets free, so that neither they nor new claims starve.
class limit_lines : public std::enable_shared_from_this<limit_lines> {
 public:
  using starter = std::function<void(std::shared_ptr<active_job> const&)>;

  explicit limit_lines(std::shared_ptr<worker_core> core) : core_{std::move(core)} {}

  /// @param start takes a job that was brought forward, with its permit
  void start_with(starter start) { start_ = std::move(start); }

  /// Are there jobs that wait for this limit? Another one would overtake them.
  [[nodiscard]] bool stands_in(std::string_view key) const { return lines_.contains(key); }

  /// How long a job that its limit has refused is to be snoozed.
  ///
  /// Its turn is guessed from how fast those before it come. A far one is looked at again before
  /// that, at seven eighths of its way: it is claimed a few times at most, however long it waits.
  [[nodiscard]] duration refuse(active_job const& job) {
    auto const lease = core_->options.lease;
    auto const poll = core_->options.poll;
    auto const turn = expected_turn(job);
    if (turn > 2 * poll) core_->refused(job);
    return std::max(std::min(turn + turn / 4 + std::min(poll, lease), lease),
                    std::min<duration>(turn - turn / 8, std::chrono::hours{1}));
  }

  /// A refused job was snoozed: it waits for its limit from here on.
  static void join(std::shared_ptr<limit_lines> const& self, std::string const& key,
                   std::uint32_t limit, active_job const& job) {
    auto& core = *self->core_;
    if (core.stopping || self->places_ == most_places) return;
    auto& at = self->lines_[key];
    bool const is_new = !at;
    if (is_new) at = std::make_shared<line>(core, key);
    at->limit = limit;
    if (!at->known.insert(job.job.id).second) return;
    at->places[job.job.priority].push_back({job.queue, job.job.id});
    ++self->places_;
    if (is_new) core.begin(stand(self, at));
  }

  /// This worker has given back a permit of the key.
  void freed(std::string_view key) {
    auto const found = lines_.find(key);
    if (found != lines_.end()) found->second->bell->notify();
  }

  /// A hand got free: it is claims' turn, or the lines'.
  void offer_hand() {
    lines_turn_ = !lines_turn_;
    if (lines_turn_) give_hand();
  }
  /// Nothing can be claimed now.
  void offer_all_hands() {
    while (give_hand()) {
    }
  }

  /// The worker stops: the lines are left.
  void stop() {
    for (auto const& [key, at] : lines_) at->bell->notify();
  }
  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }

 private:
  /// More jobs are not remembered, and come back by themselves when their snooze ends.
  static constexpr std::size_t most_places = 10'000;

  struct place {
    std::string queue;
    job_id id;
  };

  struct line {
    line(worker_core& core, std::string of)
        : key{std::move(of)},
          bell{std::make_shared<wakeup>(core.strand)},
          last_grant{core.clock.steady_now()} {}

    std::string const key;
    std::uint32_t limit = 1;
    std::map<std::uint8_t, std::deque<place>> places;  ///< by priority, each in their order
    boost::unordered_flat_set<job_id, boost::hash<job_id>> known;
    std::shared_ptr<wakeup> const bell;
    boost::asio::cancellation_signal cancel;  ///< of the hint
    std::string listener;                     ///< for which holder
    bool listening = false;
    bool has_hand = false;   ///< a reserved one
    bool has_place = false;  ///< in the limit's line
    std::uint64_t permits = 0;
    std::uint32_t failures = 0;
    steady_time last_grant;
    duration apart = std::chrono::milliseconds{100};  ///< from grant to grant, about
  };

  /// After how long it would be brought forward if those before it went on as they do.
  [[nodiscard]] duration expected_turn(active_job const& job) const {
    static constexpr duration longest = std::chrono::hours{24};
    auto const found = lines_.find(job.prepared->concurrency_key);
    if (found == lines_.end()) return {};
    auto const& at = *found->second;
    std::size_t before = 1;
    for (auto const& [priority, places] : at.places) {
      if (priority > job.job.priority) break;
      before += places.size();
    }
    auto const since = saturating_sub(core_->clock.steady_now(), at.last_grant);
    return static_cast<duration::rep>(before) * std::min(std::max(at.apart, since), longest);
  }

  static boost::asio::awaitable<void> stand(std::shared_ptr<limit_lines> self,
                                            std::shared_ptr<line> at) {
    auto& core = *self->core_;
    for (;;) {
      if (core.stopping || at->known.empty()) {
        self->return_hand(*at);
        co_await leave(*self, *at);
        if (core.stopping || at->known.empty()) break;
      }
      if (!at->has_hand && !core.reserve_hand()) {
        if (at->has_place) {  // others may have the permit meanwhile
          co_await leave(*self, *at);
          continue;
        }
        self->handless_.push_back(at);
        co_await at->bell->wait();
        if (!at->has_hand) std::erase(self->handless_, at);
        continue;
      }
      at->has_hand = true;
      auto const holder = core.holder + "/line/" + std::to_string(at->permits);
      auto const until = saturating_add(core.clock.steady_now(), core.options.lease);
      at->has_place = true;
      auto const answer =
          co_await ask_for_permit(core, at->key, holder, at->limit, core.options.lease, until);
      if (answer.granted) {
        at->has_place = false;
        ++at->permits;
        at->failures = 0;
        co_await bring_forward(self, at, {at->key, holder, answer.fence}, answer.deadline);
        continue;
      }
      self->return_hand(*at);
      auto wait = std::min(core.options.poll, core.options.lease / 3);
      if (answer.error) {
        core.tell_failure(answer.error);
        wait = core.pause_after(at->failures++, {});
      } else if (!core.store.has_hints()) {
        wait = std::min(core.pause_after(at->failures++, {}), core.options.poll / 16);
      } else if (answer.retry_after > duration::zero()) {
        wait = std::min(wait, answer.retry_after);
      }
      listen(self, at, holder);
      co_await at->bell->wait_until(core.clock, saturating_add(core.clock.steady_now(), wait));
    }
    at->cancel.emit(boost::asio::cancellation_type::terminal);
    self->places_ -= at->known.size();
    self->lines_.erase(at->key);
    core.changed->notify();
  }

  /// Gives up the worker's place in the limit's line.
  static boost::asio::awaitable<void> leave(limit_lines& self, line& at) {
    if (!std::exchange(at.has_place, false)) co_return;
    auto const holder = self.core_->holder + "/line/" + std::to_string(at.permits++);
    co_await give_back_permit(*self.core_, {at.key, holder, 0});
  }

  bool give_hand() {
    if (handless_.empty() || !core_->reserve_hand()) return false;
    auto const next = std::move(handless_.front());
    handless_.pop_front();
    next->has_hand = true;
    next->bell->notify();
    return true;
  }
  void return_hand(line& at) {
    if (!std::exchange(at.has_hand, false)) return;
    --core_->reserved;
    core_->changed->notify();
  }

  /// The first job that still waits gets the permit, and the hand.
  static boost::asio::awaitable<void> bring_forward(std::shared_ptr<limit_lines> self,
                                                    std::shared_ptr<line> at, active_permit permit,
                                                    steady_time deadline) {
    auto& core = *self->core_;
    auto const now = core.clock.steady_now();
    at->apart += (saturating_sub(now, at->last_grant) - at->apart) / 8;
    at->last_grant = now;
    // By another name than that of the claims, which are numbered.
    auto const holder = core.holder + "/line";
    while (auto const first = self->pop(*at)) {
      question<command::obtain_lease> obtain{{.queue = first->queue,
                                              .id = first->id,
                                              .holder = holder,
                                              .lease = core.options.lease,
                                              .early = true}};
      co_await core.ask(obtain, deadline);
      if (obtain.error) {
        core.tell_failure(obtain.error, first->queue);
        break;
      }
      if (!*obtain.answer) continue;  // it has ended, another one has it, or its queue is held
      auto job = core.take_on(first->queue, std::move(**obtain.answer), obtain.asked_at);
      job->permit = std::move(permit);
      job->permit_deadline = deadline;
      at->has_hand = false;
      --core.reserved;
      self->start_(job);
      co_return;
    }
    self->return_hand(*at);
    co_await give_back_permit(core, std::move(permit));
  }

  [[nodiscard]] std::optional<place> pop(line& at) {
    if (at.places.empty()) return std::nullopt;
    auto const best = at.places.begin();
    auto first = std::move(best->second.front());
    best->second.pop_front();
    if (best->second.empty()) at.places.erase(best);
    at.known.erase(first.id);
    --places_;
    if (static_cast<duration::rep>(at.known.size()) * at.apart < core_->options.poll) {
      core_->refuse_no_more(first.queue);  // others are to follow before the last one has gone
    }
    return first;
  }

  /// Asks to be told when the permit is free, where the store tells that.
  static void listen(std::shared_ptr<limit_lines> const& self, std::shared_ptr<line> const& at,
                     std::string_view holder) {
    auto& core = *self->core_;
    if (!core.store.has_hints() || std::exchange(at->listening, true)) return;
    auto heard = [at](error_code ec, hint) {
      at->listening = false;
      if (!ec) at->bell->notify();
    };
    at->listener = holder;
    core.store.start(
        command::await_permit{at->key, at->listener},
        boost::asio::bind_cancellation_slot(
            at->cancel.slot(), boost::asio::bind_executor(core.strand, std::move(heard))));
  }

  std::shared_ptr<worker_core> core_;
  starter start_;
  std::map<std::string, std::shared_ptr<line>, std::less<>> lines_;
  std::deque<std::shared_ptr<line>> handless_;
  std::size_t places_ = 0;  ///< in all lines
  bool lines_turn_ = true;
};

}  // namespace weir::detail

#endif
