// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands that are issued together go together, and each has its own answer.

#include "patience.hpp"
#include "postgres_bed.hpp"
#include "postgres_together.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace postgres_test;

using enqueues = together<command::enqueue_jobs>;
using dequeues = together<command::dequeue_jobs>;
using completions = together<command::complete_jobs>;

constexpr int many = 50;

/// Enqueues jobs, one after the other, and completes those that it gets meanwhile.
class chain : public std::enable_shared_from_this<chain> {
 public:
  struct record {
    std::array<std::atomic<int>, 256> completed{};
    std::atomic<int> failed = 0;
  };

  chain(postgres_store store, record& to, int from, int count)
      : store_{std::move(store)},
        record_{to},
        holder_{"h" + std::to_string(from)},
        next_{from},
        end_{from + count} {}

  void run() {
    if (next_ == end_) return;
    job_[0] = job_of(static_cast<std::uint8_t>(next_++));
    store_.async_execute(
        command::enqueue_jobs{"q", job_},
        [self = shared_from_this()](error_code ec, command::enqueue_jobs::result const&) {
          if (ec) ++self->record_.failed;
          self->claim();
        });
  }

 private:
  void claim() {
    store_.async_execute(command::dequeue_jobs{"q", holder_, 0, 2, 1h},
                         [self = shared_from_this()](error_code ec, dequeued const& d) {
                           if (ec) ++self->record_.failed;
                           self->complete(d);
                         });
  }

  void complete(dequeued const& d) {
    ended_.clear();
    for (auto const& j : d.jobs) ended_.push_back({j.id, j.fence, {}});
    if (ended_.empty()) return run();
    store_.async_execute(
        command::complete_jobs{"q", ended_},
        [self = shared_from_this()](error_code ec, command::complete_jobs::result const& all) {
          if (ec) ++self->record_.failed;
          for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i] != complete_outcome::completed) continue;
            ++self->record_.completed[*(self->ended_[i].id.end() - 1)];
          }
          self->run();
        });
  }

  postgres_store store_;
  record& record_;
  std::string holder_;
  std::array<new_job, 1> job_;
  std::vector<finished_job> ended_;
  int next_;
  int end_;
};

std::deque<std::array<new_job, 1>> singles(int n) {
  std::deque<std::array<new_job, 1>> out;
  for (int i = 1; i <= n; ++i) out.push_back({job_of(static_cast<std::uint8_t>(i))});
  return out;
}

void fill(bed& b, int n) {
  std::vector<new_job> jobs;
  for (auto const& each : singles(n)) jobs.push_back(each[0]);
  BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", jobs}).has_value());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_joined_)

BOOST_AUTO_TEST_CASE(commands_that_are_issued_together_share_a_transaction) {
  bed b;
  fill(b, 1);  // there is a connection
  auto const jobs = singles(many);
  enqueues all{b};
  for (auto const& each : jobs) all.add({"q", each});
  for (auto const& each : all.all()) {
    BOOST_TEST_REQUIRE(each.has_value());
    BOOST_TEST(each->size() == 1U);
  }
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == many);
  BOOST_TEST(b.db.number("SELECT count(DISTINCT xmin::text) FROM weir.jobs") <= 4);
  auto const stats = b(command::read_queue_stats{"q"});
  BOOST_TEST(stats->enqueued == std::uint64_t{many});
}

// R4: no job is given twice, each to who has asked.
BOOST_AUTO_TEST_CASE(dequeues_that_go_together_share_what_there_is) {
  auto o = quick();
  o.connections = 2;  // one of them for dequeues: calls on several come in any order
  bed b{o};
  fill(b, many);
  std::deque<std::string> holders;
  dequeues all{b};
  for (std::uint32_t i = 0; i < 2 * many; ++i) {
    all.add({"q", holders.emplace_back("h" + std::to_string(i)), 0, 1 + i % 3, 1h});
  }
  std::set<job_id> seen;
  std::size_t asked = 0;
  auto const answers = all.all();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    BOOST_TEST_REQUIRE(answers[i].has_value());
    std::size_t const limit = 1 + i % 3;
    asked += limit;
    BOOST_TEST(answers[i]->jobs.size() <= limit);
    if (asked <= many) BOOST_TEST(answers[i]->jobs.size() == limit, i);
    for (auto const& j : answers[i]->jobs) {
      BOOST_TEST(seen.insert(j.id).second, "given twice");
      auto const found = b(command::find_job{"q", j.id});
      BOOST_TEST_REQUIRE(found->has_value());
      BOOST_TEST((*found)->holder == holders[i]);
      BOOST_TEST((*found)->fence == j.fence);
    }
  }
  BOOST_TEST(seen.size() == std::size_t{many});
}

// R5
BOOST_AUTO_TEST_CASE(completions_that_go_together_are_each_held_to_their_fence) {
  bed b;
  fill(b, many);
  auto const taken = b(command::dequeue_jobs{"q", "h", 0, many, 1h});
  BOOST_TEST_REQUIRE(taken->jobs.size() == std::size_t{many});
  std::deque<std::vector<finished_job>> ended;
  completions all{b};
  for (std::size_t i = 0; i < taken->jobs.size(); ++i) {
    auto const& j = taken->jobs[i];
    ended.push_back({{j.id, j.fence + i % 2, {}}, {j.id, j.fence, {}}, {j.id, j.fence, {}}});
  }
  for (auto const& each : ended) all.add({"q", each});
  auto const answers = all.all();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    BOOST_TEST_REQUIRE(answers[i].has_value());
    BOOST_TEST_REQUIRE(answers[i]->size() == 3U);
    // Once, by the first one that has the fence.
    for (std::size_t k = 0; k < 3; ++k) {
      bool const first = k == i % 2;
      BOOST_TEST(((*answers[i])[k] == complete_outcome::completed) == first, i << ", " << k);
    }
  }
  auto const stats = b(command::read_queue_stats{"q"});
  BOOST_TEST(stats->completed == std::uint64_t{many});
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 0);
}

// R4: whoever issues them, and on whatever thread.
BOOST_AUTO_TEST_CASE(threads_whose_commands_go_together_get_their_own_answers) {
  bed b;
  let_locks_take_long(b.db);
  chain::record seen;
  constexpr int chains = 20;
  constexpr int each = 12;
  boost::asio::thread_pool pool{4};
  postgres_store const store{pool.get_executor(), the_server().conninfo(b.database), quick()};
  for (int i = 0; i < chains; ++i) {
    auto const c = std::make_shared<chain>(store, seen, 1 + i * each, each);
    boost::asio::post(pool, [c] { c->run(); });
  }
  pool.join();
  BOOST_TEST(seen.failed == 0);
  auto const stats = b(command::read_queue_stats{"q"});
  BOOST_TEST(stats->enqueued == std::uint64_t{chains * each});
  BOOST_TEST(stats->completed + stats->pending == stats->enqueued);
  std::uint64_t completed = 0;
  for (auto const& each_job : seen.completed) {
    auto const times = each_job.load();
    BOOST_TEST(times <= 1);
    completed += static_cast<std::uint64_t>(times);
  }
  BOOST_TEST(stats->completed == completed);
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") ==
             static_cast<std::int64_t>(stats->pending));
}

// F50: an application's transaction that has enqueued one of the jobs stays open.
BOOST_AUTO_TEST_CASE(no_command_fails_because_of_another_that_it_went_with) {
  bed b;
  fill(b, 1);
  auto const jobs = singles(20);
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  postgres_transaction tx{own.get(), b.options};
  BOOST_TEST_REQUIRE(tx.execute(command::enqueue_jobs{"q", jobs[9]}).has_value());
  enqueues all{b};
  for (auto const& each : jobs) all.add({"q", each});
  auto const answers = all.all();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    BOOST_TEST(answers[i].has_value() == (i != 9), i);
  }
  BOOST_TEST((answers[9].error() == errc::store_unavailable));
  own.must("ROLLBACK");
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 19);
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs[9]}).has_value());
}

// F50: calls that an application's transaction holds up do not hold up others of their kind.
BOOST_AUTO_TEST_CASE(takes_that_go_together_are_made_one_after_the_other) {
  bed b;
  let_locks_take_long(b.db);
  quota const ten[] = {quota::per_hour(10)};
  BOOST_TEST(b(command::take{"key", ten, 1})->remaining == 9U);
  connection holds{the_server().conninfo(b.database)};
  holds.must("BEGIN; SELECT 1 FROM weir.buckets FOR UPDATE");
  together<command::take> all{b};
  all.add({"key", ten, 1});
  until_somebody_waits(b.io, b.database);
  for (std::uint64_t const cost : {3U, 9U, 2U, 3U, 1U}) all.add({"key", ten, cost});
  holds.must("COMMIT");
  auto const answers = all.values();
  std::vector<bool> const allowed{true, true, false, true, true, false};
  std::vector<std::uint64_t> const remaining{8, 5, 5, 3, 0, 0};
  for (std::size_t i = 0; i != answers.size(); ++i) {
    BOOST_TEST(answers[i].allowed == allowed[i]);
    BOOST_TEST(answers[i].remaining == remaining[i]);
  }
  BOOST_TEST(b(command::peek_bucket{"key", ten})->remaining == 0U);
}

BOOST_AUTO_TEST_CASE(a_batch_of_new_jobs_takes_the_keys_that_each_would_take) {
  bed b;
  std::array<new_job, 5> jobs{job_of(1), job_of(2, "a"), job_of(3, "b"), job_of(4, "c"),
                              job_of(5, "d")};
  jobs[2].strategy = unique_strategy::until_expired;
  jobs[2].unique_ttl = 1h;
  jobs[3].strategy = unique_strategy::while_executing;
  jobs[4].strategy = unique_strategy::until_and_while_executing;
  BOOST_TEST(b(command::enqueue_jobs{"at once", jobs}).has_value());
  for (auto const& j : jobs) {
    BOOST_TEST(b(command::enqueue_jobs{"one by one", std::span{&j, 1}}).has_value());
  }
  auto const keys = [&](std::string const& queue) {
    return b.db.must("SELECT string_agg(convert_from(key, 'UTF8') || ' ' || owner || ' ' || run "
                     "|| ' ' || coalesce((until - weir.clock()) / 1000000000 / 60, -1), ', ' "
                     "ORDER BY key) FROM weir.keys WHERE queue = '" +
                     queue + "'");
  };
  BOOST_TEST(keys("at once") == keys("one by one"));
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.keys WHERE queue = 'at once'") == 3);
  // A key or an id that a batch has twice is not new.
  std::array const keyed{job_of(11, "x"), job_of(12, "x")};
  auto const answers = b(command::enqueue_jobs{"twice", keyed}).value();
  BOOST_TEST((answers[0].outcome == enqueue_outcome::enqueued));
  BOOST_TEST((answers[1].outcome == enqueue_outcome::duplicate));
  BOOST_TEST((answers[1].other == id(11)));
  std::array const same{job_of(13, "y"), job_of(13, "y")};
  BOOST_TEST(b(command::enqueue_jobs{"twice", same}).has_value());
  BOOST_TEST(b(command::read_queue_stats{"twice"})->enqueued == 2U);
}

BOOST_AUTO_TEST_CASE(F50_a_key_that_is_held_holds_up_nothing_that_went_with_it) {
  bed b;
  let_locks_take_long(b.db);
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  postgres_transaction tx{own.get()};
  std::vector<std::string> keys;
  for (int i = 0; i != many; ++i) keys.push_back("key" + std::to_string(i));
  std::vector<new_job> const held{job_of(100, keys[7])};
  BOOST_TEST(tx.execute(command::enqueue_jobs{"q", held}).has_value());
  std::deque<std::array<new_job, 1>> jobs;
  enqueues all{b};
  for (int i = 0; i != many; ++i) {
    jobs.push_back({job_of(static_cast<std::uint8_t>(i + 1), keys[static_cast<std::size_t>(i)])});
    all.add({"q", jobs.back()});
  }
  BOOST_TEST(weir_test::happens(b.io, [&] {
    int n = 0;
    for (std::size_t i = 0; i != many; ++i) n += all.answered(i) ? 1 : 0;
    return n == many - 1;
  }));
  BOOST_TEST(!all.answered(7));
  own.must("COMMIT");
  auto const answers = all.values();
  for (std::size_t i = 0; i != many; ++i) {
    auto const expected = i == 7 ? enqueue_outcome::duplicate : enqueue_outcome::enqueued;
    BOOST_TEST((answers[i].front().outcome == expected));
  }
  BOOST_TEST((answers[7].front().other == id(100)));
  BOOST_TEST(b(command::read_queue_stats{"q"})->enqueued == std::uint64_t{many});
}

BOOST_AUTO_TEST_CASE(no_command_waits_for_a_lock_that_others_of_its_kind_wait_for) {
  bed b;
  fill(b, 4);
  auto const taken = b(command::dequeue_jobs{"q", "h", 0, 4, 1h});
  BOOST_TEST_REQUIRE(taken->jobs.size() == 4U);
  b.db.must("ALTER FUNCTION weir.complete_jobs SET lock_timeout = '1h'");  // whoever ends first
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN");
  own.must("SELECT 1 FROM weir.jobs ORDER BY id LIMIT 2 FOR UPDATE");
  std::deque<std::array<finished_job, 1>> ended;
  auto const complete = [&] {
    auto const& j = taken->jobs[ended.size()];
    return start(b.store, command::complete_jobs{"q", ended.emplace_back(std::array{
                                                          finished_job{j.id, j.fence, {}}})});
  };
  auto const first = complete();
  until_somebody_waits(b.io, b.database);
  auto const second = complete();
  b.io.restart();
  b.io.poll();
  auto const third = complete();
  auto const fourth = complete();
  finish(b.io, *third);
  finish(b.io, *fourth);
  BOOST_TEST(!**third);
  BOOST_TEST(!**fourth);
  BOOST_TEST(!first->has_value());
  BOOST_TEST(!second->has_value());
  own.must("ROLLBACK");
  finish(b.io, *first);
  finish(b.io, *second);
  BOOST_TEST(!**first);
  BOOST_TEST(!**second);
}

BOOST_AUTO_TEST_SUITE_END()
