// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/schedules.hpp"

#include "driver.hpp"
#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/scheduler.hpp"
#include "worker_jobs.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// Mistakes of a store that schedules suffer from.
struct schedule_defects {
  explicit schedule_defects(int w) : which{w} {}

  template <class Store>
  result<relayed> step(command::relay_job c, Store& s) {
    if (which == 0 && c.fence != 0) {  // by what the job is now
      auto const j = s.execute(command::find_job{c.queue, c.id});
      if (j.has_value() && *j && (*j)->state == job_state::leased) c.fence = (*j)->fence;
    }
    if (which == 1 && !c.jobs.empty()) {
      auto const added = s.execute(command::enqueue_jobs{c.to, c.jobs});
      if (added.has_error()) return added.error();
    }
    if (which == 2 && !c.jobs.empty()) {
      auto const to = c.to;
      auto const jobs = c.jobs;
      c.to = {};
      c.jobs = {};
      auto a = s.execute(c);
      if (a.has_value() && a->outcome == relay_outcome::relayed) {
        auto const next = a->jobs;
        a->jobs.assign(jobs.size(), enqueued{});
        a->jobs.insert(a->jobs.end(), next.begin(), next.end());
        if (++lost % 8 != 0) (void)s.execute(command::enqueue_jobs{to, jobs});
      }
      return a;
    }
    return s.execute(c);
  }

  int which;
  int lost = 0;
};

inline constexpr defect known_schedule_defects[] = {
    {0, "R5", "a relay obeys a lease that is over"},
    {1, "R4", "a relay adds its jobs before it looks at the lease"},
    {2, "R4", "a tick is booked, and now and then its job is not enqueued (River #1304)"},
};

}  // namespace weir::testing::simulation

// Schedulers that die, stall and lose their answers, deploys that change schedules and move them
// between queues, and changes of the clocks: one job for each tick.
namespace {

namespace asio = boost::asio;
using namespace weir::testing::simulation;
using namespace std::chrono_literals;
using weir::duration;
using weir::testing::dice;

struct tick_job {
  std::string tick;
  std::string of;  // which schedule
  int version = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(tick_job, tick, of, version)

}  // namespace

template <>
struct weir::job_traits<tick_job> {
  static constexpr std::string_view kind = "tick";
};

namespace {

using engine_type = engine_with<schedule_defects>;

class scheduled final : public simulated_program<engine_type> {
 public:
  struct knobs {
    knobs(dice& d, bool small) {
      constexpr duration leases[] = {600ms, 2s, 5s};
      work.lease = d.pick(leases);
      work.poll = d.chance(50) ? 100ms : 1s;
      work.concurrency = static_cast<std::uint32_t>(1 + d.below(3));
      work.drain = duration{};
      first = static_cast<int>(d.below(kinds));
      schedules = small ? 1 : static_cast<int>(1 + d.below(kinds));
      run.date = d.pick(dates);
      run.nodes = small ? 2 : static_cast<std::uint32_t>(2 + d.below(3));
      run.safety = small ? 5s : duration{10s} * static_cast<int>(1 + d.below(4));
      draw_trouble(run, d, work.lease);
    }

    plan run;
    weir::worker_options work;
    int first;  // of the kinds
    int schedules;
  };

  /// Two periods, one of them with a jitter, and in New York what follows elapsed time and what
  /// follows the wall clock.
  static constexpr int kinds = 4;
  static constexpr weir::time_point gap = std::chrono::sys_days{std::chrono::March / 8 / 2026} + 7h;
  static constexpr weir::time_point repeated =
      std::chrono::sys_days{std::chrono::November / 1 / 2026} + 6h;  // for an hour
  static constexpr std::array<weir::time_point, 4> dates{
      std::chrono::sys_days{std::chrono::January / 1 / 2026}, gap - 10s, repeated - 10s,
      repeated + 1h - 10s};

  static auto timetable_of(int kind) -> decltype(weir::schedule::when) {
    switch (kind) {
      case 0: return weir::every{1s};
      case 1: return weir::every{2s};
      case 2: return weir::cron{"*/2 * * * * *", "America/New_York"};
      default: return weir::cron{"0-59/3 0-59 0-23 * * *", "America/New_York"};
    }
  }
  /// By the stated rule, and not by weir's. An hour is a multiple of each period, so the gap ends
  /// with a tick in any case.
  static bool is_tick(int kind, std::chrono::sys_seconds t) {
    auto const n = t.time_since_epoch().count();
    if (kind == 0) return true;
    if (kind != 3) return n % 2 == 0;
    return n % 3 == 0 && (t < repeated || t >= repeated + 1h);
  }

  /// Of all runs: how many were fired.
  static inline std::uint64_t ticks = 0;

  scheduled(cluster<engine>& in, knobs const& k) : simulated_program{in}, knobs_{k} {}
  ~scheduled() override { in_.nodes.clear(); }

  static weir::memory_options engine_options(std::uint64_t seed) {
    weir::memory_options o;
    o.shards = seed % 3 == 0 ? 1 : 3;
    return o;
  }

  void start(node<engine>& on) override {
    auto const p = std::make_shared<process>(*this, on);
    on.keep(p);
    on.spawn(deploys(p));
    on.spawn(fires(p));
    if (done_) p->scheduler.stop();
  }
  bool holds_lease(node<engine>&) override {
    for (auto const& [name, q] : in_.audits.jobs.queues()) {
      for (auto const& [id, r] : q.records) {
        if (r.state == weir::job_state::leased) return true;
      }
    }
    return false;
  }
  void heal() override { heal_until_settled(knobs_.run, 2 * knobs_.work.lease + 30s); }

  bool drained() override {
    if (in_.in.now() <= settled_at_) return false;
    if (!std::exchange(done_, true)) {
      for (auto const& p : processes_) {
        if (auto const alive = p.lock()) alive->scheduler.stop();
      }
    }
    if (runs()) return false;
    judge();
    return true;
  }

 private:
  using store_type = network_store<engine>;
  using scheduler_type = weir::scheduler<store_type, simulated_clock>;
  using schedules_type = weir::schedules<store_type, simulated_clock>;

  struct process {
    process(scheduled& p, node<engine>& n)
        : all{p},
          on{n},
          store{n.make_store()},
          ids{n.ids()},
          schedules{store, n.clock(), ids},
          scheduler{store, p.knobs_.work, n.clock(), ids} {}
    scheduled& all;
    node<engine>& on;
    store_type store;
    weir::id_source ids;
    schedules_type schedules;
    scheduler_type scheduler;
  };
  using process_pointer = std::shared_ptr<process>;

  static constexpr std::array queues{"red", "green", "blue"};

  static asio::awaitable<void> fires(process_pointer p) {
    std::erase_if(p->all.processes_, [](auto const& w) { return w.expired(); });
    p->all.processes_.push_back(p);
    co_await p->scheduler.async_run(token);
  }

  /// Puts schedules again and again: their ticks are always the same, their jobs and queues are
  /// not.
  static asio::awaitable<void> deploys(process_pointer p) {
    auto& all = p->all;
    auto& d = all.in_.in.choices;
    while (!all.healing_ && co_await goes_on()) {
      auto const kind =
          all.kind_of(static_cast<int>(d.below(static_cast<std::uint64_t>(all.knobs_.schedules))));
      weir::schedule s{.name = "schedule " + std::to_string(kind), .when = timetable_of(kind)};
      s.overlap = weir::overlap_policy::allow;
      s.catch_up = weir::catch_up_policy::all(1000, weir::limits::span);
      if (kind == 1) s.jitter = 700ms;
      s.tick_member = "tick";
      tick_job const job{"", s.name, d.chance(70) ? 0 : static_cast<int>(d.below(3))};
      weir::enqueue_options o;
      o.queue =
          d.chance(80) ? queues[static_cast<std::size_t>(kind) % queues.size()] : d.pick(queues);
      co_await p->schedules.async_put(s, job, o, token);
      auto const until = p->on.clock().steady_now() + 500ms +
                         duration{static_cast<duration::rep>(d.below(3'000'000'000))};
      co_await p->on.clock().async_wait_until(p->on.executor(), until, token);
    }
  }

  /// One job for each tick, from the first to the last that is booked, in whatever queue.
  void judge() {
    auto& w = in_.in;
    auto& e = in_.engine();
    std::map<std::string, std::string> places;  // of the job of each tick
    std::uint64_t jobs = 0;
    for (auto const* const name : queues) {
      std::string cursor;
      do {
        auto const page =
            e.execute(weir::command::list_jobs{name, weir::job_state::pending, 1000, cursor});
        w.expect(page.has_value(), "R4", [] { return std::string{"jobs cannot be listed"}; });
        if (page.has_error()) return;
        for (auto const& j : page->jobs) {
          auto const of = weir::decode<tick_job>(j.payload).value;
          auto& there = places[of.of + " at " + of.tick];
          w.expect(there.empty(), "R4", [&] {
            return of.of + ": two jobs for the tick at " + of.tick + ", in " + there + " and in " +
                   name + " (" + weir::testing::to_text(j.id) + ")";
          });
          there = std::string{name} + " (" + weir::testing::to_text(j.id) + ")";
          ++jobs;
        }
        cursor = page->cursor;
      } while (!cursor.empty());
    }
    std::uint64_t fired = 0;
    for (int i = 0; i != knobs_.schedules; ++i) fired += judge(kind_of(i));
    ticks += fired;
    w.expect(fired == jobs, "R4", [&] {
      return std::to_string(jobs) + " jobs, but " + std::to_string(fired) + " ticks were fired";
    });
    w.reach(rare_state::job_relayed);
  }

  /// The ticks of one schedule that are booked; they follow each other without a gap.
  std::uint64_t judge(int kind) {
    auto const name = "schedule " + std::to_string(kind);
    auto& w = in_.in;
    auto& e = in_.engine();
    std::optional<weir::stored_schedule> found;
    for (auto const* const queue : queues) {
      auto const j = e.execute(weir::command::find_job{weir::detail::companion_of(queue),
                                                       weir::detail::id_of_schedule(name)});
      if (j.has_error() || !*j || is_terminal((*j)->state)) continue;
      auto s = weir::detail::decode_record<weir::stored_schedule>((*j)->payload);
      w.expect(s.has_value(), "R4", [&] { return name + " cannot be read"; });
      if (!s || (found && !s->moved_from.empty())) continue;
      found = std::move(s);
    }
    if (!found) return 0;  // nobody's put has arrived
    auto const& p = found->progress;
    w.expect(p.missed == 0 && p.skipped == 0, "R4", [&] { return name + ": a tick was left out"; });
    std::vector<weir::time_point> last;  // that are fired, backwards, and the one before them
    for (auto t = std::chrono::floor<std::chrono::seconds>(p.last);
         last.size() <= p.fired && t >= w.began_at() - 1min; t -= 1s) {
      if (is_tick(kind, t)) last.push_back(t);
    }
    auto const missing =
        std::ranges::find_if_not(last, [&](auto t) { return is_there(*found, t); });
    auto const present = static_cast<std::uint64_t>(missing - last.begin());
    w.expect(present == p.fired, "R4", [&] {
      return name + ": " + std::to_string(p.fired) + " ticks were fired, and the last " +
             std::to_string(present) + " ticks, or more, have a job";
    });
    for (auto const change : {gap, repeated, repeated + 1h}) {
      if (present != 0 && last[present - 1] < change && p.last > change)
        w.reach(rare_state::clocks_changed);
    }
    return p.fired;
  }

  /// Which kind the schedule of this number is.
  [[nodiscard]] int kind_of(int number) const { return (knobs_.first + number) % kinds; }

  bool is_there(weir::stored_schedule const& s, weir::time_point tick) {
    auto const id = weir::detail::id_of_tick(s, tick);
    for (auto const* const queue : queues) {
      auto const j = in_.engine().execute(weir::command::find_job{queue, id});
      if (j.has_value() && *j) return true;
    }
    return false;
  }

  knobs knobs_;
  std::vector<std::weak_ptr<process>> processes_;
};

simulator<scheduled, schedule_defects> const simulate{"schedules"};

using enum rare_state;
constexpr rare_state expected[] = {
    crashed_with_lease, hint_dropped, hint_spurious, hint_delivered, job_relayed, clocks_changed,
};

}  // namespace

BOOST_AUTO_TEST_SUITE(schedules_simulated)

BOOST_AUTO_TEST_CASE(seeds) {
  simulate.check_seeds(400, expected);
  std::cout << "  " << scheduled::ticks << " ticks\n";
  BOOST_TEST((sanitized || seeds_asked_for{}.count != 0 || scheduled::ticks > 10'000));
}

WEIR_SIMULATION_TESTS(sanitized ? 1 : 3, known_schedule_defects, 200)

BOOST_AUTO_TEST_SUITE_END()
