--- Claims and what is done under a lease, as rule/jobs.hpp has it. See queues.sql for `own_`, and
--- jobs.sql for why several jobs are looked up one by one.

CREATE FUNCTION weir.obtain_lease(queue_ bytea, shard_ integer, id_ uuid, holder_ bytea,
    lease_ bigint, early_ boolean, own_ boolean, at_ bigint) RETURNS SETOF weir.job_row
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  j weir.jobs;
  now_ bigint;
BEGIN
  SELECT k.* INTO j FROM weir.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
  now_ := coalesce(at_, weir.clock());
  IF j.id IS NULL OR j.state <> weir.job_state.pending THEN
    RETURN;
  END IF;
  early_ := early_ AND j.vesting > now_;
  IF j.vesting > now_ AND (j.holder IS NOT NULL OR NOT early_) THEN
    IF j.holder = holder_ THEN
      RETURN QUERY SELECT now_, weir.postgres_job_row.of_a_lease;
    END IF;
    RETURN;
  END IF;
  IF weir.held(queue_, now_) THEN
    RETURN;
  END IF;
  IF weir.bury(j, now_) > 0 THEN
    PERFORM weir.count_jobs(queue_, shard_, 0, 0, 0, 0, 1, own_);
    RETURN;
  END IF;
  IF at_ IS NOT NULL THEN  -- the lease may end below a floor
    PERFORM nextval('weir.returned');
  END IF;
  UPDATE weir.jobs k SET fence = weir.next_fence(now_, k.fence), holder = holder_, sequence = 0,
      attempts = k.attempts + 1, unclaimed = k.vesting, vesting = now_ + lease_
    WHERE k.queue = queue_ AND k.id = id_ RETURNING k.* INTO j;
  IF early_ THEN
    PERFORM weir.touch(queue_, shard_, j.vesting, CASE WHEN at_ IS NULL THEN now_ END, own_);
  END IF;
  RETURN QUERY SELECT now_, weir.postgres_job_row.of_a_lease;
END $$;

-- Locks a job with its live lease, and its key before it, if what is done may take it again. No
-- row, or one without id: the lease is lost.
CREATE FUNCTION weir.leased(queue_ bytea, id_ uuid, fence_ bigint, with_key_ boolean, at_ bigint,
    OUT now bigint, OUT job weir.jobs) LANGUAGE plpgsql AS $$
DECLARE
  hurries boolean := weir.hurry();
BEGIN
  IF with_key_ THEN
    SELECT k.* INTO job FROM weir.jobs k WHERE k.queue = queue_ AND k.id = id_;
    IF job.strategy IN (weir.rule.start_frees_key.strategies) THEN
      PERFORM weir.lock_keys(5, queue_, ARRAY[job.unique_key], at_);
    END IF;
  END IF;
  SELECT k.* INTO job FROM weir.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
  now := coalesce(at_, weir.clock());
  IF job.state <> weir.job_state.pending OR job.holder IS NULL OR --\
      job.vesting <= now OR job.fence <> fence_ THEN
    job := NULL;
  END IF;
END $$;

-- NULL: the lease is lost.
CREATE FUNCTION weir.extend_lease(queue_ bytea, shard_ integer, id_ uuid, fence_ bigint,
    lease_ bigint, progress_ bytea, checkpoint_ bytea, own_ boolean, at_ bigint) RETURNS bigint --\
        LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  l record;
BEGIN
  SELECT * INTO l FROM weir.leased(queue_, id_, fence_, false, at_);
  IF (l.job).id IS NULL THEN
    RETURN NULL;
  END IF;
  IF progress_ = '' AND checkpoint_ = '' THEN
    UPDATE weir.jobs k SET vesting = l.now + lease_ WHERE k.queue = queue_ AND k.id = id_;
  ELSE
    UPDATE weir.jobs k SET vesting = l.now + lease_,
        progress = CASE WHEN progress_ = '' THEN k.progress ELSE progress_ END,
        checkpoint = CASE WHEN checkpoint_ = '' THEN k.checkpoint ELSE checkpoint_ END
      WHERE k.queue = queue_ AND k.id = id_;
  END IF;
  PERFORM weir.touch(queue_, shard_, l.now + lease_, CASE WHEN at_ IS NULL THEN l.now END, own_);
  RETURN lease_;
END $$;

-- NULL: the lease is lost; -1: started; otherwise what is left of the other's lease, and which job
-- that is.
CREATE FUNCTION weir.start_job(queue_ bytea, id_ uuid, fence_ bigint, at_ bigint, OUT left_ bigint,
    OUT other uuid) LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  j weir.jobs;
  has_key boolean := false;
  runs record;
  l record;
BEGIN
  SELECT k.* INTO j FROM weir.jobs k WHERE k.queue = queue_ AND k.id = id_;
  -- Where it has not its enqueue key it gets none under this lease, and waits for nobody who has it.
  IF j.strategy IN (weir.rule.start_frees_key.strategies) THEN
    SELECT true INTO has_key
      FROM weir.possessor(queue_, j.unique_key, coalesce(at_, weir.clock())) p WHERE p.owner = id_;
  END IF;
  IF has_key THEN
    PERFORM weir.lock_keys(5, queue_, ARRAY[j.unique_key], at_);
  END IF;
  IF j.strategy IN (weir.holds_while_running.strategies) THEN
    PERFORM weir.lock_keys(6, queue_, ARRAY[j.unique_key], at_);
    SELECT w.owner, w.fence INTO runs FROM weir.keys w
      WHERE weir.dequeue_key(w.queue, w.key) = weir.dequeue_key(queue_, j.unique_key) AND w.run
      ORDER BY w.number DESC LIMIT 1;
    PERFORM 1 FROM (SELECT id_ AS id UNION SELECT runs.owner ORDER BY 1) o,
      LATERAL (SELECT 1 FROM weir.jobs k WHERE k.queue = queue_ AND k.id = o.id FOR UPDATE) f;
  END IF;
  SELECT * INTO l FROM weir.leased(queue_, id_, fence_, false, at_);
  j := l.job;
  IF j.id IS NULL THEN
    RETURN;
  END IF;
  IF j.strategy IN (weir.holds_while_running.strategies) THEN
    SELECT k.vesting - l.now, k.id INTO left_, other FROM weir.jobs k
      WHERE k.queue = queue_ AND k.id = runs.owner AND k.id <> id_ AND k.fence = runs.fence
        AND k.state = weir.job_state.pending AND k.holder IS NOT NULL AND k.vesting > l.now;
    IF FOUND THEN
      RETURN;
    END IF;
    PERFORM weir.take_key(queue_, true, j.unique_key, id_, NULL, fence_);
  END IF;
  IF has_key AND (SELECT p.owner = id_ FROM weir.possessor(queue_, j.unique_key, l.now) p) THEN
    PERFORM weir.take_key(queue_, false, j.unique_key, NULL, NULL, NULL);
  END IF;
  left_ := -1;
END $$;

-- Jobs of any queues, of several commands, which have so many each. NULL: the command is to be asked by
-- itself, and has ended none of its jobs: somebody else has one of them locked, and it is not waited
-- for, because others are asked together with it.
CREATE FUNCTION weir.complete_jobs(queues_ bytea[], shards_ integer[], ids_ uuid[], fences_ bigint[],
    results_ bytea[], commands_ integer[], together_ boolean, own_ boolean, at_ bigint)
  RETURNS SETOF boolean LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  now_ bigint;
  j weir.jobs;
  free_ integer[];
  whose integer[];
  alone integer[] := '{}';  -- jobs of commands that are to be asked by themselves
  places tid[];
  ends bigint[];
  numbers bigint[];
  others bigint[];
  ended bigint[];
  done boolean[];
  n integer;
  counted boolean;
BEGIN
  IF together_ THEN
    free_ := ARRAY(SELECT u.n FROM (SELECT * FROM unnest(queues_, ids_) WITH ORDINALITY o(queue, id, n)
        ORDER BY o.id, o.n) u,
      LATERAL (SELECT 1 FROM weir.jobs k WHERE k.queue = u.queue AND k.id = u.id
                 FOR UPDATE SKIP LOCKED) l);
    IF cardinality(free_) < cardinality(ids_) THEN
      whose := ARRAY(SELECT c.n FROM unnest(commands_) WITH ORDINALITY c(jobs, n),
        generate_series(1, c.jobs) ORDER BY c.n);
      alone := ARRAY(SELECT u.n FROM unnest(whose) WITH ORDINALITY u(command, n)
        WHERE u.command IN (SELECT whose[k.n] FROM unnest(queues_, ids_) WITH ORDINALITY k(queue, id, n)
          WHERE k.n <> ALL (free_)
            AND EXISTS (SELECT 1 FROM weir.jobs l WHERE l.queue = k.queue AND l.id = k.id)));
    END IF;
  END IF;
  -- Those of other fences are lost, and whatever becomes of them.
  SELECT array_agg(l.place) FILTER (WHERE l.plain), array_agg(l.until) FILTER (WHERE l.plain),
      array_agg(u.n) FILTER (WHERE l.plain), array_agg(u.n) FILTER (WHERE NOT l.plain)
    INTO places, ends, numbers, others
    FROM (SELECT * FROM unnest(queues_, ids_, fences_) WITH ORDINALITY o(queue, id, fence, n)
            WHERE o.fence <> 0 AND o.n <> ALL (alone) ORDER BY o.id, o.n) u,
      LATERAL (SELECT k.ctid AS place, k.retention = 0 AS plain,
                   CASE WHEN k.state = weir.job_state.pending AND k.holder IS NOT NULL --\
                       THEN k.vesting END AS until
                 FROM weir.jobs k WHERE k.queue = u.queue AND k.id = u.id AND k.fence = u.fence
                 FOR UPDATE) l;
  now_ := coalesce(at_, weir.clock());
  -- Of the plain ones no record is kept: all at once, and the rows stay in place.
  IF places IS NOT NULL THEN
    WITH gone AS (
        DELETE FROM weir.jobs k USING unnest(places, ends, numbers) f(place, until, n)
          WHERE k.ctid = f.place AND f.until > now_ RETURNING f.n)
      SELECT array_agg(g.n) INTO ended FROM gone g;
  END IF;
  IF coalesce(cardinality(ended), 0) < cardinality(ids_) THEN
    done := array_fill(false, ARRAY[cardinality(ids_)]);
    FOR i IN 1 .. coalesce(cardinality(ended), 0) LOOP
      done[ended[i]] := true;
    END LOOP;
    FOR i IN 1 .. coalesce(cardinality(others), 0) LOOP
      SELECT k.* INTO j FROM weir.jobs k
        WHERE k.queue = queues_[others[i]] AND k.id = ids_[others[i]]
          AND k.fence = fences_[others[i]]
          AND k.state = weir.job_state.pending AND k.holder IS NOT NULL AND k.vesting > now_;
      IF FOUND THEN
        done[others[i]] := true;
        ended := ended || others[i];
        PERFORM weir.end_job(j, weir.job_state.completed::smallint, now_, --\
          nullif(results_[others[i]], ''), NULL);
      END IF;
    END LOOP;
    -- What was completed before, under the same lease, was so.
    IF false = ANY (done) THEN
      FOR n IN SELECT u.n FROM unnest(queues_, ids_, fences_, done)
            WITH ORDINALITY u(queue, id, fence, done, n),
          LATERAL (SELECT 1 FROM weir.ended e WHERE e.queue = u.queue AND e.id = u.id
            AND e.fence = u.fence AND e.state = weir.job_state.completed AND e.kept > now_
            OFFSET 0) l
          WHERE NOT u.done AND u.fence <> 0 LOOP
        done[n] := true;
      END LOOP;
    END IF;
    FOR i IN 1 .. cardinality(alone) LOOP
      done[alone[i]] := NULL;
    END LOOP;
  END IF;
  IF queues_[1] <> ANY (queues_[2:]) THEN
    PERFORM weir.count_completed(array_agg(queues_[e.n]), array_agg(shards_[e.n]))
      FROM unnest(ended) e(n);
  ELSIF ended IS NOT NULL THEN
    counted := weir.count_jobs(queues_[1], shards_[1], 0, cardinality(ended), 0, 0, 0, own_);
  END IF;
  IF done IS NULL THEN
    RETURN QUERY SELECT true FROM unnest(ids_);
  ELSE
    RETURN QUERY SELECT d FROM unnest(done) d;
  END IF;
END $$;

-- The job waits again, with the enqueue key that its start gave up, if that is free.
CREATE FUNCTION weir.wait_again(j weir.jobs, shard_ integer, vesting_ bigint, attempts_ integer,
    snoozes_ integer, memo_ bytea, reason_ bytea, now_ bigint, own_ boolean, at_ bigint)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF j.strategy IN (weir.rule.start_frees_key.strategies)
      AND NOT EXISTS (SELECT 1 FROM weir.possessor(j.queue, j.unique_key, now_)) THEN
    PERFORM weir.take_key(j.queue, false, j.unique_key, j.id, NULL, NULL);
  END IF;
  UPDATE weir.jobs k SET vesting = vesting_, holder = NULL, sequence = 0, attempts = attempts_,
      snoozes = snoozes_, memo = coalesce(memo_, k.memo), reason = coalesce(reason_, k.reason)
    WHERE k.queue = j.queue AND k.id = j.id;
  PERFORM weir.touch(j.queue, shard_, vesting_, CASE WHEN at_ IS NULL THEN now_ END, own_);
END $$;

-- Ends a lease: 0: failed, and vests after the delay or is dead (1 is answered); 1: snoozed;
-- 2: returned; 3: buried. NULL: the lease is lost.
CREATE FUNCTION weir.end_lease(queue_ bytea, shard_ integer, id_ uuid, fence_ bigint, how_ integer,
    delay_ bigint, text_ bytea, own_ boolean, at_ bigint) RETURNS integer
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  l record;
  j weir.jobs;
BEGIN
  SELECT * INTO l FROM weir.leased(queue_, id_, fence_, how_ <> 3, at_);
  j := l.job;
  IF j.id IS NULL THEN
    RETURN NULL;
  END IF;
  IF how_ = 3 OR how_ = 0 AND j.attempts >= j.max_attempts THEN
    PERFORM weir.end_job(j, weir.job_state.dead::smallint, l.now, NULL, text_);
    PERFORM weir.count_jobs(queue_, shard_, 0, 0, 0, 0, 1, own_);
    RETURN 1;
  ELSIF how_ = 0 THEN
    PERFORM weir.wait_again(j, shard_, l.now + delay_, j.attempts, j.snoozes, NULL, text_, l.now,
                         own_, at_);
  ELSIF how_ = 1 THEN
    PERFORM weir.wait_again(j, shard_, l.now + delay_, greatest(j.attempts - 1, 0), j.snoozes + 1,
                         text_, NULL, l.now, own_, at_);
  ELSE
    PERFORM weir.wait_again(j, shard_, j.unclaimed, greatest(j.attempts - 1, 0), j.snoozes, --\
        NULL, NULL,
                         l.now, own_, at_);
  END IF;
  RETURN 0;
END $$;

-- Forgets some of what time has ended; what others have locked is left to the next time.
CREATE FUNCTION weir.tidy(limit_ integer, at_ bigint) RETURNS integer --\
    LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  now_ bigint := coalesce(at_, weir.clock());
  today bigint := now_ / 86400000000000;
  all_ integer := 0;
  n integer;
  left_ integer;
  r record;
  line_ record;
  here bigint := 'weir.state'::regclass::oid;
  tidied bigint[] := nullif(current_setting('weir.tidied', true), '');
  until_ bigint;
  places tid[];
BEGIN
  -- From where the session was the last time: while somebody holds a snapshot, what it has removed is
  -- still there to go through (F79). What was locked, or came later, is met by every 64th look, which
  -- is one from the beginning. tidied[1]: which schema; [2]: from when on; [3]: how many looks ago;
  -- [4]: as [2], of unique keys.
  IF at_ IS NOT NULL OR tidied[1] IS DISTINCT FROM here OR tidied[3] >= 64
      OR cardinality(tidied) <> 4 THEN
    tidied := ARRAY[here, -9223372036854775808, 0, -9223372036854775808];
  END IF;
  WITH o AS MATERIALIZED (SELECT k.ctid AS place, k.kept FROM weir.ended k
        WHERE k.kept + 0 >= tidied[2] AND k.kept + 0 <= now_
        ORDER BY k.kept + 0 LIMIT limit_ FOR UPDATE SKIP LOCKED),
      gone AS (DELETE FROM weir.ended e USING o WHERE e.ctid = o.place)
    SELECT count(*), max(o.kept) INTO n, until_ FROM o;
  all_ := all_ + n;
  tidied[2] := coalesce(until_, tidied[2]);
  SELECT array_agg(o.place), count(*), max(o.due) INTO places, n, until_
    FROM (SELECT k.ctid AS place, k.due FROM weir.used_keys k
      WHERE k.due >= tidied[4] AND k.due <= now_ ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED) o;
  all_ := all_ + n;
  tidied[3] := tidied[3] + 1;
  tidied[4] := coalesce(until_, tidied[4]);
  PERFORM set_config('weir.tidied', tidied::text, false);
  -- By another statement, which sees what the keys were when they were locked. A job that has waited
  -- for long is looked at less often.
  WITH o AS MATERIALIZED (SELECT u.ctid AS used, w.place,
          CASE WHEN w.until > now_ THEN w.until WHEN w.until IS NULL AND j.id IS NOT NULL THEN now_
            + least(greatest(weir.span(j.vesting, now_), -weir.span(j.enqueued, now_), 60000000000),
              86400000000000) END AS lasts
        FROM unnest(places) p(place) JOIN weir.used_keys u ON u.ctid = p.place
          LEFT JOIN LATERAL (SELECT k.ctid AS place, k.queue, k.owner, k.until FROM weir.keys k
            WHERE weir.dequeue_key(k.queue, k.key) = u.key AND k.run = (u.kind = 6)
            ORDER BY k.number DESC LIMIT 1) w ON true
          LEFT JOIN LATERAL (SELECT k.id, k.vesting, k.enqueued FROM weir.jobs k
            WHERE k.queue = w.queue AND k.id = w.owner OFFSET 0) j ON true),
      later AS (UPDATE weir.used_keys u SET due = o.lasts FROM o --\
        WHERE u.ctid = o.used AND o.lasts IS NOT NULL),
      forgotten AS (DELETE FROM weir.used_keys u USING o WHERE u.ctid = o.used AND o.lasts IS NULL)
    DELETE FROM weir.keys w USING o WHERE w.ctid = o.place AND o.lasts IS NULL;
  FOR r IN SELECT k.ctid AS place, k.key, k.until FROM weir.locks k WHERE k.due <= now_
      ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    all_ := all_ + 1;
    IF r.until <= now_ AND weir.may_forget(2, r.key) THEN
      DELETE FROM weir.locks l WHERE l.ctid = r.place;
    ELSE
      UPDATE weir.locks l SET due = greatest(now_ + 60000000000,
        least(r.until, now_ + 600000000000)) WHERE l.ctid = r.place;
    END IF;
  END LOOP;
  FOR r IN SELECT l.key FROM (SELECT DISTINCT k.key FROM (SELECT p.key FROM weir.permits p
          WHERE p.until <= now_ ORDER BY p.until LIMIT limit_) k) o,
      LATERAL (SELECT w.key FROM weir.permit_lines w
        WHERE w.key = o.key AND weir.counts_line(w.live, w.waiting, w.turn, w.fence)
        ORDER BY w.number DESC LIMIT 1 FOR UPDATE SKIP LOCKED) l LOOP
    line_ := weir.open_line(r.key, now_, NULL, true);
    PERFORM weir.close_line(r.key, line_.place, line_.live, line_.waiting, line_.turn, line_.fence,
                            line_.soonest, line_.head, line_.oldest, line_.ended);
    UPDATE weir.permit_lines l SET due = now_ WHERE l.key = r.key AND l.live = 0 AND l.waiting = 0;
    all_ := all_ + line_.ended;
  END LOOP;
  FOR r IN SELECT k.ctid AS place, k.key, k.soonest, k.live = 0 AND k.waiting = 0 AS over
      FROM weir.permit_lines k WHERE k.due <= now_
      ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    all_ := all_ + 1;
    IF r.over AND weir.may_forget(1, r.key) THEN
      DELETE FROM weir.permit_lines l WHERE l.ctid = r.place;
    ELSE
      UPDATE weir.permit_lines l SET due = least(greatest(r.soonest, now_ + 60000000000),
        now_ + 600000000000) WHERE l.ctid = r.place;
    END IF;
  END LOOP;
  WITH o AS MATERIALIZED (SELECT k.ctid AS place FROM weir.hints k
      WHERE k.until < now_ LIMIT limit_ FOR UPDATE SKIP LOCKED)
    DELETE FROM weir.hints h USING o WHERE h.ctid = o.place;
  GET DIAGNOSTICS n = ROW_COUNT;
  all_ := all_ + n;
  FOR r IN SELECT k.ctid AS place, k.queue, k.holder FROM weir.dequeues k
      WHERE k.day < today - 1 LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    CONTINUE WHEN NOT weir.may_forget(4, weir.dequeue_key(r.queue, r.holder));
    DELETE FROM weir.dequeues d WHERE d.ctid = r.place;
    all_ := all_ + 1;
  END LOOP;
  -- Of a hundred pages: a queue with many rows is met there soon enough. Ten rows count as one thing
  -- that was done, and no more of them are added up at once, whatever queues have them.
  left_ := 10 * limit_;
  FOR r IN SELECT o.queue, o.shard --\
      FROM (SELECT DISTINCT c.queue, c.shard FROM weir.counters c
          TABLESAMPLE SYSTEM (least(100, 10000 * 8192.0 / (1 --\
              + pg_relation_size('weir.counters'))))) o,
      LATERAL (SELECT count(*) AS rows FROM (SELECT 1 FROM weir.counters c
        WHERE c.queue = o.queue LIMIT 33) k) l
      WHERE l.rows > 32 LIMIT 100 LOOP
    WITH gone AS (DELETE FROM weir.counters c USING (SELECT k.queue, k.stripe FROM weir.counters k
          WHERE k.queue = r.queue LIMIT left_ FOR UPDATE SKIP LOCKED) o
        WHERE c.queue = o.queue AND c.stripe = o.stripe RETURNING c.*),
      made AS (
      INSERT INTO weir.counters (queue, shard, enqueued, completed, cancelled, purged, dead)
        SELECT r.queue, r.shard, weir.held_within(sum(enqueued)), weir.held_within(sum(completed)),
            weir.held_within(sum(cancelled)), weir.held_within(sum(purged)), --\
                weir.held_within(sum(dead))
          FROM gone HAVING count(*) > 0)
      SELECT count(*) INTO n FROM gone;
    left_ := left_ - n;
    EXIT WHEN left_ <= 0;
  END LOOP;
  all_ := all_ + (10 * limit_ - left_) / 10;
  -- A queue that has nothing, is not held and was left alone for two days is forgotten, with all of
  -- its counters or none: the sums of some would be wrong. A step that uses it meanwhile changes a
  -- row's day, or adds one.
  FOR r IN SELECT DISTINCT k.queue FROM (SELECT c.queue FROM weir.counters c
      WHERE c.day < today - 2 ORDER BY c.day LIMIT limit_) k LOOP
    WITH old AS MATERIALIZED (SELECT c.ctid AS place FROM weir.counters c
        WHERE c.queue = r.queue AND c.day < today - 2 FOR UPDATE SKIP LOCKED)
      DELETE FROM weir.counters c USING old WHERE c.ctid = old.place
        AND (SELECT count(*) FROM old) = --\
          (SELECT count(*) FROM weir.counters k WHERE k.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM weir.jobs j WHERE j.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM weir.dead_letters e WHERE e.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM weir.ended e WHERE e.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM weir.queues q WHERE q.queue = r.queue
          AND (q.paused OR greatest(q.snoozed, q.until) > now_));
    IF NOT FOUND THEN  -- not before tomorrow
      UPDATE weir.counters c SET day = today - 2 WHERE c.ctid IN (SELECT k.ctid
        FROM weir.counters k WHERE k.queue = r.queue AND k.day < today - 2
        FOR UPDATE SKIP LOCKED);
    END IF;
    all_ := all_ + 1;
  END LOOP;
  -- What it is held by is forgotten with it, and what it was held by before.
  DELETE FROM weir.queues d USING (SELECT q.ctid AS place FROM weir.queues q
        TABLESAMPLE SYSTEM (least(100, 10000 * 8192.0 / (1 + pg_relation_size('weir.queues'))))
      WHERE NOT q.paused AND greatest(q.snoozed, q.until) < now_ - 172800000000000
        AND NOT EXISTS (SELECT 1 FROM weir.counters c WHERE c.queue = q.queue)
        AND NOT EXISTS (SELECT 1 FROM weir.jobs j WHERE j.queue = q.queue)
        AND NOT EXISTS (SELECT 1 FROM weir.dead_letters e WHERE e.queue = q.queue)
        AND NOT EXISTS (SELECT 1 FROM weir.ended e WHERE e.queue = q.queue)
      LIMIT limit_ FOR UPDATE OF q SKIP LOCKED) o
    WHERE d.ctid = o.place;
  GET DIAGNOSTICS n = ROW_COUNT;
  all_ := all_ + n;
  -- What was full at a time that has not come is known from a clock that was wrong (F101). Last: who
  -- has this row holds up the others that remove buckets.
  UPDATE weir.state s SET forgotten = weir.bucket_time(now_)
    WHERE s.ctid = (SELECT k.ctid FROM weir.state k WHERE k.forgotten > weir.bucket_time(now_)
      FOR UPDATE SKIP LOCKED);
  n := (weir.reap_some_buckets(limit_, now_)).looked;
  all_ := all_ + n;
  RETURN all_;
END $$;

-- Ends a job, adds the first `n_` jobs to another queue of its shard, and the rest to its own. The
-- first row says what became of it (3: its lease is lost), and the others of the jobs. All that the
-- two enqueues lock is locked first, and in one order.
CREATE FUNCTION weir.relay_job(queue_ bytea, shard_ integer, id_ uuid, fence_ bigint,
    expected_ bytea, result_ bytea, to_ bytea, n_ integer, ids_ uuid[], kinds_ bytea[], payloads_ bytea[],
    keys_ bytea[], priorities_ integer[], attempts_ integer[], strategies_ integer[],
    policies_ integer[], delays_ bigint[], deadlines_ bigint[], retentions_ bigint[],
    ttls_ bigint[], headers_ bytea[], own_ boolean, at_ bigint)
  RETURNS TABLE (outcome integer, other uuid) --\
      LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  j weir.jobs;
  now_ bigint;
  m integer := n_ + 1;
BEGIN
  PERFORM weir.guard(ARRAY(
    SELECT weir.key_name(3, CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END, uuid_send(u.id))
      FROM unnest(ids_) WITH ORDINALITY u(id, i)));
  PERFORM weir.lock_keys(5, q.queue, q.keys, at_) FROM (
    SELECT CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END AS queue, array_agg(u.key) AS keys
      FROM unnest(keys_, strategies_) WITH ORDINALITY u(key, strategy, i)
      WHERE u.strategy NOT IN (weir.holds_while_waiting.others) GROUP BY 1 ORDER BY 1) q;
  now_ := coalesce(at_, weir.clock());
  PERFORM 1 FROM (
      SELECT queue_ AS queue, id_ AS id
      UNION SELECT CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END, u.id
        FROM unnest(ids_) WITH ORDINALITY u(id, i)
      UNION SELECT l.queue, l.owner FROM unnest(keys_) WITH ORDINALITY u(key, i),
        LATERAL (SELECT q.queue, p.owner
          FROM (SELECT CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END AS queue) q,
            weir.possessor(q.queue, u.key, now_) p OFFSET 0) l
      ORDER BY 1, 2) f,
    LATERAL (SELECT 1 FROM weir.jobs k WHERE k.queue = f.queue AND k.id = f.id FOR UPDATE) l;
  SELECT k.* INTO j FROM weir.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
  now_ := coalesce(at_, weir.clock());
  outcome := weir.relay_outcome.relayed;
  IF fence_ <> 0 THEN
    IF j.id IS NULL OR j.state <> weir.job_state.pending OR j.holder IS NULL OR --\
        j.vesting <= now_ OR j.fence <> fence_ THEN
      outcome := weir.relay_outcome.last + 1;
    END IF;
  ELSIF j.id IS NULL OR j.state <> weir.job_state.pending THEN
    outcome := weir.relay_outcome.not_found;
  ELSIF j.payload <> expected_ THEN
    outcome := weir.relay_outcome.changed;
  END IF;
  RETURN NEXT;
  IF outcome <> weir.relay_outcome.relayed THEN
    RETURN;
  END IF;
  IF n_ > 0 THEN
    RETURN QUERY SELECT * FROM weir.enqueue_jobs(to_, shard_, false, ids_[:n_], kinds_[:n_],
      payloads_[:n_], keys_[:n_], priorities_[:n_], attempts_[:n_], strategies_[:n_],
      policies_[:n_], delays_[:n_], deadlines_[:n_], retentions_[:n_], ttls_[:n_], headers_[:n_],
      own_, at_);
  END IF;
  PERFORM weir.end_job(j, weir.job_state.completed::smallint, now_, nullif(result_, ''), NULL);
  PERFORM weir.count_jobs(queue_, shard_, 0, 1, 0, 0, 0, own_);
  IF m <= cardinality(ids_) THEN
    RETURN QUERY SELECT * FROM weir.enqueue_jobs(queue_, shard_, false, ids_[m:], kinds_[m:],
      payloads_[m:], keys_[m:], priorities_[m:], attempts_[m:], strategies_[m:], policies_[m:],
      delays_[m:], deadlines_[m:], retentions_[m:], ttls_[m:], headers_[m:], own_, at_);
  END IF;
END $$;
