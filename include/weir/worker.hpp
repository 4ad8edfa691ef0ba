// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_HPP
#define WEIR_WORKER_HPP

#include "weir/backoff/capped.hpp"
#include "weir/backoff/exponential.hpp"
#include "weir/backoff/jittered.hpp"
#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/id_source.hpp"
#include "weir/job_context.hpp"
#include "weir/job_queue.hpp"
#include "weir/job_traits.hpp"
#include "weir/worker/handler.hpp"
#include "weir/worker/middleware.hpp"
#include "weir/worker/options.hpp"
#include "weir/worker/runs.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/default_completion_token.hpp>

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir {

/// The backoff of failed attempts where a job type has none of its own: 1 s, doubling to an hour,
/// fully jittered but never below half of it.
using default_retry_backoff = jittered_backoff<capped_backoff<exponential_backoff>, equal_jitter>;

/// Runs jobs: finds queues that are due, claims from each in turn, and runs the handler registered
/// for each job's kind under the policies of its `job_traits`.
///
///     weir::worker worker{store, {.concurrency = 20}};
///     worker.handle<send_mail>(
///         [](send_mail const& m, weir::job_context& c) -> asio::awaitable<void> { … });
///     co_await worker.async_run();
///
/// *Policies* are asked in the order unique → concurrency → rate, and nothing is held while a job
/// waits: what was taken is given back, and the job is snoozed, which costs it no attempt.
/// *Failure* is any exception of the handler: the job is requeued by its backoff and dead-lettered
/// when its attempts are spent, with the exception's text as the reason. A handler throws `give_up`
/// to end its job at once, and `snooze_for` to be asked again. An undecodable payload is
/// dead-lettered with the decoder's reason; a job of a kind without handler here is put off for a
/// worker that knows it. *Leases* are renewed while a handler runs; when one is lost, a coroutine
/// handler is cancelled (`terminal`) and a plain function may look at
/// `job_context::stop_requested`, and throw. What happens to the job then is its new holder's
/// business.
///
/// *Executors*: a handler and the decoding of its payload run on the executor that the handler is
/// bound to, or else on the one associated with the token of `async_run`; a coroutine on a strand
/// of its own. All bookkeeping runs on a strand of the store's executor, or of the one given to
/// `bookkeeping_on`; so do renewals, and the policies of job types that have limits. A handler that
/// blocks the only thread of both starves the renewals: bind it to a pool, or give the bookkeeping
/// an executor of its own.
///
/// *Lifetime*: copies share handlers and runs. The destructor of the last one stops the runs as
/// `stop` does; they drain and complete later, on their executors, and refer to nothing of the
/// worker's. The execution contexts of the bookkeeping and of handlers may be destroyed in any
/// order. Without the former no handler starts. Without one of the latter a run stops when it would
/// start a handler there, and gives its jobs back. After `fork` a worker is the parent's: the child
/// must neither run nor destroy it, nor its store.
///
/// *Thread-safety*: register handlers, middleware and observers before `async_run`; `stop` may be
/// called from any thread.
template <class Store, class Clock = system_clock, class Backoff = default_retry_backoff>
class worker {
  static_assert(job_store<Store>, "weir::worker: this store does not model weir::job_store "
                                  "(it cannot execute every command of weir/command/jobs.hpp)");
  static_assert(permit_store<Store>,
                "weir::worker: this store does not model weir::permit_store "
                "(it cannot execute every command of weir/command/permits.hpp)");
  static_assert(bucket_store<Store>,
                "weir::worker: this store does not model weir::bucket_store "
                "(it cannot execute every command of weir/command/buckets.hpp)");
  static_assert(clock<Clock>, "weir::worker: this clock does not model weir::clock");
  static_assert(backoff<Backoff>, "weir::worker: this backoff does not model weir::backoff");

 public:
  using store_type = Store;                            ///< where the state lives
  using clock_type = Clock;                            ///< how it waits
  using executor_type = boost::asio::any_io_executor;  ///< of any kind
  /// The token of an operation that is given none: `deferred`, or what the executor was rebound to.
  using default_token = boost::asio::default_completion_token_t<executor_type>;

  /// @param store   where the queues, permits and buckets are; copied
  /// @param options checked by `async_run`
  /// @param clock   how it waits
  /// @param backoff of failed attempts whose job type has none
  /// @param ids     where its name as a holder, and all that is random, comes from
  explicit worker(Store store, worker_options options = {}, Clock clock = Clock{},
                  Backoff backoff = default_backoff(), id_source ids = id_source{})
      : setup_{detail::worker_store::of(store),
               options,
               detail::any_clock::of(std::move(clock)),
               std::move(backoff),
               std::move(ids),
               store.get_executor()} {}

  /// Where the bookkeeping is done.
  [[nodiscard]] executor_type get_executor() const noexcept { return setup_.executor; }

  /// Does the bookkeeping on `executor` instead of the store's.
  void bookkeeping_on(executor_type executor) { setup_.executor = std::move(executor); }

  /// Sets who is told of everything that the worker does.
  void on_event(worker_observer observer) { setup_.observer = std::move(observer); }

  /// Registers the handler of a job type; a second one for the same kind replaces the first.
  ///
  /// @param handler takes `(Job const&, job_context&)` or `(Job const&)`, both alive until it ends.
  ///                It is a plain function or returns `asio::awaitable`. One that is bound to an
  ///                executor runs there, a coroutine on a strand of it: use `asio::bind_executor`
  ///                for one that blocks or computes. What it returns is stored as the job's result:
  ///                a string as it is, anything else in its JSON form. Several calls may run at
  ///                once.
  template <class Job, class Handler>
  worker& handle(Handler handler) {
    static_assert(has_kind<Job>,
                  "weir::worker: specialise weir::job_traits for this job type and give it "
                  "a `static constexpr std::string_view kind`");
    [[maybe_unused]] constexpr detail::payload_check<Job> has_a_payload{};
    static_assert(detail::takes_job<Handler, Job>,
                  "weir::worker: a handler takes (Job const&, weir::job_context&) or (Job const&)");
    if constexpr (detail::takes_job<Handler, Job>) {
      static_assert(detail::storable_result<
                        typename detail::handler_value<detail::handler_return<Handler, Job>>::type>,
                    "weir::worker: a handler returns void, a string, or a type with a JSON form");
      runs_.handle(job_policy<Job>::kind(),
                   std::make_shared<detail::typed_handler<Job, Handler>>(std::move(handler)));
    }
    return *this;
  }

  /// The same for a handler that names its job type: a function, or an object with one `operator()`
  /// that is no template.
  ///
  ///     worker.handle([](send_mail const& m) { ... });
  template <class Handler>
    requires requires { typename detail::job_of<Handler>::type; }
  worker& handle(Handler handler) {
    return handle<typename detail::job_of<Handler>::type, Handler>(std::move(handler));
  }

  /// Puts a middleware around every handler. The first that is added is the outermost. With one,
  /// handlers that are plain functions are run as coroutines are, on a strand. For one job type
  /// see `weir::around`, which composes at compile time.
  ///
  ///     worker.around([](weir::job_context& job, auto next) -> asio::awaitable<void> {
  ///       auto const span = tracer.begin(job.kind());
  ///       co_await next();  // the middleware that is added later, then the handler
  ///     });
  ///
  /// @param middleware takes `(weir::job_context&, weir::next_handler)` and returns
  ///                   `asio::awaitable<void>`. What it throws ends the attempt as if the handler
  ///                   had thrown it. Several calls may run at once
  /// @return this worker
  template <class Middleware>
  worker& around(Middleware middleware) {
    static_assert(detail::is_middleware<Middleware>,
                  "weir::worker: a middleware takes (weir::job_context&, weir::next_handler) and "
                  "returns boost::asio::awaitable<void>");
    if constexpr (detail::is_middleware<Middleware>) {
      setup_.around.push_back(
          [kept = std::make_shared<Middleware>(std::move(middleware))](
              job_context& context, next_handler next) { return (*kept)(context, next); });
    }
    return *this;
  }

  /// For `scheduler`: it serves schedules, and nothing else.
  void fire_schedules(std::initializer_list<std::string_view> kinds,
                      std::shared_ptr<detail::any_handler const> const& handler) {
    setup_.fires_schedules = true;
    for (auto const kind : kinds) runs_.handle(kind, handler);
  }

  /// Runs until stopped or cancelled. Each call is a run of its own, with `options.concurrency`
  /// hands: call it once, unless several executors are to run handlers.
  ///
  /// At the end it drains: it claims nothing more, gives back jobs that it has not started, and
  /// waits up to `options.drain` for its handlers while it renews their leases. Then it tells them
  /// to stop, waits until they have, and gives back, with their attempt, the jobs that they did not
  /// finish.
  ///
  /// @return nothing: `void(error_code)`
  /// Errors: bad options (`invalid_option`, `invalid_shard`, `invalid_ttl`, `invalid_wait`), before
  /// anything is done; `operation_aborted` when cancelled; `schema_outdated`, `schema_too_new`,
  /// `store_foreign`, `store_evicts`, `permission_denied` or a store's `invalid_option`, if the
  /// store answers so from the beginning. Its other failures, and all later ones, are events and
  /// not errors: the worker goes on trying. `not_enough_memory`, and `state_not_recoverable` for a
  /// source of ids that throws, end it without a drain.
  /// Cancellation, of any type: drains as above. Nothing is left behind, except where the store
  /// could not be told.
  /// Executor: handlers run on the associated executor, coroutines on strands of it.
  template <class Token = default_token>
  WEIR_OPERATION auto async_run(Token&& token = Token{}) {
    auto initiate = [this](auto handler) {
      auto handlers =
          handler_executor(boost::asio::get_associated_executor(handler, setup_.executor));
      runs_.begin(setup_, std::move(handlers), std::move(handler));
    };
    return boost::asio::async_initiate<Token, void(error_code)>(
        detail::bound_initiation{setup_.executor, std::move(initiate)}, token);
  }

  /// Ends the runs in progress as cancelling them does; their `async_run` completes without error.
  void stop() { runs_.stop(); }

 private:
  static Backoff default_backoff() {
    if constexpr (std::is_same_v<Backoff, default_retry_backoff>) {
      return default_retry_backoff{
          capped_backoff{exponential_backoff{std::chrono::seconds{1}}, std::chrono::hours{1}}};
    } else {
      return Backoff{};
    }
  }

  /// Where handlers run. An erased handler's executor can only be dispatched to, so handlers run on
  /// the worker's then.
  template <class Executor>
  executor_type handler_executor(Executor const& associated) const {
    if constexpr (std::is_convertible_v<Executor const&, executor_type>) {
      return associated;
    } else {
      return setup_.executor;
    }
  }

  detail::worker_setup setup_;
  detail::worker_runs runs_;
};

}  // namespace weir

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/worker/run.hpp"
#endif

#endif
