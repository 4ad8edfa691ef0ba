// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The job commands of the file against those of the memory store, on generated histories.

#include "sqlite_histories.hpp"
#include "weir/testing/fields.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace sqlite_test;

/// A lease that was given, over or not.
struct lease {
  std::string queue;
  job_id id;
  std::uint64_t fence;
};

class job_history : public history {
 public:
  job_history(std::uint64_t seed, sqlite_options const& o, memory_options const& bounds)
      : history{seed, o, bounds} {}

  void step() {
    queue_ = any(queues);
    std::array<void (job_history::*)(), 24> const steps{
        &job_history::enqueue,  &job_history::enqueue,   &job_history::enqueue,
        &job_history::enqueue,  &job_history::dequeue,   &job_history::dequeue,
        &job_history::dequeue,  &job_history::obtain,    &job_history::extend,
        &job_history::start,    &job_history::start,     &job_history::complete,
        &job_history::complete, &job_history::fail,      &job_history::fail,
        &job_history::snooze,   &job_history::give_back, &job_history::bury,
        &job_history::cancel,   &job_history::replay,    &job_history::purge,
        &job_history::hold,     &job_history::scan,      &job_history::look};
    (this->*steps[below(steps.size())])();
    if (chance(30)) look();
  }

  /// Everything that can be seen of what there is.
  void look_at_all() {
    for (auto const& q : queues) {
      tell(command::read_queue_stats{q});
      tell(command::peek_jobs{q, 100}, q);
      tell(command::list_dead_letters{.queue = q, .limit = 100, .cursor = {}}, q);
      tell(command::min_vesting_time{q});
      for (std::uint64_t n = 0; n != ids; ++n) tell(command::find_job{q, id(n)}, q);
    }
    tell(command::scan_visible_queues{});
    tell(command::list_queues{});
    play();
  }

 private:
  static constexpr std::uint64_t ids = 24;
  std::vector<std::string> const queues{"a", std::string{"b\0b", 3}, "c"};
  std::vector<std::string> const holders{"one", "two", "three"};
  std::vector<std::string> const keys{"k", "l"};

  duration delay() { return chance(60) ? 0ms : std::chrono::milliseconds{below(3000)}; }
  duration lease_time() { return std::chrono::milliseconds{1 + below(4000)}; }
  job_id any_id() { return id(below(ids)); }

  void enqueue() {
    std::vector<std::string> payloads;
    payloads.reserve(8);
    std::vector<new_job> jobs(1 + below(chance(20) ? 5 : 1));
    for (auto& j : jobs) {
      payloads.push_back(std::string(chance(10) ? 600 + below(5000) : below(20), 'p'));
      j = job_of(below(ids), payloads.back());
      j.priority = static_cast<std::uint8_t>(chance(70) ? 100 : below(4) * 85);
      j.delay = delay();
      j.max_attempts = static_cast<std::uint32_t>(1 + below(3));
      if (chance(60)) {
        j.strategy = running_ ? unique_strategy::while_executing
                              : static_cast<unique_strategy>(1 + below(5));
        j.on_conflict = static_cast<conflict_policy>(below(5));
        j.unique_key = running_ ? keys.front() : any(keys);
        if (j.strategy == unique_strategy::until_expired) j.unique_ttl = lease_time();
      }
      if (chance(20)) j.deadline = lease_time();
      if (chance(50)) j.retention = lease_time();
    }
    tell(command::enqueue_jobs{queue_, jobs});
  }

  void remember(std::string const& queue, leased_job const& j) {
    leases_.push_back({queue, j.id, j.fence});
  }

  void dequeue() {
    auto& sequence = sequences_[below(sequences_.size())];
    if (chance(70)) ++sequence;
    tell(command::dequeue_jobs{.queue = queue_,
                               .holder = any(holders),
                               .sequence = chance(20) ? 0 : sequence,
                               .limit = static_cast<std::uint32_t>(1 + below(4)),
                               .lease = lease_time()},
         queue_, [this, q = queue_](dequeued const& d) {
           for (auto const& j : d.jobs) remember(q, j);
         });
  }

  void obtain() {
    tell(command::obtain_lease{queue_, any_id(), any(holders), lease_time()}, queue_,
         [this, q = queue_](std::optional<leased_job> const& j) {
           if (j) remember(q, *j);
         });
  }

  /// Tells a command of one of the latest leases.
  template <class C>
  void with_lease(C c) {
    if (leases_.empty()) return;
    auto const& l = leases_[leases_.size() - 1 - below(std::min<std::size_t>(leases_.size(), 6))];
    c.queue = l.queue;
    c.id = l.id;
    c.fence = l.fence;
    auto for_file = c;
    for_file.fence = fence_of(l.queue, l.fence);
    tell(c, for_file, l.queue);
  }

  void extend() {
    with_lease(command::extend_lease{.queue = {},
                                     .lease = lease_time(),
                                     .progress = chance(50) ? "1/2" : "",
                                     .checkpoint = chance(50) ? "as far as here" : ""});
  }
  void start() { with_lease(command::start_job{}); }
  void fail() {
    command::requeue_job c;
    c.delay = delay();
    c.reason = chance(50) ? "why" : "";
    with_lease(c);
  }
  void snooze() {
    command::snooze_job c;
    c.delay = delay();
    c.memo = chance(50) ? "memo" : "";
    with_lease(c);
  }
  void give_back() { with_lease(command::return_job{}); }
  void bury() {
    command::bury_job c;
    c.reason = "dead";
    with_lease(c);
  }

  void complete() {
    std::vector<finished_job> jobs;
    std::vector<finished_job> for_file;
    auto const queue = queue_;
    for (auto n = 1 + below(3); n != 0 && !leases_.empty(); --n) {
      auto const& l = any(leases_);
      if (l.queue != queue) continue;
      jobs.push_back({l.id, l.fence, chance(50) ? "result" : ""});
      for_file.push_back(jobs.back());
      for_file.back().fence = fence_of(queue, l.fence);
    }
    if (!jobs.empty()) {
      tell(command::complete_jobs{queue, jobs}, command::complete_jobs{queue, for_file}, queue);
    }
  }

  void cancel() { tell(command::cancel_job{queue_, any_id(), chance(30)}); }
  void replay() { tell(command::replay_dead_letter{queue_, any_id(), delay()}); }
  void purge() { tell(command::purge_job{queue_, any_id()}); }

  void hold() {
    auto const lease_scope = queue_ + "/lease";
    switch (below(7)) {
      case 0: return tell(command::pause_queue{queue_});
      case 1: return tell(command::snooze_queue{queue_, delay()});
      case 2:
      case 3: return tell(command::resume_queue{queue_});
      case 4:
      case 5:
        return tell(command::obtain_queue_lease{queue_, any(holders), lease_time()}, lease_scope);
      default: return tell(command::release_queue_lease{queue_, any(holders), 0});
    }
  }

  void scan() {
    switch (below(3)) {
      case 0: return tell(command::update_queue_pointer{queue_});
      case 1:
        return tell(command::gc_stale_pointers{0, 10, std::chrono::milliseconds{below(2000)}});
      default:
        return tell(command::scan_visible_queues{0, static_cast<std::uint32_t>(1 + below(3))});
    }
  }

  void look() {
    switch (below(6)) {
      case 0: return tell(command::read_queue_stats{queue_});
      case 1: return tell(command::peek_jobs{queue_, 3}, queue_);
      case 2: return tell(command::find_job{queue_, any_id()}, queue_);
      case 3:
        return tell(command::list_dead_letters{.queue = queue_, .limit = 2, .cursor = {}}, queue_);
      case 4: return tell(command::min_vesting_time{queue_});
      default: return tell(command::list_queues{});
    }
  }

  bool const running_ = chance(30);  // much ado about one run lock
  std::string queue_;
  std::vector<lease> leases_;
  std::array<std::uint64_t, 3> sequences_{};
};

void play(std::uint64_t seed, std::size_t most_jobs) {
  BOOST_TEST_CONTEXT("seed " << seed) {
    auto options = quick();
    memory_options bounds;
    options.max_jobs = bounds.max_jobs = most_jobs;
    job_history h{seed, options, bounds};
    for (int batch = 0; batch != 60; ++batch) {
      for (auto n = 1 + h.below(6); n != 0; --n) {
        h.step();
        h.pass();
      }
      h.play();
      if (batch % 10 == 0) h.check_sums();
    }
    h.look_at_all();
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sqlite_job_histories)

BOOST_AUTO_TEST_CASE(R2_R4_R5_the_file_does_what_the_memory_store_does) {
  for (std::uint64_t seed = 1; seed != 81; ++seed) play(seed, 1'000'000);
}

BOOST_AUTO_TEST_CASE(R8_so_it_does_where_there_is_no_room) {
  for (std::uint64_t seed = 1001; seed != 1031; ++seed) play(seed, 6);
}

BOOST_AUTO_TEST_SUITE_END()
