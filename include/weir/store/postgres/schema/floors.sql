--- Where to begin to look (F79). While somebody holds a snapshot nothing that is dead leaves an index,
--- and who looks for the first job of a queue, or for the first pointer, goes through all that were
--- first before. So each session remembers, for the orders that it looked through last, a floor: below
--- it there is nothing, and nothing will come.
---
--- How a floor is raised, in three steps of a session, which are transactions of their own.
--- 1. It reads the time: the proposal. What comes into an order comes at a time that is not over, and
---    whoever brings it has the number of its transaction before it reads the time.
--- 2. A transaction's own number, which it got after that: the horizon. Whatever comes below the
---    proposal is of a transaction with a lower number. (What a snapshot has for the next number is the
---    one after the last that has ended; one that is under way may have it, or a higher one.)
--- 3. All transactions below the horizon have ended. What they left is seen by one more look; if the
---    first that it finds is not below the proposal, the proposal is a floor.
--- An application's transaction that stays open keeps it from becoming one, and costs no job.
---
--- What comes below a floor all the same: a job that was claimed and is given back, since it keeps its
--- place. Who gives it back draws from `weir.returned` first, which every session sees at once, and
--- forgets its floors for. A clock that was set back by less than a second is not noticed by anybody; so
--- an order is looked through from its beginning once a second, too, or every other second if that
--- takes long; and a pointer that is below a floor is not removed before all of its queue was looked at.
---
--- A floor that is missing costs time and nothing else. So they are values of settings, which a session
--- loses with its connection, and with a transaction that fails. Sessions are not told apart by a pooler,
--- nor need they be: what is below a floor is the same for all.
---
--- floors[1] of which schema; [2] of which order; [3] weir.returned; [4] when to look at all of it; [5]
--- when it was raised; [6] to [9]: see rest. Then for each level its number, floor, proposal and
--- horizon: negative, the number of the transaction that read the proposal, until there is one.

-- What is known of the order. NULL: nothing, and it is not to be noted; most orders are looked through
-- once or twice, so only every eighth look begins to know one. `now_` NULL: the step is by a clock of
-- somebody else's, and floors may not be below what comes. Two orders may have the same setting: then
-- the one that was looked through last has it.
CREATE FUNCTION weir.floors(order_ bigint, now_ bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  here bigint := 'weir.state'::regclass::oid;
  returned_ bigint := pg_sequence_last_value('weir.returned');
  f bigint[] := nullif(current_setting('weir.floors_' || (order_ & 511), true), '');
BEGIN
  IF f[1] = here AND f[2] = order_ AND f[3] = returned_ AND f[5] <= now_ THEN
    RETURN f;
  END IF;
  RETURN CASE WHEN now_ / 1000 % 8 = 0 THEN
    ARRAY[here, order_, returned_, now_ + 1000000000, now_, 0, 0, 0, 0] END;
END $$;

-- Are they to be raised by the next look? It is not done for each; nor where what a transaction sees is
-- as old as the transaction, nor in one of an application's, which may be undone after it has ended.
CREATE FUNCTION weir.to_be_raised(floors_ bigint[], now_ bigint, own_ boolean) RETURNS boolean
  LANGUAGE sql STABLE
  RETURN own_ AND floors_ IS NOT NULL
    AND (floors_[10] IS NULL OR now_ >= floors_[5] + 10000000 OR now_ >= floors_[4])
    AND weir.sees_all();

-- The highest of them. What is known to be below it was not looked for.
CREATE FUNCTION weir.top_floor(floors_ bigint[]) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN (SELECT max(floors_[n]) FROM generate_series(11, cardinality(floors_), 4) n);

CREATE FUNCTION weir.keep_floors(floors_ bigint[]) RETURNS boolean LANGUAGE sql VOLATILE
  RETURN set_config('weir.floors_' || (floors_[2] & 511), floors_::text, false) IS NULL;

-- The time of the server, to say how long something takes.
CREATE FUNCTION weir.took(since_ timestamptz) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN (extract(epoch FROM clock_timestamp() - since_) * 1000000000)::bigint;

-- Keeps the floors after a look from them, or from the beginning if that was due, which found these
-- levels' first ones; the rest had none. `now_` was read before `since_`, and that before the look, which
-- began at `began_`.
CREATE FUNCTION weir.raise_floors(floors_ bigint[], levels_ integer[], firsts_ bigint[], now_ bigint,
    since_ pg_snapshot, began_ timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  settled bigint := pg_snapshot_xmin(since_)::text::bigint;
  number bigint := pg_current_xact_id()::text::bigint;
  out_ bigint[] := floors_[:9];
  n integer := 10;
  i integer := 1;
  first bigint;
BEGIN
  out_[5] := now_;
  IF now_ >= out_[4] THEN
    out_[4] := now_ + least(greatest(1000000000, weir.took(began_) * 30), 2000000000);
  END IF;
  LOOP
    EXIT WHEN floors_[n] IS NULL AND levels_[i] IS NULL OR cardinality(out_) > 128;
    IF floors_[n] IS NULL OR levels_[i] < floors_[n] THEN
      out_ := out_ || ARRAY[levels_[i], -9223372036854775808, now_, -number];
      i := i + 1;
    ELSE
      first := CASE WHEN levels_[i] = floors_[n] THEN firsts_[i] END;
      out_ := out_ || CASE
        WHEN floors_[n + 3] BETWEEN 1 AND settled THEN
          ARRAY[floors_[n], least(floors_[n + 2], first), now_, -number]
        WHEN -floors_[n + 3] BETWEEN 1 AND number - 1 THEN
          ARRAY[floors_[n], least(floors_[n + 1], first), floors_[n + 2], number]
        ELSE ARRAY[floors_[n], least(floors_[n + 1], first), floors_[n + 2], floors_[n + 3]] END;
      i := i + coalesce(levels_[i] = floors_[n], false)::integer;
      n := n + 4;
    END IF;
  END LOOP;
  RETURN weir.keep_floors(out_);
END $$;
