// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_PERMIT_DEFECTS_HPP
#define WEIR_TEST_CONFORMANCE_PERMIT_DEFECTS_HPP

#include "conformance/mutant_store.hpp"
#include "weir/command/permits.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace weir::testing {

enum permit_defect : int {
  release_by_slot,
  release_by_holder,
  newest_ttl_for_all,
  callers_prune_others,
  skewed_clients,
  renew_revives,
  renew_does_nothing,
  renew_by_holder,
  releases_raise_the_limit,
  first_limit_sticks,
  lowering_revokes,
  whole_seconds,
  lives_too_long,
  nobody_keeps_a_place,
  newcomers_overtake,
  tickets_never_lapse,
  hints_for_everyone,
  hints_for_nobody,
  hints_for_the_early,
  everyone_retries_at_once,
  permits_stay_for_ever,
  keys_lose_case,
  asking_again_takes_another,
  fences_start_again,
  one_too_many,
  waiters_count_as_holders,
  accepts_no_limit,
  check_then_act,
};

inline constexpr mutant permit_mutants[] = {
    {release_by_slot, "F1", "a release by who has no permit any more frees the oldest"},
    {release_by_holder, "F1", "a release looks at the holder and not at the fence"},
    {newest_ttl_for_all, "F3", "the whole key is given the newest caller's TTL"},
    {callers_prune_others, "F3", "a caller's TTL ends permits that were taken for longer"},
    {skewed_clients, "F4", "the clients' clocks decide"},
    {renew_revives, "F6", "renew takes a permit again that was over"},
    {renew_does_nothing, "F6", "renew says yes and changes nothing"},
    {renew_by_holder, "R5", "renew looks at the holder and not at the fence"},
    {releases_raise_the_limit, "F7", "a second release raises the limit"},
    {first_limit_sticks, "F8", "the first limit of a key is used for ever"},
    {lowering_revokes, "F8", "lowering the limit revokes what is held"},
    {whole_seconds, "F9", "TTLs are cut to whole seconds"},
    {lives_too_long, "R5", "a permit lives at its expiry"},
    {nobody_keeps_a_place, "F10", "refused holders keep no place in line"},
    {newcomers_overtake, "F10", "newcomers without patience overtake the line"},
    {tickets_never_lapse, "R6", "a ticket stays when its holder is gone"},
    {hints_for_everyone, "F10", "everyone who waits is woken at once"},
    {hints_for_nobody, "F10", "nobody is told of a free permit"},
    {hints_for_the_early, "F38",
     "who begins to wait when a permit is free is told of the next one"},
    {everyone_retries_at_once, "F10", "all who wait are told to come back at the first expiry"},
    {permits_stay_for_ever, "F11", "what expires stays and counts"},
    {keys_lose_case, "F27", "keys are compared without case"},
    {asking_again_takes_another, "F45", "a holder that asks again takes another permit"},
    {fences_start_again, "F47", "a key counts its fences from 1 after it was free"},
    {one_too_many, "R1", "limits above two are one too high"},
    {waiters_count_as_holders, "R1", "the census counts those who wait as holders"},
    {accepts_no_limit, "R8", "a limit of 0 is accepted and means 1"},
    {check_then_act, "R1", "permits are counted in one step and taken in another"},
};

struct permit_defects : no_defects {
  using no_defects::look;
  using no_defects::no_defects;
  using no_defects::splits;

  std::map<std::string, std::uint32_t> extra;
  std::map<std::string, std::uint32_t> first_limit;
  std::map<std::uint64_t, std::uint64_t> shown;
  std::uint64_t count = 0;
  std::size_t taken = 0;
  bool released = false;

  [[nodiscard]] waiting wait() const {
    if (which == hints_for_everyone) return waiting::told_at_once;
    if (which == hints_for_the_early && released) return waiting::never_told;
    return which == hints_for_nobody ? waiting::never_told : waiting::as_it_should;
  }

  bool splits(command::acquire_permit const&) const { return which == check_then_act; }
  template <class Next>
  std::int64_t look(command::acquire_permit const& c, time_point now, Next const& next) {
    if (which != check_then_act) return 0;
    auto const census = next(command::inspect_permits{c.key, 0}, now);
    return census.has_value() && census->in_use + census->waiting < c.limit ? 1 : 0;
  }

  template <class C, class Next>
  result<typename C::result> step(C c, time_point now, Next const& next, std::int64_t looked) {
    auto const key = which == keys_lose_case ? without_case(c.key) : std::string{c.key};
    c.key = key;
    if constexpr (requires { c.holder; }) {
      if (which == skewed_clients && !c.holder.empty()) {
        now += std::chrono::milliseconds{300} * (c.holder.back() % 7);
      }
    }
    if (which != fences_start_again) return act(c, now, next, looked);
    if constexpr (requires { c.fence; }) {
      if (c.fence != 0) {
        auto const census = next(command::inspect_permits{c.key, 100}, now);
        std::uint64_t real = ~std::uint64_t{0};
        for (auto const& p : census.has_value() ? census->holders : std::vector<permit_info>{}) {
          if (p.holder == c.holder && shown[p.fence] == c.fence) real = p.fence;
        }
        c.fence = real;
      }
    }
    auto const census = next(command::inspect_permits{c.key, 0}, now);
    if (census.has_value() && census->in_use == 0) count = 0;
    auto answer = next(c, now);
    auto const tell = [&](std::uint64_t& fence) {
      if (fence == 0) return;
      if (shown[fence] == 0) shown[fence] = ++count;
      fence = shown[fence];
    };
    if constexpr (requires { answer->fence; }) {
      if (answer.has_value()) tell(answer->fence);
    }
    if constexpr (requires { answer->holders; }) {
      if (answer.has_value()) {
        for (auto& p : answer->holders) tell(p.fence);
      }
    }
    return answer;
  }

  template <class C, class Next>
  result<typename C::result> act(C const& c, time_point now, Next const& next, std::int64_t) {
    auto answer = next(c, now);
    if constexpr (std::is_same_v<C, command::inspect_permits>) {
      if (which == waiters_count_as_holders && answer.has_value())
        answer->in_use += answer->waiting;
    }
    return answer;
  }

  template <class Next>
  result<permit_grant> act(command::acquire_permit c, time_point now, Next const& next,
                           std::int64_t looked) {
    released = false;
    auto const before = next(command::inspect_permits{c.key, 1000}, now);
    std::string const own{c.holder};
    bool const has =
        before.has_value() && std::any_of(before->holders.begin(), before->holders.end(),
                                          [&](auto const& p) { return p.holder == own; });
    std::string const another = own + "'";
    bool const valid = c.ttl > duration::zero() && c.ttl <= limits::span && c.limit > 0;
    if (valid) {
      if (which == whole_seconds) {
        c.ttl = std::max<duration>(std::chrono::floor<std::chrono::seconds>(c.ttl), duration{1});
      }
      if (which == lives_too_long) c.ttl += duration{1};
      if (which == releases_raise_the_limit) c.limit += extra[std::string{c.key}];
      if (which == first_limit_sticks) c.limit = first_limit.emplace(c.key, c.limit).first->second;
      if (which == one_too_many && c.limit > 2 && c.limit < 1000) ++c.limit;
      if (which == nobody_keeps_a_place) c.patience = duration::zero();
      if (which == tickets_never_lapse && c.patience > duration::zero()) c.patience = limits::span;
      if (which == newcomers_overtake && c.patience == duration::zero() && before.has_value())
        c.limit += before->waiting;
      if (which == asking_again_takes_another && has) c.holder = another;
      if (which == check_then_act && looked == 1 && before.has_value())
        c.limit += before->in_use + before->waiting;
    }
    if (which == accepts_no_limit && c.limit == 0) c.limit = 1;
    if (before.has_value() && which == callers_prune_others) {
      for (auto const& p : before->holders) {
        if (p.expires_in > c.ttl && p.holder != own)
          next(command::release_permit{c.key, p.holder, p.fence}, now);
      }
    }
    if (before.has_value() && which == lowering_revokes) {
      for (std::size_t i = c.limit; i < before->holders.size(); ++i) {
        auto const& p = before->holders[i];
        next(command::release_permit{c.key, p.holder, p.fence}, now);
      }
    }
    auto grant = next(c, now);
    if (grant.has_error()) return grant;
    if (which == lives_too_long && grant->granted) grant->expires_in -= duration{1};
    if (which == everyone_retries_at_once && !grant->granted && before.has_value() &&
        !before->holders.empty()) {
      auto first = duration::max();
      for (auto const& p : before->holders) first = std::min(first, p.expires_in);
      grant->retry_after = first;
    }
    if (!grant->granted) return grant;
    if (which == newest_ttl_for_all && before.has_value()) {
      for (auto const& p : before->holders)
        next(command::renew_permit{c.key, p.holder, p.fence, c.ttl}, now);
    }
    if (which == permits_stay_for_ever && !has && ++taken > 6) return errc::store_full;
    return grant;
  }

  template <class Next>
  result<lease_renewal> act(command::renew_permit c, time_point now, Next const& next,
                            std::int64_t) {
    auto const census = next(command::inspect_permits{c.key, 1000}, now);
    auto renewed = next(c, now);
    if (census.has_error()) return renewed;
    auto const own = std::find_if(census->holders.begin(), census->holders.end(),
                                  [&](auto const& p) { return p.holder == c.holder; });
    if (which == renew_by_holder && own != census->holders.end()) {
      return next(command::renew_permit{c.key, c.holder, own->fence, c.ttl}, now);
    }
    if (which == renew_does_nothing && renewed.has_value()) {
      next(command::renew_permit{c.key, c.holder, c.fence, own->expires_in}, now);
    }
    if (which == renew_revives && renewed.has_error() && renewed.error() == errc::lease_lost) {
      auto const grant =
          next(command::acquire_permit{c.key, c.holder, limits::permits, c.ttl, {}}, now);
      if (grant.has_value() && grant->granted) return lease_renewal{grant->expires_in};
    }
    return renewed;
  }

  template <class Next>
  result<lease_release> act(command::release_permit c, time_point now, Next const& next,
                            std::int64_t) {
    if (which == release_by_holder) c.fence = 0;
    released = true;
    auto answer = next(c, now);
    if (answer.has_error() || answer->freed) return answer;
    if (which == releases_raise_the_limit && c.fence != 0) ++extra[std::string{c.key}];
    if (which == release_by_slot) {
      auto const census = next(command::inspect_permits{c.key, 1}, now);
      if (census.has_value() && !census->holders.empty()) {
        auto const& p = census->holders.front();
        return next(command::release_permit{c.key, p.holder, p.fence}, now);
      }
    }
    return answer;
  }
};

}  // namespace weir::testing

#endif
