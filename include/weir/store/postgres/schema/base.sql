--- The ground of all of weir's functions: keys, locks, the time, fences and hints.

-- The key of used_keys for what a holder dequeues, and for a unique key of a queue's jobs.
CREATE FUNCTION weir.dequeue_key(queue_ bytea, holder_ bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
  RETURN int4send(octet_length(queue_)) || queue_ || holder_;

-- The uses of a row after one more, whatever was noted.
CREATE FUNCTION weir.next_use(uses_ bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN (uses_ & 4611686018427387903) + 1;

-- Is nobody else making the row of a key that was not found, or removing it? Then it is to be looked
-- for once more, by another statement, which sees what has come meanwhile, before it is made. False:
-- it is to be looked for from the beginning.
CREATE FUNCTION weir.may_make(kind_ integer, key_ bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO weir.used_keys VALUES (kind_, key_) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN  -- written, so that a REPEATABLE READ transaction that sees less is refused
    UPDATE weir.used_keys u SET kind = kind_ WHERE u.kind = kind_ AND u.key = key_;
  END IF;
  RETURN FOUND;
END $$;

-- May a row that is locked, and over, be removed? Whoever is about to use it waits for it, and is not
-- waited for.
CREATE FUNCTION weir.may_forget(kind_ integer, key_ bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM weir.used_keys u WHERE u.ctid = (SELECT w.ctid FROM weir.used_keys w
    WHERE w.kind = kind_ AND w.key = key_ FOR UPDATE SKIP LOCKED);
  RETURN FOUND OR NOT EXISTS (SELECT 1 FROM weir.used_keys w WHERE w.kind = kind_ AND w.key = key_);
END $$;

-- How far off a time is. Times of damaged rows are held where they can be counted with.
CREATE FUNCTION weir.span(time_ bigint, now_ bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN CASE WHEN time_ < -4611686018427387904 THEN -4611686018427387904 ELSE time_ END - now_;

-- The same for counters and their sums.
CREATE FUNCTION weir.held_within(sum_ numeric) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN least(greatest(sum_, -4611686018427387904), 4611686018427387904)::bigint;

-- Does each statement see what was committed before it began? The default of a session may change
-- while it is used, and a pooler may give another one.
CREATE FUNCTION weir.sees_all() RETURNS boolean LANGUAGE sql STABLE
  RETURN current_setting('transaction_isolation') = 'read committed';

-- To be called before a step waits for a lock, or may. On a connection with other steps behind this
-- one it does not wait for long: it is refused, and asked for once more where it may (F71). Until the
-- function ends which has settings of its own.
CREATE FUNCTION weir.hurry() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  patience text := current_setting('weir.patience', true);
BEGIN
  RETURN CASE WHEN patience <> '' THEN set_config('lock_timeout', patience, true) <> '' END;
END $$;

-- Waits for the names, in order, and keeps them until the transaction ends.
CREATE FUNCTION weir.guard(names_ bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  places tid[];
BEGIN
  WITH g AS (INSERT INTO weir.guards SELECT DISTINCT n FROM unnest(names_) n --\
      ORDER BY n RETURNING ctid)
    SELECT array_agg(g.ctid) INTO places FROM g;
  DELETE FROM weir.guards g WHERE g.ctid = ANY (places);
END $$;

-- The server's clock may be set back, or be another server's after a failover. Time goes on from
-- where it was all the same (F99, F102): it is the clock, and what it is ahead of it until the clock
-- has come there by itself. Both numbers are values of sequences, which every step sees as they are
-- now, whatever its transaction sees.
CREATE FUNCTION weir.server_clock() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000;

-- Notes the time; where it would be more than a second behind what was noted, after having it go on
-- from there. Who does so does it alone: see raise_fences. Where nothing can be written, or somebody
-- stands still who does so, the time is only held there. A time that is ten years ahead of what was
-- noted is not noted, but what was noted is never forgotten: a clock may be behind by any time. Only a
-- note from before there was weir, or from after 2100, is none. A clock that was behind and is set
-- right again, or nearly, takes the rest of the way alone: what it was behind by, added once more,
-- would end what is held.
CREATE FUNCTION weir.note_time() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  ten_years constant bigint := 315360000000000000;
  ahead_ bigint := coalesce(pg_sequence_last_value('weir.ahead'), 0);
  seen_ bigint := coalesce(pg_sequence_last_value('weir.seen'), 0);
  clock_ bigint := weir.server_clock();
  now_ bigint := CASE WHEN clock_ >= seen_ - ahead_ / 10 THEN greatest(clock_, seen_)
                   ELSE greatest(clock_ + ahead_, seen_) END;
  was bigint;
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN
    RETURN now_;
  END IF;
  PERFORM weir.guard('{1}');
  was := coalesce(pg_sequence_last_value('weir.ahead'), 0);
  ahead_ := was;
  seen_ := coalesce(pg_sequence_last_value('weir.seen'), 0);
  clock_ := weir.server_clock();
  IF seen_ NOT BETWEEN 1700000000000000000 AND 4102444800000000000 THEN
    seen_ := 0;
  END IF;
  IF clock_ >= seen_ - ahead_ / 10 OR ahead_ > seen_ - clock_ + ten_years THEN
    ahead_ := greatest(seen_ - clock_, 0);
  END IF;
  now_ := clock_ + ahead_;
  IF now_ < seen_ - 1000000000 THEN
    RAISE LOG 'weir: the clock is % s behind; time goes on from where it was',
      (seen_ - now_) / 1000000000;
    ahead_ := ahead_ + seen_ - now_;
    now_ := seen_;
  END IF;
  IF ahead_ <> was THEN
    PERFORM setval('weir.ahead', ahead_);
  END IF;
  IF now_ > seen_ + 1000000000  -- and nobody has noted it meanwhile
      AND (now_ <= seen_ + ten_years OR seen_ = 0) THEN
    PERFORM setval('weir.seen', now_);
  END IF;
  RAISE SQLSTATE 'WEIR0';
EXCEPTION WHEN SQLSTATE 'WEIR0' OR lock_not_available THEN
  RETURN now_;
END $$;

-- The clock is read first: what has changed since makes it too far from what was noted.
CREATE FUNCTION weir.clock() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := weir.server_clock() + pg_sequence_last_value('weir.ahead');
BEGIN
  IF abs(now_ - pg_sequence_last_value('weir.seen')) <= 1000000000 THEN
    RETURN now_;
  END IF;
  RETURN weir.note_time();
END $$;

-- The day by that time, as rows have it that are used day by day.
CREATE FUNCTION weir.day() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN weir.clock() / 86400000000000;
ALTER TABLE weir.counters ALTER day SET DEFAULT weir.day();

-- The name of a job's id in guards.
CREATE FUNCTION weir.key_name(kind_ integer, queue_ bytea, key_ bytea) RETURNS bigint
  LANGUAGE sql IMMUTABLE
  RETURN hashtextextended(encode(queue_, 'hex') || '/' || encode(key_, 'hex'), kind_);

CREATE FUNCTION weir.queue_lock(queue_ bytea) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN hashtextextended(encode(queue_, 'hex'), pg_sequence_last_value('weir.seed'));

CREATE FUNCTION weir.topic_lock(topic_ text) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN hashtextextended(topic_, pg_sequence_last_value('weir.seed') + 1);

-- Sets the sequence of fences ahead of its clock, by 100 ms. So what it gives is never behind the
-- clock, and above all that a lost primary gave, if failing over takes longer than twice that (F47).
-- Who sets it does so alone, or it might be set back: the end of the inner transaction, and no other
-- way, lets go of the lock now and leaves the sequence as it is. What others draw between the look
-- and the step are fewer than the 100,000 that are left out.
CREATE FUNCTION weir.raise_fences(now_ bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM weir.guard('{0}');
  IF nextval('weir.fences') < now_ / 1000 THEN
    PERFORM setval('weir.fences', now_ / 1000 + 100000);
  END IF;
  RAISE SQLSTATE 'WEIR0';
EXCEPTION WHEN SQLSTATE 'WEIR0' THEN
  NULL;
END $$;

-- The fence after `last_`. The sequence makes it grow where no row remembers the last one.
CREATE FUNCTION weir.next_fence(now_ bigint, last_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  f bigint := nextval('weir.fences');
BEGIN
  IF f < now_ / 1000 THEN
    PERFORM weir.raise_fences(now_);
    f := nextval('weir.fences');
  END IF;
  RETURN greatest(f, last_ + 1);
END $$;

-- Notifies those who wait for the topic, once this is committed. A step of weir's own removes the
-- row, so that later steps need not notify. One in an application's transaction leaves the row, since
-- it may be rolled back, or stay open for long, and others must notify meanwhile. Whoever begins to
-- wait before it is committed sees its lock on the topic, and looks again soon (see `ask_for`). What
-- began to wait after such a transaction's snapshot was taken is not seen by it: it notifies always.
CREATE FUNCTION weir.tell(topic_ text, own_ boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  wanted boolean;
BEGIN
  IF NOT own_ THEN
    wanted := NOT pg_try_advisory_xact_lock_shared(weir.topic_lock(topic_))
      OR current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
      OR EXISTS (SELECT 1 FROM weir.hints k WHERE k.topic = topic_ AND k.until > weir.clock());
  ELSIF pg_try_advisory_xact_lock_shared(weir.topic_lock(topic_)) THEN
    DELETE FROM weir.hints h WHERE h.topic = (SELECT k.topic FROM weir.hints k --\
        WHERE k.topic = topic_
      FOR UPDATE SKIP LOCKED);
    -- Another one that has taken it, and has not committed, may be undone.
    wanted := FOUND OR EXISTS (SELECT 1 FROM weir.hints k WHERE k.topic = topic_);
  ELSE
    wanted := true;  -- somebody is about to say that they wait
  END IF;
  IF wanted THEN
    PERFORM pg_notify(btrim('weir', '"'), topic_);
  END IF;
END $$;

-- Says that somebody waits, who says so again within twice `every_`. Who has news from now on tells
-- it; false: others may have had some before, which is not committed yet, so that it is to be looked
-- for again soon. It does not wait for those who have the row: other commands stand behind it.
CREATE FUNCTION weir.ask_for(topic_ text, every_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := weir.clock();
  often bigint := least(every_, 315360000000000000);  -- ten years
  hurries boolean := weir.hurry();
  until_ bigint;
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN  -- a standby has no such table
    RAISE read_only_sql_transaction USING MESSAGE = 'weir: hints are not kept here';
  END IF;
  SELECT k.until INTO until_ FROM weir.hints k WHERE k.topic = topic_;
  IF NOT FOUND THEN
    INSERT INTO weir.hints VALUES (topic_, now_ + 3 * often) ON CONFLICT DO NOTHING;
  ELSIF until_ <= now_ + often THEN
    UPDATE weir.hints h SET until = now_ + 3 * often
      WHERE h.ctid = (SELECT k.ctid FROM weir.hints k WHERE k.topic = topic_ FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
      RETURN false;
    END IF;
  END IF;
  IF NOT pg_try_advisory_xact_lock(weir.topic_lock(topic_)) THEN
    RETURN false;
  END IF;
  RETURN EXISTS (SELECT 1 FROM weir.hints k WHERE k.topic = topic_);  -- a step that told may have had it
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;
