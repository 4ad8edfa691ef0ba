// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_LOOKOUT_HPP
#define WEIR_WORKER_LOOKOUT_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"
#include "weir/worker/claims.hpp"
#include "weir/worker/contention.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/logging.hpp"
#include "weir/worker/question.hpp"
#include "weir/worker/turns.hpp"
#include "weir/worker/wakeup.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// Finds the queues of a worker that are due: looks at the store's pointers, and listens for hints.
///
/// A look finds the queues of a shard that are due longest, or, every other time, from a random
/// instant on, so that no number of backlogged queues hides another (F39). A queue that is served
/// by name is asked for by name at each look: among many others it might be found late.
///
/// While a queue of a shard is due that this worker cannot claim from at the moment, every hint
/// would come at once and lead to nothing. Then it asks for no hints there, and looks ten times in
/// a poll interval.
class lookout : public std::enable_shared_from_this<lookout> {
 public:
  lookout(std::shared_ptr<worker_core> core, claims_under_way const& claims,
          contention const& others)
      : owner_{std::move(core)},
        core_{*owner_},
        claims_{claims},
        others_{others},
        in_turn_{core_.store.tells_in_turn() && core_.due.serves_all() && !core_.due.bounded()} {
    auto const all = std::max<std::uint32_t>(core_.store.shard_count(), 1);
    for (std::uint32_t shard = 0; shard != all; ++shard) {
      auto const& only = core_.options.shards;
      if (only.empty() || std::ranges::find(only, shard) != only.end()) {
        listeners_.emplace_back().shard = shard;
      }
    }
    for (auto const& [name, entry] : core_.due.names()) named_.emplace_back(name);
  }

  /// Looks, and makes what is due the next round, in random order. Gives the instant before which
  /// there will be nothing else, as far as the store knows.
  boost::asio::awaitable<steady_time> look() {
    heard_ = false;  // what was told of is found now
    others_are_due_ = false;
    co_await ask();

    findings found;
    found.at = core_.clock.steady_now();
    crowded_ = false;
    bool complete = true;
    for (auto& at : listeners_) {
      if (auto const scan = answer_of(at.scan)) {
        if (heed_scan(scan->what, at, found) == at.limit) crowded_ = true;
      } else if (at.scan) {
        at.in_vain = true;  // what it tells of is not found before it answers
        complete = false;
      }
    }
    std::vector<std::string const*> unasked;  // each has a claim under way, or had one
    for (auto& at : named_) {
      if (!at.vesting) unasked.push_back(&at.name);
      if (auto const vesting = answer_of(at.vesting)) {
        heed_vesting(vesting->what, at.name, found);
      } else if (at.vesting) {
        complete = false;
      }
    }
    for (auto const* const queue : unasked) {
      if (!claims_.contains(*queue) && claims_.is_deep(*queue)) add_once(*queue, found);
    }
    if (!admitted_ && found.refusal) problem_ = found.refusal;
    for (auto const& [queue, until] : core_.unanswered()) add_once(queue, found);
    for (auto& each : listeners_) heed_hint(each, found);
    if (!crowded_ && complete) core_.gives_way.looked();
    fill(found);
    co_return found.next;
  }

  /// Why the store refuses the worker whatever it asks, and however often, if it did from the
  /// beginning.
  [[nodiscard]] error_code problem() const noexcept { return problem_; }
  /// Was there a hint since the last look?
  [[nodiscard]] bool heard() const noexcept { return heard_; }
  void forget_hint() noexcept { heard_ = false; }
  /// Are queues due that this worker does not claim from now?
  [[nodiscard]] bool others_are_due() const noexcept { return others_are_due_; }

  /// Notes whether a claim found the queue paused or snoozed. The answer to a question by name does
  /// not tell that, so such a queue is left alone for a while, longer each time.
  void note_held(std::string const& queue, bool held) {
    if (!held) {
      if (!held_.empty()) held_.erase(queue);
    } else if (core_.due.names().contains(queue)) {
      auto& at = held_[queue];
      at.wait = std::min(std::max(2 * at.wait, core_.options.poll / 16), core_.options.poll);
      at.until = saturating_add(core_.clock.steady_now(), at.wait);
    }
  }

  /// Asks for a hint in each shard where none is asked for, if the store gives hints. It is called
  /// when the worker becomes idle: a hint that came while it was busy is asked for again then.
  void listen() {
    if (!core_.store.has_hints()) return;
    for (std::size_t i = 0; i != listeners_.size(); ++i) {
      auto& at = listeners_[i];
      if (at.in_vain || std::exchange(at.armed, true)) continue;
      // A store may look at the slot once more when all else is gone: its signal lives as long.
      auto heard = [weak = weak_from_this(), i, signal = at.cancel](error_code ec, hint) {
        auto const self = weak.lock();
        if (!self) return;
        self->listeners_[i].armed = false;
        if (ec) return;
        self->listeners_[i].heard = true;
        self->listeners_[i].told = self->in_turn_;
        self->heard_ = true;
        self->core_.changed->notify();
      };
      core_.store.start(
          command::await_jobs{at.shard, core_.fires_schedules, in_turn_},
          boost::asio::bind_cancellation_slot(
              at.cancel->slot(), boost::asio::bind_executor(core_.strand, std::move(heard))));
    }
  }
  /// No more can be claimed at the moment: where this worker was told in turn, and more is due,
  /// another one is told.
  void pass_on() {
    for (auto& at : listeners_) {
      if (!std::exchange(at.told, false)) continue;
      auto const pass = std::make_shared<question<command::scan_visible_queues>>(
          command::scan_visible_queues{.shard = at.shard,
                                       .limit = 1,
                                       .schedules = core_.fires_schedules,
                                       .turn = command::hint_turn::passed});
      pass->start(core_.store, core_.strand, [pass](error_code) {});
    }
  }
  void stop() {
    for (auto& at : listeners_) at.cancel->emit(boost::asio::cancellation_type::terminal);
  }

  boost::asio::awaitable<void> collect_pointers() {
    for (auto const& at : listeners_) {
      if (core_.stopping) co_return;
      question<command::gc_stale_pointers> collect{{.shard = at.shard}};
      co_await core_.ask_once(collect);
      if (collect.error) core_.tell_failure(collect.error);
      if (!core_.fires_schedules) co_await look_for_schedules(at.shard);
    }
  }

 private:
  /// A question, until a look heeds the answer.
  struct any_pending {
    virtual ~any_pending() = default;
    [[nodiscard]] virtual any_question& asked() noexcept = 0;

    bool answered = false;
    bool late = false;  ///< no look waits for it
  };
  template <class C>
  struct pending final : any_pending {
    explicit pending(C const& c) : what{c} {}
    [[nodiscard]] any_question& asked() noexcept override { return what; }

    question<C> what;
  };
  template <class C>
  using pending_ptr = std::shared_ptr<pending<C>>;

  struct named_queue {
    explicit named_queue(std::string const& n) noexcept : name{n} {}

    std::string const& name;
    pending_ptr<command::min_vesting_time> vesting{};
  };
  struct listener {
    std::uint32_t shard = 0;
    pending_ptr<command::scan_visible_queues> scan{};
    std::uint32_t limit = 0;  ///< of queues that it tells of
    std::shared_ptr<boost::asio::cancellation_signal> cancel =
        std::make_shared<boost::asio::cancellation_signal>();
    bool armed = false;
    bool heard = false;     ///< since the last look
    bool told = false;      ///< in turn, since the last `pass_on`
    std::uint8_t vain = 0;  ///< hints in a row that led to nothing
    bool in_vain = false;   ///< a queue is due that is not claimed from: a hint would come at once,
                            ///< again and again
  };

  struct findings {
    std::vector<turns::turn> queues;
    boost::unordered_flat_set<std::string> named;  ///< of them, those that are served by name
    bool claimable = false;                        ///< can anything be claimed?
    steady_time at = steady_time::min();           ///< when
    steady_time next = steady_time::max();  ///< nothing else before, as far as the store knows
    error_code refusal{};
  };
  struct hold {
    steady_time until = steady_time::min();
    duration wait{};
  };

  /// Asks all that has not been asked yet at the same time: a store that joins what it is asked
  /// together has one round trip of it. What is late is not waited for: a later look heeds it.
  boost::asio::awaitable<void> ask() {
    auto const all = what_to_ask();
    if (core_.store.executes_now()) {
      for (auto const& one : all) {
        co_await core_.ask_once(one->asked());
        one->answered = true;
      }
      co_return;
    }
    missing_ = all.size();
    for (auto const& one : all) {
      one->asked().start(core_.store, core_.strand, [self = shared_from_this(), one](error_code) {
        self->core_.heed(one->asked());
        one->answered = true;
        if (one->late) {
          self->core_.changed->notify();
        } else if (--self->missing_ == 0) {
          self->answered_->notify();
        }
      });
    }
    auto const until = saturating_add(core_.clock.steady_now(), claims_.patience());
    while (missing_ != 0 && core_.clock.steady_now() < until) {
      co_await answered_->wait_until(core_.clock, until);
    }
    for (auto const& one : all) one->late = !one->answered;
  }

  [[nodiscard]] std::vector<std::shared_ptr<any_pending>> what_to_ask() {
    std::vector<std::shared_ptr<any_pending>> out;
    if (core_.due.has_prefixes()) {
      constexpr std::uint64_t most = limits::batch;
      auto const wanted = std::uint64_t{core_.options.scan_limit} * others_.spread();
      auto const limit = static_cast<std::uint32_t>(std::min(wanted, most));
      bool const anywhere = std::exchange(look_anywhere_, false) || ++looks_ % 2 == 0;
      for (auto& at : listeners_) {
        if (at.scan) continue;
        at.limit = limit;
        at.scan =
            std::make_shared<pending<command::scan_visible_queues>>(command::scan_visible_queues{
                .shard = at.shard,
                .limit = limit,
                .entropy = anywhere ? core_.ids.entropy() | 1U : 0,
                .schedules = core_.fires_schedules,
                .turn = in_turn_ ? command::hint_turn::taken : command::hint_turn::none});
        out.push_back(at.scan);
      }
    }
    for (auto& at : named_) {
      if (at.vesting || claims_.contains(at.name)) continue;
      at.vesting = std::make_shared<pending<command::min_vesting_time>>(
          command::min_vesting_time{.queue = at.name});
      out.push_back(at.vesting);
    }
    return out;
  }
  /// The question, if it has been answered: the next look asks anew. Null: it has not.
  template <class C>
  [[nodiscard]] static pending_ptr<C> answer_of(pending_ptr<C>& at) noexcept {
    return at && at->answered ? std::exchange(at, nullptr) : nullptr;
  }

  /// @return how many queues the store has told of
  std::size_t heed_scan(question<command::scan_visible_queues>& answered, listener& at,
                        findings& found) {
    at.in_vain = bool{answered.error};
    if (!heed(answered.error, found)) return 0;
    auto& due = *answered.answer;
    if (found.queues.empty()) found.queues.reserve(due.queues.size());
    if (due.next_in) found.next = std::min(found.next, saturating_add(found.at, *due.next_in));
    for (auto& queue : due.queues) {
      if (!held_.empty()) held_.erase(queue);  // a queue that is held is not found
      if (!add(std::move(queue), found)) at.in_vain = true;
    }
    return due.queues.size();
  }
  void heed_vesting(question<command::min_vesting_time> const& answered, std::string const& name,
                    findings& found) {
    if (!heed(answered.error, found) || !*answered.answer) return;
    auto const due_at = saturating_add(found.at, **answered.answer);
    if (due_at <= found.at) {
      if (!found.named.contains(name)) add(std::string{name}, found);
    } else {
      found.next = std::min(found.next, due_at);
    }
  }
  /// @return is there an answer?
  [[nodiscard]] bool heed(error_code ec, findings& found) {
    if (!ec) {
      admitted_ = true;
    } else if (!admitted_ && is_for_good(ec)) {
      found.refusal = ec;
    } else {
      core_.tell_failure(ec);
    }
    return !ec;
  }
  [[nodiscard]] static bool is_for_good(error_code ec) noexcept {
    return ec == condition::bad_input || ec == errc::schema_outdated ||
           ec == errc::schema_too_new || ec == errc::store_foreign || ec == errc::store_evicts ||
           ec == errc::permission_denied;
  }

  /// A worker that serves some queues only is told of others', too.
  void heed_hint(listener& at, findings const& found) {
    constexpr std::uint8_t most = 4;
    bool const choosy = !core_.due.serves_all() || core_.due.bounded();
    if (found.claimable) {
      at.vain = 0;
    } else if (at.heard && at.vain != most) {
      ++at.vain;
    }
    at.heard = false;
    if (!core_.due.has_prefixes()) at.in_vain = false;  // no scan says it
    if (choosy && at.vain == most) at.in_vain = true;
    others_are_due_ = others_are_due_ || (choosy && at.in_vain);
  }

  /// A queue that is due: can it be claimed from now? If it only fails or is held, `next` is not
  /// later than when it can.
  bool add(std::string&& queue, findings& found) {
    auto const by = core_.due.of(queue);
    if (by == turns::nobody || claims_.contains(queue)) {
      others_are_due_ = true;
      return false;
    }
    auto at = core_.claimable_at(queue);
    if (auto const held = held_.find(queue); held != held_.end()) {
      at = std::max(at, held->second.until);
    }
    if (at > found.at) {
      found.next = std::min(found.next, at);
      return false;
    }
    bool const has_room = core_.due.room_of(by) != 0;
    others_are_due_ = others_are_due_ || !has_room;
    found.claimable = found.claimable || has_room;
    if (core_.due.names().contains(queue)) found.named.insert(queue);
    found.queues.emplace_back(std::move(queue), by);
    return has_room;
  }
  void add_once(std::string const& queue, findings& found) {
    auto const same = [&queue](auto const& turn) { return turn.queue == queue; };
    if (std::ranges::none_of(found.queues, same)) add(std::string{queue}, found);
  }

  void fill(findings& found) {
    look_anywhere_ = crowded_ && !found.claimable;
    auto& queues = found.queues;
    // Drawing from the source of ids for each would cost more than the claim's own steps.
    if (queues.size() > 1) std::ranges::shuffle(queues, std::minstd_rand{seed()});
    core_.due.clear();  // claims that ended meanwhile have put theirs in: they are found again
    // Of more than are wanted some are taken by chance.
    auto room =
        others_.spread() == 1 ? queues.size() : core_.options.scan_limit * listeners_.size();
    for (auto& turn : queues) {
      bool const is_named = found.named.contains(turn.queue);
      if (!is_named && room == 0) continue;
      if (!is_named) --room;
      core_.due.add(std::move(turn.queue), turn.by);
    }
  }

  [[nodiscard]] std::minstd_rand::result_type seed() {
    return static_cast<std::minstd_rand::result_type>(core_.ids.entropy());
  }

  /// A worker fires no schedules; but it says so if nobody else does.
  boost::asio::awaitable<void> look_for_schedules(std::uint32_t shard) {
    question<command::scan_visible_queues> look{{.shard = shard, .limit = 1, .schedules = true}};
    co_await core_.ask_once(look);
    if (look.error || look.answer->queues.empty()) co_return;
    auto const queue = look.answer->queues.front();
    question<command::update_queue_pointer> since{{.queue = queue}};  // it may be early
    co_await core_.ask_once(since);
    if (!since.error && *since.answer) log_unfired_schedules(queue, -**since.answer);
  }

  std::shared_ptr<worker_core> owner_;  ///< keeps the core alive while a hint is handled
  worker_core& core_;
  claims_under_way const& claims_;
  contention const& others_;
  bool const in_turn_;  ///< it claims whatever is due, so one worker that is told will do
  std::deque<listener> listeners_;
  std::vector<named_queue> named_;
  std::size_t missing_ = 0;  ///< answers that the look under way waits for
  std::shared_ptr<wakeup> answered_ = std::make_shared<wakeup>(core_.strand);
  std::map<std::string, hold> held_;
  std::uint64_t looks_ = 0;
  bool look_anywhere_ = false;   ///< the next time, too
  bool crowded_ = false;         ///< the last look did not find all there is
  bool heard_ = false;           ///< there was a hint since
  bool others_are_due_ = false;  ///< queues that this worker does not claim from now
  bool admitted_ = false;        ///< a look was answered
  error_code problem_{};
};

}  // namespace weir::detail

#endif
