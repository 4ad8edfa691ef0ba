// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_VALIDATE_HPP
#define WEIR_RULE_VALIDATE_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/rule/bytes.hpp"

#include <concepts>
#include <string_view>

/// @file
/// Is a command's input within the bounds that every store shares? Each store asks before it does
/// anything, so that bad input is a typed error and changes nothing (R8). Asked of every command by
/// overload: a command without one here does not compile.

namespace weir::rule {

/// A key, queue name or kind: 1…`limits::key_size` bytes of any kind.
[[nodiscard]] constexpr bool valid_key(std::string_view key) noexcept {
  return !key.empty() && key.size() <= limits::key_size;
}

/// A holder: 1…`limits::holder_size` bytes of any kind.
[[nodiscard]] constexpr bool valid_holder(std::string_view holder) noexcept {
  return !holder.empty() && holder.size() <= limits::holder_size;
}

/// A time to live: something that is over some day, but not at once.
[[nodiscard]] constexpr bool valid_ttl(duration ttl) noexcept {
  return ttl > duration::zero() && ttl <= limits::span;
}

/// A wait, delay, deadline or retention: 0 is allowed.
[[nodiscard]] constexpr bool valid_wait(duration wait) noexcept {
  return wait >= duration::zero() && wait <= limits::span;
}

/// A number of jobs or rows: 1…`limits::batch`.
[[nodiscard]] constexpr bool valid_batch(std::size_t n) noexcept {
  return n > 0 && n <= limits::batch;
}

namespace detail {

/// The first error among checks, in the order in which the fields stand in the command.
class verdict {
 public:
  constexpr verdict& require(bool ok, errc e) noexcept {
    if (!ok && !failed_) {
      failed_ = true;
      first_ = e;
    }
    return *this;
  }
  operator error_code() const noexcept { return failed_ ? make_error_code(first_) : error_code{}; }

 private:
  bool failed_ = false;
  errc first_{};
};

/// Checks the fields that most commands have, in the order in which they have them.
template <class C>
[[nodiscard]] constexpr verdict usual_verdict(C const& c) noexcept {
  verdict out;
  if constexpr (requires { c.queue; }) out.require(valid_key(c.queue), errc::invalid_queue);
  if constexpr (requires { c.key; }) out.require(valid_key(c.key), errc::invalid_key);
  if constexpr (requires { c.holder; }) out.require(valid_holder(c.holder), errc::invalid_holder);
  if constexpr (requires { c.limit; }) out.require(valid_batch(c.limit), errc::invalid_batch);
  if constexpr (requires { c.ttl; }) out.require(valid_ttl(c.ttl), errc::invalid_ttl);
  if constexpr (requires { c.lease; }) out.require(valid_ttl(c.lease), errc::invalid_ttl);
  if constexpr (requires { c.delay; }) out.require(valid_wait(c.delay), errc::invalid_wait);
  return out;
}

/// Is this command one of these?
template <class C, class... Commands>
inline constexpr bool is_one_of = (std::same_as<C, Commands> || ...);

/// The commands that have no other bounds.
template <class C>
concept usual_command = is_one_of<
    C, command::renew_permit, command::release_permit, command::await_permit, command::acquire_lock,
    command::renew_lock, command::release_lock, command::inspect_lock, command::reset_bucket,
    command::peek_jobs, command::dequeue_jobs, command::obtain_lease, command::start_job,
    command::requeue_job, command::return_job, command::bury_job, command::cancel_job,
    command::find_job, command::min_vesting_time, command::scan_visible_queues,
    command::update_queue_pointer, command::await_cancel, command::obtain_queue_lease,
    command::release_queue_lease, command::snooze_queue, command::pause_queue,
    command::resume_queue, command::read_queue_stats, command::list_dead_letters,
    command::list_jobs, command::replay_dead_letter, command::purge_job, command::list_queues>;

}  // namespace detail

/// @{

/// What is wrong with a command, if anything: the first error in the order of its fields.
template <detail::usual_command C>
[[nodiscard]] error_code validate(C const& c) noexcept {
  return detail::usual_verdict(c);
}

/// @}

// Permits.

/// @{

/// What is wrong with a command, if anything: the first error in the order of its fields.
[[nodiscard]] inline error_code validate(command::acquire_permit const& c) noexcept {
  return detail::verdict{}
      .require(valid_key(c.key), errc::invalid_key)
      .require(valid_holder(c.holder), errc::invalid_holder)
      .require(c.limit > 0 && c.limit <= limits::permits, errc::invalid_limit)
      .require(valid_ttl(c.ttl), errc::invalid_ttl)
      .require(valid_wait(c.patience), errc::invalid_wait);
}
[[nodiscard]] inline error_code validate(command::inspect_permits const& c) noexcept {
  return detail::verdict{}
      .require(valid_key(c.key), errc::invalid_key)
      .require(c.limit <= limits::batch, errc::invalid_batch);
}

/// @}

// Buckets. That a store can represent the quotas exactly is the store's own check
// (`quota_too_large`).

/// 1…`limits::quotas` quotas, each with tokens, a period and room.
[[nodiscard]] constexpr bool valid_quotas(std::span<quota const> quotas) noexcept {
  if (quotas.empty() || quotas.size() > limits::quotas) return false;
  for (auto const& q : quotas) {
    if (q.tokens() == 0 || q.period() <= duration::zero() || q.capacity() == 0) return false;
  }
  return true;
}

/// Can it ever be granted? Each quota has room for that many tokens.
[[nodiscard]] constexpr bool within_capacity(std::span<quota const> quotas,
                                             std::uint64_t cost) noexcept {
  for (auto const& q : quotas) {
    if (cost > q.capacity()) return false;
  }
  return true;
}

namespace detail {

[[nodiscard]] constexpr verdict bucket_verdict(std::string_view key, std::span<quota const> quotas,
                                               std::uint64_t cost) noexcept {
  return verdict{}
      .require(valid_key(key), errc::invalid_key)
      .require(valid_quotas(quotas), errc::invalid_quota)
      .require(cost > 0, errc::invalid_cost)
      .require(within_capacity(quotas, cost), errc::cost_exceeds_capacity);
}

}  // namespace detail

/// @{

/// What is wrong with a command, if anything: the first error in the order of its fields.
[[nodiscard]] inline error_code validate(command::take const& c) noexcept {
  return detail::bucket_verdict(c.key, c.quotas, c.cost)
      .require(valid_wait(c.max_wait), errc::invalid_wait);
}
[[nodiscard]] inline error_code validate(command::peek_bucket const& c) noexcept {
  return detail::bucket_verdict(c.key, c.quotas, c.cost)
      .require(valid_wait(c.max_wait), errc::invalid_wait);
}
[[nodiscard]] inline error_code validate(command::refund const& c) noexcept {
  return detail::bucket_verdict(c.key, c.quotas, c.cost);
}
[[nodiscard]] inline error_code validate(command::reap_buckets const&) noexcept { return {}; }

/// @}

// Jobs.

/// @{

/// What is wrong with a command, if anything: the first error in the order of its fields.
[[nodiscard]] inline error_code validate(new_job const& j) noexcept {
  bool const unique = j.strategy != unique_strategy::none;
  bool const expires = j.strategy == unique_strategy::until_expired;
  return detail::verdict{}
      .require(!j.id.is_nil(), errc::invalid_option)
      .require(valid_key(j.kind), errc::invalid_kind)
      .require(j.payload.size() <= limits::payload_size && j.headers.size() <= limits::headers_size,
               errc::payload_too_large)
      .require(valid_wait(j.delay), errc::invalid_wait)
      .require(j.max_attempts > 0 && j.max_attempts <= limits::attempts, errc::invalid_attempts)
      .require(unique ? valid_key(j.unique_key) : j.unique_key.empty(), errc::invalid_unique_key)
      .require(expires ? valid_ttl(j.unique_ttl) : j.unique_ttl == duration::zero(),
               errc::invalid_ttl)
      .require(valid_wait(j.deadline), errc::invalid_wait)
      .require(valid_wait(j.retention), errc::invalid_wait);
}

[[nodiscard]] inline error_code validate(command::enqueue_jobs const& c) noexcept {
  if (error_code const ec =
          detail::usual_verdict(c).require(valid_batch(c.jobs.size()), errc::invalid_batch)) {
    return ec;
  }
  for (auto const& j : c.jobs) {
    if (auto const ec = validate(j)) return ec;
  }
  if (!within_batch_bytes(c.jobs)) return errc::invalid_batch;
  return {};
}
[[nodiscard]] inline error_code validate(command::extend_lease const& c) noexcept {
  return detail::usual_verdict(c).require(c.progress.size() <= limits::progress_size &&
                                              c.checkpoint.size() <= limits::checkpoint_size,
                                          errc::payload_too_large);
}
[[nodiscard]] inline error_code validate(command::complete_jobs const& c) noexcept {
  auto verdict = detail::usual_verdict(c).require(valid_batch(c.jobs.size()), errc::invalid_batch);
  for (auto const& j : c.jobs) {
    verdict.require(j.result.size() <= limits::payload_size, errc::payload_too_large);
  }
  return verdict.require(within_batch_bytes(c.jobs), errc::invalid_batch);
}
[[nodiscard]] inline error_code validate(command::relay_job const& c) noexcept {
  bool const elsewhere = !c.jobs.empty();
  if (error_code const ec =
          detail::usual_verdict(c)
              .require(c.fence == 0 || c.expected.empty(), errc::invalid_option)
              .require(c.expected.size() <= limits::payload_size &&
                           c.stored.size() <= limits::payload_size,
                       errc::payload_too_large)
              .require(elsewhere ? valid_key(c.to) && c.to != c.queue : c.to.empty(),
                       errc::invalid_queue)
              .require(c.next.size() + c.jobs.size() <= limits::batch, errc::invalid_batch)) {
    return ec;
  }
  for (auto const some : {c.next, c.jobs}) {
    for (auto const& j : some) {
      if (auto const ec = validate(j)) return ec;
    }
  }
  if (!within_batch_bytes(c.next, c.jobs)) return errc::invalid_batch;
  return {};
}
[[nodiscard]] inline error_code validate(command::snooze_job const& c) noexcept {
  return detail::usual_verdict(c).require(c.memo.size() <= limits::memo_size,
                                          errc::payload_too_large);
}
[[nodiscard]] inline error_code validate(command::gc_stale_pointers const& c) noexcept {
  return detail::usual_verdict(c).require(valid_wait(c.grace), errc::invalid_wait);
}
[[nodiscard]] inline error_code validate(command::await_jobs const&) noexcept { return {}; }

/// @}

}  // namespace weir::rule

#endif
