// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands inside an application's own transaction, and what others meet with meanwhile.

#include "mistakes.hpp"
#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <vector>

namespace {

using namespace postgres_test;

command::enqueue_jobs enqueue(std::string_view queue, std::vector<new_job> const& jobs) {
  return {queue, jobs};
}

struct application : bed {
  explicit application(postgres_options const& o = quick()) : bed{o} {
    db.must("CREATE TABLE mine (x int)");
  }

  std::int64_t jobs() { return db.number("SELECT count(*) FROM weir.jobs"); }
  std::int64_t keys() { return db.number("SELECT count(*) FROM weir.keys"); }

  connection own{the_server().conninfo(database)};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_transaction_)

BOOST_AUTO_TEST_CASE(jobs_and_keys_exist_if_and_only_if_the_transaction_commits) {
  application a;
  std::vector<new_job> const jobs{job_of(1, "key"), job_of(2)};
  for (bool const commits : {false, true}) {
    a.own.must("BEGIN; INSERT INTO mine VALUES (1)");
    postgres_transaction tx{a.own.get()};
    auto const done = tx.execute(enqueue("q", jobs));
    BOOST_TEST_REQUIRE(done.has_value());
    BOOST_TEST(done->size() == 2U);
    BOOST_TEST(tx.execute(command::find_job{"q", id(1)})->has_value());
    BOOST_TEST(!a(command::find_job{"q", id(1)})->has_value());
    BOOST_TEST(a(command::scan_visible_queues{})->queues.empty());
    a.own.must(commits ? "COMMIT" : "ROLLBACK");
    BOOST_TEST(a.db.number("SELECT count(*) FROM mine") == (commits ? 1 : 0));
    BOOST_TEST(a.jobs() == (commits ? 2 : 0));
    BOOST_TEST(a.keys() == (commits ? 1 : 0));
    BOOST_TEST(a(command::find_job{"q", id(1)})->has_value() == commits);
    BOOST_TEST(a(command::read_queue_stats{"q"})->enqueued == (commits ? 2U : 0U));
    BOOST_TEST(a(command::scan_visible_queues{})->queues.size() == (commits ? 1U : 0U));
  }
}

// Between any two steps, and by the end of the process as the server sees it.
BOOST_AUTO_TEST_CASE(an_application_that_dies_leaves_nothing) {
  application a;
  std::vector<new_job> const jobs{job_of(1, "key")};
  for (int const steps : {1, 2, 3}) {
    std::optional<connection> dies{std::in_place, the_server().conninfo(a.database)};
    dies->must("BEGIN");
    postgres_transaction tx{dies->get()};
    BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
    if (steps > 1) dies->must("INSERT INTO mine VALUES (1)");
    if (steps > 2) BOOST_TEST(tx.execute(enqueue("q2", jobs)).has_value());
    auto const pid = PQbackendPID(dies->get());
    a.db.must("SELECT pg_terminate_backend(" + std::to_string(pid) + ", 60000)");
    dies.reset();
    BOOST_TEST(a.jobs() == 0);
    BOOST_TEST(a.keys() == 0);
    BOOST_TEST(a.db.number("SELECT count(*) FROM mine") == 0);
  }
  BOOST_TEST((a(enqueue("q", jobs))->front().outcome == enqueue_outcome::enqueued));
}

// F50
BOOST_AUTO_TEST_CASE(an_open_transaction_holds_up_nobody_but_who_wants_its_key) {
  auto o = quick();
  o.connections = 2;
  application a{o};
  let_locks_take_long(a.db);
  a.own.must("BEGIN");
  postgres_transaction tx{a.own.get()};
  std::vector<new_job> const held{job_of(1, "key")};
  BOOST_TEST(tx.execute(enqueue("q", held)).has_value());
  std::vector<new_job> const same{job_of(2, "key")};
  auto const waits = start(a.store, enqueue("q", same));
  until_somebody_waits(a.io, a.database);

  std::vector<new_job> const plain{job_of(3)};
  BOOST_TEST(a(enqueue("q", plain)).has_value());
  auto const taken = a(command::dequeue_jobs{"q", "h", 1, 10, 1min});
  BOOST_TEST_REQUIRE(taken.has_value());
  BOOST_TEST_REQUIRE(taken->jobs.size() == 1U);
  std::vector<finished_job> const done{{plain[0].id, taken->jobs[0].fence, {}}};
  BOOST_TEST(a(command::complete_jobs{"q", done}).has_value());
  BOOST_TEST(a(command::update_queue_pointer{"q"}).has_value());
  BOOST_TEST(!waits->has_value());

  a.own.must("COMMIT");
  finish(a.io, *waits);
  BOOST_TEST(!**waits, (*waits)->message());
  auto const late = a(enqueue("q", same));
  BOOST_TEST_REQUIRE(late.has_value());
  BOOST_TEST((late->front().outcome == enqueue_outcome::duplicate));
  BOOST_TEST((late->front().other == id(1)));
}

// F50: and who wants it does not wait for ever, nor do others with keys of their own behind that.
BOOST_AUTO_TEST_CASE(who_wants_the_key_of_an_open_transaction_is_told_to_come_back) {
  auto o = quick();
  o.connections = 2;
  application a{o};
  a.own.must("BEGIN");
  postgres_transaction tx{a.own.get()};
  std::vector<new_job> const held{job_of(1, "key")};
  BOOST_TEST(tx.execute(enqueue("q", held)).has_value());
  std::vector<new_job> const same{job_of(2, "key")};
  std::vector<new_job> const other{job_of(3, "another key")};
  auto const refused = start(a.store, enqueue("q", same));
  auto const behind = start(a.store, enqueue("q", other));
  finish(a.io, *refused);
  finish(a.io, *behind);
  BOOST_TEST((**refused == errc::store_unavailable), (*refused)->message());
  BOOST_TEST(!**behind, (*behind)->message());
  a.own.must("ROLLBACK");
  BOOST_TEST((a(enqueue("q", same))->front().outcome == enqueue_outcome::enqueued));
}

// Nor does an enqueue wait for who has the queue's pointer, or its counters: it would be refused
// after a second.
BOOST_AUTO_TEST_CASE(an_enqueue_waits_for_nobody_who_is_at_the_queue_itself) {
  application a;
  std::vector<new_job> const first{job_of(1)};
  BOOST_TEST(a(enqueue("q", first)).has_value());
  a.own.must("BEGIN; SELECT pg_advisory_xact_lock(weir.queue_lock('q'))");
  for (std::string const table : {"pointers", "counters"}) {
    a.own.must("SELECT 1 FROM weir." + table + " FOR UPDATE");
  }
  std::vector<new_job> const plain{job_of(2)};
  std::vector<new_job> const unique{job_of(3, "key")};
  BOOST_TEST(a(enqueue("q", plain)).has_value());
  BOOST_TEST(a(enqueue("q", unique)).has_value());
  auto const taken = a(command::dequeue_jobs{"q", "h", 1, 10, 1min});
  BOOST_TEST_REQUIRE(taken.has_value());
  BOOST_TEST(taken->jobs.size() == 3U);
  a.own.must("ROLLBACK");
  BOOST_TEST(a(command::read_queue_stats{"q"})->enqueued == 3U);
}

// F44: nothing that a handler could be waited for with.
BOOST_AUTO_TEST_CASE(no_transaction_stays_open_when_a_command_has_ended) {
  for (std::string const level : {"read committed", "serializable"}) {
    bed b{quick(), "default_transaction_isolation = '" + level + "'"};
    std::vector<new_job> jobs{job_of(1, "key"), job_of(2)};
    jobs[1].strategy = unique_strategy::while_executing;
    jobs[1].unique_key = "another key";
    BOOST_TEST(b(enqueue("q", jobs)).has_value());
    auto const taken = b(command::dequeue_jobs{"q", "h", 1, 10, 1min});
    BOOST_TEST_REQUIRE(taken.has_value());
    for (auto const& j : taken->jobs) {
      BOOST_TEST(b(command::start_job{"q", j.id, j.fence}).has_value());
    }
    BOOST_TEST(b(command::acquire_permit{"k", "h", 1, 1min}).has_value());
    auto const count = [&](std::string const& what) {
      return b.db.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                         "AND backend_type = 'client backend' AND pid <> pg_backend_pid()" +
                         what);
    };
    BOOST_TEST(count("") >= 1);
    // A session may be about to say that its last one is over; one that is kept open stays.
    BOOST_TEST(weir_test::happens([&] {
                 return count(" AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)") == 0;
               }),
               level);
  }
}

// F41, F48: whatever others do to the queue's pointer before it commits.
BOOST_AUTO_TEST_CASE(a_job_is_found_that_was_enqueued_while_the_pointer_moved) {
  application a;
  std::vector<new_job> const first{job_of(1)};
  BOOST_TEST(a(enqueue("q", first)).has_value());
  a.own.must("BEGIN");
  postgres_transaction tx{a.own.get()};
  std::vector<new_job> const second{job_of(2)};
  BOOST_TEST(tx.execute(enqueue("q", second)).has_value());
  auto const taken = a(command::dequeue_jobs{"q", "h", 1, 10, 1min});
  std::vector<finished_job> const done{{id(1), taken->jobs.at(0).fence, {}}};
  BOOST_TEST(a(command::complete_jobs{"q", done}).has_value());
  BOOST_TEST(!a(command::update_queue_pointer{"q"})->has_value());
  BOOST_TEST(a(command::gc_stale_pointers{0, 10, duration::zero()}).has_value());
  BOOST_TEST(a(command::scan_visible_queues{})->queues.empty());
  a.own.must("COMMIT");
  BOOST_TEST(a(command::scan_visible_queues{})->queues.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_command_that_fails_leaves_the_rest_of_the_transaction_standing) {
  application a;
  std::vector<new_job> const jobs{job_of(1, "key")};
  connection holder{the_server().conninfo(a.database)};
  holder.must("BEGIN");
  postgres_transaction elsewhere{holder.get()};
  BOOST_TEST(elsewhere.execute(enqueue("q", jobs)).has_value());

  a.own.must("BEGIN; INSERT INTO mine VALUES (1)");
  postgres_transaction tx{a.own.get()};
  BOOST_TEST((tx.execute(enqueue("q", jobs)).error() == errc::store_unavailable));
  std::vector<new_job> const other{job_of(2)};
  BOOST_TEST(tx.execute(enqueue("q", other)).has_value());
  BOOST_TEST((tx.execute(command::extend_lease{"q", id(9), 1, 1s}).error() == errc::lease_lost));
  a.own.must("COMMIT");
  holder.must("ROLLBACK");
  BOOST_TEST(a.db.number("SELECT count(*) FROM mine") == 1);
  BOOST_TEST(a.jobs() == 1);
}

BOOST_AUTO_TEST_CASE(every_noun_works_in_a_transaction_and_is_undone_with_it) {
  application a;
  a.own.must("BEGIN");
  postgres_transaction tx{a.own.get()};
  std::vector<new_job> const jobs{job_of(1)};
  quota const quotas[] = {quota::per_second(1)};
  BOOST_TEST(tx.execute(command::acquire_lock{"k", "h", 1min})->granted);
  BOOST_TEST(tx.execute(command::acquire_permit{"k", "h", 1, 1min})->granted);
  BOOST_TEST(tx.execute(command::take{"k", quotas})->allowed);
  BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
  auto const taken = tx.execute(command::dequeue_jobs{"q", "h", 1, 1, 1min});
  BOOST_TEST_REQUIRE(taken.has_value());
  BOOST_TEST_REQUIRE(taken->jobs.size() == 1U);
  std::vector<finished_job> const done{{id(1), taken->jobs[0].fence, {}}};
  BOOST_TEST(
      (tx.execute(command::complete_jobs{"q", done})->front() == complete_outcome::completed));
  a.own.must("ROLLBACK");
  BOOST_TEST(a(command::acquire_lock{"k", "other", 1min})->granted);
  BOOST_TEST(a(command::acquire_permit{"k", "other", 1, 1min})->granted);
  BOOST_TEST(a(command::take{"k", quotas})->allowed);
  BOOST_TEST(a(command::read_queue_stats{"q"})->enqueued == 0U);
}

BOOST_AUTO_TEST_CASE(it_says_what_is_wrong_with_the_transaction) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  postgres_transaction tx{a.own.get()};
  auto const said = [&](errc e) {
    auto const ec = tx.execute(enqueue("q", jobs)).error();
    BOOST_TEST((ec == e));
    return ec.message();
  };
  weir_test::compare_row("postgres.no_begin", "error: " + said(errc::not_in_transaction));
  a.own.must("BEGIN READ ONLY");
  BOOST_TEST((tx.execute(enqueue("q", jobs)).error() == errc::store_read_only));
  BOOST_TEST(tx.execute(command::find_job{"q", id(1)}).has_value());
  a.own.must("COMMIT; BEGIN");
  PQclear(PQexec(a.own.get(), "SELECT 1 / 0"));
  weir_test::compare_row("postgres.failed_transaction", "error: " + said(errc::not_in_transaction));
  a.own.must("ROLLBACK; BEGIN");
  PQsetnonblocking(a.own.get(), 1);
  BOOST_TEST(said(errc::invalid_option).ends_with("in non-blocking mode"));
  PQsetnonblocking(a.own.get(), 0);
  postgres_options o;
  o.schema = "elsewhere";
  postgres_transaction nowhere{a.own.get(), o};
  BOOST_TEST((nowhere.execute(enqueue("q", jobs)).error() == errc::schema_outdated));
  o.schema = "no name; DROP";
  postgres_transaction nonsense{a.own.get(), o};
  BOOST_TEST((nonsense.execute(enqueue("q", jobs)).error() == errc::invalid_option));
  o.schema = "weir";
  o.shards = 2;
  postgres_transaction sharded{a.own.get(), o};
  BOOST_TEST((sharded.execute(enqueue("q", jobs)).error() == errc::invalid_option));
  BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
  a.own.must("COMMIT");
  BOOST_TEST(a.jobs() == 1);
  a.own.must("BEGIN");
  PQclear(PQexec(a.own.get(), "SELECT pg_terminate_backend(pg_backend_pid())"));
  BOOST_TEST(said(errc::store_unavailable).ends_with("the connection is lost"));
}

BOOST_AUTO_TEST_CASE(F86_it_says_which_option_does_not_fit_the_schema) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  a.own.must("CREATE SCHEMA theirs; CREATE TABLE theirs.state (version text, shards text); BEGIN");
  postgres_options o;
  o.shards = 2;
  postgres_transaction sharded{a.own.get(), o};
  auto const said = sharded.execute(enqueue("q", jobs)).error();
  BOOST_TEST((said == errc::invalid_option));
  BOOST_TEST(said.message().ends_with("postgres_options::shards is 2, and the database has 1"));
  a.own.must("SAVEPOINT mine; UPDATE weir.state SET version = version + 1");
  BOOST_TEST((sharded.execute(enqueue("q", jobs)).error() == errc::schema_too_new));
  a.own.must("ROLLBACK TO mine; COMMIT; BEGIN");

  o.schema = "theirs";
  for (std::string const values : {"('new', 'many')", "(NULL, NULL)"}) {
    a.own.must("SAVEPOINT mine; INSERT INTO theirs.state VALUES " + values);
    postgres_transaction foreign{a.own.get(), o};
    BOOST_TEST((foreign.execute(enqueue("q", jobs)).error() == errc::store_foreign), values);
    a.own.must("ROLLBACK TO mine");
  }
  postgres_transaction tx{a.own.get()};
  BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
  a.own.must("COMMIT");
  BOOST_TEST(a.jobs() == 1);
}

BOOST_AUTO_TEST_CASE(F51_what_somebody_else_migrates_meanwhile_is_seen_by_the_next_command) {
  application a;
  std::vector<new_job> const jobs{job_of(1)};
  postgres_transaction tx{a.own.get()};
  a.own.must("BEGIN");
  BOOST_TEST(tx.execute(enqueue("q", jobs)).has_value());
  a.own.must("COMMIT");
  a.db.must("UPDATE weir.state SET version = version + 1");
  a.own.must("BEGIN; INSERT INTO mine VALUES (1)");
  std::vector<new_job> const late{job_of(2)};
  auto const refused = tx.execute(enqueue("q", late));
  BOOST_TEST((refused.has_error() && refused.error() == errc::schema_too_new));
  a.own.must("COMMIT");
  BOOST_TEST(a.db.number("SELECT count(*) FROM mine") == 1);
  BOOST_TEST(a.jobs() == 1);
  a.db.must("UPDATE weir.state SET version = version - 1");
  a.own.must("BEGIN");
  BOOST_TEST(tx.execute(enqueue("q", late)).has_value());
  a.own.must("COMMIT");
  BOOST_TEST(a.jobs() == 2);
}

// The transaction is to be run again, which a server that is away would not ask for.
BOOST_AUTO_TEST_CASE(F86_it_says_that_a_transaction_cannot_go_on_beside_others) {
  application a;
  std::vector<new_job> const first{job_of(1, "key")};
  std::vector<new_job> const second{job_of(2, "key")};
  a.own.must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM mine");
  BOOST_TEST(a(enqueue("q", first)).has_value());
  postgres_transaction tx{a.own.get()};
  auto const refused = tx.execute(enqueue("q", second)).error();
  BOOST_TEST((refused == errc::store_unavailable));
  BOOST_TEST((refused.message().find("could not serialize access") != std::string::npos),
             refused.message());
  a.own.must("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ");
  auto const again = tx.execute(enqueue("q", second));
  BOOST_TEST_REQUIRE(again.has_value());
  BOOST_TEST((again->front().outcome == enqueue_outcome::duplicate));
  a.own.must("COMMIT");
}

BOOST_AUTO_TEST_CASE(a_serializable_transaction_commits_what_nobody_contends_with) {
  application a;
  std::vector<new_job> const first{job_of(1)};
  BOOST_TEST(a(enqueue("q", first)).has_value());
  a.own.must("BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO mine VALUES (1)");
  postgres_transaction tx{a.own.get()};
  std::vector<new_job> const second{job_of(2, "key")};
  BOOST_TEST(tx.execute(enqueue("q", second)).has_value());
  std::vector<new_job> const third{job_of(3)};
  BOOST_TEST(a(enqueue("q", third)).has_value());
  a.own.must("COMMIT");
  BOOST_TEST(a.jobs() == 3);
  BOOST_TEST(a(command::read_queue_stats{"q"})->pending == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
