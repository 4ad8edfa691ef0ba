// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_LOCKS_HPP
#define WEIR_TESTING_MODEL_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weir::testing {

/// What a lock store has to answer to valid commands: the lease of each key. It shares no code with
/// the rule (F66).
class lock_model {
 public:
  result<lock_grant> execute(command::acquire_lock const& c, time_point now) {
    auto& l = at(c.key, now);
    if (l.holder.empty()) l = {std::string{c.holder}, ++last_fence_, now + c.ttl};
    if (l.holder == c.holder) return lock_grant{true, l.fence, l.until - now, {}};
    return lock_grant{false, 0, l.until - now, l.holder};
  }
  result<lease_renewal> execute(command::renew_lock const& c, time_point now) {
    auto& l = at(c.key, now);
    if (l.holder != c.holder || l.fence != c.fence) return errc::lease_lost;
    l.until = now + c.ttl;
    return lease_renewal{c.ttl};
  }
  result<lease_release> execute(command::release_lock const& c, time_point now) {
    auto& l = at(c.key, now);
    bool const own = l.holder == c.holder && (c.fence == 0 || l.fence == c.fence);
    if (own) l = {};
    return lease_release{.freed = own, .left_line = false};
  }
  result<lock_info> execute(command::inspect_lock const& c, time_point now) {
    auto const& l = at(c.key, now);
    if (l.holder.empty()) return lock_info{};
    return lock_info{true, l.holder, l.fence, l.until - now};
  }

 private:
  struct lease {
    std::string holder;  // empty: nobody
    std::uint64_t fence = 0;
    time_point until{};
  };

  /// The lease, unless it is over: for good, also if time runs backwards after this.
  lease& at(std::string_view key, time_point now) {
    auto& l = leases_[std::string{key}];
    if (l.until <= now) l = {};
    return l;
  }

  std::map<std::string, lease> leases_;
  std::uint64_t last_fence_ = 0;
};

}  // namespace weir::testing

#endif
