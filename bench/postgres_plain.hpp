// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_POSTGRES_PLAIN_HPP
#define WEIR_BENCH_POSTGRES_PLAIN_HPP

#include <cstdint>
#include <string>
#include <string_view>

// Two queues in plain SQL, as pgbench runs them. The equivalent one does in its statements what the
// same promises ask for: a job's id is taken once; a claim is in order of priority and vesting
// time, with a lease, its holder and a fence, and counts the attempt, if there is one left and the
// queue is not paused; what ends is ended by who holds it, while the lease lives, and lets go of
// its unique key; what came in and what was completed is counted, by stripes, and the queues with
// work are found by pointers. It still buries nothing, keeps no results, tells nobody, and does not
// say when to come back. The lean one has no keys, counters or pauses either: a table, an index,
// and whoever knows the fence may delete.
//
// Both have the plans that are best for them, whatever the server's statistics say: what ends is
// looked up by its id alone. (With `holder = ...` there the server takes the index of the holders,
// since it has seen none when it plans, and goes through all that has ended and is not vacuumed.)
namespace weir_bench {

/// What pgbench sends as a payload, and weir.
inline std::string const job_payload(100, 'p');

/// How many jobs a batch has.
inline constexpr std::uint32_t batch = 100;

inline constexpr std::string_view plain_tables = R"sql(
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
inline constexpr std::string_view plain_stripe =
    " WHERE c.queue = 'queue' AND c.stripe = (SELECT f.stripe FROM plain.counters f "
    "WHERE f.queue = 'queue' LIMIT 1 FOR UPDATE SKIP LOCKED)";

/// The scripts of a plain queue.
struct plain_queue {
  std::string enqueue;
  std::string consume_one;
  std::string consume_many;
};

inline std::string pointer_of(std::string const& schema) {
  return "INSERT INTO " + schema +
         ".pointers SELECT 'queue', vesting FROM job WHERE NOT EXISTS (SELECT FROM " + schema +
         ".pointers p WHERE p.queue = 'queue' AND p.due <= job.vesting)";
}

inline std::string claim(std::string const& schema, std::uint32_t limit, std::string const& which) {
  return "UPDATE " + schema +
         ".jobs j SET vesting = clock_timestamp() + interval '1 hour', attempts = attempts + 1, "
         "holder = 'holder', fence = nextval('" +
         schema + ".fences') FROM (SELECT queue, id FROM " + schema +
         ".jobs WHERE queue = 'queue' AND vesting <= now() " + which +
         "ORDER BY priority, vesting, id LIMIT " + std::to_string(limit) +
         " FOR UPDATE SKIP LOCKED) c WHERE j.queue = c.queue AND j.id = c.id "
         "RETURNING j.id, j.fence, j.attempts, j.kind, j.payload";
}

/// A claim hands over what a handler needs, and so does this one: in arrays, for pgbench keeps one
/// row.
inline std::string claim_many(std::string const& schema, std::string const& which) {
  return "WITH got AS (" + claim(schema, batch, which) +
         ") SELECT array_agg(id) AS ids, array_agg(fence) AS fences, array_agg(attempts) AS "
         "attempts, "
         "array_agg(kind) AS kinds, array_agg(payload) AS payloads FROM got \\gset\n";
}

inline constexpr std::string_view one_ended = "j.id = :id AND j.fence = :fence::bigint";
inline constexpr std::string_view many_ended = "j.id = u.id AND j.fence = u.fence";
inline constexpr std::string_view those_ended =
    " USING unnest(:ids::uuid[], :fences::bigint[]) u(id, fence)";

inline plain_queue lean() {
  auto const end = [](std::string_view from, std::string_view which) {
    return "DELETE FROM lean.jobs j" + std::string{from} + " WHERE " + std::string{which} + ";\n";
  };
  return {"WITH job AS (INSERT INTO lean.jobs (id, queue, priority, vesting, max_attempts, kind, "
          "payload) VALUES (gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'kind', '" +
              job_payload + "') RETURNING vesting) " + pointer_of("lean") + ";\n",
          claim("lean", 1, "") + " \\gset\n" + end("", one_ended),
          claim_many("lean", "") + end(those_ended, many_ended)};
}

inline plain_queue equivalent() {
  std::string const which = "AND attempts < max_attempts AND NOT EXISTS "
                            "(SELECT FROM plain.queues q WHERE q.queue = 'queue' AND q.paused) ";
  auto const end = [](std::string_view from, std::string_view those) {
    return "WITH ended AS (DELETE FROM plain.jobs j" + std::string{from} +
           " WHERE j.queue = 'queue' AND coalesce(j.holder, '') <> '' AND j.state = 0 AND "
           "j.vesting > now() AND " +
           std::string{those} +
           " RETURNING j.id, j.unique_key), freed AS (DELETE FROM plain.keys k USING ended e WHERE "
           "k.queue = 'queue' AND k.key = e.unique_key AND k.owner = e.id) "
           "UPDATE plain.counters c SET completed = c.completed + (SELECT count(*) FROM ended)" +
           std::string{plain_stripe} + ";\n";
  };
  return {"WITH job AS (INSERT INTO plain.jobs (id, queue, priority, vesting, max_attempts, kind, "
          "payload) VALUES (gen_random_uuid(), 'queue', 0, clock_timestamp(), 25, 'kind', '" +
              job_payload + "') ON CONFLICT DO NOTHING RETURNING vesting), pointer AS (" +
              pointer_of("plain") +
              ") UPDATE plain.counters c SET enqueued = c.enqueued + (SELECT count(*) FROM job)" +
              std::string{plain_stripe} + ";\n",
          claim("plain", 1, which) + " \\gset\n" + end("", one_ended),
          claim_many("plain", which) + end(those_ended, many_ended)};
}

}  // namespace weir_bench

#endif
