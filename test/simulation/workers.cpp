// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "driver.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/execute.hpp"
#include "weir/job_queue.hpp"
#include "weir/worker.hpp"
#include "worker_jobs.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// Mistakes of a store that only whole workers notice.
struct worker_defects {
  static constexpr bool always = true;  ///< for the order of checkpoints

  explicit worker_defects(int w) : which{w} {}

  template <class Store>
  result<permit_grant> step(command::acquire_permit c, Store& s) {
    if (which == 0) c.limit += 1;
    if (which == 1) c.ttl = std::chrono::hours{24};
    return s.execute(c);
  }
  template <class Store>
  result<lease_release> step(command::release_permit const& c, Store& s) {
    if (which == 1) return lease_release{};
    return s.execute(c);
  }
  template <class Store>
  result<dequeued> step(command::dequeue_jobs c, Store& s) {
    if (which == 2) c.lease /= 4;
    auto a = s.execute(c);
    if (which == 2 && a.has_value()) {
      for (auto& j : a.value().jobs) j.expires_in *= 4;
    }
    return a;
  }
  template <class Store>
  result<lease_renewal> step(command::extend_lease c, Store& s) {
    if (which == 5) c.checkpoint = {};
    // Of two renewals under one lease a store does not know which was sent first: one that was on
    // its way for long puts an older checkpoint back. That is left out here; the rest is checked.
    if (!c.checkpoint.empty()) {
      auto const number = std::stoull(std::string{c.checkpoint});
      auto& last = last_checkpoint[{std::string{c.queue}, c.id}];
      if (number < last) c.checkpoint = {};
      last = std::max(last, number);
    }
    return s.execute(c);
  }
  template <class Store>
  result<requeue_outcome> step(command::requeue_job c, Store& s) {
    if (which == 3) c.delay = std::chrono::hours{24};
    return s.execute(c);
  }
  template <class Store>
  result<command::complete_jobs::result> step(command::complete_jobs const& c, Store& s) {
    if (which == 4) {
      return command::complete_jobs::result(c.jobs.size(), complete_outcome::completed);
    }
    return s.execute(c);
  }

  int which;
  std::map<std::pair<std::string, job_id>, unsigned long long> last_checkpoint;
};

inline constexpr defect known_worker_defects[] = {
    {0, "R1", "the concurrency limit is one too high"},
    {1, "F11", "permits of jobs are never given back"},
    {2, "F4", "leases end after a quarter of their time"},
    {3, "R6", "a failed job waits for a day"},
    {4, "F14", "a completion is acknowledged and not done"},
    {5, "F104", "a renewal stores no checkpoint"},
};

}  // namespace weir::testing::simulation

// Workers with all policies on, and handlers that fail, give up, snooze, outlive their leases and
// do not listen.
namespace {

namespace asio = boost::asio;
using namespace weir::testing::simulation;
using namespace simulated;
using namespace std::chrono_literals;
using weir::duration;
using weir::job_id;
using weir::testing::dice;

using engine_type = engine_with<worker_defects>;

class workers final : public simulated_program<engine_type> {
 public:
  struct knobs {
    knobs(dice& d, bool small) {
      constexpr duration leases[] = {600ms, 2s, 5s};
      constexpr duration polls[] = {50ms, 300ms, 1s};
      work.lease = d.pick(leases);
      work.poll = d.pick(polls);
      work.concurrency = static_cast<std::uint32_t>(1 + d.below(5));
      work.quantum = static_cast<std::uint32_t>(1 + d.below(4));
      work.scan_limit = static_cast<std::uint32_t>(1 + d.below(10));
      work.drain = d.chance(50) ? duration{} : work.lease;
      work.max_reservation = d.chance(50) ? 500ms : 10s;
      work.unknown_kind_delay = 300ms;
      work.gc_interval = work.lease;
      tenants = small ? 1 : 1 + d.below(4);
      keys = 1 + d.below(2);
      run.nodes = small ? 2 : static_cast<std::uint32_t>(1 + d.below(3));
      run.safety = small ? 2 * work.lease : work.lease * static_cast<int>(3 + d.below(8));
      draw_trouble(run, d, work.lease);
      if (d.chance(30)) work.prefetch = static_cast<std::uint32_t>(1 + d.below(4));
      if (d.chance(50)) choose_queues(d);
    }

    /// All of them are served, by names, by a prefix, or as the rest.
    void choose_queues(dice& d) {
      auto const some = [&d](weir::served_queues of) {
        of.weight = static_cast<std::uint32_t>(1 + d.below(9));
        if (d.chance(50)) of.concurrency = static_cast<std::uint32_t>(1 + d.below(2));
        return of;
      };
      work.queues.push_back(some({.name = "tenant 0"}));
      work.queues.push_back(some({.name = "slow lane"}));
      work.queues.push_back(
          some(d.chance(50) ? weir::served_queues{.prefix = "tenant "} : weir::served_queues{}));
    }

    plan run;
    weir::worker_options work;
    std::uint64_t tenants;
    std::uint64_t keys;
  };

  workers(cluster<engine>& in, knobs const& k) : simulated_program{in}, knobs_{k} {}
  ~workers() override { in_.nodes.clear(); }

  static weir::memory_options engine_options(std::uint64_t seed) {
    weir::memory_options o;
    o.shards = 2;
    if (seed % 4 == 0) o.max_jobs = 20;  // a store that is full now and then
    return o;
  }

  void start(node<engine>& on) override {
    auto const p = std::make_shared<process>(*this, on);
    add_handlers(*p);
    on.keep(p);
    on.spawn(producer(p));
    on.spawn(work(p));
    if (done_) p->stop();
  }
  bool holds_lease(node<engine>& on) override {
    return std::any_of(running_.begin(), running_.end(),
                       [&](auto const& h) { return h.on == &on; });
  }
  void heal() override { heal_until_settled(knobs_.run); }

  /// Every job has ended, the workers have stopped, and nothing is held any more.
  bool drained() override {
    if (has_jobs()) return false;
    if (!std::exchange(done_, true)) {
      for (auto const& p : processes_) {
        if (auto const alive = p.lock()) alive->stop();
      }
    }
    if (runs()) return false;
    for (auto const* const key : {"limit 0", "limit 1", "strict limit"}) {
      auto const found = in_.engine().execute(weir::command::inspect_permits{.key = key});
      if (found.value().in_use != 0) {
        in_.in.after(knobs_.work.lease / 4, [] {});
        return false;
      }
    }
    return true;
  }

  void check() override {
    auto& w = in_.in;
    for (auto const& n : in_.nodes) check_hands(*n);
    for (auto a = running_.begin(); a != running_.end(); ++a) {
      if (!believes(*a)) continue;
      std::uint32_t beside = 0;
      for (auto b = running_.begin(); b != running_.end(); ++b) {
        if (!believes(*b)) continue;
        if (a != b && a->id == b->id) {
          w.found_broken("R5", "two handlers of one job run under valid leases");
        }
        if (a != b && !a->alone.empty() && a->alone == b->alone) {
          w.found_broken("R2", a->alone + ": two handlers of one unique key run");
        }
        if (!a->limit.empty() && a->limit == b->limit) ++beside;
      }
      w.expect(beside <= few, "R1", [&] {
        return a->limit + ": " + std::to_string(beside) + " handlers run under one limit";
      });
    }
  }

 private:
  /// A worker runs no more at once than it was told to, nor does one of its entries.
  void check_hands(node<engine> const& on) {
    std::uint32_t all = 0;
    std::uint32_t first = 0;
    for (auto const& h : running_) {
      all += h.on == &on ? 1 : 0;
      first += h.on == &on && h.queue == "tenant 0" ? 1 : 0;
    }
    auto const& options = knobs_.work;
    in_.in.expect(all <= options.concurrency, "concurrency",
                  [&] { return std::to_string(all) + " handlers run in one worker"; });
    if (options.queues.empty() || options.queues.front().concurrency == 0) return;
    in_.in.expect(first <= options.queues.front().concurrency, "concurrency",
                  [&] { return std::to_string(first) + " handlers of one entry run"; });
  }

  using store_type = network_store<engine>;
  using worker_type = weir::worker<store_type, simulated_clock>;

  struct process {
    process(workers& p, node<engine>& n)
        : all{p},
          on{n},
          store{n.make_store()},
          ids{n.ids()},
          queue{store, ids, n.clock()},
          worker{store, p.knobs_.work, n.clock(),
                 weir::default_retry_backoff{
                     weir::capped_backoff{weir::exponential_backoff{200ms}, 5s}},
                 ids} {
      worker.on_event([this](weir::worker_event const& e) { all.heard(e, stopping); });
    }
    void stop() {
      stopping = true;
      worker.stop();
    }
    workers& all;
    node<engine>& on;
    store_type store;
    weir::id_source ids;
    weir::job_queue<store_type, simulated_clock> queue;
    worker_type worker;
    bool stopping = false;
  };
  using process_pointer = std::shared_ptr<process>;

  // ------------------------------------------------------------------------------ handlers

  struct handling {
    node<engine>* on;
    weir::job_context const* context;
    std::string queue;
    job_id id;
    std::uint64_t fence;
    std::string limit;  ///< the key of its permit
    std::string alone;  ///< the key of its run lock, with its queue
  };

  class entry {
   public:
    entry(workers& all, handling h) : all_{all} {
      all_.running_.push_back(std::move(h));
      place_ = std::prev(all_.running_.end());
    }
    entry(entry const&) = delete;
    entry& operator=(entry const&) = delete;
    ~entry() { all_.running_.erase(place_); }

   private:
    workers& all_;
    std::list<handling>::iterator place_;
  };

  /// Does this handler's worker believe in its lease, and may it? A stalled process has not been
  /// told yet, a store whose clock jumps ahead ends leases early, and who cancels a running job
  /// ends its lease at once.
  [[nodiscard]] bool believes(handling const& h) const {
    if (h.context->stop_requested()) return false;
    if (in_.in.stalled(h.on->context()) || h.on->context().ready() != 0) return false;
    if (in_.audits.jobs.extended_at(h.id, h.fence) <= in_.last_jump) return false;
    if (!h.limit.empty()) {
      auto const holder = to_string(h.id) + '/' + std::to_string(h.fence);
      if (in_.audits.leases.extended_at(holder) <= in_.last_jump) return false;
    }
    auto const* const q = in_.audits.jobs.find(h.queue);
    auto const r = q->records.find(h.id);
    // One that was over and that a clock which jumps back makes live again has had successors.
    return r != q->records.end() && r->second.state != weir::job_state::cancelled &&
           !r->second.was_over;
  }

  /// What handlers of a job have handed over, each time a higher number.
  struct checkpoints {
    std::uint64_t last = 0;
    std::uint64_t kept = 0;  ///< at least this one is to be found by the next attempt
    std::map<std::uint64_t, std::uint64_t> of_attempt;  ///< the last one, by fence
    bool may_have_ended = false;  ///< a lost lease may be a completion that was answered twice

    void begin_anew() {
      kept = 0;
      may_have_ended = false;
      of_attempt.clear();
    }
  };

  void check_checkpoint(weir::job_context const& c) {
    auto& known = checkpoints_[{std::string{c.queue()}, c.id()}];
    // An enqueue that was on its way for long makes a job anew whose record is gone.
    bool const is_new = c.snoozes() == 0 || known.may_have_ended;
    if (c.attempt() == 1 && is_new && c.last_checkpoint().empty()) known.begin_anew();
    auto const found = c.last_checkpoint().empty() ? std::uint64_t{0}
                                                   : std::stoull(std::string{c.last_checkpoint()});
    in_.in.expect(found >= known.kept && found <= known.last, "F104", [&] {
      return "an attempt of " + weir::testing::to_text(c.id()) + " finds checkpoint " +
             std::to_string(found) + " of " + std::to_string(known.last) + ", and " +
             std::to_string(known.kept) + " was kept";
    });
  }
  /// Hands over a checkpoint, and waits until it is stored or does not.
  static asio::awaitable<void> leave_checkpoint(workers& all, weir::job_context& c) {
    auto& d = all.in_.in.choices;
    auto& known = all.checkpoints_[{std::string{c.queue()}, c.id()}];
    auto const number = ++known.last;
    if (d.chance(50)) {
      known.of_attempt[c.fence()] = number;
      c.checkpoint(std::to_string(number));
      co_return;
    }
    // A handler that was told to stop is not let in here any more: nothing is handed over then.
    auto [ec] = co_await c.async_checkpoint(std::to_string(number), token);
    if (!ec) known.kept = std::max(known.kept, number);
  }

  void heard(weir::worker_event const& e, bool stopping) {
    auto& w = in_.in;
    using kind = weir::worker_event_kind;
    w.tell([&] {
      return "  worker: " + std::string{to_string(e.kind)} + ' ' + std::string{e.queue} + ' ' +
             (e.job != nullptr ? weir::testing::to_text(e.job->id) : std::string{}) + ' ' +
             std::string{e.reason};
    });
    switch (e.kind) {
      case kind::lease_lost:
        w.reach(rare_state::job_lease_lost);
        checkpoints_[{std::string{e.queue}, e.job->id}].may_have_ended = true;
        break;
      case kind::returned: w.reach(rare_state::job_returned); break;
      case kind::completed: checkpoints_[{std::string{e.queue}, e.job->id}].begin_anew(); break;
      case kind::retried:
        // One that stops does not wait for long for a store that does not answer.
        if (auto const job = checkpoints_.find({std::string{e.queue}, e.job->id});
            job != checkpoints_.end() && !stopping) {
          auto& known = job->second;
          known.kept = std::max(known.kept, known.of_attempt[e.job->fence]);
        }
        if (e.reason == "timed out") w.reach(rare_state::handler_timed_out);
        break;
      case kind::snoozed:
        if (e.job->kind == "limited") w.reach(rare_state::permit_refused_snoozed);
        if (e.job->kind == "rated") w.reach(rare_state::rate_refused_snoozed);
        break;
      case kind::started:
        if (e.job->memo.starts_with("rate paid")) w.reach(rare_state::reservation_used);
        w.expect(e.job->attempt <= e.job->max_attempts, "R4",
                 [] { return std::string{"an attempt too many is started"}; });
        break;
      default: break;
    }
  }

  template <class Job>
  void add_handler(process& p, std::string limit, bool alone) {
    auto* const raw = &p;
    p.worker.template handle<Job>(
        [raw, limit, alone](Job const& job, weir::job_context& c) -> asio::awaitable<int> {
          return handle(raw->all, raw->on, c, job.key,
                        limit.empty() || limit.back() != ' ' ? limit
                                                             : limit + std::to_string(job.key),
                        alone);
        });
  }

  void add_handlers(process& p) {
    add_handler<plain_job>(p, "", false);
    add_handler<limited_job>(p, "limit ", false);
    add_handler<rated_job>(p, "", false);
    add_handler<unique_job>(p, "", false);
    add_handler<alone_job>(p, "", true);
    add_handler<strict_job>(p, "strict limit", true);
    add_handler<queue_rated_job>(p, "", false);
    std::erase_if(processes_, [](auto const& w) { return w.expired(); });
  }

  static asio::awaitable<int> handle(workers& all, node<engine>& on, weir::job_context& c, int key,
                                     std::string limit, bool alone) {
    auto& w = all.in_.in;
    auto& d = w.choices;
    std::string const queue{c.queue()};
    std::string const lock =
        alone ? queue + '/' + std::string{c.kind()} + '/' + std::to_string(key) : std::string{};
    entry const here{all, {&on, &c, queue, c.id(), c.fence(), std::move(limit), lock}};
    all.check_checkpoint(c);
    bool const stubborn = d.chance(15);
    auto const clock = on.clock();
    auto const executor = co_await asio::this_coro::executor;
    if (stubborn) co_await asio::this_coro::throw_if_cancelled(false);
    auto const times = all.healing_ ? 1 : 1 + d.below(4);
    for (std::uint64_t i = 0; i != times; ++i) {
      auto const until = clock.steady_now() + all.up_to(all.knobs_.work.lease / 2);
      co_await clock.async_wait_until(executor, until, token);
      if (d.chance(30)) c.progress(i, times, "so far");
      if (d.chance(30)) co_await leave_checkpoint(all, c);
      if (!c.stop_requested()) continue;
      if (!stubborn) throw std::runtime_error{"stopped"};
      w.reach(rare_state::handler_ignored_stop);
    }
    if (all.healing_) co_return 0;
    switch (d.below(8)) {
      case 0: throw std::runtime_error{"failed"};
      case 1: throw weir::give_up{"hopeless"};
      case 2: w.reach(rare_state::handler_snoozed); throw weir::snooze_for{all.up_to(2s)};
      case 3: throw 7;
      default: co_return key;
    }
  }

  // ------------------------------------------------------------------------------ coroutines

  static asio::awaitable<void> work(process_pointer p) {
    p->all.processes_.push_back(p);
    auto [ec] = co_await p->worker.async_run(token);
    p->all.in_.in.expect(!ec || ec == asio::error::operation_aborted, "R4",
                         [&, e = ec] { return "the worker ended with " + e.message(); });
  }

  template <class Job>
  static asio::awaitable<void> enqueue(process_pointer p, std::string queue) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    std::vector<Job> jobs(1 + d.below(4));
    for (auto& j : jobs) j.key = static_cast<int>(d.below(all.knobs_.keys));
    weir::enqueue_options o;
    if (!queue.empty()) o.queue = queue;
    if (d.chance(30)) o.delay = all.up_to(all.knobs_.work.lease);
    if (d.chance(30)) o.priority = static_cast<std::uint8_t>(d.below(3));
    if (jobs.size() == 1) {
      auto [ec, made] = co_await p->queue.async_enqueue(std::as_const(jobs.front()), o, token);
      if (ec == weir::errc::unique_conflict) all.in_.in.reach(rare_state::conflict_rejected);
      if (!ec && !queue.empty() && d.chance(10)) co_await wait_for(p, std::move(queue), made.id);
    } else {
      std::span<Job const> const many{jobs};
      co_await p->queue.async_enqueue_many(many, o, token);
    }
  }

  /// A wait ends with its job, and not before.
  static asio::awaitable<void> wait_for(process_pointer p, std::string queue, job_id id) {
    auto& all = p->all;
    weir::job_wait_options const often{.poll = all.knobs_.work.poll};
    auto [ec, ended] = co_await p->queue.async_wait(queue, id, often, token);
    if (ec) co_return;
    all.in_.in.reach(rare_state::job_waited_for);
    // Without a record it has ended, or a late copy of its enqueue has made it anew since.
    all.in_.in.expect(!ended || is_terminal(ended->state), "R4", [&] {
      return "the wait for " + weir::testing::to_text(id) + " ended before it";
    });
  }

  /// A kind that no worker knows, and a payload that is not the job's.
  static asio::awaitable<void> enqueue_odd(process_pointer p, std::string queue) {
    weir::new_job j;
    bool const unknown = p->all.in_.in.choices.chance(50);
    j.id = p->ids.job();
    j.kind = unknown ? "mystery" : "plain";
    j.payload = unknown ? "{}" : "{";
    j.max_attempts = 2;
    weir::command::enqueue_jobs const one{.queue = queue, .jobs = {&j, 1}};
    co_await weir::async_execute(p->store, one, token);
  }

  static asio::awaitable<void> producer(process_pointer p) {
    auto& all = p->all;
    counted const here{all.producers_};
    auto& d = all.in_.in.choices;
    for (int left = 25; left != 0 && !all.healing_ && co_await goes_on(); --left) {
      auto const queue = "tenant " + std::to_string(d.below(all.knobs_.tenants));
      switch (d.below(9)) {
        case 0: co_await enqueue<plain_job>(p, queue); break;
        case 1:
        case 2: co_await enqueue<limited_job>(p, queue); break;
        case 3: co_await enqueue<rated_job>(p, queue); break;
        case 4: co_await enqueue<unique_job>(p, queue); break;
        case 5: co_await enqueue<alone_job>(p, queue); break;
        case 6: co_await enqueue<strict_job>(p, queue); break;
        case 7: co_await enqueue<queue_rated_job>(p, {}); break;
        default: co_await enqueue_odd(p, queue);
      }
      auto const until = p->on.clock().steady_now() + all.up_to(all.knobs_.work.lease / 2);
      co_await p->on.clock().async_wait_until(p->on.executor(), until, token);
    }
  }

  knobs knobs_;
  std::map<std::pair<std::string, job_id>, checkpoints> checkpoints_;
  std::list<handling> running_;
  std::vector<std::weak_ptr<process>> processes_;
};

simulator<workers, worker_defects> const simulate{"workers"};

using enum rare_state;
constexpr rare_state expected[] = {
    unknown_then_retried, crashed_with_lease,   store_restarted_in_flight,
    hint_dropped,         hint_spurious,        hint_delivered,
    dead_by_crashes,      dead_by_failures,     dead_by_giving_up,
    run_lock_blocked,     job_replaced,         queue_held,
    dequeue_repeated,     completion_too_late,  permit_refused_snoozed,
    rate_refused_snoozed, reservation_used,     handler_snoozed,
    handler_timed_out,    handler_ignored_stop, job_returned,
    job_lease_lost,       take_reserved,        store_full,
    job_waited_for,
};

}  // namespace

BOOST_AUTO_TEST_SUITE(workers_simulated)

BOOST_AUTO_TEST_CASE(seeds) { simulate.check_seeds(1000, expected); }

WEIR_SIMULATION_TESTS(sanitized ? 1 : 3, known_worker_defects, 200)

BOOST_AUTO_TEST_SUITE_END()
