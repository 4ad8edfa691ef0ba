// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_PLAN_HPP
#define WEIR_TEST_SOAK_PLAN_HPP

#include "soak/store.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// What the processes of the application and its auditor agree on.
namespace soak {

using namespace std::chrono_literals;

/// Permits and locks that nobody renews live so long, and so do the leases of jobs.
inline constexpr weir::duration lease = 3s;
inline constexpr weir::duration poll = 500ms;
inline constexpr weir::duration claim_ttl = 2s;
/// An operation that takes this much longer than its own wait hangs. The longest that a store may
/// take by its options is a third of it; the rest is for a machine that is busy.
inline constexpr weir::duration hang = 25s;
/// After the faults have healed, everything has ended within this.
inline constexpr weir::duration drain = 60s;

/// Records of jobs that have ended live so long.
inline constexpr weir::duration retention = 2min;

/// A key for each of these limits.
inline constexpr std::array<std::uint32_t, 3> permit_limits{1, 2, 4};
[[nodiscard]] inline std::string permit_key(std::uint32_t limit) {
  return "permit-" + std::to_string(limit);
}
[[nodiscard]] inline std::uint32_t limit_of(std::string_view key) {
  return static_cast<std::uint32_t>(std::stoul(std::string{key.substr(key.find('-') + 1)}));
}

/// So many wait at once for a permit of this limit, while they are there.
inline constexpr int crowd = 1000;
inline constexpr std::uint32_t crowd_limit = 10;

inline constexpr std::size_t lock_keys = 3;
[[nodiscard]] inline std::string lock_key(std::uint64_t n) { return "lock-" + std::to_string(n); }
[[nodiscard]] inline std::string claim_key(std::uint64_t n) { return "claim-" + std::to_string(n); }

inline constexpr std::array<weir::quota, 2> quotas{weir::quota::per_second(20).burst(10),
                                                   weir::quota::per_second(5).burst(2)};
[[nodiscard]] inline std::string bucket_key(std::size_t n) { return "bucket-" + std::to_string(n); }

inline constexpr std::uint64_t plain_queues = 4;
inline constexpr std::uint64_t unique_keys = 12;
/// Queues of one job each, which are never used again.
inline constexpr std::uint32_t sprawl_queues = 1000;
/// A large queue whose place changes, in the scenario `moved`.
inline constexpr std::string_view moved_queue = "moved";
/// The largest payload that every engine takes.
inline constexpr std::size_t largest = weir::limits::payload_size - 4096;
[[nodiscard]] inline std::vector<std::string> all_queues() {
  std::vector<std::string> out{"unique", "limited", "outbox"};
  for (std::uint64_t i = 0; i != plain_queues; ++i) out.push_back("plain-" + std::to_string(i));
  return out;
}

inline constexpr std::uint32_t max_attempts = 6;
/// Of the kinds that a worker of an older version does not know: each time that it is given one, an
/// attempt is spent.
inline constexpr std::uint32_t strange_attempts = 1000;

/// Schedules, whose periods are from a second on, and whose jobs change between these queues.
inline constexpr std::array<std::string_view, 2> tick_queues{"ticks-0", "ticks-1"};
inline constexpr std::uint64_t schedule_count = 3;
[[nodiscard]] inline std::string schedule_name(std::uint64_t n) {
  return "schedule-" + std::to_string(n);
}
[[nodiscard]] inline weir::duration period_of(std::string_view schedule) {
  return std::chrono::seconds{1 + std::stoll(std::string{schedule.substr(schedule.find('-') + 1)})};
}

/// What a process is started as.
struct assignment {
  std::string role;
  std::string log;
  opening at{};
  std::string defect;
  std::string scenario;
  std::string jobs;  ///< inspector: a file of what to look for, a line for each: queue and id
  std::uint64_t seed = 1;
};

/// Plays a role until SIGTERM. @return the exit status
int play(assignment const& a);

/// Opens the engine that a URL names, with a defect in between if one is named.
store open_store(boost::asio::any_io_executor const& ex, opening const& o,
                 std::string const& defect = {});

/// The application's own connection; null: this engine has no transactions.
[[nodiscard]] std::unique_ptr<outbox> open_outbox(opening const& o);

/// A defect that can be put in, and the promise that it breaks.
struct known_defect {
  std::string_view name;
  std::string_view promise;
  std::string_view what;
  std::string_view failure{};   ///< its number in the project's list, if it has one
  std::string_view scenario{};  ///< in which it shows; empty: under any load
};
[[nodiscard]] std::vector<known_defect> const& defects();

}  // namespace soak

#endif
