--- The commands of buckets, as rule/buckets.hpp has them. Times count from an epoch of the store's,
--- and everything is in the whole numbers of rule::bucket_scale, which the client sends along: so
--- both decide the same, and the client reads the details of the answer off the rule.

-- The time since the epoch, 2026-01-01, held within the horizon of the rule.
CREATE FUNCTION weir.bucket_time(at_ bigint) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN greatest(least(coalesce(at_, weir.clock()) - 1767225600000000000, --\
      weir.rule.bucket_horizon),
                  -weir.rule.bucket_horizon);

CREATE FUNCTION weir.units_at(now_ bigint, gain_ bigint) RETURNS numeric LANGUAGE sql IMMUTABLE
  RETURN now_::numeric * gain_;

CREATE FUNCTION weir.reached(units_ numeric, gain_ bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN (div(units_, gain_) + (mod(units_, gain_) > 0)::integer)::bigint;

-- Arrivals travel in two numbers: how often 2^62 goes into them, 2^95 being added, and the rest.
CREATE FUNCTION weir.high_of(units_ numeric) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN div(units_ + 39614081257132168796771975168, 4611686018427387904)::bigint;
CREATE FUNCTION weir.low_of(units_ numeric) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN mod(units_ + 39614081257132168796771975168, 4611686018427387904)::bigint;
CREATE FUNCTION weir.units_of(low_ bigint, high_ bigint) RETURNS numeric LANGUAGE sql IMMUTABLE
  RETURN high_::numeric * 4611686018427387904 + low_ - 39614081257132168796771975168;

-- Can the arrivals be counted with, and the scales? Otherwise the row is damaged.
CREATE FUNCTION weir.sound_arrivals(a_ numeric[]) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN cardinality(a_) = weir.limits.quotas
    AND coalesce(weir.rule.bucket_scale.never <= ALL (a_), false)
    AND coalesce(weir.rule.bucket_scale.never.magnitude >= ALL (a_), false);
CREATE FUNCTION weir.sound_scales(s_ bigint[]) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN cardinality(s_) IN (0, 3, 6, 9, 12) AND coalesce(0 < ALL (s_), false);

CREATE FUNCTION weir.full_from(s_ bigint[], a_ numeric[]) RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  latest bigint := -9223372036854775808;
BEGIN
  FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
    IF a_[i + 1] <> weir.rule.bucket_scale.never THEN
      latest := greatest(latest, weir.reached(a_[i + 1], s_[3 * i + 2]));
    END IF;
  END LOOP;
  RETURN latest;
END $$;

CREATE FUNCTION weir.full_bucket(s_ bigint[], a_ numeric[], now_ bigint) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
    IF a_[i + 1] > weir.units_at(now_, s_[3 * i + 2]) THEN
      RETURN false;
    END IF;
  END LOOP;
  RETURN true;
END $$;

-- The arrivals of a bucket whose quotas are others now.
CREATE FUNCTION weir.changed_quotas(s_ bigint[], a_ numeric[], after_ bigint[], now_ bigint)
  RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  a numeric[] := array_fill(weir.rule.bucket_scale.never, ARRAY[weir.limits.quotas]);
  ahead numeric;
  missing numeric;
BEGIN
  FOR i IN 0 .. least(cardinality(s_), cardinality(after_)) / 3 - 1 LOOP
    ahead := greatest(a_[i + 1] - weir.units_at(now_, s_[3 * i + 2]), 0);
    missing := div(ahead, s_[3 * i + 3]) + (mod(ahead, s_[3 * i + 3]) <> 0)::integer;
    a[i + 1] := weir.units_at(now_, after_[3 * i + 2])
                + after_[3 * i + 3] * least(missing, after_[3 * i + 1]::numeric);
  END LOOP;
  RETURN a;
END $$;

-- What is known of a bucket that is not there: it was forgotten as full, if time ran backwards.
CREATE FUNCTION weir.unseen_bucket(s_ bigint[], now_ bigint) RETURNS numeric[] --\
    LANGUAGE plpgsql AS $$
DECLARE
  a numeric[] := array_fill(weir.rule.bucket_scale.never, ARRAY[weir.limits.quotas]);
  f bigint := (SELECT forgotten FROM weir.state);
BEGIN
  IF f <= now_ THEN
    RETURN a;
  END IF;
  FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
    a[i + 1] := weir.units_at(f, s_[3 * i + 2]);
  END LOOP;
  RETURN a;
END $$;

-- Takes from one bucket, one after the other, or a look at it: the time of the step, the arrivals
-- before each, and whether it was allowed. The bucket is locked once for all of them.
CREATE FUNCTION weir.take(key_ bytea, quotas_ bytea, s_ bigint[], costs_ bigint[], max_waits_ bigint[],
    takes_ boolean, at_ bigint) RETURNS TABLE (now bigint, allowed boolean, a0 bigint, a1 bigint,
    a2 bigint, a3 bigint, h0 bigint, h1 bigint, h2 bigint, h3 bigint) --\
        LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  b record;
  a numeric[];
  made boolean := false;
  taken boolean := false;
  wait bigint;
  due_ numeric;
BEGIN
  LOOP
    IF takes_ THEN
      SELECT k.quotas, k.scales, k.arrival, k.ctid AS place INTO b FROM weir.buckets k
        WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
    ELSE
      SELECT k.quotas, k.scales, k.arrival INTO b FROM weir.buckets k
        WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1;
    END IF;
    EXIT WHEN FOUND OR NOT takes_;
    CONTINUE WHEN NOT weir.may_make(3, key_);
    made := NOT EXISTS (SELECT 1 FROM weir.buckets k WHERE k.key = key_);
    IF made THEN
      INSERT INTO weir.buckets AS k VALUES (key_, '', s_, '{}', 0)
        RETURNING k.quotas, k.scales, k.arrival, k.ctid AS place INTO b;
      EXIT;
    END IF;
  END LOOP;
  now := weir.bucket_time(at_);
  IF NOT made AND b.quotas IS NOT NULL
      AND NOT (weir.sound_arrivals(b.arrival) AND weir.sound_scales(b.scales)) THEN
    RAISE SQLSTATE 'WEIR2' USING MESSAGE = 'weir: a damaged bucket';
  END IF;
  a := CASE WHEN made OR b.quotas IS NULL THEN weir.unseen_bucket(s_, now)
            WHEN b.quotas = quotas_ THEN b.arrival
            ELSE weir.changed_quotas(b.scales, b.arrival, s_, now) END;
  FOR n IN 1 .. cardinality(costs_) LOOP
    a0 := weir.low_of(a[1]); a1 := weir.low_of(a[2]); a2 := weir.low_of(a[3]); a3 := weir.low_of(a[4]);
    h0 := weir.high_of(a[1]); h1 := weir.high_of(a[2]); h2 := weir.high_of(a[3]); h3 := weir.high_of(a[4]);
    wait := 0;
    FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
      due_ := a[i + 1] + (costs_[n] - s_[3 * i + 1])::numeric * s_[3 * i + 3];
      IF due_ > weir.units_at(now, s_[3 * i + 2]) THEN
        wait := greatest(wait, weir.reached(due_, s_[3 * i + 2]) - now);
      END IF;
    END LOOP;
    allowed := wait <= max_waits_[n];
    RETURN NEXT;
    IF takes_ AND allowed THEN
      taken := true;
      FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
        a[i + 1] := greatest(a[i + 1], weir.units_at(now + wait, s_[3 * i + 2]))
                    + costs_[n]::numeric * s_[3 * i + 3];
      END LOOP;
    END IF;
  END LOOP;
  IF NOT taken THEN
    IF made THEN
      DELETE FROM weir.buckets k WHERE k.ctid = b.place;
      DELETE FROM weir.used_keys u WHERE u.kind = 3 AND u.key = key_;
    END IF;
  ELSIF NOT made AND b.quotas = quotas_ THEN
    UPDATE weir.buckets k SET arrival = a, uses = weir.next_use(k.uses), number = weir.next_use(k.uses) >> 5
      WHERE k.ctid = b.place;
  ELSE
    UPDATE weir.buckets k SET quotas = quotas_, scales = s_, arrival = a, --\
        due = weir.full_from(s_, a), uses = weir.next_use(k.uses), number = weir.next_use(k.uses) >> 5
      WHERE k.ctid = b.place;
  END IF;
END $$;

CREATE FUNCTION weir.refund(key_ bytea, cost_ bigint, mark_ bigint[], mark_high_ bigint[],
    before_ bigint[], before_high_ bigint[], before_instant_ boolean, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  b record;
  now_ bigint;
  back bigint := cost_;
  a numeric[];
  price bigint;
  rest numeric;
BEGIN
  SELECT k.scales AS s, k.arrival, k.due, k.ctid AS place INTO b FROM weir.buckets k
    WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
  IF NOT FOUND OR b.s = '{}' THEN
    RETURN 0;
  ELSIF NOT (weir.sound_arrivals(b.arrival) AND weir.sound_scales(b.s)) THEN
    RAISE SQLSTATE 'WEIR2' USING MESSAGE = 'weir: a damaged bucket';
  END IF;
  now_ := weir.bucket_time(at_);
  a := b.arrival;
  FOR i IN 0 .. cardinality(b.s) / 3 - 1 LOOP
    IF a[i + 1] <> weir.units_of(mark_[i + 1], mark_high_[i + 1]) OR cost_ > b.s[3 * i + 1] THEN
      RETURN 0;
    END IF;
    IF NOT before_instant_ THEN
      price := b.s[3 * i + 3];
      rest := greatest(a[i + 1] - weir.units_at(now_, b.s[3 * i + 2]), 0);
      back := least(back, div(rest + price - 1, price));  -- also one that has refilled in part
    END IF;
  END LOOP;
  IF back = 0 THEN
    RETURN 0;
  END IF;
  FOR i IN 0 .. cardinality(b.s) / 3 - 1 LOOP
    price := b.s[3 * i + 3];
    rest := a[i + 1] - back::numeric * price;
    a[i + 1] := CASE WHEN before_instant_
      THEN least(weir.units_of(before_[i + 1], before_high_[i + 1]), rest) ELSE rest END;
  END LOOP;
  UPDATE weir.buckets k SET arrival = a, due = least(b.due, weir.full_from(b.s, a)),
      uses = weir.next_use(k.uses), number = weir.next_use(k.uses) >> 5
    WHERE k.ctid = b.place;
  RETURN back;
END $$;

-- Full from now on, even where those that are not there were full from later on.
CREATE FUNCTION weir.reset_bucket(key_ bytea, at_ bigint) RETURNS void --\
    LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  f bigint := (SELECT forgotten FROM weir.state);
  now_ bigint := weir.bucket_time(at_);
  full_ numeric[] := array_fill(weir.rule.bucket_scale.never, ARRAY[weir.limits.quotas]);
  place_ tid;
BEGIN
  LOOP
    SELECT k.ctid INTO place_ FROM weir.buckets k
      WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
    IF FOUND THEN
      UPDATE weir.buckets k SET quotas = '', scales = '{}', arrival = full_, due = greatest(f, now_),
          uses = weir.next_use(k.uses), number = weir.next_use(k.uses) >> 5
        WHERE k.ctid = place_;
      RETURN;
    END IF;
    EXIT WHEN f <= now_;
    CONTINUE WHEN NOT weir.may_make(3, key_);
    IF NOT EXISTS (SELECT 1 FROM weir.buckets k WHERE k.key = key_) THEN
      INSERT INTO weir.buckets VALUES (key_, '', '{}', full_, f);
      RETURN;
    END IF;
  END LOOP;
END $$;

-- Forgets up to so many of the full ones, and puts the order of others right. How many it looked
-- at, and how many it forgot.
CREATE FUNCTION weir.reap_some_buckets(limit_ integer, at_ bigint,
    OUT looked integer, OUT removed integer) --\
        LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  now_ bigint := weir.bucket_time(at_);
  latest bigint := -9223372036854775808;
  b record;
BEGIN
  looked := 0; removed := 0;
  -- It ends with a note in this row, for which nobody is to wait.
  PERFORM 1 FROM weir.state FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  FOR b IN SELECT k.key, k.scales, k.arrival, k.ctid AS place FROM weir.buckets k
      WHERE k.due <= now_
      ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    looked := looked + 1;
    IF NOT (weir.sound_arrivals(b.arrival) AND weir.sound_scales(b.scales)) THEN
      UPDATE weir.buckets k SET due = 9223372036854775807 WHERE k.ctid = b.place;  -- left for a reset
    ELSIF NOT weir.full_bucket(b.scales, b.arrival, now_) THEN
      UPDATE weir.buckets k SET due = weir.full_from(b.scales, b.arrival) WHERE k.ctid = b.place;
    ELSIF weir.may_forget(3, b.key) THEN
      DELETE FROM weir.buckets k WHERE k.ctid = b.place;
      latest := greatest(latest, weir.full_from(b.scales, b.arrival));
      removed := removed + 1;
    ELSE  -- somebody is about to use it
      UPDATE weir.buckets k SET due = now_ + 60000000000 WHERE k.ctid = b.place;
    END IF;
  END LOOP;
  IF removed > 0 THEN
    UPDATE weir.state SET forgotten = greatest(forgotten, latest) WHERE forgotten < latest;
  END IF;
END $$;

CREATE FUNCTION weir.reap_buckets(at_ bigint, OUT removed bigint, OUT kept bigint)
  LANGUAGE plpgsql SET weir.function_settings TO DEFAULT AS $$
DECLARE
  hurries boolean := weir.hurry();
  r record;
BEGIN
  removed := 0;
  PERFORM 1 FROM weir.state FOR UPDATE;
  LOOP
    r := weir.reap_some_buckets(1000, at_);
    removed := removed + r.removed;
    EXIT WHEN r.looked = 0;
  END LOOP;
  kept := (SELECT count(*) FROM weir.buckets);
END $$;
