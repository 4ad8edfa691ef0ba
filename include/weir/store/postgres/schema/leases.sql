--- The commands of permits and locks, as rule/permits.hpp and rule/locks.hpp have them.

-- Locks a key's line, making it if need be, and then reads the time (F19) and ends what is over.
CREATE FUNCTION weir.open_line(key_ bytea, at_ bigint, make_ boolean,
    OUT now bigint, OUT live integer, OUT waiting integer, OUT turn bigint, OUT fence bigint,
    OUT soonest bigint, OUT ended integer) LANGUAGE plpgsql AS $$
DECLARE
  gone_ record;
BEGIN
  ended := 0;
  LOOP
    SELECT l.live, l.waiting, l.turn, l.fence, l.soonest INTO live, waiting, turn, fence, soonest
      FROM weir.permit_lines l WHERE l.key = key_ FOR UPDATE;
    IF FOUND THEN
      EXIT WHEN least(live, waiting) >= 0;
      RAISE SQLSTATE 'WEIR2' USING MESSAGE = 'weir: a damaged line of permits';
    END IF;
    IF NOT make_ THEN
      now := coalesce(at_, weir.clock());
      RETURN;
    END IF;
    INSERT INTO weir.permit_lines VALUES (key_, 0, 0, 0, 0, 9223372036854775807)
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      live := 0; waiting := 0; turn := 0; fence := 0; soonest := 9223372036854775807;
      EXIT;
    END IF;
  END LOOP;
  now := coalesce(at_, weir.clock());
  IF now < soonest THEN
    RETURN;
  END IF;
  WITH gone AS (DELETE FROM weir.permits p WHERE p.key = key_ AND p.until <= now RETURNING p.ticket)
    SELECT count(*) FILTER (WHERE NOT gone.ticket) AS permits,
           count(*) FILTER (WHERE gone.ticket) AS tickets INTO gone_ FROM gone;
  live := live - gone_.permits;
  waiting := waiting - gone_.tickets;
  ended := gone_.permits + gone_.tickets;
  soonest := coalesce((SELECT p.until FROM weir.permits p WHERE p.key = key_
    ORDER BY p.until LIMIT 1), 9223372036854775807);
END $$;

-- What a holder hears whose turn has come. Any role of the database may listen: a guess at a key
-- cannot be told from it.
CREATE FUNCTION weir.turn_topic(key_ bytea, holder_ bytea) RETURNS text LANGUAGE sql STABLE
  RETURN 'p' || left(encode(sha256(uuid_send((SELECT s.secret FROM weir.state s))
                                   || int4send(octet_length(key_)) || key_ || holder_), 'hex'), 32);

-- After so many places became free: tells those whose turn has come by it, and nobody else: who was
-- to be told before has been. Where limits differ it looks at the first ones of the line.
CREATE FUNCTION weir.call_next(key_ bytea, live_ integer, freed_ integer) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  turns integer := (SELECT p.top FROM weir.permits p WHERE p.key = key_ AND p.ticket
                      ORDER BY p.number LIMIT 1) - live_;
BEGIN
  PERFORM pg_notify(btrim('weir', '"'), weir.turn_topic(key_, n.holder))
    FROM (SELECT f.holder, f.listens, live_ + row_number() OVER () - 1 AS before, f.top
            FROM (SELECT p.holder, p.listens, p.top FROM weir.permits p
                WHERE p.key = key_ AND p.ticket ORDER BY p.number LIMIT greatest(turns, 8)) f) n
    WHERE n.listens AND n.before BETWEEN n.top - freed_ AND n.top - 1;
END $$;

-- Leaves the line as it is now, and says who is next if places became free. It is changed whenever
-- something ends sooner than it would have: a REPEATABLE READ transaction that sees less is refused.
CREATE FUNCTION weir.close_line(key_ bytea, live_ integer, waiting_ integer, turn_ bigint,
    fence_ bigint, soonest_ bigint, freed_ integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF live_ = 0 AND waiting_ = 0 THEN
    DELETE FROM weir.permit_lines l WHERE l.key = key_;
    RETURN;
  END IF;
  UPDATE weir.permit_lines l SET live = live_, waiting = waiting_, turn = turn_, fence = fence_,
    soonest = soonest_ WHERE l.key = key_ AND (l.live <> live_ OR l.waiting <> waiting_
      OR l.turn <> turn_ OR l.fence <> fence_ OR l.soonest <> soonest_);
  IF freed_ > 0 AND waiting_ > 0 THEN
    PERFORM weir.call_next(key_, live_, freed_);
  END IF;
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
  l := weir.open_line(key_, at_, weir.postgres_permit_step.acquire = ANY (steps_));
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
          WHERE p.key = key_ AND p.ticket AND p.number < number_;
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
        IF k < l.live THEN
          SELECT p.until INTO ends FROM (SELECT h.until FROM weir.permits h
              WHERE h.key = key_ AND NOT h.ticket OFFSET 0) p ORDER BY p.until OFFSET k LIMIT 1;
        ELSE
          SELECT p.until INTO ends FROM weir.permits p
            WHERE p.key = key_ AND p.holder <> holders_[i] ORDER BY p.until DESC LIMIT 1;
        END IF;
        retry_after := ends - l.now;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF l.live IS NOT NULL THEN
    PERFORM weir.close_line(key_, l.live, l.waiting, l.turn, l.fence, l.soonest, freed);
  END IF;
END $$;

-- Has each of these holders reason to ask again: is it its turn, or is it not in line? Otherwise
-- when time may have made it so, and what it hears of before. Those far behind have others before
-- them who look at the time, and are told.
CREATE FUNCTION weir.await_permits(keys_ bytea[], holders_ bytea[], at_ bigint)
  RETURNS TABLE (due boolean, due_in bigint, topic_ text)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  o record;
BEGIN
  FOR i IN 1 .. cardinality(keys_) LOOP
    SELECT p.number, p.top INTO o FROM weir.permits p
      WHERE p.key = keys_[i] AND p.holder = holders_[i] AND p.ticket AND (p.until > now_) IS TRUE;
    due := NOT FOUND; due_in := NULL; topic_ := weir.turn_topic(keys_[i], holders_[i]);
    IF NOT due THEN
      SELECT count(*) < o.top, --\
          CASE WHEN count(*) < o.top + 9 THEN min(f.until) - now_ END
        INTO due, due_in
        FROM (SELECT p.until FROM weir.permits p
            WHERE p.key = keys_[i] AND (p.until > now_) IS TRUE --\
              AND (NOT p.ticket OR p.number < o.number)
            ORDER BY p.ticket, p.number LIMIT o.top + 9) f;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- First how many permits and tickets there are, then some of the holders.
CREATE FUNCTION weir.inspect_permits(key_ bytea, limit_ integer, at_ bigint)
  RETURNS TABLE (holder bytea, number bigint, expires_in bigint)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  RETURN QUERY SELECT NULL::bytea, count(*) FILTER (WHERE NOT p.ticket),
      count(*) FILTER (WHERE p.ticket)
    FROM weir.permits p WHERE p.key = key_ AND p.until > now_;
  RETURN QUERY SELECT p.holder, p.number, p.until - now_ FROM weir.permits p
    WHERE p.key = key_ AND NOT p.ticket AND p.until > now_ ORDER BY p.number LIMIT limit_;
END $$;

CREATE FUNCTION weir.acquire_lock(key_ bytea, holder_ bytea, ttl_ bigint, at_ bigint,
    OUT granted boolean, OUT fence bigint, OUT expires_in bigint, OUT holder bytea)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  l record;
  now_ bigint;
BEGIN
  LOOP
    SELECT k.holder, k.fence, k.until INTO l FROM weir.locks k WHERE k.key = key_ FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO weir.locks VALUES (key_, '', 0, -9223372036854775808) ON CONFLICT DO NOTHING;
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
  UPDATE weir.locks k SET holder = holder_, fence = acquire_lock.fence, until = now_ + ttl_
    WHERE k.key = key_;
END $$;

CREATE FUNCTION weir.renew_lock(key_ bytea, holder_ bytea, fence_ bigint, ttl_ bigint, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  until_ bigint;
  now_ bigint;
BEGIN
  SELECT k.until INTO until_ FROM weir.locks k
    WHERE k.key = key_ AND k.holder = holder_ AND k.fence = fence_ FOR UPDATE;
  now_ := coalesce(at_, weir.clock());
  IF until_ IS NULL OR now_ >= until_ OR fence_ = 0 THEN
    RETURN NULL;
  END IF;
  UPDATE weir.locks k SET until = now_ + ttl_ WHERE k.key = key_;
  RETURN ttl_;
END $$;

CREATE FUNCTION weir.release_lock(key_ bytea, holder_ bytea, fence_ bigint, at_ bigint)
  RETURNS boolean LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  until_ bigint;
BEGIN
  SELECT k.until INTO until_ FROM weir.locks k
    WHERE k.key = key_ AND k.holder = holder_ AND (fence_ = 0 OR k.fence = fence_) FOR UPDATE;
  IF until_ IS NULL THEN
    RETURN false;
  END IF;
  DELETE FROM weir.locks k WHERE k.key = key_;
  RETURN coalesce(at_, weir.clock()) < until_;
END $$;

CREATE FUNCTION weir.inspect_lock(key_ bytea, at_ bigint,
    OUT holder bytea, OUT fence bigint, OUT expires_in bigint)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
BEGIN
  SELECT k.holder, k.fence, k.until - now_ INTO holder, fence, expires_in
    FROM weir.locks k WHERE k.key = key_ AND k.until > now_;
END $$;
