// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_TABLE_HPP
#define WEIR_STORE_SQLITE_JOB_TABLE_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/os_entropy.hpp"
#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/job_keys.hpp"
#include "weir/store/sqlite/job_reader.hpp"
#include "weir/store/sqlite/job_rows.hpp"
#include "weir/store/sqlite/queues.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The jobs of the file, a row each, in an order that is an index (schema.hpp), for
/// `rule::job_machine`, which says what each function is for. A row is written by `put`, `extend`,
/// `retire` and `erase`. What a failed step has done goes with its transaction.
class sqlite_job_table : public sqlite_job_reader {
 public:
  using claimant = std::string_view;

  explicit sqlite_job_table(sqlite_scope& in) noexcept : sqlite_job_reader{in}, keys_{in} {}

  class loan;

  bool add(queue& q, new_job const& j, time_point now, loan const&) {
    if (!rows_.insert(q.number, j, now)) {
      auto const there = intact(q, j.id);
      if (!there || !there->gone(now)) return false;
      unretire(q, *there);
      erase(q, *there);
      if (!rows_.insert(q.number, j, now)) throw sqlite_failure{SQLITE_CORRUPT};
    }
    line_up(q, j.priority, {saturating_add(now, j.delay), j.id});
    ++in_.ledger.jobs;
    if (holds_while_waiting(j.strategy)) {
      keys_.hold(q, j.unique_key, j.id, rule::key_expiry(j.strategy, j.unique_ttl, now));
    }
    return true;
  }

  static void prepare(queue&, std::uint8_t) noexcept {}
  void lift(queue& q, record const& r) noexcept {
    sqlite_decrease(q.waiting);
    if (auto* const front = known_front_of(q)) front->remove(r.priority, {r.vesting, r.id});
  }
  void put(queue& q, record const& r) {
    line_up(q, r.priority, {r.vesting, r.id});
    rows_.write(q.number, r);
  }
  void extend(queue& q, record const& r, time_point vesting) {
    lift(q, r);
    line_up(q, r.priority, {vesting, r.id});
    rows_.extend(q.number, r, vesting);
  }
  void retire(queue& q, record const& r) {
    ++(r.ended == job_state::dead ? q.dead : q.kept);
    if (r.retained()) soonest_.add(r.vesting);
    rows_.write(q.number, r);
  }
  static void unretire(queue& q, record const& r) noexcept {
    sqlite_decrease(r.ended == job_state::dead ? q.dead : q.kept);
  }
  void erase(queue const& q, record const& r) {
    rows_.erase(q.number, r.id, r.body);
    sqlite_decrease(in_.ledger.jobs);
  }

  /// One that cannot be read is no matter of the others.
  template <class F>
  void each(queue& q, std::span<finished_job const> jobs, time_point now, F&& f) {
    for (auto const& j : jobs) {
      bool const erased = rows_.erase_leased(q.number, j, now);
      if (erased) {
        sqlite_decrease(q.waiting);
        sqlite_decrease(in_.ledger.jobs);
        if (auto* const front = known_front_of(q)) front->remove(j.id, now);
      }
      auto r = erased ? std::nullopt : intact(q, j.id);
      if (r && r->gone(now)) r.reset();
      f(j, std::move(r), erased);
    }
  }

  template <class F>
  void each_visible(queue& q, std::size_t wants, time_point now, F&& f) {
    constexpr std::size_t most = 256;
    auto const pass_damaged = [&](auto const& id) {
      set_aside(q, id, now);
      wants = f(static_cast<sqlite_whole_job*>(nullptr));
    };
    bool looked_again = false;
    for (unsigned level = 0; wants != 0;) {
      auto const found = front_of(q).visible(level, now, std::min(wants, most));
      if (auto const& damaged = front_of(q).damaged()) {
        pass_damaged(sqlite_value{damaged->get()});
        level = 0;
        continue;
      }
      if (!found) return;
      level = found->priority + (found->jobs.empty() ? 1U : 0U);
      for (auto const& id : found->jobs) {
        if (wants == 0) break;
        std::optional<sqlite_whole_job> r;
        try {
          r = rows_.read_whole(q.number, id);
        } catch (sqlite_damage const&) {
          pass_damaged(id);
          continue;
        }
        if (!r) {  // a damaged row may have gone in another way
          if (std::exchange(looked_again, true)) throw sqlite_failure{SQLITE_CORRUPT};
          fronts_.erase(q.number);
          break;
        }
        wants = f(&*r);
      }
    }
  }

  [[nodiscard]] bool possessor(queue& q, std::string_view key, time_point now, job_id& id,
                               row& job) {
    auto const found = keys_.find(q, key, now);
    if (!found) return false;
    id = found->owner;
    try {
      job = find(q, id, now);
    } catch (sqlite_damage const&) {
      set_aside(q, id, now);
      if (found->until) return true;
      keys_.free(q, key, id);
      return false;
    }
    return true;
  }
  [[nodiscard]] bool key_taken(queue const& q, record const& r, time_point now) {
    return keys_.find(q, r.key, now).has_value();
  }
  void hold_key(queue& q, record const& r) { keys_.hold(q, r.key, r.id, time_point::max()); }
  void free_key(queue& q, record const& r) { keys_.free(q, r.key, r.id); }

  struct run_lock_of {
    bool own = false;
    row other{};
  };
  [[nodiscard]] run_lock_of run_lock(queue const& q, record const& r, time_point now) {
    run_lock_of out;
    auto const runner = keys_.runner(q, r.key);
    out.own = runner == r.id;
    if (runner && !out.own) out.other = find(q, *runner, now);
    if (out.other && out.other->state(now) != job_state::leased) out.other.reset();
    return out;
  }
  void take_run(queue const& q, record const& r) { keys_.take_run(q, r.key, r.id); }
  void free_run(queue const& q, record const& r) { keys_.free_run(q, r.key, r.id); }

  [[nodiscard]] static claimant claimant_of(queue const&, std::string_view name) noexcept {
    return name;
  }
  static void prepare_claim(queue const&, claimant, std::uint64_t, job_id const&, std::uint64_t) {}
  static void hand_to(queue const&, record& r, claimant by, std::uint64_t sequence) {
    r.holder = by;
    r.sequence = sequence;
    r.is_new_lease = true;
  }
  void tell_cancelled(std::string_view holder) {
    in_.events.cancelled.emplace_back(holder);
    ++in_.ledger.cancels;
  }
  static void let_go(queue const&, record& r) noexcept {
    r.holder.reset();
    r.sequence = 0;
  }
  template <class F>
  void each_remembered(queue const& q, claimant by, std::uint64_t sequence, time_point now, F&& f) {
    std::vector<job_id> ids;
    {
      sqlite_query again{in_.db, sql::jobs_of_dequeue, q.number, by, sequence, now};
      while (again.next()) {
        auto const id = again.anything(0);
        if (id.size() == sizeof(job_id)) std::memcpy(&ids.emplace_back(), id.data(), id.size());
      }
    }
    for (auto const& id : ids) {
      if (auto r = readable(q, id)) f(*r);
    }
  }
  void forget_dequeue(queue const& q, claimant by) {
    try {
      sqlite_run(in_.db, sql::forget_dequeue, q.number, by);
    } catch (sqlite_damage const&) {
      one_by_one({in_.db, sql::remembered_jobs, q.number, by}, [&](auto const&... which) {
        sqlite_run(in_.db, sql::forget_job_dequeue, which...);
      });
    }
  }

  class loan {
   public:
    explicit loan(sqlite_job_table& table) noexcept : from_{table} {}
    loan(loan const&) = delete;
    loan& operator=(loan const&) = delete;
    ~loan() { from_.lent_ -= left_; }
    [[nodiscard]] bool take(std::size_t n) noexcept {
      if (n != 0 && from_.in_.ledger.jobs + from_.lent_ + n > from_.in_.options.max_jobs)
        return false;
      from_.lent_ += n;
      left_ = n;
      return true;
    }
    void use(std::size_t n) noexcept {
      from_.lent_ -= n;
      left_ -= n;
    }
    static void provide(queue&, std::span<new_job const>, time_point) noexcept {}

   private:
    sqlite_job_table& from_;
    std::size_t left_ = 0;
  };
  void reap_all(time_point now) {
    constexpr std::size_t many = 1000;
    while (reap(now, many) != 0) {
    }
  }
  /// It is done after the steps of a transaction, by `tidy(now)`.
  void tidy(time_point, std::size_t jobs) noexcept { work_ += jobs; }

  /// A little of the work that time has made: on average as much as steps make, and never much at
  /// once. Not within a step.
  void tidy(time_point now) {
    if (work_ == 0) return;
    auto most = 2 * std::exchange(work_, 0) + 2;
    reap(now, most);
    while (in_.ledger.idle > in_.options.max_idle_queues && most-- != 0 && forget_one(now)) {
    }
  }

  /// Ends every lease of a job and of a queue, as if its time were over. To be called first in a
  /// transaction.
  void end_leases(time_point now) {
    fronts_.clear();
    queues_.forget();
    try {
      sqlite_run(in_.db, sql::end_queue_leases, now);
    } catch (sqlite_damage const&) {  // they end by their time
    }
    std::vector<std::int64_t> numbers;
    {
      sqlite_query q{in_.db, sql::leased_queues, now};
      while (q.next()) {
        if (q.type(0) == SQLITE_INTEGER) numbers.push_back(q.integer(0));
      }
    }
    try {
      sqlite_run(in_.db, sql::end_job_leases, now);
    } catch (sqlite_damage const&) {
      one_by_one({in_.db, sql::leased_jobs, now}, [&](auto const&... which) {
        sqlite_run(in_.db, sql::end_job_lease, now, which...);
      });
    }
    for (auto const number : numbers) {
      if (auto* const found = queues_.by_number(number)) {
        within(*found, now, [&](queue& q) {
          no_later_than(q, now, now);
          return hint{};
        });
      }
      queues_.flush();
      queues_.trim();
    }
  }

  void forget() noexcept {
    work_ = 0;
    soonest_.forget();
    keys_.forget();
    fronts_.clear();
    queues_.forget();
  }

 private:
  /// Changes rows of which some cannot be written: those are set aside when they are read.
  template <class Change>
  static void one_by_one(sqlite_query&& found, Change&& change) {
    std::vector<std::array<sqlite_value, 2>> rows;
    while (found.next()) rows.push_back({found.value(0), found.value(1)});
    for (auto const& [number, id] : rows) {
      try {
        change(number, id);
      } catch (sqlite_damage const&) {
      }
    }
  }

  /// In the order of those that wait.
  void line_up(queue& q, std::uint8_t priority, sqlite_job_front::place const& p) {
    ++q.waiting;
    if (auto* const front = known_front_of(q)) front->add(priority, p);
  }

  /// Forgets some of the jobs and keys whose time is over; counts stay. Returns how many there
  /// were.
  std::size_t reap(time_point now, std::size_t most) {
    std::size_t n = 0;
    while (n != most && soonest_.over(now)) {
      auto const over = sqlite_first<3>(in_.db, sql::kept_job, now);
      if (!over) {
        soonest_.learn(in_.db, sql::soonest_kept);
        break;
      }
      auto const& [number, id, body] = *over;
      if (!rows_.erase(number, id, body)) break;
      ++n;
      sqlite_decrease(in_.ledger.jobs);
      if (auto* const q = queues_.by_number(number)) {
        sqlite_decrease(q->kept);
        queues_.settle(*q);
      }
    }
    return n + keys_.reap(queues_, now, most);
  }

  /// Puts a dead letter in the place of a record that cannot be read.
  template <class Id>
  void set_aside(queue& q, Id const& id, time_point now) {
    fronts_.erase(q.number);
    auto const found = rows_.read_remains(q.number, id);
    if (!rows_.erase(q.number, id, found.body)) throw sqlite_failure{SQLITE_CORRUPT};
    if (found.id && !found.unique_key.empty()) keys_.free_all(q, found.unique_key, *found.id);
    new_job letter;
    letter.id = found.id ? *found.id : made_id();
    letter.kind = found.kind.empty() ? std::string_view{"damaged"} : found.kind;
    letter.payload = found.payload;
    rows_.insert(q.number, letter, now);
    auto r = rows_.read(q.number, letter.id);
    if (!r) throw sqlite_failure{SQLITE_CORRUPT};
    r->new_reason = damaged_record;
    lift(q, *r);
    r->ended = job_state::dead;
    r->death = ++q.deaths;
    retire(q, *r);
  }

  static job_id made_id() {
    auto const bits = os_entropy();
    job_id out;
    static_assert(sizeof(out) == sizeof(bits));
    std::memcpy(out.begin(), &bits, sizeof(out));
    return out;
  }

  sqlite_job_keys keys_;
  sqlite_soonest<time_point> soonest_;  // record to be forgotten
  std::size_t work_ = 0;
  std::size_t lent_ = 0;  // of what may be there, to steps that are under way
};

}  // namespace weir::detail

#endif
