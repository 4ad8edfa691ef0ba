// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_PERMITS_HPP
#define WEIR_RULE_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/roster.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// What the permit commands do: each function is one command's step on the state of its key, a
/// function of state, command and time alone. The state passed in is the state afterwards; a step
/// that fails or throws leaves it as it was, less what was over by then.
///
/// Time may run backwards between steps. What was over in one step is over for good: no later step,
/// at an earlier time, finds it alive again.

namespace weir::rule {

/// The state of one key: its permits, and the line of those who wait for one.
struct permit_line {
  roster<1> permits;            ///< by holder; numbered by their fences
  roster<0> tickets;            ///< by holder; numbered by their turns
  std::uint64_t last_turn = 0;  ///< of the tickets, in order of arrival

  /// Permits and tickets, as of the last step.
  [[nodiscard]] std::size_t size() const noexcept { return permits.size() + tickets.size(); }

  /// Nothing of it is over before this.
  [[nodiscard]] time_point soonest() const noexcept {
    return std::min(permits.soonest(), tickets.soonest());
  }
};

/// There is always room for one more permit or ticket.
struct boundless {
  /// Is there room?
  [[nodiscard]] constexpr bool operator()() const noexcept { return true; }
};

/// Ends what is over at `now`: permits at their expiry, tickets at their deadline. Every step
/// begins with this. `lapsed(occupant const&)` is told of the tickets.
template <class Lapsed>
void expire(permit_line& line, time_point now, Lapsed&& lapsed) noexcept {
  line.permits.expire(now, [](occupant const&) {});
  line.tickets.expire(now, lapsed);
}

/// The same, telling nobody.
inline void expire(permit_line& line, time_point now) noexcept {
  expire(line, now, [](occupant const&) {});
}

/// Would a holder with `ahead` tickets in front of it be given a permit? It is never let past
/// anyone who waits: each of those is counted as if it had its permit already.
[[nodiscard]] inline bool is_turn(permit_line const& line, std::size_t ahead,
                                  std::uint32_t limit) noexcept {
  return line.permits.size() + ahead < limit;
}

/// Has this holder reason to ask again: its turn has come, or it is not in line (any more)?
[[nodiscard]] inline bool should_ask(permit_line& line, command::await_permit const& c,
                                     time_point now) noexcept {
  expire(line, now);
  auto const* const ticket = line.tickets.find(c.holder);
  return ticket == nullptr || is_turn(line, line.tickets.before(*ticket), ticket->limit);
}

namespace detail {

/// After how long a refused holder might be given a permit if nothing but expiries happens.
///
/// Permits end one by one, and each end serves one more of the line. For a holder with `ahead`
/// tickets before it, the one that counts is therefore the (live + ahead - limit + 1)-th to end,
/// not the first, so that a line does not wake as a herd. Where the tickets ahead alone reach the
/// limit, expiring permits cannot make it this holder's turn, and when those ahead will be done is
/// not known: then it is when nothing of what others have on the key now is left.
[[nodiscard]] inline duration retry_after(permit_line const& line, std::size_t ahead,
                                          std::uint32_t limit, occupant const* own,
                                          time_point now) noexcept {
  auto const k = line.permits.size() + ahead - limit;
  auto const end = k < line.permits.size()
                       ? line.permits.nth_end(k)
                       : std::max(line.permits.last_end(), line.tickets.last_end(own));
  return saturating_sub(end, now);
}

}  // namespace detail

/// The step of `acquire_permit`.
///
/// @param line       the state of the key; afterwards, too
/// @param c          the command, valid
/// @param now        the store's time
/// @param last_fence the last fence of the key, or of any set of keys that it belongs to; advanced
///        by a grant
/// @param room       asked before a permit or a ticket is added: is there room for one more? If
///        not, the result is `errc::store_full` and nothing has changed.
template <class Room = boundless>
result<permit_grant> apply(permit_line& line, command::acquire_permit const& c, time_point now,
                           std::uint64_t& last_fence, Room&& room = {}) {
  expire(line, now);
  permit_grant grant;
  if (auto const* const held = line.permits.find(c.holder)) {
    grant.granted = true;
    grant.fence = held->number;
    grant.expires_in = saturating_sub(held->until, now);
    grant.in_use = static_cast<std::uint32_t>(line.permits.size());
    return grant;
  }

  auto const* const ticket = line.tickets.find(c.holder);
  auto ahead = ticket != nullptr ? line.tickets.before(*ticket) : line.tickets.size();
  if (is_turn(line, ahead, c.limit)) {
    if (ticket == nullptr && !room()) return make_error_code(errc::store_full);
    auto const fence = next_fence(last_fence, now);
    auto const expiry = saturating_add(now, c.ttl);
    line.permits.add(c.holder, fence, expiry, c.limit);
    last_fence = fence;
    if (ticket != nullptr) line.tickets.erase(*ticket);
    grant.granted = true;
    grant.fence = fence;
    grant.expires_in = saturating_sub(expiry, now);
    grant.in_use = static_cast<std::uint32_t>(line.permits.size());
    return grant;
  }

  grant.in_use = static_cast<std::uint32_t>(line.permits.size());
  if (c.patience > duration::zero()) {
    grant.place = static_cast<std::uint32_t>(ahead + 1);
    grant.retry_after = detail::retry_after(line, ahead, c.limit, ticket, now);
    auto const deadline = saturating_add(now, c.patience);
    if (ticket != nullptr) {
      line.tickets.change(*ticket, deadline, c.limit);
    } else {
      if (!room()) return make_error_code(errc::store_full);
      line.tickets.add(c.holder, line.last_turn + 1, deadline, c.limit);
      ++line.last_turn;
    }
  } else {
    if (ticket != nullptr) line.tickets.erase(*ticket);
    ahead = line.tickets.size();  // whoever comes without a place comes last
    grant.retry_after = detail::retry_after(line, ahead, c.limit, nullptr, now);
  }
  return grant;
}

/// The lease lasts `ttl` from now, also where that is less than what was left of it.
inline result<lease_renewal> apply(permit_line& line, command::renew_permit const& c,
                                   time_point now) {
  expire(line, now);
  auto const* const held = line.permits.find(c.holder);
  if (held == nullptr || held->number != c.fence) return make_error_code(errc::lease_lost);
  auto const expiry = saturating_add(now, c.ttl);
  line.permits.change(*held, expiry, held->limit);
  return lease_renewal{saturating_sub(expiry, now)};
}

/// The step of `release_permit`; fence 0: whatever the holder has, permit and ticket.
inline lease_release apply(permit_line& line, command::release_permit const& c,
                           time_point now) noexcept {
  expire(line, now);
  lease_release released;
  auto const* const held = line.permits.find(c.holder);
  if (held != nullptr && (c.fence == 0 || held->number == c.fence)) {
    line.permits.erase(*held);
    released.freed = true;
  }
  if (c.fence != 0) return released;
  if (auto const* const ticket = line.tickets.find(c.holder)) {
    line.tickets.erase(*ticket);
    released.left_line = true;
  }
  return released;
}

/// The answer to `inspect_permits`.
inline permit_census apply(permit_line& line, command::inspect_permits const& c, time_point now) {
  expire(line, now);
  permit_census census;
  census.in_use = static_cast<std::uint32_t>(line.permits.size());
  census.waiting = static_cast<std::uint32_t>(line.tickets.size());
  census.holders.reserve(std::min<std::size_t>(c.limit, line.permits.size()));
  line.permits.first(c.limit, [&](occupant const& o) {
    census.holders.push_back({o.holder, o.number, saturating_sub(o.until, now)});
  });
  return census;
}

}  // namespace weir::rule

#endif
