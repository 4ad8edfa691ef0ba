// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_QUEUE_HPP
#define WEIR_JOB_QUEUE_HPP

#include "weir/concept.hpp"
#include "weir/detail/async_command.hpp"
#include "weir/detail/enqueue_request.hpp"
#include "weir/enqueue.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/job.hpp"
#include "weir/job_codec.hpp"
#include "weir/job_traits.hpp"

#include <boost/asio/any_io_executor.hpp>
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

namespace detail {

/// Does g++ 12 destroy a temporary of this type twice beside `co_await`?
template <class Job>
inline constexpr bool unsafe_temporary =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_aggregate_v<Job> && !std::is_trivially_destructible_v<Job>;
#else
    false && sizeof(Job) != 0;
#endif

}  // namespace detail

/// Named queues of jobs on one store.
///
/// Every operation is one atomic step of the store, under the name that the QuiCK paper gives it
/// where it has one. All of them complete with `void(error_code, T)` on the handler's executor, and
/// take any completion token; the default is `deferred`, so `co_await queue.async_…()` works.
///
/// Errors of every operation, besides those named at it: the bad input named in `errc` (before any
/// I/O), `store_unavailable` (not done), `outcome_unknown` (ask again: every operation here may
/// be), `operation_aborted` (cancelled; done or not done, never half). Cancelling leaves nothing
/// behind that needs cleaning up.
///
/// Thread-safety: one queue object may be used by several threads, except while its observer is
/// being set.
template <class Store>
class job_queue {
  static_assert(job_store<Store>, "weir::job_queue: this store does not model weir::job_store "
                                  "(it cannot execute every command of weir/command/jobs.hpp)");

 public:
  using store_type = Store;
  using executor_type = boost::asio::any_io_executor;
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// Called for a conflict under `conflict_policy::log`: the queue, the newcomer and who has the
  /// key.
  using conflict_observer =
      std::function<void(std::string_view queue, job_id newcomer, job_id possessor)>;

  explicit job_queue(Store store, id_source ids = id_source{})
      : store_{std::move(store)},
        ids_{std::move(ids)} {}

  [[nodiscard]] executor_type get_executor() const noexcept { return store_.get_executor(); }
  [[nodiscard]] Store const& get_store() const noexcept { return store_; }

  /// Sets what is told of conflicts under `conflict_policy::log`. It runs where the store
  /// completes; it must not throw.
  void on_conflict(conflict_observer observer) {
    observer_ = std::make_shared<conflict_observer const>(std::move(observer));
  }

  /// Enqueues one job under its type's policies.
  ///
  /// @param job     copied (encoded) before this returns
  /// @param options this enqueue's own delay, queue and priority
  /// @return `enqueued_job`; a conflict under `discard` and `log` is `duplicate`
  /// Errors: `unique_conflict` under `reject`; `unencodable_payload`, `payload_too_large` and other
  /// bad input; `invalid_option` for more than one id, or a nil one; `store_full`.
  template <class Job, class Token = default_token>
  auto async_enqueue(Job const& job, enqueue_options options = {}, Token&& token = Token{}) const {
    auto request = detail::encode_jobs(std::span<Job const>{&job, 1}, options, ids_);
    auto observer = observer_;
    auto first = [observer](command::enqueue_jobs::result outcomes,
                            detail::enqueue_request& asked) -> result<enqueued_job> {
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
  void async_enqueue(Job&& job, Rest&&...) const = delete;

  /// Enqueues jobs of one type into one queue, in one atomic step.
  ///
  /// @param jobs 1…`limits::batch` of them, encoded before this returns; the queue is that of
  /// `options`, or else the
  ///             type's queue of the first job, and must be the same for all (`invalid_queue`)
  /// @return an outcome for each, by position: a conflict concerns its own job only, whatever its
  /// policy
  /// Errors: as for one; `invalid_option` when there are not as many ids as jobs.
  template <class Job, class Token = default_token>
  auto async_enqueue_many(std::span<Job const> jobs, enqueue_options options = {},
                          Token&& token = Token{}) const {
    auto request = detail::encode_jobs(jobs, options, ids_);
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

  /// Lists up to `limit` (1…`limits::batch`) visible jobs in order, leasing none.
  template <class Token = default_token>
  auto async_peek(std::string queue, std::uint32_t limit = 10, Token&& token = Token{}) const {
    return ask(
        [limit](std::string_view q) { return command::peek_jobs{.queue = q, .limit = limit}; },
        std::forward<Token>(token), std::move(queue));
  }

  /// Claims the best visible jobs, counting an attempt for each. See `command::dequeue_jobs`.
  /// @param holder who claims: 1…`limits::holder_size` bytes
  template <class Token = default_token>
  auto async_dequeue(std::string queue, std::string holder, dequeue_options options = {},
                     Token&& token = Token{}) const {
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

  /// Claims one job, if it is visible; empty otherwise.
  template <class Token = default_token>
  auto async_obtain_lease(std::string queue, job_id id, std::string holder,
                          duration lease = std::chrono::seconds{30},
                          Token&& token = Token{}) const {
    return ask(
        [id, lease](std::string_view q, std::string_view h) {
          return command::obtain_lease{.queue = q, .id = id, .holder = h, .lease = lease};
        },
        std::forward<Token>(token), std::move(queue), std::move(holder));
  }

  /// Makes a lease last `lease` from now. Error: `lease_lost`.
  template <class Token = default_token>
  auto async_extend_lease(std::string queue, job_id id, std::uint64_t fence, duration lease,
                          Token&& token = Token{}) const {
    return ask(
        [id, fence, lease](std::string_view q) {
          return command::extend_lease{.queue = q, .id = id, .fence = fence, .lease = lease};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// Ends a leased job as completed and stores its result. Error: `lease_lost`; then nothing was
  /// changed.
  template <class Token = default_token>
  auto async_complete(std::string queue, job_id id, std::uint64_t fence, std::string stored = {},
                      Token&& token = Token{}) const {
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

  /// Ends a lease because the attempt failed. Error: `lease_lost`.
  /// @param delay  until it vests again; @param reason kept with the job, cut at
  /// `limits::reason_size` bytes
  template <class Token = default_token>
  auto async_requeue(std::string queue, job_id id, std::uint64_t fence, duration delay,
                     std::string reason = {}, Token&& token = Token{}) const {
    return ask(
        [id, fence, delay](std::string_view q, std::string_view r) {
          return command::requeue_job{
              .queue = q, .id = id, .fence = fence, .delay = delay, .reason = r};
        },
        std::forward<Token>(token), std::move(queue), std::move(reason));
  }

  /// Ends a lease without a failure: the attempt is given back. Error: `lease_lost`.
  template <class Token = default_token>
  auto async_snooze(std::string queue, job_id id, std::uint64_t fence, duration delay,
                    std::string memo = {}, Token&& token = Token{}) const {
    return ask(
        [id, fence, delay](std::string_view q, std::string_view m) {
          return command::snooze_job{
              .queue = q, .id = id, .fence = fence, .delay = delay, .memo = m};
        },
        std::forward<Token>(token), std::move(queue), std::move(memo));
  }

  /// Gives a claimed job back as if it had not been claimed. Error: `lease_lost`.
  template <class Token = default_token>
  auto async_return(std::string queue, job_id id, std::uint64_t fence,
                    Token&& token = Token{}) const {
    return ask(
        [id, fence](std::string_view q) {
          return command::return_job{.queue = q, .id = id, .fence = fence};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// Ends a leased job in the dead letters at once. Error: `lease_lost`.
  template <class Token = default_token>
  auto async_bury(std::string queue, job_id id, std::uint64_t fence, std::string reason,
                  Token&& token = Token{}) const {
    return ask(
        [id, fence](std::string_view q, std::string_view r) {
          return command::bury_job{.queue = q, .id = id, .fence = fence, .reason = r};
        },
        std::forward<Token>(token), std::move(queue), std::move(reason));
  }

  /// Cancels a waiting job; with `running`, a leased one too: its holder finds its lease lost.
  template <class Token = default_token>
  auto async_cancel(std::string queue, job_id id, bool running = false,
                    Token&& token = Token{}) const {
    return ask(
        [id, running](std::string_view q) {
          return command::cancel_job{.queue = q, .id = id, .running = running};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// Reads one job in whatever state, its result and its reason with it; empty: there is no record.
  template <class Token = default_token>
  auto async_find(std::string queue, job_id id, Token&& token = Token{}) const {
    return ask([id](std::string_view q) { return command::find_job{.queue = q, .id = id}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Until the first job of the queue vests or the first lease ends; not positive: one is visible;
  /// empty: it has none.
  template <class Token = default_token>
  auto async_min_vesting_time(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::min_vesting_time{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Lists up to `limit` due queues of a shard (below the store's `shard_count()`).
  template <class Token = default_token>
  auto async_scan_visible_queues(std::uint32_t shard = 0, std::uint32_t limit = 100,
                                 Token&& token = Token{}) const {
    return ask(
        [shard, limit] { return command::scan_visible_queues{.shard = shard, .limit = limit}; },
        std::forward<Token>(token));
  }

  /// Recomputes a queue's pointer; gives its min vesting time.
  template <class Token = default_token>
  auto async_update_queue_pointer(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::update_queue_pointer{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// Deletes the pointers of up to `limit` empty queues of a shard, due for longer than `grace`;
  /// gives their number.
  template <class Token = default_token>
  auto async_gc_stale_pointers(std::uint32_t shard = 0, std::uint32_t limit = 100,
                               duration grace = std::chrono::minutes{1},
                               Token&& token = Token{}) const {
    return ask(
        [shard, limit, grace] {
          return command::gc_stale_pointers{.shard = shard, .limit = limit, .grace = grace};
        },
        std::forward<Token>(token));
  }

  /// Takes the queue's advisory lease.
  template <class Token = default_token>
  auto async_obtain_queue_lease(std::string queue, std::string holder,
                                duration lease = std::chrono::seconds{30},
                                Token&& token = Token{}) const {
    return ask(
        [lease](std::string_view q, std::string_view h) {
          return command::obtain_queue_lease{.queue = q, .holder = h, .lease = lease};
        },
        std::forward<Token>(token), std::move(queue), std::move(holder));
  }

  /// Ends the queue lease of this holder and fence; late or twice is harmless and says so.
  template <class Token = default_token>
  auto async_release_queue_lease(std::string queue, std::string holder, std::uint64_t fence,
                                 Token&& token = Token{}) const {
    return ask(
        [fence](std::string_view q, std::string_view h) {
          return command::release_queue_lease{.queue = q, .holder = h, .fence = fence};
        },
        std::forward<Token>(token), std::move(queue), std::move(holder));
  }

  /// Holds the whole queue back for `delay`; 0 ends it.
  template <class Token = default_token>
  auto async_snooze_queue(std::string queue, duration delay, Token&& token = Token{}) const {
    return ask(
        [delay](std::string_view q) { return command::snooze_queue{.queue = q, .delay = delay}; },
        std::forward<Token>(token), std::move(queue));
  }

  /// Gives out nothing of this queue until `async_resume`. What runs goes on.
  template <class Token = default_token>
  auto async_pause(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::pause_queue{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  template <class Token = default_token>
  auto async_resume(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::resume_queue{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// The queue's jobs by state, from one snapshot.
  template <class Token = default_token>
  auto async_stats(std::string queue, Token&& token = Token{}) const {
    return ask([](std::string_view q) { return command::read_queue_stats{.queue = q}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// One page of the queue's dead letters, the oldest first.
  /// @param cursor that of the page before; empty to begin
  template <class Token = default_token>
  auto async_list_dead_letters(std::string queue, std::uint32_t limit = 100,
                               std::string cursor = {}, Token&& token = Token{}) const {
    return ask(
        [limit](std::string_view q, std::string_view c) {
          return command::list_dead_letters{.queue = q, .limit = limit, .cursor = c};
        },
        std::forward<Token>(token), std::move(queue), std::move(cursor));
  }

  /// Makes a dead job pending again with no attempts spent.
  template <class Token = default_token>
  auto async_replay(std::string queue, job_id id, duration delay = {},
                    Token&& token = Token{}) const {
    return ask(
        [id, delay](std::string_view q) {
          return command::replay_dead_letter{.queue = q, .id = id, .delay = delay};
        },
        std::forward<Token>(token), std::move(queue));
  }

  /// Forgets one ended job; false: there is no record of one.
  template <class Token = default_token>
  auto async_purge(std::string queue, job_id id, Token&& token = Token{}) const {
    return ask([id](std::string_view q) { return command::purge_job{.queue = q, .id = id}; },
               std::forward<Token>(token), std::move(queue));
  }

  /// One page of the names of a shard's queues.
  template <class Token = default_token>
  auto async_list_queues(std::uint32_t shard = 0, std::uint32_t limit = 100,
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
  std::shared_ptr<conflict_observer const> observer_;
};

}  // namespace weir

#endif
