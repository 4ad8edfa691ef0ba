// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_LOCKS_HPP
#define WEIR_STORE_NATS_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/rule/locks.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

/// The record of a lock. The rule decides on it.
class nats_lock {
 public:
  static constexpr char kind = 'l';
  static constexpr auto matter = nats_matter::locks;

  /// Empty: it is none.
  [[nodiscard]] static std::optional<nats_lock> read(std::string_view bytes) {
    if (!bytes.starts_with(tag)) return std::nullopt;
    nats_reader from{bytes.substr(tag.size())};
    nats_lock out;
    out.last_fence_ = from.number();
    auto const fence = from.number();
    time_point const until{duration{from.signed_number()}};
    auto const holder = from.text();
    if (!from.complete() || out.last_fence_ > nats_largest_number || fence > out.last_fence_ ||
        holder.size() > limits::holder_size || (fence != 0) == holder.empty() ||
        (fence == 0 && until != time_point{})) {
      return std::nullopt;
    }
    if (fence != 0) out.lock_.take(std::string{holder}, fence, until);
    return out;
  }

  [[nodiscard]] std::string write() const {
    std::string out{tag};
    nats_writer to{out};
    bool const held = lock_.held();
    to.number(last_fence_);
    to.number(held ? lock_.fence() : std::uint64_t{0});
    to.number(held ? std::int64_t{lock_.expiry().time_since_epoch().count()} : std::int64_t{0});
    to.text(held ? std::string_view{lock_.holder()} : std::string_view{});
    return out;
  }

  void expire(time_point now) noexcept { rule::expire(lock_, now); }

  [[nodiscard]] duration lasts(time_point now) const noexcept {
    return lock_.held() ? saturating_sub(lock_.expiry(), now) : duration::zero();
  }

  result<lock_grant> apply(command::acquire_lock c, time_point now, duration doubt) {
    c.ttl = nats_longer(c.ttl, doubt);
    auto out = rule::apply(lock_, c, now, last_fence_);
    if (out.has_value() && out->granted) out->expires_in = nats_shorter(out->expires_in, doubt);
    return out;
  }
  result<lease_renewal> apply(command::renew_lock c, time_point now, duration doubt) {
    c.ttl = nats_longer(c.ttl, doubt);
    auto out = rule::apply(lock_, c, now);
    if (out.has_value()) out->expires_in = nats_shorter(out->expires_in, doubt);
    return out;
  }
  result<lease_release> apply(command::release_lock const& c, time_point now, duration) {
    return rule::apply(lock_, c, now);
  }
  result<lock_info> apply(command::inspect_lock const& c, time_point now, duration) {
    return rule::apply(lock_, c, now);
  }

  [[nodiscard]] static constexpr bool news() noexcept { return false; }

 private:
  static constexpr std::string_view tag = "weir:l1\n";

  rule::lock_state lock_;
  std::uint64_t last_fence_ = 0;
};

}  // namespace weir::detail

#endif
