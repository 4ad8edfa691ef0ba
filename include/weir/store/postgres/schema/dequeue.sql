--- Dequeues: of one queue, which may have any kind of job, and of many queues at once.

-- Locks what is known of a holder's latest numbered dequeue, and makes it where there is none. The same
-- dequeue, asked before, may still be under way: then it is waited for.
CREATE FUNCTION weir.last_dequeue(queue_ bytea, holder_ bytea, OUT place tid, OUT sequence bigint)
  LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    SELECT d.ctid, d.sequence INTO place, sequence FROM weir.dequeues d
      WHERE d.queue = queue_ AND d.holder = holder_ ORDER BY d.number DESC LIMIT 1 FOR UPDATE;
    EXIT WHEN FOUND;
    CONTINUE WHEN NOT weir.may_make(4, weir.dequeue_key(queue_, holder_));
    IF NOT EXISTS (SELECT 1 FROM weir.dequeues d WHERE d.queue = queue_ AND d.holder = holder_) THEN
      INSERT INTO weir.dequeues AS d (queue, holder, sequence, day) VALUES (queue_, holder_, 0, 0)
        RETURNING d.ctid, d.sequence INTO place, sequence;
      EXIT;
    END IF;
  END LOOP;
END $$;

-- One dequeue, or several at once that are not numbered: each takes what the one before it has left,
-- as many as its limit. First the jobs, in that order; then, with no id, the number of jobs that
-- were buried instead (attempts), or set aside as damaged (max_attempts), whether more are visible
-- (snoozes), whether the queue is held (state), and when the next job vests (vesting).
CREATE FUNCTION weir.dequeue_jobs(queue_ bytea, shard_ integer, holders_ bytea[], limits_ integer[],
    sequence_ bigint, lease_ bigint, own_ boolean, at_ bigint) RETURNS SETOF weir.job_row
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint;
  number xid8;
  held_ boolean;
  holder_ bytea := holders_[1];
  limit_ integer := limits_[1];
  whose bytea[];  -- NULL: all of it is the first one's
  asked tid;
  last bigint;
  n integer := 0;
  more integer;
  buried integer := 0;  -- damaged ones included
  damaged integer := 0;
  since_ bigint;  -- NULL: now_ is of a clock of somebody else's
  order_ bigint := weir.queue_lock(queue_);
  levels integer[];
  firsts bigint[];
  places tid[];
  fences_ bigint[];
  candidates uuid[];
  sizes bigint[];
  total bigint;
  room bigint := weir.limits.answer_bytes;
  full_ boolean := false;
  odd integer;
  how integer;
  done boolean;
  v weir.jobs;
  h record;
  tail weir.job_row;
BEGIN
  number := pg_current_xact_id();  -- before the time is read (see floors)
  IF sequence_ <> 0 THEN
    SELECT d.place, d.sequence INTO asked, last FROM weir.last_dequeue(queue_, holder_) d;
  ELSIF cardinality(limits_) > 1 THEN
    limit_ := 0;
    FOR i IN 1 .. cardinality(limits_) LOOP
      whose := whose || array_fill(holders_[i], ARRAY[limits_[i]]);
      limit_ := limit_ + limits_[i];
    END LOOP;
  END IF;
  now_ := coalesce(at_, weir.clock());
  since_ := CASE WHEN at_ IS NULL THEN now_ END;
  IF at_ IS NOT NULL THEN  -- leases may end below a floor
    PERFORM nextval('weir.returned');
  END IF;
  -- As held() has it, which would be parsed and planned once more for each call.
  held_ := coalesce((SELECT q.paused OR now_ < q.snoozed FROM weir.queues q WHERE q.queue = queue_),
                    false);
  IF sequence_ <> 0 THEN
    IF last = sequence_ THEN
      RETURN QUERY SELECT now_, weir.postgres_job_row.of_a_lease FROM weir.jobs j
        WHERE j.queue || '' = queue_ AND j.holder = holder_ AND j.sequence = sequence_
          AND j.state = weir.job_state.pending AND j.vesting > now_ ORDER BY j.fence;
      GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
      UPDATE weir.dequeues d SET sequence = sequence_, day = now_ / 86400000000000,
          uses = weir.next_use(d.uses), number = weir.next_use(d.uses) >> 5
        WHERE d.ctid = asked;
      UPDATE weir.jobs j SET sequence = 0  -- of an earlier dequeue that had this number, too
        WHERE last <> sequence_ AND j.queue || '' = queue_ AND j.holder = holder_
          AND j.sequence = sequence_;
    END IF;
  END IF;

  IF NOT held_ AND n = 0 THEN
    SELECT l.levels, l.firsts INTO levels, firsts
      FROM weir.look(queue_, weir.floors(order_, since_), now_, own_) l;
  END IF;
  FOR l IN 1 .. coalesce(cardinality(levels), 0) LOOP
    EXIT WHEN full_ OR n >= limit_ OR buried >= weir.rule.burials_per_dequeue;
    CONTINUE WHEN firsts[l] > now_;
    LOOP
      IF nextval('weir.fences') < now_ / 1000 THEN
        PERFORM weir.raise_fences(now_);
      END IF;
      -- The best ones that nobody else has locked, in their order, which that of their fences is,
      -- too. The claim ends before the first one that is to be buried, which takes no room in the answer,
      -- and before the one that is too large for that, which never is the first (F60).
      SELECT array_agg(l.place), array_agg(nextval('weir.fences')), array_agg(l.id),
          array_position(array_agg(l.reason IS NOT NULL), true),
          array_agg(CASE WHEN l.reason IS NULL THEN l.bytes ELSE 0 END),
          sum(CASE WHEN l.reason IS NULL THEN l.bytes ELSE 0 END)
        INTO places, fences_, candidates, odd, sizes, total
        FROM (SELECT j.ctid AS place, j.id,
                  weir.claim_bytes(j) AS bytes,
                  weir.unclaimable(j, now_) AS reason
                FROM weir.jobs j WHERE j.queue || '' = queue_ AND j.priority = levels[l]
                  AND j.vesting >= firsts[l] AND j.vesting <= now_
                ORDER BY j.vesting, j.id LIMIT limit_ - n FOR UPDATE SKIP LOCKED) l;
      EXIT WHEN places IS NULL;
      IF total > room THEN
        total := 0;
        FOR i IN 1 .. cardinality(places) LOOP
          full_ := total + sizes[i] > room;
          IF full_ THEN
            places := places[:i - 1]; fences_ := fences_[:i - 1]; candidates := candidates[:i - 1];
            odd := CASE WHEN odd < i THEN odd END;
            full_ := odd IS NULL;
            EXIT;
          END IF;
          total := total + sizes[i];
        END LOOP;
        EXIT WHEN cardinality(places) = 0;
      END IF;
      IF odd IS NULL OR odd > 1 THEN
        RETURN QUERY WITH claimed AS (
            UPDATE weir.jobs j2 SET fence = greatest(c.fence, j2.fence + 1),
                holder = coalesce(whose[(n + c.place)::integer], holder_), sequence = sequence_,
                attempts = j2.attempts + 1, unclaimed = j2.vesting, vesting = now_ + lease_
              FROM unnest(places[:coalesce(odd - 1, cardinality(places))], fences_)
                WITH ORDINALITY c(tid, fence, place)
              WHERE j2.ctid = c.tid RETURNING j2.*, c.place)
          SELECT now_, weir.postgres_job_row.of_a_lease FROM claimed j ORDER BY j.place;
        GET DIAGNOSTICS more = ROW_COUNT;
        n := n + more;
      END IF;
      room := room - CASE WHEN odd IS NULL THEN total
        ELSE coalesce((SELECT sum(s.size) FROM unnest(sizes[:odd - 1]) s(size)), 0) END;
      EXIT WHEN odd IS NULL;
      FOR i IN odd .. cardinality(candidates) LOOP
        SELECT j2.* INTO v FROM weir.jobs j2 WHERE j2.queue = queue_ AND j2.id = candidates[i];
        CONTINUE WHEN buried >= weir.rule.burials_per_dequeue;
        how := weir.bury(v, now_);
        IF how > 0 THEN
          buried := buried + 1;
          damaged := damaged + (how = 2)::integer;
        END IF;
      END LOOP;
      EXIT WHEN buried >= weir.rule.burials_per_dequeue;
    END LOOP;
  END LOOP;
  IF buried > 0 THEN
    done := weir.count_jobs(queue_, shard_, 0, 0, 0, 0, buried, own_);
  END IF;

  h := weir.rest(queue_, weir.floors(order_, since_), now_, lease_, n, own_);
  IF h.moves THEN
    PERFORM weir.move_pointers(ARRAY[queue_], ARRAY[shard_], ARRAY[h.from_], ARRAY[h.then_], since_);
  END IF;
  tail.attempts := buried - damaged;
  tail.max_attempts := damaged;
  tail.snoozes := (h.visible AND NOT held_)::integer;
  tail.state := held_::integer;
  tail.vesting := weir.span(h.least_, now_);
  RETURN NEXT tail;
END $$;

-- Can a value be read? Of a large one, which is stored apart, a part may be gone.
CREATE FUNCTION weir.readable(value bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM value || '';
  RETURN true;
EXCEPTION WHEN data_corrupted OR index_corrupted OR internal_error THEN
  RETURN false;
END $$;

-- A dequeue after one that failed because a job could not be read. First it looks at the jobs that it may
-- claim: what cannot be read of them becomes empty, and a negative count of snoozes has bury() take them
-- for damaged. It looks at no more than it may claim, or bury.
CREATE FUNCTION weir.dequeue_readable(queue_ bytea, shard_ integer, holders_ bytea[],
    limits_ integer[], sequence_ bigint, lease_ bigint, own_ boolean, at_ bigint)
  RETURNS SETOF weir.job_row LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint;
  left_ bigint := (SELECT sum(l.most) FROM unnest(limits_) l(most));
  room bigint := weir.limits.answer_bytes;
  damaged integer := 0;
  m record;
BEGIN
  IF sequence_ <> 0 THEN  -- before the jobs, as dequeue_jobs has it
    PERFORM weir.last_dequeue(queue_, holders_[1]);
  END IF;
  now_ := coalesce(at_, weir.clock());
  FOR m IN
    SELECT j.* FROM weir.all_heads(queue_) h,
      LATERAL (SELECT k.id, weir.claim_bytes(k) AS size, weir.readable(k.holder) AS holder,
            weir.readable(k.unique_key) AS unique_key, weir.readable(k.kind) AS kind,
            weir.readable(k.payload) AS payload, weir.readable(k.memo) AS memo,
            weir.readable(k.reason) AS reason, weir.readable(k.headers) AS headers,
            weir.readable(k.progress) AS progress, weir.readable(k.checkpoint) AS checkpoint
          FROM weir.jobs k WHERE k.queue || '' = queue_ AND k.priority = h.priority --\
            AND k.vesting <= now_
          ORDER BY k.vesting, k.id FOR UPDATE SKIP LOCKED) j
  LOOP
    IF m.holder AND m.unique_key AND m.kind AND m.payload AND m.memo AND m.reason AND m.headers
        AND m.progress AND m.checkpoint THEN
      left_ := left_ - 1;
      room := room - m.size;
    ELSE
      damaged := damaged + 1;
      UPDATE weir.jobs j SET snoozes = -1,
          holder = CASE WHEN m.holder THEN j.holder END,
          unique_key = CASE WHEN m.unique_key THEN j.unique_key ELSE '' END,
          kind = CASE WHEN m.kind THEN j.kind ELSE '' END,
          payload = CASE WHEN m.payload THEN j.payload ELSE '' END,
          memo = CASE WHEN m.memo THEN j.memo ELSE '' END,
          reason = CASE WHEN m.reason THEN j.reason ELSE '' END,
          headers = CASE WHEN m.headers THEN j.headers ELSE '' END,
          progress = CASE WHEN m.progress THEN j.progress ELSE '' END,
          checkpoint = CASE WHEN m.checkpoint THEN j.checkpoint ELSE '' END
        WHERE j.queue = queue_ AND j.id = m.id;
    END IF;
    EXIT WHEN left_ <= 0 OR room < 0 OR damaged >= weir.rule.burials_per_dequeue;
  END LOOP;
  RETURN QUERY SELECT * FROM weir.dequeue_jobs(queue_, shard_, holders_, limits_, sequence_, lease_,
    own_, at_);
END $$;

-- Numbered dequeues of many queues. Each statement is for all of them, so that what it costs by itself
-- is shared: one after the other they take the server eight times as long. The rows of each bear its
-- place among them (part): the jobs, in their order, and a row with no id, as that of dequeue_jobs is.
-- Where it says so (priority), the dequeue has claimed nothing and is to be asked by itself: its number
-- is not above the last one, another dequeue here is of the same queue, the answer has no room, or its
-- jobs are of several levels, damaged, spent or late.
CREATE FUNCTION weir.dequeue_each(queues_ bytea[], shards_ integer[], holders_ bytea[],
    limits_ integer[], sequences_ bigint[], lease_ bigint, own_ boolean, at_ bigint)
  RETURNS SETOF weir.job_row LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  now_ bigint := coalesce(at_, weir.clock());
  since_ bigint;
  counted bytea[];
  places tid[];
  fences_ bigint[];
  parts integer[];
  sizes bigint[];
  total bigint := 0;
  levels integer[];
  firsts bigint[];
  counts integer[];
  held_ boolean[];
  moved integer[] := '{}';
  froms bigint[] := '{}';
  thens bigint[] := '{}';
  r record;
  tail weir.job_row;
BEGIN
  SELECT array_agg(a.part), array_agg(a.place) INTO parts, places
    FROM (SELECT u.*, d.place, d.last
            FROM (SELECT * FROM unnest(queues_, holders_, sequences_)
                    WITH ORDINALITY o(queue, holder, sequence, part) ORDER BY o.queue) u
              LEFT JOIN LATERAL (SELECT k.ctid AS place, k.sequence AS last FROM weir.dequeues k
                WHERE k.queue = u.queue AND k.holder = u.holder
                ORDER BY k.number DESC LIMIT 1 FOR UPDATE) d ON true
            WHERE array_position(queues_, u.queue) = u.part) a
    WHERE coalesce(a.last, 0) < a.sequence AND NOT EXISTS (SELECT 1 FROM weir.jobs j
      WHERE j.queue || '' = a.queue AND j.holder = a.holder AND j.sequence >= a.sequence);
  -- Where there was none, who says first that there is one makes it, in this statement.
  WITH found_ AS (
      UPDATE weir.dequeues d SET sequence = sequences_[a.part], day = now_ / 86400000000000,
          uses = weir.next_use(d.uses), number = weir.next_use(d.uses) >> 5
        FROM unnest(places, parts) a(place, part) WHERE d.ctid = a.place RETURNING d.queue),
    first_ AS (
      INSERT INTO weir.used_keys
        SELECT 4, weir.dequeue_key(queues_[a.part], holders_[a.part])
          FROM unnest(places, parts) a(place, part) WHERE a.place IS NULL ORDER BY 2
        ON CONFLICT DO NOTHING RETURNING key),
    made AS (
      INSERT INTO weir.dequeues AS d (queue, holder, sequence, day)
        SELECT queues_[a.part], holders_[a.part], sequences_[a.part], now_ / 86400000000000
          FROM unnest(places, parts) a(place, part) JOIN first_ f
            ON f.key = weir.dequeue_key(queues_[a.part], holders_[a.part])
          WHERE a.place IS NULL RETURNING d.queue)
    SELECT coalesce(array_agg(a.queue), '{}') INTO counted
      FROM (SELECT queue FROM found_ UNION ALL SELECT queue FROM made) a;
  now_ := coalesce(at_, weir.clock());
  since_ := CASE WHEN at_ IS NULL THEN now_ END;
  IF at_ IS NOT NULL THEN
    PERFORM nextval('weir.returned');
  END IF;
  IF nextval('weir.fences') < now_ / 1000 THEN
    PERFORM weir.raise_fences(now_);
  END IF;
  -- Of each queue the first level that has a visible job, and how many have.
  SELECT array_agg(h.level), array_agg(h.first), array_agg(h.levels), array_agg(q.held)
    INTO levels, firsts, counts, held_
    FROM (SELECT u.queue, weir.floors(weir.queue_lock(u.queue), since_) AS f,
              EXISTS (SELECT 1 FROM weir.queues k WHERE k.queue = u.queue
                AND (k.paused OR now_ < k.snoozed)) AS held
            FROM unnest(queues_) WITH ORDINALITY u(queue, part) ORDER BY u.part) q,
      LATERAL (SELECT min(l.level) AS level,
            (array_agg(l.first ORDER BY l.level))[1] AS first, count(*) AS levels
          FROM (SELECT a.priority AS level, a.vesting AS first FROM weir.all_heads(q.queue) a
                  WHERE q.f IS NULL
                UNION ALL SELECT o.level, o.first FROM weir.look(q.queue, q.f, now_, own_) k,
                  unnest(k.levels, k.firsts) o(level, first) WHERE q.f IS NOT NULL) l
          WHERE l.first <= now_) h;
  -- The visible jobs of that level, if all of them are plain, and no other level is to give the rest.
  SELECT array_agg(c.place) FILTER (WHERE c.plain),
      array_agg(nextval('weir.fences')) FILTER (WHERE c.plain),
      array_agg(q.part) FILTER (WHERE c.plain), array_agg(c.size) FILTER (WHERE c.plain)
    INTO places, fences_, parts, sizes
    FROM unnest(queues_, limits_, levels, firsts, counts, held_)
        WITH ORDINALITY q(queue, most, level, first, levels, held, part),
      LATERAL (SELECT l.place, l.size,
            bool_and(l.sound) OVER () AND (q.levels = 1 OR count(*) OVER () = q.most) AS plain
          FROM (SELECT j.ctid AS place, weir.claim_bytes(j) AS size,
                    weir.unclaimable(j, now_) IS NULL AS sound
                  FROM weir.jobs j WHERE NOT q.held AND q.queue = ANY (counted)
                    AND array_position(queues_, q.queue) = q.part
                    AND j.queue || '' = q.queue AND j.priority = q.level AND j.vesting >= q.first
                    AND j.vesting <= now_
                  ORDER BY j.vesting, j.id LIMIT q.most FOR UPDATE SKIP LOCKED) l) c;
  -- All that an answer has room for.
  FOR i IN 1 .. coalesce(cardinality(sizes), 0) LOOP
    total := total + sizes[i];
    IF total > weir.limits.answer_bytes THEN
      places := places[:array_position(parts, parts[i]) - 1];
      EXIT;
    END IF;
  END LOOP;
  parts := parts[:cardinality(places)];
  RETURN QUERY WITH claimed AS (
      UPDATE weir.jobs j SET fence = greatest(c.fence, j.fence + 1), holder = holders_[c.part],
          sequence = sequences_[c.part], attempts = j.attempts + 1, unclaimed = j.vesting,
          vesting = now_ + lease_
        FROM unnest(places, fences_[:cardinality(places)], parts)
          WITH ORDINALITY c(place, fence, part, nth)
        WHERE j.ctid = c.place RETURNING j.*, c.part, c.nth)
    SELECT now_, weir.postgres_job_row.of_a_part FROM claimed j ORDER BY j.nth;

  FOR r IN
    SELECT q.part, q.held, h.least, h.visible, h.moves, h.from_, h.then_,
        NOT q.queue = ANY (counted) OR array_position(queues_, q.queue) < q.part
          OR h.visible AND NOT q.held AND q.part = ANY (parts) IS NOT TRUE AS alone
      FROM (SELECT u.*, weir.floors(weir.queue_lock(u.queue), since_) AS f
              FROM unnest(queues_, held_) WITH ORDINALITY u(queue, held, part) OFFSET 0) q,
        LATERAL (
          SELECT a.least, a.visible, own_ AND NOT a.visible AND EXISTS (SELECT 1 FROM weir.pointers p
                WHERE p.queue || '' = q.queue AND p.pointer IS DISTINCT FROM a.least) AS moves,
              -9223372036854775808 AS from_, NULL::bigint AS then_
            FROM (SELECT min(l.vesting) AS least, coalesce(bool_or(l.vesting <= now_), false) AS visible
                    FROM weir.all_heads(q.queue) l) a
            WHERE q.f IS NULL
          UNION ALL SELECT t.* FROM weir.rest(q.queue, q.f, now_, lease_,
              coalesce(cardinality(array_positions(parts, q.part::integer)), 0), own_) t
            WHERE q.f IS NOT NULL) h
  LOOP
    tail.part := r.part;
    tail.priority := r.alone::integer;
    tail.attempts := 0;
    tail.max_attempts := 0;
    tail.snoozes := (r.visible AND NOT r.held)::integer;
    tail.state := r.held::integer;
    tail.vesting := weir.span(r.least, now_);
    RETURN NEXT tail;
    IF r.moves AND NOT r.alone THEN
      moved := moved || r.part::integer;
      froms := froms || r.from_;
      thens := thens || r.then_;
    END IF;
  END LOOP;
  IF cardinality(moved) > 0 THEN
    PERFORM weir.move_pointers(array_agg(queues_[m.part]), array_agg(shards_[m.part]),
                               array_agg(m.first), array_agg(m.then_), since_)
      FROM unnest(moved, froms, thens) m(part, first, then_);
  END IF;
END $$;
