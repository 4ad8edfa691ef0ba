--- Queues as a whole: pointers, counters, holds and leases.
---
--- `own_` says that the step is a transaction of weir's own, which is short. In an application's
--- transaction a step takes no lock of a whole queue and no counter that others use, so that nobody
--- waits for it however long it stays open.

CREATE TYPE weir.job_row AS (
  now bigint, id uuid, priority smallint, state smallint, strategy smallint, policy smallint,
  attempts integer, max_attempts integer, snoozes integer, vesting bigint, death bigint,
  fence bigint, enqueued bigint, deadline_from bigint, deadline bigint, holder bytea,
  unique_key bytea, kind bytea, payload bytea, memo bytea, reason bytea, result bytea,
  headers bytea, progress bytea, checkpoint bytea);

-- The number of the scan that finds the queue: those of schedules have one of their own.
CREATE FUNCTION weir.scan_of(queue_ bytea, shard_ integer) RETURNS integer LANGUAGE sql IMMUTABLE
  RETURN shard_ + CASE WHEN substring(queue_ FROM 1 FOR 15) = '\x776569722e7363686564756c65732f'
                    THEN weir.rule.most_shards ELSE 0 END;

-- Rows that the server's indexes of jobs and of queues' pointers have led to, dead ones included,
-- since it last counted them, which it never does within a command.
CREATE FUNCTION weir.walked() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN pg_stat_get_xact_tuples_returned('weir.jobs_order'::regclass)
       + pg_stat_get_xact_tuples_returned('weir.pointers_queue'::regclass);

-- Is it worth a floor to go through so many rows that are not there any more?
CREATE FUNCTION weir.worth_a_floor(dead_ bigint) RETURNS boolean LANGUAGE sql VOLATILE
  RETURN dead_ > 100;

-- Can floors be relied on? Not if the clock went backwards. And now and then a look begins at the
-- beginning all the same, whatever has been put before a floor.
CREATE FUNCTION weir.relied_on(since_ bigint, floors_ bigint[], now_ bigint) RETURNS boolean
  LANGUAGE sql IMMUTABLE
  RETURN since_ BETWEEN now_ - 60000000000 AND now_ AND now_ >= ALL (floors_);

-- The row of a queue's floors, or of a scan's; with nothing in it where looks are to begin at the
-- beginning: there is none, or somebody has told the time.
CREATE FUNCTION weir.floors_of(scan_ integer, queue_ bytea, now_ bigint, at_ bigint)
  RETURNS weir.floors LANGUAGE plpgsql AS $$
DECLARE
  f weir.floors;
BEGIN
  IF at_ IS NULL THEN
    SELECT k.* INTO f FROM weir.floors k WHERE k.scan = scan_ AND k.queue = queue_
      ORDER BY k.number DESC LIMIT 1;
    IF weir.relied_on(f.since, f.floors, now_) THEN
      RETURN f;
    END IF;
  END IF;
  RETURN NULL;
END $$;

-- The first job of the first level after `after_` that has one, or one that vests up to `upto_`.
CREATE FUNCTION weir.next_head(queue_ bytea, after_ integer, f weir.floors, upto_ bigint,
    OUT level integer, OUT vests bigint) LANGUAGE plpgsql AS $$
DECLARE
  above integer := after_;
BEGIN
  FOR i IN 1 .. coalesce(cardinality(f.levels), 0) LOOP
    CONTINUE WHEN f.levels[i] <= after_;
    SELECT j.priority, j.vesting INTO level, vests FROM weir.jobs j
      WHERE j.queue = queue_ AND j.priority > above AND j.priority < f.levels[i]
        AND j.vesting <= upto_
      ORDER BY j.priority, j.vesting, j.id LIMIT 1;
    IF NOT FOUND THEN
      SELECT j.priority, j.vesting INTO level, vests FROM weir.jobs j
        WHERE j.queue = queue_ AND j.priority = f.levels[i] AND j.vesting >= f.floors[i]
          AND j.vesting <= upto_
        ORDER BY j.vesting, j.id LIMIT 1;
    END IF;
    IF FOUND THEN
      RETURN;
    END IF;
    above := f.levels[i];
  END LOOP;
  SELECT j.priority, j.vesting INTO level, vests FROM weir.jobs j
    WHERE j.queue = queue_ AND j.priority > above AND j.vesting <= upto_
    ORDER BY j.priority, j.vesting, j.id LIMIT 1;
END $$;

-- When the first job vests that is visible, or soon will be: a clock may be a little behind the one
-- that it was enqueued by, and then it has no pointer that is ahead. NULL: there is none.
CREATE FUNCTION weir.first_of(queue_ bytea, f weir.floors, now_ bigint, OUT least_ bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  h record;
  level integer := -32769;
BEGIN
  LOOP
    h := weir.next_head(queue_, level, f, now_ + 50000000);
    level := h.level;
    least_ := least(least_, h.vests);
    EXIT WHEN level IS NULL OR least_ <= now_;
  END LOOP;
END $$;

-- Raises the floors of a queue (scan_ -1), or of a scan (queue_ ''), in three steps, each in a
-- transaction of its own: they are proposed; once that is committed, it is noted which transactions
-- may have begun before (a snapshot does not say that: numbers beyond it may be in use); once these have ended, what they left is there to be seen, and the floors
-- are what was proposed, or the first of what lives, and higher ones are proposed.
--
-- A transaction that begins after the proposal puts nothing before it: it has its number before it
-- reads the clock, and a time that is proposed is over. Who gives a job back its place, which may be
-- before that, asks floor_for() first. `used_`: levels of which jobs were claimed.
CREATE FUNCTION weir.raise_floor(scan_ integer, queue_ bytea, used_ integer[]) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  f weir.floors;
  from_ weir.floors;
  taken boolean := true;
  h record;
  level_ integer := -32769;
  levels_ smallint[];
  lives bigint[];
  first_ bigint;
  least_ bigint := -9223372036854775808;
  now_ bigint;
  known boolean;
  outer_ bigint := pg_current_xact_id()::text::bigint;
  inner_ bigint;
BEGIN
  SELECT k.* INTO f FROM weir.floors k WHERE k.scan = scan_ AND k.queue = queue_
    ORDER BY k.number DESC LIMIT 1;
  known := FOUND;
  now_ := weir.clock();
  IF known THEN
    IF now_ < f.since OR NOT now_ >= ALL (f.proposed) THEN  -- the clock went backwards
      f.levels := '{}'; f.floors := '{}'; f.proposed := '{}'; f.proposed_pointer := f.pointer;
      f.horizon := '0'; f.since := least_;
    END IF;
    IF weir.relied_on(f.since, f.floors, now_) THEN
      from_ := f;
      IF f.horizon > pg_snapshot_xmin(pg_current_snapshot()) THEN
        RETURN;
      END IF;
    END IF;
    PERFORM 1 FROM weir.floors k
      WHERE k.scan = scan_ AND k.queue = queue_ AND k.number = f.number FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    taken := coalesce(f.horizon <= pg_snapshot_xmin(pg_current_snapshot()), false);
    IF f.horizon IS NULL AND from_.queue IS NOT NULL THEN
      BEGIN  -- an inner transaction: its number is the next one now, which nothing else tells
        UPDATE weir.floors k SET number = (k.number & 4611686018427387903) + 1
          WHERE k.scan = scan_ AND k.queue = queue_ AND k.number = f.number
          RETURNING k.number, k.xmin::text::bigint INTO f.number, inner_;
      EXCEPTION WHEN SQLSTATE 'WEIR0' THEN
        NULL;
      END;
      inner_ := inner_ + (outer_ & -4294967296);
      UPDATE weir.floors k SET horizon = (inner_
          + CASE WHEN inner_ < outer_ THEN 4294967296 ELSE 0 END)::text::xid8
        WHERE k.scan = scan_ AND k.queue = queue_ AND k.number = f.number;
      RETURN;
    END IF;
  END IF;
  IF scan_ = -1 THEN
    LOOP
      h := weir.next_head(queue_, level_, from_, now_);
      EXIT WHEN h.level IS NULL;
      level_ := h.level;
      levels_ := levels_ || level_::smallint;
      lives := lives || h.vests;
    END LOOP;
    first_ := (SELECT p.number FROM weir.pointers p WHERE p.queue = queue_ AND NOT p.ahead
                 AND p.number > coalesce(from_.pointer, 0) ORDER BY p.number LIMIT 1) - 1;
  ELSE
    levels_ := '{0}';
    lives := ARRAY[(SELECT p.pointer FROM weir.pointers p WHERE p.scan = scan_
      AND p.pointer BETWEEN coalesce(from_.floors[1], least_) AND now_ ORDER BY p.pointer LIMIT 1)];
  END IF;
  SELECT array_agg(u.level ORDER BY u.level), array_agg(u.floor ORDER BY u.level),
      array_agg(u.proposed ORDER BY u.level)
    INTO from_.levels, from_.floors, from_.proposed
    FROM (SELECT coalesce(o.level, l.level) AS level,
              CASE WHEN o.level IS NULL THEN least_
                ELSE least(CASE WHEN taken THEN o.proposed ELSE o.floor END, l.vests) END AS floor,
              CASE WHEN taken THEN least(l.vests, now_)
                WHEN o.level IS NULL THEN least_ ELSE o.proposed END AS proposed
            FROM unnest(f.levels, f.floors, f.proposed) o(level, floor, proposed)
              FULL JOIN (SELECT l.level, min(l.vests) AS vests
                  FROM unnest(levels_ || used_::smallint[], lives) l(level, vests)
                  GROUP BY l.level) l ON l.level = o.level) u;
  from_ := (scan_, queue_, (coalesce(f.number, 0) & 4611686018427387903) + 1,
    coalesce(from_.levels, '{}'), coalesce(from_.floors, '{}'), coalesce(from_.proposed, '{}'),
    least(CASE WHEN taken THEN coalesce(f.proposed_pointer, 0) ELSE f.pointer END, first_),
    CASE WHEN taken THEN coalesce(pg_sequence_last_value('weir.numbers'), 0)
      ELSE f.proposed_pointer END,
    CASE WHEN NOT taken THEN f.horizon END,
    CASE WHEN weir.relied_on(f.since, f.floors, now_) THEN f.since ELSE now_ END);
  IF known THEN
    UPDATE weir.floors k SET number = from_.number, levels = from_.levels, floors = from_.floors,
        proposed = from_.proposed, pointer = from_.pointer,
        proposed_pointer = from_.proposed_pointer, horizon = from_.horizon, since = from_.since
      WHERE k.scan = scan_ AND k.queue = queue_ AND k.number = f.number;
  ELSIF pg_try_advisory_xact_lock(weir.queue_lock(queue_)) THEN  -- or another is adding it
    INSERT INTO weir.floors SELECT from_.* ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Raises the floor of a scan if there is much before its first pointer.
CREATE FUNCTION weir.raise_scan(scan_ integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := weir.clock();
  floor_ bigint := coalesce((weir.floors_of(scan_, '', now_, NULL)).floors[1],
                            -9223372036854775808);
  before bigint := pg_stat_get_xact_tuples_returned('weir.pointers_due'::regclass);
BEGIN
  PERFORM 1 FROM weir.pointers p WHERE p.scan = scan_ AND p.pointer BETWEEN floor_ AND now_
    ORDER BY p.pointer LIMIT 1;
  IF weir.worth_a_floor(pg_stat_get_xact_tuples_returned('weir.pointers_due'::regclass) --\
      - before) THEN
    PERFORM weir.raise_floor(scan_, '', '{}');
  END IF;
END $$;

-- Where a job that was claimed waits again that waited from `vesting_` on: there, or at the floor
-- that its level has or is to have. Its transaction has its number.
CREATE FUNCTION weir.floor_for(queue_ bytea, level_ integer, vesting_ bigint, now_ bigint)
  RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  f weir.floors;
  i integer;
BEGIN
  SELECT k.* INTO f FROM weir.floors k WHERE k.scan = -1 AND k.queue = queue_
    ORDER BY k.number DESC LIMIT 1;
  i := array_position(f.levels, level_::smallint);
  IF i IS NULL THEN
    RETURN vesting_;
  END IF;
  RETURN greatest(vesting_, least(now_, greatest(f.floors[i], f.proposed[i])));
END $$;

-- A job of the queue vests at `vesting_`. A pointer that others have is relied on only where it
-- cannot be removed before this step is committed; otherwise the step adds its own (F41, F48). Only
-- the last one of its kind is looked at: that costs the same however many were removed.
-- Returns whether it added one. (A function that returns something is called for less by an
-- assignment than by PERFORM, which is a statement to execute.)
CREATE FUNCTION weir.touch(queue_ bytea, shard_ integer, vesting_ bigint, now_ bigint, own_ boolean)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  ahead_ boolean := vesting_ > now_;
  last bigint;
  scan_ integer;
BEGIN
  IF own_ AND pg_try_advisory_xact_lock_shared(weir.queue_lock(queue_)) THEN
    last := (SELECT p.pointer FROM weir.pointers p WHERE p.queue = queue_ AND p.ahead = ahead_
               AND p.number > coalesce((SELECT CASE WHEN NOT ahead_ THEN k.pointer END
                   FROM weir.floors k WHERE k.scan = -1 AND k.queue = queue_
                   ORDER BY k.number DESC LIMIT 1), 0)
               ORDER BY p.number DESC LIMIT 1);
    IF last <= vesting_ THEN
      RETURN false;
    END IF;
  END IF;
  scan_ := weir.scan_of(queue_, shard_);
  INSERT INTO weir.pointers VALUES (scan_, vesting_, queue_, ahead_);
  PERFORM weir.tell('j' || scan_, own_);
  RETURN true;
END $$;

-- The least of the heads, one probe for each level that is in use, whether any is visible, and, if
-- it is asked for, the least that vests later than now. Who has just looked at the first level says
-- where its head was: what is dead before it, and not yet removed by a vacuum, is not gone through
-- once more.
CREATE FUNCTION weir.heads(queue_ bytea, now_ bigint, first_ integer, from_ bigint,
    with_later_ boolean, OUT least_ bigint, OUT visible boolean, OUT later bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  level integer := coalesce(first_, -32769);
  vests bigint;
BEGIN
  IF first_ IS NOT NULL THEN
    SELECT j.vesting INTO least_ FROM weir.jobs j
      WHERE j.queue = queue_ AND j.priority = first_ AND j.vesting >= from_
      ORDER BY j.vesting, j.id LIMIT 1;
  END IF;
  visible := coalesce(least_ <= now_, false);
  LOOP
    SELECT j.priority, j.vesting INTO level, vests FROM weir.jobs j
      WHERE j.queue = queue_ AND j.priority > level AND j.vesting IS NOT NULL
      ORDER BY j.priority, j.vesting, j.id LIMIT 1;
    EXIT WHEN NOT FOUND;
    least_ := least(least_, vests);
    visible := visible OR vests <= now_;
    IF with_later_ THEN
      later := least(later, CASE WHEN vests > now_ THEN vests ELSE (SELECT j.vesting FROM weir.jobs j
        WHERE j.queue = queue_ AND j.priority = level AND j.vesting > now_
        ORDER BY j.vesting, j.id LIMIT 1) END);
    END IF;
  END LOOP;
END $$;

-- Puts the pointer where the first of the jobs is, if nobody is enqueueing: a step that is not
-- committed yet holds the lock shared, or has a pointer of its own. Each statement sees what was
-- committed before it began. So the pointers are looked up before the jobs are, and no other is
-- removed: one that is committed in between belongs to a job that was not seen (F57).
CREATE FUNCTION weir.move_pointer(queue_ bytea, shard_ integer, now_ bigint, own_ boolean,
    OUT least_ bigint, OUT moved boolean) LANGUAGE plpgsql AS $$
DECLARE
  h record;
  seen tid[];
BEGIN
  moved := own_ AND pg_try_advisory_xact_lock(weir.queue_lock(queue_));
  IF NOT moved THEN
    h := weir.heads(queue_, now_, NULL, NULL, false);
    least_ := h.least_;
    RETURN;
  END IF;
  seen := ARRAY(SELECT p.ctid FROM weir.pointers p WHERE p.queue = queue_);
  h := weir.heads(queue_, now_, NULL, NULL, true);
  least_ := h.least_;
  DELETE FROM weir.pointers p WHERE p.ctid = ANY (seen)
    AND NOT (CASE WHEN p.ahead THEN p.pointer IN (h.least_, h.later)
               ELSE h.visible AND p.pointer = h.least_ END IS TRUE);
  IF h.visible AND NOT EXISTS (SELECT 1 FROM weir.pointers p
      WHERE p.queue = queue_ AND (p.pointer <= h.least_) IS TRUE) THEN
    INSERT INTO weir.pointers VALUES (weir.scan_of(queue_, shard_), h.least_, queue_, false);
  END IF;
  IF h.later IS NOT NULL AND NOT EXISTS (SELECT 1 FROM weir.pointers p
      WHERE p.queue = queue_ AND p.ahead AND (p.pointer <= h.later) IS TRUE) THEN
    INSERT INTO weir.pointers VALUES (weir.scan_of(queue_, shard_), h.later, queue_, true);
  END IF;
END $$;

CREATE FUNCTION weir.count_jobs(queue_ bytea, shard_ integer, enqueued_ bigint, completed_ bigint,
    cancelled_ bigint, purged_ bigint, dead_ bigint, own_ boolean)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  last bigint := greatest(0, (SELECT c.number FROM weir.counters c
    WHERE c.shard = shard_ AND c.queue = queue_ ORDER BY c.number DESC LIMIT 1));
BEGIN
  IF own_ THEN  -- of the last ones: those before may lie among many that are dead
    UPDATE weir.counters c SET enqueued = c.enqueued + enqueued_, completed = c.completed --\
        + completed_,
        cancelled = c.cancelled + cancelled_, purged = c.purged + purged_, dead = c.dead + dead_,
        uses = c.uses + 1, number = (c.uses + 1) >> 5  -- a number for 32 uses
      WHERE c.ctid = (SELECT f.ctid FROM weir.counters f
        WHERE f.shard = shard_ AND f.queue = queue_ AND f.number > last - 4
          AND greatest(f.enqueued, f.completed, f.cancelled, f.purged, f.dead, f.uses) --\
            < 4611686018427387904
          AND f.dead > -4611686018427387904
        ORDER BY f.number DESC LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF FOUND THEN
      RETURN false;
    END IF;
  END IF;
  last := least(last, 72057594037927936);
  INSERT INTO weir.counters VALUES (shard_, queue_, last, last << 5,
    enqueued_, completed_, cancelled_, purged_, dead_);
  RETURN true;
END $$;

CREATE FUNCTION weir.held(queue_ bytea, now_ bigint) RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce((SELECT paused OR now_ < snoozed FROM weir.queues WHERE queue = queue_), false);

CREATE FUNCTION weir.min_vesting_time(queue_ bytea, at_ bigint) RETURNS bigint
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  RETURN weir.span((weir.heads(queue_, now_, NULL, NULL, false)).least_, now_);
END $$;

CREATE FUNCTION weir.update_queue_pointer(queue_ bytea, shard_ integer, own_ boolean, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  RETURN weir.span((weir.move_pointer(queue_, shard_, now_, own_)).least_, now_);
END $$;

-- First, with no queue, when the next pointer after these is due.
CREATE FUNCTION weir.scan_visible_queues(scan_ integer, limit_ integer, entropy_ bigint, --\
    at_ bigint)
  RETURNS TABLE (queue bytea, next_in bigint) --\
      LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  floor_ bigint := coalesce((weir.floors_of(scan_, '', now_, at_)).floors[1],
                            -9223372036854775808);
  first bigint := greatest((SELECT min(p.pointer) FROM weir.pointers p
    WHERE p.scan = scan_ AND p.pointer >= floor_), -4611686018427387904);
  start bigint;
  p record;
  found_ bytea[] := '{}';
  due bigint[] := '{}';
  upcoming bigint;
  room integer := weir.limits.answer_bytes;
BEGIN
  start := first;
  IF now_ > first THEN
    start := first + floor((now_ - first)
      * (entropy_::numeric + CASE WHEN entropy_ < 0 THEN 18446744073709551616 ELSE 0 END)
      / 18446744073709551616)::bigint;
  END IF;
  FOR p IN
    (SELECT k.pointer, k.queue AS name, q.paused, q.snoozed
       FROM weir.pointers k LEFT JOIN weir.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer >= start AND k.pointer <= now_
       ORDER BY k.pointer, k.queue)
    UNION ALL
    (SELECT k.pointer, k.queue, q.paused, q.snoozed
       FROM weir.pointers k LEFT JOIN weir.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer >= floor_ AND k.pointer < start
       ORDER BY k.pointer, k.queue)
    UNION ALL
    (SELECT k.pointer, k.queue, q.paused, q.snoozed
       FROM weir.pointers k LEFT JOIN weir.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer > now_ ORDER BY k.pointer, k.queue)
  LOOP
    CONTINUE WHEN p.paused OR p.name = ANY (found_) OR octet_length(p.name) NOT BETWEEN 1 --\
        AND weir.limits.key_size;
    IF greatest(p.pointer, p.snoozed) > now_ THEN
      upcoming := least(upcoming, greatest(p.pointer, p.snoozed));
      EXIT WHEN p.pointer > now_ AND coalesce(p.snoozed, p.pointer) <= p.pointer;
    ELSIF cardinality(found_) = limit_ OR room < octet_length(p.name) THEN
      upcoming := least(upcoming, greatest(p.pointer, p.snoozed));
      EXIT;
    ELSE
      room := room - octet_length(p.name);
      found_ := found_ || p.name;
      due := due || greatest(p.pointer, p.snoozed);
    END IF;
  END LOOP;
  queue := NULL; next_in := upcoming - now_;
  RETURN NEXT;
  RETURN QUERY SELECT f.name, NULL::bigint FROM unnest(found_, due) WITH ORDINALITY f(name, due, n)
    ORDER BY CASE WHEN entropy_ = 0 THEN f.due END, f.n;
END $$;

-- Is a queue of the scan due? Otherwise, when the next one will be, and who is told of an earlier
-- one: what is committed after the second look.
CREATE FUNCTION weir.await_jobs(scan_ integer, at_ bigint, OUT due boolean, OUT due_in bigint,
    OUT topic_ text) LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  settled boolean := true;
BEGIN
  topic_ := 'j' || scan_;
  FOR i IN 1 .. 2 LOOP
    SELECT coalesce(bool_or(s.queue IS NOT NULL), false), max(s.next_in) INTO due, due_in
      FROM weir.scan_visible_queues(scan_, 1, 0, at_) s;
    EXIT WHEN due OR i = 2;
    settled := weir.ask_for(topic_);
  END LOOP;
  IF NOT settled THEN
    due_in := 0;
  END IF;
END $$;

-- Removes pointers in the statement that sees that there is no job, so that both are looked up at
-- one time (F57). Where all of an application's transaction sees one time, that may be long ago: an
-- enqueue that has relied on a pointer since would not be seen. Each queue takes a place in the lock
-- table that all databases share, so a call takes few (F94).
CREATE FUNCTION weir.gc_stale_pointers(shard_ integer, limit_ integer, grace_ bigint, at_ bigint)
  RETURNS integer LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  deleted integer := 0;
  p record;
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    RETURN 0;
  END IF;
  FOR p IN SELECT k.queue AS name
      FROM weir.pointers k LEFT JOIN weir.queues q ON q.queue = k.queue
      WHERE k.scan IN (shard_, shard_ + weir.rule.most_shards) AND k.pointer < now_ - grace_ AND NOT coalesce(q.paused, false)
        AND NOT EXISTS (SELECT 1 FROM weir.jobs j WHERE j.queue = k.queue AND j.vesting IS NOT NULL)
      GROUP BY k.queue HAVING min(greatest(k.pointer, q.snoozed)) < now_ - grace_
      ORDER BY k.queue LIMIT least(limit_, weir.rule.pointers_per_step) LOOP
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(weir.queue_lock(p.name));
    DELETE FROM weir.pointers k WHERE k.queue = p.name
      AND NOT EXISTS (SELECT 1 FROM weir.jobs j WHERE j.queue = p.name AND j.vesting IS NOT NULL);
    deleted := deleted + FOUND::integer;
  END LOOP;
  RETURN deleted;
END $$;

CREATE FUNCTION weir.open_queue(queue_ bytea, shard_ integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO weir.queues (queue, shard) VALUES (queue_, shard_) ON CONFLICT DO NOTHING;
  PERFORM 1 FROM weir.queues q WHERE q.queue = queue_ FOR UPDATE;
END $$;

CREATE FUNCTION weir.snooze_queue(queue_ bytea, shard_ integer, delay_ bigint, at_ bigint)
  RETURNS void LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
BEGIN
  PERFORM weir.open_queue(queue_, shard_);
  UPDATE weir.queues q SET snoozed = CASE WHEN delay_ = 0 THEN -9223372036854775808
                                       ELSE coalesce(at_, weir.clock()) + delay_ END
    WHERE q.queue = queue_;
END $$;

CREATE FUNCTION weir.pause_queue(queue_ bytea, shard_ integer) RETURNS void
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
BEGIN
  PERFORM weir.open_queue(queue_, shard_);
  UPDATE weir.queues q SET paused = true WHERE q.queue = queue_;
END $$;

CREATE FUNCTION weir.resume_queue(queue_ bytea) RETURNS void --\
    LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
BEGIN
  UPDATE weir.queues q SET paused = false, snoozed = -9223372036854775808 WHERE q.queue = queue_;
  PERFORM weir.tell('j' || weir.scan_of(q.queue, q.shard), true) FROM weir.queues q
    WHERE q.queue = queue_;
END $$;

CREATE FUNCTION weir.obtain_queue_lease(queue_ bytea, shard_ integer, holder_ bytea, lease_ bigint,
    at_ bigint, OUT granted boolean, OUT fence bigint, OUT expires_in bigint, OUT holder bytea)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  q record;
  now_ bigint;
BEGIN
  PERFORM weir.open_queue(queue_, shard_);
  SELECT k.holder, k.fence, k.until INTO q FROM weir.queues k WHERE k.queue = queue_;
  now_ := coalesce(at_, weir.clock());
  granted := now_ >= q.until OR q.holder = holder_;
  IF NOT granted THEN
    fence := 0; expires_in := q.until - now_; holder := q.holder;
    RETURN;
  END IF;
  holder := '';
  IF now_ < q.until THEN
    fence := q.fence; expires_in := q.until - now_;
    RETURN;
  END IF;
  fence := weir.next_fence(now_, q.fence); expires_in := lease_;
  UPDATE weir.queues k SET holder = holder_, fence = obtain_queue_lease.fence, until = now_ + lease_
    WHERE k.queue = queue_;
END $$;

CREATE FUNCTION weir.release_queue_lease(queue_ bytea, holder_ bytea, fence_ bigint, at_ bigint)
  RETURNS boolean LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
BEGIN
  PERFORM 1 FROM weir.queues q WHERE q.queue = queue_ FOR UPDATE;
  UPDATE weir.queues q SET until = -9223372036854775808
    WHERE q.queue = queue_ AND q.holder = holder_ AND q.until > coalesce(at_, weir.clock())
      AND (fence_ = 0 OR q.fence = fence_);
  RETURN FOUND;
END $$;

-- In one statement, so from one snapshot; what is pending is what is left of what came in.
CREATE FUNCTION weir.read_queue_stats(queue_ bytea, shard_ integer, at_ bigint, OUT enqueued bigint,
    OUT leased bigint, OUT completed bigint, OUT dead bigint, OUT cancelled bigint,
    OUT purged bigint, OUT paused boolean, OUT next_in bigint) --\
        LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  SELECT greatest(weir.held_within(sum(c.enqueued)), 0), --\
      greatest(weir.held_within(sum(c.completed)), 0),
      greatest(weir.held_within(sum(c.dead)), 0), greatest(weir.held_within(sum(c.cancelled)), 0),
      greatest(weir.held_within(sum(c.purged)), 0),
      (SELECT count(*) FROM weir.jobs j
         WHERE j.queue = queue_ AND j.holder IS NOT NULL --\
             AND j.state = weir.job_state.pending AND j.vesting > now_),
      coalesce((SELECT q.paused FROM weir.queues q WHERE q.queue = queue_), false)
    INTO enqueued, completed, dead, cancelled, purged, leased, paused
    FROM weir.counters c WHERE c.shard = shard_ AND c.queue = queue_;
  next_in := weir.span((weir.heads(queue_, now_, NULL, NULL, false)).least_, now_);
END $$;

-- The last one may be more than fits the answer: it says that there are more.
CREATE FUNCTION weir.list_queues(shard_ integer, limit_ integer, after_ bytea) RETURNS SETOF bytea
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  last bytea := after_;
  room integer := weir.limits.answer_bytes;
BEGIN
  FOR i IN 1 .. limit_ LOOP
    last := least((SELECT c.queue FROM weir.counters c WHERE c.shard = shard_ AND c.queue > last
                     ORDER BY c.queue LIMIT 1),
                  (SELECT q.queue FROM weir.queues q WHERE q.shard = shard_ AND q.queue > last
                     ORDER BY q.queue LIMIT 1));
    EXIT WHEN last IS NULL;
    RETURN NEXT last;
    room := room - octet_length(last);
    EXIT WHEN room < 0;
  END LOOP;
END $$;
