// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_BUCKETS_HPP
#define WEIR_STORE_SQLITE_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weir::detail {

namespace sql {

inline constexpr char read_bucket[] =
    "SELECT quotas, a0, a1, a2, a3, h0, h1, h2, h3, due FROM weir_buckets WHERE key = ?";
inline constexpr char insert_bucket[] =
    "INSERT INTO weir_buckets (key, quotas, a0, a1, a2, a3, h0, h1, h2, h3, due) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
inline constexpr char take_from_bucket[] =
    "UPDATE weir_buckets SET a0 = ?, a1 = ?, a2 = ?, a3 = ?, h0 = ?, h1 = ?, h2 = ?, h3 = ? "
    "WHERE key = ?";
inline constexpr char update_bucket[] =
    "UPDATE weir_buckets SET quotas = ?, a0 = ?, a1 = ?, a2 = ?, a3 = ?, h0 = ?, h1 = ?, h2 = ?, "
    "h3 = ?, due = ? WHERE key = ?";
inline constexpr char delete_bucket[] = "DELETE FROM weir_buckets WHERE key IS ?";
inline constexpr char due_buckets[] =
    "SELECT quotas, a0, a1, a2, a3, h0, h1, h2, h3, due, key FROM weir_buckets "
    "INDEXED BY weir_buckets_due WHERE due <= ? ORDER BY due LIMIT ?";
inline constexpr char soonest_bucket[] =
    "SELECT CAST(due AS INTEGER) FROM weir_buckets INDEXED BY weir_buckets_due "
    "WHERE due >= -9223372036854775807 AND typeof(due) IN ('integer', 'real') "
    "ORDER BY due LIMIT 1";

}  // namespace sql

/// One to four quotas as they are stored: three little-endian numbers of 64 bits each.
class stored_quotas {
  static constexpr std::size_t quota_size = 3 * sizeof(std::uint64_t);

 public:
  static constexpr std::size_t most_bytes = limits::quotas * quota_size;

  explicit stored_quotas(std::span<quota const> quotas) noexcept {
    for (auto const& q : quotas) {
      put(q.tokens());
      put(static_cast<std::uint64_t>(q.period().count()));
      put(q.capacity());
    }
  }

  [[nodiscard]] std::string_view bytes() const noexcept {
    return {reinterpret_cast<char const*>(bytes_.data()), size_};
  }

  /// The scales of what was stored.
  [[nodiscard]] static rule::bucket_scales scales(std::string_view stored) {
    std::array<quota, limits::quotas> quotas;
    auto const n = stored.size() / quota_size;
    if (n == 0 || n > quotas.size() || stored.size() % quota_size != 0) corrupt();
    auto const* at = reinterpret_cast<unsigned char const*>(stored.data());
    auto const number = [&] {
      auto const value = boost::endian::load_little_u64(at);
      at += sizeof(value);
      return value;
    };
    for (std::size_t i = 0; i != n; ++i) {
      auto const tokens = number();
      auto const period = duration{static_cast<duration::rep>(number())};
      if (tokens == 0 || period <= duration::zero()) corrupt();
      quotas[i] = quota::per(tokens, period).burst(number());
    }
    auto const out = rule::bucket_scales::of({quotas.data(), n});
    if (!out) corrupt();
    return *out;
  }

 private:
  [[noreturn]] static void corrupt() { throw sqlite_damage{}; }

  void put(std::uint64_t value) noexcept {
    boost::endian::store_little_u64(bytes_.data() + size_, value);
    size_ += sizeof(value);
  }

  std::array<unsigned char, most_bytes> bytes_{};
  std::size_t size_ = 0;
};

/// The buckets in the file: a row for each that is not known to be full. The rule decides on it.
///
/// A row is in order of a time before which its bucket is not full. Takes only make that later, and
/// leave the order alone; a row that comes up too early is put right then, and one that cannot be
/// read goes when its time has come.
class sqlite_buckets {
 public:
  explicit sqlite_buckets(sqlite_scope& in) noexcept : in_{in} {}

  /// Error: `quota_too_large`.
  result<decision> apply(command::take const& c, time_point now) {
    if (!in_.ledger.epoch) in_.ledger.epoch = now;
    return ask(c, since_epoch(now));
  }

  /// Error: `quota_too_large`.
  result<bucket_info> apply(command::peek_bucket const& c, time_point now) {
    return ask(c, since_epoch(now));
  }

  /// Error: `quota_too_large`. The mark is in the units of the quotas that the bucket has,
  /// whichever the caller has by now.
  result<refund_receipt> apply(command::refund const& c, time_point now) {
    if (!rule::bucket_scales::of(c.quotas)) return make_error_code(errc::quota_too_large);
    auto const known = read(c.key);
    if (!known) return refund_receipt{.credited = 0, .forfeited = c.cost};
    auto const out = rule::refund(known->scales.span(), known->arrivals, c.mark, c.cost,
                                  c.before_instant, since_epoch(now));
    if (out.receipt.credited != 0) {
      auto const due = std::min(known->due, rule::full_from(known->scales.span(), out.arrivals));
      update(c.key, known->quotas, out.arrivals, due);
    }
    return out.receipt;
  }

  /// Forgets what was read.
  void forget() noexcept { soonest_.forget(); }

  result<hint> apply(command::reset_bucket const& c, time_point) {
    erase(c.key);
    return hint{};
  }

  result<command::reaped> apply(command::reap_buckets const&, time_point now) {
    constexpr std::size_t page = 1000;
    command::reaped out;
    if (!in_.ledger.epoch) return out;
    while (reap_some(since_epoch(now), page, out.removed) != 0) {
    }
    out.kept = in_.ledger.buckets;
    return out;
  }

  /// Removes some of those that are full, and puts right those that are not yet. Returns how many
  /// of either there were.
  std::uint64_t reap(time_point now, std::size_t most) {
    std::uint64_t removed = 0;
    return in_.ledger.epoch ? reap_some(since_epoch(now), most, removed) : 0;
  }

 private:
  struct bucket {
    std::string quotas;
    rule::bucket_scales scales;
    rule::bucket_arrivals arrivals;
    duration due;
  };

  template <class C>
  result<typename C::result> ask(C const& c, duration now) {
    constexpr bool takes = std::is_same_v<C, command::take>;
    auto const scales = rule::bucket_scales::of(c.quotas);
    if (!scales) return make_error_code(errc::quota_too_large);
    stored_quotas const quotas{c.quotas};
    auto const known = read(c.key);
    bool const same = known && known->quotas == quotas.bytes();
    auto const start =
        same    ? known->arrivals
        : known ? rule::changed_quotas(known->scales.span(), known->arrivals, scales->span(), now)
                : unknown(*scales, now);
    auto answer = rule::ask(scales->span(), start, now, c);
    if (!answer.allowed) return answer;
    if (!known && !(takes ? make_room(now) : has_room(now))) return shed(c, now);
    if constexpr (takes) {
      auto const& a = answer.mark.arrival;
      auto const& h = answer.mark.arrival_high;
      auto const arrivals = rule::arrivals_in(answer.mark);
      auto const full = rule::full_from(scales->span(), arrivals);
      if (same) {
        sqlite_run(in_.db, sql::take_from_bucket, a[0], a[1], a[2], a[3], h[0], h[1], h[2], h[3],
                   c.key);
      } else if (known) {
        update(c.key, quotas.bytes(), arrivals, full);
      } else {
        sqlite_run(in_.db, sql::insert_bucket, c.key, quotas.bytes(), a[0], a[1], a[2], a[3], h[0],
                   h[1], h[2], h[3], full);
        soonest_.add(full);
        ++in_.ledger.buckets;
      }
    }
    return answer;
  }

  /// It may be one that was forgotten as full, before time ran backwards.
  [[nodiscard]] rule::bucket_arrivals unknown(rule::bucket_scales const& scales,
                                              duration now) const noexcept {
    return in_.ledger.forgotten <= now
               ? rule::unseen_bucket
               : rule::forgotten_bucket(scales.span(), in_.ledger.forgotten);
  }

  /// Until the first bucket may be full: those that were have made no room.
  template <class C>
  [[nodiscard]] typename C::result shed(C const& c, duration now) {
    typename C::result d;
    d.shed = true;
    d.cost = c.cost;
    d.capacity = c.quotas[0].capacity();
    sqlite_query q{in_.db, sql::soonest_bucket};
    auto const soonest = q.next() ? duration{q.integer(0)} : now;
    d.retry_after = std::max(rule::within_horizon(soonest) - now, duration{1});
    d.reset_after = d.retry_after;
    if constexpr (std::is_same_v<C, command::take>) d.mark = rule::no_mark;
    return d;
  }

  [[nodiscard]] std::optional<bucket> read(std::string_view key) {
    sqlite_query q{in_.db, sql::read_bucket, key};
    if (!q.next()) return std::nullopt;
    return bucket_in(q);
  }

  [[nodiscard]] static bucket bucket_in(sqlite_query const& q) {
    auto const arrival = [&](int i) {
      constexpr std::int64_t most = std::int64_t{1} << 30;
      return rule::units_of(q.integer(1 + i), q.within<std::int32_t>(5 + i, -most, most));
    };
    auto const quotas = q.bytes(0, 1, stored_quotas::most_bytes);
    return {.quotas = std::string{quotas},
            .scales = stored_quotas::scales(quotas),
            .arrivals = {arrival(0), arrival(1), arrival(2), arrival(3)},
            .due = duration{q.integer(9)}};
  }

  void update(std::string_view key, std::string_view quotas, rule::bucket_arrivals const& a,
              duration due) {
    using rule::high_of;
    using rule::low_of;
    sqlite_run(in_.db, sql::update_bucket, quotas, low_of(a[0]), low_of(a[1]), low_of(a[2]),
               low_of(a[3]), high_of(a[0]), high_of(a[1]), high_of(a[2]), high_of(a[3]), due, key);
    soonest_.add(due);
  }

  template <class Key>
  std::uint64_t erase(Key const& key) {
    sqlite_run(in_.db, sql::delete_bucket, key);
    auto const n = static_cast<std::uint64_t>(in_.db.changes());
    sqlite_decrease(in_.ledger.buckets, n);
    return n;
  }

  [[nodiscard]] bool make_room(duration now) {
    constexpr std::size_t page = 100;
    for (std::uint64_t removed = 0; in_.ledger.buckets >= in_.options.max_buckets;) {
      if (reap_some(now, page, removed) == 0) return false;
    }
    return true;
  }

  /// Could `make_room` make some?
  [[nodiscard]] bool has_room(duration now) {
    if (in_.ledger.buckets < in_.options.max_buckets) return true;
    sqlite_query q{in_.db, sql::due_buckets, now, -1};
    while (q.next()) {
      try {
        auto const b = bucket_in(q);
        if (rule::full_bucket(b.scales.span(), b.arrivals, now)) return true;
      } catch (sqlite_damage const&) {  // makes no room
      }
    }
    return false;
  }

  /// Returns how many rows it has removed or put behind `now`.
  std::uint64_t reap_some(duration now, std::size_t most, std::uint64_t& removed) {
    if (!soonest_.over(now)) return 0;
    struct found {
      std::string key;
      bucket known;
    };
    std::vector<found> due;
    std::optional<sqlite_value> damaged;  // one at a time, for its key may be of any size
    {
      sqlite_query q{in_.db, sql::due_buckets, now, most};
      while (!damaged && q.next()) {
        try {
          due.push_back({q.text(10, 1, limits::key_size), bucket_in(q)});
        } catch (sqlite_damage const&) {
          damaged.emplace(q.value(10));
        }
      }
    }
    if (due.empty() && !damaged) soonest_.learn(in_.db, sql::soonest_bucket);
    auto const before = removed;
    if (damaged) removed += erase(*damaged);
    std::uint64_t later = 0;
    for (auto const& [key, b] : due) {
      auto const full = rule::full_from(b.scales.span(), b.arrivals);
      if (rule::full_bucket(b.scales.span(), b.arrivals, now)) {
        removed += erase(key);
        in_.ledger.forgotten = std::max(in_.ledger.forgotten, full);
      } else {
        update(key, b.quotas, b.arrivals, std::max(full, now + duration{1}));
        later += static_cast<std::uint64_t>(in_.db.changes());
      }
    }
    return removed - before + later;
  }

  [[nodiscard]] duration since_epoch(time_point now) const noexcept {
    return rule::within_horizon(saturating_sub(now, in_.ledger.epoch.value_or(now)));
  }

  sqlite_scope& in_;
  sqlite_soonest<duration> soonest_;
};

}  // namespace weir::detail

#endif
