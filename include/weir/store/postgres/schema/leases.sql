--- The commands of permits and locks, as rule/permits.hpp and rule/locks.hpp have them.

-- Can a line be counted with?
CREATE FUNCTION weir.counts_line(live_ integer, waiting_ integer, turn_ bigint, fence_ bigint)
  RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN least(live_, waiting_, turn_, fence_) >= 0
    AND greatest(turn_, fence_) < 4611686018427387904;

-- When a row that is made now is to be looked at for the first time.
CREATE FUNCTION weir.first_due(lasts_ bigint, at_ bigint) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN coalesce(at_, weir.clock()) + least(lasts_, 60000000000);

-- Locks a key's line and then reads the time (F19) and ends what is over. It makes one, unless
-- `lasts_` is NULL, for something that lasts so long. It looks only at what the line says may be over,
-- unless it is to look at everything.
CREATE FUNCTION weir.open_line(key_ bytea, at_ bigint, lasts_ bigint, everything_ boolean,
    OUT now bigint, OUT live integer, OUT waiting integer, OUT turn bigint, OUT fence bigint,
    OUT soonest bigint, OUT head bigint, OUT oldest bigint, OUT place tid, OUT ended integer)
  LANGUAGE plpgsql AS $$
DECLARE
  hurries boolean := weir.hurry();
  gone_ record;
BEGIN
  ended := 0;
  LOOP
    SELECT l.live, l.waiting, l.turn, l.fence, l.soonest, l.head, l.oldest, l.ctid
      INTO live, waiting, turn, fence, soonest, head, oldest, place
      FROM weir.permit_lines l WHERE l.key = key_ ORDER BY l.number DESC LIMIT 1 FOR UPDATE;
    IF FOUND THEN
      IF everything_ THEN
        soonest := -9223372036854775808; head := 0; oldest := 0;
      END IF;
      EXIT WHEN CASE WHEN weir.counts_line(live, waiting, turn, fence)
        THEN head <= turn + 1 AND oldest <= fence + 1 END;
      RAISE SQLSTATE 'WEIR2' USING MESSAGE = 'weir: a damaged line of permits';
    END IF;
    IF lasts_ IS NULL THEN
      now := coalesce(at_, weir.clock());
      RETURN;
    END IF;
    CONTINUE WHEN NOT weir.may_make(1, key_);
    IF NOT EXISTS (SELECT 1 FROM weir.permit_lines l WHERE l.key = key_) THEN
      INSERT INTO weir.permit_lines AS l (key, live, waiting, turn, fence, soonest, due)
        VALUES (key_, 0, 0, 0, 0, 9223372036854775807, weir.first_due(lasts_, at_))
        RETURNING l.ctid INTO place;
      live := 0; waiting := 0; turn := 0; fence := 0; soonest := 9223372036854775807;
      head := 0; oldest := 0;
      EXIT;
    END IF;
  END LOOP;
  now := coalesce(at_, weir.clock());
  IF now < soonest THEN
    RETURN;
  END IF;
  WITH gone AS (DELETE FROM weir.permits p
      WHERE p.key || '' = key_ AND p.until + 0 BETWEEN soonest AND now RETURNING p.ticket)
    SELECT count(*) FILTER (WHERE NOT gone.ticket) AS permits,
           count(*) FILTER (WHERE gone.ticket) AS tickets INTO gone_ FROM gone;
  live := live - gone_.permits;
  waiting := waiting - gone_.tickets;
  ended := gone_.permits + gone_.tickets;
  soonest := coalesce((SELECT p.until FROM weir.permits p WHERE p.key || '' = key_
      AND p.until + 0 > now ORDER BY p.until + 0 LIMIT 1), 9223372036854775807);
END $$;

-- The topic by which a holder is told that its turn has come. Every role of the database may listen;
-- the secret keeps it from finding out whether a key that it guesses is in use.
CREATE FUNCTION weir.turn_topic(key_ bytea, holder_ bytea) RETURNS text LANGUAGE sql STABLE
  RETURN 'p' || left(encode(sha256(uuid_send((SELECT s.secret FROM weir.state s))
                                   || int4send(octet_length(key_)) || key_ || holder_), 'hex'), 32);

-- After so many places became free: tells those whose turn has come by it, and hardly anybody else:
-- who was to be told before has been. Where limits differ it looks at the first ones of the line. Which turn
-- the first of them has.
CREATE FUNCTION weir.call_next(key_ bytea, head_ bigint, live_ integer, freed_ integer)
  RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  turns integer;
  first bigint;
BEGIN
  SELECT p.top - live_, p.number INTO turns, first FROM weir.permits p
    WHERE p.key || 't' = key_ || 't' AND p.ticket AND p.number >= head_
    ORDER BY p.number LIMIT 1;
  PERFORM pg_notify(btrim('weir', '"'), weir.turn_topic(key_, n.holder))
    FROM (SELECT f.holder, f.listens, live_ + row_number() OVER () - 1 AS before, f.top
            FROM (SELECT p.holder, p.listens, p.top FROM weir.permits p
                WHERE p.key || 't' = key_ || 't' AND p.ticket AND p.number >= first
                ORDER BY p.number LIMIT greatest(turns, 8)) f) n
    WHERE n.listens AND n.before BETWEEN n.top - freed_ AND n.top - 1;
  RETURN first;
END $$;

-- Leaves the line as it is now, and says who is next if places became free. It is changed whenever
-- something ends sooner than it would have: a REPEATABLE READ transaction that sees less is refused.
CREATE FUNCTION weir.close_line(key_ bytea, place_ tid, live_ integer, waiting_ integer,
    turn_ bigint, fence_ bigint, soonest_ bigint, head_ bigint, oldest_ bigint, freed_ integer)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF waiting_ = 0 THEN
    head_ := turn_ + 1;
  ELSIF freed_ > 0 THEN
    head_ := coalesce(weir.call_next(key_, head_, live_, freed_), 0);  -- 0: it was damaged
  END IF;
  IF live_ = 0 THEN
    oldest_ := fence_ + 1;
  ELSIF freed_ > 0 THEN
    oldest_ := coalesce((SELECT p.number FROM weir.permits p
      WHERE p.key || 'p' = key_ || 'p' AND NOT p.ticket AND p.number >= oldest_
      ORDER BY p.number LIMIT 1), 0);
  END IF;
  UPDATE weir.permit_lines l SET live = live_, waiting = waiting_, turn = turn_, fence = fence_,
      soonest = soonest_, head = head_, oldest = oldest_, uses = weir.next_use(l.uses),
      number = weir.next_use(l.uses) >> 5
    WHERE l.ctid = place_ AND (l.live <> live_ OR l.waiting <> waiting_ OR l.turn <> turn_
      OR l.fence <> fence_ OR l.soonest <> soonest_ OR l.head <> head_ OR l.oldest <> oldest_);
END $$;

-- Steps of one key, of any holders, one after the other: the line is locked once for all of them.
-- Acquired: whether it was granted, and its grant. Renewed: false: the lease is lost. Released:
-- whether a permit was freed, and (place) whether a ticket was given up.
CREATE FUNCTION weir.permit_steps(key_ bytea, steps_ integer[], holders_ bytea[], fences_ bigint[],
    limits_ integer[], ttls_ bigint[], patiences_ bigint[], listens_ boolean, at_ bigint)
  RETURNS TABLE (done boolean, fence bigint, expires_in bigint, in_use integer, place integer,
    retry_after bigint) LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  l record;
  waits boolean;  -- it has a ticket, and no permit
  number_ bigint;
  until_ bigint;
  known boolean;
  ahead integer;
  k integer;
  ends bigint;
  freed integer;
BEGIN
  l := weir.open_line(key_, at_, CASE WHEN weir.postgres_permit_step.acquire = ANY (steps_)
    THEN greatest(ttls_[1], patiences_[1]) END, false);
  freed := l.ended;
  FOR i IN 1 .. cardinality(steps_) LOOP
    done := false; fence := 0; expires_in := 0; in_use := 0; place := 0; retry_after := 0;
    IF l.live IS NULL THEN
      RETURN NEXT;
      CONTINUE;
    END IF;
    known := l.live + l.waiting > 0;
    IF known THEN
      SELECT p.ticket, p.number, p.until INTO waits, number_, until_ FROM weir.permits p
        WHERE p.key = key_ AND p.holder = holders_[i];
      known := FOUND;
    END IF;
    IF steps_[i] = weir.postgres_permit_step.renew THEN
      IF known AND NOT waits AND number_ = fences_[i] THEN
        UPDATE weir.permits p SET until = l.now + ttls_[i]
          WHERE p.key = key_ AND p.holder = holders_[i];
        l.turn := l.turn + (l.now + ttls_[i] < until_)::integer;
        l.soonest := least(l.soonest, l.now + ttls_[i]);
        done := true; expires_in := ttls_[i];
      END IF;
    ELSIF steps_[i] = weir.postgres_permit_step.release THEN
      IF known AND (fences_[i] = 0 OR NOT waits AND number_ = fences_[i]) THEN
        DELETE FROM weir.permits p WHERE p.key = key_ AND p.holder = holders_[i];
        done := NOT waits; place := waits::integer;
        l.live := l.live - done::integer;
        l.waiting := l.waiting - place;
        freed := freed + 1;
      END IF;
    ELSIF known AND NOT waits THEN
      done := true; fence := number_; expires_in := until_ - l.now; in_use := l.live;
    ELSE
      ahead := l.waiting;
      IF known THEN
        SELECT count(*) INTO ahead FROM weir.permits p
          WHERE p.key || 't' = key_ || 't' AND p.ticket
            AND p.number >= l.head AND p.number < number_;
      END IF;
      IF l.live + ahead < limits_[i] THEN
        fence := weir.next_fence(l.now, l.fence);
        INSERT INTO weir.permits VALUES (key_, holders_[i], false, fence, l.now + ttls_[i])
          ON CONFLICT (key, holder) DO UPDATE
          SET ticket = false, number = excluded.number, until = excluded.until;
        l.live := l.live + 1;
        l.waiting := l.waiting - known::integer;
        l.fence := fence;
        l.soonest := least(l.soonest, l.now + ttls_[i]);
        done := true; expires_in := ttls_[i]; in_use := l.live;
      ELSE
        in_use := l.live;
        IF patiences_[i] > 0 THEN
          place := ahead + 1;
          IF NOT known THEN
            l.turn := l.turn + 1;
            l.waiting := l.waiting + 1;
          END IF;
          INSERT INTO weir.permits VALUES (key_, holders_[i], true, l.turn, l.now + patiences_[i],
              limits_[i], listens_)
            ON CONFLICT (key, holder) DO UPDATE SET until = excluded.until, top = excluded.top,
              listens = excluded.listens;
          l.turn := l.turn + (known AND l.now + patiences_[i] < until_)::integer;
          l.soonest := least(l.soonest, l.now + patiences_[i]);
        ELSE
          IF known THEN
            DELETE FROM weir.permits p WHERE p.key = key_ AND p.holder = holders_[i];
            l.waiting := l.waiting - 1;
            freed := freed + 1;
          END IF;
          ahead := l.waiting;  -- whoever comes without a place comes last
        END IF;
        k := l.live + ahead - limits_[i];
        -- One of the first to end is met soon in the order of ends, unless many wait, which are in it,
        -- too. Of a few permits all are read: that order also has what is dead (F79).
        IF k + l.waiting < l.live / 64 THEN
          SELECT p.until INTO ends FROM weir.permits p
            WHERE p.key || '' = key_ AND NOT p.ticket AND p.until + 0 >= l.soonest
            ORDER BY p.until + 0 OFFSET k LIMIT 1;
        ELSIF k < l.live THEN
          SELECT p.until INTO ends FROM weir.permits p
            WHERE p.key || 'p' = key_ || 'p' AND NOT p.ticket AND p.number >= l.oldest
            ORDER BY p.until + 0 OFFSET k LIMIT 1;
        ELSE
          SELECT p.until INTO ends FROM weir.permits p
            WHERE p.key || '' = key_ AND p.holder <> holders_[i] ORDER BY p.until + 0 DESC LIMIT 1;
        END IF;
        retry_after := ends - l.now;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF l.live IS NOT NULL THEN
    PERFORM weir.close_line(key_, l.place, l.live, l.waiting, l.turn, l.fence, l.soonest, l.head,
                            l.oldest, freed);
  END IF;
END $$;

-- Has each of these holders reason to ask again? `due`: it is its turn, or it is not in line. `due_in`:
-- when the first lease or ticket before it ends; NULL: it stands so far back that no single end can
-- make it its turn, and those before it watch the time. `topic_`: the topic by which it is told.
CREATE FUNCTION weir.await_permits(keys_ bytea[], holders_ bytea[], at_ bigint)
  RETURNS TABLE (due boolean, due_in bigint, topic_ text)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  o record;
  l record;
BEGIN
  FOR i IN 1 .. cardinality(keys_) LOOP
    SELECT p.number, p.top INTO o FROM weir.permits p
      WHERE p.key = keys_[i] AND p.holder = holders_[i] AND p.ticket AND (p.until > now_) IS TRUE;
    due := NOT FOUND; due_in := NULL; topic_ := weir.turn_topic(keys_[i], holders_[i]);
    IF NOT due THEN
      SELECT w.head, w.oldest INTO l FROM weir.permit_lines w
        WHERE w.key = keys_[i] ORDER BY w.number DESC LIMIT 1;
      SELECT count(*) < o.top, --\
          CASE WHEN count(*) < o.top + 9 THEN min(f.until) - now_ END
        INTO due, due_in
        FROM ((SELECT p.until FROM weir.permits p
                WHERE p.key || 'p' = keys_[i] || 'p' AND NOT p.ticket
                  AND p.number >= l.oldest AND p.until > now_ ORDER BY p.number LIMIT o.top + 9)
            UNION ALL (SELECT p.until FROM weir.permits p
                WHERE p.key || 't' = keys_[i] || 't' AND p.ticket
                  AND p.number >= l.head AND p.number < o.number AND p.until > now_
                ORDER BY p.number LIMIT o.top + 9)
            LIMIT o.top + 9) f;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- First how many permits and tickets there are, then some of the holders: in one statement, which sees
-- one moment.
CREATE FUNCTION weir.inspect_permits(key_ bytea, limit_ integer, at_ bigint)
  RETURNS TABLE (holder bytea, number bigint, expires_in bigint)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  RETURN QUERY SELECT a.* FROM (
      SELECT NULL::bytea AS who, count(*) FILTER (WHERE NOT p.ticket) AS by,
          count(*) FILTER (WHERE p.ticket) AS lasts
        FROM weir.permits p WHERE p.key = key_ AND p.until > now_
      UNION ALL (SELECT p.holder, p.number, p.until - now_ FROM weir.permits p
        WHERE p.key = key_ AND NOT p.ticket AND p.until > now_ ORDER BY p.number LIMIT limit_)) a
    ORDER BY a.who IS NOT NULL, a.by;
END $$;

CREATE FUNCTION weir.acquire_lock(key_ bytea, holder_ bytea, ttl_ bigint, at_ bigint,
    OUT granted boolean, OUT fence bigint, OUT expires_in bigint, OUT holder bytea)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  l record;
  now_ bigint;
BEGIN
  LOOP
    SELECT k.holder, k.fence, k.until, k.ctid AS place INTO l FROM weir.locks k
      WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
    EXIT WHEN FOUND;
    CONTINUE WHEN NOT weir.may_make(2, key_);
    IF NOT EXISTS (SELECT 1 FROM weir.locks k WHERE k.key = key_) THEN
      INSERT INTO weir.locks (key, due, holder, fence, until)
        VALUES (key_, weir.first_due(ttl_, at_), '', 0, -9223372036854775808);
    END IF;
  END LOOP;
  now_ := coalesce(at_, weir.clock());
  granted := now_ >= l.until OR l.holder = holder_;
  IF NOT granted THEN
    fence := 0; expires_in := l.until - now_; holder := l.holder;
    RETURN;
  END IF;
  holder := '';
  IF now_ < l.until THEN
    fence := l.fence; expires_in := l.until - now_;
    RETURN;
  END IF;
  fence := weir.next_fence(now_, l.fence); expires_in := ttl_;
  UPDATE weir.locks k SET holder = holder_, fence = acquire_lock.fence, until = now_ + ttl_,
      uses = weir.next_use(k.uses), number = weir.next_use(k.uses) >> 5
    WHERE k.ctid = l.place;
END $$;

CREATE FUNCTION weir.renew_lock(key_ bytea, holder_ bytea, fence_ bigint, ttl_ bigint, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  l record;
  now_ bigint;
BEGIN
  SELECT k.holder, k.fence, k.until, k.ctid AS place INTO l FROM weir.locks k
    WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
  now_ := coalesce(at_, weir.clock());
  IF (l.holder = holder_ AND l.fence = fence_ AND l.until > now_ AND fence_ <> 0) IS NOT TRUE THEN
    RETURN NULL;
  END IF;
  UPDATE weir.locks k SET until = now_ + ttl_, uses = weir.next_use(k.uses), number = weir.next_use(k.uses) >> 5
    WHERE k.ctid = l.place;
  RETURN ttl_;
END $$;

CREATE FUNCTION weir.release_lock(key_ bytea, holder_ bytea, fence_ bigint, at_ bigint)
  RETURNS boolean LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  l record;
BEGIN
  SELECT k.holder, k.fence, k.until, k.ctid AS place INTO l FROM weir.locks k
    WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
  IF (l.holder = holder_ AND (fence_ = 0 OR l.fence = fence_)) IS NOT TRUE THEN
    RETURN false;
  END IF;
  UPDATE weir.locks k SET holder = '', until = -9223372036854775808, uses = weir.next_use(k.uses),
      number = weir.next_use(k.uses) >> 5
    WHERE k.ctid = l.place;
  RETURN coalesce(at_, weir.clock()) < l.until;
END $$;

CREATE FUNCTION weir.inspect_lock(key_ bytea, at_ bigint,
    OUT holder bytea, OUT fence bigint, OUT expires_in bigint)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  SELECT k.holder, k.fence, CASE WHEN k.until > now_ THEN k.until - now_ END
    INTO holder, fence, expires_in
    FROM weir.locks k WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1;
  IF expires_in IS NULL THEN
    holder := NULL; fence := NULL;
  END IF;
END $$;
