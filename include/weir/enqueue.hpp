// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_ENQUEUE_HPP
#define WEIR_ENQUEUE_HPP

#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/enqueue_request.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job.hpp"
#include "weir/job_codec.hpp"
#include "weir/job_headers.hpp"
#include "weir/job_traits.hpp"
#include "weir/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// @file
/// What an enqueue is, wherever it is executed: by a `job_queue` on a store, or here, inside an
/// application's own transaction.

namespace weir {

/// Options of one enqueue; they go before what the job's type says.
struct enqueue_options {
  duration delay{};          ///< from the enqueue to its vesting time, [0, `limits::span`]
  std::string_view queue{};  ///< instead of the type's queue; copied
  std::optional<std::uint8_t> priority{};  ///< instead of the type's

  /// Ids of the caller's own, one for each job, by position; empty: new ones. Copied.
  ///
  /// An id that the queue has a record of, in whatever state, is not added again, which is answered
  /// as `enqueued`: so jobs whose ids are made of what they are about are done once, however often
  /// and by however many they are enqueued, for as long as their record stands (`retention`).
  std::span<job_id const> ids{};

  /// Headers of each of the jobs, beside its payload; copied. `job_headers` makes them.
  job_headers_view headers{};
};

/// The answer to the enqueue of a job.
struct enqueued_job {
  job_id id{};                                          ///< the newcomer's
  enqueue_outcome outcome = enqueue_outcome::enqueued;  ///< in the queue, or why not
  job_id other{};  ///< the job in possession of the unique key, if the outcome names one
};

namespace detail {

template <class Job>
std::string queue_for(Job const& job, enqueue_options const& options) {
  return options.queue.data() ? std::string{options.queue} : job_policy<Job>::queue(job);
}

/// Jobs of one type as a command, under their type's policies.
template <class Job>
[[nodiscard]] enqueue_request encode_jobs(std::span<Job const> jobs, enqueue_options const& options,
                                          id_source const& ids) {
  using policy = job_policy<Job>;
  static_assert(has_kind<Job>,
                "weir: specialise weir::job_traits for this job type and give it a `static "
                "constexpr std::string_view kind`");
  [[maybe_unused]] constexpr payload_check<Job> has_a_payload{};

  enqueue_request out{jobs.empty() ? "default" : queue_for(jobs.front(), options),
                      std::string{options.headers.text()}};
  if (jobs.size() > limits::batch) {
    out.fail(make_error_code(errc::invalid_batch));
    return out;
  }
  // That an id is not nil is every store's own check.
  if (!options.ids.empty() && options.ids.size() != jobs.size()) {
    out.fail(explained(errc::invalid_option, "enqueue_options::ids has one for each job, or none"));
    return out;
  }
  for (std::size_t i = 0; i != jobs.size(); ++i) {
    auto const& job = jobs[i];
    if (i != 0 && queue_for(job, options) != out.queue()) {
      out.fail(make_error_code(errc::invalid_queue));
    }
    auto payload = weir::encode(job);
    if (payload.has_error()) {
      out.fail(payload.error());
      return out;
    }
    new_job fields;
    fields.id = options.ids.empty() ? ids.job() : options.ids[i];
    fields.priority = options.priority.value_or(policy::priority(job));
    fields.delay = options.delay;
    fields.max_attempts = policy::max_attempts();
    fields.strategy = policy::unique();
    fields.on_conflict = policy::on_conflict();
    fields.unique_ttl = policy::unique_ttl();
    fields.deadline = policy::deadline();
    fields.retention = policy::retention();
    auto unique_key = policy::unique_key(job, payload.value());
    out.add(owned_job{fields, std::string{policy::kind()}, std::move(payload).value(),
                      std::move(unique_key)});
  }
  return out;
}

/// Is this a conflict that the type's policy wants somebody to hear of?
template <class Job>
[[nodiscard]] constexpr bool is_to_be_told(enqueued const& outcome) noexcept {
  return outcome.outcome == enqueue_outcome::duplicate &&
         job_policy<Job>::on_conflict() == conflict_policy::log;
}

/// The result of enqueueing one job: a conflict is an error, which comes with the outcome, unless
/// its type's policy is content with the job that is there.
template <class Job>
[[nodiscard]] explained_result<enqueued_job> outcome_of(job_id id, enqueued const& outcome) {
  constexpr auto policy = job_policy<Job>::on_conflict();
  enqueued_job const out{id, outcome.outcome, outcome.other};
  if (outcome.outcome == enqueue_outcome::duplicate && policy != conflict_policy::discard &&
      policy != conflict_policy::log) {
    return {make_error_code(errc::unique_conflict), out};
  }
  return out;
}

/// Jobs of one type, side by side.
template <class Jobs>
concept job_range =
    std::ranges::contiguous_range<Jobs const> && std::ranges::sized_range<Jobs const>;

}  // namespace detail

/// Enqueues one job, under its type's policies, in what executes commands at once: with a
/// `sqlite_transaction`, in the application's own transaction, so that the job exists if and only
/// if that is committed.
///
/// @param transaction executes `command::enqueue_jobs`; may be a temporary
/// @param job         encoded before this returns
/// @param options     this enqueue's own delay, queue, priority, headers and id
/// @param ids         where a new job's id comes from
/// @return `enqueued_job`; a conflict under `discard` and `log` is `duplicate`, and nobody is told
/// of it
/// Errors: `unique_conflict` under the other policies (`enqueue_many` of one job names the job that
/// has the key); `unencodable_payload`, `payload_too_large` and other bad input, before anything is
/// changed; those of the transaction's `execute`.
/// Thread-safety: the transaction's.
template <class Transaction, class Job>
  requires executes_now<std::remove_cvref_t<Transaction>, command::enqueue_jobs>
[[nodiscard]] result<enqueued_job> enqueue(Transaction&& transaction, Job const& job,
                                           enqueue_options options = {},
                                           id_source const& ids = id_source{}) {
  auto const request = detail::encode_jobs(std::span<Job const>{&job, 1}, options, ids);
  if (auto const ec = request.problem()) return ec;
  auto const outcomes = transaction.execute(request.command());
  if (outcomes.has_error()) return outcomes.error();
  return detail::outcome_of<Job>(request.id(0), outcomes->front());
}

/// A connection is no transaction of weir's: this does not compile.
template <class Connection, class Job>
  requires std::is_class_v<Connection>
result<enqueued_job> enqueue(Connection*, Job const&, enqueue_options = {}) {
  static_assert(std::is_void_v<Connection>,
                "weir::enqueue: this is no transaction of weir's: pass a "
                "weir::postgres_transaction{connection} or a weir::sqlite_transaction{database}");
  return errc::not_in_transaction;
}

/// Enqueues jobs of one type into one queue, in one step of the transaction, all or none.
///
/// @param transaction executes `command::enqueue_jobs`
/// @param jobs        1…`limits::batch` in contiguous memory; all of one queue (`invalid_queue`)
/// @param options     as for one, for all of them; as many ids as jobs, or none
/// @param ids         where new jobs' ids come from
/// @return an outcome for each, by position: a conflict concerns its own job only, whatever its
/// policy
/// Errors: as for one; `invalid_option` when there are not as many ids as jobs.
/// Thread-safety: the transaction's.
template <class Transaction, class Jobs>
  requires executes_now<std::remove_cvref_t<Transaction>, command::enqueue_jobs> &&
           detail::job_range<Jobs>
[[nodiscard]] result<std::vector<enqueued_job>> enqueue_many(Transaction&& transaction,
                                                             Jobs const& jobs,
                                                             enqueue_options options = {},
                                                             id_source const& ids = id_source{}) {
  using Job = std::ranges::range_value_t<Jobs const>;
  auto const request = detail::encode_jobs(std::span<Job const>{jobs}, options, ids);
  if (auto const ec = request.problem()) return ec;
  auto const outcomes = transaction.execute(request.command());
  if (outcomes.has_error()) return outcomes.error();
  std::vector<enqueued_job> out;
  out.reserve(outcomes->size());
  for (std::size_t i = 0; i != outcomes->size(); ++i) {
    out.push_back({request.id(i), (*outcomes)[i].outcome, (*outcomes)[i].other});
  }
  return out;
}

}  // namespace weir

#endif
