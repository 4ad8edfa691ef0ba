// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_PERMITS_HPP
#define WEIR_TESTING_MODEL_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

/// What a permit store has to answer to valid commands: two lists for each key, in the order of
/// arrival. It shares no code with the rule (F66).
class permit_model {
 public:
  result<permit_grant> execute(command::acquire_permit const& c, time_point now) {
    auto& [permits, line, fences] = at(c.key, now);
    permit_grant out;
    auto const granted = [&](entry const& e) {
      out.granted = true;
      out.fence = e.fence;
      out.expires_in = e.until - now;
      out.in_use = static_cast<std::uint32_t>(permits.size());
      return out;
    };
    if (auto const p = of(permits, c.holder); p != permits.end()) return granted(*p);
    auto place = of(line, c.holder);
    auto ahead = static_cast<std::size_t>(place - line.begin());
    if (permits.size() + ahead < c.limit) {
      if (place != line.end()) line.erase(place);
      permits.push_back({std::string{c.holder}, ++fences, now + c.ttl});
      return granted(permits.back());
    }
    out.in_use = static_cast<std::uint32_t>(permits.size());
    if (c.patience == duration::zero()) {
      if (place != line.end()) line.erase(place);
      place = line.end();
      ahead = line.size();
    }
    // Every permit that ends serves one more of the line. Where the line alone is longer than the
    // limit, it is when nothing of what others have now is left.
    std::vector<time_point> ends;
    for (auto const& p : permits) ends.push_back(p.until);
    std::sort(ends.begin(), ends.end());
    auto until = time_point::min();
    if (auto const n = permits.size() + ahead - c.limit; n < ends.size()) {
      until = ends[n];
    } else {
      if (!ends.empty()) until = ends.back();
      for (auto const& t : line) {
        if (t.holder != c.holder) until = std::max(until, t.until);
      }
    }
    out.retry_after = until - now;
    if (c.patience == duration::zero()) return out;
    if (place == line.end()) place = line.insert(line.end(), {std::string{c.holder}, 0, now});
    place->until = now + c.patience;
    out.place = static_cast<std::uint32_t>(ahead + 1);
    return out;
  }

  result<lease_renewal> execute(command::renew_permit const& c, time_point now) {
    auto& permits = at(c.key, now).permits;
    auto const p = of(permits, c.holder);
    if (p == permits.end() || p->fence != c.fence) return errc::lease_lost;
    p->until = now + c.ttl;
    return lease_renewal{c.ttl};
  }

  result<lease_release> execute(command::release_permit const& c, time_point now) {
    auto& k = at(c.key, now);
    return lease_release{.freed = std::erase_if(k.permits,
                                                [&](entry const& e) {
                                                  return e.holder == c.holder &&
                                                         (c.fence == 0 || c.fence == e.fence);
                                                }) != 0,
                         .left_line = std::erase_if(k.line, [&](entry const& e) {
                                        return e.holder == c.holder && c.fence == 0;
                                      }) != 0};
  }

  result<permit_census> execute(command::inspect_permits const& c, time_point now) {
    auto const& k = at(c.key, now);
    permit_census out{.in_use = static_cast<std::uint32_t>(k.permits.size()),
                      .waiting = static_cast<std::uint32_t>(k.line.size()),
                      .holders = {}};
    for (auto const& p : k.permits) {
      if (out.holders.size() < c.limit) out.holders.push_back({p.holder, p.fence, p.until - now});
    }
    return out;
  }

 private:
  struct entry {
    std::string holder;
    std::uint64_t fence;
    time_point until;
  };
  using entries = std::vector<entry>;
  struct key_state {
    entries permits;
    entries line;
    std::uint64_t last_fence = 0;
  };

  static entries::iterator of(entries& all, std::string_view holder) {
    return std::find_if(all.begin(), all.end(), [&](entry const& e) { return e.holder == holder; });
  }

  /// The key, without what is over: for good, also if time runs backwards after this.
  key_state& at(std::string_view key, time_point now) {
    auto& k = keys_[std::string{key}];
    auto const over = [&](entry const& e) { return e.until <= now; };
    std::erase_if(k.permits, over);
    std::erase_if(k.line, over);
    return k;
  }

  std::map<std::string, key_state> keys_;
};

}  // namespace weir::testing

#endif
