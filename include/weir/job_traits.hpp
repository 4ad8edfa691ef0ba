// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_TRAITS_HPP
#define WEIR_JOB_TRAITS_HPP

#include "weir/detail/job_traits_names.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir {

/// A job type's policies, fixed at compile time. Specialise it for each job type; `kind` is
/// required, all else has a default. A member marked (job) may also be a static function of the
/// job.
///
///     template <>
///     struct weir::job_traits<send_mail> {
///       static constexpr std::string_view kind = "send_mail";
///       static constexpr std::uint32_t max_attempts = 10;
///       static constexpr auto unique = weir::unique_strategy::until_executed;
///       static std::string unique_key(send_mail const& m) { return m.to; }
///       static constexpr weir::quota rate = weir::quota::per_second(50);
///     };
///
// clang-format off: it would join the rows
/// | member | type | default | what it is |
/// |---|---|---|---|
/// | `kind` | string_view | required | the name under which handlers know the type, stored with every job |
/// | `codec` | a codec, or a tuple of them | JSON | how it is written: see `codec_of` and `weir/codec.hpp`; of several, the first writes, and all can read |
/// | `queue` (job) | string | `"default"` | the queue it goes to |
/// | `priority` (job) | uint8_t | 100 | 0 is the most urgent |
/// | `max_attempts` | uint32_t | 25 | claims before the dead letters |
/// | `max_snoozes` | uint32_t | 1,000,000 | snoozes, by limits, by its handler (`snooze_for`), and where the store does not answer its policies, before the dead letters |
/// | `backoff` | a backoff | the worker's | how long a failed attempt waits, by how many have failed; no earlier wait is known, so a `decorrelated_jitter` does not grow |
/// | `timeout` | duration | 0: none | a coroutine handler that runs longer is cancelled, and the attempt has failed unless it returns all the same; a plain function is only told (`stop_requested`) |
/// | `deadline` | duration | 0: none | claimed later than this after the enqueue, it is dead-lettered |
/// | `retention` | duration | 0: none | how long its record and result stay after it ends well or is cancelled |
/// | `unique` | unique_strategy | none | how long its key is taken |
/// | `unique_key` (job) | string | the payload | the key, within its queue, 1…1,024 bytes: a longer payload needs a key of its own (`invalid_unique_key`) |
/// | `unique_ttl` | duration | required by `until_expired`, and by nothing else | how long its key stays taken |
/// | `on_conflict` | conflict_policy | reject | what a newcomer with a taken key does |
/// | `concurrency` | uint32_t | 0: no limit | how many with the same concurrency key run at once, anywhere |
/// | `concurrency_key` (job) | string | the kind | a `limiter` on the same store with this key shares the limit |
/// | `concurrency_scope` | limit_scope | job | see `limit_scope` |
/// | `rate` | quota, or an array of up to 4 | none | how often ones with the same rate key start, anywhere |
/// | `rate_key` (job) | string | the kind | a `rate_limiter` on the same store with this key, the same quotas and the default key policy shares the budget |
/// | `rate_cost` (job) | uint64_t | 1 | tokens that one start costs |
/// | `rate_scope` | limit_scope | job | see `limit_scope` |
// clang-format on
template <class Job>
struct job_traits {};

/// The jobs that a refusal by a limit holds back.
enum class limit_scope : std::uint8_t {
  job,    ///< the refused job is snoozed; others of its queue go on
  queue,  ///< the whole queue shares the limit's key: the queue is snoozed, and its jobs keep their
          ///< order
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(limit_scope o) noexcept {
  switch (o) {
    case limit_scope::job: return "job";
    case limit_scope::queue: return "queue";
  }
  return "?";
}

/// A job type whose traits name its kind.
template <class Job>
concept has_kind = requires {
  { job_traits<Job>::kind } -> std::convertible_to<std::string_view>;
};

namespace detail {

/// A member that is text, or a function of the job that gives text.
#define WEIR_TEXT_OF_JOB(member)                                                                   \
  static_assert(                                                                                   \
      !requires { Traits::member; } || requires { std::string{Traits::member}; } ||                \
          requires(Job const& job) { std::string{Traits::member(job)}; },                          \
      "weir: " #member " in job_traits is neither a string nor a function that takes the "         \
      "job and gives one")

/// A member that has no meaning without another.
#define WEIR_NEEDS(member, other)                                                                  \
  static_assert(                                                                                   \
      !requires { Traits::member; } || requires { Traits::other; },                                \
      "weir: " #member " in job_traits has no meaning without " #other)

// A function is none, though g++ would add to it.
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<std::remove_cvref_t<T>>;

/// Does not compile for traits that are not what they look like (F88): each of these members would
/// be ignored.
template <class Job, class Traits>
struct job_traits_check : job_traits_names<Traits> {
  WEIR_TEXT_OF_JOB(queue);
  WEIR_TEXT_OF_JOB(unique_key);
  WEIR_TEXT_OF_JOB(concurrency_key);
  WEIR_TEXT_OF_JOB(rate_key);
  static_assert(
      !requires { Traits::priority; } ||
          requires { requires is_number<decltype(Traits::priority)>; } ||
          requires(Job const& job) { std::uint8_t{Traits::priority(job)}; },
      "weir: priority in job_traits is neither a number nor a function that takes the "
      "job and gives a std::uint8_t");
  static_assert(
      !requires { Traits::rate_cost; } ||
          requires { requires is_number<decltype(Traits::rate_cost)>; } ||
          requires(Job const& job) { std::uint64_t{Traits::rate_cost(job)}; },
      "weir: rate_cost in job_traits is neither a number nor a function that takes the "
      "job and gives a std::uint64_t");
  static_assert(
      !requires { Traits::codec; } || !requires { Traits::unique; } ||
          requires { Traits::unique_key; },
      "weir: a unique job with a codec in its job_traits needs a unique_key: a codec need "
      "not write the same twice");
  WEIR_NEEDS(unique_key, unique);
  WEIR_NEEDS(unique_ttl, unique);
  WEIR_NEEDS(on_conflict, unique);
  WEIR_NEEDS(concurrency_key, concurrency);
  WEIR_NEEDS(concurrency_scope, concurrency);
  WEIR_NEEDS(rate_key, rate);
  WEIR_NEEDS(rate_cost, rate);
  WEIR_NEEDS(rate_scope, rate);
};

#undef WEIR_NEEDS
#undef WEIR_TEXT_OF_JOB

}  // namespace detail

/// Reads `job_traits<Job>`, with the defaults filled in. Written out member by member, because that
/// is what makes the defaults one table instead of a base class that every specialisation would
/// have to name.
template <class Job>
struct job_policy : private detail::job_traits_check<Job, job_traits<Job>> {
  using traits = job_traits<Job>;  ///< what is read

  /// `kind`; there is no default.
  static constexpr std::string_view kind() noexcept { return traits::kind; }

  /// `queue` for this job, or `"default"`.
  static std::string queue([[maybe_unused]] Job const& job) {
    if constexpr (requires { std::string{traits::queue(job)}; }) {
      return std::string{traits::queue(job)};
    } else if constexpr (requires { std::string{traits::queue}; }) {
      return std::string{traits::queue};
    } else {
      return "default";
    }
  }

  /// `priority` for this job, or 100.
  static std::uint8_t priority([[maybe_unused]] Job const& job) {
    if constexpr (requires { std::uint8_t{traits::priority(job)}; }) {
      return traits::priority(job);
    } else if constexpr (requires { traits::priority; }) {
      static_assert(traits::priority >= 0 && traits::priority <= 255,
                    "weir: the priority in job_traits is from 0 to 255");
      return traits::priority;
    } else {
      return 100;
    }
  }

  /// `max_attempts`, or 25.
  static constexpr std::uint32_t max_attempts() noexcept {
    if constexpr (requires { traits::max_attempts; }) {
      return traits::max_attempts;
    } else {
      return 25;
    }
  }

  /// `max_snoozes`, or 1,000,000.
  static constexpr std::uint32_t max_snoozes() noexcept {
    if constexpr (requires { traits::max_snoozes; }) {
      return traits::max_snoozes;
    } else {
      return 1'000'000;
    }
  }

  /// Has the type a `backoff` of its own?
  static constexpr bool has_backoff = requires { traits::backoff; };

  /// `timeout`, or 0: none.
  static constexpr duration timeout() noexcept {
    if constexpr (requires { traits::timeout; }) {
      return traits::timeout;
    } else {
      return {};
    }
  }

  /// `deadline`, or 0: none.
  static constexpr duration deadline() noexcept {
    if constexpr (requires { traits::deadline; }) {
      return traits::deadline;
    } else {
      return {};
    }
  }

  /// `retention`, or 0: none.
  static constexpr duration retention() noexcept {
    if constexpr (requires { traits::retention; }) {
      return traits::retention;
    } else {
      return {};
    }
  }

  /// `unique`, or `none`.
  static constexpr unique_strategy unique() noexcept {
    if constexpr (requires { traits::unique; }) {
      return traits::unique;
    } else {
      return unique_strategy::none;
    }
  }

  /// `unique_key` for this job, or its payload; empty exactly when the type is not unique.
  static std::string unique_key([[maybe_unused]] Job const& job,
                                [[maybe_unused]] std::string_view payload) {
    if constexpr (unique() == unique_strategy::none) {
      return {};
    } else if constexpr (requires { std::string{traits::unique_key(job)}; }) {
      return std::string{traits::unique_key(job)};
    } else {
      return std::string{payload};
    }
  }

  /// `unique_ttl`, or 0; `until_expired` must have it.
  static constexpr duration unique_ttl() noexcept {
    if constexpr (requires { traits::unique_ttl; }) {
      static_assert(unique() == unique_strategy::until_expired,
                    "weir: unique_ttl in job_traits has no meaning unless unique is until_expired");
      return traits::unique_ttl;
    } else {
      static_assert(unique() != unique_strategy::until_expired,
                    "weir: unique = until_expired in job_traits needs a unique_ttl");
      return {};
    }
  }

  /// `on_conflict`, or `reject`.
  static constexpr conflict_policy on_conflict() noexcept {
    if constexpr (requires { traits::on_conflict; }) {
      static_assert(unique() != unique_strategy::while_executing,
                    "weir: on_conflict in job_traits has no meaning with while_executing: many may "
                    "wait");
      return traits::on_conflict;
    } else {
      return conflict_policy::reject;
    }
  }

  /// `concurrency`, or 0: no limit.
  static constexpr std::uint32_t concurrency() noexcept {
    if constexpr (requires { traits::concurrency; }) {
      return traits::concurrency;
    } else {
      return 0;
    }
  }

  /// `concurrency_key` for this job, or its kind.
  static std::string concurrency_key([[maybe_unused]] Job const& job) {
    if constexpr (requires { std::string{traits::concurrency_key(job)}; }) {
      return std::string{traits::concurrency_key(job)};
    } else if constexpr (requires { std::string{traits::concurrency_key}; }) {
      return std::string{traits::concurrency_key};
    } else {
      return std::string{kind()};
    }
  }

  /// `concurrency_scope`, or `job`.
  static constexpr limit_scope concurrency_scope() noexcept {
    if constexpr (requires { traits::concurrency_scope; }) {
      return traits::concurrency_scope;
    } else {
      return limit_scope::job;
    }
  }

  /// `rate` as an array of quotas; empty: no limit.
  static constexpr auto rate() noexcept {
    if constexpr (!requires { traits::rate; }) {
      return std::array<quota, 0>{};
    } else if constexpr (std::same_as<std::remove_cvref_t<decltype(traits::rate)>, quota>) {
      return std::array<quota, 1>{traits::rate};
    } else {
      return traits::rate;
    }
  }

  /// `rate_key` for this job, or its kind.
  static std::string rate_key([[maybe_unused]] Job const& job) {
    if constexpr (requires { std::string{traits::rate_key(job)}; }) {
      return std::string{traits::rate_key(job)};
    } else if constexpr (requires { std::string{traits::rate_key}; }) {
      return std::string{traits::rate_key};
    } else {
      return std::string{kind()};
    }
  }

  /// `rate_cost` of this job, or 1.
  static std::uint64_t rate_cost([[maybe_unused]] Job const& job) {
    if constexpr (requires { std::uint64_t{traits::rate_cost(job)}; }) {
      return traits::rate_cost(job);
    } else if constexpr (requires { traits::rate_cost; }) {
      return traits::rate_cost;
    } else {
      return 1;
    }
  }

  /// `rate_scope`, or `job`.
  static constexpr limit_scope rate_scope() noexcept {
    if constexpr (requires { traits::rate_scope; }) {
      return traits::rate_scope;
    } else {
      return limit_scope::job;
    }
  }
};

}  // namespace weir

#endif
