// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_LIMIT_LINES_HPP
#define WEIR_WORKER_LIMIT_LINES_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/lease/pursuit.hpp"
#include "weir/limits.hpp"
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
#include <boost/unordered/unordered_flat_map.hpp>

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
#include <vector>

namespace weir::detail {

/// The concurrency limits that have refused this worker's jobs, and the jobs, which wait snoozed.
///
/// The worker stands in a limit's line once for all of them. Granted a permit, it brings the first
/// one forward, so no permit is idle while one waits, and none is claimed only to be refused again.
/// A job's snooze ends at about its turn, as far as that can be told: it needs nobody who remembers
/// it, after a crash or in another worker. The permit needs a free hand; the lines have every
/// other one that gets free, so that neither they nor new claims starve. A line that stands
/// without one and cannot use its turn gives way.
class limit_lines {
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
  /// that, two of them in a poll interval: nobody may remember it then, or its limit may have
  /// become faster.
  [[nodiscard]] duration refuse(active_job const& job) {
    auto const lease = core_->options.lease;
    auto const poll = core_->options.poll;
    auto const before = places_before(job);
    auto const turn = static_cast<duration::rep>(before) * apart(job);
    if (turn > 2 * poll) core_->refused(job);
    auto const spacing = std::min<duration>(poll / 2, std::chrono::hours{1});
    auto const far =
        std::min(turn - turn / 8, lease + static_cast<duration::rep>(before) * spacing);
    return std::min(std::max(std::min(turn + turn / 4 + std::min(poll, lease), lease), far),
                    limits::span);
  }

  /// A refused job was snoozed: it waits for its limit from here on.
  static void join(std::shared_ptr<limit_lines> const& self, std::string const& key,
                   std::uint32_t limit, active_job const& job) {
    auto& core = *self->core_;
    if (core.stopping || self->places_ == most_places) return;
    auto found = self->lines_.find(key);
    bool const is_new = found == self->lines_.end();
    auto const at = is_new ? std::make_shared<line>(core, key) : found->second;
    if (auto const known = at->known.find(job.job.id); known != at->known.end()) {
      known->second = {job.job.attempt, job.job.snoozes + 1};  // it has its place
      return;
    }
    auto const one = is_new ? std::make_shared<standing>(self, at) : nullptr;
    self->put({job.queue, job.job.id, limit, {job.job.attempt, job.job.snoozes + 1}}, *at,
              job.job.priority);
    if (!is_new) return;
    self->lines_.emplace(key, at);
    begin(one);
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
  /// Places that are looked at with one permit.
  static constexpr std::size_t most_tries = 100;
  /// A place that was empty so often is given up: its job has ended, or another one has it. Before
  /// that, its queue may have been held.
  static constexpr std::uint8_t most_misses = 3;

  /// Two numbers that change when others run the job, or move it.
  struct numbers {
    std::uint32_t attempt = 0;
    std::uint32_t snoozes = 0;
    bool operator==(numbers const&) const = default;
  };
  struct place {
    std::string queue;
    job_id id;
    std::uint32_t limit = 1;  ///< its own: the key's other jobs may have another
    numbers as_left;
    std::uint8_t misses = 0;
  };

  struct line {
    line(worker_core& core, std::string of)
        : key{std::move(of)},
          bell{std::make_shared<wakeup>(core.strand)},
          last_grant{core.clock.steady_now()} {}

    std::string const key;
    std::map<std::uint8_t, std::deque<place>> places;  ///< by priority, each in their order
    boost::unordered_flat_map<job_id, numbers, boost::hash<job_id>> known;  ///< of them
    std::shared_ptr<wakeup> const bell;
    boost::asio::cancellation_signal cancel;  ///< of the hint
    std::string holder;                       ///< of the place in the limit's line; empty: none
    std::string listener;                     ///< for which holder
    bool listening = false;
    bool has_hand = false;  ///< a reserved one
    std::uint32_t failures = 0;
    std::uint32_t gave_way = 0;  ///< so many turns, in a row, for want of a hand
    steady_time last_grant;
    duration apart = std::chrono::milliseconds{100};  ///< from grant to grant, about

    [[nodiscard]] std::uint32_t limit_of_first() const {
      return places.begin()->second.front().limit;
    }
  };

  /// The job's own one, too.
  [[nodiscard]] std::size_t places_before(active_job const& job) const {
    auto const found = lines_.find(job.prepared->concurrency_key);
    if (found == lines_.end()) return 0;
    std::size_t before = 1;
    for (auto const& [priority, places] : found->second->places) {
      if (priority > job.job.priority) break;
      before += places.size();
    }
    return before;
  }
  [[nodiscard]] duration apart(active_job const& job) const {
    static constexpr duration longest = std::chrono::hours{24};
    auto const found = lines_.find(job.prepared->concurrency_key);
    if (found == lines_.end()) return {};
    auto const& at = *found->second;
    return std::min(std::max(at.apart, saturating_sub(core_->clock.steady_now(), at.last_grant)),
                    longest);
  }

  static boost::asio::awaitable<void> stand(std::shared_ptr<limit_lines> self,
                                            std::shared_ptr<line> at) {
    auto& core = *self->core_;
    for (;;) {
      if (core.stopping || at->places.empty()) {
        self->return_hand(*at);
        co_await leave(*self, *at);
        if (core.stopping || at->places.empty()) co_return;
      }
      // It stands on without one: there may be one when its turn comes.
      at->has_hand = at->has_hand || core.reserve_hand();
      if (!at->has_hand && at->holder.empty()) {
        self->handless_.push_back(at);
        core.handless_lines = self->handless_.size();
        co_await at->bell->wait();
        if (!at->has_hand) std::erase(self->handless_, at);
        core.handless_lines = self->handless_.size();
        continue;
      }
      if (at->holder.empty()) {
        at->holder = core.holder + "/line/" + std::to_string(++self->permits_);
      }
      // Once: while the store fails, the hand is for others.
      auto const limit = at->limit_of_first();
      auto const patience = std::min(patience_for(core.options.poll), core.options.lease);
      auto const answer =
          co_await ask_for_permit(core, at->key, at->holder, limit, patience, steady_time::min());
      auto wait = std::min(core.options.poll, core.options.lease / 3);
      if (answer.granted && !core.stopping) {
        at->has_hand = at->has_hand || core.reserve_hand();
        if (!at->has_hand) {  // others may have the permit meanwhile
          ++at->gave_way;
          co_await leave(*self, *at);
          continue;
        }
        active_permit permit{at->key, std::exchange(at->holder, {}), answer.fence};
        if (co_await bring_forward(self, at, limit, std::move(permit), answer.deadline)) {
          at->failures = 0;
          continue;
        }
        if (at->places.empty()) continue;
        wait = core.pause_after(at->failures++, {});
      } else if (answer.granted) {
        continue;
      } else if (answer.error) {
        if (answer.error != condition::transient) core.tell_failure(answer.error);
        wait = core.pause_after(at->failures++, {});
      } else {
        if (core.store.has_hints()) {
          if (answer.retry_after > duration::zero()) wait = std::min(wait, answer.retry_after);
        } else {
          wait = std::min(core.pause_after(at->failures++, {}), core.options.poll / 16);
        }
        listen(self, at);
      }
      if (answer.error || answer.granted || !self->keeps_hand(*at)) self->return_hand(*at);
      co_await at->bell->wait_until(core.clock, saturating_add(core.clock.steady_now(), wait));
    }
  }

  /// Ends a line with its coroutine, which is destroyed where there is no memory to wake it.
  struct standing {
    standing(std::shared_ptr<limit_lines> l, std::shared_ptr<line> a) noexcept
        : self{std::move(l)},
          at{std::move(a)} {}
    standing(standing const&) = delete;
    standing& operator=(standing const&) = delete;
    ~standing() {
      gate_pass const inside{self->core_->bookkeeping->gate()};
      if (!inside) return;
      try {
        self->end(at);
      } catch (std::exception const&) {  // out of memory: its hand is free all the same
      }
    }

    std::shared_ptr<limit_lines> const self;
    std::shared_ptr<line> const at;
  };

  static void begin(std::shared_ptr<standing> const& one) {
    one->self->core_->begin(stand(one->self, one->at), [one](std::exception_ptr const& failed) {
      if (failed || one->self->core_->stopping || one->at->places.empty()) return;
      begin(one);
    });
  }

  /// If there was no memory for it, what waits comes back by itself.
  void end(std::shared_ptr<line> const& at) {
    for (auto const& [priority, places] : at->places) places_ -= places.size();
    lines_.erase(at->key);
    std::erase(handless_, at);
    core_->handless_lines = handless_.size();
    return_hand(*at);
    at->cancel.emit(boost::asio::cancellation_type::terminal);
    core_->changed->notify();
  }

  /// Gives up the worker's place in the limit's line.
  static boost::asio::awaitable<void> leave(limit_lines& self, line& at) {
    if (at.holder.empty()) co_return;
    co_await give_back_permit(*self.core_, {at.key, std::exchange(at.holder, {}), 0});
  }

  bool give_hand() {
    if (handless_.empty() || !core_->reserve_hand()) return false;
    auto const next = std::move(handless_.front());
    handless_.pop_front();
    core_->handless_lines = handless_.size();
    next->has_hand = true;
    next->bell->notify();
    return true;
  }
  void return_hand(line& at) {
    if (!std::exchange(at.has_hand, false)) return;
    if (keeper_ == &at) keeper_ = nullptr;
    bool const was_last = core_->free_hands() == 0 || !core_->may_run_another();
    core_->return_hand();
    if (was_last && !give_hand()) core_->free_a_hand();
  }

  /// A line whose turn has come twice, and there was no hand, keeps the one that it has until its
  /// next turn. One line does that at a time; and where there is no other hand, it is kept for a
  /// poll interval, and then the line gives way again.
  [[nodiscard]] bool keeps_hand(line& at) {
    if (!at.has_hand || at.gave_way < 2 || (keeper_ != nullptr && keeper_ != &at)) return false;
    auto const& options = core_->options;
    auto const now = core_->clock.steady_now();
    if (std::exchange(keeper_, &at) == nullptr) {
      kept_until_ =
          options.concurrency == 1 ? saturating_add(now, options.poll) : steady_time::max();
    }
    if (now < kept_until_) return true;
    at.gave_way = 0;
    return false;
  }

  /// The first job that still waits, and can start, gets the permit, and the hand. Those before it
  /// keep their turn: their entry has no room, or their queue fails.
  ///
  /// @param limit under which the permit was granted: jobs with a lower one must not use it
  /// @return was there one?
  static boost::asio::awaitable<bool> bring_forward(std::shared_ptr<limit_lines> self,
                                                    std::shared_ptr<line> at, std::uint32_t limit,
                                                    active_permit permit, steady_time deadline) {
    auto& core = *self->core_;
    auto const granted_at = core.clock.steady_now();
    auto const lease = core.options.lease;
    // By another name than that of the claims, which are numbered.
    auto const holder = core.holder + "/line";
    std::vector<std::pair<std::uint8_t, place>> aside;
    std::optional<active_permit> unused{std::move(permit)};
    for (auto left = std::min(at->known.size(), most_tries); left != 0 && !at->places.empty();
         --left) {
      if (core.clock.steady_now() >= saturating_add(granted_at, lease / 3)) break;
      if (at->limit_of_first() < limit) break;
      auto [priority, first] = self->pop(*at, aside.size());
      auto const by = core.due.bounded() ? core.due.of(first.queue) : turns::entry{};
      auto const* const failing = core.failure_of(first.queue);
      if (core.due.room_of(by) == 0 ||
          (failing != nullptr && core.clock.steady_now() < failing->until)) {
        aside.emplace_back(priority, std::move(first));
        continue;
      }
      turns::kept_room room{core.due, by, 1};
      question<command::obtain_lease> obtain{
          {.queue = first.queue, .id = first.id, .holder = holder, .lease = lease, .early = true}};
      co_await core.ask_once(obtain);
      if (obtain.error) {
        core.tell_failure(obtain.error, first.queue);
        aside.emplace_back(priority, std::move(first));  // asked again, it is the same lease
        continue;
      }
      if (!*obtain.answer) {
        if (++first.misses != most_misses) self->put(std::move(first), *at, priority);
        continue;
      }
      auto& leased = **obtain.answer;
      // Obtained by another place of it before: the answer is that lease.
      if (core.is_active(first.id, leased.fence)) continue;
      if (first.as_left != numbers{leased.attempt, leased.snoozes}) {
        // It was run, or snoozed, by somebody else, and waits for something else now.
        question<command::return_job> back{
            {.queue = first.queue, .id = first.id, .fence = leased.fence}};
        co_await core.ask(back, deadline);
        if (back.error) core.tell_failure(back.error, first.queue);
        continue;
      }
      at->apart += (saturating_sub(granted_at, at->last_grant) - at->apart) / 8;
      at->last_grant = granted_at;
      room.end();
      auto job = core.take_on(first.queue, std::move(leased), obtain.asked_at);
      job->permit = std::exchange(unused, std::nullopt);
      job->permit_deadline = deadline;
      job->renew_at = std::min(job->renew_at, saturating_add(granted_at, lease / 3));
      at->has_hand = false;
      at->gave_way = 0;
      if (self->keeper_ == at.get()) self->keeper_ = nullptr;
      core.return_hand();
      self->start_(job);
      break;
    }
    for (; !aside.empty(); aside.pop_back()) {
      self->put(std::move(aside.back().second), *at, aside.back().first, true);
    }
    if (!unused) co_return true;
    co_await give_back_permit(core, *std::exchange(unused, std::nullopt));
    co_return false;
  }

  /// Nothing is put back if the job has joined again meanwhile: it has its place.
  void put(place p, line& at, std::uint8_t priority, bool in_front = false) {
    if (!at.known.try_emplace(p.id, p.as_left).second) return;
    try {
      auto& places = at.places[priority];
      in_front ? places.push_front(std::move(p)) : places.push_back(std::move(p));
    } catch (...) {  // it comes back by itself
      at.known.erase(p.id);
      std::erase_if(at.places, [](auto const& of) { return of.second.empty(); });
      throw;
    }
    ++places_;
  }
  /// @param aside places that have been taken out and will be put back
  [[nodiscard]] std::pair<std::uint8_t, place> pop(line& at, std::size_t aside) {
    auto const best = at.places.begin();
    std::pair out{best->first, std::move(best->second.front())};
    best->second.pop_front();
    if (best->second.empty()) at.places.erase(best);
    if (auto const known = at.known.find(out.second.id); known != at.known.end()) {
      out.second.as_left = known->second;
      at.known.erase(known);
    }
    --places_;
    if (static_cast<duration::rep>(at.known.size() + aside) * at.apart < core_->options.poll) {
      core_->refuse_no_more(out.second.queue);  // others are to follow before the last one has gone
    }
    return out;
  }

  /// Asks to be told when the permit is free, where the store tells that.
  static void listen(std::shared_ptr<limit_lines> const& self, std::shared_ptr<line> const& at) {
    auto& core = *self->core_;
    if (!core.store.has_hints() || std::exchange(at->listening, true)) return;
    auto heard = [at](error_code ec, hint) {
      at->listening = false;
      if (!ec) at->bell->notify();
    };
    at->listener = at->holder;
    core.store.start(
        command::await_permit{at->key, at->listener},
        boost::asio::bind_cancellation_slot(
            at->cancel.slot(), boost::asio::bind_executor(core.strand, std::move(heard))));
  }

  std::shared_ptr<worker_core> core_;
  starter start_;
  std::map<std::string, std::shared_ptr<line>, std::less<>> lines_;
  std::deque<std::shared_ptr<line>> handless_;
  line const* keeper_ = nullptr;  ///< of a hand, until its turn comes
  steady_time kept_until_{};
  std::size_t places_ = 0;     ///< in all lines
  std::uint64_t permits_ = 0;  ///< asked for so far, each by a holder of its own
  bool lines_turn_ = true;
};

}  // namespace weir::detail

#endif
