// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Rows that weir did not write like that (F93), numbers at their ends, and errors as what they are
// (F97).

#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace {

using namespace postgres_test;

constexpr char most[] = "9223372036854775807";

/// Has large values stored apart, and jobs enqueued, of which the first one loses a part of this
/// value, so that the server itself cannot read it.
std::vector<new_job> lose_part(bed& b, std::string const& column, std::string_view key) {
  b.db.must("CREATE EXTENSION pg_surgery; ALTER TABLE weir.jobs SET (toast_tuple_target = 128), "
            "ALTER payload SET STORAGE EXTERNAL, ALTER unique_key SET STORAGE EXTERNAL, "
            "ALTER headers SET STORAGE EXTERNAL, ALTER checkpoint SET STORAGE EXTERNAL");
  std::vector<new_job> const jobs{job_of(1, key), job_of(2), job_of(3)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  // A row is as large as that before any value of it is stored apart.
  b.db.must("UPDATE weir.jobs SET " + (column == "unique_key" ? "headers" : column) +
            " = convert_to(repeat('x', 4000), 'UTF8') WHERE unique_key <> ''");
  auto const toast =
      b.db.must("SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'weir.jobs'::regclass");
  b.db.must("SELECT heap_force_kill('" + toast + "', array_agg(ctid)) FROM " + toast +
            " WHERE chunk_seq = 0");
  return jobs;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_damage)

BOOST_AUTO_TEST_CASE(F93_a_damaged_job_is_set_aside_and_its_queue_goes_on) {
  for (std::string const damage : {"priority = -32768",
                                   "priority = -1",
                                   "priority = 256",
                                   "state = 17",
                                   "state = 2",
                                   "strategy = 9",
                                   "strategy = -1",
                                   "policy = 9",
                                   "attempts = -1",
                                   "attempts = 2147483647",
                                   "max_attempts = 0",
                                   "max_attempts = -2147483648",
                                   "max_attempts = 2147483647",
                                   "snoozes = -1",
                                   "snoozes = 2147483647",
                                   "fence = 9223372036854775807",
                                   "fence = -1",
                                   "deadline = 9223372036854775807",
                                   "deadline_from = -9223372036854775808, deadline = 1",
                                   "deadline_from = 9223372036854775807, deadline = 1",
                                   "retention = 9223372036854775807",
                                   "kind = ''",
                                   "unique_key = ''",
                                   "strategy = 0",
                                   "vesting = -9223372036854775808, kind = ''",
                                   "payload = convert_to(repeat('x', 3000000), 'UTF8')",
                                   "payload = convert_to(repeat('x', 5000000), 'UTF8')",
                                   "memo = convert_to(repeat('x', 3000), 'UTF8')",
                                   "headers = convert_to(repeat('x', 4097), 'UTF8')",
                                   "checkpoint = convert_to(repeat('x', 65537), 'UTF8')"}) {
    BOOST_TEST_CONTEXT(damage) {
      bed b;
      std::vector<new_job> const jobs{job_of(1, "key"), job_of(2)};
      BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
      b.db.must("UPDATE weir.jobs SET " + damage + " WHERE unique_key <> ''");
      BOOST_TEST(b(command::peek_jobs{"q", 10}).has_value());
      BOOST_TEST(b(command::min_vesting_time{"q"}).has_value());
      BOOST_TEST(b(command::scan_visible_queues{}).has_value());
      auto const taken = b(command::dequeue_jobs{"q", "h", 1, 10, 1h});
      BOOST_TEST_REQUIRE(taken.has_value(), taken.error().message());
      BOOST_TEST(taken->damaged == 1U);
      BOOST_TEST(taken->dead_lettered == 0U);
      BOOST_TEST_REQUIRE(taken->jobs.size() == 1U);
      BOOST_TEST((taken->jobs[0].id == id(2)));
      auto const dead = b(command::list_dead_letters{"q", 10, {}});
      BOOST_TEST_REQUIRE(dead->jobs.size() == 1U);
      BOOST_TEST((dead->jobs[0].id == id(1)));
      BOOST_TEST(dead->jobs[0].reason.starts_with(damaged_record));
      BOOST_TEST(dead->jobs[0].payload.size() <= limits::payload_size);
      BOOST_TEST(b(command::read_queue_stats{"q"})->dead == 1U);
      if (damage.find("unique_key") == std::string::npos) {
        BOOST_TEST(b.db.number(taken_keys) == 0);
      }
      BOOST_TEST((b(command::replay_dead_letter{"q", id(1)})->outcome == replay_outcome::replayed));
      BOOST_TEST(b(command::dequeue_jobs{"q", "h", 2, 10, 1h})->jobs.size() == 1U);
    }
  }
}

// It keeps what is left, and whoever claims others of the same queue is given them.
BOOST_AUTO_TEST_CASE(F93_a_job_that_the_server_cannot_read_is_set_aside_and_its_queue_goes_on) {
  for (std::string const column : {"payload", "headers", "checkpoint", "unique_key"}) {
    for (std::uint64_t const sequence : {0U, 1U}) {
      BOOST_TEST_CONTEXT(column << ", " << sequence) {
        bed b;
        auto const key = column == "unique_key" ? std::string(1000, 'k') : std::string{"key"};
        auto const jobs = lose_part(b, column, key);
        BOOST_TEST(b(command::list_jobs{"q", job_state::pending, 10, {}}).has_error());
        auto const taken = b(command::dequeue_jobs{"q", "h", sequence, 10, 1h});
        BOOST_TEST_REQUIRE(taken.has_value(), taken.error().message());
        BOOST_TEST(taken->damaged == 1U);
        BOOST_TEST(taken->dead_lettered == 0U);
        BOOST_TEST_REQUIRE(taken->jobs.size() == 2U);
        BOOST_TEST((taken->jobs[0].id == id(2)));
        auto const dead = b(command::list_dead_letters{"q", 10, {}});
        BOOST_TEST_REQUIRE(dead->jobs.size() == 1U);
        BOOST_TEST((dead->jobs[0].id == id(1)));
        BOOST_TEST(dead->jobs[0].kind == jobs[0].kind);
        BOOST_TEST(dead->jobs[0].payload.empty() == (column == "payload"));
        BOOST_TEST(dead->jobs[0].reason.starts_with(damaged_record));
        BOOST_TEST(b(command::read_queue_stats{"q"})->dead == 1U);
        std::vector<new_job> const again{job_of(4, jobs[0].unique_key)};
        auto const free = b(command::enqueue_jobs{"q", again});
        BOOST_TEST_REQUIRE(free.has_value(), free.error().message());
        BOOST_TEST((free->front().outcome == enqueue_outcome::enqueued));
        auto const next = b(command::dequeue_jobs{"q", "h", 2 * sequence, 10, 1h});
        BOOST_TEST_REQUIRE(next->jobs.size() == 1U);
        BOOST_TEST((next->jobs[0].id == id(4)));
      }
    }
  }
}

// Dequeues of other queues that go together with such a one are answered, and a store may end while
// it is asked for once more.
BOOST_AUTO_TEST_CASE(F93_a_job_that_cannot_be_read_holds_up_no_other_queue_and_no_end) {
  bed b;
  (void)lose_part(b, "payload", "key");
  constexpr int queues = 8;
  std::vector<std::string> names;
  for (int i = 0; i != queues; ++i) names.push_back("other" + std::to_string(i));
  for (auto const& name : names) {
    std::vector<new_job> const one{job_of(9)};
    BOOST_TEST(b(command::enqueue_jobs{name, one}).has_value());
  }
  names.emplace_back("q");
  std::size_t claimed = 0;
  std::size_t answered = 0;
  for (auto const& name : names) {
    b.store.async_execute(command::dequeue_jobs{name, "h", 1, 10, 1h},
                          [&](error_code ec, dequeued const& got) {
                            BOOST_TEST(!ec, ec.message());
                            claimed += got.jobs.size();
                            ++answered;
                          });
  }
  BOOST_TEST_REQUIRE(weir_test::happens(b.io, [&] { return answered == names.size(); }));
  BOOST_TEST(claimed == queues + 2U);

  for (int steps = 0; steps < 60; steps += 5) {
    bed other;
    (void)lose_part(other, "payload", "key");
    boost::asio::io_context io;
    postgres_store const store{io.get_executor(), the_server().conninfo(other.database), quick()};
    store.async_execute(command::dequeue_jobs{"q", "h", 0, 10, 1h},
                        [](error_code, dequeued const&) {});
    for (int i = 0; i != steps; ++i) io.run_one_for(2ms);
    if (steps % 2 == 0) store.close();
  }
}

// More than a step sets aside.
BOOST_AUTO_TEST_CASE(F93_a_key_whose_job_cannot_be_read_is_taken_and_no_other_is_held_up) {
  bed b;
  auto const jobs = lose_part(b, "payload", "key");
  std::vector<new_job> const more{job_of(8, "key"), job_of(9, "another")};
  auto const got = b(command::enqueue_jobs{"q", more});
  BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
  BOOST_TEST((got->front().outcome == enqueue_outcome::duplicate));
  BOOST_TEST((got->front().other == jobs.front().id));
  BOOST_TEST((got->back().outcome == enqueue_outcome::enqueued));
}

BOOST_AUTO_TEST_CASE(F93_many_damaged_jobs_are_set_aside_step_by_step) {
  bed b;
  std::vector<new_job> jobs;
  for (int i = 1; i <= 250; ++i) jobs.push_back(job_of(static_cast<std::uint8_t>(i)));
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  b.db.must("UPDATE weir.jobs SET vesting = -9223372036854775808, fence = -5 "
            "WHERE id <> '00000000-0000-0000-0000-0000000000fa'");
  std::uint32_t damaged = 0;
  for (int steps = 0; damaged < 249 && steps < 4; ++steps) {
    auto const taken = b(command::dequeue_jobs{"q", "h", 0, 10, 1h});
    BOOST_TEST_REQUIRE(taken.has_value(), taken.error().message());
    BOOST_TEST(taken->damaged <= 100U);
    BOOST_TEST(taken->more == (damaged + taken->damaged < 249));
    damaged += taken->damaged;
  }
  BOOST_TEST(damaged == 249U);
}

// A job is claimed by its id alone, and a newcomer wants the key of one that is damaged.
BOOST_AUTO_TEST_CASE(F93_who_meets_a_damaged_job_otherwise_sets_it_aside_too) {
  bed b;
  std::vector<new_job> const jobs{job_of(1, "key"), job_of(2)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  b.db.must("UPDATE weir.jobs SET fence = -1");
  BOOST_TEST(!b(command::obtain_lease{"q", id(2), "h", 1h})->has_value());
  std::vector<new_job> const again{job_of(3, "key")};
  BOOST_TEST((b(command::enqueue_jobs{"q", again})->front().outcome == enqueue_outcome::enqueued));
  BOOST_TEST(b(command::list_dead_letters{"q", 10, {}})->jobs.size() == 2U);
  BOOST_TEST(b(command::read_queue_stats{"q"})->pending == 1U);
}

BOOST_AUTO_TEST_CASE(F93_a_damaged_row_of_one_key_is_told_for_that_key_alone) {
  bed b;
  std::vector<quota> const quotas{quota::per_second(10)};
  std::vector<new_job> const jobs{job_of(1, "key")};
  auto const fails = [&](auto const& c) {
    auto const answer = b(c);
    BOOST_TEST((answer.has_error() && answer.error() == errc::store_corrupt),
               (answer.has_error() ? answer.error().message() : "no error"));
  };
  for (std::string const damage :
       {"scales = '{}'", "scales = '{1}'", "scales = '{0,0,0}'", "scales = '{NULL,1,1}'",
        "arrival = '{}'", "arrival = '{NULL,1,1,1}'", "arrival = '{NaN,1,1,1}'",
        "arrival = '{1e40,1,1,1}'", "quotas = '', scales = '{0,0,0}'"}) {
    BOOST_TEST_CONTEXT(damage) {
      BOOST_TEST(b(command::take{"k", quotas})->allowed);
      BOOST_TEST(b(command::take{"other", quotas})->allowed);
      b.db.must("UPDATE weir.buckets SET due = 0, " + damage + " WHERE key = 'k'");
      if (damage != "scales = '{}'") fails(command::take{"k", quotas});
      BOOST_TEST(b(command::peek_bucket{"other", quotas}).has_value());
      b.db.must("SELECT weir.tidy(100, NULL); UPDATE weir.buckets SET due = 0 WHERE key = 'other'; "
                "SELECT weir.tidy(100, NULL)");
      BOOST_TEST(b(command::reset_bucket{"k"}).has_value());
      BOOST_TEST(b(command::take{"k", quotas})->allowed);
      BOOST_TEST(b(command::reset_bucket{"k"}).has_value());
      BOOST_TEST(b(command::reset_bucket{"other"}).has_value());
    }
  }

  BOOST_TEST(b(take_lock("k"))->granted);
  b.db.must("UPDATE weir.locks SET fence = -1");
  fails(take_lock("k"));
  fails(command::inspect_lock{"k"});
  b.db.must(std::string{"UPDATE weir.locks SET until = 0, fence = "} + most);
  fails(take_lock("k"));
  BOOST_TEST(b(take_lock("other"))->granted);

  BOOST_TEST(b(command::acquire_permit{"k", "h", 3, 1h})->granted);
  b.db.must(
      "UPDATE weir.permit_lines SET live = -5, soonest = 0; UPDATE weir.permits SET until = 0");
  fails(command::acquire_permit{"k", "h", 3, 1h});
  fails(command::release_permit{"k", "h"});
  BOOST_TEST(b(command::acquire_permit{"other", "h", 3, 1h})->granted);
  b.db.must("UPDATE weir.permit_lines SET live = 0 WHERE key = 'other'");  // which has one
  BOOST_TEST(b(command::release_permit{"other", "h"}).has_value());
  b.db.must("SELECT weir.tidy(100, NULL)");
  for (std::string const damage :
       {"turn = -5", "fence = -5", "turn = 9223372036854775807", "fence = 9223372036854775807",
        "head = 9223372036854775807", "oldest = 9223372036854775807", "uses = 9223372036854775807",
        "uses = -5, number = 9223372036854775807"}) {
    b.db.must("DELETE FROM weir.permits; DELETE FROM weir.permit_lines");
    BOOST_TEST(b(command::acquire_permit{"k", "h", 3, 1h})->granted);
    b.db.must("UPDATE weir.permits SET until = 0; UPDATE weir.permit_lines SET soonest = 0, " +
              damage);
    b.db.must("SELECT weir.tidy(100, NULL)");  // others go on
  }
  b.db.must("DELETE FROM weir.permits; DELETE FROM weir.permit_lines");

  // A unique key whose job is gone is free.
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  b.db.must("DELETE FROM weir.jobs");
  std::vector<new_job> const again{job_of(2, "key")};
  BOOST_TEST((b(command::enqueue_jobs{"q", again})->front().outcome == enqueue_outcome::enqueued));

  BOOST_TEST(b(command::obtain_queue_lease{"q", "h", 1h})->granted);
  b.db.must(std::string{"UPDATE weir.queues SET until = 0, fence = "} + most);
  fails(command::obtain_queue_lease{"q", "h", 1h});
  BOOST_TEST(b(command::obtain_queue_lease{"r", "h", 1h})->granted);
}

BOOST_AUTO_TEST_CASE(F97_sums_and_pointers_of_damaged_rows_saturate) {
  bed b;
  std::vector<new_job> const jobs{job_of(1)}, more{job_of(2)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  for (std::string const damage :
       {"enqueued = 9223372036854775807", "dead = 9223372036854775807",
        "dead = -9223372036854775808", "enqueued = 0, completed = 9, dead = 5"}) {
    BOOST_TEST_CONTEXT(damage) {
      b.db.must("UPDATE weir.counters SET " + damage +
                "; INSERT INTO weir.counters SELECT queue, nextval('weir.stripes'), uses, shard, "
                "enqueued, "
                "completed, cancelled, purged, dead FROM weir.counters, generate_series(1, 40)");
      auto const stats = b(command::read_queue_stats{"q"});
      BOOST_TEST_REQUIRE(stats.has_value(), stats.error().message());
      BOOST_TEST(stats->pending <= stats->enqueued);
      b.db.must("SELECT weir.tidy(100, NULL)");
      BOOST_TEST(b(command::enqueue_jobs{"q", more}).has_value());
      BOOST_TEST(b(command::cancel_job{"q", id(2)}).has_value());
      b.db.must("DELETE FROM weir.counters");
      BOOST_TEST(b(command::enqueue_jobs{"q", more}).has_value());
    }
  }
  b.db.must("UPDATE weir.pointers SET pointer = -9223372036854775808; "
            "INSERT INTO weir.pointers VALUES (0, -9223372036854775808, ''), "
            "(0, 9223372036854775807, 'r'), (0, 0, convert_to(repeat('x', 2000), 'UTF8'))");
  for (std::uint64_t const entropy : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    auto const found = b(command::scan_visible_queues{.limit = 10, .entropy = entropy});
    BOOST_TEST_REQUIRE(found.has_value(), found.error().message());
    BOOST_TEST(found->queues == std::vector<std::string>{"q"});
  }
  BOOST_TEST(b(command::dequeue_jobs{"q", "h", 1, 10, 1h})->jobs.size() >= 1U);
}

// Each as what it is: not as unknown, and not as a server that is not there.
BOOST_AUTO_TEST_CASE(F97_errors_are_told_as_what_they_are) {
  bed b;
  struct {
    std::string state;
    error_code told;
  } const all[] = {
      {"42501", errc::permission_denied},
      {"53100", errc::disk_full},
      {"53200", make_error_code(boost::system::errc::not_enough_memory)},
      {"22003", errc::store_corrupt},
      {"XX001", errc::store_corrupt},
      {"25006", errc::store_read_only},
      {"40001", errc::store_unavailable},
      {"08006", errc::outcome_unknown},
      {"40003", errc::outcome_unknown},
  };
  b.db.must("CREATE TABLE public.state (state text); INSERT INTO public.state VALUES ('')");
  b.db.must("CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
            "RAISE SQLSTATE '00000' USING ERRCODE = (SELECT state FROM public.state); END$$; "
            "CREATE TRIGGER fail BEFORE INSERT ON weir.locks FOR EACH ROW EXECUTE FUNCTION "
            "public.fail()");
  for (auto const& each : all) {
    b.db.must("UPDATE public.state SET state = '" + each.state + "'");
    auto const answer = b(take_lock("k"));
    BOOST_TEST_REQUIRE(answer.has_error());
    BOOST_TEST((answer.error() == each.told), each.state << ": " << answer.error().message());
  }
}

BOOST_AUTO_TEST_SUITE_END()
