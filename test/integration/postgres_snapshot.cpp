// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F79: while somebody holds an old snapshot, such as a backup, no old version of a row is removed.
// A step of a lock, a limiter or a bucket reads as much as before, however often it was done. Jobs
// have their own tests (postgres_floors).

#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace postgres_test;

/// Calls of one key, one after the other, each in a transaction of its own. `$n` is how often they
/// were called.
using steps = std::vector<std::string>;

std::string with_number(std::string text, std::string const& n) {
  for (auto at = text.find("$n"); at != text.npos; at = text.find("$n")) text.replace(at, 2, n);
  return text;
}

class bed_with_snapshot : public bed {
 public:
  bed_with_snapshot() {
    holds_.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weir.state");
  }

  void call(steps const& all, int times) {
    std::string text = "DO $do$ BEGIN FOR n IN " + std::to_string(called_ + 1) + ".." +
                       std::to_string(called_ + times) + " LOOP ";
    for (auto const& s : all) text += "PERFORM " + with_number(s, "n") + "; COMMIT; ";
    db.must(text + "END LOOP; END $do$");
    called_ += times;
  }

  /// How many pages of these tables and their indexes so many more read.
  std::int64_t reads_of(std::string const& tables, steps const& all, int times) {
    auto const sum = [&] {
      db.must("SELECT pg_stat_force_next_flush()");
      return connection{the_server().conninfo(database)}.number(
          "SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read) FROM "
          "pg_statio_user_tables WHERE schemaname = 'weir' AND relname IN (" +
          tables + ")");
    };
    auto const before = sum();
    call(all, times);
    return sum() - before;
  }

  /// How many pages so many more of each read.
  std::int64_t reads(steps const& all, int times) {
    std::int64_t out = 0;
    for (; times != 0; --times) out += reads(all);
    return out;
  }

 private:
  std::int64_t reads(steps const& all) {
    std::int64_t out = 0;
    ++called_;
    for (auto const& s : all) {
      auto const said = db.must("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT " +
                                with_number(s, std::to_string(called_)));
      for (std::string const what : {"\"Shared Hit Blocks\": ", "\"Shared Read Blocks\": "}) {
        out += std::stoll(said.substr(said.find(what) + what.size()));
      }
    }
    return out;
  }

  connection holds_{the_server().conninfo(database)};
  int called_ = 0;
};

std::string const count_of = "(SELECT count(*) FROM weir.";

std::string permit_step(int step, std::string const& holder, std::string const& patience = "0") {
  return count_of + "permit_steps('key', ARRAY[" + std::to_string(step) + "], ARRAY[" + holder +
         "], ARRAY[0::bigint], ARRAY[1], ARRAY[30000000000], ARRAY[" + patience +
         "::bigint], true, NULL))";
}

/// The first use may make what the others find. On average: a row's number lasts for 32 of them.
void stays_the_same(steps const& all) {
  bed_with_snapshot b;
  b.call(all, 500);
  auto const before = b.reads(all, 32);
  b.call(all, 5000);
  auto const after = b.reads(all, 32);
  b.db.must("VACUUM ANALYZE");  // as the server does by itself: there is one row, for all it knows
  auto const with_other_plans = b.reads(all, 32);
  BOOST_TEST(before > 0);
  BOOST_TEST(with_other_plans * 10 <= before * 13,
             with_other_plans << " pages instead of " << before << ", with other plans");
  BOOST_TEST(after * 10 <= before * 13, after << " pages instead of " << before);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_snapshot)

BOOST_AUTO_TEST_CASE(F79_a_take_reads_as_much_as_before) {
  stays_the_same({count_of + "take('key', 'q', ARRAY[1000000000, 1, 1000], ARRAY[1::bigint], "
                             "ARRAY[0::bigint], true, NULL))"});
}

BOOST_AUTO_TEST_CASE(F79_a_lock_reads_as_much_as_before) {
  stays_the_same(
      {"weir.acquire_lock('key', int4send($n), 30000000000, NULL)",
       "weir.renew_lock('key', int4send($n), (SELECT fence FROM weir.inspect_lock('key', "
       "NULL)), 30000000000, NULL)",
       "weir.release_lock('key', int4send($n), 0, NULL)"});
}

BOOST_AUTO_TEST_CASE(F79_a_permit_reads_as_much_as_before) {
  stays_the_same({permit_step(0, "int4send($n)"), permit_step(2, "int4send($n)")});
}

// Each waits for the one before it, which then gives its permit up.
BOOST_AUTO_TEST_CASE(F79_a_permit_that_was_waited_for_reads_as_much_as_before) {
  stays_the_same({permit_step(0, "int4send($n)", "30000000000"), permit_step(2, "int4send($n - 1)"),
                  permit_step(0, "int4send($n)", "30000000000")});
}

// A job with the key is enqueued, starts and is completed, and then the next one. What their queue
// costs by itself is of another test (postgres_floors).
BOOST_AUTO_TEST_CASE(F79_a_unique_key_of_jobs_reads_as_much_as_before) {
  std::string const job = "md5($n::text)::uuid";
  std::string const fence = "(SELECT fence FROM weir.find_job('q', " + job + ", NULL))";
  for (auto const strategy : {unique_strategy::until_executed, unique_strategy::until_expired,
                              unique_strategy::until_and_while_executing}) {
    bed_with_snapshot b;
    steps const cycle{
        "(SELECT 1 / (outcome = 0)::integer FROM weir.enqueue_jobs('q', 0, false, ARRAY[" + job +
            "], ARRAY['kind'::bytea], ARRAY[''::bytea], ARRAY['key'::bytea], ARRAY[100], "
            "ARRAY[25], ARRAY[" +
            std::to_string(static_cast<int>(strategy)) +
            "], ARRAY[0], ARRAY[0::bigint], ARRAY[0::bigint], ARRAY[0::bigint], "
            "ARRAY[1::bigint], ARRAY[''::bytea], true, NULL))",
        count_of + "dequeue_jobs('q', 0, ARRAY['h'::bytea], ARRAY[1], 0, 30000000000, true, NULL))",
        "(SELECT 1 / (left_ = -1)::integer FROM weir.start_job('q', " + job + ", " + fence +
            ", NULL))",
        "(SELECT 1 / c::integer FROM weir.complete_jobs(ARRAY['q'::bytea], ARRAY[0], ARRAY[" + job +
            "], ARRAY[" + fence + "], ARRAY[''::bytea], ARRAY[1], false, true, NULL) c)"};
    std::string const tables = "'keys', 'used_keys', 'guards'";
    // By then the index of keys has its second level, for which it has been read once more at each
    // look since some 1,900 cycles; a third one is far.
    b.call(cycle, 2300);
    auto const before = b.reads_of(tables, cycle, 64);
    b.call(cycle, 2000);
    auto const after = b.reads_of(tables, cycle, 64);
    b.db.must("VACUUM ANALYZE");
    auto const with_other_plans = b.reads_of(tables, cycle, 64);
    BOOST_TEST_CONTEXT(to_string(strategy)) {
      BOOST_TEST(before > 0);
      BOOST_TEST(after * 10 <= before * 13, after << " pages instead of " << before);
      BOOST_TEST(with_other_plans * 10 <= before * 13,
                 with_other_plans << " pages instead of " << before << ", with other plans");
    }
  }
}

// Nothing but another table says that it has one row.
BOOST_AUTO_TEST_CASE(R2_a_key_that_many_use_for_the_first_time_has_one_row) {
  bed b;
  constexpr int keys = 150;
  std::atomic<int> locks{0};
  std::atomic<int> permits{0};
  std::atomic<int> tokens{0};
  std::vector<std::thread> threads;
  for (int i = 0; i != 8; ++i) {
    threads.emplace_back([&, who = std::to_string(i)] {
      connection db{the_server().conninfo(b.database)};
      for (int n = 0; n != keys; ++n) {
        auto const key = "int4send(" + std::to_string(n) + ")";
        auto const yes = [&](std::string const& sql) { return db.must(sql) == "t" ? 1 : 0; };
        locks += yes("SELECT granted FROM weir.acquire_lock(" + key + ", int4send(" + who +
                     "), 3600000000000, NULL)");
        permits +=
            yes("SELECT done FROM weir.permit_steps(" + key + ", ARRAY[0], ARRAY[int4send(" + who +
                ")], ARRAY[0::bigint], ARRAY[1], ARRAY[3600000000000], "
                "ARRAY[0::bigint], false, NULL)");
        tokens += yes("SELECT allowed FROM weir.take(" + key +
                      ", 'q', ARRAY[1, 1, 3600000000000], "
                      "ARRAY[1::bigint], ARRAY[0::bigint], true, NULL)");
      }
    });
  }
  for (auto& t : threads) t.join();
  BOOST_TEST(locks == keys);
  BOOST_TEST(permits == keys);
  BOOST_TEST(tokens == keys);
  for (std::string const table : {"locks", "permit_lines", "buckets"}) {
    BOOST_TEST(b.db.number("SELECT count(*) FROM weir." + table) == keys);
  }
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.used_keys") == 3 * keys);
}

BOOST_AUTO_TEST_SUITE_END()
