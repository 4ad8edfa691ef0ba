// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the store costs beside plain SQL, sent by pgbench (prepared) over as many connections to the
// same server, in turns, medians of the rounds; with a commit that waits for the disk, and without.
// And what a dequeue costs in the server where a million jobs are not due yet, or a million were
// completed, beside one of an almost empty table.
//
//     bench_postgres [--jobs N] [--flight N] [--connections N] [--rounds N] [--growth N] [--json F]
//
// There are two plain queues. The equivalent one does in its statements what the same promises ask
// for: a job's id is taken once; a claim is in order of priority and vesting time, with a lease,
// its holder and a fence, and counts the attempt, if there is one left and the queue is not paused;
// what ends is ended by who holds it, while the lease lives, and lets go of its unique key; what
// came in and what was completed is counted, by stripes, and the queues with work are found by
// pointers. It still buries nothing, keeps no results, tells nobody, and does not say when to come
// back. The lean one has no keys, counters or pauses either: a table, an index, and whoever may
// delete.

#include "weir/store/postgres.hpp"

#include "postgres_rig.hpp"
#include "postgres_worker.hpp"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using weir_bench::median;
using weir_bench::rig;
using weir_bench::session;

std::string const payload(100, 'p');
constexpr std::uint32_t batch = 100;

struct settings {
  std::uint64_t jobs = 20'000;
  std::uint64_t flight = 100;
  std::uint64_t connections = 8;
  std::uint64_t rounds = 5;
  std::uint64_t growth = 1'000'000;
  std::string json;
};

// ------------------------------------------------------------------------------------------ plain

constexpr std::string_view plain_tables = R"sql(
CREATE SCHEMA lean;
CREATE SEQUENCE lean.fences;
CREATE TABLE lean.jobs (
  id uuid PRIMARY KEY, queue text NOT NULL, priority smallint NOT NULL, vesting timestamptz NOT NULL,
  attempts int NOT NULL DEFAULT 0, max_attempts int NOT NULL, holder text, fence bigint,
  kind text NOT NULL, payload bytea NOT NULL)
  WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ON lean.jobs (queue, priority, vesting, id);
CREATE TABLE lean.pointers (queue text NOT NULL, due timestamptz NOT NULL);
CREATE INDEX ON lean.pointers (queue, due);

CREATE SCHEMA plain;
CREATE SEQUENCE plain.fences;
CREATE TABLE plain.jobs (
  queue text NOT NULL, id uuid NOT NULL, priority smallint NOT NULL, vesting timestamptz,
  state smallint NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0, max_attempts int NOT NULL,
  holder text, fence bigint, unique_key text, kind text NOT NULL, payload bytea NOT NULL,
  result bytea, enqueued timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (queue, id))
  WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ON plain.jobs (queue, priority, vesting, id) WHERE vesting IS NOT NULL;
CREATE INDEX ON plain.jobs (queue, holder) WHERE holder IS NOT NULL;
CREATE TABLE plain.pointers (queue text NOT NULL, due timestamptz NOT NULL);
CREATE INDEX ON plain.pointers (queue, due);
CREATE TABLE plain.queues (queue text PRIMARY KEY, paused boolean NOT NULL);
CREATE TABLE plain.keys (queue text NOT NULL, key text NOT NULL, owner uuid NOT NULL,
  PRIMARY KEY (queue, key));
CREATE TABLE plain.counters (queue text NOT NULL, stripe int NOT NULL, enqueued bigint NOT NULL,
  completed bigint NOT NULL, PRIMARY KEY (queue, stripe)) WITH (fillfactor = 50);
INSERT INTO plain.counters SELECT 'queue', i, 0, 0 FROM generate_series(1, 64) i;
)sql";

/// More stripes than connections, so that there is always one.
constexpr std::string_view plain_stripe =
    " WHERE c.queue = 'queue' AND c.stripe = (SELECT f.stripe FROM plain.counters f "
    "WHERE f.queue = 'queue' LIMIT 1 FOR UPDATE SKIP LOCKED)";

/// The scripts of a plain queue.
struct plain_queue {
  std::string enqueue;
  std::string consume_one;
  std::string consume_many;
};

std::string pointer_of(std::string const& schema) {
  return "INSERT INTO " + schema +
         ".pointers SELECT 'queue', vesting FROM job WHERE NOT EXISTS (SELECT FROM " + schema +
         ".pointers p WHERE p.queue = 'queue' AND p.due <= job.vesting)";
}

std::string claim(std::string const& schema, std::uint32_t limit, std::string const& which) {
  return "UPDATE " + schema +
         ".jobs j SET vesting = clock_timestamp() + interval '1 hour', attempts = attempts + 1, "
         "holder = 'holder', fence = nextval('" +
         schema + ".fences') FROM (SELECT queue, id FROM " + schema +
         ".jobs WHERE queue = 'queue' AND vesting <= now() " + which +
         "ORDER BY priority, vesting, id LIMIT " + std::to_string(limit) +
         " FOR UPDATE SKIP LOCKED) c WHERE j.queue = c.queue AND j.id = c.id "
         "RETURNING j.id, j.fence, j.attempts, j.kind, j.payload";
}

/// Of what it got it sends back only what it needs next.
std::string claim_many(std::string const& schema, std::string const& which) {
  return "WITH got AS (" + claim(schema, batch, which) +
         ") SELECT array_agg(id) AS ids, array_agg(fence) AS fences FROM got \\gset\n";
}

constexpr std::string_view one_ended = "j.id = :id AND j.fence = :fence::bigint";
constexpr std::string_view many_ended = "j.id = u.id AND j.fence = u.fence";
constexpr std::string_view those_ended =
    " USING unnest(:ids::uuid[], :fences::bigint[]) u(id, fence)";

plain_queue lean() {
  auto const end = [](std::string_view from, std::string_view which) {
    return "DELETE FROM lean.jobs j" + std::string{from} + " WHERE j.holder = 'holder' AND " +
           std::string{which} + ";\n";
  };
  return {"WITH job AS (INSERT INTO lean.jobs (id, queue, priority, vesting, max_attempts, kind, "
          "payload) VALUES (gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'kind', '" +
              payload + "') RETURNING vesting) " + pointer_of("lean") + ";\n",
          claim("lean", 1, "") + " \\gset\n" + end("", one_ended),
          claim_many("lean", "") + end(those_ended, many_ended)};
}

plain_queue equivalent() {
  std::string const which = "AND attempts < max_attempts AND NOT EXISTS "
                            "(SELECT FROM plain.queues q WHERE q.queue = 'queue' AND q.paused) ";
  auto const end = [](std::string_view from, std::string_view those) {
    return "WITH ended AS (DELETE FROM plain.jobs j" + std::string{from} +
           " WHERE j.queue = 'queue' AND j.holder = 'holder' AND j.state = 0 AND j.vesting > now() "
           "AND " +
           std::string{those} +
           " RETURNING j.id, j.unique_key), freed AS (DELETE FROM plain.keys k USING ended e WHERE "
           "k.queue = 'queue' AND k.key = e.unique_key AND k.owner = e.id) "
           "UPDATE plain.counters c SET completed = c.completed + (SELECT count(*) FROM ended)" +
           std::string{plain_stripe} + ";\n";
  };
  return {"WITH job AS (INSERT INTO plain.jobs (id, queue, priority, vesting, max_attempts, kind, "
          "payload) VALUES (gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'kind', '" +
              payload + "') ON CONFLICT DO NOTHING RETURNING vesting), pointer AS (" +
              pointer_of("plain") +
              ") UPDATE plain.counters c SET enqueued = c.enqueued + (SELECT count(*) FROM job)" +
              std::string{plain_stripe} + ";\n",
          claim("plain", 1, which) + " \\gset\n" + end("", one_ended),
          claim_many("plain", which) + end(those_ended, many_ended)};
}

// ------------------------------------------------------------------------------------------ weir

class ids {
 public:
  job_id operator()() {
    job_id out{};
    for (auto& byte : out) byte = static_cast<std::uint8_t>(random_());
    return out;
  }

 private:
  std::mt19937_64 random_{std::random_device{}()};
};

new_job job_of(job_id const& id) {
  new_job j;
  j.id = id;
  j.kind = "kind";
  j.payload = payload;
  return j;
}

double weir_enqueue(rig& r, std::uint64_t jobs, std::uint64_t flight) {
  ids id;
  return r.together(jobs, flight, [&](std::uint64_t, std::function<void()> next) {
    std::array const one{job_of(id())};
    r.store().async_execute(
        command::enqueue_jobs{"queue", one},
        [next = std::move(next)](error_code ec, command::enqueue_jobs::result const& done) {
          if (ec || done.size() != 1) throw std::runtime_error{"enqueue: " + ec.message()};
          next();
        });
  });
}

/// Jobs in a second.
double weir_consume(rig& r, std::uint64_t jobs, std::uint64_t flight, std::uint32_t limit) {
  auto const pairs =
      r.together(jobs / limit, flight, [&](std::uint64_t, std::function<void()> next) {
        auto const complete = [&r, limit, next = std::move(next)](error_code ec,
                                                                  dequeued const& d) {
          if (ec || d.jobs.size() != limit) {
            throw std::runtime_error{"dequeue: " + std::to_string(d.jobs.size()) + ' ' +
                                     ec.message()};
          }
          std::vector<finished_job> ended;
          for (auto const& j : d.jobs) ended.push_back({j.id, j.fence, {}});
          r.store().async_execute(
              command::complete_jobs{"queue", ended},
              [next](error_code failed, command::complete_jobs::result const& all) {
                if (failed || std::ranges::count(all, complete_outcome::completed) !=
                                  static_cast<std::ptrdiff_t>(all.size())) {
                  throw std::runtime_error{"complete: " + failed.message()};
                }
                next();
              });
        };
        r.store().async_execute(command::dequeue_jobs{"queue", "holder", 0, limit, 1h}, complete);
      });
  return pairs * limit;
}

// ------------------------------------------------------------------------------------------ rates

struct rate {
  std::string what;
  std::vector<double> weir;
  std::vector<double> plain;  // the equivalent queue's
  std::vector<double> lean;
};

void empty(rig& r) {
  r.db().ask("TRUNCATE weir.jobs, weir.pointers, weir.counters, plain.jobs, plain.pointers, "
             "lean.jobs, lean.pointers");
}

/// Fills both tables with the same number of jobs.
void fill(rig& r, std::uint64_t jobs) {
  empty(r);
  auto const n = std::to_string(jobs);
  for (std::string const schema : {"plain", "lean"}) {
    r.db().ask("INSERT INTO " + schema +
               ".jobs (id, queue, priority, vesting, max_attempts, kind, payload) SELECT "
               "gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'kind', '" +
               payload + "' FROM generate_series(1, " + n + ")");
    r.db().ask("VACUUM ANALYZE " + schema + ".jobs");
  }
  r.db().ask(
      "INSERT INTO weir.jobs (queue, id, priority, strategy, policy, max_attempts, vesting, "
      "enqueued, deadline_from, deadline, retention, unique_key, kind, payload) SELECT 'queue', "
      "gen_random_uuid(), 0, 0, 0, 25, t, t, t, 0, 0, '', 'kind', '" +
      payload + "' FROM (SELECT weir.clock() AS t FROM generate_series(1, " + n +
      ")) i; INSERT INTO weir.pointers VALUES (0, 0, 'queue')");
  r.db().ask("VACUUM ANALYZE weir.jobs");
  r.db().ask("CHECKPOINT");
}

std::vector<rate> rates(postgres_test::server const& server, settings const& s, bool durable) {
  rig r{server, durable ? "durable" : "quick", static_cast<std::uint32_t>(s.connections)};
  r.db().ask(std::string{plain_tables});
  r.db().ask("ALTER DATABASE " + std::string{durable ? "durable" : "quick"} +
             " SET synchronous_commit = " + (durable ? "on" : "off"));
  auto const of = [&](std::string const& what, std::uint64_t flight) {
    return rate{what + ", " + std::to_string(flight) + " in flight", {}, {}, {}};
  };
  std::vector<rate> out{
      of("enqueue", s.flight), of("enqueue", s.connections), of("dequeue + complete 1", s.flight),
      of("dequeue + complete 1", s.connections), of("dequeue + complete 100", s.connections)};
  // What the connections and plans cost to make is nobody's.
  weir_enqueue(r, 1000, s.flight);
  weir_consume(r, 1000, s.flight, 1);
  auto const plain = equivalent();
  auto const bare = lean();
  for (std::uint64_t round = 0; round != s.rounds; ++round) {
    std::array const flights{s.flight, s.connections};
    for (std::size_t i = 0; i != flights.size(); ++i) {
      empty(r);
      auto& enqueue = out[i];
      auto& consume = out[2 + i];
      enqueue.weir.push_back(weir_enqueue(r, s.jobs, flights[i]));
      enqueue.plain.push_back(r.pgbench(plain.enqueue, s.jobs));
      enqueue.lean.push_back(r.pgbench(bare.enqueue, s.jobs));
      fill(r, s.jobs + s.jobs / 10);
      consume.weir.push_back(weir_consume(r, s.jobs, flights[i], 1));
      consume.plain.push_back(r.pgbench(plain.consume_one, s.jobs));
      consume.lean.push_back(r.pgbench(bare.consume_one, s.jobs));
    }
    fill(r, 3 * s.jobs);
    out[4].weir.push_back(weir_consume(r, 2 * s.jobs, s.connections, batch));
    out[4].plain.push_back(batch * r.pgbench(plain.consume_many, 2 * s.jobs / batch));
    out[4].lean.push_back(batch * r.pgbench(bare.consume_many, 2 * s.jobs / batch));
  }
  return out;
}

// ----------------------------------------------------------------------------------------- growth

struct cost {
  std::string what;
  double one = 0;  // microseconds
  double ten = 0;
};

/// Tables with two levels, of which the first has jobs that are not due, and the second `due` ones.
class grown {
 public:
  grown(postgres_test::server const& server, std::string const& name) : rig_{server, name, 1} {
    // Each dequeue is a transaction; its time is that in the server.
    rig_.db().ask(R"sql(
SET synchronous_commit = off;
CREATE TABLE took (n integer, us double precision);
CREATE PROCEDURE measure(n integer, times integer) LANGUAGE plpgsql AS $$
DECLARE
  start timestamptz;
  ended timestamptz;
  got uuid[];
  fences bigint[];
BEGIN
  FOR i IN 1 .. times LOOP
    start := clock_timestamp();
    SELECT array_agg(d.id), array_agg(d.fence) INTO got, fences
      FROM weir.dequeue_jobs('queue', 0, ARRAY['h'::bytea], ARRAY[n], 0, 3600000000000, true, NULL) d
      WHERE d.id IS NOT NULL;
    ended := clock_timestamp();
    COMMIT;
    IF cardinality(got) <> n THEN
      RAISE EXCEPTION 'no jobs';
    END IF;
    PERFORM weir.complete_jobs('queue', 0, got, fences, array_fill(''::bytea, ARRAY[n]), true, NULL);
    INSERT INTO took VALUES (n, extract(epoch FROM ended - start) * 1000000);
    COMMIT;
  END LOOP;
END $$;
CREATE PROCEDURE complete_many(jobs integer) LANGUAGE plpgsql AS $$
DECLARE
  got uuid[];
  fences bigint[];
BEGIN
  FOR i IN 1 .. jobs / 1000 LOOP
    SELECT array_agg(d.id), array_agg(d.fence) INTO got, fences
      FROM weir.dequeue_jobs('queue', 0, ARRAY['h'::bytea], ARRAY[1000], 0, 3600000000000, true,
        NULL) d WHERE d.id IS NOT NULL;
    COMMIT;
    PERFORM weir.complete_jobs('queue', 0, got, fences, array_fill(''::bytea, ARRAY[1000]), true,
                               NULL);
    COMMIT;
  END LOOP;
END $$)sql");
    add(1, 0, 24 * 3600);
  }

  session& db() noexcept { return rig_.db(); }

  void add(std::uint64_t jobs, int level, int seconds) {
    rig_.db().ask(
        "INSERT INTO weir.jobs (queue, id, priority, strategy, policy, max_attempts, vesting, "
        "enqueued, deadline_from, deadline, retention, unique_key, kind, payload) SELECT 'queue', "
        "gen_random_uuid(), " +
        std::to_string(level) + ", 0, 0, 25, t + " + std::to_string(seconds) +
        " * 1000000000::bigint + i, t, t, 0, 0, '', 'kind', '" + payload +
        "' FROM (SELECT weir.clock() AS t, i FROM generate_series(1, " + std::to_string(jobs) +
        ") i) i");
  }

  void measure(int n, int times) {
    rig_.db().ask("CALL measure(" + std::to_string(n) + ", " + std::to_string(times) + ")");
  }
  double took(int n) {
    return std::strtod(rig_.db()
                           .ask("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY us) FROM took "
                                "WHERE n = " +
                                std::to_string(n))
                           .c_str(),
                       nullptr);
  }

 private:
  rig rig_;
};

std::vector<cost> growth(postgres_test::server const& server, settings const& s) {
  constexpr int chunk = 20;
  constexpr int chunks = 10;
  constexpr std::uint64_t due = 1 + 11 * chunk * (chunks + 1);
  grown small{server, "small"};
  grown future{server, "future"};
  grown completed{server, "completed"};
  grown seen{server, "seen"};
  future.add(s.growth, 0, 24 * 3600);
  session old{server, "seen"};
  old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ");
  old.ask("SELECT count(*) FROM weir.state");
  for (auto* const each : {&completed, &seen}) {
    auto const many = each == &seen ? s.growth / 10 : s.growth;
    each->add(many, 1, -3600);
    each->db().ask("CALL complete_many(" + std::to_string(many) + ")");
  }
  std::vector<std::pair<std::string, grown*>> all{
      {"an almost empty table", &small},
      {std::to_string(s.growth) + " future jobs in front", &future},
      {std::to_string(s.growth) + " completed jobs, vacuum running", &completed}};
  std::vector<cost> out;
  for (auto& [what, each] : all) each->add(due, 1, -1);
  for (int i = 0; i <= chunks; ++i) {
    for (auto& [what, each] : all) {
      each->measure(1, chunk);
      each->measure(10, chunk);
      if (i == 0) each->db().ask("TRUNCATE took");  // warm from here on
    }
  }
  for (auto& [what, each] : all) out.push_back({what, each->took(1), each->took(10)});
  seen.add(due, 1, -1);
  for (bool const open : {true, false}) {
    if (!open) old.ask("COMMIT");
    seen.db().ask("TRUNCATE took");
    seen.measure(1, chunk);
    seen.measure(10, chunk);
    out.push_back({std::to_string(s.growth / 10) + " completed jobs, " +
                       (open ? "under a snapshot that is older" : "right after that is closed"),
                   seen.took(1), seen.took(10)});
  }
  return out;
}

// ----------------------------------------------------------------------------------------- worker

/// What a worker makes of it, and what comes in at once, beside the plain queue's; then how long it
/// takes from an enqueue to the handler where nothing else happens, beside the enqueue and the
/// claim of the plain queue, on one connection, one after the other.
void whole(postgres_test::server const& server, settings const& s, bool durable) {
  auto const database = std::string{"worker_"} + (durable ? "durable" : "quick");
  rig r{server, database, static_cast<std::uint32_t>(s.connections)};
  rig alone{server, database + "_alone", 1};
  ids id;
  auto const plain = equivalent();
  for (auto* const each : {&r, &alone}) {
    each->db().ask(std::string{plain_tables});
    each->db().ask("SET client_min_messages = error; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I "
                   "SET synchronous_commit = " +
                   std::string{durable ? "on" : "off"} + "', current_database()); END $$");
  }
  std::string const bulk =
      "INSERT INTO plain.jobs (id, queue, priority, vesting, max_attempts, kind, payload) SELECT "
      "gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'no_op', '{\"sent\":0}' FROM "
      "generate_series(1, 1000) ON CONFLICT DO NOTHING;\n";
  std::vector<double> in;
  std::vector<double> in_plain;
  std::vector<double> ran;
  std::vector<double> ran_plain;
  auto const jobs = std::max<std::uint64_t>(s.jobs / 1000, 1) * 1000;
  for (std::uint64_t round = 0; round != s.rounds; ++round) {
    empty(r);
    in.push_back(enqueue_in_bulk(r, jobs, s.connections, std::ref(id)));
    in_plain.push_back(1000 * r.pgbench(bulk, std::max(jobs / 1000, s.connections)));
    r.db().ask("VACUUM ANALYZE weir.jobs");
    r.db().ask("VACUUM ANALYZE plain.jobs");
    ran.push_back(process(r, jobs, 1000));
    ran_plain.push_back(batch * r.pgbench(plain.consume_many, jobs / batch));
  }
  auto const print = [](char const* what, double ours, double theirs) {
    std::printf("  %-42s %10.0f %10.0f %7.2f\n", what, ours, theirs, ours / theirs);
  };
  print("enqueue in bulk, 1,000 a command", median(in), median(in_plain));
  print("a worker, no-op jobs", median(ran), median(ran_plain));
  empty(alone);
  auto const steps = alone.pgbench(plain.enqueue + plain.consume_one, 200);
  auto const took = idle_latencies(r, 200, std::ref(id));
  std::printf("  enqueue to handler, idle, ms: p50 %.2f, p99 %.2f; plain enqueue, claim and "
              "completion, mean %.2f\n",
              took[took.size() / 2], took[took.size() * 99 / 100], 1000 / steps);
}

// ----------------------------------------------------------------------------------------- report

settings arguments(int argc, char** argv) {
  settings s;
  std::map<std::string_view, std::uint64_t*> const numbers{{"--jobs", &s.jobs},
                                                           {"--flight", &s.flight},
                                                           {"--connections", &s.connections},
                                                           {"--rounds", &s.rounds},
                                                           {"--growth", &s.growth}};
  for (int i = 1; i + 1 < argc; i += 2) {
    auto const found = numbers.find(argv[i]);
    if (found != numbers.end()) {
      *found->second = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (std::string_view{argv[i]} == "--json") {
      s.json = argv[i + 1];
    } else {
      s.jobs = 0;
    }
  }
  if (argc % 2 == 0 || s.jobs < 1000 || s.flight == 0 || s.connections < 2 || s.connections > 50 ||
      s.rounds == 0 || s.growth < 10'000) {
    std::fputs("usage: bench_postgres [--jobs N] [--flight N] [--connections N] [--rounds N] "
               "[--growth N] [--json FILE]\n",
               stderr);
    std::exit(2);
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  auto const s = arguments(argc, argv);
  // Not in /tmp, which may be memory, unless somebody says so.
  ::setenv("TMPDIR", "/var/tmp", 0);
  postgres_test::server const server{{.settings = {"fsync=on", "shared_buffers=256MB",
                                                   "max_wal_size=4GB", "autovacuum_naptime=1s"}}};
  std::string json;
  for (bool const durable : {true, false}) {
    std::printf("%s, %llu connections each; jobs per second, medians of %llu\n",
                durable ? "every commit waits for the disk" : "synchronous_commit = off",
                static_cast<unsigned long long>(s.connections),
                static_cast<unsigned long long>(s.rounds));
    std::printf("  %-42s %10s %10s %7s %10s %7s\n", "", "weir", "pgbench", "ratio", "lean",
                "ratio");
    for (auto const& r : rates(server, s, durable)) {
      auto const weir = median(r.weir);
      auto const plain = median(r.plain);
      auto const bare = median(r.lean);
      std::printf("  %-42s %10.0f %10.0f %7.2f %10.0f %7.2f\n", r.what.c_str(), weir, plain,
                  weir / plain, bare, weir / bare);
      std::array<char, 512> line{};
      std::snprintf(line.data(), line.size(),
                    "%s  {\"name\": \"%s\", \"durable\": %s, \"weir\": %.0f, \"pgbench\": %.0f, "
                    "\"ratio\": %.3f, \"lean\": %.0f, \"ratio_lean\": %.3f}",
                    json.empty() ? "" : ",\n", r.what.c_str(), durable ? "true" : "false", weir,
                    plain, weir / plain, bare, weir / bare);
      json += line.data();
    }
    whole(server, s, durable);
    std::fflush(stdout);
  }
  auto const costs = growth(server, s);
  std::printf("a dequeue in the server, microseconds, medians (beside an almost empty table)\n");
  std::printf("  %-58s %10s %18s\n", "", "of 1", "of 10");
  for (auto const& c : costs) {
    std::printf("  %-58s %10.0f (%.2f) %10.0f (%.2f)\n", c.what.c_str(), c.one,
                c.one / costs[0].one, c.ten, c.ten / costs[0].ten);
    std::array<char, 512> line{};
    std::snprintf(line.data(), line.size(),
                  ",\n  {\"name\": \"dequeue: %s\", \"us_1\": %.1f, \"us_10\": %.1f, \"ratio_1\": "
                  "%.3f, \"ratio_10\": %.3f}",
                  c.what.c_str(), c.one, c.ten, c.one / costs[0].one, c.ten / costs[0].ten);
    json += line.data();
  }
  if (!s.json.empty()) std::ofstream{s.json} << "[\n" << json << "\n]\n";
}
