--- What a job goes through, as rule/jobs.hpp has it. See queues.sql for `own_`.
---
--- Several jobs, or keys, are looked up one by one, by LATERAL, and removed by their places: what
--- the server knows of a table's size may be old when it plans, and it is not to go through all of a
--- queue instead.

-- What a job takes in an answer that claims it.
CREATE FUNCTION weir.claim_bytes(j weir.jobs) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN octet_length(j.kind)::bigint + octet_length(j.payload) + octet_length(j.unique_key)
    + octet_length(j.memo) + octet_length(j.headers) + octet_length(j.checkpoint);

-- Waits for unique keys, in order, and has them to itself until the transaction ends (5: enqueue keys;
-- 6: run locks). Says how many there were not. The row of one that is there is locked and stays as it
-- is, so that nobody goes through what it was before (F79).
CREATE FUNCTION weir.lock_keys(kind_ integer, queue_ bytea, keys_ bytea[], at_ bigint) --\
    RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  due_ bigint := weir.first_due(60000000000, at_);
  n integer;
BEGIN
  INSERT INTO weir.used_keys SELECT kind_, k.key, due_
    FROM (SELECT DISTINCT weir.dequeue_key(queue_, u.key) AS key FROM unnest(keys_) u(key)) k --\
    ORDER BY k.key
    ON CONFLICT (kind, key) DO UPDATE SET kind = excluded.kind WHERE false;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- The job that has an enqueue key, which is locked. No row: the key is free. The id may be another
-- job's by now. The job itself is read by those who need it: as a value of this function it would
-- have its payload read, too, which may be damaged.
CREATE FUNCTION weir.possessor(queue_ bytea, key_ bytea, now_ bigint)
  RETURNS TABLE (owner uuid) LANGUAGE sql STABLE BEGIN ATOMIC
  SELECT w.owner FROM (SELECT k.owner, k.until FROM weir.keys k
      WHERE weir.dequeue_key(k.queue, k.key) = weir.dequeue_key(queue_, key_) AND NOT k.run
      ORDER BY k.number DESC LIMIT 1) w
    LEFT JOIN LATERAL (SELECT j.id FROM weir.jobs j WHERE j.queue = queue_ AND j.id = w.owner
      AND j.unique_key = key_ AND j.strategy NOT IN (weir.holds_while_waiting.others) OFFSET 0) l ON true
    WHERE CASE WHEN w.until IS NULL THEN l.id IS NOT NULL ELSE w.until > now_ END;
END;

-- Numbers a dead letter. Until the transaction ends its lock says that numbers after the one that
-- was last given out may still be committed: what is listed ends before these (F72). Where a stranger
-- has that lock, an earlier one says more than that, and is as good.
CREATE FUNCTION weir.next_death() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  here text := 'weir.state'::regclass::oid::text;
  last bigint := coalesce(pg_sequence_last_value('weir.deaths'), 0);
  most constant bigint := 100000;
BEGIN
  IF coalesce(current_setting('weir.numbers_deaths', true), '') <> here THEN
    FOR before IN 0 .. most LOOP
      EXIT WHEN pg_try_advisory_xact_lock_shared(
        (pg_sequence_last_value('weir.seed') & 2147483647)::integer,
        ((last - before) & 2147483647)::integer);
      IF before = most THEN
        RAISE lock_not_available USING MESSAGE = 'the locks of dead letters are taken';
      END IF;
    END LOOP;
    PERFORM set_config('weir.numbers_deaths', here, true);
  END IF;
  RETURN nextval('weir.deaths');
END $$;

-- Every dead letter up to this number is there to be seen from now on, or never will be. The last
-- number is read before the locks are, and they before the letters. Locks of a role that can number
-- none are a stranger's (F94).
CREATE FUNCTION weir.settled_deaths() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  last bigint := coalesce(pg_sequence_last_value('weir.deaths'), 0);
BEGIN
  RETURN least(last, (SELECT min(last - ((last - l.objid::bigint) & 2147483647)) FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2
      AND l.classid::bigint = pg_sequence_last_value('weir.seed') & 2147483647
      AND l.database = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database())
      AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.pid = l.pid
        AND NOT EXISTS (SELECT 1 FROM pg_roles r WHERE pg_has_role(a.usesysid, r.oid, 'MEMBER')
          AND has_sequence_privilege(r.oid, 'weir.deaths'::regclass, 'USAGE, UPDATE')))));
END $$;

-- Ends a job that is locked; the counters are the caller's. `result_` NULL: as it was.
CREATE FUNCTION weir.end_job(j weir.jobs, how_ smallint, now_ bigint, result_ bytea, reason_ bytea)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF how_ = weir.job_state.dead OR j.retention <> 0 THEN
    j.state := how_; j.holder := NULL; j.sequence := 0;
    j.result := coalesce(result_, j.result); j.reason := coalesce(reason_, j.reason);
    IF how_ = weir.job_state.dead THEN
      INSERT INTO weir.dead_letters SELECT j.*, weir.next_death() ON CONFLICT (queue, id) DO NOTHING;
    ELSE
      INSERT INTO weir.ended SELECT j.*, now_ + j.retention ON CONFLICT (queue, id) DO NOTHING;
    END IF;
  END IF;
  DELETE FROM weir.jobs k WHERE k.queue = j.queue AND k.id = j.id;
END $$;

-- Gives a key to a job, whoever had it; NULL: to none. The key's lock and the job are the caller's.
CREATE FUNCTION weir.take_key(queue_ bytea, run_ boolean, key_ bytea, owner_ uuid, until_ bigint,
    fence_ bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  name_ bytea := weir.dequeue_key(queue_, key_);
BEGIN
  UPDATE weir.keys w SET owner = owner_, until = until_, fence = fence_,
      uses = weir.next_use(w.uses), number = weir.next_use(w.uses) >> 5
    WHERE w.ctid = (SELECT k.ctid FROM weir.keys k WHERE weir.dequeue_key(k.queue, k.key) = name_
      AND k.run = run_ ORDER BY k.number DESC LIMIT 1);
  IF NOT FOUND THEN
    INSERT INTO weir.keys VALUES (queue_, run_, key_, owner_, until_, fence_);
    UPDATE weir.used_keys u SET kind = u.kind  -- see may_make
      WHERE u.kind = 5 + run_::integer AND u.key = name_ --\
        AND u.xmin <> pg_current_xact_id()::xid;
  END IF;
END $$;

-- Can a job not be read, or counted with, that waits or is leased?
CREATE FUNCTION weir.damaged(j weir.jobs) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN NOT (j.state = weir.job_state.pending AND j.priority <= 255 AND --\
    j.strategy <= weir.unique_strategy.last AND j.policy <= weir.conflict_policy.last
    AND least(j.priority, j.strategy, j.policy, j.attempts, j.snoozes) >= 0 AND j.max_attempts > 0
    AND least(j.fence, j.deadline, j.retention) >= 0 AND j.deadline_from >= -4611686018427387904
    AND greatest(j.attempts, j.max_attempts) <= weir.limits.attempts AND j.snoozes < 2147483647
    AND greatest(j.fence, j.deadline_from) <= 4611686018427387904
    AND greatest(j.deadline, j.retention) <= weir.limits.span
    AND j.kind <> '' AND (j.strategy = weir.unique_strategy.none) = (j.unique_key = '')
    AND greatest(octet_length(j.kind), octet_length(j.unique_key)) <= weir.limits.key_size
    AND greatest(octet_length(j.payload), octet_length(j.result)) <= weir.limits.payload_size
    AND octet_length(j.memo) <= weir.limits.memo_size --\
        AND octet_length(j.reason) <= weir.limits.reason_size
    AND octet_length(j.headers) <= weir.limits.headers_size
    AND octet_length(j.progress) <= weir.limits.progress_size
    AND octet_length(j.checkpoint) <= weir.limits.checkpoint_size);

-- Why a visible job may not be claimed any more; NULL: it may.
CREATE FUNCTION weir.unclaimable(j weir.jobs, now_ bigint) RETURNS text LANGUAGE sql IMMUTABLE
  RETURN CASE WHEN weir.damaged(j) THEN 'weir.damaged_record'
              WHEN j.attempts >= j.max_attempts THEN 'weir.rule.reason_spent'
              WHEN j.deadline <> 0 AND j.deadline_from + j.deadline < now_ THEN
                'weir.rule.reason_missed' END;

-- Buries a job that waits, and is locked, if it may not be claimed any more (1), or if its record is
-- damaged (2), which makes it a dead letter that can be read. 0: neither. The counters are the
-- caller's.
CREATE FUNCTION weir.bury(j weir.jobs, now_ bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  reason_ text := weir.unclaimable(j, now_);
BEGIN
  IF reason_ IS NULL THEN
    RETURN 0;
  ELSIF reason_ <> 'weir.damaged_record' THEN
    PERFORM weir.end_job(j, weir.job_state.dead::smallint, now_, NULL, convert_to(reason_, 'UTF8'));
    RETURN 1;
  END IF;
  j.state := weir.job_state.dead; j.holder := NULL; j.sequence := 0;
  j.strategy := weir.unique_strategy.none; j.policy := weir.conflict_policy.reject;
  j.unique_key := ''; j.priority := least(greatest(j.priority, 0), 255); j.snoozes := 0;
  j.attempts := least(greatest(j.attempts, 0), weir.limits.attempts);
  j.max_attempts := least(greatest(j.max_attempts, 1), weir.limits.attempts);
  j.fence := least(greatest(j.fence, 0), 4611686018427387904);
  j.enqueued := least(j.enqueued, now_); j.deadline_from := now_; j.deadline := 0;
  j.retention := 0;
  j.kind := CASE WHEN octet_length(j.kind) BETWEEN 1 AND weir.limits.key_size THEN j.kind --\
    ELSE 'damaged' END;
  j.payload := substr(j.payload, 1, weir.limits.payload_size);
  j.memo := substr(j.memo, 1, weir.limits.memo_size); j.result := '';
  j.headers := substr(j.headers, 1, weir.limits.headers_size);
  j.progress := substr(j.progress, 1, weir.limits.progress_size);
  j.checkpoint := substr(j.checkpoint, 1, weir.limits.checkpoint_size);
  j.reason := 'weir.damaged_record';
  INSERT INTO weir.dead_letters SELECT j.*, weir.next_death() ON CONFLICT (queue, id) DO NOTHING;
  DELETE FROM weir.jobs k WHERE k.queue = j.queue AND k.id = j.id;
  RETURN 2;
END $$;

-- Whether a job that waits in possession of a unique key, and is locked, gives the key up because
-- it cannot be claimed any more: it is then buried; the counters are the caller's. NULL: it can be
-- claimed. False: it cannot, but its key is held until_expired, and it is left as it is.
CREATE FUNCTION weir.bury_unclaimable(j weir.jobs, now_ bigint) RETURNS boolean --\
    LANGUAGE plpgsql AS $$
BEGIN
  IF j.strategy = weir.unique_strategy.until_expired
      AND weir.unclaimable(j, now_) <> 'weir.damaged_record' THEN
    RETURN false;
  END IF;
  RETURN nullif(weir.bury(j, now_) > 0, false);
END $$;

-- Of jobs that were just added, removes those whose ids are kept by what has ended, and returns how
-- many these were; where the retention is over, the record goes instead. It is done after they are
-- added, and by other statements: who moved a job of such an id here had committed by then, and nobody
-- else has one to move from now on. A transaction that sees what was then does not see that, but a
-- unique index does: it is refused as if the record had stayed where the job was. Such a one reads no
-- more than it has to, since SERIALIZABLE ones are refused for what others write there.
CREATE FUNCTION weir.give_way(queue_ bytea, ids_ uuid[], added_ tid[], now_ bigint) --\
    RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  taken tid[];
  over_ tid[];
  n integer;
BEGIN
  IF weir.sees_all() THEN
    IF NOT EXISTS (SELECT 1 FROM unnest(ids_) u(id), LATERAL (
        SELECT 1 FROM weir.dead_letters d WHERE d.queue = queue_ AND d.id = u.id
        UNION ALL SELECT 1 FROM weir.ended e WHERE e.queue = queue_ AND e.id = u.id OFFSET 0) l) THEN
      RETURN 0;
    END IF;
  ELSE
    -- Of a row that is tried only the id matters, and no scan of what is over comes by it.
    WITH tried AS (INSERT INTO weir.dead_letters (queue, id, priority, state, strategy, policy,
          max_attempts, vesting, enqueued, deadline_from, deadline, retention, unique_key, kind,
          payload, death)
        SELECT j.queue, j.id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', 9223372036854775807
          FROM weir.jobs j WHERE j.ctid = ANY (added_) ON CONFLICT DO NOTHING RETURNING ctid)
      SELECT array_agg(t.ctid) INTO taken FROM tried t;
    DELETE FROM weir.dead_letters d WHERE d.ctid = ANY (taken);
    WITH tried AS (INSERT INTO weir.ended (queue, id, priority, state, strategy, policy,
          max_attempts, vesting, enqueued, deadline_from, deadline, retention, unique_key, kind,
          payload, kept)
        SELECT j.queue, j.id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', 9223372036854775807
          FROM weir.jobs j WHERE j.ctid = ANY (added_) ON CONFLICT DO NOTHING RETURNING ctid)
      SELECT array_agg(t.ctid) INTO over_ FROM tried t;
    DELETE FROM weir.ended e WHERE e.ctid = ANY (over_);
    IF cardinality(taken) = cardinality(added_) AND cardinality(over_) = cardinality(added_) THEN
      RETURN 0;
    END IF;
  END IF;
  over_ := ARRAY(SELECT l.place FROM unnest(ids_) u(id), LATERAL (SELECT e.ctid AS place
    FROM weir.ended e WHERE e.queue = queue_ AND e.id = u.id AND e.kept <= now_ OFFSET 0) l);
  DELETE FROM weir.ended e WHERE e.ctid = ANY (over_) AND e.kept <= now_;
  taken := ARRAY(SELECT j.ctid FROM weir.jobs j WHERE j.ctid = ANY (added_) AND EXISTS (
    SELECT 1 FROM weir.dead_letters d WHERE d.queue = queue_ AND d.id = j.id
    UNION ALL SELECT 1 FROM weir.ended e WHERE e.queue = queue_ AND e.id = j.id AND e.kept > now_));
  DELETE FROM weir.jobs j WHERE j.ctid = ANY (taken);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- `plain_`: no job of these takes a key with its enqueue. `hurries_`: whoever has one of the keys is
-- not waited for, or hardly: others wait behind this, and it is asked again where nobody does (F50).
CREATE FUNCTION weir.enqueue_jobs(queue_ bytea, shard_ integer, plain_ boolean, ids_ uuid[],
    kinds_ bytea[], payloads_ bytea[], keys_ bytea[], priorities_ integer[], attempts_ integer[],
    strategies_ integer[], policies_ integer[], delays_ bigint[], deadlines_ bigint[],
    retentions_ bigint[], ttls_ bigint[], headers_ bytea[], own_ boolean, at_ bigint,
    hurries_ boolean DEFAULT false)
  RETURNS TABLE (outcome integer, other uuid) --\
      LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  now_ bigint;
  n integer;
  o weir.jobs;
  vests bigint;
  place tid;
  places tid[];
  added_ integer;
  order_ integer[];
  done boolean;
  possessor integer;  -- 0: nobody, 1: waiting, 2: running, 3: ended
  cancelled integer := 0;
  buried integer := 0;
  gives_way boolean;
  fresh boolean;
  unused boolean;  -- are all of the keys?
  keyed bytea[];
  number xid8;
BEGIN
  number := pg_current_xact_id();  -- before the time is read (see floors)
  IF plain_ THEN
    now_ := coalesce(at_, weir.clock());
    IF cardinality(ids_) = 1 THEN  -- a statement of its own, which takes less
      vests := now_ + delays_[1];
      INSERT INTO weir.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
          strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
        VALUES (queue_, ids_[1], weir.job_state.pending, kinds_[1], payloads_[1], keys_[1],
          priorities_[1], attempts_[1], strategies_[1], policies_[1], vests, deadlines_[1],
          retentions_[1], now_, now_, headers_[1])
        ON CONFLICT (queue, id) DO NOTHING RETURNING ctid INTO place;
      n := CASE WHEN FOUND THEN 1 ELSE 0 END;
      IF FOUND AND (NOT weir.sees_all()
          OR EXISTS (SELECT 1 FROM weir.dead_letters d WHERE d.queue = queue_ AND d.id = ids_[1])
          OR EXISTS (SELECT 1 FROM weir.ended e WHERE e.queue = queue_ AND e.id = ids_[1])) THEN
        n := n - weir.give_way(queue_, ids_, ARRAY[place], now_);
      END IF;
    ELSE
      -- In the order of the ids: an insert waits for another of the same id, so two batches would
      -- wait for each other (F72).
      order_ := ARRAY(SELECT g.i FROM generate_series(1, cardinality(ids_)) g(i) --\
          ORDER BY ids_[g.i], g.i);  -- of one that is named twice, the first
      WITH added AS (
          INSERT INTO weir.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
              strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
            SELECT queue_, ids_[i], weir.job_state.pending, kinds_[i], payloads_[i], keys_[i],
                priorities_[i], attempts_[i], strategies_[i], policies_[i], now_ + delays_[i],
                deadlines_[i], retentions_[i], now_, now_, headers_[i]
              FROM unnest(order_) i
            ON CONFLICT (queue, id) DO NOTHING RETURNING ctid)
        SELECT count(*), array_agg(a.ctid) INTO n, places FROM added a;
      IF n > 0 THEN
        n := n - weir.give_way(queue_, ids_, places, now_);
      END IF;
      SELECT min(CASE WHEN n = cardinality(ids_) THEN now_ + u.delay ELSE (SELECT j.vesting
            FROM weir.jobs j WHERE j.queue = queue_ AND j.id = u.id AND j.deadline_from = now_) END)
        INTO vests FROM unnest(ids_, delays_) u(id, delay);
    END IF;
    IF n > 0 THEN
      done := weir.touch(queue_, shard_, vests, CASE WHEN at_ IS NULL THEN now_ END, own_);
      done := weir.count_jobs(queue_, shard_, n, 0, 0, 0, 0, own_);
    END IF;
    outcome := weir.enqueue_outcome.enqueued;
    FOR i IN 1 .. cardinality(ids_) LOOP
      RETURN NEXT;
    END LOOP;
    RETURN;
  END IF;

  IF hurries_ THEN
    PERFORM set_config('lock_timeout', CASE WHEN cardinality(ids_) > 1 THEN '20ms' ELSE '5ms' END,
                       true);
  END IF;
  -- The ids of several jobs, too: their order here is not that of the inserts (F72).
  IF cardinality(ids_) > 1 THEN
    PERFORM weir.guard(ARRAY(
      SELECT weir.key_name(3, queue_, uuid_send(u.id)) FROM unnest(ids_) u(id)));
  END IF;
  keyed := ARRAY(SELECT u.key FROM unnest(keys_, strategies_) u(key, strategy)
    WHERE u.strategy NOT IN (weir.holds_while_waiting.others));
  unused := weir.lock_keys(5, queue_, keyed, at_) = cardinality(keyed);
  now_ := coalesce(at_, weir.clock());
  -- Nearly always all of the ids are new and all of the keys free: then there is nothing to lock, and
  -- all of them are added at once.
  fresh := cardinality(ids_) > 1 AND (SELECT count(DISTINCT u.id) = count(*) FROM unnest(ids_) u(id))
      AND (unused OR (SELECT count(DISTINCT u.key) = count(*) FROM unnest(keyed) u(key)))
      AND NOT EXISTS (SELECT 1 FROM unnest(ids_) u(id),
        LATERAL (SELECT 1 FROM weir.jobs j WHERE j.queue = queue_ AND j.id = u.id
                 UNION ALL SELECT 1 FROM weir.dead_letters d WHERE d.queue = queue_ AND d.id = u.id
                 UNION ALL SELECT 1 FROM weir.ended e WHERE e.queue = queue_ AND e.id = u.id
                 OFFSET 0) l)
      AND (unused OR NOT EXISTS (SELECT 1 FROM unnest(keyed) u(key),
        LATERAL (SELECT 1 FROM weir.possessor(queue_, u.key, now_) OFFSET 0) l));
  IF NOT fresh THEN
    PERFORM 1 FROM (
        SELECT u.id FROM unnest(ids_) u(id)
        UNION SELECT l.owner FROM unnest(keyed) u(key),
          LATERAL (SELECT p.owner FROM weir.possessor(queue_, u.key, now_) p OFFSET 0) l ORDER BY 1) f,
      LATERAL (SELECT 1 FROM weir.jobs j WHERE j.queue = queue_ AND j.id = f.id FOR UPDATE) j;
    now_ := coalesce(at_, weir.clock());
  END IF;
  n := 0;
  IF fresh THEN
    WITH added AS (
        INSERT INTO weir.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
            strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
          SELECT queue_, ids_[i], weir.job_state.pending, kinds_[i], payloads_[i], keys_[i], --\
              priorities_[i],
              attempts_[i], strategies_[i], policies_[i], now_ + delays_[i], deadlines_[i],
              retentions_[i], now_, now_, headers_[i]
            FROM generate_series(1, cardinality(ids_)) i ORDER BY ids_[i]
          ON CONFLICT (queue, id) DO NOTHING RETURNING vesting, ctid)
      SELECT count(*), min(a.vesting), array_agg(a.ctid) INTO n, vests, places FROM added a;
    IF n > 0 THEN
      n := n - weir.give_way(queue_, ids_, places, now_);
    END IF;
    -- Where an id is there by now, without a key of these, its job is another one.
    PERFORM weir.take_key(queue_, false, keys_[i], ids_[i],
        CASE WHEN strategies_[i] = weir.unique_strategy.until_expired THEN now_ + ttls_[i] END, NULL)
      FROM generate_series(1, cardinality(ids_)) i
      WHERE NOT unused AND strategies_[i] NOT IN (weir.holds_while_waiting.others)
        AND (n = cardinality(ids_) OR EXISTS (SELECT 1 FROM weir.jobs j
          WHERE j.queue = queue_ AND j.id = ids_[i] AND j.unique_key = keys_[i]));
    INSERT INTO weir.keys SELECT queue_, false, keys_[i], ids_[i],
        CASE WHEN strategies_[i] = weir.unique_strategy.until_expired THEN now_ + ttls_[i] END
      FROM generate_series(1, cardinality(ids_)) i
      WHERE unused AND strategies_[i] NOT IN (weir.holds_while_waiting.others)
        AND (n = cardinality(ids_) OR EXISTS (SELECT 1 FROM weir.jobs j
          WHERE j.queue = queue_ AND j.id = ids_[i] AND j.unique_key = keys_[i]));
    IF n > 0 THEN
      done := weir.touch(queue_, shard_, vests, CASE WHEN at_ IS NULL THEN now_ END, own_);
      done := weir.count_jobs(queue_, shard_, n, 0, 0, 0, 0, own_);
    END IF;
    outcome := weir.enqueue_outcome.enqueued;
    FOR i IN 1 .. cardinality(ids_) LOOP
      RETURN NEXT;
    END LOOP;
    RETURN;
  END IF;
  FOR i IN 1 .. cardinality(ids_) LOOP
    outcome := weir.enqueue_outcome.enqueued; other := NULL;
    IF EXISTS (SELECT 1 FROM weir.jobs j WHERE j.queue = queue_ AND j.id = ids_[i]
        UNION ALL SELECT 1 FROM weir.dead_letters d WHERE d.queue = queue_ AND d.id = ids_[i]
        UNION ALL SELECT 1 FROM weir.ended e
          WHERE e.queue = queue_ AND e.id = ids_[i] AND e.kept > now_) THEN
      RETURN NEXT;
      CONTINUE;
    END IF;
    possessor := 0;
    IF strategies_[i] NOT IN (weir.holds_while_waiting.others) THEN
      SELECT p.owner INTO other FROM weir.possessor(queue_, keys_[i], now_) p;
      IF FOUND THEN
        SELECT j.* INTO o FROM weir.jobs j WHERE j.queue = queue_ AND j.id = other
          AND j.unique_key = keys_[i] AND j.strategy NOT IN (weir.holds_while_waiting.others);
        possessor := CASE WHEN NOT FOUND OR o.state <> weir.job_state.pending THEN 3
                          WHEN o.holder IS NOT NULL AND o.vesting > now_ THEN 2 ELSE 1 END;
        IF possessor = 1 THEN
          gives_way := weir.bury_unclaimable(o, now_);
          IF gives_way THEN
            buried := buried + 1;
            other := NULL;
          END IF;
          possessor := CASE WHEN gives_way THEN 0 WHEN gives_way IS NULL THEN 1 ELSE 3 END;
        END IF;
      END IF;
    END IF;
    IF possessor = 1 AND policies_[i] = weir.conflict_policy.reschedule THEN
      outcome := weir.enqueue_outcome.rescheduled;
      UPDATE weir.jobs j SET holder = NULL, sequence = 0, vesting = now_ + delays_[i],
          priority = priorities_[i] WHERE j.queue = queue_ AND j.id = o.id;
    ELSIF possessor = 0 OR (possessor = 1 AND policies_[i] = weir.conflict_policy.replace) THEN
      IF possessor = 1 THEN
        outcome := weir.enqueue_outcome.replaced;
        PERFORM weir.end_job(o, weir.job_state.cancelled::smallint, now_, NULL, NULL);
        cancelled := cancelled + 1;
      END IF;
      INSERT INTO weir.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
          strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
        VALUES (queue_, ids_[i], weir.job_state.pending, kinds_[i], payloads_[i], keys_[i],
          priorities_[i], attempts_[i],
          strategies_[i], policies_[i], now_ + delays_[i], deadlines_[i], retentions_[i], now_,
          now_, headers_[i])
        ON CONFLICT (queue, id) DO NOTHING RETURNING ctid INTO place;
      GET DIAGNOSTICS added_ = ROW_COUNT;
      IF added_ = 1 THEN
        added_ := 1 - weir.give_way(queue_, ARRAY[ids_[i]], ARRAY[place], now_);
      END IF;
      n := n + added_;
      -- One that is there by now has a key of its own, or none, and would not free this one.
      IF added_ = 1 AND strategies_[i] NOT IN (weir.holds_while_waiting.others) THEN
        PERFORM weir.take_key(queue_, false, keys_[i], ids_[i],
                           CASE WHEN strategies_[i] = weir.unique_strategy.until_expired --\
                               THEN now_ + ttls_[i] END, NULL);
      END IF;
    ELSE
      outcome := weir.enqueue_outcome.duplicate;
      RETURN NEXT;
      CONTINUE;
    END IF;
    vests := least(vests, now_ + delays_[i]);
    RETURN NEXT;
  END LOOP;
  IF vests IS NOT NULL THEN
    done := weir.touch(queue_, shard_, vests, CASE WHEN at_ IS NULL THEN now_ END, own_);
    done := weir.count_jobs(queue_, shard_, n, 0, cancelled, 0, buried, own_);
  END IF;
END $$;

CREATE FUNCTION weir.peek_jobs(queue_ bytea, limit_ integer, at_ bigint) RETURNS SETOF weir.job_row
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  level smallint := -1;
  left_ integer := limit_;
  room bigint := weir.limits.answer_bytes;
  n integer;
  fits integer;
  bytes bigint;
BEGIN
  LOOP
    SELECT j.priority INTO level FROM weir.jobs j
      WHERE j.queue || '' = queue_ AND j.priority > level
      ORDER BY j.priority, j.vesting, j.id LIMIT 1;
    EXIT WHEN NOT FOUND OR left_ = 0;
    SELECT count(*), count(*) FILTER (WHERE s.upto <= room), max(s.upto)
      INTO n, fits, bytes
      FROM (SELECT sum(weir.job_bytes) OVER (ORDER BY j.vesting, --\
          j.id ROWS UNBOUNDED PRECEDING) AS upto
              FROM (SELECT k.* FROM weir.jobs k
                      WHERE k.queue || '' = queue_ AND k.priority = level AND k.vesting <= now_
                      ORDER BY k.vesting, k.id LIMIT left_) j) s;
    RETURN QUERY SELECT now_, weir.postgres_job_row.columns FROM weir.jobs j
      WHERE j.queue || '' = queue_ AND j.priority = level AND j.vesting <= now_
      ORDER BY j.vesting, j.id LIMIT fits;
    EXIT WHEN fits < n;
    left_ := left_ - n;
    room := room - coalesce(bytes, 0);
  END LOOP;
END $$;

CREATE FUNCTION weir.find_job(queue_ bytea, id_ uuid, at_ bigint) RETURNS SETOF weir.job_row
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  RETURN QUERY SELECT now_, weir.postgres_job_row.columns FROM weir.jobs j
      WHERE j.queue = queue_ AND j.id = id_
    UNION ALL SELECT now_, weir.postgres_job_row.columns FROM weir.dead_letters j
      WHERE j.queue = queue_ AND j.id = id_
    UNION ALL SELECT now_, weir.postgres_job_row.columns FROM weir.ended j
      WHERE j.queue = queue_ AND j.id = id_ AND j.kept > now_;
END $$;

-- The last one may be more than fits the answer: it says that there are more.
CREATE FUNCTION weir.list_dead_letters(queue_ bytea, limit_ integer, after_ bigint, at_ bigint)
  RETURNS SETOF weir.job_row LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  settled bigint := weir.settled_deaths();
BEGIN
  RETURN QUERY SELECT now_, weir.postgres_job_row.of_a_letter
    FROM (SELECT l.*, sum(l.size) OVER (ORDER BY l.death ROWS UNBOUNDED PRECEDING) AS upto
            FROM (SELECT j.*, weir.job_bytes AS size FROM weir.dead_letters j
                    WHERE j.queue || '' = queue_ AND j.death > after_ AND j.death <= settled
                    ORDER BY j.death LIMIT limit_) l) j
    WHERE j.upto - j.size <= weir.limits.answer_bytes ORDER BY j.death;
END $$;

CREATE FUNCTION weir.cancel_job(queue_ bytea, shard_ integer, id_ uuid, running_ boolean, --\
    own_ boolean,
    at_ bigint) RETURNS integer LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  j weir.jobs;
  how smallint;
  now_ bigint;
BEGIN
  LOOP
    SELECT k.* INTO j FROM weir.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
    now_ := coalesce(at_, weir.clock());
    EXIT WHEN FOUND;
    SELECT o.state INTO how
      FROM (SELECT NULL::smallint AS state FROM weir.jobs k WHERE k.queue = queue_ AND k.id = id_
            UNION ALL SELECT weir.job_state.dead::smallint FROM weir.dead_letters d
              WHERE d.queue = queue_ AND d.id = id_
            UNION ALL SELECT e.state FROM weir.ended e
              WHERE e.queue = queue_ AND e.id = id_ AND e.kept > now_) o;
    IF NOT FOUND THEN
      RETURN weir.cancel_outcome.not_found;
    ELSIF how IS NOT NULL THEN  -- otherwise it was replayed in between
      RETURN CASE WHEN how = weir.job_state.cancelled THEN weir.cancel_outcome.cancelled --\
        ELSE weir.cancel_outcome.ended END;
    END IF;
  END LOOP;
  IF j.holder IS NOT NULL AND j.vesting > now_ AND NOT running_ THEN
    RETURN weir.cancel_outcome.running;
  END IF;
  -- This is rare, so that it need not be known whether the holder waits for it.
  IF j.holder IS NOT NULL AND j.vesting > now_ THEN
    PERFORM pg_notify(btrim('weir', '"'), 'c' || encode(j.holder, 'hex'));
  END IF;
  PERFORM weir.end_job(j, weir.job_state.cancelled::smallint, now_, NULL, NULL);
  PERFORM weir.count_jobs(queue_, shard_, 0, 0, 1, 0, 0, own_);
  RETURN weir.cancel_outcome.cancelled;
END $$;

-- `other`: the job that has the unique key.
CREATE FUNCTION weir.replay_dead_letter(queue_ bytea, shard_ integer, id_ uuid, delay_ bigint,
    own_ boolean, at_ bigint, OUT outcome integer, OUT other uuid) --\
        LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  j weir.dead_letters;
  was record;
  o weir.jobs;
  now_ bigint;
  buried integer := 0;
BEGIN
  LOOP
    SELECT k.strategy, k.unique_key INTO was FROM weir.dead_letters k
      WHERE k.queue = queue_ AND k.id = id_;
    IF was.strategy NOT IN (weir.holds_while_waiting.others) THEN
      PERFORM weir.lock_keys(5, queue_, ARRAY[was.unique_key], at_);
      now_ := coalesce(at_, weir.clock());
      PERFORM 1 FROM weir.possessor(queue_, was.unique_key, now_) p,
        LATERAL (SELECT 1 FROM weir.jobs k WHERE k.queue = queue_ AND k.id = p.owner FOR UPDATE) l;
    END IF;
    SELECT k.* INTO j FROM weir.dead_letters k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
    now_ := coalesce(at_, weir.clock());
    -- Meanwhile it may have become another one, whose key is not locked.
    EXIT WHEN j.id IS NULL OR j.strategy = was.strategy AND j.unique_key = was.unique_key;
  END LOOP;
  IF j.id IS NULL THEN
    outcome := weir.replay_outcome.not_found;
    RETURN;
  END IF;
  IF j.strategy NOT IN (weir.holds_while_waiting.others) THEN
    SELECT p.owner INTO other FROM weir.possessor(queue_, j.unique_key, now_) p
      WHERE p.owner <> id_;
    IF FOUND THEN
      SELECT k.* INTO o FROM weir.jobs k WHERE k.queue = queue_ AND k.id = other
        AND k.unique_key = j.unique_key AND k.strategy NOT IN (weir.holds_while_waiting.others);
      IF (o.state = weir.job_state.pending AND (o.holder IS NULL OR o.vesting <= now_)
          AND weir.bury_unclaimable(o, now_)) IS NOT TRUE THEN
        outcome := weir.replay_outcome.conflict;
        RETURN;
      END IF;
      buried := 1;
      other := NULL;
    END IF;
    IF j.strategy <> weir.unique_strategy.until_expired THEN
      PERFORM weir.take_key(queue_, false, j.unique_key, id_, NULL, NULL);
    END IF;
  END IF;
  INSERT INTO weir.jobs (queue, id, priority, state, strategy, policy, max_attempts, vesting, fence,
      unclaimed, enqueued, deadline_from, deadline, retention, unique_key, kind, payload, memo,
      reason, result, headers, progress, checkpoint)
    VALUES (j.queue, j.id, j.priority, weir.job_state.pending, j.strategy, j.policy, j.max_attempts,
      now_ + delay_, j.fence, j.unclaimed, j.enqueued, now_, j.deadline, j.retention, j.unique_key,
      j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint);
  DELETE FROM weir.dead_letters k WHERE k.queue = queue_ AND k.id = id_;
  PERFORM weir.touch(queue_, shard_, now_ + delay_, CASE WHEN at_ IS NULL THEN now_ END, own_);
  IF buried = 0 THEN
    PERFORM weir.count_jobs(queue_, shard_, 0, 0, 0, 0, -1, own_);
  END IF;
  outcome := weir.replay_outcome.replayed;
END $$;

CREATE FUNCTION weir.purge_job(queue_ bytea, shard_ integer, id_ uuid, own_ boolean, at_ bigint)
  RETURNS boolean LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  how smallint;
BEGIN
  DELETE FROM weir.dead_letters k WHERE k.queue = queue_ AND k.id = id_
    RETURNING weir.job_state.dead::smallint INTO how;
  IF NOT FOUND THEN
    DELETE FROM weir.ended k WHERE k.queue = queue_ AND k.id = id_
      AND k.kept > coalesce(at_, weir.clock()) RETURNING k.state INTO how;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
  END IF;
  PERFORM weir.count_jobs(queue_, shard_, 0, -(how = weir.job_state.completed)::integer, --\
    -(how = weir.job_state.cancelled)::integer, 1,
                       -(how = weir.job_state.dead)::integer, own_);
  RETURN true;
END $$;

-- Jobs in one state, by id, and where it went on, up to a thousand records are looked at. Where
-- there may be more, a last row without an id has, as its payload, the id after which to go on.
CREATE FUNCTION weir.list_jobs(queue_ bytea, state_ integer, limit_ integer, after_ uuid, at_ bigint)
  RETURNS SETOF weir.job_row LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  room bigint := weir.limits.answer_bytes;
  j record;
  tail weir.job_row;
  page refcursor;
  ends uuid[];
  end_ uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';  -- how far it looks; at last, NULL: to all
  last_ uuid := after_;
  n integer := 0;
BEGIN
  IF state_ = weir.job_state.dead THEN
    OPEN page FOR SELECT k.* FROM weir.dead_letters k WHERE k.queue = queue_ AND k.id > after_
      ORDER BY k.id LIMIT limit_ + 1;
  ELSIF state_ IN (weir.job_state.pending, weir.job_state.leased) THEN
    ends := ARRAY(SELECT k.id FROM weir.jobs k WHERE k.queue = queue_ AND k.id > after_
                    ORDER BY k.id OFFSET 999 LIMIT 2);
    OPEN page FOR SELECT k.* FROM weir.jobs k WHERE k.queue = queue_ AND k.id > after_
        AND k.id <= CASE WHEN cardinality(ends) = 2 THEN ends[1] ELSE end_ END
        AND k.state = weir.job_state.pending
        AND (k.holder IS NOT NULL AND k.vesting > now_) = (state_ = weir.job_state.leased)
      ORDER BY k.id LIMIT limit_ + 1;
  ELSE
    ends := ARRAY(SELECT k.id FROM weir.ended k WHERE k.queue = queue_ AND k.id > after_
                    ORDER BY k.id OFFSET 999 LIMIT 2);
    OPEN page FOR SELECT k.* FROM weir.ended k WHERE k.queue = queue_ AND k.id > after_
        AND k.id <= CASE WHEN cardinality(ends) = 2 THEN ends[1] ELSE end_ END
        AND k.state = state_ AND k.kept > now_
      ORDER BY k.id LIMIT limit_ + 1;
  END IF;
  end_ := CASE WHEN cardinality(ends) = 2 THEN ends[1] END;
  LOOP
    FETCH page INTO j;
    EXIT WHEN NOT FOUND;
    room := room - weir.job_bytes;
    IF n = limit_ OR room < 0 AND n > 0 THEN
      end_ := last_;
      EXIT;
    END IF;
    n := n + 1;
    last_ := j.id;
    RETURN QUERY SELECT now_, weir.postgres_job_row.columns;
  END LOOP;
  CLOSE page;
  IF end_ IS NOT NULL THEN
    tail.payload := uuid_send(end_);
    RETURN NEXT tail;
  END IF;
END $$;
