// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What is answered does not depend on how the server goes about it: which plan it makes, which
// depends on what its statistics happened to see, and who else draws a fence at the same time.

#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace postgres_test;

/// Jobs of one priority whose order is the opposite of that of their ids.
std::vector<new_job> backwards(int from, int to) {
  std::vector<new_job> out;
  for (auto n = from; n <= to; ++n) {
    out.push_back(job_of(static_cast<std::uint8_t>(n)));
    out.back().delay = (20 - n) * 1us;
  }
  return out;
}

/// Commands in transactions of one session, which keeps the plans that it made first.
class watched {
 public:
  explicit watched(bed const& b) : own_{the_server().conninfo(b.database)} {}

  /// Executes a command. How many rows of weir's tables the server looked at for it.
  template <class C>
  std::int64_t rows_for(C const& c, typename C::result* answer = nullptr) {
    own_.must("BEGIN");
    auto const before = looked_at();
    postgres_transaction tx{own_.get()};
    auto const done = tx.execute(c);
    BOOST_TEST_REQUIRE(done.has_value());
    if (answer != nullptr) *answer = *done;
    auto const out = looked_at() - before;
    own_.must("COMMIT");
    return out;
  }
  std::int64_t rows_for(std::string const& sql) {
    own_.must("BEGIN");
    auto const before = looked_at();
    own_.must(sql);
    auto const out = looked_at() - before;
    own_.must("COMMIT");
    return out;
  }

 private:
  /// Since the session last told the server's statistics, which it does between transactions.
  std::int64_t looked_at() {
    return own_.number("SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) "
                       "FROM pg_stat_xact_user_tables WHERE schemaname = 'weir'");
  }

  connection own_;
};

/// The most rows that the server looks at for any one of these commands, and which that is.
std::pair<std::int64_t, std::string> most_rows(watched& session, std::uint8_t first) {
  std::pair<std::int64_t, std::string> most{0, "none"};
  auto const note = [&](std::string const& what, std::int64_t rows) {
    most = std::max(most, {rows, what});
  };
  std::vector<new_job> jobs;
  auto const key = "key" + std::to_string(first);
  auto const last = "last" + std::to_string(first);
  for (std::uint8_t i = 0; i != 6; ++i) {
    jobs.push_back(job_of(static_cast<std::uint8_t>(first + i),
                          i == 5 ? std::string_view{last} : std::string_view{}));
    jobs.back().retention = i == 4 ? 1h : 0h;
  }
  note("enqueue", session.rows_for(command::enqueue_jobs{"q", jobs}));
  note("enqueue again", session.rows_for(command::enqueue_jobs{"q", jobs}));
  std::vector const replacing{job_of(static_cast<std::uint8_t>(first + 6), key)};
  note("enqueue with a key", session.rows_for(command::enqueue_jobs{"q", replacing}));
  for (std::uint32_t const limit : {2U, 5U}) {
    dequeued got;
    note("dequeue", session.rows_for(command::dequeue_jobs{"q", "h", limit, limit, 1h}, &got));
    BOOST_TEST_REQUIRE(got.jobs.size() == limit);
    note("dequeue again", session.rows_for(command::dequeue_jobs{"q", "h", limit, limit, 1h}));
    std::vector<finished_job> ended;
    for (auto const& j : got.jobs) {
      note("start", session.rows_for(command::start_job{"q", j.id, j.fence}));
      note("extend", session.rows_for(command::extend_lease{"q", j.id, j.fence, 1h}));
      ended.push_back({j.id, j.fence, {}});
    }
    note("complete", session.rows_for(command::complete_jobs{"q", ended}));
    note("complete again", session.rows_for(command::complete_jobs{"q", ended}));
  }
  note("cancel", session.rows_for(command::cancel_job{"q", id(first), true}));
  note("find", session.rows_for(command::find_job{"q", id(first)}));
  for (auto const state : {job_state::pending, job_state::completed, job_state::dead}) {
    note("list", session.rows_for(command::list_jobs{"q", state, 2, {}}) / 11);  // up to a thousand
  }
  note("list letters", session.rows_for(command::list_dead_letters{"q", 2, {}}));
  note("replay", session.rows_for(command::replay_dead_letter{"q", id(250)}));
  note("purge", session.rows_for(command::purge_job{"q", id(first)}));
  note("peek", session.rows_for(command::peek_jobs{"q", 2}));
  note("stats", session.rows_for(command::read_queue_stats{"q"}));
  note("pointer", session.rows_for(command::update_queue_pointer{"q"}));
  note("scan", session.rows_for(command::scan_visible_queues{}));
  note("tidy", session.rows_for("SELECT weir.tidy(100, NULL)"));
  return most;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_plans)

// R4: the best job first, also where autovacuum looked while the queue had one job, so that the
// server expects no more than one.
BOOST_AUTO_TEST_CASE(jobs_come_in_their_order_whatever_the_plan_is) {
  for (std::string const settings :
       {"", "enable_tidscan = off", "enable_nestloop = off", "enable_indexscan = off"}) {
    for (int const seen : {0, 1, 2, 5}) {
      bed b{quick(), settings};
      time_point const then{std::chrono::sys_days{std::chrono::year{2026} / 6 / 1}};
      for (auto const& jobs : {backwards(1, seen), backwards(seen + 1, 12)}) {
        if (jobs.empty()) continue;
        command::at<command::enqueue_jobs> const enqueue{{"q", jobs}, then};
        BOOST_TEST_REQUIRE(b(enqueue).has_value());
        if (std::ssize(jobs) == seen) b.db.must("ANALYZE weir.jobs");
      }
      command::at<command::dequeue_jobs> const dequeue{{"q", "h", 1, 6, 1h}, then + 1s};
      for (int const repeated : {0, 1}) {
        auto const taken = b(dequeue);
        BOOST_TEST_REQUIRE(taken.has_value());
        std::vector<job_id> order;
        for (auto const& j : taken->jobs) order.push_back(j.id);
        std::vector<job_id> const best{id(12), id(11), id(10), id(9), id(8), id(7)};
        BOOST_TEST((order == best), settings << ", " << seen << ", repeated: " << repeated);
      }
    }
  }
}

// What a step costs does not depend on how many jobs there are, nor on what the server
// knew of them when it made the plan: nothing, that there are hardly any, or how many there are.
BOOST_AUTO_TEST_CASE(no_step_goes_through_the_jobs_that_it_is_not_about) {
  for (auto const known : {"nothing", "few", "many"}) {
    std::string const what{known};
    bed b;
    for (std::string const table : {"jobs", "keys", "dead_letters", "ended"}) {
      b.db.must("ALTER TABLE weir." + table + " SET (autovacuum_enabled = off)");
    }
    std::vector<new_job> const one{job_of(250)};
    BOOST_TEST_REQUIRE(b(command::enqueue_jobs{"q", one}).has_value());
    if (what == "few") b.db.must("ANALYZE weir.jobs, weir.keys, weir.dead_letters, weir.ended");
    auto const waiting = [&] {
      b.db.must(
          "INSERT INTO weir.jobs (queue, id, state, priority, strategy, policy, max_attempts, "
          "vesting, enqueued, deadline_from, deadline, retention, unique_key, kind, payload) "
          "SELECT 'q', gen_random_uuid(), 0, 0, 1, 0, 25, t + (i % 2) * 3600000000000, t, t, "
          "0, 0, i::text::bytea, "
          "'kind', '' FROM (SELECT weir.clock() AS t, i FROM generate_series(1, 3000) i) j; "
          "INSERT INTO weir.keys SELECT queue, false, unique_key, id, NULL FROM weir.jobs "
          "WHERE unique_key <> ''; INSERT INTO weir.used_keys SELECT 5, weir.dequeue_key(queue, "
          "key), 9000000000000000000 FROM weir.keys ON CONFLICT DO NOTHING");
      for (std::string const table : {"dead_letters", "ended"}) {
        b.db.must("INSERT INTO weir." + table +
                  " SELECT j.*, 9000000000000000000 + row_number() "
                  "OVER () FROM weir.jobs j; UPDATE weir." +
                  table +
                  " SET id = gen_random_uuid(), "
                  "state = " +
                  (table == "ended" ? "2" : "3"));
      }
    };
    if (what == "many") {
      waiting();
      b.db.must("ANALYZE weir.jobs, weir.keys, weir.dead_letters, weir.ended");
    }
    watched session{b};
    most_rows(session, 1);
    if (what != "many") waiting();
    auto const [rows, which] = most_rows(session, 101);
    BOOST_TEST(rows < 100,
               which << " looks at " << rows << " rows where the plan was made knowing " << what);
  }
}

// What is dead in a table whose rows come and go is removed before a fifth of it is: what looks for
// the first row of an order goes through it.
// When a permit may be had is known by the first that ends, or the next ones where a limit was
// lowered.
BOOST_AUTO_TEST_CASE(a_refused_permit_is_not_looked_for_among_all_that_are_held) {
  bed b;
  b.db.must("SELECT count(*) FROM weir.permit_steps('key', array_fill(0, ARRAY[2000]), (SELECT "
            "array_agg(int4send(i)) FROM generate_series(1, 2000) i), array_fill(0::bigint, "
            "ARRAY[2000]), array_fill(2000, ARRAY[2000]), (SELECT array_agg(3600000000000 + "
            "((i * 7919) % 2000) * 60000000000) FROM generate_series(1, 2000) i), "
            "array_fill(0::bigint, ARRAY[2000]), true, NULL)");
  b.db.must("VACUUM ANALYZE weir.permits");
  watched own{b};
  for (std::uint32_t const limit : {2000U, 1990U, 1000U}) {
    permit_grant refused;
    auto const rows = own.rows_for(command::acquire_permit{"key", "late", limit, 1h}, &refused);
    BOOST_TEST(!refused.granted);
    BOOST_TEST(refused.in_use == 2000U);
    auto const minutes = std::chrono::floor<std::chrono::minutes>(refused.retry_after + 30s);
    BOOST_TEST(minutes.count() == 60 + 2000 - limit);
    if (limit >= 1990) BOOST_TEST(rows < 100, rows << " rows with " << limit);
  }
}

BOOST_AUTO_TEST_CASE(every_table_whose_rows_come_and_go_is_vacuumed_soon) {
  bed b;
  BOOST_TEST(b.db.must("SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE "
                       "relnamespace = 'weir'::regnamespace AND relkind = 'r' AND NOT "
                       "coalesce(reloptions, '{}') @> '{autovacuum_vacuum_scale_factor=0.01}'") ==
             "ended hints jobs queues state");
  // However many jobs wait.
  BOOST_TEST(b.db.number("SELECT count(*) FROM pg_class WHERE oid = 'weir.jobs'::regclass AND "
                         "reloptions @> '{autovacuum_vacuum_scale_factor=0,"
                         "autovacuum_vacuum_threshold=5000,vacuum_index_cleanup=on}'") == 1);
}

// R5: a step that looked at the sequence before others raised it does not lower it again.
BOOST_AUTO_TEST_CASE(the_sequence_of_fences_is_never_set_back) {
  bed b;
  auto const now = b.db.number("SELECT weir.clock()");
  auto const raise = [&](std::int64_t time) {
    return "SELECT weir.raise_fences(" + std::to_string(time) + ")";
  };
  b.db.must("SELECT setval('weir.fences', 5)");
  b.db.must(raise(now));
  auto const highest = b.db.number("SELECT nextval('weir.fences')");
  BOOST_TEST(highest > now / 1000);
  b.db.must(raise(now - 1'000'000));  // it had looked before
  BOOST_TEST(b.db.number("SELECT nextval('weir.fences')") > highest);
  // A transaction that stays open keeps nobody from raising it, and takes nothing back.
  connection own{the_server().conninfo(b.database)};
  own.must("BEGIN; SELECT setval('weir.fences', 5)");
  own.must(raise(now));
  b.db.must("SET lock_timeout = '1s'; SELECT setval('weir.fences', 5)");
  b.db.must(raise(now));
  own.must("ROLLBACK");
  BOOST_TEST(b.db.number("SELECT nextval('weir.fences')") > now / 1000);
}

BOOST_AUTO_TEST_SUITE_END()
