--- The commands of permits and locks, as rule/permits.hpp and rule/locks.hpp have them.

-- Locks a key's line, making it if need be, and then reads the time (F19) and ends what is over.
CREATE FUNCTION weir.open_line(key_ bytea, at_ bigint, make_ boolean,
    OUT now bigint, OUT live integer, OUT waiting integer, OUT turn bigint, OUT fence bigint,
    OUT soonest bigint) LANGUAGE plpgsql AS $$
DECLARE
  ended record;
BEGIN
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
  END LOOP;
  now := coalesce(at_, weir.clock());
  IF now < soonest THEN
    RETURN;
  END IF;
  WITH gone AS (DELETE FROM weir.permits p WHERE p.key = key_ AND p.until <= now RETURNING p.ticket)
    SELECT count(*) FILTER (WHERE NOT gone.ticket) AS permits,
           count(*) FILTER (WHERE gone.ticket) AS tickets INTO ended FROM gone;
  live := live - ended.permits;
  waiting := waiting - ended.tickets;
  SELECT coalesce(min(p.until), 9223372036854775807) INTO soonest
    FROM weir.permits p WHERE p.key = key_;
END $$;

CREATE FUNCTION weir.close_line(key_ bytea, live_ integer, waiting_ integer, turn_ bigint,
    fence_ bigint, soonest_ bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF live_ = 0 AND waiting_ = 0 THEN
    DELETE FROM weir.permit_lines l WHERE l.key = key_;
  ELSE
    UPDATE weir.permit_lines l SET live = live_, waiting = waiting_, turn = turn_, fence = fence_,
      soonest = soonest_ WHERE l.key = key_;
  END IF;
END $$;

CREATE FUNCTION weir.acquire_permit(key_ bytea, holder_ bytea, limit_ integer, ttl_ bigint,
    patience_ bigint, at_ bigint, OUT granted boolean, OUT fence bigint, OUT expires_in bigint,
    OUT in_use integer, OUT place integer, OUT retry_after bigint)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  l record;
  o record;
  has_ticket boolean;
  ahead integer;
  k integer;
  own bigint;
  ends bigint;
BEGIN
  l := weir.open_line(key_, at_, true);
  granted := false; fence := 0; expires_in := 0; place := 0; retry_after := 0;
  SELECT p.ticket, p.number, p.until INTO o FROM weir.permits p
    WHERE p.key = key_ AND p.holder = holder_;
  has_ticket := FOUND;
  IF has_ticket AND NOT o.ticket THEN
    granted := true; fence := o.number; expires_in := o.until - l.now; in_use := l.live;
    PERFORM weir.close_line(key_, l.live, l.waiting, l.turn, l.fence, l.soonest);
    RETURN;
  END IF;
  ahead := l.waiting;
  IF has_ticket THEN
    SELECT count(*) INTO ahead FROM weir.permits p
      WHERE p.key = key_ AND p.ticket AND p.number < o.number;
  END IF;
  IF l.live + ahead < limit_ THEN
    fence := weir.next_fence(l.now, l.fence);
    INSERT INTO weir.permits VALUES (key_, holder_, false, fence, l.now + ttl_)
      ON CONFLICT (key, holder) DO UPDATE
      SET ticket = false, number = excluded.number, until = excluded.until;
    granted := true; expires_in := ttl_; in_use := l.live + 1;
    PERFORM weir.close_line(key_, l.live + 1, l.waiting - has_ticket::integer, l.turn, fence,
                         least(l.soonest, l.now + ttl_));
    RETURN;
  END IF;
  in_use := l.live;
  IF patience_ > 0 THEN
    place := ahead + 1;
    own := CASE WHEN has_ticket THEN o.number ELSE l.turn + 1 END;
    IF NOT has_ticket THEN
      l.turn := own;
      l.waiting := l.waiting + 1;
    END IF;
    INSERT INTO weir.permits VALUES (key_, holder_, true, own, l.now + patience_, limit_)
      ON CONFLICT (key, holder) DO UPDATE SET until = excluded.until, top = excluded.top;
    l.soonest := least(l.soonest, l.now + patience_);
  ELSE
    IF has_ticket THEN
      DELETE FROM weir.permits p WHERE p.key = key_ AND p.holder = holder_;
      l.waiting := l.waiting - 1;
      IF l.waiting > 0 THEN
        PERFORM weir.tell(weir.permit_topic(key_), true);
      END IF;
    END IF;
    ahead := l.waiting;  -- whoever comes without a place comes last
  END IF;
  k := l.live + ahead - limit_;
  IF k < l.live THEN
    SELECT p.until INTO ends FROM weir.permits p WHERE p.key = key_ AND NOT p.ticket
      ORDER BY p.until OFFSET k LIMIT 1;
  ELSE
    SELECT max(p.until) INTO ends FROM weir.permits p
      WHERE p.key = key_ AND NOT (p.ticket AND p.number = coalesce(own, -1));
  END IF;
  retry_after := ends - l.now;
  PERFORM weir.close_line(key_, l.live, l.waiting, l.turn, l.fence, l.soonest);
END $$;

-- NULL: the lease is lost.
CREATE FUNCTION weir.renew_permit(key_ bytea, holder_ bytea, fence_ bigint, ttl_ bigint, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  l record;
  renewed boolean;
BEGIN
  l := weir.open_line(key_, at_, false);
  IF l.live IS NULL THEN
    RETURN NULL;
  END IF;
  UPDATE weir.permits p SET until = l.now + ttl_
    WHERE p.key = key_ AND p.holder = holder_ AND NOT p.ticket AND p.number = fence_;
  renewed := FOUND;
  PERFORM weir.close_line(key_, l.live, l.waiting, l.turn, l.fence,
                       CASE WHEN renewed THEN least(l.soonest, l.now + ttl_) ELSE l.soonest END);
  RETURN CASE WHEN renewed THEN ttl_ END;
END $$;

CREATE FUNCTION weir.release_permit(key_ bytea, holder_ bytea, fence_ bigint, at_ bigint,
    OUT freed boolean, OUT left_line boolean) --\
        LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  l record;
  ticket_ boolean;
BEGIN
  freed := false; left_line := false;
  l := weir.open_line(key_, at_, false);
  IF l.live IS NULL THEN
    RETURN;
  END IF;
  DELETE FROM weir.permits p WHERE p.key = key_ AND p.holder = holder_
    AND (fence_ = 0 OR (NOT p.ticket AND p.number = fence_)) RETURNING p.ticket INTO ticket_;
  IF FOUND THEN
    freed := NOT ticket_;
    left_line := ticket_;
  END IF;
  PERFORM weir.close_line(key_, l.live - freed::integer, l.waiting - left_line::integer, l.turn,
                       l.fence, l.soonest);
  IF (freed OR left_line) AND l.waiting > left_line::integer THEN
    PERFORM weir.tell(weir.permit_topic(key_), true);
  END IF;
END $$;

-- Has the holder reason to ask again: is it its turn, or is it not in line? Otherwise, when
-- something of the key is over, and who is told that something else happened.
CREATE FUNCTION weir.await_permit(key_ bytea, holder_ bytea, at_ bigint, OUT due boolean,
    OUT due_in bigint, OUT topic_ text) LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := coalesce(at_, weir.clock());
  settled boolean := true;
BEGIN
  topic_ := weir.permit_topic(key_);
  FOR i IN 1 .. 2 LOOP
    SELECT o.number IS NULL OR o.top > count(p.key) FILTER (WHERE NOT p.ticket OR
          p.number < o.number), min(p.until) - now_ INTO due, due_in
      FROM (SELECT) one
      LEFT JOIN weir.permits o
        ON o.key = key_ AND o.holder = holder_ AND o.ticket AND o.until > now_
      LEFT JOIN weir.permits p ON p.key = key_ AND p.until > now_
      GROUP BY o.number, o.top;
    EXIT WHEN due OR i = 2;
    settled := weir.ask_for(topic_);
  END LOOP;
  IF NOT settled THEN
    due_in := 0;
  END IF;
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
