// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_PERMITS_HPP
#define WEIR_STORE_NATS_PERMITS_HPP

#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/rule/permits.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/errand.hpp"
#include "weir/store/nats/store_time.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// The record of a key's permits and of the line for them. The rule decides on it.
class nats_permits {
 public:
  static constexpr char kind = 'p';
  static constexpr auto matter = nats_matter::permits;

  /// Empty: it is none.
  [[nodiscard]] static std::optional<nats_permits> read(std::string_view bytes) {
    if (!bytes.starts_with(tag)) return std::nullopt;
    nats_reader from{bytes.substr(tag.size())};
    nats_permits out;
    out.last_fence_ = from.number();
    out.line_.last_turn = from.number();
    if (out.last_fence_ > nats_largest_number || out.line_.last_turn > nats_largest_number) {
      return std::nullopt;
    }
    if (!read_all(from, out.line_.permits, out.last_fence_) ||
        !read_all(from, out.line_.tickets, out.line_.last_turn) || !from.complete()) {
      return std::nullopt;
    }
    return out;
  }

  [[nodiscard]] std::string write() const {
    std::string out{tag};
    nats_writer to{out};
    to.number(last_fence_);
    to.number(line_.last_turn);
    write_all(to, line_.permits);
    write_all(to, line_.tickets);
    return out;
  }

  void expire(time_point now) noexcept { rule::expire(line_, now); }

  /// How long something of it is left.
  [[nodiscard]] duration lasts(time_point now) const noexcept {
    return saturating_sub(std::max(line_.permits.last_end(), line_.tickets.last_end()), now);
  }

  result<permit_grant> apply(command::acquire_permit c, time_point now, duration doubt) {
    c.ttl = nats_longer(c.ttl, doubt);
    if (c.patience > duration::zero()) c.patience = nats_longer(c.patience, doubt);
    auto out = rule::apply(line_, c, now, last_fence_);
    if (out.has_value() && out->granted) out->expires_in = nats_shorter(out->expires_in, doubt);
    return out;
  }
  result<lease_renewal> apply(command::renew_permit c, time_point now, duration doubt) {
    c.ttl = nats_longer(c.ttl, doubt);
    auto out = rule::apply(line_, c, now);
    if (out.has_value()) out->expires_in = nats_shorter(out->expires_in, doubt);
    return out;
  }
  result<lease_release> apply(command::release_permit const& c, time_point now, duration) {
    auto const out = rule::apply(line_, c, now);
    news_ = news_ || ((out.freed || out.left_line) && !line_.tickets.empty());
    return out;
  }
  result<permit_census> apply(command::inspect_permits const& c, time_point now, duration) {
    return rule::apply(line_, c, now);
  }

  /// Has this one reason to ask again?
  [[nodiscard]] bool should_ask(std::string_view holder, time_point now) {
    return rule::should_ask(line_, command::await_permit{{}, holder}, now);
  }

  /// Is there something that those who wait should be told? Asked once.
  [[nodiscard]] bool news() noexcept { return std::exchange(news_, false); }

 private:
  static constexpr std::string_view tag = "weir:p1\n";

  template <class Roster>
  static void write_all(nats_writer& to, Roster const& roster) {
    to.number(std::uint64_t{roster.size()});
    roster.first(std::numeric_limits<std::size_t>::max(), [&](rule::occupant const& o) {
      to.text(o.holder);
      to.number(o.number);
      to.number(std::int64_t{o.until.time_since_epoch().count()});
      to.number(std::uint64_t{o.limit});
    });
  }

  template <class Roster>
  [[nodiscard]] static bool read_all(nats_reader& from, Roster& roster, std::uint64_t last) {
    constexpr std::size_t least = 4 * sizeof(std::uint64_t);  // of each
    auto const size = from.number();
    if (size > from.left() / least) return false;
    std::uint64_t before = 0;
    for (std::uint64_t i = 0; i != size && from.good(); ++i) {
      auto const holder = from.text();
      auto const number = from.number();
      time_point const until{duration{from.signed_number()}};
      auto const limit = from.number();
      if (!from.good() || holder.empty() || holder.size() > limits::holder_size ||
          number <= before || number > last || limit > limits::permits ||
          roster.find(holder) != nullptr) {
        return false;
      }
      roster.add(holder, number, until, static_cast<std::uint32_t>(limit));
      before = number;
    }
    return from.good();
  }

  rule::permit_line line_{};
  std::uint64_t last_fence_ = 0;
  bool news_ = false;
};

}  // namespace weir::detail

#endif
