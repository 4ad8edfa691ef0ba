// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_PERMITS_STEPS_HPP
#define WEIR_TESTING_CONFORMANCE_PERMITS_STEPS_HPP

#include "weir/command/permits.hpp"
#include "weir/limits.hpp"
#include "weir/testing/bench.hpp"
#include "weir/testing/fields.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

// What most checks of permits do.
namespace weir::testing::conformance {

using permit_bench = bench<permit_commands>;

/// Takes a permit, which must be there.
inline permit_grant take_permit(permit_bench& b, std::string_view key, std::string_view holder,
                                std::uint32_t limit, duration ttl) {
  command::acquire_permit const c{key, holder, limit, ttl, {}};
  auto const grant = b.must(c);
  expect(grant.granted, to_text(c) + " should have been granted; got " + to_text(grant));
  expect(grant.fence > 0 && grant.in_use > 0,
         to_text(c) + " was granted without a fence or a count");
  return grant;
}

/// Asks for a permit that must be refused.
inline permit_grant expect_refused(permit_bench& b, std::string_view key, std::string_view holder,
                                   std::uint32_t limit, duration patience = {}) {
  command::acquire_permit const c{key, holder, limit, b.lasting, patience};
  auto const answer = b.must(c);
  expect(!answer.granted, to_text(c) + " should have been refused; got " + to_text(answer));
  return answer;
}

/// Requires that this holder has a permit, by this lease.
inline void expect_permit(permit_bench& b, std::string_view key, std::string_view holder,
                          std::uint64_t fence) {
  auto const census = b.must(command::inspect_permits{key, limits::batch});
  auto const same = [&](permit_info const& p) { return p.holder == holder && p.fence == fence; };
  expect(std::any_of(census.holders.begin(), census.holders.end(), same),
         in_quotes(holder) + " should still have its permit of fence " + std::to_string(fence) +
             ", but the store says: " + to_text(census));
}

inline void expect_in_use(permit_bench& b, std::string_view key, std::uint32_t n) {
  auto const census = b.must(command::inspect_permits{key, 10});
  expect(census.in_use == n, std::to_string(n) + " permits of " + in_quotes(key) +
                                 " should be in use, but the store says: " + to_text(census));
}

/// Permits, for the checks of all leases.
struct permit_noun {
  using commands = permit_commands;
  using renew = command::renew_permit;
  using release = command::release_permit;
  static constexpr bool counts = true;  ///< has a limit and a line

  static command::acquire_permit acquire(std::string_view key, std::string_view holder,
                                         duration ttl, std::uint32_t limit = 1,
                                         duration patience = {}) {
    return {key, holder, limit, ttl, patience};
  }
  static command::inspect_permits inspect(std::string_view key, std::uint32_t holders = 0) {
    return {key, holders};
  }

  static permit_grant take(permit_bench& b, std::string_view key, std::string_view holder,
                           duration ttl) {
    return take_permit(b, key, holder, 1, ttl);
  }
  /// Asks for what another holds, for so long at most.
  static void refuse(permit_bench& b, std::string_view key, std::string_view holder,
                     duration within) {
    auto const refused = expect_refused(b, key, holder, 1);
    expect(refused.retry_after > duration::zero() && refused.retry_after <= within + b.slack(),
           "a refusal says when the expiry of others could make it this holder's turn; got " +
               to_text(refused));
  }
  static void expect_held(permit_bench& b, std::string_view key, std::string_view holder,
                          std::uint64_t fence) {
    expect_permit(b, key, holder, fence);
    expect_in_use(b, key, 1);
  }
  static bool is_free(permit_bench& b, std::string_view key) {
    return b.must(inspect(key)).in_use == 0;
  }
};

/// Asks for a permit and keeps a place in line, which must be this one.
inline void expect_place(permit_bench& b, std::string_view key, std::string_view holder,
                         std::uint32_t limit, std::uint32_t place) {
  auto const answer = expect_refused(b, key, holder, limit, b.lasting);
  expect(answer.place == place, in_quotes(holder) + " should have place " + std::to_string(place) +
                                    " in line, but the store says: " + to_text(answer));
}

}  // namespace weir::testing::conformance

#endif
