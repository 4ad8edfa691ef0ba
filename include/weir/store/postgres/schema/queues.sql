--- Queues as a whole: counters, holds and leases.
---
--- `own_` says that the step is a transaction of weir's own, which is short. In an application's
--- transaction a step takes no lock of a whole queue and no counter that others use, so that nobody
--- waits for it however long it stays open.

-- Has a row of counters room for more? One that is damaged may not.
CREATE FUNCTION weir.counts_on(c weir.counters) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN greatest(c.enqueued, c.completed, c.cancelled, c.purged, c.dead) < 4611686018427387904
    AND least(c.enqueued, c.completed, c.cancelled, c.purged, c.dead) > -4611686018427387904;

-- The stripe of a row of counters after one more use.
CREATE FUNCTION weir.next_stripe(uses_ bigint, stripe_ bigint) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN CASE WHEN weir.next_use(uses_) & 31 = 0 THEN nextval('weir.stripes') ELSE stripe_ END;

CREATE FUNCTION weir.count_jobs(queue_ bytea, shard_ integer, enqueued_ bigint, completed_ bigint,
    cancelled_ bigint, purged_ bigint, dead_ bigint, own_ boolean)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  place tid;
BEGIN
  IF own_ THEN
    SELECT c.ctid INTO place FROM weir.counters c
      WHERE c.queue = queue_ AND c.shard = shard_ AND weir.counts_on(c)
      ORDER BY c.stripe DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
    -- By another statement, which sees what the row was when it was locked.
    UPDATE weir.counters c SET enqueued = c.enqueued + enqueued_, --\
        completed = c.completed + completed_, cancelled = c.cancelled + cancelled_,
        purged = c.purged + purged_, dead = c.dead + dead_, day = weir.day(),
        uses = weir.next_use(c.uses), stripe = weir.next_stripe(c.uses, c.stripe)
      WHERE c.ctid = place;
    IF FOUND THEN
      RETURN false;
    END IF;
  END IF;
  INSERT INTO weir.counters (queue, shard, enqueued, completed, cancelled, purged, dead)
    VALUES (queue_, shard_, enqueued_, completed_, cancelled_, purged_, dead_);
  RETURN true;
END $$;

-- Counts jobs of any queues as completed: a queue and its shard for each job. A row is chosen once for
-- each queue, before any is changed: what has been changed would be skipped.
CREATE FUNCTION weir.count_completed(queues_ bytea[], shards_ integer[]) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  places tid[];
  counts bigint[];
BEGIN
  SELECT array_agg(e.queue), array_agg(e.shard), array_agg(e.jobs), array_agg(f.place)
    INTO queues_, shards_, counts, places
    FROM (SELECT u.queue, u.shard, count(*) AS jobs FROM unnest(queues_, shards_) u(queue, shard)
            GROUP BY u.queue, u.shard) e
      LEFT JOIN LATERAL (SELECT c.ctid AS place FROM weir.counters c
        WHERE c.queue = e.queue AND c.shard = e.shard AND weir.counts_on(c)
        ORDER BY c.stripe DESC LIMIT 1 FOR UPDATE SKIP LOCKED) f ON true;
  WITH counted AS (UPDATE weir.counters c SET completed = c.completed + f.jobs,
        day = weir.day(), uses = weir.next_use(c.uses), stripe = weir.next_stripe(c.uses, c.stripe)
      FROM unnest(places, counts) f(place, jobs) WHERE c.ctid = f.place)
    INSERT INTO weir.counters (queue, shard, enqueued, completed, cancelled, purged, dead)
      SELECT f.queue, f.shard, 0, f.jobs, 0, 0, 0
        FROM unnest(queues_, shards_, counts, places) f(queue, shard, jobs, place)
        WHERE f.place IS NULL;
END $$;

CREATE FUNCTION weir.held(queue_ bytea, now_ bigint) RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce((SELECT paused OR now_ < snoozed FROM weir.queues WHERE queue = queue_), false);

CREATE FUNCTION weir.open_queue(queue_ bytea, shard_ integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  hurries boolean := weir.hurry();
BEGIN
  LOOP
    INSERT INTO weir.queues (queue, shard) VALUES (queue_, shard_) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM weir.queues q WHERE q.queue = queue_ FOR UPDATE;
    EXIT WHEN FOUND;  -- otherwise it was forgotten in between
  END LOOP;
END $$;

-- The next scan that finds the queue moves its pointer to the end of the hold.
CREATE FUNCTION weir.snooze_queue(queue_ bytea, shard_ integer, delay_ bigint, at_least_ boolean,
    own_ boolean, at_ bigint) RETURNS void --\
    LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  was bigint;
  until_ bigint;
BEGIN
  PERFORM weir.open_queue(queue_, shard_);
  SELECT q.snoozed INTO was FROM weir.queues q WHERE q.queue = queue_;
  until_ := greatest(CASE WHEN delay_ = 0 THEN -9223372036854775808
    ELSE coalesce(at_, weir.clock()) + delay_ END, CASE WHEN at_least_ THEN was END);
  UPDATE weir.queues q SET snoozed = until_ WHERE q.queue = queue_;
  IF until_ < was THEN
    PERFORM weir.end_hold(queue_, shard_, until_, own_, at_);
  END IF;
END $$;

-- Moves the pointer at once: many queues may be paused together, and a scan moves few.
CREATE FUNCTION weir.pause_queue(queue_ bytea, shard_ integer, own_ boolean) RETURNS void
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
BEGIN
  PERFORM weir.open_queue(queue_, shard_);
  UPDATE weir.queues q SET paused = true WHERE q.queue = queue_;
  IF own_ THEN
    PERFORM weir.move_pointers(ARRAY[queue_], ARRAY[shard_], '{-9223372036854775808}', --\
      ARRAY[NULL]::bigint[], NULL);
  END IF;
END $$;

CREATE FUNCTION weir.resume_queue(queue_ bytea, own_ boolean, at_ bigint) RETURNS void --\
    LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  shard_ integer;
BEGIN
  UPDATE weir.queues q SET paused = false, snoozed = -9223372036854775808 WHERE q.queue = queue_
    RETURNING q.shard INTO shard_;
  IF FOUND THEN
    PERFORM weir.end_hold(queue_, shard_, NULL, own_, at_);
    PERFORM weir.tell('j' || weir.scan_of(queue_, shard_), own_);
  END IF;
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
DECLARE
  hurries boolean := weir.hurry();
BEGIN
  PERFORM 1 FROM weir.queues q WHERE q.queue = queue_ FOR UPDATE;
  UPDATE weir.queues q SET until = -9223372036854775808
    WHERE q.queue = queue_ AND q.holder = holder_ AND q.until > coalesce(at_, weir.clock())
      AND (fence_ = 0 OR q.fence = fence_);
  RETURN FOUND;
END $$;

-- In one statement, so from one snapshot; what is pending is what is left of what came in. Leases are
-- counted in the index of those alone, whatever the server knows of the queue: no other one has the
-- holder, and for the one that has the vesting time, too, coalesce hides it.
CREATE FUNCTION weir.read_queue_stats(queue_ bytea, at_ bigint, OUT enqueued bigint,
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
         WHERE j.queue || '' = queue_ AND j.holder > '' AND coalesce(j.vesting, now_) > now_),
      coalesce((SELECT q.paused FROM weir.queues q WHERE q.queue = queue_), false)
    INTO enqueued, completed, dead, cancelled, purged, leased, paused
    FROM weir.counters c WHERE c.queue = queue_;
  next_in := weir.span((SELECT min(h.vesting) FROM weir.all_heads(queue_) h), now_);
END $$;

-- The last one may be more than fits the answer: it says that there are more.
CREATE FUNCTION weir.list_queues(shard_ integer, limit_ integer, after_ bytea) RETURNS SETOF bytea
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  last bytea := after_;
  room integer := weir.limits.answer_bytes;
BEGIN
  FOR i IN 1 .. limit_ LOOP
    last := least((SELECT c.queue FROM weir.counters c WHERE c.shard + 0 = shard_
                       AND c.queue || '' > last ORDER BY c.queue || '' LIMIT 1),
                  (SELECT q.queue FROM weir.queues q WHERE q.shard = shard_ AND q.queue > last
                     ORDER BY q.queue LIMIT 1));
    EXIT WHEN last IS NULL;
    RETURN NEXT last;
    room := room - octet_length(last);
    EXIT WHEN room < 0;
  END LOOP;
END $$;
