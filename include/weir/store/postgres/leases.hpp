// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_LEASES_HPP
#define WEIR_STORE_POSTGRES_LEASES_HPP

#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/permit_step.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/time.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace weir::detail {

/// The commands of permits and locks: how each is called, and how its answer is read.
struct postgres_leases {
  template <class C>
  using of = postgres_note<C> const&;

  static postgres_call call(command::acquire_permit const& c, postgres_scope const& in) {
    return permit_step(postgres_permit_step::acquire, c, in,
                       {.limit = c.limit, .ttl = c.ttl, .patience = c.patience});
  }
  static result<permit_grant> answer(of<command::acquire_permit>, postgres_rows const& r) {
    permit_grant out;
    out.granted = r.yes(0, 0);
    out.fence = r.as<std::uint64_t>(0, 1);
    out.expires_in = r.span(0, 2);
    out.in_use = r.as<std::uint32_t>(0, 3);
    out.place = r.as<std::uint32_t>(0, 4);
    out.retry_after = r.span(0, 5);
    return out;
  }

  static postgres_call call(command::renew_permit const& c, postgres_scope const& in) {
    return permit_step(postgres_permit_step::renew, c, in, {.fence = c.fence, .ttl = c.ttl});
  }
  static result<lease_renewal> answer(of<command::renew_permit>, postgres_rows const& r) {
    if (!r.yes(0, 0)) return errc::lease_lost;
    return lease_renewal{r.span(0, 2)};
  }

  static postgres_call call(command::release_permit const& c, postgres_scope const& in) {
    return permit_step(postgres_permit_step::release, c, in, {.fence = c.fence});
  }
  static result<lease_release> answer(of<command::release_permit>, postgres_rows const& r) {
    return lease_release{.freed = r.yes(0, 0), .left_line = r.as<std::uint32_t>(0, 4) != 0};
  }

  static postgres_call call(command::inspect_permits const& c, postgres_scope const& in) {
    postgres_call out{"inspect_permits"};
    out.add(c.key).add(c.limit).add(in.at);
    return out;
  }
  static result<permit_census> answer(of<command::inspect_permits>, postgres_rows const& r) {
    permit_census out;
    out.in_use = r.as<std::uint32_t>(0, 1);
    out.waiting = r.as<std::uint32_t>(0, 2);
    for (int i = 1; i < r.size(); ++i) {
      out.holders.push_back({r.text(i, 0), r.as<std::uint64_t>(i, 1), r.span(i, 2)});
    }
    return out;
  }

  static postgres_call call(command::acquire_lock const& c, postgres_scope const& in) {
    postgres_call out{"acquire_lock"};
    out.add(c.key).add(c.holder).add(c.ttl).add(in.at);
    return out;
  }
  static result<lock_grant> answer(of<command::acquire_lock>, postgres_rows const& r) {
    return granted(r);
  }

  static postgres_call call(command::renew_lock const& c, postgres_scope const& in) {
    postgres_call out{"renew_lock"};
    out.add(c.key).add(c.holder).add(c.fence).add(c.ttl).add(in.at);
    return out;
  }
  static result<lease_renewal> answer(of<command::renew_lock>, postgres_rows const& r) {
    if (r.null(0, 0)) return errc::lease_lost;
    return lease_renewal{r.span(0, 0)};
  }

  static postgres_call call(command::release_lock const& c, postgres_scope const& in) {
    postgres_call out{"release_lock"};
    out.add(c.key).add(c.holder).add(c.fence).add(in.at);
    return out;
  }
  static result<lease_release> answer(of<command::release_lock>, postgres_rows const& r) {
    return lease_release{.freed = r.yes(0, 0)};
  }

  static postgres_call call(command::inspect_lock const& c, postgres_scope const& in) {
    postgres_call out{"inspect_lock"};
    out.add(c.key).add(in.at);
    return out;
  }
  static result<lock_info> answer(of<command::inspect_lock>, postgres_rows const& r) {
    lock_info out;
    out.held = !r.null(0, 0);
    if (!out.held) return out;
    out.holder = r.text(0, 0);
    out.fence = r.as<std::uint64_t>(0, 1);
    out.expires_in = r.span(0, 2);
    return out;
  }

  /// Of a lock, or a queue's lease.
  static result<lock_grant> granted(postgres_rows const& r) {
    lock_grant out;
    out.granted = r.yes(0, 0);
    out.fence = r.as<std::uint64_t>(0, 1);
    out.expires_in = r.span(0, 2);
    out.holder = r.text(0, 3);
    return out;
  }

 private:
  struct permit_terms {
    std::uint64_t fence = 0;
    std::uint32_t limit = 0;
    duration ttl{};
    duration patience{};
  };

  /// Steps of one key, which would wait for each other, travel together.
  template <class C>
  static postgres_call permit_step(postgres_permit_step what, C const& c, postgres_scope const& in,
                                   permit_terms const& terms) {
    postgres_call out{"permit_steps"};
    auto const number = [](auto v) { return std::array{v}; };
    out.add(c.key);
    out.add_each<std::int32_t>(number(static_cast<std::int32_t>(what)), std::identity{});
    out.add_each<std::string_view>(number(c.holder), std::identity{});
    out.add_each<std::int64_t>(number(static_cast<std::int64_t>(terms.fence)), std::identity{});
    out.add_each<std::int32_t>(number(postgres_count(terms.limit)), std::identity{});
    out.add_each<std::int64_t>(number(terms.ttl.count()), std::identity{});
    out.add_each<std::int64_t>(number(terms.patience.count()), std::identity{});
    out.add(in.listens).add(in.at);
    out.let_join(1, postgres_division::in_turn);
    out.share_a_lock();
    return out;
  }
};

}  // namespace weir::detail

#endif
