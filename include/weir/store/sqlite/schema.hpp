// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_SCHEMA_HPP
#define WEIR_STORE_SQLITE_SCHEMA_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What is in the file. All times are nanoseconds since 1970 by the file's own time (ledger.hpp),
// all texts are bytes, and every table is STRICT.
//
// Keys and names are BLOBs, so that any bytes will do and two different keys never are the same
// (F27). Tables that are found by a key have no rowid: one tree to search instead of two.
namespace weir::detail {

/// "weir", in the file's header.
inline constexpr std::int64_t sqlite_application_id = 0x77656972;

/// The schema of the first step below. What has an earlier one was never released.
inline constexpr std::int64_t sqlite_first_schema = 6;

/// The steps from an empty schema to this version's, in order. One that was released never changes:
/// a change is one more step.
///
/// The checks are for what others write into weir's tables: only what weir could have written is
/// let in. The store's own connection does without (connection.hpp): it writes nothing else, and a
/// check costs a third of a write. PRAGMA quick_check finds rows that break one.
inline constexpr std::array sqlite_migrations{
    R"sql(
CREATE TABLE weir_state (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  schema    INTEGER NOT NULL,
  shards    INTEGER NOT NULL,
  time      INTEGER NOT NULL,            -- the file's time never runs backwards from this
  boot_id   BLOB NOT NULL DEFAULT x'',   -- that time is that of the host's boot clock and an offset,
  boot_offset INTEGER,                   -- from its first use after a boot on; NULL: not used in any
  fence     INTEGER NOT NULL,            -- the latest of all
  epoch     INTEGER,                     -- what bucket arrivals count from; NULL: there was none
  forgotten INTEGER NOT NULL,            -- every bucket that is not there was full from then on
  permits   INTEGER NOT NULL DEFAULT 0,  -- rows of the tables below, and
  locks     INTEGER NOT NULL DEFAULT 0,
  buckets   INTEGER NOT NULL DEFAULT 0,
  jobs      INTEGER NOT NULL DEFAULT 0,  -- keys held until_expired among them
  idle      INTEGER NOT NULL DEFAULT 0,  -- queues without jobs
  idlings   INTEGER NOT NULL DEFAULT 0,  -- how often a queue has become one
  CHECK (shards BETWEEN 1 AND 1024 AND min(fence, permits, locks, buckets, jobs, idle, idlings) >= 0)
) STRICT;

-- Permits, and tickets of those who wait for one.
CREATE TABLE weir_permits (
  key     BLOB NOT NULL,
  ticket  INTEGER NOT NULL,              -- 0: a permit, 1: a ticket
  number  INTEGER NOT NULL,              -- its fence, or its turn
  holder  BLOB NOT NULL,
  until   INTEGER NOT NULL,
  lim     INTEGER NOT NULL,              -- of the command that it stems from
  PRIMARY KEY (key, ticket, number),
  CHECK (length(key) BETWEEN 1 AND 1024 AND ticket BETWEEN 0 AND 1 AND number > 0
    AND length(holder) BETWEEN 1 AND 128 AND lim BETWEEN 1 AND 1000000)
) STRICT, WITHOUT ROWID;
CREATE INDEX weir_permits_until ON weir_permits (until);

CREATE TABLE weir_locks (
  key     BLOB PRIMARY KEY,
  holder  BLOB NOT NULL,
  fence   INTEGER NOT NULL,
  until   INTEGER NOT NULL,
  CHECK (length(key) BETWEEN 1 AND 1024 AND length(holder) BETWEEN 1 AND 128 AND fence > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX weir_locks_until ON weir_locks (until);

CREATE TABLE weir_buckets (
  key     BLOB PRIMARY KEY,
  quotas  BLOB NOT NULL,
  a0      INTEGER NOT NULL,              -- the low 64 bits of each quota's arrival
  a1      INTEGER NOT NULL,
  a2      INTEGER NOT NULL,
  a3      INTEGER NOT NULL,
  due     INTEGER NOT NULL,              -- it is not full before; a lower bound, since the epoch
  h0      INTEGER NOT NULL,              -- the high 32 bits
  h1      INTEGER NOT NULL,
  h2      INTEGER NOT NULL,
  h3      INTEGER NOT NULL,
  CHECK (length(key) BETWEEN 1 AND 1024 AND length(quotas) BETWEEN 24 AND 96
    AND length(quotas) % 24 = 0
    AND min(h0, h1, h2, h3) >= -1073741824 AND max(h0, h1, h2, h3) <= 1073741824)
) STRICT, WITHOUT ROWID;
CREATE INDEX weir_buckets_due ON weir_buckets (due);

CREATE TABLE weir_queues (
  queue     INTEGER PRIMARY KEY,
  shard     INTEGER NOT NULL,
  name      BLOB NOT NULL,
  due       INTEGER,                     -- where a scan finds it; NULL: it does not
  pointer   INTEGER,
  snoozed   INTEGER NOT NULL,
  paused    INTEGER NOT NULL,
  idle      INTEGER,                     -- without jobs since that idling; NULL: it has some
  lease_holder BLOB NOT NULL,
  lease_fence  INTEGER NOT NULL,
  lease_until  INTEGER NOT NULL,
  enqueued  INTEGER NOT NULL,            -- R4's sum: what came in,
  completed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  purged    INTEGER NOT NULL,
  waiting   INTEGER NOT NULL,            -- what has not ended: pending and leased,
  dead      INTEGER NOT NULL,            -- and the other records that there are
  kept      INTEGER NOT NULL,
  keys      INTEGER NOT NULL,            -- held until_expired
  deaths    INTEGER NOT NULL,
  -- The queues of schedules, whose names begin with weir.schedules/, have scans of their own.
  scan      INTEGER AS (shard + 1024 * (name >= x'776569722e7363686564756c65732f'
                                        AND name < x'776569722e7363686564756c657330')),
  UNIQUE (shard, name),
  CHECK (shard BETWEEN 0 AND 1023 AND length(name) BETWEEN 1 AND 1024 AND paused BETWEEN 0 AND 1
    AND length(lease_holder) <= 128 AND (idle IS NULL OR idle >= 0)
    AND min(lease_fence, enqueued, completed, cancelled, purged) >= 0
    AND min(waiting, dead, kept, keys, deaths) >= 0)
) STRICT;
CREATE INDEX weir_queues_due ON weir_queues (scan, due, name) WHERE due IS NOT NULL;
CREATE INDEX weir_queues_idle ON weir_queues (idle) WHERE idle IS NOT NULL;

-- A job is in exactly one order: that of its queue until it ends (vesting), then that of the dead
-- letters (death), or of the records that are kept until their retention is over (kept).
CREATE TABLE weir_jobs (
  queue     INTEGER NOT NULL,
  id        BLOB NOT NULL,
  priority  INTEGER NOT NULL,
  vesting   INTEGER,                     -- or when its lease ends
  death     INTEGER,                     -- which of its queue's dead letters it is
  kept      INTEGER,                     -- until when
  state     INTEGER NOT NULL,            -- how it ended; 0: it has not
  attempts  INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  snoozes   INTEGER NOT NULL,
  fence     INTEGER NOT NULL,            -- of its last lease
  holder    BLOB,                        -- of its lease, over or not; NULL: unclaimed
  sequence  INTEGER NOT NULL,            -- of the holder's latest numbered dequeue, which gave it
  unclaimed INTEGER NOT NULL,            -- claimed: the vesting time whose place the lease took
  strategy  INTEGER NOT NULL,
  policy    INTEGER NOT NULL,
  enqueued  INTEGER NOT NULL,
  deadline_from INTEGER NOT NULL,
  deadline  INTEGER NOT NULL,            -- 0: none
  retention INTEGER NOT NULL,
  unique_key BLOB NOT NULL,
  body      INTEGER,                     -- a payload that is too large for a row that often changes
  kind      BLOB NOT NULL,
  memo      BLOB NOT NULL,
  reason    BLOB NOT NULL,
  result    BLOB NOT NULL,
  payload   BLOB NOT NULL,
  headers   BLOB NOT NULL DEFAULT x'',
  progress  BLOB NOT NULL DEFAULT x'',   -- how far its handler has come
  checkpoint BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY (queue, id),
  CHECK (length(id) = 16 AND priority BETWEEN 0 AND 255 AND state BETWEEN 0 AND 4 AND state <> 1
    AND (vesting IS NULL) = (state <> 0) AND (death IS NULL) = (state <> 3)
    AND (kept IS NULL) = (state <> 2 AND state <> 4)
    AND attempts BETWEEN 0 AND 1000000 AND max_attempts BETWEEN 1 AND 1000000
    AND snoozes BETWEEN 0 AND 4294967295 AND fence >= 0
    AND (holder IS NULL OR length(holder) BETWEEN 1 AND 128)
    AND strategy BETWEEN 0 AND 5 AND policy BETWEEN 0 AND 4
    AND deadline BETWEEN 0 AND 315360000000000000
    AND retention BETWEEN 0 AND 315360000000000000
    AND length(unique_key) BETWEEN (strategy <> 0) AND 1024 AND length(kind) BETWEEN 1 AND 1024
    AND length(memo) <= 1024 AND length(reason) <= 4096 AND length(result) <= 1048576
    AND length(payload) <= 1048576 AND length(headers) <= 4096 AND length(progress) <= 1024
    AND length(checkpoint) <= 65536 AND typeof(sequence) = 'integer'
    AND typeof(unique_key) = 'blob' AND typeof(kind) = 'blob' AND typeof(memo) = 'blob'
    AND typeof(reason) = 'blob' AND typeof(result) = 'blob' AND typeof(payload) = 'blob'
    AND typeof(headers) = 'blob' AND typeof(progress) = 'blob' AND typeof(checkpoint) = 'blob')
) STRICT, WITHOUT ROWID;
CREATE INDEX weir_jobs_order ON weir_jobs (queue, priority, vesting, id) WHERE vesting IS NOT NULL;
-- Leases are counted without a look at the jobs that have them.
CREATE INDEX weir_jobs_claimed ON weir_jobs (queue, holder, sequence, vesting)
  WHERE holder IS NOT NULL;
CREATE INDEX weir_jobs_dead ON weir_jobs (queue, death) WHERE death IS NOT NULL;
CREATE INDEX weir_jobs_kept ON weir_jobs (kept) WHERE kept IS NOT NULL;

CREATE TABLE weir_payloads (
  body    INTEGER PRIMARY KEY,
  payload BLOB NOT NULL CHECK (length(payload) <= 1048576)
) STRICT;

-- Unique keys of jobs, each with the job that has it.
CREATE TABLE weir_keys (
  queue   INTEGER NOT NULL,
  run     INTEGER NOT NULL,              -- 0: taken by the enqueue, 1: by the start
  key     BLOB NOT NULL,
  owner   BLOB NOT NULL,
  until   INTEGER,                       -- NULL: its job's end frees it
  PRIMARY KEY (queue, run, key),
  CHECK (run BETWEEN 0 AND 1 AND length(key) BETWEEN 1 AND 1024 AND length(owner) = 16)
) STRICT, WITHOUT ROWID;
CREATE INDEX weir_keys_until ON weir_keys (until) WHERE until IS NOT NULL;
)sql",
    // How often a job was cancelled while somebody had a lease of it: who waits for that in another
    // process sees that it was.
    R"sql(
ALTER TABLE weir_state ADD COLUMN cancels INTEGER NOT NULL DEFAULT 0 CHECK (cancels >= 0);
)sql",
};

inline constexpr std::int64_t sqlite_schema = sqlite_first_schema - 1 + sqlite_migrations.size();

namespace sql {

inline constexpr char application_id[] = "PRAGMA application_id";
inline constexpr char user_version[] = "PRAGMA user_version";
inline constexpr char count_objects[] = "SELECT count(*) FROM sqlite_schema";
inline constexpr char schema_cookie[] = "PRAGMA schema_version";
// Not by LIKE, which a connection may have made case sensitive: a trigger's table is named as its
// author wrote it.
inline constexpr char weir_objects[] =
    "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema "
    "WHERE substr(name, 1, 5) = 'weir_' COLLATE NOCASE "
    "OR substr(tbl_name, 1, 5) = 'weir_' COLLATE NOCASE ORDER BY 1 LIMIT 100";
inline constexpr char temporary_objects[] =
    "SELECT 1 FROM temp.sqlite_schema WHERE substr(name, 1, 5) = 'weir_' COLLATE NOCASE "
    "OR substr(tbl_name, 1, 5) = 'weir_' COLLATE NOCASE";
inline constexpr char find_state[] =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'weir_state'";
inline constexpr char read_schema[] = "SELECT schema FROM weir_state";
inline constexpr char write_schema[] = "UPDATE weir_state SET schema = ?";
inline constexpr char write_nothing[] = "UPDATE weir_state SET one = one";
inline constexpr char insert_state[] = "INSERT INTO weir_state (one, schema, shards, time, fence, "
                                       "forgotten) VALUES (1, ?, ?, ?, 0, ?)";
inline constexpr char journal_mode_wal[] = "PRAGMA journal_mode = WAL";

}  // namespace sql

/// Whose database it is.
struct sqlite_identity {
  bool empty = false;       ///< there is nothing in it
  bool own = false;         ///< it was made by weir, or is to be
  std::int64_t schema = 0;  ///< migrations made
};

/// The tables and indexes under weir's names, and whatever others have put on these tables: all
/// that runs when they are read or written.
[[nodiscard]] inline std::vector<std::string> sqlite_objects(sqlite_connection& db) {
  std::vector<std::string> out;
  sqlite_query q{db, sql::weir_objects};
  while (q.next()) out.emplace_back(q.anything(0));
  return out;
}

/// How many of the migrations a schema is made by.
[[nodiscard]] constexpr std::size_t sqlite_steps_to(std::int64_t schema) noexcept {
  return schema < sqlite_first_schema ? 0
                                      : static_cast<std::size_t>(schema) + 1 - sqlite_first_schema;
}

/// The same, as a schema has them.
[[nodiscard]] inline std::vector<std::string> const& sqlite_objects_made(std::int64_t schema) {
  using all = std::array<std::vector<std::string>, sqlite_migrations.size() + 1>;
  static all const made = [] {
    all out;
    sqlite_connection db{":memory:"};
    for (std::size_t i = 0; i != sqlite_migrations.size(); ++i) {
      db.run(sqlite_migrations[i]);
      out[i + 1] = sqlite_objects(db);
    }
    return out;
  }();
  return made[sqlite_steps_to(schema)];
}

/// Changes with the schema.
[[nodiscard]] inline std::int64_t schema_cookie(sqlite_connection& db) {
  sqlite_query q{db, sql::schema_cookie};
  return q.next() ? q.integer(0) : 0;
}

/// Looks without touching. Errors: `store_foreign`, `schema_too_new`, `schema_outdated`,
/// `store_corrupt`.
[[nodiscard]] inline result<sqlite_identity> identify(sqlite_connection& db, bool join) {
  auto const number = [&](char const* text) {
    sqlite_query q{db, text};
    return q.next() ? q.integer(0) : 0;
  };
  sqlite_identity out;
  auto const application = number(sql::application_id);
  auto const version = number(sql::user_version);
  out.empty = number(sql::count_objects) == 0;
  bool const unclaimed = application == 0 && version == 0;
  out.own = application == sqlite_application_id || (out.empty && unclaimed && !join);
  if (!out.own && !join) {
    return explained(errc::store_foreign, "another application's database: should weir's tables be "
                                          "in it, set sqlite_options::in_application_database");
  }
  if (application == sqlite_application_id && version > sqlite_schema) return errc::schema_too_new;
  bool const has_state = number(sql::find_state) != 0;
  if (has_state) {
    out.schema = number(sql::read_schema);
    if (out.schema > sqlite_schema) return errc::schema_too_new;
    if (out.schema < 1) return errc::store_corrupt;
    if (out.schema < sqlite_first_schema) {
      return explained(errc::schema_outdated, "a version of weir made it that was never released: "
                                              "what is in it can be worked off with that one only");
    }
  }
  auto const there = sqlite_objects(db);
  bool const known = has_state || application != sqlite_application_id;
  auto const& made = sqlite_objects_made(known ? out.schema : sqlite_schema);
  if (!std::ranges::includes(made, there)) {
    return explained(errc::store_foreign, "there are tables or triggers that weir did not make");
  }
  if (there.size() != made.size()) return errc::store_corrupt;
  return out;
}

/// Makes the missing migrations, in the caller's transaction, which must have begun IMMEDIATE: so
/// whoever comes second finds them made.
inline void migrate(sqlite_connection& db, sqlite_identity const& found, std::uint32_t shards,
                    time_point now) {
  if (found.schema == sqlite_schema) return;
  for (auto i = sqlite_steps_to(found.schema); i != sqlite_migrations.size(); ++i) {
    db.run(sqlite_migrations[i]);
  }
  if (found.schema == 0) {
    sqlite_run(db, sql::insert_state, sqlite_schema, shards, now, duration::min());
  } else {
    sqlite_run(db, sql::write_schema, sqlite_schema);
  }
  if (!found.own) return;
  db.run(("PRAGMA application_id = " + std::to_string(sqlite_application_id)).c_str());
  db.run(("PRAGMA user_version = " + std::to_string(sqlite_schema)).c_str());
}

}  // namespace weir::detail

#endif
