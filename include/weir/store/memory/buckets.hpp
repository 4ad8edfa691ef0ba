// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_BUCKETS_HPP
#define WEIR_STORE_MEMORY_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/detail/prefetch.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/memory/bucket_key.hpp"
#include "weir/store/memory/bucket_pin.hpp"
#include "weir/store/memory/bucket_shard.hpp"
#include "weir/store/memory/bucket_table.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/store/memory/quota_book.hpp"
#include "weir/time.hpp"

#include <boost/config.hpp>
#include <boost/container/static_vector.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// The buckets of a memory store.
///
/// A take of a bucket that exists, and has one quota, the one it is asked for, takes no lock: it
/// finds the slot, asks the rule and swaps the arrival, and asks again if another thread was
/// faster. A refusal writes nothing at all. So does a peek where the arrival fits into 64 bits.
/// Everything else locks the key's shard for the length of the step.
///
/// Times are kept relative to the first one that comes along. Commands must have been validated,
/// but for takes: a quota that is found equal to that of a bucket is as valid as that one was.
/// Beyond what they document: `quota_too_large`, and `store_full` when more than 65,535 different
/// sets of quotas are in use.
template <class>
class basic_memory_buckets {
 public:
  explicit basic_memory_buckets(memory_options const& options) : table_{options.max_buckets} {}

  [[nodiscard]] result<decision> apply(command::take const& c, time_point now) {
    return ask(c, since_epoch(now));
  }

  /// The same, for the key and the quotas of a pin.
  [[nodiscard]] result<decision> apply(command::take const& c, bucket_pin& pin, time_point now) {
    return ask(c, pin, since_epoch(now));
  }

  /// The same for each of `commands`, in order. Keys and slots of many are fetched from memory at
  /// once, and a check of many keys consists of little else.
  void apply_each(std::span<command::take const> commands, std::span<result<decision>> answers,
                  time_point now) {
    auto const time = since_epoch(now);
    while (!commands.empty()) {
      auto const n = std::min(commands.size(), batch);
      ask_each(commands.first(n), answers, time);
      commands = commands.subspan(n);
      answers = answers.subspan(n);
    }
  }

  [[nodiscard]] result<bucket_info> apply(command::peek_bucket const& c, time_point now) {
    return ask(c, since_epoch(now));
  }

  [[nodiscard]] result<refund_receipt> apply(command::refund const& c, time_point now) {
    auto const time = since_epoch(now);
    bucket_key const key{c.key};
    auto const hash = key.hash();
    auto& home = table_.home(hash);
    refund_receipt const nothing{.credited = 0, .forfeited = c.cost};
    std::lock_guard const lock{home.mutex()};
    auto const seen = home.glimpse(key, hash);
    auto const* const set = seen ? &table_.book()[seen.meta.quotas()] : nullptr;
    if (!(set && set->equals(c.quotas)) && !rule::bucket_scales::of(c.quotas)) {
      return make_error_code(errc::quota_too_large);
    }
    if (!set) return nothing;  // it was full, and forgotten: all of it has refilled
    // The mark is in the units of the quotas that the bucket has, whichever the caller has by now.
    auto const scales = set->scales();
    auto const before = table_.look(*seen.slot);
    auto const out = rule::refund(scales, before.arrivals, c.mark, c.cost, c.before_instant, time);
    if (out.receipt.credited == 0) return out.receipt;
    if (!table_.swap(*seen.slot, before, out.arrivals)) return nothing;  // taken from meanwhile
    table_.expect_full(home, rule::full_from(scales, out.arrivals));
    return out.receipt;
  }

  [[nodiscard]] result<hint> apply(command::reset_bucket const& c, time_point) {
    bucket_key const key{c.key};
    auto const hash = key.hash();
    auto& home = table_.home(hash);
    std::lock_guard const lock{home.mutex()};
    if (auto const seen = home.glimpse(key, hash)) table_.erase(home, seen.index);
    return hint{};
  }

  [[nodiscard]] result<command::reaped> apply(command::reap_buckets const&, time_point now) {
    auto const removed = table_.reap(since_epoch(now));
    return command::reaped{.removed = removed, .kept = table_.size()};
  }

 private:
  // As many as a core can be waiting for at once, and more.
  static constexpr std::size_t batch = 32;

  template <class Command>
  static constexpr bool takes = std::is_same_v<Command, command::take>;

  template <class Command>
  using answer_to = result<typename Command::result>;

  // Becomes the answer where it is returned: copying one costs as much as all the rest.
  template <class Step>
  struct told {
    Step const& step;
    operator decision() const noexcept { return step.answer(); }
  };

  /// Has it one quota, as most have, and is it valid if that quota is?
  template <class Command>
  [[nodiscard]] static bool plain(Command const& c) noexcept {
    return rule::valid_key(c.key) && c.quotas.size() == 1 && c.cost != 0 &&
           c.cost <= c.quotas[0].capacity() && rule::valid_wait(c.max_wait);
  }

  // What nearly every take does is one function each, whatever a compiler makes of its size: what
  // its parts tell each other is not in memory then, which saves a quarter of the instructions.
  // What few do is kept out of it.

  template <class Command>
  [[gnu::flatten]] answer_to<Command> ask(Command const& c, duration now) {
    if (!plain(c)) return ask_slowly(c, now);
    bucket_key const key{c.key};
    return ask_plain(c, key, key.hash(), now);
  }

  [[gnu::flatten]] result<decision> ask(command::take const& c, bucket_pin& pin, duration now) {
    if (!plain(c)) return ask_slowly(c, now);
    return ask_at(pin.read(), c, now, [&] { return ask_and_pin(c, pin, now); });
  }

  template <class Command>
  answer_to<Command> ask_plain(Command const& c, bucket_key const& key, std::uint64_t hash,
                               duration now) {
    bucket_place const seen = table_.home(hash).glimpse(key, hash);
    return ask_at(seen, c, now, [&] { return ask_apart(c, key, hash, seen, now); });
  }

  /// Asks the bucket in the place, if it still is there and has the one quota that is asked for,
  /// which then is valid; otherwise the answer is that of `otherwise`. The command is plain.
  template <class Command, class Otherwise>
  answer_to<Command> ask_at(bucket_place seen, Command const& c, duration now,
                            Otherwise const& otherwise) {
    rule::bucket_scale scale;
    if (seen && table_.book()[seen.meta.quotas()].is_only(c.quotas[0], scale)) {
      auto& slot = *seen.slot;
      auto arrival = slot.arrival.load(std::memory_order_acquire);
      while (arrival >= rule::bucket_scale::narrow_never && slot.read_meta() == seen.meta) {
        if constexpr (!takes<Command>) {
          rule::bucket_arrivals const only{arrival};
          return rule::peek(std::span<rule::bucket_scale const>{&scale, 1}, only, now, c.cost,
                            c.max_wait);
        } else {
          rule::single_take const step{scale, arrival, now, c.cost, c.max_wait};
          if (step.allowed()) {
            if (!slot.arrival.compare_exchange_weak(arrival, step.arrival(),
                                                    std::memory_order_acq_rel,
                                                    std::memory_order_acquire)) {
              continue;
            }
            // The slot may have got another tenant since we looked, whose arrival happened to be
            // the same. Then that one has paid, and this key has still to be asked. Nobody can tell
            // that from a tenant who paid and was then moved, or given other quotas: it pays once
            // more, each thread at most once for each such change. Less is granted, never more.
            if (slot.read_meta() != seen.meta) break;
          }
          return told{step};
        }
      }
    }
    return otherwise();
  }

  [[gnu::flatten]] void ask_each(std::span<command::take const> commands,
                                 std::span<result<decision>> answers, duration now) {
    struct lookup {
      explicit lookup(std::string_view text) noexcept : key{text}, hash{key.hash()} {}
      bucket_key key;
      std::uint64_t hash;
    };
    for (auto const& c : commands) prefetch(c.key.data());
    boost::container::static_vector<lookup, batch> lookups;
    for (auto const& c : commands) {
      auto const& l = lookups.emplace_back(c.key.size() <= limits::key_size ? c.key : "");
      table_.home(l.hash).prefetch(l.hash);
    }
    for (std::size_t i = 0; i != commands.size(); ++i) {
      auto const& c = commands[i];
      auto const& l = lookups[i];
      // In place, as in `told`. If this throws, what was there still is.
      static_assert(std::is_trivially_destructible_v<result<decision>>);
      ::new (static_cast<void*>(&answers[i]))
          result<decision>(plain(c) ? ask_plain(c, l.key, l.hash, now) : ask_slowly(c, now));
    }
  }

  // What few do is in bucket_steps.hpp.

  class held_quotas;
  class counted_place;

  result<decision> ask_and_pin(command::take const& c, bucket_pin& pin, duration now);

  template <class Command>
  answer_to<Command> ask_slowly(Command const& c, duration now);

  /// For a bucket that was not seen, or not with an arrival in its slot. Where it was, the arrival
  /// of the one quota that is asked for may be swapped all the same.
  template <class Command>
  answer_to<Command> ask_apart(Command const& c, bucket_key const& key, std::uint64_t hash,
                               bucket_place seen, duration now);

  template <class Command>
  answer_to<Command> ask_locked(Command const& c, bucket_key const& key, std::uint64_t hash,
                                bucket_shard& home, duration now);
  template <class Command>
  answer_to<Command> ask_in(bucket_shard& home, Command const& c, bucket_key const& key,
                            std::uint64_t hash, duration now);

  /// For a bucket that exists, with its shard locked.
  template <class Command>
  answer_to<Command> ask_known(Command const& c, bucket_shard& home,
                               bucket_shard::sighting const& seen, duration now);

  /// For a bucket that has other quotas until now, with its shard locked.
  template <class Command>
  answer_to<Command> ask_changed(Command const& c, bucket_shard& home,
                                 bucket_shard::sighting const& seen, duration now);

  /// For a bucket that does not exist, with its shard locked.
  template <class Command>
  answer_to<Command> ask_unknown(Command const& c, bucket_key const& key, std::uint64_t hash,
                                 bucket_shard& home, duration now);

  template <class Command>
  [[nodiscard]] static typename Command::result shed(Command const& c) noexcept;

  [[nodiscard]] duration since_epoch(time_point now) noexcept {
    auto epoch = epoch_.load(std::memory_order_relaxed);
    if (epoch == no_epoch) [[unlikely]] {
      auto const first = std::max(now.time_since_epoch().count(), no_epoch + 1);
      if (epoch_.compare_exchange_strong(epoch, first, std::memory_order_relaxed)) epoch = first;
    }
    return rule::within_horizon(saturating_sub(now, time_point{duration{epoch}}));
  }

  static constexpr duration::rep no_epoch = std::numeric_limits<duration::rep>::min();

  std::atomic<duration::rep> epoch_{no_epoch};
  bucket_table table_;
};

using memory_buckets = basic_memory_buckets<void>;

}  // namespace weir::detail

#endif
