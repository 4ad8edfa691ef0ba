// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_LEASE_TABLE_HPP
#define WEIR_STORE_MEMORY_LEASE_TABLE_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/error.hpp"
#include "weir/table/tighten.hpp"
#include "weir/time.hpp"

#include <boost/container_hash/hash.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_node_map.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// What a lease table keeps for one key. `Deferred` collects what a step leaves to be done once
/// nothing is locked: it is default-constructed before and destroyed after the lock.
template <class State>
concept lease_state =
    std::default_initializable<State> && std::default_initializable<typename State::deferred> &&
    requires(State& s, State const& c, time_point now, typename State::deferred& d) {
      { c.size() } noexcept -> std::convertible_to<std::size_t>;  // leases, as counted
      { c.soonest() } noexcept -> std::same_as<time_point>;       // a lower bound of the ends
      { s.expire(now, d) } noexcept;                              // ends what is over
      { s.settle(d) } noexcept;                                   // what every step ends with
    };

/// Leases by key, for a store in memory: bounded over all keys, and shared by any number of
/// threads.
///
/// Keys are spread over stripes, each with a lock of its own. A key that holds nothing leaves the
/// table in the step that empties it. One whose leases merely expire is found through an index by
/// their ends: every step removes up to two such keys of its own stripe, and every sixteenth looks
/// at another stripe, too, so that nothing abandoned stays as long as any key is used at all (F11).
/// When the bound is reached, whatever has expired anywhere goes before anyone is refused.
///
/// A step at some time ends what has expired by then, on whatever key it comes across it, for good.
///
/// The index is an intrusive tree, because leases mostly end in the order in which they begin:
/// putting the last one to the end, and taking out any, is amortised constant there and allocates
/// nothing. A key moves in it only to an earlier place; one whose ends have moved later is put
/// right when it comes up.
template <lease_state State>
class lease_table {
  struct sought_key {
    std::string_view text;
    std::size_t hash;
  };

  struct stored_key {
    explicit stored_key(sought_key const& k) : text{k.text}, hash{k.hash} {}
    std::string text;
    std::size_t hash;
  };

  struct key_hash {
    using is_transparent = void;
    using is_avalanching = void;
    template <class Key>
    std::size_t operator()(Key const& k) const noexcept {
      return k.hash;
    }
  };

  struct key_equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(A const& a, B const& b) const noexcept {
      return a.hash == b.hash && a.text == b.text;
    }
  };

  struct record : boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
    stored_key const* key = nullptr;
    time_point due{};  // its place in the index: no lease of it ends before
    State state;
  };

  struct earlier {
    bool operator()(record const& a, record const& b) const noexcept { return a.due < b.due; }
  };

  using records = boost::unordered_node_map<stored_key, record, key_hash, key_equal>;
  using index = boost::intrusive::multiset<record, boost::intrusive::compare<earlier>,
                                           boost::intrusive::constant_time_size<false>>;

  struct alignas(64) stripe {
    std::mutex mutex;
    std::uint64_t last_fence = 0;
    std::uint32_t steps = 0;
    std::atomic<duration::rep> next_due{never};  // written under the lock, read without
    records by_key;
    index by_due;
  };

 public:
  using deferred = typename State::deferred;

  /// What a step may use besides the state of its key.
  class scope {
   public:
    /// The last fence of this key and of those that share its stripe: kept for good, so that it
    /// grows for each.
    [[nodiscard]] std::uint64_t& last_fence() noexcept { return stripe_.last_fence; }
    [[nodiscard]] deferred& later() noexcept { return later_; }

    /// Reserves room for one lease; what the step does not use is given back.
    [[nodiscard]] bool reserve() noexcept {
      auto used = table_.used_.load(std::memory_order_relaxed);
      while (used < table_.capacity_) {
        if (table_.used_.compare_exchange_weak(used, used + 1, std::memory_order_relaxed)) {
          ++counted_;
          return true;
        }
      }
      full_ = true;
      return false;
    }

   private:
    friend class lease_table;
    scope(lease_table& table, stripe& s, time_point now, deferred& later) noexcept
        : table_{table},
          stripe_{s},
          now_{now},
          later_{later} {}
    scope(scope const&) = delete;
    scope& operator=(scope const&) = delete;
    ~scope() {
      if (entered_) {
        auto& r = place_->second;
        r.state.settle(later_);
        table_.count(counted_, r.state.size());
        if (!table_.file(stripe_, r)) stripe_.by_key.erase(place_);
      }
      table_.tidy(stripe_, now_, later_);
      tighten(stripe_.by_key);
    }

    State& enter(typename records::iterator place) noexcept {
      place_ = place;
      entered_ = true;
      auto& state = place->second.state;
      auto const before = state.size();
      state.expire(now_, later_);
      counted_ = state.size();
      table_.count(before, counted_);
      return state;
    }

    lease_table& table_;
    stripe& stripe_;
    time_point now_;
    deferred& later_;
    typename records::iterator place_;
    std::size_t counted_ = 0;  // what the table believes that this key has
    bool entered_ = false;
    bool full_ = false;
  };

  explicit lease_table(std::size_t capacity) noexcept : capacity_{capacity} {}

  /// Runs `step(State&, scope&)` on the key, which is added if it is not there and leaves again if
  /// it stays empty.
  template <class Step>
  auto update(std::string_view key, time_point now, Step&& step) {
    sought_key const sought{key, string_hash{}(key)};
    for (bool last_try = false;; last_try = true) {
      bool full = false;
      auto answer = locked(sought, now, [&](scope& s) {
        auto const place = s.stripe_.by_key.try_emplace(sought).first;
        place->second.key = &place->first;
        auto result = step(s.enter(place), s);
        full = s.full_;
        return result;
      });
      if (!full || last_try || !make_room(now)) return answer;
    }
  }

  /// Runs `step(State*, scope&)` on the key, with null if the table does not have it.
  template <class Step>
  auto visit(std::string_view key, time_point now, Step&& step) {
    sought_key const sought{key, string_hash{}(key)};
    return locked(sought, now, [&](scope& s) {
      auto const found = s.stripe_.by_key.find(sought);
      if (found == s.stripe_.by_key.end()) return step(static_cast<State*>(nullptr), s);
      return step(&s.enter(found), s);
    });
  }

  /// A step's caller says what time it is, instead of the store's clock: what is live then is not
  /// tidied by steps at other times, until another one is said.
  void told(time_point t) noexcept {
    told_.store(t.time_since_epoch().count(), std::memory_order_relaxed);
  }

  /// Leases in the table, expired ones that nobody has come across among them.
  [[nodiscard]] std::size_t size() const noexcept { return used_.load(std::memory_order_relaxed); }

  /// Keys in the table, likewise.
  [[nodiscard]] std::size_t keys() {
    std::size_t n = 0;
    for (auto& s : stripes_) {
      std::lock_guard const lock{s.mutex};
      n += s.by_key.size();
    }
    return n;
  }

 private:
  static constexpr std::size_t stripe_count = 64;
  static constexpr std::uint32_t steps_per_neighbour = 16;
  static constexpr std::size_t keys_per_step = 2;
  static constexpr std::size_t keys_per_neighbour = 32;
  static constexpr auto never = std::numeric_limits<duration::rep>::max();

  template <class Body>
  auto locked(sought_key const& key, time_point now, Body&& body) {
    // By a hash without the secret: keys of a stripe share their fences, which are to be the same
    // when a simulated run is run again. A stripe that gets all keys is a busy lock and costs no
    // more comparisons, since its table is hashed with the secret.
    auto const home = boost::hash<std::string_view>{}(key.text) % stripe_count;
    auto& s = stripes_[home];
    auto const run = [&](std::size_t& neighbour) {
      deferred later;
      std::lock_guard const lock{s.mutex};
      if (++s.steps % steps_per_neighbour == 0) {
        neighbour = s.steps / steps_per_neighbour % stripe_count;
      }
      scope context{*this, s, now, later};
      return body(context);
    };
    auto neighbour = home;
    auto answer = run(neighbour);
    if (neighbour != home) reap_other(stripes_[neighbour], no_later(now), keys_per_neighbour);
    return answer;
  }

  // Than the latest told time.
  [[nodiscard]] time_point no_later(time_point now) const noexcept {
    return std::min(now, time_point{duration{told_.load(std::memory_order_relaxed)}});
  }

  // Removes a little of what has expired on the stripe.
  void tidy(stripe& s, time_point now, deferred& later) noexcept {
    if (s.by_due.empty() || s.by_due.begin()->due > now) return publish(s);
    reap_here(s, no_later(now), keys_per_step, later);
  }

  // Removes some of what has expired anywhere. False: nothing has.
  bool make_room(time_point now) noexcept {
    for (auto& s : stripes_) {
      while (is_due(s, now)) {
        if (reap_other(s, now, keys_per_neighbour)) return true;
      }
    }
    return false;
  }

  static bool is_due(stripe const& s, time_point now) noexcept {
    auto const due = s.next_due.load(std::memory_order_relaxed);
    return due != never && due <= now.time_since_epoch().count();
  }

  bool reap_here(stripe& s, time_point now, std::size_t keys, deferred& later) noexcept {
    bool any = false;
    for (; keys > 0 && !s.by_due.empty() && s.by_due.begin()->due <= now; --keys) {
      auto& r = *s.by_due.begin();
      auto const before = r.state.size();
      r.state.expire(now, later);
      r.state.settle(later);
      count(before, r.state.size());
      any = any || r.state.size() < before;
      s.by_due.erase(s.by_due.iterator_to(r));
      if (!file(s, r)) s.by_key.erase(s.by_key.find(*r.key));
    }
    publish(s);
    return any;
  }

  bool reap_other(stripe& s, time_point now, std::size_t keys) noexcept {
    if (!is_due(s, now)) return false;
    deferred later;
    std::lock_guard const lock{s.mutex};
    bool const any = reap_here(s, now, keys, later);
    tighten(s.by_key);
    return any;
  }

  void count(std::size_t before, std::size_t after) noexcept {
    if (before != after) used_.fetch_add(after - before, std::memory_order_relaxed);
  }

  // Puts the record where it belongs in the index. False: it holds nothing and must leave the
  // table.
  bool file(stripe& s, record& r) noexcept {
    bool const empty = r.state.size() == 0;
    auto const due = r.state.soonest();
    if (r.is_linked()) {
      if (!empty && r.due <= due) return true;
      s.by_due.erase(s.by_due.iterator_to(r));
    }
    if (empty) return false;
    r.due = due;
    s.by_due.insert(s.by_due.end(), r);
    return true;
  }

  void publish(stripe& s) noexcept {
    auto const due = s.by_due.empty() ? never : s.by_due.begin()->due.time_since_epoch().count();
    if (s.next_due.load(std::memory_order_relaxed) != due) {
      s.next_due.store(due, std::memory_order_relaxed);
    }
  }

  std::size_t const capacity_;
  std::atomic<duration::rep> told_{never};
  alignas(64) std::atomic<std::size_t> used_{0};
  std::array<stripe, stripe_count> stripes_;
};

}  // namespace weir::detail

#endif
