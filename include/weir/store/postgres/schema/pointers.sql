--- Where jobs are found: the pointers of queues, the first jobs of their levels, and scans. See
--- queues.sql for `own_`, and floors.sql for where a look begins.

-- The number of the scan that finds the queue: those of schedules have one of their own.
CREATE FUNCTION weir.scan_of(queue_ bytea, shard_ integer) RETURNS integer LANGUAGE sql IMMUTABLE
  RETURN shard_ + CASE WHEN substring(queue_ FROM 1 FOR 15) = --\
                    decode('776569722e7363686564756c65732f', 'hex')
                    THEN weir.rule.most_shards ELSE 0 END;

-- A queue's first pointer up to a time, and before which time it was not looked for.
CREATE FUNCTION weir.first_pointer(queue_ bytea, upto_ bigint, now_ bigint, OUT first bigint,
    OUT from_ bigint) LANGUAGE plpgsql AS $$
DECLARE
  f bigint[] := weir.floors(weir.queue_lock(queue_) # 1, now_);
  since_ pg_snapshot;
  began_ timestamptz;
  kept boolean;
BEGIN
  from_ := coalesce(CASE WHEN now_ < f[4] THEN f[11] END, -9223372036854775808);
  IF weir.to_be_raised(f, now_, true) THEN
    since_ := pg_current_snapshot();
    began_ := clock_timestamp();
  END IF;
  SELECT p.pointer INTO first FROM weir.pointers p
    WHERE p.queue || '' = queue_ AND p.pointer + 0 >= from_ AND p.pointer + 0 <= upto_
    ORDER BY p.pointer + 0 LIMIT 1;
  IF since_ IS NOT NULL THEN
    kept := weir.raise_floors(f, '{0}', ARRAY[coalesce(first, upto_)], now_, since_, began_);
  END IF;
END $$;

-- A job of the queue vests at `vesting_`. A pointer that others have is relied on only where it
-- cannot be removed before this step is committed; otherwise the step adds its own (F41, F48).
-- Returns whether it did. (A function that returns something is called for less by an assignment
-- than by PERFORM, which is a statement to execute.) `now_`: when the step began; NULL: by a clock
-- of somebody else's.
CREATE FUNCTION weir.touch(queue_ bytea, shard_ integer, vesting_ bigint, now_ bigint, own_ boolean)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  scan_ integer;
  held_until bigint;
BEGIN
  IF (vesting_ >= now_) IS NOT TRUE THEN  -- it may come below a floor
    PERFORM nextval('weir.returned');
  END IF;
  IF own_ AND weir.sees_all() --\
      AND pg_try_advisory_xact_lock_shared(weir.queue_lock(queue_)) THEN
    IF (weir.first_pointer(queue_, vesting_, now_)).first IS NOT NULL THEN
      RETURN false;
    END IF;
    -- A hold that ends sooner than is seen here brings its own pointer (see end_hold).
    SELECT CASE WHEN q.paused THEN 9223372036854775807 ELSE q.snoozed END INTO held_until
      FROM weir.queues q WHERE q.queue = queue_;
    IF held_until > vesting_
        AND (weir.first_pointer(queue_, held_until, now_)).first IS NOT NULL THEN
      RETURN false;
    END IF;
  END IF;
  scan_ := weir.scan_of(queue_, shard_);
  INSERT INTO weir.pointers VALUES (scan_, vesting_, queue_);
  PERFORM weir.tell('j' || scan_, own_);
  RETURN true;
END $$;

-- The first job of each level that is in use, one probe for each.
CREATE FUNCTION weir.all_heads(queue_ bytea) RETURNS TABLE (priority integer, vesting bigint)
  LANGUAGE sql STABLE BEGIN ATOMIC
  WITH RECURSIVE heads AS (
      (SELECT j.priority, j.vesting FROM weir.jobs j
         WHERE j.queue || '' = queue_
         ORDER BY j.priority, j.vesting, j.id LIMIT 1)
    UNION ALL
      SELECT n.priority, n.vesting FROM heads h, LATERAL (
        SELECT j.priority, j.vesting FROM weir.jobs j
          WHERE j.queue || '' = queue_ AND j.priority > h.priority
          ORDER BY j.priority, j.vesting, j.id LIMIT 1) n)
    SELECT h.priority::integer, h.vesting FROM heads h;
END;

-- The same from the floors on: one probe for each level, and one for what is between two that have a
-- floor. Of those that have one only jobs up to a time. And the first of all.
CREATE FUNCTION weir.level_heads(queue_ bytea, floors_ bigint[], upto_ bigint, OUT levels integer[],
    OUT firsts bigint[], OUT least_ bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
  below integer := -1;  -- what is lower is damaged, and found by all_heads
  n integer := 10;
  known integer;
  level integer;
  first bigint;
BEGIN
  IF floors_[10] IS NULL THEN
    SELECT array_agg(h.priority), array_agg(h.vesting), min(h.vesting) INTO levels, firsts, least_
      FROM weir.all_heads(queue_) h;
    RETURN;
  END IF;
  LOOP
    known := coalesce(floors_[n], 32768);
    WHILE below + 1 < known LOOP
      SELECT j.priority, j.vesting INTO level, first FROM weir.jobs j
        WHERE j.queue || '' = queue_
          AND j.priority > below AND j.priority < known
        ORDER BY j.priority, j.vesting, j.id LIMIT 1;
      EXIT WHEN NOT FOUND;
      levels := levels || level;
      firsts := firsts || first;
      least_ := least(least_, first);
      below := level;
    END LOOP;
    EXIT WHEN known = 32768;
    SELECT j.vesting INTO first FROM weir.jobs j
      WHERE j.queue || '' = queue_ AND j.priority = known
        AND j.vesting >= floors_[n + 1] AND j.vesting <= upto_
      ORDER BY j.vesting, j.id LIMIT 1;
    IF FOUND THEN
      levels := levels || known;
      firsts := firsts || first;
      least_ := least(least_, first);
    END IF;
    below := known;
    n := n + 4;
  END LOOP;
END $$;

-- Puts the pointers of these queues where the first of their jobs is, or where the hold ends that
-- keeps it back, where nobody is enqueueing: a step that is not committed yet holds the lock shared,
-- or has a pointer of its own. Each statement sees what was committed before it began. So the
-- pointers are looked up before the jobs and the holds are, and no other is removed: one that is
-- committed in between belongs to a job that was not seen (F57), or to a hold that has ended. Of very
-- many pointers a part is removed, and the rest by the next call. Returns whether it had one of the
-- queues to itself.
--
-- Where a queue has a time in `thens_`, only jobs that are visible are looked for, from its floors on,
-- and it is due again at that time if there is none; then only pointers that are over are removed.
CREATE FUNCTION weir.move_pointers(queues_ bytea[], shards_ integer[], froms_ bigint[],
    thens_ bigint[], now_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  alone integer[];  -- the queues that it has to itself, once for each pointer
  seen tid[];
  times bigint[];
  leasts bigint[];
  until_ bigint;
BEGIN
  IF NOT weir.sees_all() THEN
    RETURN false;
  END IF;
  SELECT array_agg(q.n), array_agg(p.place), array_agg(p.pointer) INTO alone, seen, times
    FROM (SELECT u.queue, u.n FROM unnest(queues_) WITH ORDINALITY u(queue, n)
            WHERE pg_try_advisory_xact_lock(weir.queue_lock(u.queue)) OFFSET 0) q
      LEFT JOIN LATERAL (SELECT p.ctid AS place, p.pointer FROM weir.pointers p
        WHERE p.queue || '' = q.queue AND p.pointer + 0 >= froms_[q.n]
          AND p.pointer + 0 <= coalesce(thens_[q.n], 9223372036854775807) LIMIT 1000) p ON true;
  until_ := CASE WHEN now_ IS NOT NULL THEN weir.clock() END;  -- somebody may have enqueued since now_
  leasts := ARRAY(SELECT CASE WHEN l.least IS NOT NULL THEN greatest(l.least, l.held_until) END
    FROM (SELECT u.n, u.held_until, CASE WHEN u.n <> ALL (alone) IS NOT FALSE THEN NULL
        WHEN u.then_ IS NOT NULL
          THEN least(u.then_, (weir.level_heads(u.queue, u.f, until_)).least_)
        WHEN now_ < u.f[4] AND u.f[10] IS NOT NULL AND weir.top_floor(u.f) <=
            (SELECT min(s.pointer) FROM unnest(alone, times) s(n, pointer) WHERE s.n = u.n)
          THEN (weir.level_heads(u.queue, u.f, 9223372036854775807)).least_
        ELSE (SELECT min(h.vesting) FROM weir.all_heads(u.queue) h) END AS least
      FROM (SELECT o.*, weir.floors(weir.queue_lock(o.queue), now_) AS f,
                (SELECT CASE WHEN q.paused THEN 9223372036854775807 ELSE q.snoozed END
                   FROM weir.queues q WHERE q.queue = o.queue) AS held_until
              FROM unnest(queues_, thens_) WITH ORDINALITY o(queue, then_, n)) u OFFSET 0) l
    ORDER BY l.n);
  IF now_ IS NULL AND EXISTS (SELECT 1 FROM unnest(leasts) l(least) WHERE l.least < weir.clock()) THEN
    PERFORM pg_current_xact_id();
    PERFORM nextval('weir.returned');  -- it may come below a floor
  END IF;
  WITH gone AS (DELETE FROM weir.pointers p USING unnest(seen, alone) s(place, n)
      WHERE p.ctid = s.place AND p.pointer IS DISTINCT FROM leasts[s.n]
        AND (thens_[s.n] IS NULL OR p.pointer <= until_))
    INSERT INTO weir.pointers SELECT weir.scan_of(u.queue, u.shard), u.least, u.queue
      FROM unnest(queues_, shards_, leasts, froms_, thens_) u(queue, shard, least, first, then_)
      WHERE u.least IS NOT NULL AND NOT EXISTS (SELECT 1 FROM weir.pointers p
        WHERE p.queue || '' = u.queue AND p.pointer + 0 >= u.first AND p.pointer + 0 <= u.least
          AND (p.pointer = u.least OR u.then_ IS NOT NULL AND p.pointer > until_
            OR NOT p.ctid = ANY (coalesce(seen, '{}'))) OFFSET 0);
  RETURN alone IS NOT NULL;
END $$;

-- A queue is held for less long than before, until `until_`, or not at all. A step that is not
-- committed yet may rely on the pointer at the end that the hold had. So where somebody enqueues, or
-- may, the queue is due as if it had a job by then.
CREATE FUNCTION weir.end_hold(queue_ bytea, shard_ integer, until_ bigint, own_ boolean, at_ bigint)
  RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  IF (CASE WHEN own_ THEN weir.move_pointers(ARRAY[queue_], ARRAY[shard_],
      '{-9223372036854775808}', ARRAY[NULL]::bigint[], NULL) END) IS NOT TRUE THEN
    PERFORM weir.touch(queue_, shard_, greatest(now_, until_), CASE WHEN at_ IS NULL THEN now_ END,
                       own_);
  END IF;
END $$;

-- The first look of a dequeue: the levels that are in use, and the first job of each. The time was read
-- before it.
CREATE FUNCTION weir.look(queue_ bytea, f bigint[], now_ bigint, own_ boolean, OUT levels integer[],
    OUT firsts bigint[]) LANGUAGE plpgsql AS $$
DECLARE
  since_ pg_snapshot;
  began_ timestamptz;
  kept boolean;
BEGIN
  IF weir.to_be_raised(f, now_, own_) THEN
    since_ := pg_current_snapshot();
    began_ := clock_timestamp();
  END IF;
  SELECT h.levels, h.firsts INTO levels, firsts
    FROM weir.level_heads(queue_, CASE WHEN now_ < f[4] THEN f END, now_) h;
  IF since_ IS NOT NULL THEN
    kept := weir.raise_floors(f, levels, firsts, now_, since_, began_);
  END IF;
END $$;

-- After a dequeue: whether more is visible, when the queue is due next, and whether its pointers are to
-- be moved: from which one on, and until when (see move_pointers).
--
-- Each claim leaves something dead behind where its lease would have ended, which is ahead of the time,
-- where no floor can be. So a session that has claimed many jobs lately looks there now and then, if that
-- takes long. Until then the queue is due when it will look, whatever vests meanwhile: a job that vests
-- later, or was lost, is found so much later, a second at most. floors[6]: when it looks; [7]: how many
-- jobs it has claimed; [8]: how many it had claimed in the time of a lease before; [9]: when it
-- begins to count anew.
CREATE FUNCTION weir.rest(queue_ bytea, f bigint[], now_ bigint, lease_ bigint, claimed_ integer,
    own_ boolean, OUT least_ bigint, OUT visible boolean, OUT moves boolean, OUT from_ bigint,
    OUT then_ bigint) LANGUAGE plpgsql AS $$
DECLARE
  began_ timestamptz;
  took_ bigint;
  latest bigint;  -- a pointer up to then is early enough
  first bigint;
  kept boolean;
BEGIN
  IF f[10] IS NOT NULL THEN
    IF now_ >= f[9] THEN
      f[8] := CASE WHEN now_ < f[9] + lease_ THEN f[7] ELSE 0 END;
      f[7] := 0;
      f[9] := now_ + lease_;
    END IF;
    f[7] := f[7] + claimed_;
    IF now_ < f[4] AND f[7] + f[8] >= 256 THEN
      then_ := least(f[4], now_ + 1000000000);
    END IF;
  END IF;
  IF then_ IS NULL THEN
    least_ := (weir.level_heads(queue_, CASE WHEN now_ < f[4] THEN f END, 9223372036854775807)).least_;
  ELSIF now_ < f[6] THEN
    latest := then_;
    then_ := least(then_, greatest(f[6], now_ + 100000000));
    least_ := least(then_, (weir.level_heads(queue_, f, now_)).least_);
  ELSE
    began_ := clock_timestamp();
    least_ := least(then_, (weir.level_heads(queue_, f, 9223372036854775807)).least_);
    took_ := weir.took(began_);
    f[6] := now_ + CASE WHEN took_ > 200000 THEN least(took_ * 30, 1000000000) ELSE 0 END;
    then_ := least_;
    latest := then_;
  END IF;
  visible := coalesce(least_ <= now_, false);
  IF f[10] IS NOT NULL THEN
    kept := weir.keep_floors(f);
  END IF;
  moves := false;
  IF own_ AND NOT visible THEN
    SELECT p.first, p.from_ INTO first, from_
      FROM weir.first_pointer(queue_, 9223372036854775807, CASE WHEN f IS NOT NULL THEN now_ END) p;
    IF then_ IS NOT NULL AND first > now_ THEN
      least_ := least(least_, first);
    END IF;
    moves := first IS NOT NULL AND CASE WHEN then_ IS NOT NULL THEN first <= now_ OR first > latest
      ELSE first IS DISTINCT FROM least_ OR EXISTS (SELECT 1 FROM weir.pointers p
        WHERE p.queue || '' = queue_ AND p.pointer + 0 >= first
          AND p.pointer IS DISTINCT FROM least_) END;
  END IF;
END $$;

CREATE FUNCTION weir.min_vesting_time(queue_ bytea, at_ bigint) RETURNS bigint
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  f bigint[];
BEGIN
  IF at_ IS NULL AND weir.sees_all() THEN
    f := weir.floors(weir.queue_lock(queue_), now_);
  END IF;
  RETURN weir.span((weir.level_heads(queue_, CASE WHEN now_ < f[4] THEN f END,
    9223372036854775807)).least_, now_);
END $$;

CREATE FUNCTION weir.update_queue_pointer(queue_ bytea, shard_ integer, own_ boolean, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  IF own_ THEN
    PERFORM weir.move_pointers(ARRAY[queue_], ARRAY[shard_], '{-9223372036854775808}', --\
        ARRAY[NULL]::bigint[], NULL);
  END IF;
  RETURN weir.span((SELECT min(h.vesting) FROM weir.all_heads(queue_) h), now_);
END $$;

-- May a step that only reads change something by the way? Not where its transaction has begun before,
-- as an application's may have, or sees what was then.
CREATE FUNCTION weir.may_write() RETURNS boolean LANGUAGE sql STABLE
  RETURN pg_current_xact_id_if_assigned() IS NULL
    AND NOT current_setting('transaction_read_only')::boolean
    AND weir.sees_all();

-- Of the pointers of each queue that are over, the first one is enough (F77): applications' enqueues
-- leave one each. It has the queue to itself before it looks for the first one, so that nobody moves
-- that one; and who relies on another of them has the queue, too.
CREATE FUNCTION weir.fold_pointers(queues_ bytea[], now_ bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  alone bytea[] := ARRAY(SELECT u.queue FROM unnest(queues_) u(queue)
    WHERE pg_try_advisory_xact_lock(weir.queue_lock(u.queue)));
BEGIN
  DELETE FROM weir.pointers p WHERE p.ctid = ANY (ARRAY(SELECT k.place
    FROM unnest(alone) u(queue), LATERAL (SELECT o.ctid AS place FROM weir.pointers o
      WHERE o.queue || '' = u.queue AND o.pointer + 0 <= now_
      ORDER BY o.pointer + 0 OFFSET 1) k LIMIT 10000));
END $$;

-- Where the first pointer of a scan is, or no pointer before it. `now_` NULL: no floor is known. A scan
-- has no number of a transaction, and takes one only where a higher floor saves it something.
CREATE FUNCTION weir.scan_from(scan_ integer, now_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  f bigint[] := weir.floors(-1 - scan_, now_);
  from_ bigint := coalesce(CASE WHEN now_ < f[4] THEN f[11] END, -9223372036854775808);
  first bigint;
  since_ pg_snapshot := pg_current_snapshot();
  began_ timestamptz := clock_timestamp();
  kept boolean;
BEGIN
  SELECT p.pointer INTO first FROM weir.pointers p WHERE p.scan = scan_ AND p.pointer >= from_
    ORDER BY p.pointer, p.queue LIMIT 1;
  IF weir.to_be_raised(f, now_, weir.may_write())
      AND (now_ >= f[5] + 10000000000 OR weir.took(began_) > 100000) THEN
    kept := weir.raise_floors(f, '{0}', ARRAY[first], now_, since_, began_);
  END IF;
  RETURN coalesce(first, from_);
END $$;

-- First, with no queue, when the next pointer after these is due.
CREATE FUNCTION weir.scan_visible_queues(scan_ integer, limit_ integer, entropy_ bigint, --\
    at_ bigint)
  RETURNS TABLE (queue bytea, next_in bigint) --\
      LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  writes_ boolean := weir.may_write();  -- before the time is read, which may be noted
  now_ bigint := coalesce(at_, weir.clock());
  from_ bigint := weir.scan_from(scan_, CASE WHEN at_ IS NULL THEN now_ END);
  first bigint := greatest(from_, -4611686018427387904);
  start bigint;
  p record;
  found_ bytea[] := '{}';
  due bigint[] := '{}';
  held_ bytea[] := '{}';     -- some that have a pointer before their hold ends, and
  shards_ integer[] := '{}';  -- their shards
  crowded_ bytea[] := '{}';  -- those that have several pointers, and
  again_ integer := 0;       -- how many more than one
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
    (SELECT k.pointer, k.queue AS name, q.paused, q.snoozed, q.shard
       FROM weir.pointers k LEFT JOIN weir.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer >= start AND k.pointer <= now_
       ORDER BY k.pointer, k.queue)
    UNION ALL
    (SELECT k.pointer, k.queue, q.paused, q.snoozed, q.shard
       FROM weir.pointers k LEFT JOIN weir.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer < start AND k.pointer >= from_
       ORDER BY k.pointer, k.queue)
    UNION ALL
    (SELECT k.pointer, k.queue, q.paused, q.snoozed, q.shard
       FROM weir.pointers k LEFT JOIN weir.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer > now_ AND k.pointer < 9223372036854775807
       ORDER BY k.pointer, k.queue)
  LOOP
    IF p.name = ANY (found_) OR p.name = ANY (held_) THEN
      again_ := again_ + 1;
      IF p.name <> ALL (crowded_) AND cardinality(crowded_) < weir.rule.pointers_per_step THEN
        crowded_ := crowded_ || p.name;
      END IF;
      IF again_ >= 1000 AND cardinality(found_) > 0 THEN
        upcoming := least(upcoming, now_);
        EXIT;
      END IF;
      CONTINUE WHEN p.paused OR p.name = ANY (found_);
    END IF;
    IF (p.paused OR p.snoozed > greatest(p.pointer, now_)) AND p.name <> ALL (held_)
        AND cardinality(held_) < weir.rule.pointers_per_step THEN
      held_ := held_ || p.name;
      shards_ := shards_ || p.shard;
    END IF;
    CONTINUE WHEN p.paused OR octet_length(p.name) NOT BETWEEN 1 AND weir.limits.key_size;
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
  IF writes_ AND again_ > 64 THEN
    PERFORM weir.fold_pointers(crowded_, now_);
  END IF;
  IF writes_ AND cardinality(held_) > 0 THEN
    PERFORM weir.move_pointers(held_, shards_,
      array_fill(-9223372036854775808, ARRAY[cardinality(held_)]),
      array_fill(NULL::bigint, ARRAY[cardinality(held_)]), NULL);
  END IF;
  queue := NULL; next_in := upcoming - now_;
  RETURN NEXT;
  RETURN QUERY SELECT f.name, NULL::bigint FROM unnest(found_, due) WITH ORDINALITY f(name, due, n)
    ORDER BY CASE WHEN entropy_ = 0 THEN f.due END, f.n;
END $$;

-- Is a queue of the scan due? Otherwise: when the next one will be, and the topic under which an
-- earlier one is notified. It looks, says that it waits, and looks once more. A step that is committed
-- after the second look sees that, and notifies, unless it began before: then it has the topic's lock,
-- and `due_in` is 0: look again soon. `every_`: how often the asker looks in any case.
CREATE FUNCTION weir.await_jobs(scan_ integer, every_ bigint, at_ bigint, OUT due boolean, OUT due_in bigint,
    OUT topic_ text) LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  settled boolean := true;
BEGIN
  topic_ := 'j' || scan_;
  FOR i IN 1 .. 2 LOOP
    SELECT coalesce(bool_or(s.queue IS NOT NULL), false), max(s.next_in) INTO due, due_in
      FROM weir.scan_visible_queues(scan_, 1, 0, at_) s;
    EXIT WHEN due OR i = 2;
    settled := weir.ask_for(topic_, every_);
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
        AND NOT EXISTS (SELECT 1 FROM weir.jobs j --\
            WHERE j.queue || '' = k.queue)
      GROUP BY k.queue HAVING min(greatest(k.pointer, q.snoozed)) < now_ - grace_
      ORDER BY k.queue LIMIT least(limit_, weir.rule.pointers_per_step) LOOP
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(weir.queue_lock(p.name));
    DELETE FROM weir.pointers k WHERE k.queue || '' = p.name
      AND NOT EXISTS (SELECT 1 FROM weir.jobs j --\
        WHERE j.queue || '' = p.name);
    deleted := deleted + FOUND::integer;
  END LOOP;
  RETURN deleted;
END $$;
