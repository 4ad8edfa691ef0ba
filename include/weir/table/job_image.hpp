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
#include "weir/table/paced.hpp"
#include "weir/table/queue_registry.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
///
/// A shard may have a million jobs, so both are done at a pace that their caller sets, with a pause
/// at each record. Until it has ended the shard must not be changed, and shard, writer and reader
/// have to be where they were.
class job_image {
 public:
  template <class Writer>
  static void save(job_shard const& shard, Writer& to) {
    saving(shard, to).finish();
  }
  template <class Writer>
  [[nodiscard]] static paced saving(job_shard const& shard, Writer& to) {
    auto const& registry = shard.rows_.queues;
    auto const& common = shard.rows_.common;
    to(common.last_fence);
    for (auto const& q : registry.names_) {
      if (q.memory_queue::jobless_hook::is_linked()) continue;
      for (auto one = saving_queue(q, to); one.go_on();) co_await paced::pause{};
      co_await paced::pause{};
    }
    for (auto const& q : registry.jobless_) {  // in the order that they will be forgotten in
      for (auto one = saving_queue(q, to); one.go_on();) co_await paced::pause{};
      co_await paced::pause{};
    }
    to(false);
    for (auto const& r : common.kept) {
      to(true);
      to(std::string_view{r.home->name});
      save(r, nullptr, to);
      co_await paced::pause{};
    }
    to(false);
    for (auto const& k : common.expiring) {
      to(true);
      to(std::string_view{k.home->name});
      to(std::string_view{k.text});
      to(k.owner);
      to(k.expiry);
      co_await paced::pause{};
    }
    to(false);
    co_return true;
  }

  /// Requires an empty shard. False: it is no image, and the shard is good for nothing.
  template <class Reader>
  [[nodiscard]] static bool load(job_shard& shard, Reader& from) {
    return loading(shard, from).finish();
  }
  template <class Reader>
  [[nodiscard]] static paced loading(job_shard& shard, Reader& from) {
    auto& common = shard.rows_.common;
    from(common.last_fence);
    if (common.last_fence > most) co_return false;
    std::vector<memory_queue*> queues;
    while (more(from)) {
      std::string_view name;
      from(name);
      if (!from.good() || name.empty() || name.size() > limits::key_size ||
          shard.rows_.queues.find(name) != nullptr) {
        co_return false;
      }
      auto& q = shard.rows_.queues.make(name);
      queues.push_back(&q);
      auto one = loading_queue(q, common, shard.rows_.scans.of(q), from);
      while (one.go_on()) co_await paced::pause{};
      if (!one.succeeded()) co_return false;
      co_await paced::pause{};
    }
    auto const home = [&]() -> memory_queue* {
      std::string_view name;
      from(name);
      return from.good() ? shard.rows_.queues.find(name) : nullptr;
    };
    while (more(from)) {
      auto* const q = home();
      auto* const r = q == nullptr ? nullptr : load_record(*q, common, {}, from);
      if (r == nullptr) co_return false;
      if (!r->retained()) {
        give_up(*q, *r);
        co_return false;
      }
      common.kept.insert(common.kept.end(), *r);
      co_await paced::pause{};
    }
    while (more(from)) {
      auto* const q = home();
      std::string_view text;
      job_id owner{};
      from(text);
      from(owner);
      auto* const k = q == nullptr || !from.good() ? nullptr : make_key(*q, text, owner);
      if (k == nullptr) co_return false;
      from(k->expiry);
      if (!from.good() || k->expiry == time_point::max() || !common.allowance.take(1)) {
        co_return false;
      }
      common.expiring.insert(*k);
      co_await paced::pause{};
    }
    for (auto* const q : queues) shard.rows_.queues.settle(*q);
    (void)shard.take_event(false);
    (void)shard.take_event(true);
    co_return from.good();
  }

 private:
  /// Of fences and counters, which grow: more is damage, and would come to an end (F97).
  static constexpr std::uint64_t most = std::uint64_t{1} << 62U;

  /// Does another one follow?
  template <class Reader>
  static bool more(Reader& from) {
    bool out = false;
    from(out);
    return out && from.good();
  }

  // ------------------------------------------------------------------------------------- queues

  template <class Writer>
  static paced saving_queue(memory_queue const& q, Writer& to) {
    to(true);
    to(std::string_view{q.name});
    to(q.pointer.has_value());
    if (q.pointer) to(*q.pointer);
    to(q.snoozed_until);
    to(q.paused);
    to(std::string_view{q.lease_holder});
    to(q.lease_fence);
    to(q.lease_expiry);
    for (auto const n : {q.deaths, q.enqueued, q.completed, q.cancelled, q.purged}) {
      to(n);
    }
    auto const holders = holders_of(q);
    to(holders.size());
    for (auto const* h : holders) save(*h, to);
    for (auto const& r : q.records.records_) {
      co_await paced::pause{};
      if (r.retained()) continue;
      to(true);
      save(r, &holders, to);
      auto const lock = q.locks.locks_.find(r.unique_key());
      to(lock != q.locks.locks_.end() && lock->second == &r);
      to(has_key(q, r));
    }
    to(false);
    co_return true;
  }

  template <class Reader>
  static paced loading_queue(memory_queue& q, job_common& common, job_pointers& pointers,
                             Reader& from) {
    bool pointed = false;
    from(pointed);
    time_point pointer{};
    if (pointed) from(pointer);
    from(q.snoozed_until);
    from(q.paused);
    from(q.lease_holder);
    from(q.lease_fence);
    from(q.lease_expiry);
    for (auto* n : {&q.deaths, &q.enqueued, &q.completed, &q.cancelled, &q.purged}) {
      from(*n);
      if (*n > most) co_return false;
    }
    if (!from.good() || q.lease_holder.size() > limits::holder_size) co_return false;
    if (pointed) pointers.set(q, pointer, pointer);

    std::vector<job_holder*> holders;
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      auto* const h = load_holder(q, from);
      if (h == nullptr) co_return false;
      holders.push_back(h);
    }
    while (more(from)) {
      auto* const r = load_record(q, common, holders, from);
      if (r == nullptr) co_return false;
      if (r->retained()) {
        give_up(q, *r);
        co_return false;
      }
      place(q, *r);
      bool runs = false;
      from(runs);
      if (runs) {
        if (r->holder == nullptr || !holds_while_running(r->strategy) ||
            q.locks.locks_.contains(r->unique_key())) {
          co_return false;
        }
        q.locks.take(*r);
      }
      bool keyed = false;
      from(keyed);
      if (keyed && make_key(q, r->unique_key(), r->id) == nullptr) co_return false;
      co_await paced::pause{};
    }
    // Nobody who has no lease is remembered.
    co_return from.good() && std::all_of(holders.begin(), holders.end(),
                                         [](job_holder const* h) { return h->leases != 0; });
  }

  // ------------------------------------------------------------------------------------- holders

  /// Those with leases, by name. Of one without nothing is known but its name.
  static std::vector<job_holder const*> holders_of(memory_queue const& q) {
    std::vector<job_holder const*> out;
    for (auto const& [name, h] : q.holders.holders_) {
      if (h.leases != 0) out.push_back(&h);
    }
    return out;
  }

  template <class Writer>
  static void save(job_holder const& h, Writer& to) {
    to(h.name);
    to(h.sequence);
    to(h.latest.size());
    for (auto const& g : h.latest) {
      to(g.id);
      to(g.fence);
    }
  }

  template <class Reader>
  static job_holder* load_holder(memory_queue& q, Reader& from) {
    std::string_view name;
    from(name);
    if (!from.good() || name.empty() || name.size() > limits::holder_size ||
        q.holders.find(name) != nullptr) {
      return nullptr;
    }
    auto& h = q.holders.obtain(name);
    from(h.sequence);
    for (auto n = from.count(); n != 0 && from.good(); --n) {
      auto& g = h.latest.emplace_back();
      from(g.id);
      from(g.fence);
    }
    return from.good() ? &h : nullptr;
  }

  // ------------------------------------------------------------------------------------- records

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
                        std::ranges::lower_bound(*holders, r.holder->name, {},
                                                 [](job_holder const* h) { return h->name; }) -
                        holders->begin());
      }
      to(place);
      if (place != 0) to(r.unclaimed_vesting);
    }
    to(r.rare != nullptr);
    if (!r.rare) return;
    to(r.memo());
    to(r.result());
    to(r.reason());
    to(r.headers());
    to(r.progress());
    to(r.checkpoint());
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
    if (!from.good() || j.kind.size() > limits::key_size ||
        j.unique_key.size() > limits::key_size || j.payload.size() > limits::payload_size ||
        (j.strategy == unique_strategy::none) != j.unique_key.empty() ||
        ended == job_state::leased || q.records.find(j.id) != nullptr) {
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
      bool const taken = q.dead.find(r.death) != q.dead.end();
      if (r.death == 0 || r.death > q.deaths || taken) return nullptr;
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
      from(r.notes().headers);
      from(r.notes().progress);
      from(r.notes().checkpoint);
    }
    if (!from.good() || !common.allowance.take(1)) return nullptr;
    if (place != 0) {
      r.holder = holders[place - 1];
      q.holders.add_lease(*r.holder);
      q.claimed.push_back(r);
    }
    q.records.add(std::move(made));
    return &r;
  }

  static void place(memory_queue& q, job_record& r) {
    if (r.ended == job_state::dead) {
      q.dead.insert(r);
    } else {
      q.index.prepare(r.priority);
      q.index.insert(r);
    }
  }

  /// Forgets a record that stands where it cannot, and in no order.
  static void give_up(memory_queue& q, job_record& r) noexcept {
    if (r.holder != nullptr) q.claimed.erase(q.claimed.iterator_to(r));
    q.records.remove(r);
  }

  // ---------------------------------------------------------------------------------------- keys

  /// Does it hold its enqueue key, which its end frees? Those that time frees may outlast their
  /// records, and stand elsewhere.
  static bool has_key(memory_queue const& q, job_record const& r) noexcept {
    if (r.strategy == unique_strategy::none) return false;
    auto const at = q.keys.keys_.find(r.unique_key());
    return at != q.keys.keys_.end() && at->second->owner == r.id && !at->second->is_linked();
  }

  /// Null: there is no such key, or it is there.
  static enqueue_key* make_key(memory_queue& q, std::string_view text, job_id const& owner) {
    auto& keys = q.keys.keys_;
    if (text.empty() || text.size() > limits::key_size || keys.contains(text)) return nullptr;
    auto made = std::make_unique<enqueue_key>(text, q);
    made->owner = owner;
    std::string_view const key = made->text;
    return keys.emplace(key, std::move(made)).first->second.get();
  }
};

}  // namespace weir::detail

#endif
