// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_IMAGE_HPP
#define WEIR_TABLE_JOB_IMAGE_HPP

#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/table/job_holders.hpp"
#include "weir/table/job_keys.hpp"
#include "weir/table/job_queue.hpp"
#include "weir/table/job_record.hpp"
#include "weir/table/job_shard.hpp"
#include "weir/table/queue_registry.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// All that decides what a shard will answer, and in which order it will forget things, as bytes
/// and back. Two shards that were told the same have the same image.
///
/// A writer takes numbers, times, ids and texts by its call operator; a reader fills in the same,
/// takes the last enumerator beside an enumeration, and has `count`, `refuse` and `good`. An image
/// that no shard can have is refused, whatever its bytes are.
class job_image {
 public:
  template <class Writer>
  static void save(job_shard const& shard, Writer& to) {
    auto const& registry = shard.queues_;
    std::vector<memory_queue const*> queues;
    for (auto const& q : registry.names_) {
      if (!q.memory_queue::jobless_hook::is_linked()) queues.push_back(&q);
    }
    for (auto const& q : registry.jobless_) queues.push_back(&q);

    to(shard.common_.last_fence);
    to(queues.size());
    for (auto const* q : queues) save(*q, to);
    to(std::size_t(std::distance(shard.common_.kept.begin(), shard.common_.kept.end())));
    for (auto const& r : shard.common_.kept) {
      to(std::string_view{r.home->name});
      save(r, nullptr, to);
    }
    auto const& expiring = shard.common_.expiring;
    to(std::size_t(std::distance(expiring.begin(), expiring.end())));
    for (auto const& k : expiring) {
      to(std::string_view{k.home->name});
      save(k, to);
      to(k.expiry);
    }
  }

  /// Requires an empty shard. False: it is no image, and the shard is good for nothing.
  template <class Reader>
  [[nodiscard]] static bool load(job_shard& shard, Reader& from) {
    auto& common = shard.common_;
    from(common.last_fence);
    std::vector<memory_queue*> queues;
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      std::string_view name;
      from(name);
      if (!from.good() || name.empty() || name.size() > limits::key_size ||
          shard.queues_.find(name) != nullptr) {
        return false;
      }
      queues.push_back(&shard.queues_.make(name, common));
      if (!load(*queues.back(), common, shard.pointers_, from)) return false;
    }
    auto const home = [&]() -> memory_queue* {
      std::string_view name;
      from(name);
      return from.good() ? shard.queues_.find(name) : nullptr;
    };
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      auto* const q = home();
      auto* const r = q == nullptr ? nullptr : load_record(*q, common, {}, from);
      if (r == nullptr) return false;
      if (r->ended != job_state::completed && r->ended != job_state::cancelled) {
        give_up(*q, *r);
        return false;
      }
      common.kept.insert(common.kept.end(), *r);
    }
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      auto* const q = home();
      auto* const k = q == nullptr ? nullptr : load_key(*q, from);
      if (k == nullptr) return false;
      from(k->expiry);
      if (!from.good() || k->expiry == time_point::max() || !common.allowance.take(1)) return false;
      common.expiring.insert(*k);
    }
    for (auto* const q : queues) shard.queues_.settle(*q);
    (void)shard.pointers_.take_event();
    return from.good();
  }

 private:
  // ------------------------------------------------------------------------------------- queues

  template <class Writer>
  static void save(memory_queue const& q, Writer& to) {
    to(std::string_view{q.name});
    to(q.pointer.has_value());
    if (q.pointer) to(*q.pointer);
    to(q.snoozed_until);
    to(q.paused);
    to(std::string_view{q.lease_holder});
    to(q.lease_fence);
    to(q.lease_expiry);
    queue_jobs const& jobs = q;
    for (auto const n :
         {jobs.deaths_, jobs.enqueued_, jobs.completed_, jobs.cancelled_, jobs.purged_}) {
      to(n);
    }
    auto const holders = holders_of(jobs);
    to(holders.size());
    for (auto const* h : holders) save(*h, to);

    std::vector<job_record const*> records;
    for (auto const& r : jobs.records_.records_) {
      if (!kept(r)) records.push_back(&r);
    }
    to(records.size());
    for (auto const* r : records) {
      save(*r, &holders, to);
      auto const lock = jobs.locks_.locks_.find(r->unique_key());
      to(lock != jobs.locks_.locks_.end() && lock->second == r);
    }
    auto const keys = lasting_keys_of(jobs);
    to(keys.size());
    for (auto const* k : keys) save(*k, to);
  }

  template <class Reader>
  static bool load(memory_queue& q, job_common& common, job_pointers& pointers, Reader& from) {
    bool pointed = false;
    from(pointed);
    time_point pointer{};
    if (pointed) from(pointer);
    from(q.snoozed_until);
    from(q.paused);
    from(q.lease_holder);
    from(q.lease_fence);
    from(q.lease_expiry);
    queue_jobs& jobs = q;
    for (auto* n :
         {&jobs.deaths_, &jobs.enqueued_, &jobs.completed_, &jobs.cancelled_, &jobs.purged_}) {
      from(*n);
    }
    if (!from.good() || q.lease_holder.size() > limits::holder_size) return false;
    if (pointed) pointers.set(q, pointer, pointer);

    std::vector<job_holder*> holders;
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      auto* const h = load_holder(jobs, from);
      if (h == nullptr) return false;
      holders.push_back(h);
    }
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      auto* const r = load_record(q, common, holders, from);
      if (r == nullptr) return false;
      if (kept(*r)) {
        give_up(q, *r);
        return false;
      }
      place(jobs, *r);
      bool runs = false;
      from(runs);
      if (!runs) continue;
      if (r->holder == nullptr || !holds_while_running(r->strategy) ||
          jobs.locks_.locks_.contains(r->unique_key())) {
        return false;
      }
      jobs.locks_.take(*r);
    }
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      if (load_key(q, from) == nullptr) return false;
    }
    // Nobody who has no lease is remembered.
    return from.good() && std::all_of(holders.begin(), holders.end(),
                                      [](job_holder const* h) { return h->leases != 0; });
  }

  // ------------------------------------------------------------------------------------- holders

  /// Those with leases, by name. Of one without nothing is known but its name.
  static std::vector<job_holder const*> holders_of(queue_jobs const& jobs) {
    std::vector<job_holder const*> out;
    for (auto const& [name, h] : jobs.holders_.holders_) {
      if (h->leases != 0) out.push_back(h.get());
    }
    std::ranges::sort(out, {}, [](job_holder const* h) { return std::string_view{h->name}; });
    return out;
  }

  template <class Writer>
  static void save(job_holder const& h, Writer& to) {
    to(std::string_view{h.name});
    to(h.sequence);
    to(h.latest.size());
    for (auto const& g : h.latest) {
      to(g.id);
      to(g.fence);
    }
  }

  template <class Reader>
  static job_holder* load_holder(queue_jobs& jobs, Reader& from) {
    std::string_view name;
    from(name);
    if (!from.good() || name.empty() || name.size() > limits::holder_size ||
        jobs.holders_.find(name) != nullptr) {
      return nullptr;
    }
    auto& h = jobs.holders_.obtain(name);
    from(h.sequence);
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      auto& g = h.latest.emplace_back();
      from(g.id);
      from(g.fence);
    }
    return from.good() ? &h : nullptr;
  }

  // ------------------------------------------------------------------------------------- records

  static bool kept(job_record const& r) noexcept {
    return r.ended == job_state::completed || r.ended == job_state::cancelled;
  }

  template <class Writer>
  static void save(job_record const& r, std::vector<job_holder const*> const* holders, Writer& to) {
    to(r.id);
    to(r.kind());
    to(r.unique_key());
    to(r.payload());
    to(r.priority);
    to(r.ended);
    to(r.strategy);
    to(r.on_conflict);
    to(r.attempts);
    to(r.max_attempts);
    to(r.snoozes);
    to(r.enqueued);
    to(r.deadline_from);
    to(r.deadline);
    to(r.retention);
    to(r.vesting);
    to(r.fence);
    if (r.ended == job_state::dead) to(r.death);
    if (r.ended == job_state::pending) {  // its holder, from 1
      std::size_t place = 0;
      if (r.holder != nullptr) {
        place = 1 + static_cast<std::size_t>(
                        std::ranges::lower_bound(
                            *holders, std::string_view{r.holder->name}, {},
                            [](job_holder const* h) { return std::string_view{h->name}; }) -
                        holders->begin());
      }
      to(place);
      if (place != 0) to(r.unclaimed_vesting);
    }
    to(r.rare != nullptr);
    if (r.rare) {
      to(std::string_view{r.rare->memo});
      to(std::string_view{r.rare->result});
      to(std::string_view{r.rare->reason});
    }
  }

  /// Null: it is none. Otherwise the queue owns it, and it is in no order but that of the ids.
  template <class Reader>
  static job_record* load_record(memory_queue& q, job_common& common,
                                 std::vector<job_holder*> const& holders, Reader& from) {
    new_job j;
    from(j.id);
    from(j.kind);
    from(j.unique_key);
    from(j.payload);
    from(j.priority);
    auto ended = job_state::pending;
    from(ended, job_state::cancelled);
    from(j.strategy, unique_strategy::until_expired);
    from(j.on_conflict, conflict_policy::reschedule);
    queue_jobs& jobs = q;
    if (!from.good() || j.kind.size() > limits::key_size ||
        j.unique_key.size() > limits::key_size || j.payload.size() > limits::payload_size ||
        (j.strategy == unique_strategy::none) != j.unique_key.empty() ||
        ended == job_state::leased || jobs.records_.find(j.id) != nullptr) {
      return nullptr;
    }
    auto made = make_record(j, time_point{}, q);
    auto& r = *made;
    r.ended = ended;
    from(r.attempts);
    from(r.max_attempts);
    from(r.snoozes);
    from(r.enqueued);
    from(r.deadline_from);
    from(r.deadline);
    from(r.retention);
    from(r.vesting);
    from(r.fence);
    if (ended == job_state::dead) {
      from(r.death);
      bool const taken = jobs.dead_.find(r.death) != jobs.dead_.end();
      if (r.death == 0 || r.death > jobs.deaths_ || taken) return nullptr;
    }
    std::size_t place = 0;
    if (ended == job_state::pending) from(place);
    if (place > holders.size()) return nullptr;
    if (place != 0) from(r.unclaimed_vesting);
    bool rare = false;
    from(rare);
    if (rare) {
      from(r.notes().memo);
      from(r.notes().result);
      from(r.notes().reason);
    }
    if (!from.good() || !common.allowance.take(1)) return nullptr;
    if (place != 0) {
      r.holder = holders[place - 1];
      jobs.holders_.add_lease(*r.holder);
      jobs.claimed_.push_back(r);
    }
    jobs.records_.add(std::move(made));
    return &r;
  }

  static void place(queue_jobs& jobs, job_record& r) {
    if (r.ended == job_state::dead) {
      jobs.dead_.insert(r);
    } else {
      jobs.index_.prepare(r.priority);
      jobs.index_.insert(r);
    }
  }

  /// Forgets a record that stands where it cannot, and in no order.
  static void give_up(memory_queue& q, job_record& r) noexcept {
    queue_jobs& jobs = q;
    if (r.holder != nullptr) jobs.claimed_.erase(jobs.claimed_.iterator_to(r));
    jobs.records_.remove(r);
  }

  // ---------------------------------------------------------------------------------------- keys

  /// Those that their jobs' ends free, by text.
  static std::vector<enqueue_key const*> lasting_keys_of(queue_jobs const& jobs) {
    std::vector<enqueue_key const*> out;
    for (auto const& [text, k] : jobs.keys_.keys_) {
      if (!k->is_linked()) out.push_back(k.get());
    }
    std::ranges::sort(out, {}, [](enqueue_key const* k) { return std::string_view{k->text}; });
    return out;
  }

  template <class Writer>
  static void save(enqueue_key const& k, Writer& to) {
    to(std::string_view{k.text});
    to(k.owner);
  }

  /// Null: it is none.
  template <class Reader>
  static enqueue_key* load_key(memory_queue& q, Reader& from) {
    std::string_view text;
    job_id owner{};
    from(text);
    from(owner);
    auto& keys = static_cast<queue_jobs&>(q).keys_.keys_;
    if (!from.good() || text.empty() || text.size() > limits::key_size || keys.contains(text)) {
      return nullptr;
    }
    auto made = std::make_unique<enqueue_key>(text, q);
    made->owner = owner;
    std::string_view const key = made->text;
    return keys.emplace(key, std::move(made)).first->second.get();
  }
};

}  // namespace weir::detail

#endif
