--- What is in the schema. All times are nanoseconds since 1970 by weir.clock(), and all keys and
--- texts are bytes, so that two different keys never are the same (F27).
---
--- Order of locks: a step takes the guards of its ids first, in order, then its unique keys (see
--- lock_keys), then the rows of its jobs, in the order of their ids, then those of what has ended, and
--- nothing that can be waited for after these. So steps of weir's do not lock each other out. A replay, which has its dead letter
--- when it adds the job, may wait for an enqueue of the same id, which never waits for a dead letter.
---
--- Other roles share the server (F89, F94). Functions are executed with weir's rights, so they find
--- every name in the system's schema: commands and what they call by a pinned search_path, and
--- functions in SQL because they are parsed here and now (RETURN, BEGIN ATOMIC). What a command
--- waits for is a row that only weir's roles can lock. Advisory locks are only tried, and their
--- numbers depend on a seed that only weir's roles can read.
---
--- Rows that are used again and again (F79): while somebody holds a snapshot, none of their old
--- versions is removed, and whoever looks for the key goes through all of them. So such a row has a
--- number that grows with its uses, a page's worth at a time, and is looked up by the last one: few
--- versions have that. Nothing that changes with each use is in an index, and what is over stays for
--- a while, to be used again, until it is due to be looked at (tidy). Nor may an index say that a key
--- has one such row: whoever adds a version would go through them all. Another table says that, which
--- is written only when such a row is made or removed.
---
--- `weir.hot_table`: rows of the table come and go, so that it is to be vacuumed before scans notice
--- what is dead; `weir.jobs_table`: the same for the jobs' table; `weir.ended_table`: for what is kept
--- of those that have ended. See migration_sql.hpp.

CREATE TABLE weir.state (
  one       boolean PRIMARY KEY DEFAULT true CHECK (one),
  version   integer NOT NULL,            -- how many of the migrations were made
  shards    integer NOT NULL,
  forgotten bigint NOT NULL,             -- every bucket that is not there was full from then on
  secret    uuid NOT NULL DEFAULT gen_random_uuid()  -- what others hear of keys depends on it
);
CREATE SEQUENCE weir.fences;
CREATE SEQUENCE weir.seed;                  -- of the numbers of advisory locks: never drawn from
SELECT setval('weir.seed',
  1 + (hashtextextended(gen_random_uuid()::text, 0) & 4611686018427387903));
CREATE SEQUENCE weir.stripes;
CREATE SEQUENCE weir.deaths;
CREATE SEQUENCE weir.returned MINVALUE 0;   -- see floors
CREATE SEQUENCE weir.ahead MINVALUE 0;      -- of the server's clock, in nanoseconds
CREATE SEQUENCE weir.seen MINVALUE 0;       -- the time that was last noted: once in a second
SELECT setval('weir.returned', 0), setval('weir.ahead', 0), setval('weir.seen', 0);

-- Which keys have a row that is used again and again: 1: of permit_lines; 2: of locks; 3: of buckets;
-- 4: of dequeues; 5: of the enqueue keys of jobs; 6: of their run locks.
CREATE TABLE weir.used_keys (
  kind    smallint NOT NULL,
  key     bytea NOT NULL,
  due     bigint,                        -- of keys of jobs: when to look whether it is over
  PRIMARY KEY (kind, key)
) WITH (weir.hot_table);
CREATE INDEX used_keys_due ON weir.used_keys (due) WHERE due IS NOT NULL;

-- A row for each key with permits or tickets: whoever has it locked has the key to itself.
CREATE TABLE weir.permit_lines (
  key     bytea NOT NULL,
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0,     -- see above
  due     bigint NOT NULL,               -- when to look whether it is over
  live    integer NOT NULL,              -- permits, and
  waiting integer NOT NULL,              -- tickets of the key that are not known to be over
  turn    bigint NOT NULL,               -- of the last ticket
  head    bigint NOT NULL DEFAULT 0,     -- no ticket has an earlier one
  oldest  bigint NOT NULL DEFAULT 0,     -- no permit has an earlier fence
  fence   bigint NOT NULL,               -- of the last permit
  soonest bigint NOT NULL                -- nothing of it is over before this
) WITH (fillfactor = 70, weir.hot_table);
CREATE INDEX permit_lines_last ON weir.permit_lines (key, number);
CREATE INDEX permit_lines_due ON weir.permit_lines (due);
CREATE TABLE weir.permits (
  key     bytea NOT NULL,
  holder  bytea NOT NULL,
  ticket  boolean NOT NULL,
  number  bigint NOT NULL,               -- its fence, or its turn
  until   bigint NOT NULL,
  top     integer NOT NULL DEFAULT 0,    -- the limit that its ticket waits for
  listens boolean NOT NULL DEFAULT false,  -- is its holder to be told of its turn?
  PRIMARY KEY (key, holder)
) WITH (weir.hot_table);
-- The plan of a look-up was perhaps made when there was nothing, and then one index is as good as any
-- other that has one of its columns. So each has expressions of its own, and a statement names those
-- of the index that is meant for it.
CREATE INDEX permits_turns ON weir.permits ((key || 't'), number) WHERE ticket;
CREATE INDEX permits_fences ON weir.permits ((key || 'p'), number) WHERE NOT ticket;
CREATE INDEX permits_ends ON weir.permits ((key || ''), (until + 0));
CREATE INDEX permits_until ON weir.permits (until);

CREATE TABLE weir.locks (
  key     bytea NOT NULL,
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0,     -- see above
  due     bigint NOT NULL,               -- when to look whether it is over
  holder  bytea NOT NULL,                -- of a lock that is not held: empty
  fence   bigint NOT NULL,
  until   bigint NOT NULL
) WITH (fillfactor = 70, weir.hot_table);
CREATE INDEX locks_last ON weir.locks (key, number);
CREATE INDEX locks_due ON weir.locks (due);

CREATE TABLE weir.buckets (
  key     bytea NOT NULL,
  quotas  bytea NOT NULL,                -- as they were asked for
  scales  bigint[] NOT NULL,             -- of each quota: capacity, gain, price
  arrival numeric[] NOT NULL,            -- of each quota, in its units
  due     bigint NOT NULL,               -- it is not full before; a lower bound
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0      -- see above
) WITH (fillfactor = 70, weir.hot_table);
CREATE INDEX buckets_last ON weir.buckets (key, number);
CREATE INDEX buckets_due ON weir.buckets (due);

-- What a queue has beside its jobs. There is no row where all of it is as it is at first.
CREATE TABLE weir.queues (
  queue   bytea PRIMARY KEY,
  shard   integer NOT NULL,
  paused  boolean NOT NULL DEFAULT false,
  snoozed bigint NOT NULL DEFAULT -9223372036854775808,
  holder  bytea NOT NULL DEFAULT '',     -- of the queue lease
  fence   bigint NOT NULL DEFAULT 0,
  until   bigint NOT NULL DEFAULT -9223372036854775808
);

-- A queue's pointer is the least of its rows here. Any step may add an earlier one without waiting
-- for anybody; they are removed only by who has the queue's advisory lock to itself. The pointer of a
-- queue that is held comes to be where the hold ends, so that no scan goes through held queues: of
-- one that is paused, at the largest number, where no scan looks.
CREATE TABLE weir.pointers (
  scan    integer NOT NULL,
  pointer bigint NOT NULL,
  queue   bytea NOT NULL
) WITH (weir.hot_table);
CREATE INDEX pointers_due ON weir.pointers (scan, pointer, queue);
CREATE INDEX pointers_queue ON weir.pointers ((queue || ''), (pointer + 0));  -- see permits

-- A queue's counters are the sums of its rows. A step takes the last one that nobody else has. A row
-- becomes the last one again now and then, by a new stripe (see above).
CREATE TABLE weir.counters (
  queue     bytea NOT NULL,
  stripe    bigint NOT NULL DEFAULT nextval('weir.stripes'),
  uses      bigint NOT NULL DEFAULT 0,
  shard     integer NOT NULL,
  enqueued  bigint NOT NULL,
  completed bigint NOT NULL,
  cancelled bigint NOT NULL,
  purged    bigint NOT NULL,
  dead      bigint NOT NULL,
  day       bigint NOT NULL,              -- of its last use
  PRIMARY KEY (queue, stripe)
) WITH (fillfactor = 70, weir.hot_table);
CREATE INDEX counters_day ON weir.counters (day);
CREATE INDEX counters_shard ON weir.counters ((shard + 0), (queue || ''));  -- see permits

-- The jobs that have not ended. What has is in a table of its own (see past.sql), so that this one,
-- where all look for the first job of a queue, is as large as what there is to do.
CREATE TABLE weir.jobs (
  queue     bytea NOT NULL,
  id        uuid NOT NULL,
  priority  smallint NOT NULL,
  state     smallint NOT NULL,            -- of one that has ended: how
  strategy  smallint NOT NULL,
  policy    smallint NOT NULL,
  attempts  integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  snoozes   integer NOT NULL DEFAULT 0,
  vesting   bigint NOT NULL,              -- or when its lease ends
  fence     bigint NOT NULL DEFAULT 0,    -- of its last lease
  sequence  bigint NOT NULL DEFAULT 0,    -- of the numbered dequeue that gave it
  unclaimed bigint NOT NULL DEFAULT 0,    -- claimed: the vesting time whose place the lease took
  enqueued  bigint NOT NULL,
  deadline_from bigint NOT NULL,
  deadline  bigint NOT NULL,              -- 0: none
  retention bigint NOT NULL,
  holder    bytea,                        -- of its lease, over or not; NULL: unclaimed
  unique_key bytea NOT NULL,
  kind      bytea NOT NULL,
  payload   bytea NOT NULL,
  memo      bytea NOT NULL DEFAULT '',
  reason    bytea NOT NULL DEFAULT '',
  result    bytea NOT NULL DEFAULT '',
  headers   bytea NOT NULL DEFAULT '',
  progress  bytea NOT NULL DEFAULT '',
  checkpoint bytea NOT NULL DEFAULT '',
  PRIMARY KEY (queue, id)
) WITH (weir.jobs_table);
CREATE INDEX jobs_order ON weir.jobs ((queue || ''), priority, vesting, id);  -- see permits
CREATE INDEX jobs_claimed ON weir.jobs ((queue || ''), holder, sequence, vesting) --\
  WHERE holder IS NOT NULL;

-- A holder's latest numbered dequeue of a queue.
CREATE TABLE weir.dequeues (
  queue    bytea NOT NULL,
  holder   bytea NOT NULL,
  uses     bigint NOT NULL DEFAULT 0,
  number   bigint NOT NULL DEFAULT 0,    -- see above
  sequence bigint NOT NULL,
  day      bigint NOT NULL
) WITH (fillfactor = 70, weir.hot_table);
CREATE INDEX dequeues_last ON weir.dequeues (queue, holder, number);
CREATE INDEX dequeues_day ON weir.dequeues (day);

-- Unique keys of jobs, each with the job that took it last. A row changes only in a step that has the
-- key locked, and the end of the job, or of its lease, changes nothing here: a key is taken where
-- `until` has not come, or there is no such time and the job has not ended (see possessor), or is
-- under the lease that the run lock is of.
CREATE TABLE weir.keys (
  queue   bytea NOT NULL,
  run     boolean NOT NULL,              -- taken by the start, and not by the enqueue
  key     bytea NOT NULL,
  owner   uuid,                          -- NULL: nobody has it
  until   bigint,
  fence   bigint,                        -- of a run lock: of the lease
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0      -- see above
) WITH (fillfactor = 70, weir.hot_table);
CREATE INDEX keys_last --\
  ON weir.keys ((int4send(octet_length(queue)) || queue || key), run, number);  -- see dequeue_key

-- The topics that somebody waits for: those of queues (of a permit's turn see permits.listens). To
-- notify takes a lock on the whole server at the commit (F43). So a step of weir's own that has news
-- takes the row, and others need not notify; and a row that nobody renews is over.
CREATE UNLOGGED TABLE weir.hints (
  topic   text PRIMARY KEY,
  until   bigint NOT NULL
);

-- Names that a step has to itself until its transaction ends. A row never outlives the transaction
-- that inserted it, and others that insert the same one wait for that. So the server's lock table
-- holds one entry for each transaction, however many names it has.
CREATE UNLOGGED TABLE weir.guards (
  name    bigint PRIMARY KEY
) WITH (weir.hot_table);

-- A job in an answer.
CREATE TYPE weir.job_row AS (
  now bigint, id uuid, priority smallint, state smallint, strategy smallint, policy smallint,
  attempts integer, max_attempts integer, snoozes integer, vesting bigint, death bigint,
  fence bigint, enqueued bigint, deadline_from bigint, deadline bigint, holder bytea,
  unique_key bytea, kind bytea, payload bytea, memo bytea, reason bytea, result bytea,
  headers bytea, progress bytea, checkpoint bytea,
  part integer);  -- of several dequeues: which one it is of
