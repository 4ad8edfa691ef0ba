// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_ROWS_HPP
#define WEIR_TABLE_JOB_ROWS_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_holders.hpp"
#include "weir/table/job_keys.hpp"
#include "weir/table/job_pointers.hpp"
#include "weir/table/job_queue.hpp"
#include "weir/table/job_record.hpp"
#include "weir/table/queue_registry.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The rows of one shard in memory, for `rule::job_machine`, which says what each function is for.
template <class>
class basic_table_rows {
 public:
  using queue = memory_queue;
  using record = job_record;
  using row = job_record*;

  basic_table_rows(job_allowance allowance, std::size_t remembered)
      : common{.allowance = allowance},
        queues{remembered} {}
  basic_table_rows(basic_table_rows const&) = delete;
  basic_table_rows& operator=(basic_table_rows const&) = delete;
  ~basic_table_rows() {  // nothing may be in an order when it is destroyed
    scans.of_jobs.clear();
    scans.of_schedules.clear();
    common.kept.clear();
    common.expiring.clear();
  }

  // --------------------------------------------------------------------------------------- queues

  [[nodiscard]] queue* find_queue(std::string_view name) noexcept { return queues.find(name); }
  [[nodiscard]] queue& make_queue(std::string_view name) { return queues.make(name); }
  [[nodiscard]] queue* hold(std::string_view name, time_point now) {
    return queues.hold(name, now, scans);
  }

  template <class Step>
  auto within(queue& q, time_point, Step&& step) {
    // Whatever the step throws, its queue is listed as what it has become.
    struct settling {
      queue_registry& queues;
      queue& q;
      ~settling() { queues.settle(q); }
    } const at_end{queues, q};
    return step(q);
  }

  void place(queue& q, time_point now) noexcept { scans.of(q).place(q, now); }
  void no_later_than(queue& q, time_point vesting, time_point now) noexcept {
    scans.of(q).no_later_than(q, vesting, now);
  }
  void set_pointer(queue& q, std::optional<time_point> pointer, time_point now) noexcept {
    scans.of(q).set(q, pointer, now);
  }

  // --------------------------------------------------------------------------------------- shards

  /// It knows of no others.
  [[nodiscard]] static bool has_shard(std::uint32_t) noexcept { return true; }
  [[nodiscard]] static bool together(std::string_view, std::string_view) noexcept { return true; }

  [[nodiscard]] std::optional<time_point> longest_due(std::uint32_t, bool schedules) noexcept {
    auto& pointers = scans.of(schedules);
    if (pointers.begin() == pointers.end()) return std::nullopt;
    return pointers.begin()->due;
  }
  template <class F>
  void each_due(std::uint32_t, bool schedules, time_point from, time_point to, std::size_t, F&& f) {
    auto& pointers = scans.of(schedules);
    for (auto it = pointers.from(from); it != pointers.end() && it->due < to; ++it) {
      if (!f(it->name, it->due)) return;
    }
  }
  template <class F>
  void each_name(command::list_queues const& c, F&& f) const {
    queues.each_after(c.cursor, f);
  }
  std::uint32_t collect_pointers(command::gc_stale_pointers const& c, time_point now) {
    tidy(now, c.limit);
    std::uint32_t deleted = 0;
    for (auto* const pointers : {&scans.of_jobs, &scans.of_schedules}) {
      for (auto it = pointers->begin(); it != pointers->end() && deleted < c.limit;) {
        auto& q = static_cast<queue&>(*it++);
        if (!rule::pointer_stale(q.due, true, c.grace, now)) break;  // nor is any after it
        if (!q.index.empty()) continue;
        pointers->set(q, std::nullopt, now);
        if (q.jobless()) q.shrink();
        ++deleted;
      }
    }
    return deleted;
  }
  [[nodiscard]] std::uint64_t& last_fence() noexcept { return common.last_fence; }

  // --------------------------------------------------------------------------------- rows of jobs

  [[nodiscard]] static row find(queue& q, job_id const& id, time_point now) noexcept {
    auto* const r = q.records.find(id);
    return r == nullptr || r->gone(now) ? nullptr : r;
  }
  [[nodiscard]] static row find_whole(queue& q, job_id const& id, time_point now) noexcept {
    return find(q, id, now);
  }
  [[nodiscard]] static bool known(queue& q, job_id const& id, time_point now) noexcept {
    return find(q, id, now) != nullptr;
  }
  template <class Job, class F>
  static void each(queue& q, std::span<Job const> jobs, time_point now, F&& f) {
    for (auto const& j : jobs) f(j, find(q, j.id, now), false);
  }

  template <class F>
  static bool each_after(queue& q, job_id const& id, std::size_t most, job_state, F&& f) {
    return q.records.each_after(id, [&](record& r) { return most-- != 0 && f(r.id, &r); });
  }

  class loan;

  bool add(queue& q, new_job const& j, time_point now, loan& room) {
    if (auto* const known = q.records.find(j.id)) {
      if (!known->gone(now)) return false;
      unretire(q, *known);
      erase(q, *known);
    }
    prepare(q, j.priority);
    auto made = room.take_made(j);
    if (!made.record) made.record = make_record(j, now, q);
    auto& r = *made.record;
    if (holds_while_waiting(j.strategy)) {
      q.keys.hold(common, r.unique_key(), q, r.id, rule::key_expiry(j.strategy, j.unique_ttl, now),
                  std::move(made.key));
    }
    q.records.add(std::move(made.record));
    put(q, r);
    return true;
  }

  static void prepare(queue& q, std::uint8_t priority) { q.index.prepare(priority); }
  static void lift(queue& q, record& r) noexcept { q.index.erase(r); }
  static void put(queue& q, record& r) noexcept { q.index.insert(r); }
  static void extend(queue& q, record& r, time_point vesting) noexcept {
    lift(q, r);
    r.vesting = vesting;
    put(q, r);
  }
  void retire(queue& q, record& r) noexcept {
    if (r.ended == job_state::dead) {
      q.dead.insert(q.dead.end(), r);
    } else {
      common.kept.insert(common.kept.end(), r);
    }
  }
  void unretire(queue& q, record& r) noexcept {
    if (r.ended == job_state::dead) {
      q.dead.erase(q.dead.iterator_to(r));
    } else {
      common.kept.erase(common.kept.iterator_to(r));
    }
  }
  void erase(queue& q, record& r) noexcept {
    q.records.remove(r);
    common.allowance.give(1);
  }

  // ------------------------------------------------------------------------------- orders of jobs

  [[nodiscard]] static std::optional<time_point> min_vesting(queue const& q, time_point) noexcept {
    return q.index.min_vesting();
  }
  template <class F>
  static void each_visible(queue& q, std::size_t, time_point now, F&& f) {
    std::uint8_t level = 0;  // what is leased cannot make an earlier level due
    while (auto* const r = q.index.first_visible(now, level)) {
      level = r->priority;
      if (f(r) == 0) return;
    }
  }
  template <class F>
  static void peek(queue const& q, std::size_t, time_point now, F&& f) {
    q.index.for_each_visible(now, f);
  }
  template <class F>
  static bool each_dead(queue const& q, std::uint64_t after, std::size_t, F&& f) {
    for (auto it = q.dead.upper_bound(after); it != q.dead.end(); ++it) {
      if (!f(it->death, &*it)) return true;
    }
    return false;
  }
  [[nodiscard]] static std::size_t waiting(queue const& q) noexcept { return q.index.size(); }
  [[nodiscard]] static std::size_t leased(queue const& q, time_point now) noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        q.claimed, [&](record const& r) { return r.state(now) == job_state::leased; }));
  }
  [[nodiscard]] static std::size_t dead(queue const& q) noexcept { return q.dead.size(); }

  // ------------------------------------------------------------------- keys, run locks and holders

  [[nodiscard]] static bool possessor(queue& q, std::string_view key, time_point now, job_id& id,
                                      row& job) noexcept {
    auto const* const k = q.keys.find(key, now);
    if (k == nullptr) return false;
    id = k->owner;
    job = find(q, id, now);
    return true;
  }
  [[nodiscard]] static bool key_taken(queue const& q, record const& r, time_point now) noexcept {
    return q.keys.find(r.unique_key(), now) != nullptr;
  }
  void hold_key(queue& q, record const& r) {
    q.keys.hold(common, r.unique_key(), q, r.id, time_point::max());
  }
  void free_key(queue& q, record const& r) noexcept { q.keys.free(common, r.unique_key(), r.id); }

  struct run_lock_of {
    bool own = false;
    record const* other = nullptr;
  };
  [[nodiscard]] static run_lock_of run_lock(queue& q, record const& r, time_point now) noexcept {
    auto const* const runner = q.locks.find(r.unique_key());
    if (runner == &r) return {.own = true};
    bool const runs = runner != nullptr && runner->state(now) == job_state::leased;
    return {.other = runs ? runner : nullptr};
  }
  static void take_run(queue& q, record& r) { q.locks.take(r); }
  static void free_run(queue& q, record const& r) noexcept { q.locks.free(r); }

  struct claimant {
    job_holder* known;  ///< null: it is new, or forgotten
    std::string_view name;
  };
  [[nodiscard]] static claimant claimant_of(queue& q, std::string_view name) noexcept {
    return {q.holders.find(name), name};
  }
  static void prepare_claim(queue& q, claimant& by, std::uint64_t sequence, job_id const& id,
                            std::uint64_t fence) {
    if (by.known == nullptr) by.known = &q.holders.obtain(by.name);
    by.known->remember(sequence, id, fence);
  }
  static void hand_to(queue& q, record& r, claimant const& by, std::uint64_t) noexcept {
    q.holders.add_lease(*by.known);
    if (r.claimed()) let_go(q, r);
    r.holder = by.known;
    q.claimed.push_back(r);
  }
  static void let_go(queue& q, record& r) noexcept {
    q.claimed.erase(q.claimed.iterator_to(r));
    auto& holder = *std::exchange(r.holder, nullptr);
    q.holders.remove_lease(holder, [&](job_holder::grant const& g) {
      auto const* const still = q.records.find(g.id);
      return still != nullptr && still->holder == &holder && still->fence == g.fence;
    });
  }
  template <class F>
  static void each_remembered(queue& q, claimant const& by, std::uint64_t sequence, time_point now,
                              F&& f) {
    if (by.known == nullptr || !rule::repeats_dequeue(by.known->sequence, sequence)) return;
    for (auto const& g : by.known->latest) {
      auto* const r = find(q, g.id, now);
      if (r != nullptr && rule::has_job_lease(r->state(now), r->fence, g.fence)) f(*r);
    }
  }
  static void forget_dequeue(queue&, claimant const& by) noexcept {
    if (by.known != nullptr) by.known->forget();
  }

  // ------------------------------------------------------------------------------- room and
  // tidying

  /// What was taken from the allowance and not used goes back.
  class loan {
    struct parts {
      new_job const* of = nullptr;
      job_record::owner record{};
      std::unique_ptr<enqueue_key> key{};
    };

   public:
    explicit loan(basic_table_rows& rows) noexcept : from_{rows.common.allowance} {}
    loan(loan const&) = delete;
    loan& operator=(loan const&) = delete;
    ~loan() { from_.give(left_); }
    [[nodiscard]] bool take(std::size_t n) noexcept {
      if (!from_.take(n)) return false;
      left_ = n;
      return true;
    }
    /// More than was taken is used where a job of a batch has replaced one that was to be there.
    void use(std::size_t n) noexcept {
      auto const own = std::min(left_, n);
      left_ -= own;
      from_.owe(n - own);
    }

    /// Allocates all that adding the jobs will, if they are added in this order.
    void provide(queue& q, std::span<new_job const> jobs, time_point now) {
      if (jobs.empty()) return;
      auto all = std::make_unique<stock>(q);
      all->made.reserve(jobs.size());
      std::size_t keys = 0;
      for (auto const& j : jobs) {
        prepare(q, j.priority);
        all->made.push_back({&j, make_record(j, now, q)});
        if (!holds_while_waiting(j.strategy)) continue;
        all->made.back().key = std::make_unique<enqueue_key>(j.unique_key, q);
        ++keys;
        job_id id{};
        row by = nullptr;
        if (possessor(q, j.unique_key, now, id, by) && by != nullptr &&
            by->claim_at(now) != rule::claim_decision::lease) {  // it may have to be buried
          by->notes().reason.reserve(
              std::max(rule::reason_spent.size(), rule::reason_missed.size()));
        }
      }
      q.keys.provide(keys);
      stock_ = std::move(all);
    }
    /// What was provided for this job; empty: nothing was.
    [[nodiscard]] parts take_made(new_job const& j) noexcept {
      while (stock_ && stock_->next != stock_->made.size()) {
        auto& made = stock_->made[stock_->next++];
        if (made.of == &j) return std::move(made);
      }
      return {};
    }

   private:
    struct stock {
      explicit stock(queue& q) noexcept : of{q} {}
      stock(stock const&) = delete;
      stock& operator=(stock const&) = delete;
      ~stock() { of.keys.provide(0); }

      queue& of;
      std::vector<parts> made{};
      std::size_t next = 0;
    };

    job_allowance& from_;
    std::size_t left_ = 0;
    std::unique_ptr<stock> stock_{};
  };

  void reap_all(time_point now) noexcept { reap(now, std::numeric_limits<std::size_t>::max()); }

  void tidy(time_point now, std::size_t jobs) noexcept {
    now = std::min(now, told);
    auto const most = 2 * jobs + 2;
    reap(now, most);
    queues.trim(most, now, scans);
  }

  job_common common;
  queue_registry queues;
  /// Noted for who gives hints, which promise nothing: without memory it is not.
  void tell_cancelled(std::string_view holder) noexcept try {
    cancelled.emplace_back(holder);
  } catch (...) {
  }

  job_scans scans;
  std::vector<std::string> cancelled{};  ///< of holders, until somebody takes them
  time_point told = time_point::max();   ///< the last that a caller said

 private:
  void reap(time_point now, std::size_t most) noexcept {
    auto& kept = common.kept;
    for (auto n = most; n > 0 && !kept.empty() && kept.begin()->gone(now); --n) {
      auto& r = *kept.begin();
      auto& home = *r.home;
      unretire(home, r);
      erase(home, r);
      queues.settle(home);
    }
    auto& expiring = common.expiring;
    for (auto n = most; n > 0 && !expiring.empty() && expiring.begin()->expiry <= now; --n) {
      auto& home = *expiring.begin()->home;
      home.keys.erase(common, *expiring.begin());
      queues.settle(home);
    }
  }
};

using table_rows = basic_table_rows<void>;

}  // namespace weir::detail

#endif
