// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_LOCK_DEFECTS_HPP
#define WEIR_TEST_CONFORMANCE_LOCK_DEFECTS_HPP

#include "conformance/mutant_store.hpp"
#include "weir/command/locks.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

namespace weir::testing {

enum lock_defect : int {
  release_by_key,
  release_by_holder,
  renew_without_owner,
  renew_revives,
  renew_does_nothing,
  skewed_clients,
  lives_too_long,
  whole_seconds,
  asking_again_prolongs,
  asking_again_is_refused,
  fences_start_again,
  fences_without_time,
  keys_lose_case,
  keys_end_at_nul,
  holders_are_cut,
  leases_stay_for_ever,
  check_then_act,
  accepts_no_ttl,
  refusal_is_silent,
};

inline constexpr mutant lock_mutants[] = {
    {release_by_key, "F13", "release deletes by key alone"},
    {release_by_holder, "R5", "release looks at the holder and not at the fence"},
    {renew_without_owner, "F13", "renew looks at neither holder nor fence"},
    {renew_revives, "F6", "renew takes a lock again that was over"},
    {renew_does_nothing, "F6", "renew says yes and changes nothing"},
    {skewed_clients, "F4", "the clients' clocks decide"},
    {lives_too_long, "R5", "a lease lives at its expiry"},
    {whole_seconds, "F9", "TTLs are cut to whole seconds"},
    {asking_again_prolongs, "F45", "a holder that asks again is given a new end"},
    {asking_again_is_refused, "F45", "a holder that asks again is refused"},
    {fences_start_again, "F47", "each lock counts its fences from 1 after it was free"},
    {fences_without_time, "R5", "fences are a counter and do not follow time"},
    {keys_lose_case, "F27", "keys are compared without case"},
    {keys_end_at_nul, "F27", "keys end at a NUL"},
    {holders_are_cut, "F27", "holders end at a NUL"},
    {leases_stay_for_ever, "F11", "what expires stays and counts"},
    {check_then_act, "F17", "a lock is looked at in one step and taken in another"},
    {accepts_no_ttl, "R8", "a TTL of 0 is accepted and means an hour"},
    {refusal_is_silent, "R2", "a refusal does not say who holds the lock"},
};

struct lock_defects : no_defects {
  using no_defects::look;
  using no_defects::no_defects;

  std::map<std::string, std::uint64_t> fence_of;
  std::map<std::string, std::string> names;
  std::size_t taken = 0;

  bool splits(command::acquire_lock const&) const { return which == check_then_act; }
  template <class C>
  bool splits(C const&) const {
    return false;
  }
  template <class Next>
  std::int64_t look(command::acquire_lock const& c, time_point now, Next const& next) {
    if (which != check_then_act) return 0;
    auto const info = next(command::inspect_lock{c.key}, now);
    return info.has_value() && !info->held ? 1 : 0;
  }

  std::string spoiled(std::string_view key) const {
    std::string out{key};
    if (which == keys_lose_case) {
      std::transform(out.begin(), out.end(), out.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    }
    if (which == keys_end_at_nul) {
      auto const nul = out.find('\0');
      if (nul != 0 && nul != out.npos) out.resize(nul);
    }
    return out;
  }

  /// The same with keys, holders and time as this store sees them.
  template <class C, class Next>
  result<typename C::result> step(C c, time_point now, Next const& next, std::int64_t looked) {
    auto const key = spoiled(c.key);
    c.key = key;
    if constexpr (requires { c.holder; }) {
      if (which == holders_are_cut)
        c.holder = c.holder.substr(0, std::max<std::size_t>(c.holder.find('\0'), 1));
      if (which == skewed_clients && !c.holder.empty())
        now += std::chrono::milliseconds{300} * (c.holder.back() % 7);
    }
    return act(c, now, next, looked);
  }

  template <class C, class Next>
  result<typename C::result> act(C const& c, time_point now, Next const& next, std::int64_t) {
    return next(c, now);
  }

  template <class Next>
  result<lock_grant> act(command::acquire_lock c, time_point now, Next const& next,
                         std::int64_t looked) {
    auto const before = next(command::inspect_lock{c.key}, now);
    if (which == whole_seconds && c.ttl > duration::zero()) {
      c.ttl = std::max<duration>(std::chrono::floor<std::chrono::seconds>(c.ttl), duration{1});
    }
    if (which == accepts_no_ttl && c.ttl == duration::zero()) c.ttl = std::chrono::hours{1};
    if (which == check_then_act && looked == 1 && before.has_value() && before->held) {
      next(command::release_lock{c.key, before->holder, 0}, now);
    }
    if (which == asking_again_is_refused && before.has_value() && before->held &&
        before->holder == c.holder) {
      return lock_grant{false, 0, before->expires_in, before->holder};
    }
    if (which == lives_too_long && c.ttl > duration::zero()) c.ttl += duration{1};
    auto grant = next(c, now);
    if (which == lives_too_long && grant.has_value()) grant->expires_in -= duration{1};
    if (grant.has_error() || !grant->granted) {
      if (which == refusal_is_silent && grant.has_value()) grant->holder.clear();
      return grant;
    }
    bool const fresh = !(before.has_value() && before->held);
    if (which == asking_again_prolongs && !fresh) {
      auto const renewed = next(command::renew_lock{c.key, c.holder, grant->fence, c.ttl}, now);
      if (renewed.has_value()) grant->expires_in = renewed->expires_in;
    }
    if (which == leases_stay_for_ever && fresh && ++taken > 10) return errc::store_full;
    return grant;
  }

  template <class Next>
  result<lease_renewal> act(command::renew_lock c, time_point now, Next const& next, std::int64_t) {
    auto const before = next(command::inspect_lock{c.key}, now);
    if (before.has_value() && before->held) {
      if (which == renew_without_owner) {
        return next(command::renew_lock{c.key, before->holder, before->fence, c.ttl}, now);
      }
      if (which == renew_does_nothing && before->holder == c.holder && before->fence == c.fence &&
          c.ttl > duration::zero() && c.ttl <= limits::span) {
        return lease_renewal{c.ttl};
      }
    } else if (which == renew_revives) {
      auto const grant = next(command::acquire_lock{c.key, c.holder, c.ttl}, now);
      if (grant.has_error()) return grant.error();
      return lease_renewal{grant->expires_in};
    }
    return next(c, now);
  }

  template <class Next>
  result<lease_release> act(command::release_lock c, time_point now, Next const& next,
                            std::int64_t) {
    if (which == release_by_key) {
      auto const before = next(command::inspect_lock{c.key}, now);
      if (before.has_value() && before->held) {
        return next(command::release_lock{c.key, before->holder, before->fence}, now);
      }
    }
    if (which == release_by_holder) c.fence = 0;
    return next(c, now);
  }
};

/// Defects of the fences' numbers only, which everything else goes on to use.
struct fence_defects : lock_defects {
  using lock_defects::lock_defects;
  using lock_defects::look;
  using lock_defects::splits;

  std::uint64_t count = 0;
  std::map<std::uint64_t, std::uint64_t> shown;  // real fence -> what is told

  template <class C, class Next>
  result<typename C::result> step(C c, time_point now, Next const& next, std::int64_t looked) {
    bool const renumbers = which == fences_start_again || which == fences_without_time;
    if (!renumbers) return lock_defects::step(c, now, next, looked);
    if constexpr (requires { c.fence; }) {
      if (c.fence != 0) {
        auto const info = next(command::inspect_lock{c.key}, now);
        if (info.has_value() && info->held && shown[info->fence] == c.fence) {
          c.fence = info->fence;
        } else {
          c.fence = ~std::uint64_t{0};
        }
      }
    }
    auto const before = next(command::inspect_lock{c.key}, now);
    bool const held = before.has_value() && before->held;
    auto answer = next(c, now);
    if constexpr (requires { answer->fence; }) {
      if (answer.has_value() && answer->fence != 0) {
        auto& told = shown[answer->fence];
        if (told == 0) told = which == fences_start_again ? 1 : ++count;
        if (which == fences_start_again && !held) told = 1;
        answer->fence = told;
      }
    }
    return answer;
  }
};

}  // namespace weir::testing

#endif
