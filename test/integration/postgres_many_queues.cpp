// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Dequeues and completions of many queues go together, and each ends as it would by itself.

#include "patience.hpp"
#include "postgres_bed.hpp"
#include "postgres_together.hpp"
#include "weir/command/at.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace postgres_test;

constexpr time_point noon{24h * 20'000 + 12h};

struct asked_dequeue {
  std::string queue;
  std::string holder;
  std::uint64_t sequence;
  std::uint32_t limit;
};

std::string name(std::size_t i) { return "tenant/" + std::to_string(i); }

/// A store with queues of every kind, which are the same for the same seed: some are empty, held or
/// of several priorities, have jobs that are leased, spent, late or damaged, or leave a run lock.
class world {
 public:
  static constexpr std::size_t queues = 24;

  explicit world(unsigned seed) : chance_{seed} {
    for (std::size_t i = 0; i != queues; ++i) fill(name(i));
  }

  template <class C>
  auto operator()(C const& c, duration after = {}) {
    return std::move(bed_(command::at<C>{c, noon + after})).value();
  }
  [[nodiscard]] bed& on() noexcept { return bed_; }

  /// Dequeues of most queues, and of some of them twice.
  std::vector<asked_dequeue> questions() {
    std::vector<asked_dequeue> out;
    for (std::size_t i = 0; i != queues; ++i) {
      if (one_in(8)) continue;
      out.push_back({name(i), "h", 10 + below(2), 1 + below(4)});
      if (one_in(6)) out.push_back({name(i), "other", 7, 2});
    }
    return out;
  }

  /// Everything that is kept, but for fences and for how many rows say it.
  std::string kept() {
    std::string const job =
        "SELECT queue, id, priority, state, strategy, attempts, snoozes, vesting, sequence, "
        "unclaimed, holder, reason, result, ";
    return bed_.db.must(
        "SELECT (SELECT string_agg(j::text, E'\\n') FROM (" + job + "0 FROM weir.jobs UNION ALL " +
        job + "0 FROM weir.dead_letters UNION ALL " + job +
        "kept FROM weir.ended ORDER BY 1, 2) j) || E'\\n' || "
        "coalesce((SELECT string_agg(p::text, E'\\n') FROM (SELECT queue, min(scan), min(pointer) "
        "FROM weir.pointers GROUP BY 1 ORDER BY 1) p), '') || E'\\n' || "
        "(SELECT string_agg(c::text, E'\\n') FROM (SELECT queue, sum(enqueued), sum(completed), "
        "sum(dead) FROM weir.counters GROUP BY 1 ORDER BY 1) c) || E'\\n' || "
        "coalesce((SELECT string_agg(d::text, E'\\n') FROM (SELECT queue, holder, sequence, day "
        "FROM weir.dequeues ORDER BY 1, 2) d), '') || E'\\n' || "
        "coalesce((SELECT string_agg(k::text, E'\\n') FROM (SELECT queue, run, key, owner "
        "FROM weir.keys ORDER BY 1, 2, 3) k), '')");
  }

 private:
  void fill(std::string const& queue) {
    for (auto n = below(6); n != 0; --n) {
      auto j = job_of(0);
      j.id = next_id();
      j.priority = one_in(3) ? std::uint8_t{50} : std::uint8_t{100};
      j.delay = one_in(4) ? duration{1h} : duration{std::chrono::seconds{below(50)}};
      j.deadline = one_in(6) ? duration{1min} : duration{};
      j.max_attempts = one_in(6) ? 1U : 25U;
      j.retention = one_in(3) ? duration{24h} : duration{};
      auto const key = "key" + std::to_string(below(3));
      if (one_in(4)) {
        j.unique_key = key;
        j.strategy = one_in(2) ? unique_strategy::while_executing : unique_strategy::until_executed;
      }
      (*this)(command::enqueue_jobs{queue, {&j, 1}});
    }
    // Leases that are over, that go on, or that a dequeue has given which is asked again.
    if (one_in(2)) {
      auto const lease = one_in(2) ? duration{1s} : duration{1h};
      auto const got = (*this)(
          command::dequeue_jobs{queue, "h", one_in(2) ? std::uint64_t{10} : 0, 2, lease}, 1min);
      for (auto const& j : got.jobs) {
        (*this)(command::start_job{queue, j.id, j.fence}, 1min);
      }
    }
    if (one_in(8)) (*this)(command::pause_queue{queue});
    if (one_in(8)) {
      bed_.db.must(
          "UPDATE weir.jobs SET kind = '' WHERE id = (SELECT id FROM weir.jobs WHERE queue "
          "= '" +
          queue + "' ORDER BY id LIMIT 1)");
    }
  }

  job_id next_id() {
    job_id out{};
    *(out.end() - 1) = static_cast<std::uint8_t>(made_);
    *(out.end() - 2) = static_cast<std::uint8_t>(made_ >> 8U);
    ++made_;
    return out;
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(chance_() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

  /// One connection executes what is asked by itself after all, so that it goes in order.
  static postgres_options in_order() {
    auto o = quick();
    o.connections = 2;
    return o;
  }

  std::mt19937 chance_;
  bed bed_{in_order()};
  unsigned made_ = 1;
};

std::string text_of(dequeued const& d) {
  std::string out;
  for (auto const& j : d.jobs) {
    out += std::to_string(*(j.id.end() - 1)) + ":" + std::to_string(j.attempt) + ":" +
           std::to_string(j.expires_in.count()) + " ";
  }
  out += d.more ? "more " : "";
  out += d.held ? "held " : "";
  out += std::to_string(d.dead_lettered) + " " + std::to_string(d.damaged) + " ";
  return out + (d.next_in ? std::to_string(d.next_in->count()) : "none");
}

/// One that a dequeue has given, or one that nobody has.
struct ended_job {
  std::string queue;
  std::array<finished_job, 1> job;
};

std::deque<ended_job> ends_of(std::vector<asked_dequeue> const& asked,
                              std::vector<dequeued> const& got) {
  std::deque<ended_job> out;
  for (std::size_t i = 0; i != got.size(); ++i) {
    for (auto const& j : got[i].jobs) {
      out.push_back({asked[i].queue, {finished_job{j.id, j.fence, "1"}}});
      if (out.size() % 5 == 0)
        out.push_back({asked[i].queue, {finished_job{j.id, j.fence + 1, {}}}});
      if (out.size() % 7 == 0) out.push_back(out[out.size() / 2]);
    }
  }
  out.push_back({name(0), {finished_job{id(250), 1, {}}}});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_many_queues)

// R4, R5, F54, F93
BOOST_DATA_TEST_CASE(whatever_goes_together_ends_as_it_would_by_itself,
                     boost::unit_test::data::xrange(1U, 13U), seed) {
  using dequeue = command::at<command::dequeue_jobs>;
  using complete = command::at<command::complete_jobs>;
  constexpr auto later = 2min;
  world one{seed};
  world other{seed};
  auto const asked = one.questions();
  BOOST_TEST_REQUIRE(asked.size() == other.questions().size());

  together<dequeue> all{one.on()};
  for (auto const& a : asked) {
    all.add({{a.queue, a.holder, a.sequence, a.limit, 1h}, noon + later});
  }
  auto const at_once = all.values();
  std::vector<dequeued> in_turn;
  for (auto const& a : asked) {
    in_turn.push_back(
        other(command::dequeue_jobs{a.queue, a.holder, a.sequence, a.limit, 1h}, later));
  }
  for (std::size_t i = 0; i != asked.size(); ++i) {
    BOOST_TEST_CONTEXT(asked[i].queue << " for " << asked[i].holder << ", up to "
                                      << asked[i].limit) {
      BOOST_TEST(text_of(at_once[i]) == text_of(in_turn[i]));
    }
    for (std::size_t k = 1; k < at_once[i].jobs.size(); ++k) {
      BOOST_TEST(at_once[i].jobs[k - 1].fence < at_once[i].jobs[k].fence);
    }
  }
  BOOST_TEST(one.kept() == other.kept());

  together<complete> ends{one.on()};
  auto const mine = ends_of(asked, at_once);
  for (auto const& e : mine) ends.add({{e.queue, e.job}, noon + later + 1s});
  auto const ended_at_once = ends.values();
  auto const others = ends_of(asked, in_turn);
  BOOST_TEST_REQUIRE(mine.size() == others.size());
  for (std::size_t i = 0; i != others.size(); ++i) {
    auto const ended = other(command::complete_jobs{others[i].queue, others[i].job}, later + 1s);
    BOOST_TEST(static_cast<int>(ended_at_once[i][0]) == static_cast<int>(ended[0]), i);
  }
  BOOST_TEST(one.kept() == other.kept());
}

// F54: what it had under a number is not given under the same one for the second time it counts to
// it.
BOOST_AUTO_TEST_CASE(a_holder_that_counts_anew_gets_nothing_again) {
  bed b;
  std::vector<new_job> jobs;
  for (std::uint8_t n = 1; n != 4; ++n) jobs.push_back(job_of(n));
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{name(1), jobs}).has_value());
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{name(2), jobs}).has_value());
  auto const ask = [&](std::uint64_t number) {
    auto const queues = std::array{name(1), name(2)};
    together<command::dequeue_jobs> both{b};
    for (auto const& q : queues) both.add({q, "h", number, 1, 1h});
    std::string out;
    for (auto const& got : both.values()) {
      for (auto const& j : got.jobs) out += std::to_string(*(j.id.end() - 1));
    }
    return out;
  };
  BOOST_TEST(ask(2) == "11");
  BOOST_TEST(ask(1) == "22");
  BOOST_TEST(ask(1) == "22");
  BOOST_TEST(ask(2) == "33");
  BOOST_TEST(ask(2) == "33");
}

BOOST_AUTO_TEST_CASE(what_many_queues_are_asked_for_is_one_step) {
  bed b;
  constexpr std::size_t many = 60;
  for (std::size_t i = 0; i != many; ++i) {
    auto const j = job_of(static_cast<std::uint8_t>(i + 1));
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{name(i), {&j, 1}}).has_value());
  }
  std::deque<std::string> names;
  together<command::dequeue_jobs> all{b};
  for (std::size_t i = 0; i != many; ++i) {
    all.add({names.emplace_back(name(i)), "h", 1, 1, 1h});
  }
  auto const got = all.values();
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs WHERE holder IS NOT NULL") == 60);
  BOOST_TEST(b.db.number("SELECT count(DISTINCT xmin::text) FROM weir.jobs") <= 3);
  // Each pointer is where the lease ends.
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.pointers p JOIN weir.jobs j USING (queue) "
                         "WHERE p.pointer = j.vesting") == 60);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.pointers") == 60);

  std::deque<std::array<finished_job, 1>> ended;
  together<command::complete_jobs> ends{b};
  for (std::size_t i = 0; i != many; ++i) {
    BOOST_TEST_REQUIRE(got[i].jobs.size() == 1U);
    auto const& j = got[i].jobs[0];
    ends.add({names[i], ended.emplace_back(std::array{finished_job{j.id, j.fence, {}}})});
  }
  for (auto const& e : ends.values()) BOOST_TEST((e[0] == complete_outcome::completed));
  BOOST_TEST(b.db.number("SELECT count(DISTINCT xmin::text) FROM weir.counters") <= 3);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.counters") == 60);
  BOOST_TEST(b.db.number("SELECT sum(completed) FROM weir.counters") == 60);
}

// F60: none is left out for long because of the others' bytes.
BOOST_AUTO_TEST_CASE(large_jobs_of_many_queues_are_all_given) {
  bed b;
  constexpr std::size_t many = 20;
  std::string const payload(limits::payload_size, 'x');
  for (std::size_t i = 0; i != many; ++i) {
    auto j = job_of(static_cast<std::uint8_t>(i + 1));
    j.payload = payload;
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{name(i), {&j, 1}}).has_value());
  }
  std::deque<std::string> names;
  together<command::dequeue_jobs> all{b};
  for (std::size_t i = 0; i != many; ++i) all.add({names.emplace_back(name(i)), "h", 1, 1, 1h});
  for (auto const& got : all.values()) {
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    BOOST_TEST(got.jobs[0].payload == payload);
    BOOST_TEST(got.jobs[0].attempt == 1U);
  }
}

// F50: who has locked a job holds up who ends it, and nobody else.
BOOST_AUTO_TEST_CASE(a_job_that_is_locked_holds_up_no_other_queue) {
  bed b;
  let_locks_take_long(b.db);
  constexpr std::size_t many = 30;
  std::deque<std::string> names;
  std::deque<std::array<finished_job, 1>> ended;
  for (std::size_t i = 0; i != many; ++i) {
    auto const j = job_of(static_cast<std::uint8_t>(i + 1));
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{names.emplace_back(name(i)), {&j, 1}}).has_value());
    auto const got = b(command::dequeue_jobs{names[i], "h", 1, 1, 1h}).value();
    ended.push_back({finished_job{got.jobs.at(0).id, got.jobs.at(0).fence, {}}});
  }
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  own.must("SELECT 1 FROM weir.jobs WHERE queue = 'tenant/7' FOR UPDATE");
  together<command::complete_jobs> ends{b};
  for (std::size_t i = 0; i != many; ++i) ends.add({names[i], ended[i]});
  until_somebody_waits(b.io, b.database);
  for (std::size_t i = 0; i != many; ++i) {
    if (i == 7) continue;
    BOOST_TEST(weir_test::happens(b.io, [&] { return ends.answered(i); }), i);
  }
  // Those that come while it waits are served, too.
  auto const j = job_of(200);
  BOOST_TEST(b(command::enqueue_jobs{"later", {&j, 1}}).has_value());
  auto const got = b(command::dequeue_jobs{"later", "h", 1, 1, 1h}).value();
  std::array const last{finished_job{got.jobs.at(0).id, got.jobs.at(0).fence, {}}};
  BOOST_TEST(b(command::complete_jobs{"later", last}).has_value());
  BOOST_TEST(!ends.answered(7));
  own.must("ROLLBACK");
  for (auto const& e : ends.values()) BOOST_TEST((e[0] == complete_outcome::completed));
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 0);
}

// R4: the others of its command wait with it, and end with it.
BOOST_AUTO_TEST_CASE(a_command_with_a_job_that_is_locked_ends_all_of_its_jobs_or_none) {
  bed b;
  let_locks_take_long(b.db);
  std::vector<new_job> jobs;
  for (std::uint8_t n = 1; n != 4; ++n) jobs.push_back(job_of(n));
  for (auto const i : {1U, 2U}) {
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{name(i), jobs}).has_value());
  }
  std::deque<std::vector<finished_job>> ended;
  std::deque<std::string> const names{name(1), name(2)};
  for (auto const& queue : names) {
    auto const got = b(command::dequeue_jobs{queue, "h", 1, 3, 1h}).value();
    auto& each = ended.emplace_back();
    for (auto const& j : got.jobs) each.push_back({j.id, j.fence, {}});
    // A lost lease is no reason to wait.
    each.push_back({id(99), 1, {}});
  }
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  own.must("SELECT 1 FROM weir.jobs WHERE queue = 'tenant/1' ORDER BY id LIMIT 1 FOR UPDATE");
  together<command::complete_jobs> ends{b};
  for (std::size_t i = 0; i != 2; ++i) ends.add({names[i], ended[i]});
  until_somebody_waits(b.io, b.database);
  BOOST_TEST(weir_test::happens(b.io, [&] { return ends.answered(1); }));
  BOOST_TEST(!ends.answered(0));
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 3);
  own.must("ROLLBACK");
  for (auto const& e : ends.values()) {
    BOOST_TEST_REQUIRE(e.size() == 4U);
    for (std::size_t i = 0; i != 4; ++i) {
      BOOST_TEST((e[i] == complete_outcome::completed) == (i != 3), i);
    }
  }
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 0);
}

// Counters do not depend on what the server knows of its tables.
BOOST_AUTO_TEST_CASE(ends_are_counted_once_whatever_rows_there_are) {
  for (int const rows : {1, 2, 4}) {
    bed b;
    std::deque<std::string> const names{name(1), name(2)};
    std::deque<std::vector<finished_job>> ended;
    for (auto const& queue : names) {
      std::vector<new_job> jobs;
      for (std::uint8_t n = 1; n != 6; ++n) jobs.push_back(job_of(n));
      BOOST_TEST_REQUIRE(b(command::enqueue_jobs{queue, jobs}).has_value());
      auto const got = b(command::dequeue_jobs{queue, "h", 1, 5, 1h}).value();
      auto& each = ended.emplace_back();
      for (auto const& j : got.jobs) each.push_back({j.id, j.fence, {}});
      for (int i = 1; i < rows; ++i) {
        b.db.must(
            "INSERT INTO weir.counters (queue, shard, enqueued, completed, cancelled, purged, "
            "dead) SELECT queue, shard, 0, 0, 0, 0, 0 FROM weir.counters WHERE queue = '" +
            queue + "' LIMIT 1");
      }
    }
    b.db.must("ANALYZE weir.counters");
    together<command::complete_jobs> ends{b};
    for (std::size_t i = 0; i != 2; ++i) ends.add({names[i], ended[i]});
    (void)ends.values();
    for (auto const& queue : names) {
      BOOST_TEST(b(command::read_queue_stats{queue})->completed == 5U, rows);
    }
    BOOST_TEST(b.db.number("SELECT count(*) FROM weir.counters") == 2 * rows);
  }
}

// F50: others' locks are no reason to say that there is nothing more.
BOOST_AUTO_TEST_CASE(what_others_have_locked_is_there_all_the_same) {
  bed b;
  std::vector<new_job> jobs;
  for (std::uint8_t n = 1; n != 3; ++n) jobs.push_back(job_of(n));
  std::deque<std::string> const names{name(1), name(2)};
  for (auto const& queue : names) {
    for (auto const& j : jobs) {  // the locked one vests before the other
      BOOST_TEST_REQUIRE(b(command::enqueue_jobs{queue, {&j, 1}}).has_value());
    }
  }
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  own.must(
      "SELECT 1 FROM weir.jobs WHERE queue = 'tenant/1' ORDER BY vesting, id LIMIT 1 FOR UPDATE");
  together<command::dequeue_jobs> both{b};
  for (auto const& queue : names) both.add({queue, "h", 1, 2, 1h});
  auto const got = both.values();
  BOOST_TEST(got[0].jobs.size() == 1U);
  BOOST_TEST(got[0].more);
  BOOST_TEST(got[1].jobs.size() == 2U);
  BOOST_TEST(!got[1].more);
  own.must("ROLLBACK");
}

// R4: of several processes each job is given to one.
BOOST_AUTO_TEST_CASE(processes_that_ask_for_the_same_queues_share_their_jobs) {
  bed b;
  constexpr std::size_t queues = 40;
  constexpr std::size_t each = 5;
  for (std::size_t i = 0; i != queues; ++i) {
    std::vector<new_job> jobs;
    for (std::size_t k = 0; k != each; ++k)
      jobs.push_back(job_of(static_cast<std::uint8_t>(k + 1)));
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{name(i), jobs}).has_value());
  }
  constexpr std::size_t processes = 4;
  std::array<std::map<std::string, int>, processes> given;
  std::array<bool, processes> failed{};
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p != processes; ++p) {
    threads.emplace_back([&, p] {
      boost::asio::io_context io;
      postgres_store const store{io.get_executor(), the_server().conninfo(b.database), quick()};
      auto const holder = "process" + std::to_string(p);
      std::deque<std::string> names;
      for (std::size_t i = 0; i != queues; ++i) names.push_back(name(i));
      std::deque<std::vector<finished_job>> ended;
      for (std::uint64_t round = 1; round != 12; ++round) {
        for (auto const& queue : names) {
          store.async_execute(
              command::dequeue_jobs{queue, holder, round, 1, 1h},
              [&](error_code ec, dequeued const& d) {
                failed[p] = failed[p] || ec;
                if (d.jobs.empty()) return;
                ++given[p][queue + std::to_string(*(d.jobs[0].id.end() - 1))];
                store.async_execute(
                    command::complete_jobs{queue, ended.emplace_back(std::vector{finished_job{
                                                      d.jobs[0].id, d.jobs[0].fence, {}}})},
                    [&](error_code e, command::complete_jobs::result const& r) {
                      failed[p] = failed[p] || e || r[0] != complete_outcome::completed;
                    });
              });
        }
        io.restart();
        io.run();
      }
    });
  }
  for (auto& t : threads) t.join();
  std::map<std::string, int> all;
  for (std::size_t p = 0; p != processes; ++p) {
    BOOST_TEST(!failed[p], p);
    for (auto const& [job, times] : given[p]) all[job] += times;
  }
  BOOST_TEST(all.size() == queues * each);
  for (auto const& [job, times] : all) BOOST_TEST(times == 1, job);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 0);
  BOOST_TEST(b.db.number("SELECT sum(completed) FROM weir.counters") ==
             static_cast<std::int64_t>(queues * each));
}

BOOST_AUTO_TEST_SUITE_END()
