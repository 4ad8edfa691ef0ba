// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_LEASE_AUDIT_HPP
#define WEIR_TESTING_SIMULATION_LEASE_AUDIT_HPP

#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing::simulation {

/// Holds every answer about permits and locks to R1, R2 and R5. It knows the answers only, and not
/// how a store comes by them.
class lease_audit {
 public:
  explicit lease_audit(world& in) : world_{in} {}

  void on(command::acquire_permit const& c, result<permit_grant> const& a, time_point now) {
    auto& k = permits_.find_or_make(c.key);
    k.expire(now);
    if (a.has_error()) return;
    auto const& g = a.value();
    auto const* const held = k.find(c.holder);
    auto const ticket = k.ticket(c.holder);
    if (!g.granted) {
      expect(held == nullptr, "R1", c.key, "a live holder was refused");
      auto const ahead = static_cast<std::size_t>(ticket - k.line.begin());
      auto const others =
          c.patience > duration::zero() || ticket == k.line.end() ? ahead : k.line.size() - 1;
      expect(k.held.size() + others >= c.limit, "R1", c.key,
             "refused although a permit is free and nobody is before it");
      if (k.held.size() < c.limit && c.patience == duration::zero()) {
        world_.reach(rare_state::line_not_overtaken);
      }
      if (k.held.size() > c.limit) world_.reach(rare_state::limit_lowered);
      if (c.patience > duration::zero()) {
        if (ticket == k.line.end()) {
          k.line.push_back({std::string{c.holder}, now + c.patience});
        } else {
          ticket->deadline = now + c.patience;
        }
      } else if (ticket != k.line.end()) {
        k.line.erase(ticket);
      }
      return;
    }
    world_.mix(g.fence);
    if (held != nullptr) {
      expect(held->fence == g.fence, "R5", c.key, "a holder's lease changed its fence");
      expect(now + g.expires_in == held->expiry, "R1", c.key, "asking again changed the lease");
      return;
    }
    auto const ahead = static_cast<std::size_t>(ticket - k.line.begin());
    expect(k.held.size() < c.limit, "R1", c.key,
           "granted beyond the limit of " + std::to_string(c.limit));
    expect(k.held.size() + ahead < c.limit, "R1", c.key, "granted past those who wait");
    if (ticket != k.line.end()) {
      world_.reach(rare_state::waited_in_line);
      k.line.erase(ticket);
    }
    grant(k, c, g, now);
    expect(g.in_use == k.held.size(), "R1", c.key, "in_use is not the number of live permits");
  }

  void on(command::acquire_lock const& c, result<lock_grant> const& a, time_point now) {
    auto& k = locks_.find_or_make(c.key);
    k.expire(now);
    if (a.has_error()) return;
    auto const& g = a.value();
    auto const* const held = k.find(c.holder);
    if (!g.granted) {
      expect(held == nullptr && !k.held.empty(), "R2", c.key, "refused although nobody has it");
      world_.reach(rare_state::lock_conflict);
      return;
    }
    world_.mix(g.fence);
    if (held != nullptr) {
      expect(held->fence == g.fence, "R5", c.key, "a holder's lease changed its fence");
      return;
    }
    expect(k.held.empty(), "R2", c.key, "a lock has two holders");
    grant(k, c, g, now);
  }

  void on(command::renew_permit const& c, result<lease_renewal> const& a, time_point now) {
    renew(permits_.find_or_make(c.key), c, a, now);
  }
  void on(command::renew_lock const& c, result<lease_renewal> const& a, time_point now) {
    renew(locks_.find_or_make(c.key), c, a, now);
  }
  void on(command::release_permit const& c, result<lease_release> const& a, time_point now) {
    release(permits_.find_or_make(c.key), c, a, now);
  }
  void on(command::release_lock const& c, result<lease_release> const& a, time_point now) {
    release(locks_.find_or_make(c.key), c, a, now);
  }

  /// A step may end what is over on any key, and that stays over when time runs back; so that it is
  /// known what is, all of it is ended now. `look(key, is_lock)` has the store do so.
  template <class Look>
  void end_all(time_point now, Look const& look) {
    for (auto* const table : {&permits_, &locks_}) {
      for (auto& [key, k] : table->all) {
        if (!k.any_over(now)) continue;
        look(key, table == &locks_);
        k.expire(now);
      }
    }
  }

  /// What the store says that it has, right after a step.
  void compare(std::string_view key, permit_census const& found, time_point now) {
    auto& k = permits_.find_or_make(key);
    k.expire(now);
    expect(found.in_use == k.held.size(), "R1", key,
           std::to_string(found.in_use) + " permits are in use, by the answers " +
               std::to_string(k.held.size()));
    expect(found.waiting == k.line.size(), "R1", key,
           std::to_string(found.waiting) + " wait in line, by the answers " +
               std::to_string(k.line.size()));
  }
  void compare(std::string_view key, lock_info const& found, time_point now) {
    auto& k = locks_.find_or_make(key);
    k.expire(now);
    expect(found.held != k.held.empty(), "R2", key, "is held, and by the answers it is not");
  }

  /// When, in the world's time, the store last gave or renewed this holder's lease.
  [[nodiscard]] duration extended_at(std::string_view holder) const {
    auto const it = extended_.find(holder);
    return it == extended_.end() ? duration::zero() : it->second;
  }

 private:
  struct lease_record {
    std::string holder;
    std::uint64_t fence;
    time_point expiry;
  };
  struct ticket_record {
    std::string holder;
    time_point deadline;
  };
  struct key_record {
    std::vector<lease_record> held;
    std::vector<ticket_record> line;
    std::uint64_t last_fence = 0;

    [[nodiscard]] bool any_over(time_point now) const {
      return std::any_of(held.begin(), held.end(),
                         [&](lease_record const& l) { return l.expiry <= now; }) ||
             std::any_of(line.begin(), line.end(),
                         [&](ticket_record const& t) { return t.deadline <= now; });
    }
    void expire(time_point now) {
      std::erase_if(held, [&](lease_record const& l) { return l.expiry <= now; });
      std::erase_if(line, [&](ticket_record const& t) { return t.deadline <= now; });
    }
    [[nodiscard]] lease_record* find(std::string_view holder) {
      auto const it = std::find_if(held.begin(), held.end(),
                                   [&](lease_record const& l) { return l.holder == holder; });
      return it == held.end() ? nullptr : &*it;
    }
    [[nodiscard]] std::vector<ticket_record>::iterator ticket(std::string_view holder) {
      return std::find_if(line.begin(), line.end(),
                          [&](ticket_record const& t) { return t.holder == holder; });
    }
  };
  struct key_table {
    key_record& find_or_make(std::string_view key) {
      auto it = all.find(key);
      if (it == all.end()) it = all.emplace(std::string{key}, key_record{}).first;
      return it->second;
    }
    std::map<std::string, key_record, std::less<>> all;
  };

  template <class C, class Grant>
  void grant(key_record& k, C const& c, Grant const& g, time_point now) {
    expect(g.fence > k.last_fence, "R5", c.key, "a fence that does not grow");
    lasts(c, g.expires_in);
    k.last_fence = std::max(k.last_fence, g.fence);
    k.held.push_back({std::string{c.holder}, g.fence, now + g.expires_in});
    extended_.insert_or_assign(std::string{c.holder}, world_.now());
  }

  template <class C>
  void lasts(C const& c, duration expires_in) {
    expect(lasts_as_asked(expires_in, c.ttl), "R5", c.key,
           "a lease that is not as long as it was asked for");
  }

  template <class C>
  void renew(key_record& k, C const& c, result<lease_renewal> const& a, time_point now) {
    k.expire(now);
    auto* const held = k.find(c.holder);
    bool const live = held != nullptr && held->fence == c.fence;
    if (a.has_error()) {
      expect(!live, "R5", c.key, "a live lease was called lost");
      return;
    }
    expect(live, "R5", c.key, "a lease that was over was renewed");
    if (!live) return;
    lasts(c, a.value().expires_in);
    held->expiry = now + a.value().expires_in;
    extended_.insert_or_assign(std::string{c.holder}, world_.now());
  }

  template <class C>
  void release(key_record& k, C const& c, result<lease_release> const& a, time_point now) {
    k.expire(now);
    if (a.has_error()) return;
    auto* const held = k.find(c.holder);
    bool const live = held != nullptr && (c.fence == 0 || held->fence == c.fence);
    expect(a.value().freed == live, "R1", c.key,
           live ? "a live lease was not freed" : "something was freed that was not this holder's");
    if (!live && c.fence != 0) world_.reach(rare_state::late_release_harmless);
    if (live) k.held.erase(k.held.begin() + (held - k.held.data()));
    if (c.fence != 0) return;
    if (auto const t = k.ticket(c.holder); t != k.line.end()) k.line.erase(t);
  }

  void expect(bool kept, std::string_view promise, std::string_view key, std::string_view what) {
    world_.expect(kept, promise, [&] { return std::string{key}.append(": ").append(what); });
  }

  world& world_;
  key_table permits_;
  key_table locks_;
  std::map<std::string, duration, std::less<>> extended_;
};

}  // namespace weir::testing::simulation

#endif
