// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_QUEUE_HPP
#define WEIR_JOB_QUEUE_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_command.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/enqueue_request.hpp"
#include "weir/detail/job_wait.hpp"
#include "weir/detail/unsafe_temporary.hpp"
#include "weir/enqueue.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job.hpp"
#include "weir/job_codec.hpp"
#include "weir/job_traits.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/default_completion_token.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

/// How jobs are claimed.
struct dequeue_options {
  std::uint32_t limit = 10;                   ///< at most so many, 1…`limits::batch`
  duration lease = std::chrono::seconds{30};  ///< how long each is leased, (0, `limits::span`]
  std::uint64_t sequence = 0;  ///< this holder's number for the call, to repeat it safely; 0: none
};

/// How the end of a job is waited for.
struct job_wait_options {
  duration poll = std::chrono::seconds{1};  ///< it is looked at again after at most so long, (0,
                                            ///< `limits::span`]; sooner at first
};

/// Notes of a handler, which `async_extend_lease` keeps with its job.
struct lease_notes {
  std::string progress{};    ///< as `job_progress` writes it, up to `limits::progress_size` bytes;
                             ///< empty: as it was
  std::string checkpoint{};  ///< up to `limits::checkpoint_size` bytes; empty: as it was
};

/// Named queues of jobs on one store.
///
/// Every operation but `async_wait` is one atomic step of the store, under the name that the QuiCK
/// paper gives it where it has one. All of them complete with `void(error_code, T)` on the
/// handler's executor, and take any completion token; the default is `deferred`, so
/// `co_await queue.async_…()` works.
///
/// Errors of every operation, besides those named at it: the bad input named in `errc` (before any
/// I/O), `store_unavailable` (not done), `outcome_unknown` (ask again, which is safe but for three:
/// `async_enqueue` and `async_enqueue_many` enqueue once more unless `enqueue_options::ids` names
/// the jobs, and `async_dequeue` claims others unless it has a `sequence`), `not_enough_memory`,
/// `operation_aborted` (cancelled; done or not done, never half), and what a store adds. Cancelling
/// leaves nothing behind that needs cleaning up.
///
/// Thread-safety: one queue object may be used by several threads, except while its observer is
/// being set.
///
/// `Clock` is what `async_wait` waits by, and nothing else does.
template <class Store, clock Clock = system_clock>
class job_queue {
  static_assert(job_store<Store>, "weir::job_queue: this store does not model weir::job_store "
                                  "(it cannot execute every command of weir/command/jobs.hpp)");

 public:
  using store_type = Store;                            ///< where the queues are
  using clock_type = Clock;                            ///< what `async_wait` waits by
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// Called for a conflict under `conflict_policy::log`: the queue, the newcomer, and the job that
  /// has the key.
  using conflict_observer =
      std::function<void(std::string_view queue, job_id newcomer, job_id possessor)>;

  /// @param store where the queues are; copied
  /// @param ids   where the ids of jobs come from
  /// @param clock what `async_wait` waits by; copied
  explicit job_queue(Store store, id_source ids = id_source{}, Clock clock = Clock{})
      : store_{std::move(store)},
        ids_{std::move(ids)},
        clock_{std::move(clock)} {}

  /// The store's: where handlers without an executor of their own are called.
  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  /// The store: for its own operations, and for other primitives on it.
  [[nodiscard]] Store const& get_store() const noexcept { return store_; }

  /// Sets what is told of conflicts under `conflict_policy::log`. It runs where the store
  /// completes; it must not throw.
  void on_conflict(conflict_observer observer) {
    observer_ = std::make_shared<conflict_observer const>(std::move(observer));
  }

  /// Enqueues one job under its type's policies.
  ///
  /// @param job     copied (encoded) before this returns
  /// @param options this enqueue's own delay, queue, priority, headers and id
  /// @param token   completes with `void(error_code, enqueued_job)`
  /// @return what became of it; a conflict under `discard` and `log` is `duplicate`
  /// Errors: `unique_conflict` under `reject`, and under `replace` and `reschedule` if the other
  /// job runs, or has ended and keeps the key (`until_expired`): the value beside this error is the
  /// outcome (`duplicate`), and its `other` the job that has the key. A handler gets both; a
  /// coroutine does with `as_tuple`, for an exception has room for the error only. Otherwise
  /// `unencodable_payload`, `payload_too_large` and other bad input; `invalid_option` for more than
  /// one id, or a nil one; `store_full`.
  template <class Job, class Token = default_token>
  WEIR_OPERATION auto async_enqueue(Job const& job, enqueue_options options = {},
                                    Token&& token = Token{}) const {
    auto request = detail::encode_jobs(std::span<Job const>{&job, 1}, options, ids_);
    auto observer = observer_;
    auto first =
        [observer](command::enqueue_jobs::result outcomes,
                   detail::enqueue_request& asked) -> detail::explained_result<enqueued_job> {
      auto const& outcome = outcomes.front();
      if (detail::is_to_be_told<Job>(outcome)) tell(observer, asked, 0, outcome);
      return detail::outcome_of<Job>(asked.id(0), outcome);
    };
    return detail::async_command<enqueued_job>(store_, std::move(request), std::move(first),
                                               std::forward<Token>(token));
  }

  /// g++ 12 destroys such a temporary twice when it stands beside `co_await`. Write
  /// `Job const job{…}; co_await queue.async_enqueue(job);`
  template <class Job, class... Rest>
    requires(!std::is_reference_v<Job> && detail::unsafe_temporary<std::remove_const_t<Job>>)
  auto async_enqueue(Job&&, Rest&&...) const {
    static_assert(std::is_void_v<Job>,
                  "weir::job_queue: give this job a name first: g++ 12 destroys a temporary beside "
                  "co_await twice");
  }

  /// Enqueues jobs of one type into one queue, in one atomic step.
  ///
  /// @param jobs    1…`limits::batch` of them, in a `std::vector`, a `std::span` or what else is
  ///        contiguous; encoded before this returns. The queue is that of `options`, or else the
  ///        type's queue of the first job, and must be the same for all (`invalid_queue`)
  /// @param options as for one, for all of them
  /// @param token   completes with `void(error_code, std::vector<enqueued_job>)`
  /// @return an outcome for each, by position: a conflict concerns its own job only, whatever its
  /// policy
  /// Errors: as for one; `invalid_option` when there are not as many ids as jobs.
  template <class Jobs, class Token = default_token>
    requires detail::job_range<Jobs>
  WEIR_OPERATION auto async_enqueue_many(Jobs const& jobs, enqueue_options options = {},
                                         Token&& token = Token{}) const {
    using Job = std::ranges::range_value_t<Jobs const>;
    auto request = detail::encode_jobs(std::span<Job const>{jobs}, options, ids_);
    auto observer = observer_;
    auto each = [observer](command::enqueue_jobs::result outcomes,
                           detail::enqueue_request& asked) -> result<std::vector<enqueued_job>> {
      std::vector<enqueued_job> out;
      out.reserve(outcomes.size());
      for (std::size_t i = 0; i != outcomes.size(); ++i) {
        if (detail::is_to_be_told<Job>(outcomes[i])) tell(observer, asked, i, outcomes[i]);
        out.push_back({asked.id(i), outcomes[i].outcome, outcomes[i].other});
      }
      return out;
    };
    return detail::async_command<std::vector<enqueued_job>>(
        store_, std::move(request), std::move(each), std::forward<Token>(token));
  }

  /// Lists visible jobs in order, leasing none.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param limit how many at most, 1…`limits::batch`
  /// @param token completes with `void(error_code, std::vector<job>)`
  /// @return the best first
  template <class Token = default_token>
  WEIR_OPERATION auto async_peek(std::string queue, std::uint32_t limit = 10,
                                 Token&& token = Token{}) const {
    return ask(
        [limit](std::string_view q) { return command::peek_jobs{.queue = q, .limit = limit}; },
        std::forward<Token>(token), std::move(queue));
  }

  /// Claims the best visible jobs, counting an attempt for each. See `command::dequeue_jobs`.
  ///
  /// @param queue   its name, 1…`limits::key_size` bytes
  /// @param holder  who claims: 1…`limits::holder_size` bytes
  /// @param options how many, for how long, and under which number
  /// @param token   completes with `void(error_code, dequeued)`
  /// @return the leased jobs, and what else was found
  template <class Token = default_token>
  WEIR_OPERATION auto async_dequeue(std::string queue, std::string holder,
                                    dequeue_options options = {}, Token&& token = Token{}) const {
    return ask(
        [options](std::string_view q, std::string_view h) {
          return command::dequeue_jobs{.queue = q,
                                       .holder = h,
                                       .sequence = options.sequence,
                                       .limit = options.limit,
                                       .lease = options.lease};
        },
        std::forward<Token>(token), std::move(queue), std::move(holder));
  }

  /// Claims one job, if it is visible.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param id     of the job
  /// @param holder who claims: 1…`limits::holder_size` bytes
  /// @param lease  how long it lasts, (0, `limits::span`]
  /// @param token  completes with `void(error_code, std::optional<leased_job>)`
  /// @return the lease; empty: it is not visible, or it is gone
  template <class Token = default_token>
  WEIR_OPERATION auto async_obtain_lease(std::string queue, job_id id, std::string holder,
                                         duration lease = std::chrono::seconds{30},
                                         Token&& token = Token{}) const {
    return ask(
        [id, lease](std::string_view q, std::string_view h) {
          return command::obtain_lease{.queue = q, .id = id, .holder = h, .lease = lease};
        },
        std::forward<Token>(token), std::move(queue), std::move(holder));
  }

  /// Makes a lease last `lease` from now.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param id    of the job
  /// @param fence the lease's, from the claim
  /// @param lease (0, `limits::span`]
  /// @param token completes with `void(error_code, lease_renewal)`
  /// @return what is left of it
  /// Error: `lease_lost`.
  template <class Token = default_token>
  WEIR_OPERATION auto async_extend_lease(std::string queue, job_id id, std::uint64_t fence,
                                         duration lease, Token&& token = Token{}) const {
    return ask(
        [id, fence, lease](std::string_view q) {
          return command::extend_lease{.queue = q, .id = id, .fence = fence, .lease = lease};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// The same, and keeps with the job how far its handler has come.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param id    of the job
  /// @param fence the lease's, from the claim
  /// @param lease (0, `limits::span`]
  /// @param notes its progress and its checkpoint
  /// @param token completes with `void(error_code, lease_renewal)`
  /// @return what is left of it
  /// Errors: `lease_lost`; `payload_too_large`; `store_full` or `disk_full` where there is no room
  /// for the notes. Then nothing is extended.
  template <class Token = default_token>
  WEIR_OPERATION auto async_extend_lease(std::string queue, job_id id, std::uint64_t fence,
                                         duration lease, lease_notes notes,
                                         Token&& token = Token{}) const {
    return ask(
        [id, fence, lease](std::string_view q, std::string_view p, std::string_view c) {
          return command::extend_lease{
              .queue = q, .id = id, .fence = fence, .lease = lease, .progress = p, .checkpoint = c};
        },
        std::forward<Token>(token), std::move(queue), std::move(notes.progress),
        std::move(notes.checkpoint));
  }

  /// Ends a leased job as completed, stores its result, and frees its unique key.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param id     of the job
  /// @param fence  the lease's, from the claim
  /// @param stored the result, up to `limits::payload_size` bytes; it stays for the job's retention
  /// @param token  completes with `void(error_code, hint)`
  /// Error: `lease_lost`; then nothing was changed.
  template <class Token = default_token>
  WEIR_OPERATION auto async_complete(std::string queue, job_id id, std::uint64_t fence,
                                     std::string stored = {}, Token&& token = Token{}) const {
    detail::complete_request request{std::move(queue)};
    request.add(id, fence, std::move(stored));
    auto only = [](command::complete_jobs::result outcomes,
                   detail::complete_request&) -> result<hint> {
      if (outcomes.front() == complete_outcome::lease_lost)
        return make_error_code(errc::lease_lost);
      return hint{};
    };
    return detail::async_command<hint>(store_, std::move(request), only,
                                       std::forward<Token>(token));
  }

  /// Ends a lease because the attempt failed: the job waits again, or is dead if its attempts are
  /// spent.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param id     of the job
  /// @param fence  the lease's, from the claim
  /// @param delay  until it vests again, [0, `limits::span`]
  /// @param reason kept with the job, cut at `limits::reason_size` bytes
  /// @param token  completes with `void(error_code, requeue_outcome)`
  /// @return which of the two
  /// Error: `lease_lost`.
  template <class Token = default_token>
  WEIR_OPERATION auto async_requeue(std::string queue, job_id id, std::uint64_t fence,
                                    duration delay, std::string reason = {},
                                    Token&& token = Token{}) const {
    return ask(
        [id, fence, delay](std::string_view q, std::string_view r) {
          return command::requeue_job{
              .queue = q, .id = id, .fence = fence, .delay = delay, .reason = r};
        },
        std::forward<Token>(token), std::move(queue), std::move(reason));
  }

  /// Ends a lease without a failure: the attempt is given back.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param id    of the job
  /// @param fence the lease's, from the claim
  /// @param delay until it vests again, [0, `limits::span`]
  /// @param memo  for who claims it next, up to `limits::memo_size` bytes
  /// @param token completes with `void(error_code, hint)`
  /// Error: `lease_lost`.
  template <class Token = default_token>
  WEIR_OPERATION auto async_snooze(std::string queue, job_id id, std::uint64_t fence,
                                   duration delay, std::string memo = {},
                                   Token&& token = Token{}) const {
    return ask(
        [id, fence, delay](std::string_view q, std::string_view m) {
          return command::snooze_job{
              .queue = q, .id = id, .fence = fence, .delay = delay, .memo = m};
        },
        std::forward<Token>(token), std::move(queue), std::move(memo));
  }

  /// Gives a claimed job back as if it had not been claimed.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param id    of the job
  /// @param fence the lease's, from the claim
  /// @param token completes with `void(error_code, hint)`
  /// Error: `lease_lost`.
  template <class Token = default_token>
  WEIR_OPERATION auto async_return(std::string queue, job_id id, std::uint64_t fence,
                                   Token&& token = Token{}) const {
    return ask(
        [id, fence](std::string_view q) {
          return command::return_job{.queue = q, .id = id, .fence = fence};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// Ends a leased job in the dead letters at once, whatever attempts it has left.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param id     of the job
  /// @param fence  the lease's, from the claim
  /// @param reason kept with the job, cut at `limits::reason_size` bytes
  /// @param token  completes with `void(error_code, hint)`
  /// Error: `lease_lost`.
  template <class Token = default_token>
  WEIR_OPERATION auto async_bury(std::string queue, job_id id, std::uint64_t fence,
                                 std::string reason, Token&& token = Token{}) const {
    return ask(
        [id, fence](std::string_view q, std::string_view r) {
          return command::bury_job{.queue = q, .id = id, .fence = fence, .reason = r};
        },
        std::forward<Token>(token), std::move(queue), std::move(reason));
  }

  /// Cancels a waiting job.
  ///
  /// @param queue   its name, 1…`limits::key_size` bytes
  /// @param id      of the job
  /// @param running a leased one too: its worker is told, finds its lease lost, and cancels its
  /// handler
  /// @param token   completes with `void(error_code, cancel_outcome)`
  /// @return cancelled, or why not
  template <class Token = default_token>
  WEIR_OPERATION auto async_cancel(std::string queue, job_id id, bool running = false,
                                   Token&& token = Token{}) const {
    return ask(
        [id, running](std::string_view q) {
          return command::cancel_job{.queue = q, .id = id, .running = running};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// Reads one job in whatever state, its result and its reason with it.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param id    of the job
  /// @param token completes with `void(error_code, std::optional<job>)`
  /// @return the job; empty: there is no record of it
  template <class Token = default_token>
  WEIR_OPERATION auto async_find(std::string queue, job_id id, Token&& token = Token{}) const {
    return ask([id](std::string_view q) { return command::find_job{.queue = q, .id = id}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Waits until a job has ended, well or not: looks at it soon, and then less and less often, as
  /// `options` has it. While the store cannot be reached it goes on. A job that is replayed between
  /// two looks is not noticed.
  ///
  /// @param queue   its name, 1…`limits::key_size` bytes
  /// @param id      of the job
  /// @param options how often to look
  /// @param token   completes with `void(error_code, std::optional<job>)`; `asio::cancel_after`
  ///        bounds the wait
  /// @return the job, with its result or its reason: see `result_as`. Empty: there is no record of
  /// it, which is so for a job that is completed or cancelled if its type has no retention
  /// Errors: `invalid_wait` for a poll outside its range; `invalid_queue`; `operation_aborted`
  /// (cancelled), and those of a store that asking again does not mend. Cancelling leaves nothing
  /// behind.
  template <class Token = default_token>
  WEIR_OPERATION auto async_wait(std::string queue, job_id id, job_wait_options options = {},
                                 Token&& token = Token{}) const {
    return boost::asio::async_initiate<Token, void(error_code, std::optional<job>)>(
        detail::job_wait<Store, Clock>{store_, clock_}, token, std::move(queue), id, options.poll);
  }

  /// Until the first job of the queue vests, or the first of its leases ends.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, std::optional<duration>)`
  /// @return not positive: one is visible; empty: it has none
  template <class Token = default_token>
  WEIR_OPERATION auto async_min_vesting_time(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::min_vesting_time{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Lists due queues of a shard, the longest due first.
  ///
  /// @param shard below the store's `shard_count()` (`invalid_shard`)
  /// @param limit how many at most, 1…`limits::batch`
  /// @param token completes with `void(error_code, visible_queues)`
  /// @return their names, and when to look again
  template <class Token = default_token>
  WEIR_OPERATION auto async_scan_visible_queues(std::uint32_t shard = 0, std::uint32_t limit = 100,
                                                Token&& token = Token{}) const {
    return ask(
        [shard, limit] { return command::scan_visible_queues{.shard = shard, .limit = limit}; },
        std::forward<Token>(token));
  }

  /// Recomputes a queue's pointer.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, std::optional<duration>)`
  /// @return its min vesting time; empty: it has no jobs, and no pointer now
  template <class Token = default_token>
  WEIR_OPERATION auto async_update_queue_pointer(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::update_queue_pointer{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Deletes pointers of empty queues of a shard.
  ///
  /// @param shard below the store's `shard_count()` (`invalid_shard`)
  /// @param limit how many at most, 1…`limits::batch`; a store may leave it at 100
  /// @param grace only those that were due for longer, [0, `limits::span`]
  /// @param token completes with `void(error_code, std::uint32_t)`
  /// @return how many were deleted
  template <class Token = default_token>
  WEIR_OPERATION auto async_gc_stale_pointers(std::uint32_t shard = 0, std::uint32_t limit = 100,
                                              duration grace = std::chrono::minutes{1},
                                              Token&& token = Token{}) const {
    return ask(
        [shard, limit, grace] {
          return command::gc_stale_pointers{.shard = shard, .limit = limit, .grace = grace};
        },
        std::forward<Token>(token));
  }

  /// Takes the queue's advisory lease.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param holder who asks: 1…`limits::holder_size` bytes
  /// @param lease  how long it lasts, (0, `limits::span`]
  /// @param token  completes with `void(error_code, lock_grant)`
  /// @return whether it has the lease, and else who has
  template <class Token = default_token>
  WEIR_OPERATION auto async_obtain_queue_lease(std::string queue, std::string holder,
                                               duration lease = std::chrono::seconds{30},
                                               Token&& token = Token{}) const {
    return ask(
        [lease](std::string_view q, std::string_view h) {
          return command::obtain_queue_lease{.queue = q, .holder = h, .lease = lease};
        },
        std::forward<Token>(token), std::move(queue), std::move(holder));
  }

  /// Ends the queue lease of this holder and fence; late or twice is harmless and says so.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param holder who has it
  /// @param fence  its number, from the grant; 0: any
  /// @param token  completes with `void(error_code, lease_release)`
  /// @return what ended
  template <class Token = default_token>
  WEIR_OPERATION auto async_release_queue_lease(std::string queue, std::string holder,
                                                std::uint64_t fence,
                                                Token&& token = Token{}) const {
    return ask(
        [fence](std::string_view q, std::string_view h) {
          return command::release_queue_lease{.queue = q, .holder = h, .fence = fence};
        },
        std::forward<Token>(token), std::move(queue), std::move(holder));
  }

  /// Holds the whole queue back.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param delay for how long, [0, `limits::span`]; 0 ends it
  /// @param token completes with `void(error_code, hint)`
  template <class Token = default_token>
  WEIR_OPERATION auto async_snooze_queue(std::string queue, duration delay,
                                         Token&& token = Token{}) const {
    return ask(
        [delay](std::string_view q) { return command::snooze_queue{.queue = q, .delay = delay}; },
        std::forward<Token>(token), std::move(queue));
  }

  /// Gives out nothing of this queue until `async_resume`. What runs goes on, and so does
  /// enqueueing.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, hint)`
  template <class Token = default_token>
  WEIR_OPERATION auto async_pause(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::pause_queue{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Ends a pause, and a snooze.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, hint)`
  template <class Token = default_token>
  WEIR_OPERATION auto async_resume(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::resume_queue{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Counts the queue's jobs by state, in one snapshot.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param token completes with `void(error_code, queue_stats)`
  /// @return the counts
  template <class Token = default_token>
  WEIR_OPERATION auto async_stats(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::read_queue_stats{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// One page of the queue's dead letters, the oldest first.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param limit  how many at most, 1…`limits::batch`
  /// @param cursor that of the page before; empty to begin
  /// @param token  completes with `void(error_code, job_page)`
  /// @return the page; its cursor is empty at the end
  /// Error: `invalid_option` for a text that cannot be one of the store's cursors.
  template <class Token = default_token>
  WEIR_OPERATION auto async_list_dead_letters(std::string queue, std::uint32_t limit = 100,
                                              std::string cursor = {},
                                              Token&& token = Token{}) const {
    return ask(
        [limit](std::string_view q, std::string_view c) {
          return command::list_dead_letters{.queue = q, .limit = limit, .cursor = c};
        },
        std::forward<Token>(token), std::move(queue), std::move(cursor));
  }

  /// One page of the queue's jobs in one state, in the store's own order. See `command::list_jobs`.
  ///
  /// @param queue  its name, 1…`limits::key_size` bytes
  /// @param state  which jobs
  /// @param limit  how many at most, 1…`limits::batch`; a page may have fewer, or none, and go on
  /// @param cursor that of the page before; empty to begin
  /// @param token  completes with `void(error_code, job_page)`
  /// @return the page; its cursor is empty at the end
  /// Error: `invalid_option` for a text that cannot be one of the store's cursors.
  template <class Token = default_token>
  WEIR_OPERATION auto async_list(std::string queue, job_state state, std::uint32_t limit = 100,
                                 std::string cursor = {}, Token&& token = Token{}) const {
    return ask(
        [state, limit](std::string_view q, std::string_view c) {
          return command::list_jobs{.queue = q, .state = state, .limit = limit, .cursor = c};
        },
        std::forward<Token>(token), std::move(queue), std::move(cursor));
  }

  /// Makes a dead job pending again with no attempts spent, if its unique key is free. See
  /// `command::replay_dead_letter`.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param id    of the job
  /// @param delay until it vests, [0, `limits::span`]
  /// @param token completes with `void(error_code, replayed)`
  /// @return pending again, or why not: a conflict names the job that has the key
  template <class Token = default_token>
  WEIR_OPERATION auto async_replay(std::string queue, job_id id, duration delay = {},
                                   Token&& token = Token{}) const {
    return ask(
        [id, delay](std::string_view q) {
          return command::replay_dead_letter{.queue = q, .id = id, .delay = delay};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// Forgets one ended job.
  ///
  /// @param queue its name, 1…`limits::key_size` bytes
  /// @param id    of the job
  /// @param token completes with `void(error_code, bool)`
  /// @return false: there is no record of an ended one by this id
  template <class Token = default_token>
  WEIR_OPERATION auto async_purge(std::string queue, job_id id, Token&& token = Token{}) const {
    return ask([id](std::string_view q) { return command::purge_job{.queue = q, .id = id}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// One page of the names of a shard's queues.
  ///
  /// @param shard  below the store's `shard_count()` (`invalid_shard`)
  /// @param limit  how many at most, 1…`limits::batch`
  /// @param cursor that of the page before; empty to begin
  /// @param token  completes with `void(error_code, queue_page)`
  /// @return the page; its cursor is empty at the end
  template <class Token = default_token>
  WEIR_OPERATION auto async_list_queues(std::uint32_t shard = 0, std::uint32_t limit = 100,
                                        std::string cursor = {}, Token&& token = Token{}) const {
    return ask(
        [shard, limit](std::string_view c) {
          return command::list_queues{.shard = shard, .limit = limit, .cursor = c};
        },
        std::forward<Token>(token), std::move(cursor));
  }

 private:
  static void tell(std::shared_ptr<conflict_observer const> const& observer,
                   detail::enqueue_request const& asked, std::size_t i, enqueued const& outcome) {
    if (observer && *observer) (*observer)(asked.queue(), asked.id(i), outcome.other);
  }

  /// One command made of some owned strings; its answer is the result.
  template <class Make, class Token, class... Texts>
  auto ask(Make make, Token&& token, Texts... texts) const {
    using request = detail::owned_request<sizeof...(Texts), Make>;
    using answer = typename detail::command_of<request>::result;
    request what{std::array<std::string, sizeof...(Texts)>{std::move(texts)...}, std::move(make)};
    return detail::async_command<answer>(store_, std::move(what), detail::unchanged{},
                                         std::forward<Token>(token));
  }

  Store store_;
  id_source ids_;
  [[no_unique_address]] Clock clock_;
  std::shared_ptr<conflict_observer const> observer_;
};

}  // namespace weir

#endif
