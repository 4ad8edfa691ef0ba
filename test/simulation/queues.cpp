// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "driver.hpp"
#include "weir/command/jobs.hpp"
#include "weir/execute.hpp"
#include "weir/job_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// Mistakes of a store about queues.
struct queue_defects {
  explicit queue_defects(int w) : which{w} {}

  template <class Store>
  result<command::enqueue_jobs::result> step(command::enqueue_jobs c, Store& s) {
    std::vector<new_job> jobs{c.jobs.begin(), c.jobs.end()};
    for (auto& j : jobs) {
      if (which == 0) j.delay /= 2;
      if (which == 1) j.strategy = unique_strategy::none;
      if (which == 1) j.unique_key = {};
      if (which == 2 && dead_keys.contains(std::string{j.unique_key})) {
        return command::enqueue_jobs::result(
            jobs.size(),
            enqueued{enqueue_outcome::duplicate, dead_keys[std::string{j.unique_key}]});
      }
    }
    c.jobs = jobs;
    if (which == 3 && ++calls % 16 == 0) {
      return command::enqueue_jobs::result(jobs.size(), enqueued{});
    }
    return s.execute(c);
  }
  template <class Store>
  result<dequeued> step(command::dequeue_jobs c, Store& s) {
    if (which == 4) c.lease /= 2;
    if (which == 17) c.lease *= 3;
    if (which == 5) c.sequence = 0;
    if (which == 16) return second_best(c, s);
    auto a = s.execute(c);
    if (a.has_error()) return a;
    for (auto& j : a.value().jobs) {
      if (which == 4) j.expires_in *= 2;
      if (which == 6) j.fence = 1;
      if (which == 7 && j.attempt > 1) --j.attempt;
      if (which == 2) keys[j.id] = j.unique_key;
    }
    return a;
  }
  template <class Store>
  result<command::complete_jobs::result> step(command::complete_jobs const& c, Store& s) {
    auto a = s.execute(c);
    if (which != 8 || a.has_error()) return a;
    for (std::size_t i = 0; i != c.jobs.size(); ++i) {  // whoever completes it, it is completed
      auto const now = s.execute(command::find_job{.queue = c.queue, .id = c.jobs[i].id});
      if (!now.value() || now.value()->state != job_state::leased) continue;
      auto const item = finished_job{c.jobs[i].id, now.value()->fence, {}};
      static_cast<void>(s.execute(command::complete_jobs{.queue = c.queue, .jobs = {&item, 1}}));
      a.value()[i] = complete_outcome::completed;
    }
    return a;
  }
  template <class Store>
  result<hint> step(command::bury_job const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 2 && a.has_value() && !keys[c.id].empty()) dead_keys[keys[c.id]] = c.id;
    return a;
  }
  template <class Store>
  result<hint> step(command::snooze_job const& c, Store& s) {
    if (which != 9) return s.execute(c);
    auto const a = s.execute(command::requeue_job{
        .queue = c.queue, .id = c.id, .fence = c.fence, .delay = c.delay, .reason = {}});
    if (a.has_error()) return a.error();
    return hint{};
  }
  template <class Store>
  result<started> step(command::start_job const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 10 && a.has_value()) a.value().outcome = start_outcome::started;
    return a;
  }
  template <class Store>
  result<visible_queues> step(command::scan_visible_queues const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 11 && a.has_value()) std::erase(a.value().queues, "tenant 0");
    return a;
  }
  template <class Store>
  result<lease_renewal> step(command::extend_lease const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 12 && a.has_error()) return lease_renewal{c.lease};
    return a;
  }
  template <class Store>
  result<replayed> step(command::replay_dead_letter const& c, Store& s) {
    if (which == 13) return replayed{};
    return s.execute(c);
  }
  template <class Store>
  result<hint> step(command::pause_queue const& c, Store& s) {
    if (which == 14) return hint{};
    return s.execute(c);
  }
  template <class Store>
  result<cancel_outcome> step(command::cancel_job c, Store& s) {
    if (which == 15) c.running = true;
    return s.execute(c);
  }

  template <class Store>
  result<dequeued> second_best(command::dequeue_jobs const& c, Store& s) {
    auto const visible = s.execute(command::peek_jobs{.queue = c.queue, .limit = 2});
    if (visible.has_error() || visible.value().size() < 2) return s.execute(c);
    auto got = s.execute(command::obtain_lease{
        .queue = c.queue, .id = visible.value().back().id, .holder = c.holder, .lease = c.lease});
    if (got.has_error() || !got.value()) return s.execute(c);
    dequeued d;
    d.jobs.push_back(std::move(*got.value()));
    return d;
  }

  int which;
  std::uint64_t calls = 0;
  std::map<job_id, std::string> keys;
  std::map<std::string, job_id> dead_keys;
};

inline constexpr defect known_queue_defects[] = {
    {0, "R4", "jobs vest after half of their delay"},
    {1, "F17", "unique keys are not looked at"},
    {2, "F14", "a dead letter keeps its unique key"},
    {3, "R4", "now and then an acknowledged enqueue is not stored"},
    {4, "F4", "leases end after half of their time"},
    {5, "F54", "a dequeue that is asked again leases more jobs"},
    {6, "F35", "every lease has the same fence"},
    {7, "F36", "an attempt is not counted when claimed"},
    {8, "F34", "a completion after the lease was lost ends its successor's job"},
    {9, "F33", "a snooze counts as a failure"},
    {10, "R2", "two jobs of one run lock start"},
    {11, "F48", "a queue with visible jobs is not found by the scan"},
    {12, "R5", "a lease that is over is extended"},
    {13, "F40", "a replay is acknowledged and not done"},
    {14, "R6", "a pause is acknowledged and not done"},
    {15, "R4", "cancelling ends running jobs, too"},
    {16, "R4", "the second best job is given out first"},
    {17, "F28", "a lease lasts longer than it was asked for"},
};

}  // namespace weir::testing::simulation

// The queues of many tenants, by every operation that there is: producers, consumers that fail,
// forget and come too late, and administrators. Workers are in workers.cpp.
namespace {

namespace asio = boost::asio;
using namespace weir::testing::simulation;
using namespace std::chrono_literals;
using weir::duration;
using weir::job_id;
using weir::testing::dice;

using engine_type = engine_with<queue_defects>;

class queues final : public simulated_program<engine_type> {
 public:
  struct knobs {
    knobs(dice& d, bool small) {
      constexpr duration leases[] = {500ms, 2s, 8s};
      lease = d.pick(leases);
      tenants = small ? 2 : 1 + d.below(6);
      keys = 1 + d.below(3);
      batch = static_cast<std::uint32_t>(1 + d.below(5));
      attempts = static_cast<std::uint32_t>(1 + d.below(4));
      producers = 1;
      consumers = small ? 1 : 1 + d.below(2);
      run.nodes = small ? 2 : static_cast<std::uint32_t>(1 + d.below(3));
      run.safety = small ? 3 * lease : lease * static_cast<int>(4 + d.below(10));
      draw_trouble(run, d, lease);
    }

    plan run;
    duration lease;
    std::uint64_t tenants;
    std::uint64_t keys;
    std::uint32_t batch;
    std::uint32_t attempts;
    std::uint64_t producers;
    std::uint64_t consumers;
  };

  queues(cluster<engine>& in, knobs const& k) : simulated_program{in}, knobs_{k} {}
  ~queues() override { in_.nodes.clear(); }

  static weir::memory_options engine_options(std::uint64_t seed) {
    weir::memory_options o;
    o.shards = 2;
    if (seed % 4 == 0) o.max_jobs = 20;  // a store that is full now and then
    return o;
  }

  void start(node<engine>& on) override {
    auto const p = std::make_shared<process>(*this, on);
    on.keep(p);
    for (std::uint64_t i = 0; i != knobs_.producers; ++i) on.spawn(producer(p));
    for (std::uint64_t i = 0; i != knobs_.consumers; ++i) on.spawn(consumer(p));
    on.spawn(administrator(p));
  }
  bool holds_lease(node<engine>& on) override { return leased_[on.number()] > 0; }
  void heal() override { heal_until_settled(knobs_.run); }

  /// Every job has ended, and what was acknowledged is known.
  bool drained() override {
    if (has_jobs()) return false;
    done_ = true;
    if (runs()) return false;
    for (auto const& [queue, id] : acknowledged_) {
      auto const* const q = in_.audits.jobs.find(queue);
      bool const known = q != nullptr && (q->records.contains(id) || q->forgotten.contains(id));
      in_.in.expect(known, "R4", [&, name = queue] {
        return name + ": an acknowledged enqueue is not accounted for";
      });
    }
    return true;
  }

 private:
  using store_type = network_store<engine>;

  struct process {
    process(queues& p, node<engine>& n)
        : all{p},
          on{n},
          store{n.make_store()},
          ids{n.ids()},
          queue{store, ids},
          name{ids.holder()} {}
    queues& all;
    node<engine>& on;
    store_type store;
    weir::id_source ids;
    weir::job_queue<store_type> queue;
    std::string name;
    std::vector<std::pair<std::string, job_id>> made;
  };
  using process_pointer = std::shared_ptr<process>;

  std::string tenant() { return "tenant " + std::to_string(in_.in.choices.below(knobs_.tenants)); }
  // ------------------------------------------------------------------------------ producers

  weir::new_job draw_job(process& p) {
    auto& d = in_.in.choices;
    using weir::unique_strategy;
    weir::new_job j;
    j.id = p.ids.job();
    j.kind = "work";
    j.payload = "{}";
    j.priority = static_cast<std::uint8_t>(d.below(3));
    if (d.chance(40)) j.delay = up_to(2 * knobs_.lease);
    j.max_attempts = static_cast<std::uint32_t>(1 + d.below(knobs_.attempts));
    if (d.chance(10)) j.deadline = up_to(3 * knobs_.lease);
    if (d.chance(20)) j.retention = up_to(10 * knobs_.lease);
    if (d.chance(40)) return j;
    j.strategy = d.pick(
        std::array{unique_strategy::until_executed, unique_strategy::until_executed,
                   unique_strategy::until_executing, unique_strategy::while_executing,
                   unique_strategy::until_and_while_executing, unique_strategy::until_expired});
    j.on_conflict = static_cast<weir::conflict_policy>(d.below(5));
    // Keys of different strategies are kept apart, as those of different job types are.
    static constexpr std::string_view names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                                 "j", "k", "l", "m", "n", "o", "p", "q", "r"};
    j.unique_key = names[static_cast<std::size_t>(j.strategy) * 3 - 3 + d.below(knobs_.keys)];
    if (j.strategy == unique_strategy::until_expired) j.unique_ttl = up_to(2 * knobs_.lease);
    return j;
  }

  static asio::awaitable<void> producer(process_pointer p) {
    auto& all = p->all;
    counted const here{all.producers_};
    auto& w = all.in_.in;
    while (!all.healing_ && co_await goes_on()) {
      auto const queue = all.tenant();
      std::vector<weir::new_job> jobs;
      auto const n = 1 + w.choices.below(all.knobs_.batch);
      for (std::uint64_t i = 0; i != n; ++i) jobs.push_back(all.draw_job(*p));
      weir::command::enqueue_jobs const enqueue{.queue = queue, .jobs = jobs};
      for (int attempt = 0; attempt != 4; ++attempt) {
        auto [ec, outcomes] = co_await weir::async_execute(p->store, enqueue, token);
        if (!ec) all.note(*p, queue, jobs, outcomes);
        if (ec != weir::condition::transient) break;
        co_await sleep(p, all.up_to(all.knobs_.lease / 8));
      }
      co_await sleep(p, all.up_to(all.knobs_.lease / 2));
    }
  }

  void note(process& p, std::string const& queue, std::vector<weir::new_job> const& jobs,
            weir::command::enqueue_jobs::result const& outcomes) {
    using weir::enqueue_outcome;
    for (std::size_t i = 0; i != outcomes.size(); ++i) {
      auto const o = outcomes[i].outcome;
      if (o == enqueue_outcome::enqueued || o == enqueue_outcome::replaced) {
        acknowledged_.emplace(queue, jobs[i].id);
        p.made.emplace_back(queue, jobs[i].id);
      }
      if (o != enqueue_outcome::duplicate) continue;
      auto const policy = jobs[i].on_conflict;
      in_.in.reach(policy == weir::conflict_policy::discard ? rare_state::conflict_discarded
                   : policy == weir::conflict_policy::log   ? rare_state::conflict_logged
                                                            : rare_state::conflict_rejected);
    }
  }

  // ------------------------------------------------------------------------------ consumers

  static asio::awaitable<void> consumer(process_pointer p) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    std::uint64_t sequence = 0;
    auto const holder = p->ids.holder();
    while (!all.done_ && co_await goes_on()) {
      for (std::uint32_t scan = 0; scan != 2 * p->store.shard_count(); ++scan) {
        weir::command::scan_visible_queues const look{
            .shard = scan / 2, .limit = 10, .schedules = scan % 2 == 1};
        auto [ec, due] = co_await weir::async_execute(p->store, look, token);
        for (auto const& queue : due.queues) {
          if (d.chance(10)) {
            co_await one_of(p, queue, holder);
            continue;
          }
          weir::dequeue_options const o{
              .limit = all.knobs_.batch, .lease = all.knobs_.lease, .sequence = ++sequence};
          auto [error, got] = co_await p->queue.async_dequeue(queue, holder, o, token);
          if (error == weir::errc::outcome_unknown) {  // the very same leases again (F54)
            auto [again, same] = co_await p->queue.async_dequeue(queue, holder, o, token);
            if (!again) got = std::move(same);
          }
          all.leased_[p->on.number()] = got.jobs.size();
          for (auto const& j : got.jobs) {
            co_await handle(p, queue, j);
            --all.leased_[p->on.number()];
          }
          all.leased_[p->on.number()] = 0;
        }
      }
      co_await sleep(p, all.up_to(all.knobs_.lease / 4));
    }
  }

  static asio::awaitable<void> one_of(process_pointer p, std::string queue, std::string holder) {
    auto [ec, visible] = co_await p->queue.async_peek(queue, 3, token);
    if (ec || visible.empty()) co_return;
    auto const id = p->all.in_.in.choices.pick(visible).id;
    auto [error, got] =
        co_await p->queue.async_obtain_lease(queue, id, holder, p->all.knobs_.lease, token);
    if (!error && got) co_await handle(p, queue, *got);
  }

  static asio::awaitable<void> handle(process_pointer p, std::string queue, weir::leased_job j) {
    auto& all = p->all;
    auto& w = all.in_.in;
    auto& d = w.choices;
    auto const& lease = all.knobs_.lease;
    if (weir::needs_start(j.strategy)) {
      weir::command::start_job const start{.queue = queue, .id = j.id, .fence = j.fence};
      auto [ec, started] = co_await weir::async_execute(p->store, start, token);
      if (ec) co_return;
      if (started.outcome == weir::start_outcome::blocked) {
        co_await p->queue.async_snooze(queue, j.id, j.fence, all.up_to(lease / 4), "", token);
        co_return;
      }
    }
    if (all.healing_) {
      co_await p->queue.async_complete(queue, j.id, j.fence, "done", token);
      co_return;
    }
    if (d.chance(60)) co_await sleep(p, all.up_to(d.chance(15) ? 2 * lease : lease / 4));
    if (d.chance(20)) co_await p->queue.async_extend_lease(queue, j.id, j.fence, lease, token);
    switch (d.below(10)) {
      case 0: co_return;  // it forgets
      case 1:
        co_await p->queue.async_requeue(queue, j.id, j.fence, all.up_to(lease), "failed", token);
        co_return;
      case 2:
        co_await p->queue.async_requeue(queue, j.id, j.fence, duration{}, "failed", token);
        co_return;
      case 3:
        w.reach(rare_state::handler_snoozed);
        co_await p->queue.async_snooze(queue, j.id, j.fence, all.up_to(lease), "later", token);
        co_return;
      case 4: co_await p->queue.async_return(queue, j.id, j.fence, token); co_return;
      case 5: co_await p->queue.async_bury(queue, j.id, j.fence, "hopeless", token); co_return;
      case 6: co_await relay(p, queue, j); co_return;
      default: break;
    }
    for (int attempt = 0; attempt != 2; ++attempt) {
      auto [ec, _] = co_await p->queue.async_complete(queue, j.id, j.fence, "done", token);
      if (ec != weir::condition::transient) break;
    }
  }

  /// Another job comes in its place, sometimes of the same id, and sometimes one beside it.
  static asio::awaitable<void> relay(process_pointer p, std::string queue, weir::leased_job j) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    auto next = all.draw_job(*p);
    if (d.chance(50)) next.id = j.id;
    auto const beside = all.draw_job(*p);
    auto const to = std::string{weir::companion_prefix} + queue;
    weir::command::relay_job c{.queue = queue, .id = j.id, .next = {&next, 1}};
    if (d.chance(50)) {
      c.fence = j.fence;
    } else {
      c.expected = j.payload;
    }
    if (d.chance(30)) {
      c.to = to;
      c.jobs = {&beside, 1};
    }
    for (int attempt = 0; attempt != 2; ++attempt) {
      auto [ec, _] = co_await weir::async_execute(p->store, c, token);
      if (ec != weir::condition::transient) break;
    }
  }

  // ------------------------------------------------------------------------------ administrators

  static asio::awaitable<void> administrator(process_pointer p) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    auto const& lease = all.knobs_.lease;
    auto const& q = p->queue;
    while (!all.done_ && co_await goes_on()) {
      auto const queue = all.tenant();
      if (all.healing_) {
        for (std::uint64_t i = 0; i != all.knobs_.tenants; ++i) {
          co_await q.async_resume("tenant " + std::to_string(i), token);
        }
        co_await sleep(p, lease);
        continue;
      }
      switch (d.below(11)) {
        case 0: co_await q.async_pause(queue, token); break;
        case 1:
        case 2: co_await q.async_resume(queue, token); break;
        case 3: co_await q.async_snooze_queue(queue, all.up_to(lease), token); break;
        case 4: co_await q.async_gc_stale_pointers(0, 10, all.up_to(lease / 4), token); break;
        case 5: co_await q.async_update_queue_pointer(queue, token); break;
        case 6: co_await q.async_stats(queue, token); break;
        case 7: {
          auto [ec, got] = co_await q.async_obtain_queue_lease(queue, p->name, lease, token);
          if (got.granted) co_await q.async_release_queue_lease(queue, p->name, got.fence, token);
          break;
        }
        case 8:
          if (!p->made.empty()) {
            auto const [where, id] = d.pick(p->made);
            co_await q.async_cancel(where, id, d.chance(30), token);
          }
          break;
        case 9:
          if (!p->made.empty()) {
            auto const [where, id] = d.pick(p->made);
            co_await q.async_purge(where, id, token);
          }
          break;
        default: {
          auto [ec, page] = co_await q.async_list_dead_letters(queue, 5, "", token);
          for (auto const& j : page.jobs) {
            if (d.chance(50)) {
              co_await q.async_replay(queue, j.id, all.up_to(lease), token);
            } else if (d.chance(50)) {
              co_await q.async_purge(queue, j.id, token);
            }
          }
        }
      }
      co_await sleep(p, all.up_to(lease / 2));
    }
  }

  knobs knobs_;
  std::set<std::pair<std::string, job_id>> acknowledged_;
  std::map<std::uint32_t, std::size_t> leased_;
};

simulator<queues, queue_defects> const simulate{"queues"};

using enum rare_state;
constexpr rare_state expected[] = {
    unknown_then_retried, crashed_with_lease, store_restarted_in_flight,
    dead_by_crashes,      dead_by_failures,   dead_by_giving_up,
    dead_by_deadline,     conflict_rejected,  conflict_discarded,
    conflict_logged,      job_replaced,       job_rescheduled,
    key_expired,          run_lock_blocked,   batch_partly_refused,
    dequeue_repeated,     queue_held,         pointer_collected,
    job_cancelled,        running_cancelled,  dead_replayed,
    replay_conflict,      job_purged,         completion_too_late,
    handler_snoozed,      job_returned,       job_relayed,
    store_full,
};

}  // namespace

BOOST_AUTO_TEST_SUITE(queues_simulated)

BOOST_AUTO_TEST_CASE(seeds) { simulate.check_seeds(2250, expected); }

WEIR_SIMULATION_TESTS(3, known_queue_defects, 200)

BOOST_AUTO_TEST_SUITE_END()
