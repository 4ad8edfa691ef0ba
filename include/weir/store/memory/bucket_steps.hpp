// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKET_STEPS_HPP
#define WEIR_STORE_MEMORY_BUCKET_STEPS_HPP

#include "weir/command/buckets.hpp"
#include "weir/error.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/memory/bucket_key.hpp"
#include "weir/store/memory/bucket_pin.hpp"
#include "weir/store/memory/bucket_shard.hpp"
#include "weir/store/memory/bucket_table.hpp"
#include "weir/store/memory/buckets.hpp"
#include "weir/store/memory/quota_book.hpp"
#include "weir/store/memory/wide_arrival.hpp"
#include "weir/time.hpp"

#include <boost/config.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

// What few takes do: behind the seam.
namespace weir::detail {

/// Gives a number of the book back, unless it was given to a bucket.
template <class Same>
class basic_memory_buckets<Same>::held_quotas {
 public:
  held_quotas(quota_book& book, quota_book::number n) noexcept : book_{&book}, number_{n} {}
  held_quotas(held_quotas const&) = delete;
  held_quotas& operator=(held_quotas const&) = delete;
  ~held_quotas() {
    if (book_) book_->release(number_);
  }
  [[nodiscard]] std::span<rule::bucket_scale const> scales() const noexcept {
    return (*book_)[number_].scales();
  }
  [[nodiscard]] quota_book::number give() noexcept {
    book_ = nullptr;
    return number_;
  }

 private:
  quota_book* book_;
  quota_book::number number_;
};

/// Gives a place in the table back, unless somebody moved in.
template <class Same>
class basic_memory_buckets<Same>::counted_place {
 public:
  explicit counted_place(bucket_table& table) noexcept : table_{&table} {}
  counted_place(counted_place const&) = delete;
  counted_place& operator=(counted_place const&) = delete;
  ~counted_place() {
    if (table_) table_->leave();
  }
  void keep() noexcept { table_ = nullptr; }

 private:
  bucket_table* table_;
};

template <class Same>
template <class Command>
typename Command::result basic_memory_buckets<Same>::shed(Command const& c) noexcept {
  typename Command::result d;
  d.shed = true;
  d.cost = c.cost;
  d.capacity = c.quotas[0].capacity();
  if constexpr (takes<Command>) d.mark = rule::no_mark;
  return d;
}

template <class Same>
BOOST_NOINLINE result<decision> basic_memory_buckets<Same>::ask_and_pin(command::take const& c,
                                                                        bucket_pin& pin,
                                                                        duration now) {
  bucket_key const key{c.key};
  auto const hash = key.hash();
  auto answer = ask_plain(c, key, hash, now);
  // What was seen is this key's as long as the slot says the same.
  bucket_place const seen = table_.home(hash).glimpse(key, hash);
  if (seen && seen.slot->read_meta() == seen.meta) pin.write(seen);
  return answer;
}

template <class Same>
template <class Command>
BOOST_NOINLINE result<typename Command::result> basic_memory_buckets<Same>::ask_slowly(
    Command const& c, duration now) {
  if (auto const invalid = rule::validate(c)) return invalid;
  bucket_key const key{c.key};
  auto const hash = key.hash();
  return ask_locked(c, key, hash, table_.home(hash), now);
}

template <class Same>
template <class Command>
BOOST_NOINLINE result<typename Command::result> basic_memory_buckets<Same>::ask_apart(
    Command const& c, bucket_key const& key, std::uint64_t hash, bucket_place seen, duration now) {
  if constexpr (takes<Command>) {
    rule::bucket_scale scale;
    if (seen && table_.book()[seen.meta.quotas()].is_only_wide(c.quotas[0], scale)) {
      auto* const arrival = table_.wide(seen.slot->arrival.load(std::memory_order_acquire));
      while (arrival != nullptr) {
        auto const before = arrival->read();
        if (before.units() == wide_arrival::absent || seen.slot->read_meta() != seen.meta) break;
        rule::single_take const step{scale, before.units(), now, c.cost, c.max_wait};
        if (!step.allowed() || arrival->swap(before, step.arrival())) return told{step};
      }
    }
  }
  if (auto const invalid = rule::validate(c)) return invalid;
  return ask_locked(c, key, hash, table_.home(hash), now);
}

template <class Same>
template <class Command>
result<typename Command::result> basic_memory_buckets<Same>::ask_locked(
    Command const& c, bucket_key const& key, std::uint64_t hash, bucket_shard& home, duration now) {
  for (bool searched = false;; searched = true) {
    auto answer = ask_in(home, c, key, hash, now);
    // Forgetting full buckets makes room for others, and sets free the quotas that they had.
    bool const shed = answer.has_value() && answer->shed;
    bool const full = shed || (answer.has_error() && answer.error() == errc::store_full);
    if (full && !searched && table_.make_room(now)) continue;
    if (shed) {
      auto const wait = rule::within_horizon(table_.room_from()) - now;
      answer->retry_after = answer->reset_after = std::max(wait, duration{1});
    }
    return answer;
  }
}

template <class Same>
template <class Command>
result<typename Command::result> basic_memory_buckets<Same>::ask_in(
    bucket_shard& home, Command const& c, bucket_key const& key, std::uint64_t hash, duration now) {
  std::lock_guard const lock{home.mutex()};
  auto const seen = home.glimpse(key, hash);
  return seen ? ask_known(c, home, seen, now) : ask_unknown(c, key, hash, home, now);
}

template <class Same>
template <class Command>
result<typename Command::result> basic_memory_buckets<Same>::ask_known(
    Command const& c, bucket_shard& home, bucket_shard::sighting const& seen, duration now) {
  auto const& set = table_.book()[seen.meta.quotas()];
  if (!set.equals(c.quotas)) return ask_changed(c, home, seen, now);
  auto const scales = set.scales();
  for (;;) {
    auto const before = table_.look(*seen.slot);
    auto answer = rule::ask(scales, before.arrivals, now, c);
    bool done = true;
    if constexpr (takes<Command>) {
      done = !answer.allowed || table_.swap(*seen.slot, before, rule::arrivals_in(answer.mark));
    }
    if (done) return answer;
  }
}

template <class Same>
template <class Command>
result<typename Command::result> basic_memory_buckets<Same>::ask_changed(
    Command const& c, bucket_shard& home, bucket_shard::sighting const& seen, duration now) {
  auto const old_number = seen.meta.quotas();
  auto const old_scales = table_.book()[old_number].scales();
  auto& slot = *seen.slot;
  if constexpr (!takes<Command>) {
    auto const scales = rule::bucket_scales::of(c.quotas);
    if (!scales) return make_error_code(errc::quota_too_large);
    auto const start =
        rule::changed_quotas(old_scales, table_.look(slot).arrivals, scales->span(), now);
    return rule::peek(scales->span(), start, now, c.cost, c.max_wait);
  } else {
    auto const number = table_.book().hold(c.quotas);
    if (number.has_error()) return number.error();
    held_quotas held{table_.book(), *number};
    // From here on nobody swaps the arrival without the lock.
    auto const before = table_.seize(slot);
    auto const start = rule::changed_quotas(old_scales, before.arrivals, held.scales(), now);
    auto answer = rule::take(held.scales(), start, now, c.cost, c.max_wait);
    if (!answer.allowed) {
      table_.put_back(slot, before);
      return answer;
    }
    std::int64_t next = 0;
    try {
      next = table_.value_for(held.scales(), rule::arrivals_in(answer.mark));
    } catch (...) {
      table_.put_back(slot, before);
      throw;
    }
    auto const full = rule::full_from(held.scales(), rule::arrivals_in(answer.mark));
    slot.write_meta(seen.meta.as_taken(seen.meta.kind(), seen.meta.its_tag(), held.give()));
    slot.arrival.store(next, std::memory_order_release);
    table_.release(before.value);
    table_.book().release(old_number);
    table_.expect_full(home, full);
    return answer;
  }
}

template <class Same>
template <class Command>
result<typename Command::result> basic_memory_buckets<Same>::ask_unknown(
    Command const& c, bucket_key const& key, std::uint64_t hash, bucket_shard& home, duration now) {
  auto const number = table_.book().hold(c.quotas);
  if (number.has_error()) return number.error();
  held_quotas held{table_.book(), *number};
  // It may be one that was forgotten as full, before time ran backwards.
  auto const start = home.forgotten() <= now
                         ? rule::unseen_bucket
                         : rule::forgotten_bucket(held.scales(), home.forgotten());
  auto const answer = rule::ask(held.scales(), start, now, c);
  if (!answer.allowed) return answer;
  if (!table_.enter(home, now)) return shed(c);
  counted_place place{table_};
  if constexpr (takes<Command>) {
    auto const value = table_.value_for(held.scales(), rule::arrivals_in(answer.mark));
    home.lower_soonest(rule::full_from(held.scales(), rule::arrivals_in(answer.mark)));
    home.insert(key, hash, held.give(), value);
    place.keep();
  }
  return answer;
}

}  // namespace weir::detail

#endif
