// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Batches beside each other, long migrations, and names that others have put in the way (F72); and
// what goes together, by bytes (F59, F60).

#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

/// Functions that fit as well as those of the system, in a schema that the database looks at first.
std::string planted() {
  auto const name = bed::fresh("search_path = planted, pg_catalog");
  connection db{the_server().conninfo(name)};
  db.must(R"(CREATE SCHEMA planted;
CREATE FUNCTION planted.cardinality(anyarray) RETURNS integer LANGUAGE plpgsql AS
  $$BEGIN RAISE 'planted'; END$$;
CREATE FUNCTION planted.nextval(regclass) RETURNS bigint LANGUAGE plpgsql AS
  $$BEGIN RAISE 'planted'; END$$;
CREATE FUNCTION planted.hashtextextended(text, bigint) RETURNS bigint LANGUAGE plpgsql AS
  $$BEGIN RAISE 'planted'; END$$;
CREATE FUNCTION planted.octet_length(bytea) RETURNS integer LANGUAGE plpgsql AS
  $$BEGIN RAISE 'planted'; END$$;)");
  return name;
}

/// The ids of all dead letters, page by page; `between` happens after the first page.
template <class Between>
std::vector<job_id> walk(bed& b, Between between) {
  std::vector<job_id> out;
  std::string cursor;
  bool first = true;
  do {
    auto const page = b(command::list_dead_letters{"q", 1, cursor});
    BOOST_TEST_REQUIRE(page.has_value());
    for (auto const& j : page->jobs) out.push_back(j.id);
    cursor = page->cursor;
    if (first) between();
    first = false;
  } while (!cursor.empty());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_batches)

// Each has inserted its first job before it goes on to the second.
BOOST_AUTO_TEST_CASE(F72_batches_with_the_same_ids_in_opposite_order_do_not_block_each_other) {
  bed b;
  hold_second_inserts(b.db);
  postgres_store const other{b.io.get_executor(), the_server().conninfo(b.database), quick()};
  std::vector<new_job> const forth{job_of(1), job_of(2), job_of(3)};
  std::vector<new_job> const back{job_of(3), job_of(2), job_of(1)};
  auto const first = start(b.store, command::enqueue_jobs{"q", forth});
  auto const second = start(other, command::enqueue_jobs{"q", back});
  until_somebody_waits(b.io, b.database, 2);
  b.db.must("SELECT pg_advisory_unlock(4711)");
  finish(b.io, *first);
  finish(b.io, *second);
  BOOST_TEST(!**first, (*first)->message());
  BOOST_TEST(!**second, (*second)->message());
  BOOST_TEST(b.db.number("SELECT count(*) FROM weir.jobs") == 3);
}

BOOST_AUTO_TEST_CASE(F72_names_that_others_put_in_front_are_not_called) {
  auto const name = planted();
  boost::asio::io_context io;
  postgres_store const store{io.get_executor(), the_server().conninfo(name), quick()};
  BOOST_TEST_REQUIRE(!migrate(io, store));
  std::vector<new_job> const jobs{job_of(1)};
  auto const added = ask(io, store, command::enqueue_jobs{"q", jobs});
  BOOST_TEST(added.has_value());
  auto const taken = ask(io, store, command::dequeue_jobs{"q", "h", 0, 1, 1h});
  BOOST_TEST_REQUIRE(taken.has_value());
  BOOST_TEST(taken->jobs.size() == 1U);
  BOOST_TEST(ask(io, store, take_lock("k")).has_value());
  BOOST_TEST(ask(io, store, command::peek_jobs{"q", 1}).has_value());
  connection db{the_server().conninfo(name)};
  BOOST_TEST(db.number("SELECT count(*) FROM pg_proc WHERE pronamespace = 'weir'::regnamespace AND "
                       "proconfig IS NOT NULL AND NOT "
                       "'search_path=pg_catalog, pg_temp' = ANY (proconfig)") == 0);
}

BOOST_AUTO_TEST_CASE(F72_a_migration_may_take_longer_than_a_command) {
  auto const name = bed::fresh("statement_timeout = '2s'");
  connection db{the_server().conninfo(name)};
  db.must("BEGIN; CREATE SCHEMA weir");
  boost::asio::io_context io;
  auto o = quick();
  o.command_timeout = 2s;
  postgres_store const store{io.get_executor(), the_server().conninfo(name), o};
  std::optional<error_code> done;
  store.async_migrate([&](error_code ec) { done = ec; });
  until_somebody_waits(io, name);
  io.restart();
  io.run_for(3s);  // longer than either
  BOOST_TEST(!done.has_value());
  db.must("ROLLBACK");
  finish(io, done);
  BOOST_TEST(!*done, done->message());
}

BOOST_AUTO_TEST_CASE(F72_a_dead_letter_that_is_committed_late_is_listed) {
  for (bool const commits : {true, false}) {
    bed b;
    std::vector<new_job> const jobs{job_of(1), job_of(2), job_of(3)};
    BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
    auto const taken = b(command::dequeue_jobs{"q", "h", 0, 3, 1h});
    BOOST_TEST_REQUIRE(taken->jobs.size() == 3U);
    auto const bury = [&](std::size_t i) {
      return command::bury_job{"q", taken->jobs[i].id, taken->jobs[i].fence, "why"};
    };
    connection own{the_server().conninfo(b.database)};
    own.must("BEGIN");
    postgres_transaction tx{own.get()};
    BOOST_TEST(tx.execute(bury(0)).has_value());  // it has the first number
    BOOST_TEST(b(bury(1)).has_value());
    BOOST_TEST(b(bury(2)).has_value());
    auto const end = [&] { own.must(commits ? "COMMIT" : "ROLLBACK"); };
    std::size_t const there = commits ? 3 : 2;
    auto const meanwhile = walk(b, end);
    BOOST_TEST((meanwhile.empty() || meanwhile.size() == there), meanwhile.size());
    BOOST_TEST(walk(b, [] {}).size() == there);
  }
}

// A message of the server's is of a gigabyte at most, and a connection is shared.
BOOST_AUTO_TEST_CASE(F59_what_goes_together_is_bounded_in_bytes) {
  bed b;
  std::string const large(300 << 10, 'x');
  std::vector<std::vector<new_job>> batches;
  std::vector<std::shared_ptr<std::optional<error_code>>> all;
  for (std::uint8_t i = 1; i <= 60; ++i) {
    batches.push_back({job_of(i)});
    batches.back()[0].payload = large;
  }
  for (auto const& jobs : batches) {
    all.push_back(start(b.store, command::enqueue_jobs{"q", jobs}));
  }
  for (auto const& each : all) {
    finish(b.io, *each);
    BOOST_TEST(!**each, (*each)->message());
  }
  BOOST_TEST(b.db.number("SELECT max(n) FROM (SELECT count(*) AS n FROM weir.jobs "
                         "GROUP BY xmin::text) t") <= 4);
  // Dequeues that go together share one answer; who gets nothing is told that there is more.
  std::vector<result<dequeued>> got;
  for (int i = 0; i < 4; ++i) {
    b.store.async_execute(command::dequeue_jobs{"q", "h", 0, 20, 1h},
                          [&](error_code ec, dequeued d) {
                            BOOST_TEST(!ec, ec.message());
                            got.emplace_back(std::move(d));
                          });
  }
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] { return got.size() == 4U; }));
  for (auto const& each : got) {
    std::size_t bytes = 0;
    for (auto const& j : each->jobs) bytes += j.payload.size();
    BOOST_TEST(bytes <= std::size_t{4} << 20U);
    BOOST_TEST(each->more);
  }
}

BOOST_AUTO_TEST_SUITE_END()
