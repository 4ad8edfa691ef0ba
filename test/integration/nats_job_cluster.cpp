// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs in streams on three servers that lose the one that leads them, under load: no job is lost,
// none is given out or completed twice, and fences never go backwards.

#include "nats_crew.hpp"
#include "nats_job_steps.hpp"
#include "nats_server.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace {

using namespace nats_test;
using network_test::insist;
using network_test::lasting;
namespace asio = boost::asio;

/// What has happened to the jobs, as those that enqueue and complete them saw it.
struct ledger {
  std::uint64_t asked = 0;                    // numbers of jobs that were given to somebody
  std::map<job_id, std::uint64_t> waiting;    // acknowledged
  std::map<job_id, std::uint64_t> completed;  // by the fence of the lease that did it
  std::uint64_t last_fence = 0;               // that anybody has been told
  bool no_more = false;                       // nothing is enqueued
  bool over = false;
};

asio::awaitable<void> produce(nats_store store, ledger& all) {
  while (!all.no_more) {
    auto const n = ++all.asked;
    auto j = job_of(n, "a payload of some length, so that there are images now and then");
    j.retention = lasting;  // a completion that is repeated finds the record
    command::enqueue_jobs const ask{"queue", {&j, 1}};
    auto const answer = co_await insist(store, ask);
    BOOST_TEST((answer[0].outcome == enqueue_outcome::enqueued));
    all.waiting.emplace(j.id, n);
  }
}

asio::awaitable<void> consume(nats_store store, ledger& all, std::string holder) {
  for (std::uint64_t sequence = 1; !all.over; ++sequence) {
    auto const before = all.last_fence;
    command::dequeue_jobs const ask{"queue", holder, sequence, 3, lasting};
    auto const got = co_await insist(store, ask);
    for (auto const& j : got.jobs) {
      BOOST_TEST(j.attempt == 1U);  // nobody has had it
      BOOST_TEST(j.fence > before);
      all.last_fence = std::max(all.last_fence, j.fence);
    }
    for (auto const& j : got.jobs) {
      finished_job const f{j.id, j.fence, {}};
      command::complete_jobs const done{"queue", {&f, 1}};
      auto const answer = co_await insist(store, done);
      BOOST_TEST((answer[0] == complete_outcome::completed));
      BOOST_TEST(all.completed.emplace(j.id, j.fence).second);
    }
  }
}

/// Those who enqueue and complete.
class workers {
 public:
  explicit workers(cluster& c) : all_{c, often()} {
    for (std::size_t i = 0; i != 6; ++i) {
      all_.start(produce(all_.store(i), seen_));
      all_.start(consume(all_.store(i + 1), seen_, "holder" + std::to_string(i)));
    }
  }

  void get_on() {
    auto const enough = seen_.completed.size() + 100;
    all_.until([&] { return seen_.completed.size() >= enough; });
  }

  /// Everything that was enqueued is completed, and then looked at.
  void stop() {
    seen_.no_more = true;
    all_.until([&] { return all_.working() == 6 && seen_.completed.size() == seen_.asked; });
    seen_.over = true;
    all_.until([&] { return all_.working() == 0; });
    BOOST_TEST(seen_.waiting.size() == seen_.asked);
    for (auto const& [id, n] : seen_.waiting) BOOST_TEST(seen_.completed.contains(id));
    for (std::size_t i = 0; i != cluster::size; ++i) {
      auto const counted = all_.ask(i, command::read_queue_stats{"queue"});
      BOOST_TEST(counted.enqueued == seen_.asked);
      BOOST_TEST(counted.completed == seen_.asked);
      BOOST_TEST(counted.pending == 0U);
      BOOST_TEST(counted.leased == 0U);
    }
    all_.close();
  }

 private:
  static nats_options often() {
    auto o = threefold();
    o.image_interval = 16U << 10U;
    o.sync_interval = {};
    return o;
  }

  ledger seen_{};
  crew all_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_jobs_on_a_cluster)

BOOST_AUTO_TEST_CASE(R4_leaders_that_step_down_and_die_lose_no_job_and_repeat_none) {
  cluster c;
  workers on{c};
  on.get_on();
  for (auto const* stream : {"weir-jobs-0", "weir-keys"}) {  // the log, and where images are
    BOOST_TEST_MESSAGE("the leader of " << stream << " steps down");
    step_down(c, stream);
    on.get_on();
  }
  for (auto const* stream : {"weir-jobs-0", "weir-keys", "weir-jobs-0"}) {
    auto const before = leader_of(c, stream);
    BOOST_TEST_MESSAGE("the leader of " << stream << " dies");
    c[before].kill();
    on.get_on();
    BOOST_TEST(leader_of(c, stream, before) != before);
    c[before].start();
    on.get_on();
  }
  auto const log = nlohmann::json::parse(stranger{c[0]}.ask("$JS.API.STREAM.INFO.weir-jobs-0"));
  BOOST_TEST(log["state"]["first_seq"] > 1);  // it was cut: there were images
  on.stop();
}

BOOST_AUTO_TEST_SUITE_END()
