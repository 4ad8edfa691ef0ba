// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_RARE_STATE_HPP
#define WEIR_TESTING_SIMULATION_RARE_STATE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::testing::simulation {

/// States that a simulation is to reach, and that it counts: one that is never reached says that
/// its fault was never injected, or that what should follow from it never did.
enum class rare_state : std::uint8_t {
  request_lost,
  answer_lost,
  never_answered,
  unknown_then_retried,
  duplicate_delivered,
  stale_delivery,
  node_partitioned,
  node_stalled,
  node_clock_jumped,
  node_crashed,
  crashed_with_lease,
  store_clock_back,
  store_clock_forward,
  store_restarted_in_flight,
  hint_dropped,
  hint_spurious,
  hint_delivered,
  lease_expired_in_body,
  lease_stolen,
  lost_lease_told,
  late_release_harmless,
  waited_in_line,
  wait_timed_out,
  line_not_overtaken,
  limit_lowered,
  lock_conflict,
  take_denied,
  bucket_shed,
  take_reserved,
  wait_cancelled,
  refund_credited,
  refund_forfeited,
  dead_by_crashes,
  dead_by_failures,
  dead_by_giving_up,
  dead_by_deadline,
  conflict_rejected,
  conflict_discarded,
  conflict_logged,
  job_replaced,
  job_rescheduled,
  key_expired,
  run_lock_blocked,
  batch_partly_refused,
  dequeue_repeated,
  queue_held,
  pointer_collected,
  job_cancelled,
  running_cancelled,
  dead_replayed,
  replay_conflict,
  job_purged,
  completion_too_late,
  permit_refused_snoozed,
  rate_refused_snoozed,
  reservation_used,
  handler_snoozed,
  handler_timed_out,
  handler_ignored_stop,
  job_returned,
  job_lease_lost,
  store_full,
  count
};

inline constexpr std::size_t rare_states = static_cast<std::size_t>(rare_state::count);

[[nodiscard]] constexpr std::string_view to_string(rare_state s) noexcept {
  constexpr std::array<std::string_view, rare_states> words{
      "request lost",
      "executed, answer lost",
      "never answered until the client gave up",
      "outcome unknown, then asked again",
      "duplicate delivered",
      "delivered after its sender died or gave up",
      "node cut off",
      "node stalled",
      "node's clock jumped",
      "node crashed",
      "node crashed with a lease held",
      "store's clock jumped back",
      "store's clock jumped ahead",
      "store restarted with requests in flight",
      "hint dropped",
      "hint spurious",
      "hint delivered",
      "lease expired while its body ran",
      "lease granted while its last body still ran",
      "lost lease told to its holder",
      "late release changed nothing",
      "refused, then granted in line",
      "wait timed out",
      "free permit refused: others wait",
      "more permits live than a lower limit allows",
      "lock conflict",
      "take denied",
      "bucket shed: the store is full",
      "take reserved ahead",
      "waiting take cancelled",
      "refund credited",
      "refund forfeited",
      "dead letter on crash count",
      "dead letter on failures",
      "dead letter on giving up",
      "dead letter on deadline",
      "unique conflict rejected",
      "unique conflict discarded",
      "unique conflict logged",
      "job replaced",
      "job rescheduled",
      "unique key expired",
      "start blocked by another's run lock",
      "batch partly refused",
      "dequeue repeated",
      "held queue gave nothing",
      "pointer collected",
      "job cancelled",
      "running job cancelled",
      "dead letter replayed",
      "replay refused: key taken",
      "job purged",
      "completion after the lease was lost",
      "permit-refused job snoozed",
      "rate-refused job snoozed",
      "reservation used",
      "handler asked for a snooze",
      "handler timed out",
      "handler ignored being stopped",
      "job given back unstarted",
      "job's lease lost by its worker",
      "refused: the store is full",
  };
  return words[static_cast<std::size_t>(s)];
}

}  // namespace weir::testing::simulation

#endif
