// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Made from the .sql files beside it by `./dev generate`: change those, not this.
// clang-format off

#ifndef WEIR_STORE_POSTGRES_SCHEMA_GENERATED_HPP
#define WEIR_STORE_POSTGRES_SCHEMA_GENERATED_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/postgres/job_row.hpp"
#include "weir/store/postgres/permit_step.hpp"
#include "weir/unique.hpp"

#include <cstddef>

namespace weir::detail::pgsql {

static_assert(!holds_while_running(unique_strategy{0}));
static_assert(!holds_while_running(unique_strategy{1}));
static_assert(!holds_while_running(unique_strategy{2}));
static_assert(!holds_while_running(unique_strategy{5}));
static_assert(!holds_while_waiting(unique_strategy{0}));
static_assert(!holds_while_waiting(unique_strategy{3}));
static_assert(!rule::start_frees_key(unique_strategy{0}));
static_assert(!rule::start_frees_key(unique_strategy{1}));
static_assert(!rule::start_frees_key(unique_strategy{3}));
static_assert(!rule::start_frees_key(unique_strategy{5}));
static_assert(damaged_record == "the record is damaged");
static_assert(holds_while_running(unique_strategy{3}));
static_assert(holds_while_running(unique_strategy{4}));
static_assert(holds_while_waiting(unique_strategy{1}));
static_assert(holds_while_waiting(unique_strategy{2}));
static_assert(holds_while_waiting(unique_strategy{4}));
static_assert(holds_while_waiting(unique_strategy{5}));
static_assert(limits::answer_bytes == 4194304);
static_assert(limits::attempts == 1000000);
static_assert(limits::checkpoint_size == 65536);
static_assert(limits::headers_size == 4096);
static_assert(limits::key_size == 1024);
static_assert(limits::memo_size == 1024);
static_assert(limits::payload_size == 1048576);
static_assert(limits::progress_size == 1024);
static_assert(limits::quotas == 4);
static_assert(limits::reason_size == 4096);
static_assert(limits::span.count() == 315360000000000000);
static_assert(postgres_job_row::attempts == 6);
static_assert(postgres_job_row::checkpoint == 24);
static_assert(postgres_job_row::deadline == 14);
static_assert(postgres_job_row::deadline_from == 13);
static_assert(postgres_job_row::death == 10);
static_assert(postgres_job_row::enqueued == 12);
static_assert(postgres_job_row::fence == 11);
static_assert(postgres_job_row::headers == 22);
static_assert(postgres_job_row::holder == 15);
static_assert(postgres_job_row::id == 1);
static_assert(postgres_job_row::kind == 17);
static_assert(postgres_job_row::max_attempts == 7);
static_assert(postgres_job_row::memo == 19);
static_assert(postgres_job_row::now == 0);
static_assert(postgres_job_row::part == 25);
static_assert(postgres_job_row::payload == 18);
static_assert(postgres_job_row::policy == 5);
static_assert(postgres_job_row::priority == 2);
static_assert(postgres_job_row::progress == 23);
static_assert(postgres_job_row::reason == 20);
static_assert(postgres_job_row::result == 21);
static_assert(postgres_job_row::snoozes == 8);
static_assert(postgres_job_row::state == 3);
static_assert(postgres_job_row::strategy == 4);
static_assert(postgres_job_row::unique_key == 16);
static_assert(postgres_job_row::vesting == 9);
static_assert(rule::bucket_horizon.count() == 946080000000000000);
static_assert(rule::bucket_scale::never == -(rule::bucket_units{1} << 94));
static_assert(rule::burials_per_dequeue == 100);
static_assert(rule::most_shards == 1024);
static_assert(rule::pointers_per_step == 100);
static_assert(rule::reason_missed == "its deadline was missed");
static_assert(rule::reason_spent == "its attempts are spent: the last holder let its lease end");
static_assert(rule::start_frees_key(unique_strategy{2}));
static_assert(rule::start_frees_key(unique_strategy{4}));
static_assert(static_cast<int>(cancel_outcome::cancelled) == 0);
static_assert(static_cast<int>(cancel_outcome::ended) == 2);
static_assert(static_cast<int>(cancel_outcome::not_found) == 3);
static_assert(static_cast<int>(cancel_outcome::running) == 1);
static_assert(static_cast<int>(conflict_policy::reject) == 0);
static_assert(static_cast<int>(conflict_policy::replace) == 3);
static_assert(static_cast<int>(conflict_policy::reschedule) == 4);
static_assert(static_cast<int>(enqueue_outcome::duplicate) == 1);
static_assert(static_cast<int>(enqueue_outcome::enqueued) == 0);
static_assert(static_cast<int>(enqueue_outcome::replaced) == 2);
static_assert(static_cast<int>(enqueue_outcome::rescheduled) == 3);
static_assert(static_cast<int>(job_state::cancelled) == 4);
static_assert(static_cast<int>(job_state::completed) == 2);
static_assert(static_cast<int>(job_state::dead) == 3);
static_assert(static_cast<int>(job_state::leased) == 1);
static_assert(static_cast<int>(job_state::pending) == 0);
static_assert(static_cast<int>(postgres_permit_step::acquire) == 0);
static_assert(static_cast<int>(postgres_permit_step::release) == 2);
static_assert(static_cast<int>(postgres_permit_step::renew) == 1);
static_assert(static_cast<int>(relay_outcome::changed) == 1);
static_assert(static_cast<int>(relay_outcome::not_found) == 2);
static_assert(static_cast<int>(relay_outcome::relayed) == 0);
static_assert(static_cast<int>(replay_outcome::conflict) == 1);
static_assert(static_cast<int>(replay_outcome::not_found) == 2);
static_assert(static_cast<int>(replay_outcome::replayed) == 0);
static_assert(static_cast<int>(unique_strategy::none) == 0);
static_assert(static_cast<int>(unique_strategy::until_expired) == 5);

inline constexpr char base[] = R"sql(
-- The key of used_keys for what a holder dequeues, and for a unique key of a queue's jobs.
CREATE FUNCTION ~.dequeue_key(queue_ bytea, holder_ bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
  RETURN int4send(octet_length(queue_)) || queue_ || holder_;

-- The uses of a row after one more, whatever was noted.
CREATE FUNCTION ~.next_use(uses_ bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN (uses_ & 4611686018427387903) + 1;

-- Is nobody else making the row of a key that was not found, or removing it? Then it is to be looked
-- for once more, by another statement, which sees what has come meanwhile, before it is made. False:
-- it is to be looked for from the beginning.
CREATE FUNCTION ~.may_make(kind_ integer, key_ bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ~.used_keys VALUES (kind_, key_) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN  -- written, so that a REPEATABLE READ transaction that sees less is refused
    UPDATE ~.used_keys u SET kind = kind_ WHERE u.kind = kind_ AND u.key = key_;
  END IF;
  RETURN FOUND;
END $$;

-- May a row that is locked, and over, be removed? Whoever is about to use it waits for it, and is not
-- waited for.
CREATE FUNCTION ~.may_forget(kind_ integer, key_ bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM ~.used_keys u WHERE u.ctid = (SELECT w.ctid FROM ~.used_keys w
    WHERE w.kind = kind_ AND w.key = key_ FOR UPDATE SKIP LOCKED);
  RETURN FOUND OR NOT EXISTS (SELECT 1 FROM ~.used_keys w WHERE w.kind = kind_ AND w.key = key_);
END $$;

-- How far off a time is. Times of damaged rows are held where they can be counted with.
CREATE FUNCTION ~.span(time_ bigint, now_ bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN CASE WHEN time_ < -4611686018427387904 THEN -4611686018427387904 ELSE time_ END - now_;

-- The same for counters and their sums.
CREATE FUNCTION ~.held_within(sum_ numeric) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN least(greatest(sum_, -4611686018427387904), 4611686018427387904)::bigint;

-- Does each statement see what was committed before it began? The default of a session may change
-- while it is used, and a pooler may give another one.
CREATE FUNCTION ~.sees_all() RETURNS boolean LANGUAGE sql STABLE
  RETURN current_setting('transaction_isolation') = 'read committed';

-- To be called before a step waits for a lock, or may. On a connection with other steps behind this
-- one it does not wait for long: it is refused, and asked for once more where it may (F71). Until the
-- function ends which has settings of its own.
CREATE FUNCTION ~.hurry() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  patience text := current_setting('weir.patience', true);
BEGIN
  RETURN CASE WHEN patience <> '' THEN set_config('lock_timeout', patience, true) <> '' END;
END $$;

-- Waits for the names, in order, and keeps them until the transaction ends.
CREATE FUNCTION ~.guard(names_ bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  places tid[];
BEGIN
  WITH g AS (INSERT INTO ~.guards SELECT DISTINCT n FROM unnest(names_) n ORDER BY n RETURNING ctid)
    SELECT array_agg(g.ctid) INTO places FROM g;
  DELETE FROM ~.guards g WHERE g.ctid = ANY (places);
END $$;

-- The server's clock may be set back, or be another server's after a failover. Time goes on from
-- where it was all the same (F99, F102): it is the clock, and what it is ahead of it until the clock
-- has come there by itself. Both numbers are values of sequences, which every step sees as they are
-- now, whatever its transaction sees.
CREATE FUNCTION ~.server_clock() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000;

-- Notes the time; where it would be more than a second behind what was noted, after having it go on
-- from there. Who does so does it alone: see raise_fences. Where nothing can be written, or somebody
-- stands still who does so, the time is only held there. A time that is ten years ahead of what was
-- noted is not noted, but what was noted is never forgotten: a clock may be behind by any time. Only a
-- note from before there was weir, or from after 2100, is none. A clock that was behind and is set
-- right again, or nearly, takes the rest of the way alone: what it was behind by, added once more,
-- would end what is held.
CREATE FUNCTION ~.note_time() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  ten_years constant bigint := 315360000000000000;
  ahead_ bigint := coalesce(pg_sequence_last_value('~.ahead'), 0);
  seen_ bigint := coalesce(pg_sequence_last_value('~.seen'), 0);
  clock_ bigint := ~.server_clock();
  now_ bigint := CASE WHEN clock_ >= seen_ - ahead_ / 10 THEN greatest(clock_, seen_)
                   ELSE greatest(clock_ + ahead_, seen_) END;
  was bigint;
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN
    RETURN now_;
  END IF;
  PERFORM ~.guard('{1}');
  was := coalesce(pg_sequence_last_value('~.ahead'), 0);
  ahead_ := was;
  seen_ := coalesce(pg_sequence_last_value('~.seen'), 0);
  clock_ := ~.server_clock();
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
    PERFORM setval('~.ahead', ahead_);
  END IF;
  IF now_ > seen_ + 1000000000  -- and nobody has noted it meanwhile
      AND (now_ <= seen_ + ten_years OR seen_ = 0) THEN
    PERFORM setval('~.seen', now_);
  END IF;
  RAISE SQLSTATE 'WEIR0';
EXCEPTION WHEN SQLSTATE 'WEIR0' OR lock_not_available THEN
  RETURN now_;
END $$;

-- The clock is read first: what has changed since makes it too far from what was noted.
CREATE FUNCTION ~.clock() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := ~.server_clock() + pg_sequence_last_value('~.ahead');
BEGIN
  IF abs(now_ - pg_sequence_last_value('~.seen')) <= 1000000000 THEN
    RETURN now_;
  END IF;
  RETURN ~.note_time();
END $$;

-- The day by that time, as rows have it that are used day by day.
CREATE FUNCTION ~.day() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN ~.clock() / 86400000000000;
ALTER TABLE ~.counters ALTER day SET DEFAULT ~.day();

-- The name of a job's id in guards.
CREATE FUNCTION ~.key_name(kind_ integer, queue_ bytea, key_ bytea) RETURNS bigint
  LANGUAGE sql IMMUTABLE
  RETURN hashtextextended(encode(queue_, 'hex') || '/' || encode(key_, 'hex'), kind_);

CREATE FUNCTION ~.queue_lock(queue_ bytea) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN hashtextextended(encode(queue_, 'hex'), pg_sequence_last_value('~.seed'));

CREATE FUNCTION ~.topic_lock(topic_ text) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN hashtextextended(topic_, pg_sequence_last_value('~.seed') + 1);

-- Sets the sequence of fences ahead of its clock, by 100 ms. So what it gives is never behind the
-- clock, and above all that a lost primary gave, if failing over takes longer than twice that (F47).
-- Who sets it does so alone, or it might be set back: the end of the inner transaction, and no other
-- way, lets go of the lock now and leaves the sequence as it is. What others draw between the look
-- and the step are fewer than the 100,000 that are left out.
CREATE FUNCTION ~.raise_fences(now_ bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ~.guard('{0}');
  IF nextval('~.fences') < now_ / 1000 THEN
    PERFORM setval('~.fences', now_ / 1000 + 100000);
  END IF;
  RAISE SQLSTATE 'WEIR0';
EXCEPTION WHEN SQLSTATE 'WEIR0' THEN
  NULL;
END $$;

-- The fence after `last_`. The sequence makes it grow where no row remembers the last one.
CREATE FUNCTION ~.next_fence(now_ bigint, last_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  f bigint := nextval('~.fences');
BEGIN
  IF f < now_ / 1000 THEN
    PERFORM ~.raise_fences(now_);
    f := nextval('~.fences');
  END IF;
  RETURN greatest(f, last_ + 1);
END $$;

-- Notifies those who wait for the topic, once this is committed. A step of weir's own removes the
-- row, so that later steps need not notify. One in an application's transaction leaves the row, since
-- it may be rolled back, or stay open for long, and others must notify meanwhile. Whoever begins to
-- wait before it is committed sees its lock on the topic, and looks again soon (see `ask_for`). What
-- began to wait after such a transaction's snapshot was taken is not seen by it: it notifies always.
CREATE FUNCTION ~.tell(topic_ text, own_ boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  wanted boolean;
BEGIN
  IF NOT own_ THEN
    wanted := NOT pg_try_advisory_xact_lock_shared(~.topic_lock(topic_))
      OR current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
      OR EXISTS (SELECT 1 FROM ~.hints k WHERE k.topic = topic_ AND k.until > ~.clock());
  ELSIF pg_try_advisory_xact_lock_shared(~.topic_lock(topic_)) THEN
    DELETE FROM ~.hints h WHERE h.topic = (SELECT k.topic FROM ~.hints k WHERE k.topic = topic_
      FOR UPDATE SKIP LOCKED);
    -- Another one that has taken it, and has not committed, may be undone.
    wanted := FOUND OR EXISTS (SELECT 1 FROM ~.hints k WHERE k.topic = topic_);
  ELSE
    wanted := true;  -- somebody is about to say that they wait
  END IF;
  IF wanted THEN
    PERFORM pg_notify(btrim('~', '"'), topic_);
  END IF;
END $$;

-- Says that somebody waits, who says so again within twice `every_`. Who has news from now on tells
-- it; false: others may have had some before, which is not committed yet, so that it is to be looked
-- for again soon. It does not wait for those who have the row: other commands stand behind it.
CREATE FUNCTION ~.ask_for(topic_ text, every_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := ~.clock();
  often bigint := least(every_, 315360000000000000);  -- ten years
  hurries boolean := ~.hurry();
  until_ bigint;
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN  -- a standby has no such table
    RAISE read_only_sql_transaction USING MESSAGE = 'weir: hints are not kept here';
  END IF;
  SELECT k.until INTO until_ FROM ~.hints k WHERE k.topic = topic_;
  IF NOT FOUND THEN
    INSERT INTO ~.hints VALUES (topic_, now_ + 3 * often) ON CONFLICT DO NOTHING;
  ELSIF until_ <= now_ + often THEN
    UPDATE ~.hints h SET until = now_ + 3 * often
      WHERE h.ctid = (SELECT k.ctid FROM ~.hints k WHERE k.topic = topic_ FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
      RETURN false;
    END IF;
  END IF;
  IF NOT pg_try_advisory_xact_lock(~.topic_lock(topic_)) THEN
    RETURN false;
  END IF;
  RETURN EXISTS (SELECT 1 FROM ~.hints k WHERE k.topic = topic_);  -- a step that told may have had it
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;
)sql";

inline constexpr char buckets[] = R"sql(
-- The time since the epoch, 2026-01-01, held within the horizon of the rule.
CREATE FUNCTION ~.bucket_time(at_ bigint) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN greatest(least(coalesce(at_, ~.clock()) - 1767225600000000000, 946080000000000000),
                  -946080000000000000);

CREATE FUNCTION ~.units_at(now_ bigint, gain_ bigint) RETURNS numeric LANGUAGE sql IMMUTABLE
  RETURN now_::numeric * gain_;

CREATE FUNCTION ~.reached(units_ numeric, gain_ bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN (div(units_, gain_) + (mod(units_, gain_) > 0)::integer)::bigint;

-- Arrivals travel in two numbers: how often 2^62 goes into them, 2^95 being added, and the rest.
CREATE FUNCTION ~.high_of(units_ numeric) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN div(units_ + 39614081257132168796771975168, 4611686018427387904)::bigint;
CREATE FUNCTION ~.low_of(units_ numeric) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN mod(units_ + 39614081257132168796771975168, 4611686018427387904)::bigint;
CREATE FUNCTION ~.units_of(low_ bigint, high_ bigint) RETURNS numeric LANGUAGE sql IMMUTABLE
  RETURN high_::numeric * 4611686018427387904 + low_ - 39614081257132168796771975168;

-- Can the arrivals be counted with, and the scales? Otherwise the row is damaged.
CREATE FUNCTION ~.sound_arrivals(a_ numeric[]) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN cardinality(a_) = 4
    AND coalesce(-19807040628566084398385987584 <= ALL (a_), false)
    AND coalesce(19807040628566084398385987584 >= ALL (a_), false);
CREATE FUNCTION ~.sound_scales(s_ bigint[]) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN cardinality(s_) IN (0, 3, 6, 9, 12) AND coalesce(0 < ALL (s_), false);

CREATE FUNCTION ~.full_from(s_ bigint[], a_ numeric[]) RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  latest bigint := -9223372036854775808;
BEGIN
  FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
    IF a_[i + 1] <> -19807040628566084398385987584 THEN
      latest := greatest(latest, ~.reached(a_[i + 1], s_[3 * i + 2]));
    END IF;
  END LOOP;
  RETURN latest;
END $$;

CREATE FUNCTION ~.full_bucket(s_ bigint[], a_ numeric[], now_ bigint) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
    IF a_[i + 1] > ~.units_at(now_, s_[3 * i + 2]) THEN
      RETURN false;
    END IF;
  END LOOP;
  RETURN true;
END $$;

-- The arrivals of a bucket whose quotas are others now.
CREATE FUNCTION ~.changed_quotas(s_ bigint[], a_ numeric[], after_ bigint[], now_ bigint)
  RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  a numeric[] := array_fill(-19807040628566084398385987584, ARRAY[4]);
  ahead numeric;
  missing numeric;
BEGIN
  FOR i IN 0 .. least(cardinality(s_), cardinality(after_)) / 3 - 1 LOOP
    ahead := greatest(a_[i + 1] - ~.units_at(now_, s_[3 * i + 2]), 0);
    missing := div(ahead, s_[3 * i + 3]) + (mod(ahead, s_[3 * i + 3]) <> 0)::integer;
    a[i + 1] := ~.units_at(now_, after_[3 * i + 2])
                + after_[3 * i + 3] * least(missing, after_[3 * i + 1]::numeric);
  END LOOP;
  RETURN a;
END $$;

-- What is known of a bucket that is not there: it was forgotten as full, if time ran backwards.
CREATE FUNCTION ~.unseen_bucket(s_ bigint[], now_ bigint) RETURNS numeric[] LANGUAGE plpgsql AS $$
DECLARE
  a numeric[] := array_fill(-19807040628566084398385987584, ARRAY[4]);
  f bigint := (SELECT forgotten FROM ~.state);
BEGIN
  IF f <= now_ THEN
    RETURN a;
  END IF;
  FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
    a[i + 1] := ~.units_at(f, s_[3 * i + 2]);
  END LOOP;
  RETURN a;
END $$;

-- Takes from one bucket, one after the other, or a look at it: the time of the step, the arrivals
-- before each, and whether it was allowed. The bucket is locked once for all of them.
CREATE FUNCTION ~.take(key_ bytea, quotas_ bytea, s_ bigint[], costs_ bigint[], max_waits_ bigint[],
    takes_ boolean, at_ bigint) RETURNS TABLE (now bigint, allowed boolean, a0 bigint, a1 bigint,
    a2 bigint, a3 bigint, h0 bigint, h1 bigint, h2 bigint, h3 bigint) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  b record;
  a numeric[];
  made boolean := false;
  taken boolean := false;
  wait bigint;
  due_ numeric;
BEGIN
  LOOP
    IF takes_ THEN
      SELECT k.quotas, k.scales, k.arrival, k.ctid AS place INTO b FROM ~.buckets k
        WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
    ELSE
      SELECT k.quotas, k.scales, k.arrival INTO b FROM ~.buckets k
        WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1;
    END IF;
    EXIT WHEN FOUND OR NOT takes_;
    CONTINUE WHEN NOT ~.may_make(3, key_);
    made := NOT EXISTS (SELECT 1 FROM ~.buckets k WHERE k.key = key_);
    IF made THEN
      INSERT INTO ~.buckets AS k VALUES (key_, '', s_, '{}', 0)
        RETURNING k.quotas, k.scales, k.arrival, k.ctid AS place INTO b;
      EXIT;
    END IF;
  END LOOP;
  now := ~.bucket_time(at_);
  IF NOT made AND b.quotas IS NOT NULL
      AND NOT (~.sound_arrivals(b.arrival) AND ~.sound_scales(b.scales)) THEN
    RAISE SQLSTATE 'WEIR2' USING MESSAGE = 'weir: a damaged bucket';
  END IF;
  a := CASE WHEN made OR b.quotas IS NULL THEN ~.unseen_bucket(s_, now)
            WHEN b.quotas = quotas_ THEN b.arrival
            ELSE ~.changed_quotas(b.scales, b.arrival, s_, now) END;
  FOR n IN 1 .. cardinality(costs_) LOOP
    a0 := ~.low_of(a[1]); a1 := ~.low_of(a[2]); a2 := ~.low_of(a[3]); a3 := ~.low_of(a[4]);
    h0 := ~.high_of(a[1]); h1 := ~.high_of(a[2]); h2 := ~.high_of(a[3]); h3 := ~.high_of(a[4]);
    wait := 0;
    FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
      due_ := a[i + 1] + (costs_[n] - s_[3 * i + 1])::numeric * s_[3 * i + 3];
      IF due_ > ~.units_at(now, s_[3 * i + 2]) THEN
        wait := greatest(wait, ~.reached(due_, s_[3 * i + 2]) - now);
      END IF;
    END LOOP;
    allowed := wait <= max_waits_[n];
    RETURN NEXT;
    IF takes_ AND allowed THEN
      taken := true;
      FOR i IN 0 .. cardinality(s_) / 3 - 1 LOOP
        a[i + 1] := greatest(a[i + 1], ~.units_at(now + wait, s_[3 * i + 2]))
                    + costs_[n]::numeric * s_[3 * i + 3];
      END LOOP;
    END IF;
  END LOOP;
  IF NOT taken THEN
    IF made THEN
      DELETE FROM ~.buckets k WHERE k.ctid = b.place;
      DELETE FROM ~.used_keys u WHERE u.kind = 3 AND u.key = key_;
    END IF;
  ELSIF NOT made AND b.quotas = quotas_ THEN
    UPDATE ~.buckets k SET arrival = a, uses = ~.next_use(k.uses), number = ~.next_use(k.uses) >> 5
      WHERE k.ctid = b.place;
  ELSE
    UPDATE ~.buckets k SET quotas = quotas_, scales = s_, arrival = a, due = ~.full_from(s_, a), uses = ~.next_use(k.uses), number = ~.next_use(k.uses) >> 5
      WHERE k.ctid = b.place;
  END IF;
END $$;

CREATE FUNCTION ~.refund(key_ bytea, cost_ bigint, mark_ bigint[], mark_high_ bigint[],
    before_ bigint[], before_high_ bigint[], before_instant_ boolean, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  b record;
  now_ bigint;
  back bigint := cost_;
  a numeric[];
  price bigint;
  rest numeric;
BEGIN
  SELECT k.scales AS s, k.arrival, k.due, k.ctid AS place INTO b FROM ~.buckets k
    WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
  IF NOT FOUND OR b.s = '{}' THEN
    RETURN 0;
  ELSIF NOT (~.sound_arrivals(b.arrival) AND ~.sound_scales(b.s)) THEN
    RAISE SQLSTATE 'WEIR2' USING MESSAGE = 'weir: a damaged bucket';
  END IF;
  now_ := ~.bucket_time(at_);
  a := b.arrival;
  FOR i IN 0 .. cardinality(b.s) / 3 - 1 LOOP
    IF a[i + 1] <> ~.units_of(mark_[i + 1], mark_high_[i + 1]) OR cost_ > b.s[3 * i + 1] THEN
      RETURN 0;
    END IF;
    IF NOT before_instant_ THEN
      price := b.s[3 * i + 3];
      rest := greatest(a[i + 1] - ~.units_at(now_, b.s[3 * i + 2]), 0);
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
      THEN least(~.units_of(before_[i + 1], before_high_[i + 1]), rest) ELSE rest END;
  END LOOP;
  UPDATE ~.buckets k SET arrival = a, due = least(b.due, ~.full_from(b.s, a)),
      uses = ~.next_use(k.uses), number = ~.next_use(k.uses) >> 5
    WHERE k.ctid = b.place;
  RETURN back;
END $$;

-- Full from now on, even where those that are not there were full from later on.
CREATE FUNCTION ~.reset_bucket(key_ bytea, at_ bigint) RETURNS void LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  f bigint := (SELECT forgotten FROM ~.state);
  now_ bigint := ~.bucket_time(at_);
  full_ numeric[] := array_fill(-19807040628566084398385987584, ARRAY[4]);
  place_ tid;
BEGIN
  LOOP
    SELECT k.ctid INTO place_ FROM ~.buckets k
      WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
    IF FOUND THEN
      UPDATE ~.buckets k SET quotas = '', scales = '{}', arrival = full_, due = greatest(f, now_),
          uses = ~.next_use(k.uses), number = ~.next_use(k.uses) >> 5
        WHERE k.ctid = place_;
      RETURN;
    END IF;
    EXIT WHEN f <= now_;
    CONTINUE WHEN NOT ~.may_make(3, key_);
    IF NOT EXISTS (SELECT 1 FROM ~.buckets k WHERE k.key = key_) THEN
      INSERT INTO ~.buckets VALUES (key_, '', '{}', full_, f);
      RETURN;
    END IF;
  END LOOP;
END $$;

-- Forgets up to so many of the full ones, and puts the order of others right. How many it looked
-- at, and how many it forgot.
CREATE FUNCTION ~.reap_some_buckets(limit_ integer, at_ bigint,
    OUT looked integer, OUT removed integer) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := ~.bucket_time(at_);
  latest bigint := -9223372036854775808;
  b record;
BEGIN
  looked := 0; removed := 0;
  -- It ends with a note in this row, for which nobody is to wait.
  PERFORM 1 FROM ~.state FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  FOR b IN SELECT k.key, k.scales, k.arrival, k.ctid AS place FROM ~.buckets k
      WHERE k.due <= now_
      ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    looked := looked + 1;
    IF NOT (~.sound_arrivals(b.arrival) AND ~.sound_scales(b.scales)) THEN
      UPDATE ~.buckets k SET due = 9223372036854775807 WHERE k.ctid = b.place;  -- left for a reset
    ELSIF NOT ~.full_bucket(b.scales, b.arrival, now_) THEN
      UPDATE ~.buckets k SET due = ~.full_from(b.scales, b.arrival) WHERE k.ctid = b.place;
    ELSIF ~.may_forget(3, b.key) THEN
      DELETE FROM ~.buckets k WHERE k.ctid = b.place;
      latest := greatest(latest, ~.full_from(b.scales, b.arrival));
      removed := removed + 1;
    ELSE  -- somebody is about to use it
      UPDATE ~.buckets k SET due = now_ + 60000000000 WHERE k.ctid = b.place;
    END IF;
  END LOOP;
  IF removed > 0 THEN
    UPDATE ~.state SET forgotten = greatest(forgotten, latest) WHERE forgotten < latest;
  END IF;
END $$;

CREATE FUNCTION ~.reap_buckets(at_ bigint, OUT removed bigint, OUT kept bigint)
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  r record;
BEGIN
  removed := 0;
  PERFORM 1 FROM ~.state FOR UPDATE;
  LOOP
    r := ~.reap_some_buckets(1000, at_);
    removed := removed + r.removed;
    EXIT WHEN r.looked = 0;
  END LOOP;
  kept := (SELECT count(*) FROM ~.buckets);
END $$;
)sql";

inline constexpr char claims[] = R"sql(
CREATE FUNCTION ~.obtain_lease(queue_ bytea, shard_ integer, id_ uuid, holder_ bytea,
    lease_ bigint, early_ boolean, own_ boolean, at_ bigint) RETURNS SETOF ~.job_row
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  j ~.jobs;
  now_ bigint;
BEGIN
  SELECT k.* INTO j FROM ~.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
  now_ := coalesce(at_, ~.clock());
  IF j.id IS NULL OR j.state <> 0 THEN
    RETURN;
  END IF;
  early_ := early_ AND j.vesting > now_;
  IF j.vesting > now_ AND (j.holder IS NOT NULL OR NOT early_) THEN
    IF j.holder = holder_ THEN
      RETURN QUERY SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, ''::bytea, ''::bytea, j.headers, ''::bytea, j.checkpoint, NULL::integer;
    END IF;
    RETURN;
  END IF;
  IF ~.held(queue_, now_) THEN
    RETURN;
  END IF;
  IF ~.bury(j, now_) > 0 THEN
    PERFORM ~.count_jobs(queue_, shard_, 0, 0, 0, 0, 1, own_);
    RETURN;
  END IF;
  IF at_ IS NOT NULL THEN  -- the lease may end below a floor
    PERFORM nextval('~.returned');
  END IF;
  UPDATE ~.jobs k SET fence = ~.next_fence(now_, k.fence), holder = holder_, sequence = 0,
      attempts = k.attempts + 1, unclaimed = k.vesting, vesting = now_ + lease_
    WHERE k.queue = queue_ AND k.id = id_ RETURNING k.* INTO j;
  IF early_ THEN
    PERFORM ~.touch(queue_, shard_, j.vesting, CASE WHEN at_ IS NULL THEN now_ END, own_);
  END IF;
  RETURN QUERY SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, ''::bytea, ''::bytea, j.headers, ''::bytea, j.checkpoint, NULL::integer;
END $$;

-- Locks a job with its live lease, and its key before it, if what is done may take it again. No
-- row, or one without id: the lease is lost.
CREATE FUNCTION ~.leased(queue_ bytea, id_ uuid, fence_ bigint, with_key_ boolean, at_ bigint,
    OUT now bigint, OUT job ~.jobs) LANGUAGE plpgsql AS $$
DECLARE
  hurries boolean := ~.hurry();
BEGIN
  IF with_key_ THEN
    SELECT k.* INTO job FROM ~.jobs k WHERE k.queue = queue_ AND k.id = id_;
    IF job.strategy IN (2, 4) THEN
      PERFORM ~.lock_keys(5, queue_, ARRAY[job.unique_key], at_);
    END IF;
  END IF;
  SELECT k.* INTO job FROM ~.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
  now := coalesce(at_, ~.clock());
  IF job.state <> 0 OR job.holder IS NULL OR job.vesting <= now OR job.fence <> fence_ THEN
    job := NULL;
  END IF;
END $$;

-- NULL: the lease is lost.
CREATE FUNCTION ~.extend_lease(queue_ bytea, shard_ integer, id_ uuid, fence_ bigint,
    lease_ bigint, progress_ bytea, checkpoint_ bytea, own_ boolean, at_ bigint) RETURNS bigint LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  l record;
BEGIN
  SELECT * INTO l FROM ~.leased(queue_, id_, fence_, false, at_);
  IF (l.job).id IS NULL THEN
    RETURN NULL;
  END IF;
  IF progress_ = '' AND checkpoint_ = '' THEN
    UPDATE ~.jobs k SET vesting = l.now + lease_ WHERE k.queue = queue_ AND k.id = id_;
  ELSE
    UPDATE ~.jobs k SET vesting = l.now + lease_,
        progress = CASE WHEN progress_ = '' THEN k.progress ELSE progress_ END,
        checkpoint = CASE WHEN checkpoint_ = '' THEN k.checkpoint ELSE checkpoint_ END
      WHERE k.queue = queue_ AND k.id = id_;
  END IF;
  PERFORM ~.touch(queue_, shard_, l.now + lease_, CASE WHEN at_ IS NULL THEN l.now END, own_);
  RETURN lease_;
END $$;

-- NULL: the lease is lost; -1: started; otherwise what is left of the other's lease, and which job
-- that is.
CREATE FUNCTION ~.start_job(queue_ bytea, id_ uuid, fence_ bigint, at_ bigint, OUT left_ bigint,
    OUT other uuid) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  j ~.jobs;
  has_key boolean := false;
  runs record;
  l record;
BEGIN
  SELECT k.* INTO j FROM ~.jobs k WHERE k.queue = queue_ AND k.id = id_;
  -- Where it has not its enqueue key it gets none under this lease, and waits for nobody who has it.
  IF j.strategy IN (2, 4) THEN
    SELECT true INTO has_key
      FROM ~.possessor(queue_, j.unique_key, coalesce(at_, ~.clock())) p WHERE p.owner = id_;
  END IF;
  IF has_key THEN
    PERFORM ~.lock_keys(5, queue_, ARRAY[j.unique_key], at_);
  END IF;
  IF j.strategy IN (3, 4) THEN
    PERFORM ~.lock_keys(6, queue_, ARRAY[j.unique_key], at_);
    SELECT w.owner, w.fence INTO runs FROM ~.keys w
      WHERE ~.dequeue_key(w.queue, w.key) = ~.dequeue_key(queue_, j.unique_key) AND w.run
      ORDER BY w.number DESC LIMIT 1;
    PERFORM 1 FROM (SELECT id_ AS id UNION SELECT runs.owner ORDER BY 1) o,
      LATERAL (SELECT 1 FROM ~.jobs k WHERE k.queue = queue_ AND k.id = o.id FOR UPDATE) f;
  END IF;
  SELECT * INTO l FROM ~.leased(queue_, id_, fence_, false, at_);
  j := l.job;
  IF j.id IS NULL THEN
    RETURN;
  END IF;
  IF j.strategy IN (3, 4) THEN
    SELECT k.vesting - l.now, k.id INTO left_, other FROM ~.jobs k
      WHERE k.queue = queue_ AND k.id = runs.owner AND k.id <> id_ AND k.fence = runs.fence
        AND k.state = 0 AND k.holder IS NOT NULL AND k.vesting > l.now;
    IF FOUND THEN
      RETURN;
    END IF;
    PERFORM ~.take_key(queue_, true, j.unique_key, id_, NULL, fence_);
  END IF;
  IF has_key AND (SELECT p.owner = id_ FROM ~.possessor(queue_, j.unique_key, l.now) p) THEN
    PERFORM ~.take_key(queue_, false, j.unique_key, NULL, NULL, NULL);
  END IF;
  left_ := -1;
END $$;

-- Jobs of any queues, of several commands, which have so many each. NULL: the command is to be asked by
-- itself, and has ended none of its jobs: somebody else has one of them locked, and it is not waited
-- for, because others are asked together with it.
CREATE FUNCTION ~.complete_jobs(queues_ bytea[], shards_ integer[], ids_ uuid[], fences_ bigint[],
    results_ bytea[], commands_ integer[], together_ boolean, own_ boolean, at_ bigint)
  RETURNS SETOF boolean LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  now_ bigint;
  j ~.jobs;
  free_ integer[];
  whose integer[];
  alone integer[] := '{}';  -- jobs of commands that are to be asked by themselves
  places tid[];
  ends bigint[];
  numbers bigint[];
  others bigint[];
  ended bigint[];
  done boolean[];
  n integer;
  counted boolean;
BEGIN
  IF together_ THEN
    free_ := ARRAY(SELECT u.n FROM (SELECT * FROM unnest(queues_, ids_) WITH ORDINALITY o(queue, id, n)
        ORDER BY o.id, o.n) u,
      LATERAL (SELECT 1 FROM ~.jobs k WHERE k.queue = u.queue AND k.id = u.id
                 FOR UPDATE SKIP LOCKED) l);
    IF cardinality(free_) < cardinality(ids_) THEN
      whose := ARRAY(SELECT c.n FROM unnest(commands_) WITH ORDINALITY c(jobs, n),
        generate_series(1, c.jobs) ORDER BY c.n);
      alone := ARRAY(SELECT u.n FROM unnest(whose) WITH ORDINALITY u(command, n)
        WHERE u.command IN (SELECT whose[k.n] FROM unnest(queues_, ids_) WITH ORDINALITY k(queue, id, n)
          WHERE k.n <> ALL (free_)
            AND EXISTS (SELECT 1 FROM ~.jobs l WHERE l.queue = k.queue AND l.id = k.id)));
    END IF;
  END IF;
  -- Those of other fences are lost, and whatever becomes of them.
  SELECT array_agg(l.place) FILTER (WHERE l.plain), array_agg(l.until) FILTER (WHERE l.plain),
      array_agg(u.n) FILTER (WHERE l.plain), array_agg(u.n) FILTER (WHERE NOT l.plain)
    INTO places, ends, numbers, others
    FROM (SELECT * FROM unnest(queues_, ids_, fences_) WITH ORDINALITY o(queue, id, fence, n)
            WHERE o.fence <> 0 AND o.n <> ALL (alone) ORDER BY o.id, o.n) u,
      LATERAL (SELECT k.ctid AS place, k.retention = 0 AS plain,
                   CASE WHEN k.state = 0 AND k.holder IS NOT NULL THEN k.vesting END AS until
                 FROM ~.jobs k WHERE k.queue = u.queue AND k.id = u.id AND k.fence = u.fence
                 FOR UPDATE) l;
  now_ := coalesce(at_, ~.clock());
  -- Of the plain ones no record is kept: all at once, and the rows stay in place.
  IF places IS NOT NULL THEN
    WITH gone AS (
        DELETE FROM ~.jobs k USING unnest(places, ends, numbers) f(place, until, n)
          WHERE k.ctid = f.place AND f.until > now_ RETURNING f.n)
      SELECT array_agg(g.n) INTO ended FROM gone g;
  END IF;
  IF coalesce(cardinality(ended), 0) < cardinality(ids_) THEN
    done := array_fill(false, ARRAY[cardinality(ids_)]);
    FOR i IN 1 .. coalesce(cardinality(ended), 0) LOOP
      done[ended[i]] := true;
    END LOOP;
    FOR i IN 1 .. coalesce(cardinality(others), 0) LOOP
      SELECT k.* INTO j FROM ~.jobs k
        WHERE k.queue = queues_[others[i]] AND k.id = ids_[others[i]]
          AND k.fence = fences_[others[i]]
          AND k.state = 0 AND k.holder IS NOT NULL AND k.vesting > now_;
      IF FOUND THEN
        done[others[i]] := true;
        ended := ended || others[i];
        PERFORM ~.end_job(j, 2::smallint, now_, nullif(results_[others[i]], ''), NULL);
      END IF;
    END LOOP;
    -- What was completed before, under the same lease, was so.
    IF false = ANY (done) THEN
      FOR n IN SELECT u.n FROM unnest(queues_, ids_, fences_, done)
            WITH ORDINALITY u(queue, id, fence, done, n),
          LATERAL (SELECT 1 FROM ~.ended e WHERE e.queue = u.queue AND e.id = u.id
            AND e.fence = u.fence AND e.state = 2 AND e.kept > now_
            OFFSET 0) l
          WHERE NOT u.done AND u.fence <> 0 LOOP
        done[n] := true;
      END LOOP;
    END IF;
    FOR i IN 1 .. cardinality(alone) LOOP
      done[alone[i]] := NULL;
    END LOOP;
  END IF;
  IF queues_[1] <> ANY (queues_[2:]) THEN
    PERFORM ~.count_completed(array_agg(queues_[e.n]), array_agg(shards_[e.n]))
      FROM unnest(ended) e(n);
  ELSIF ended IS NOT NULL THEN
    counted := ~.count_jobs(queues_[1], shards_[1], 0, cardinality(ended), 0, 0, 0, own_);
  END IF;
  IF done IS NULL THEN
    RETURN QUERY SELECT true FROM unnest(ids_);
  ELSE
    RETURN QUERY SELECT d FROM unnest(done) d;
  END IF;
END $$;

-- The job waits again, with the enqueue key that its start gave up, if that is free.
CREATE FUNCTION ~.wait_again(j ~.jobs, shard_ integer, vesting_ bigint, attempts_ integer,
    snoozes_ integer, memo_ bytea, reason_ bytea, now_ bigint, own_ boolean, at_ bigint)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF j.strategy IN (2, 4)
      AND NOT EXISTS (SELECT 1 FROM ~.possessor(j.queue, j.unique_key, now_)) THEN
    PERFORM ~.take_key(j.queue, false, j.unique_key, j.id, NULL, NULL);
  END IF;
  UPDATE ~.jobs k SET vesting = vesting_, holder = NULL, sequence = 0, attempts = attempts_,
      snoozes = snoozes_, memo = coalesce(memo_, k.memo), reason = coalesce(reason_, k.reason)
    WHERE k.queue = j.queue AND k.id = j.id;
  PERFORM ~.touch(j.queue, shard_, vesting_, CASE WHEN at_ IS NULL THEN now_ END, own_);
END $$;

-- Ends a lease: 0: failed, and vests after the delay or is dead (1 is answered); 1: snoozed;
-- 2: returned; 3: buried. NULL: the lease is lost.
CREATE FUNCTION ~.end_lease(queue_ bytea, shard_ integer, id_ uuid, fence_ bigint, how_ integer,
    delay_ bigint, text_ bytea, own_ boolean, at_ bigint) RETURNS integer
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  l record;
  j ~.jobs;
BEGIN
  SELECT * INTO l FROM ~.leased(queue_, id_, fence_, how_ <> 3, at_);
  j := l.job;
  IF j.id IS NULL THEN
    RETURN NULL;
  END IF;
  IF how_ = 3 OR how_ = 0 AND j.attempts >= j.max_attempts THEN
    PERFORM ~.end_job(j, 3::smallint, l.now, NULL, text_);
    PERFORM ~.count_jobs(queue_, shard_, 0, 0, 0, 0, 1, own_);
    RETURN 1;
  ELSIF how_ = 0 THEN
    PERFORM ~.wait_again(j, shard_, l.now + delay_, j.attempts, j.snoozes, NULL, text_, l.now,
                         own_, at_);
  ELSIF how_ = 1 THEN
    PERFORM ~.wait_again(j, shard_, l.now + delay_, greatest(j.attempts - 1, 0), j.snoozes + 1,
                         text_, NULL, l.now, own_, at_);
  ELSE
    PERFORM ~.wait_again(j, shard_, j.unclaimed, greatest(j.attempts - 1, 0), j.snoozes, NULL, NULL,
                         l.now, own_, at_);
  END IF;
  RETURN 0;
END $$;

-- Forgets some of what time has ended; what others have locked is left to the next time.
CREATE FUNCTION ~.tidy(limit_ integer, at_ bigint) RETURNS integer LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  now_ bigint := coalesce(at_, ~.clock());
  today bigint := now_ / 86400000000000;
  all_ integer := 0;
  n integer;
  left_ integer;
  r record;
  line_ record;
  here bigint := '~.state'::regclass::oid;
  tidied bigint[] := nullif(current_setting('weir.tidied', true), '');
  until_ bigint;
  places tid[];
BEGIN
  -- From where the session was the last time: while somebody holds a snapshot, what it has removed is
  -- still there to go through (F79). What was locked, or came later, is met by every 64th look, which
  -- is one from the beginning. tidied[1]: which schema; [2]: from when on; [3]: how many looks ago;
  -- [4]: as [2], of unique keys.
  IF at_ IS NOT NULL OR tidied[1] IS DISTINCT FROM here OR tidied[3] >= 64
      OR cardinality(tidied) <> 4 THEN
    tidied := ARRAY[here, -9223372036854775808, 0, -9223372036854775808];
  END IF;
  WITH o AS MATERIALIZED (SELECT k.ctid AS place, k.kept FROM ~.ended k
        WHERE k.kept + 0 >= tidied[2] AND k.kept + 0 <= now_
        ORDER BY k.kept + 0 LIMIT limit_ FOR UPDATE SKIP LOCKED),
      gone AS (DELETE FROM ~.ended e USING o WHERE e.ctid = o.place)
    SELECT count(*), max(o.kept) INTO n, until_ FROM o;
  all_ := all_ + n;
  tidied[2] := coalesce(until_, tidied[2]);
  SELECT array_agg(o.place), count(*), max(o.due) INTO places, n, until_
    FROM (SELECT k.ctid AS place, k.due FROM ~.used_keys k
      WHERE k.due >= tidied[4] AND k.due <= now_ ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED) o;
  all_ := all_ + n;
  tidied[3] := tidied[3] + 1;
  tidied[4] := coalesce(until_, tidied[4]);
  PERFORM set_config('weir.tidied', tidied::text, false);
  -- By another statement, which sees what the keys were when they were locked. A job that has waited
  -- for long is looked at less often.
  WITH o AS MATERIALIZED (SELECT u.ctid AS used, w.place,
          CASE WHEN w.until > now_ THEN w.until WHEN w.until IS NULL AND j.id IS NOT NULL THEN now_
            + least(greatest(~.span(j.vesting, now_), -~.span(j.enqueued, now_), 60000000000),
              86400000000000) END AS lasts
        FROM unnest(places) p(place) JOIN ~.used_keys u ON u.ctid = p.place
          LEFT JOIN LATERAL (SELECT k.ctid AS place, k.queue, k.owner, k.until FROM ~.keys k
            WHERE ~.dequeue_key(k.queue, k.key) = u.key AND k.run = (u.kind = 6)
            ORDER BY k.number DESC LIMIT 1) w ON true
          LEFT JOIN LATERAL (SELECT k.id, k.vesting, k.enqueued FROM ~.jobs k
            WHERE k.queue = w.queue AND k.id = w.owner OFFSET 0) j ON true),
      later AS (UPDATE ~.used_keys u SET due = o.lasts FROM o WHERE u.ctid = o.used AND o.lasts IS NOT NULL),
      forgotten AS (DELETE FROM ~.used_keys u USING o WHERE u.ctid = o.used AND o.lasts IS NULL)
    DELETE FROM ~.keys w USING o WHERE w.ctid = o.place AND o.lasts IS NULL;
  FOR r IN SELECT k.ctid AS place, k.key, k.until FROM ~.locks k WHERE k.due <= now_
      ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    all_ := all_ + 1;
    IF r.until <= now_ AND ~.may_forget(2, r.key) THEN
      DELETE FROM ~.locks l WHERE l.ctid = r.place;
    ELSE
      UPDATE ~.locks l SET due = greatest(now_ + 60000000000,
        least(r.until, now_ + 600000000000)) WHERE l.ctid = r.place;
    END IF;
  END LOOP;
  FOR r IN SELECT l.key FROM (SELECT DISTINCT k.key FROM (SELECT p.key FROM ~.permits p
          WHERE p.until <= now_ ORDER BY p.until LIMIT limit_) k) o,
      LATERAL (SELECT w.key FROM ~.permit_lines w
        WHERE w.key = o.key AND ~.counts_line(w.live, w.waiting, w.turn, w.fence)
        ORDER BY w.number DESC LIMIT 1 FOR UPDATE SKIP LOCKED) l LOOP
    line_ := ~.open_line(r.key, now_, NULL, true);
    PERFORM ~.close_line(r.key, line_.place, line_.live, line_.waiting, line_.turn, line_.fence,
                            line_.soonest, line_.head, line_.oldest, line_.ended);
    UPDATE ~.permit_lines l SET due = now_ WHERE l.key = r.key AND l.live = 0 AND l.waiting = 0;
    all_ := all_ + line_.ended;
  END LOOP;
  FOR r IN SELECT k.ctid AS place, k.key, k.soonest, k.live = 0 AND k.waiting = 0 AS over
      FROM ~.permit_lines k WHERE k.due <= now_
      ORDER BY k.due LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    all_ := all_ + 1;
    IF r.over AND ~.may_forget(1, r.key) THEN
      DELETE FROM ~.permit_lines l WHERE l.ctid = r.place;
    ELSE
      UPDATE ~.permit_lines l SET due = least(greatest(r.soonest, now_ + 60000000000),
        now_ + 600000000000) WHERE l.ctid = r.place;
    END IF;
  END LOOP;
  WITH o AS MATERIALIZED (SELECT k.ctid AS place FROM ~.hints k
      WHERE k.until < now_ LIMIT limit_ FOR UPDATE SKIP LOCKED)
    DELETE FROM ~.hints h USING o WHERE h.ctid = o.place;
  GET DIAGNOSTICS n = ROW_COUNT;
  all_ := all_ + n;
  FOR r IN SELECT k.ctid AS place, k.queue, k.holder FROM ~.dequeues k
      WHERE k.day < today - 1 LIMIT limit_ FOR UPDATE SKIP LOCKED LOOP
    CONTINUE WHEN NOT ~.may_forget(4, ~.dequeue_key(r.queue, r.holder));
    DELETE FROM ~.dequeues d WHERE d.ctid = r.place;
    all_ := all_ + 1;
  END LOOP;
  -- Of a hundred pages: a queue with many rows is met there soon enough. Ten rows count as one thing
  -- that was done, and no more of them are added up at once, whatever queues have them.
  left_ := 10 * limit_;
  FOR r IN SELECT o.queue, o.shard FROM (SELECT DISTINCT c.queue, c.shard FROM ~.counters c
          TABLESAMPLE SYSTEM (least(100, 10000 * 8192.0 / (1 + pg_relation_size('~.counters'))))) o,
      LATERAL (SELECT count(*) AS rows FROM (SELECT 1 FROM ~.counters c
        WHERE c.queue = o.queue LIMIT 33) k) l
      WHERE l.rows > 32 LIMIT 100 LOOP
    WITH gone AS (DELETE FROM ~.counters c USING (SELECT k.queue, k.stripe FROM ~.counters k
          WHERE k.queue = r.queue LIMIT left_ FOR UPDATE SKIP LOCKED) o
        WHERE c.queue = o.queue AND c.stripe = o.stripe RETURNING c.*),
      made AS (
      INSERT INTO ~.counters (queue, shard, enqueued, completed, cancelled, purged, dead)
        SELECT r.queue, r.shard, ~.held_within(sum(enqueued)), ~.held_within(sum(completed)),
            ~.held_within(sum(cancelled)), ~.held_within(sum(purged)), ~.held_within(sum(dead))
          FROM gone HAVING count(*) > 0)
      SELECT count(*) INTO n FROM gone;
    left_ := left_ - n;
    EXIT WHEN left_ <= 0;
  END LOOP;
  all_ := all_ + (10 * limit_ - left_) / 10;
  -- A queue that has nothing, is not held and was left alone for two days is forgotten, with all of
  -- its counters or none: the sums of some would be wrong. A step that uses it meanwhile changes a
  -- row's day, or adds one.
  FOR r IN SELECT DISTINCT k.queue FROM (SELECT c.queue FROM ~.counters c
      WHERE c.day < today - 2 ORDER BY c.day LIMIT limit_) k LOOP
    WITH old AS MATERIALIZED (SELECT c.ctid AS place FROM ~.counters c
        WHERE c.queue = r.queue AND c.day < today - 2 FOR UPDATE SKIP LOCKED)
      DELETE FROM ~.counters c USING old WHERE c.ctid = old.place
        AND (SELECT count(*) FROM old) = (SELECT count(*) FROM ~.counters k WHERE k.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM ~.jobs j WHERE j.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM ~.dead_letters e WHERE e.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM ~.ended e WHERE e.queue = r.queue)
        AND NOT EXISTS (SELECT 1 FROM ~.queues q WHERE q.queue = r.queue
          AND (q.paused OR greatest(q.snoozed, q.until) > now_));
    IF NOT FOUND THEN  -- not before tomorrow
      UPDATE ~.counters c SET day = today - 2 WHERE c.ctid IN (SELECT k.ctid
        FROM ~.counters k WHERE k.queue = r.queue AND k.day < today - 2
        FOR UPDATE SKIP LOCKED);
    END IF;
    all_ := all_ + 1;
  END LOOP;
  -- What it is held by is forgotten with it, and what it was held by before.
  DELETE FROM ~.queues d USING (SELECT q.ctid AS place FROM ~.queues q
        TABLESAMPLE SYSTEM (least(100, 10000 * 8192.0 / (1 + pg_relation_size('~.queues'))))
      WHERE NOT q.paused AND greatest(q.snoozed, q.until) < now_ - 172800000000000
        AND NOT EXISTS (SELECT 1 FROM ~.counters c WHERE c.queue = q.queue)
        AND NOT EXISTS (SELECT 1 FROM ~.jobs j WHERE j.queue = q.queue)
        AND NOT EXISTS (SELECT 1 FROM ~.dead_letters e WHERE e.queue = q.queue)
        AND NOT EXISTS (SELECT 1 FROM ~.ended e WHERE e.queue = q.queue)
      LIMIT limit_ FOR UPDATE OF q SKIP LOCKED) o
    WHERE d.ctid = o.place;
  GET DIAGNOSTICS n = ROW_COUNT;
  all_ := all_ + n;
  -- What was full at a time that has not come is known from a clock that was wrong (F101). Last: who
  -- has this row holds up the others that remove buckets.
  UPDATE ~.state s SET forgotten = ~.bucket_time(now_)
    WHERE s.ctid = (SELECT k.ctid FROM ~.state k WHERE k.forgotten > ~.bucket_time(now_)
      FOR UPDATE SKIP LOCKED);
  n := (~.reap_some_buckets(limit_, now_)).looked;
  all_ := all_ + n;
  RETURN all_;
END $$;

-- Ends a job, adds the first `n_` jobs to another queue of its shard, and the rest to its own. The
-- first row says what became of it (3: its lease is lost), and the others of the jobs. All that the
-- two enqueues lock is locked first, and in one order.
CREATE FUNCTION ~.relay_job(queue_ bytea, shard_ integer, id_ uuid, fence_ bigint,
    expected_ bytea, result_ bytea, to_ bytea, n_ integer, ids_ uuid[], kinds_ bytea[], payloads_ bytea[],
    keys_ bytea[], priorities_ integer[], attempts_ integer[], strategies_ integer[],
    policies_ integer[], delays_ bigint[], deadlines_ bigint[], retentions_ bigint[],
    ttls_ bigint[], headers_ bytea[], own_ boolean, at_ bigint)
  RETURNS TABLE (outcome integer, other uuid) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  j ~.jobs;
  now_ bigint;
  m integer := n_ + 1;
BEGIN
  PERFORM ~.guard(ARRAY(
    SELECT ~.key_name(3, CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END, uuid_send(u.id))
      FROM unnest(ids_) WITH ORDINALITY u(id, i)));
  PERFORM ~.lock_keys(5, q.queue, q.keys, at_) FROM (
    SELECT CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END AS queue, array_agg(u.key) AS keys
      FROM unnest(keys_, strategies_) WITH ORDINALITY u(key, strategy, i)
      WHERE u.strategy NOT IN (0, 3) GROUP BY 1 ORDER BY 1) q;
  now_ := coalesce(at_, ~.clock());
  PERFORM 1 FROM (
      SELECT queue_ AS queue, id_ AS id
      UNION SELECT CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END, u.id
        FROM unnest(ids_) WITH ORDINALITY u(id, i)
      UNION SELECT l.queue, l.owner FROM unnest(keys_) WITH ORDINALITY u(key, i),
        LATERAL (SELECT q.queue, p.owner
          FROM (SELECT CASE WHEN u.i <= n_ THEN to_ ELSE queue_ END AS queue) q,
            ~.possessor(q.queue, u.key, now_) p OFFSET 0) l
      ORDER BY 1, 2) f,
    LATERAL (SELECT 1 FROM ~.jobs k WHERE k.queue = f.queue AND k.id = f.id FOR UPDATE) l;
  SELECT k.* INTO j FROM ~.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
  now_ := coalesce(at_, ~.clock());
  outcome := 0;
  IF fence_ <> 0 THEN
    IF j.id IS NULL OR j.state <> 0 OR j.holder IS NULL OR j.vesting <= now_ OR j.fence <> fence_ THEN
      outcome := 2 + 1;
    END IF;
  ELSIF j.id IS NULL OR j.state <> 0 THEN
    outcome := 2;
  ELSIF j.payload <> expected_ THEN
    outcome := 1;
  END IF;
  RETURN NEXT;
  IF outcome <> 0 THEN
    RETURN;
  END IF;
  IF n_ > 0 THEN
    RETURN QUERY SELECT * FROM ~.enqueue_jobs(to_, shard_, false, ids_[:n_], kinds_[:n_],
      payloads_[:n_], keys_[:n_], priorities_[:n_], attempts_[:n_], strategies_[:n_],
      policies_[:n_], delays_[:n_], deadlines_[:n_], retentions_[:n_], ttls_[:n_], headers_[:n_],
      own_, at_);
  END IF;
  PERFORM ~.end_job(j, 2::smallint, now_, nullif(result_, ''), NULL);
  PERFORM ~.count_jobs(queue_, shard_, 0, 1, 0, 0, 0, own_);
  IF m <= cardinality(ids_) THEN
    RETURN QUERY SELECT * FROM ~.enqueue_jobs(queue_, shard_, false, ids_[m:], kinds_[m:],
      payloads_[m:], keys_[m:], priorities_[m:], attempts_[m:], strategies_[m:], policies_[m:],
      delays_[m:], deadlines_[m:], retentions_[m:], ttls_[m:], headers_[m:], own_, at_);
  END IF;
END $$;
)sql";

inline constexpr char dequeue[] = R"sql(
-- Locks what is known of a holder's latest numbered dequeue, and makes it where there is none. The same
-- dequeue, asked before, may still be under way: then it is waited for.
CREATE FUNCTION ~.last_dequeue(queue_ bytea, holder_ bytea, OUT place tid, OUT sequence bigint)
  LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    SELECT d.ctid, d.sequence INTO place, sequence FROM ~.dequeues d
      WHERE d.queue = queue_ AND d.holder = holder_ ORDER BY d.number DESC LIMIT 1 FOR UPDATE;
    EXIT WHEN FOUND;
    CONTINUE WHEN NOT ~.may_make(4, ~.dequeue_key(queue_, holder_));
    IF NOT EXISTS (SELECT 1 FROM ~.dequeues d WHERE d.queue = queue_ AND d.holder = holder_) THEN
      INSERT INTO ~.dequeues AS d (queue, holder, sequence, day) VALUES (queue_, holder_, 0, 0)
        RETURNING d.ctid, d.sequence INTO place, sequence;
      EXIT;
    END IF;
  END LOOP;
END $$;

-- One dequeue, or several at once that are not numbered: each takes what the one before it has left,
-- as many as its limit. First the jobs, in that order; then, with no id, the number of jobs that
-- were buried instead (attempts), or set aside as damaged (max_attempts), whether more are visible
-- (snoozes), whether the queue is held (state), and when the next job vests (vesting).
CREATE FUNCTION ~.dequeue_jobs(queue_ bytea, shard_ integer, holders_ bytea[], limits_ integer[],
    sequence_ bigint, lease_ bigint, own_ boolean, at_ bigint) RETURNS SETOF ~.job_row
  LANGUAGE plpgsql {function_settings} AS $$
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
  order_ bigint := ~.queue_lock(queue_);
  levels integer[];
  firsts bigint[];
  places tid[];
  fences_ bigint[];
  candidates uuid[];
  sizes bigint[];
  total bigint;
  room bigint := 4194304;
  full_ boolean := false;
  odd integer;
  how integer;
  done boolean;
  v ~.jobs;
  h record;
  tail ~.job_row;
BEGIN
  number := pg_current_xact_id();  -- before the time is read (see floors)
  IF sequence_ <> 0 THEN
    SELECT d.place, d.sequence INTO asked, last FROM ~.last_dequeue(queue_, holder_) d;
  ELSIF cardinality(limits_) > 1 THEN
    limit_ := 0;
    FOR i IN 1 .. cardinality(limits_) LOOP
      whose := whose || array_fill(holders_[i], ARRAY[limits_[i]]);
      limit_ := limit_ + limits_[i];
    END LOOP;
  END IF;
  now_ := coalesce(at_, ~.clock());
  since_ := CASE WHEN at_ IS NULL THEN now_ END;
  IF at_ IS NOT NULL THEN  -- leases may end below a floor
    PERFORM nextval('~.returned');
  END IF;
  -- As held() has it, which would be parsed and planned once more for each call.
  held_ := coalesce((SELECT q.paused OR now_ < q.snoozed FROM ~.queues q WHERE q.queue = queue_),
                    false);
  IF sequence_ <> 0 THEN
    IF last = sequence_ THEN
      RETURN QUERY SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, ''::bytea, ''::bytea, j.headers, ''::bytea, j.checkpoint, NULL::integer FROM ~.jobs j
        WHERE j.queue || '' = queue_ AND j.holder = holder_ AND j.sequence = sequence_
          AND j.state = 0 AND j.vesting > now_ ORDER BY j.fence;
      GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
      UPDATE ~.dequeues d SET sequence = sequence_, day = now_ / 86400000000000,
          uses = ~.next_use(d.uses), number = ~.next_use(d.uses) >> 5
        WHERE d.ctid = asked;
      UPDATE ~.jobs j SET sequence = 0  -- of an earlier dequeue that had this number, too
        WHERE last <> sequence_ AND j.queue || '' = queue_ AND j.holder = holder_
          AND j.sequence = sequence_;
    END IF;
  END IF;

  IF NOT held_ AND n = 0 THEN
    SELECT l.levels, l.firsts INTO levels, firsts
      FROM ~.look(queue_, ~.floors(order_, since_), now_, own_) l;
  END IF;
  FOR l IN 1 .. coalesce(cardinality(levels), 0) LOOP
    EXIT WHEN full_ OR n >= limit_ OR buried >= 100;
    CONTINUE WHEN firsts[l] > now_;
    LOOP
      IF nextval('~.fences') < now_ / 1000 THEN
        PERFORM ~.raise_fences(now_);
      END IF;
      -- The best ones that nobody else has locked, in their order, which that of their fences is,
      -- too. The claim ends before the first one that is to be buried, which takes no room in the answer,
      -- and before the one that is too large for that, which never is the first (F60).
      SELECT array_agg(l.place), array_agg(nextval('~.fences')), array_agg(l.id),
          array_position(array_agg(l.reason IS NOT NULL), true),
          array_agg(CASE WHEN l.reason IS NULL THEN l.bytes ELSE 0 END),
          sum(CASE WHEN l.reason IS NULL THEN l.bytes ELSE 0 END)
        INTO places, fences_, candidates, odd, sizes, total
        FROM (SELECT j.ctid AS place, j.id,
                  ~.claim_bytes(j) AS bytes,
                  ~.unclaimable(j, now_) AS reason
                FROM ~.jobs j WHERE j.queue || '' = queue_ AND j.priority = levels[l]
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
            UPDATE ~.jobs j2 SET fence = greatest(c.fence, j2.fence + 1),
                holder = coalesce(whose[(n + c.place)::integer], holder_), sequence = sequence_,
                attempts = j2.attempts + 1, unclaimed = j2.vesting, vesting = now_ + lease_
              FROM unnest(places[:coalesce(odd - 1, cardinality(places))], fences_)
                WITH ORDINALITY c(tid, fence, place)
              WHERE j2.ctid = c.tid RETURNING j2.*, c.place)
          SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, ''::bytea, ''::bytea, j.headers, ''::bytea, j.checkpoint, NULL::integer FROM claimed j ORDER BY j.place;
        GET DIAGNOSTICS more = ROW_COUNT;
        n := n + more;
      END IF;
      room := room - CASE WHEN odd IS NULL THEN total
        ELSE coalesce((SELECT sum(s.size) FROM unnest(sizes[:odd - 1]) s(size)), 0) END;
      EXIT WHEN odd IS NULL;
      FOR i IN odd .. cardinality(candidates) LOOP
        SELECT j2.* INTO v FROM ~.jobs j2 WHERE j2.queue = queue_ AND j2.id = candidates[i];
        CONTINUE WHEN buried >= 100;
        how := ~.bury(v, now_);
        IF how > 0 THEN
          buried := buried + 1;
          damaged := damaged + (how = 2)::integer;
        END IF;
      END LOOP;
      EXIT WHEN buried >= 100;
    END LOOP;
  END LOOP;
  IF buried > 0 THEN
    done := ~.count_jobs(queue_, shard_, 0, 0, 0, 0, buried, own_);
  END IF;

  h := ~.rest(queue_, ~.floors(order_, since_), now_, lease_, n, own_);
  IF h.moves THEN
    PERFORM ~.move_pointers(ARRAY[queue_], ARRAY[shard_], ARRAY[h.from_], ARRAY[h.then_], since_);
  END IF;
  tail.attempts := buried - damaged;
  tail.max_attempts := damaged;
  tail.snoozes := (h.visible AND NOT held_)::integer;
  tail.state := held_::integer;
  tail.vesting := ~.span(h.least_, now_);
  RETURN NEXT tail;
END $$;

-- Can a value be read? Of a large one, which is stored apart, a part may be gone.
CREATE FUNCTION ~.readable(value bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM value || '';
  RETURN true;
EXCEPTION WHEN data_corrupted OR index_corrupted OR internal_error THEN
  RETURN false;
END $$;

-- A dequeue after one that failed because a job could not be read. First it looks at the jobs that it may
-- claim: what cannot be read of them becomes empty, and a negative count of snoozes has bury() take them
-- for damaged. It looks at no more than it may claim, or bury.
CREATE FUNCTION ~.dequeue_readable(queue_ bytea, shard_ integer, holders_ bytea[],
    limits_ integer[], sequence_ bigint, lease_ bigint, own_ boolean, at_ bigint)
  RETURNS SETOF ~.job_row LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint;
  left_ bigint := (SELECT sum(l.most) FROM unnest(limits_) l(most));
  room bigint := 4194304;
  damaged integer := 0;
  m record;
BEGIN
  IF sequence_ <> 0 THEN  -- before the jobs, as dequeue_jobs has it
    PERFORM ~.last_dequeue(queue_, holders_[1]);
  END IF;
  now_ := coalesce(at_, ~.clock());
  FOR m IN
    SELECT j.* FROM ~.all_heads(queue_) h,
      LATERAL (SELECT k.id, ~.claim_bytes(k) AS size, ~.readable(k.holder) AS holder,
            ~.readable(k.unique_key) AS unique_key, ~.readable(k.kind) AS kind,
            ~.readable(k.payload) AS payload, ~.readable(k.memo) AS memo,
            ~.readable(k.reason) AS reason, ~.readable(k.headers) AS headers,
            ~.readable(k.progress) AS progress, ~.readable(k.checkpoint) AS checkpoint
          FROM ~.jobs k WHERE k.queue || '' = queue_ AND k.priority = h.priority AND k.vesting <= now_
          ORDER BY k.vesting, k.id FOR UPDATE SKIP LOCKED) j
  LOOP
    IF m.holder AND m.unique_key AND m.kind AND m.payload AND m.memo AND m.reason AND m.headers
        AND m.progress AND m.checkpoint THEN
      left_ := left_ - 1;
      room := room - m.size;
    ELSE
      damaged := damaged + 1;
      UPDATE ~.jobs j SET snoozes = -1,
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
    EXIT WHEN left_ <= 0 OR room < 0 OR damaged >= 100;
  END LOOP;
  RETURN QUERY SELECT * FROM ~.dequeue_jobs(queue_, shard_, holders_, limits_, sequence_, lease_,
    own_, at_);
END $$;

-- Numbered dequeues of many queues. Each statement is for all of them, so that what it costs by itself
-- is shared: one after the other they take the server eight times as long. The rows of each bear its
-- place among them (part): the jobs, in their order, and a row with no id, as that of dequeue_jobs is.
-- Where it says so (priority), the dequeue has claimed nothing and is to be asked by itself: its number
-- is not above the last one, another dequeue here is of the same queue, the answer has no room, or its
-- jobs are of several levels, damaged, spent or late.
CREATE FUNCTION ~.dequeue_each(queues_ bytea[], shards_ integer[], holders_ bytea[],
    limits_ integer[], sequences_ bigint[], lease_ bigint, own_ boolean, at_ bigint)
  RETURNS SETOF ~.job_row LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  now_ bigint := coalesce(at_, ~.clock());
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
  tail ~.job_row;
BEGIN
  SELECT array_agg(a.part), array_agg(a.place) INTO parts, places
    FROM (SELECT u.*, d.place, d.last
            FROM (SELECT * FROM unnest(queues_, holders_, sequences_)
                    WITH ORDINALITY o(queue, holder, sequence, part) ORDER BY o.queue) u
              LEFT JOIN LATERAL (SELECT k.ctid AS place, k.sequence AS last FROM ~.dequeues k
                WHERE k.queue = u.queue AND k.holder = u.holder
                ORDER BY k.number DESC LIMIT 1 FOR UPDATE) d ON true
            WHERE array_position(queues_, u.queue) = u.part) a
    WHERE coalesce(a.last, 0) < a.sequence AND NOT EXISTS (SELECT 1 FROM ~.jobs j
      WHERE j.queue || '' = a.queue AND j.holder = a.holder AND j.sequence >= a.sequence);
  -- Where there was none, who says first that there is one makes it, in this statement.
  WITH found_ AS (
      UPDATE ~.dequeues d SET sequence = sequences_[a.part], day = now_ / 86400000000000,
          uses = ~.next_use(d.uses), number = ~.next_use(d.uses) >> 5
        FROM unnest(places, parts) a(place, part) WHERE d.ctid = a.place RETURNING d.queue),
    first_ AS (
      INSERT INTO ~.used_keys
        SELECT 4, ~.dequeue_key(queues_[a.part], holders_[a.part])
          FROM unnest(places, parts) a(place, part) WHERE a.place IS NULL ORDER BY 2
        ON CONFLICT DO NOTHING RETURNING key),
    made AS (
      INSERT INTO ~.dequeues AS d (queue, holder, sequence, day)
        SELECT queues_[a.part], holders_[a.part], sequences_[a.part], now_ / 86400000000000
          FROM unnest(places, parts) a(place, part) JOIN first_ f
            ON f.key = ~.dequeue_key(queues_[a.part], holders_[a.part])
          WHERE a.place IS NULL RETURNING d.queue)
    SELECT coalesce(array_agg(a.queue), '{}') INTO counted
      FROM (SELECT queue FROM found_ UNION ALL SELECT queue FROM made) a;
  now_ := coalesce(at_, ~.clock());
  since_ := CASE WHEN at_ IS NULL THEN now_ END;
  IF at_ IS NOT NULL THEN
    PERFORM nextval('~.returned');
  END IF;
  IF nextval('~.fences') < now_ / 1000 THEN
    PERFORM ~.raise_fences(now_);
  END IF;
  -- Of each queue the first level that has a visible job, and how many have.
  SELECT array_agg(h.level), array_agg(h.first), array_agg(h.levels), array_agg(q.held)
    INTO levels, firsts, counts, held_
    FROM (SELECT u.queue, ~.floors(~.queue_lock(u.queue), since_) AS f,
              EXISTS (SELECT 1 FROM ~.queues k WHERE k.queue = u.queue
                AND (k.paused OR now_ < k.snoozed)) AS held
            FROM unnest(queues_) WITH ORDINALITY u(queue, part) ORDER BY u.part) q,
      LATERAL (SELECT min(l.level) AS level,
            (array_agg(l.first ORDER BY l.level))[1] AS first, count(*) AS levels
          FROM (SELECT a.priority AS level, a.vesting AS first FROM ~.all_heads(q.queue) a
                  WHERE q.f IS NULL
                UNION ALL SELECT o.level, o.first FROM ~.look(q.queue, q.f, now_, own_) k,
                  unnest(k.levels, k.firsts) o(level, first) WHERE q.f IS NOT NULL) l
          WHERE l.first <= now_) h;
  -- The visible jobs of that level, if all of them are plain, and no other level is to give the rest.
  SELECT array_agg(c.place) FILTER (WHERE c.plain),
      array_agg(nextval('~.fences')) FILTER (WHERE c.plain),
      array_agg(q.part) FILTER (WHERE c.plain), array_agg(c.size) FILTER (WHERE c.plain)
    INTO places, fences_, parts, sizes
    FROM unnest(queues_, limits_, levels, firsts, counts, held_)
        WITH ORDINALITY q(queue, most, level, first, levels, held, part),
      LATERAL (SELECT l.place, l.size,
            bool_and(l.sound) OVER () AND (q.levels = 1 OR count(*) OVER () = q.most) AS plain
          FROM (SELECT j.ctid AS place, ~.claim_bytes(j) AS size,
                    ~.unclaimable(j, now_) IS NULL AS sound
                  FROM ~.jobs j WHERE NOT q.held AND q.queue = ANY (counted)
                    AND array_position(queues_, q.queue) = q.part
                    AND j.queue || '' = q.queue AND j.priority = q.level AND j.vesting >= q.first
                    AND j.vesting <= now_
                  ORDER BY j.vesting, j.id LIMIT q.most FOR UPDATE SKIP LOCKED) l) c;
  -- All that an answer has room for.
  FOR i IN 1 .. coalesce(cardinality(sizes), 0) LOOP
    total := total + sizes[i];
    IF total > 4194304 THEN
      places := places[:array_position(parts, parts[i]) - 1];
      EXIT;
    END IF;
  END LOOP;
  parts := parts[:cardinality(places)];
  RETURN QUERY WITH claimed AS (
      UPDATE ~.jobs j SET fence = greatest(c.fence, j.fence + 1), holder = holders_[c.part],
          sequence = sequences_[c.part], attempts = j.attempts + 1, unclaimed = j.vesting,
          vesting = now_ + lease_
        FROM unnest(places, fences_[:cardinality(places)], parts)
          WITH ORDINALITY c(place, fence, part, nth)
        WHERE j.ctid = c.place RETURNING j.*, c.part, c.nth)
    SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, ''::bytea, ''::bytea, j.headers, ''::bytea, j.checkpoint, j.part FROM claimed j ORDER BY j.nth;

  FOR r IN
    SELECT q.part, q.held, h.least, h.visible, h.moves, h.from_, h.then_,
        NOT q.queue = ANY (counted) OR array_position(queues_, q.queue) < q.part
          OR h.visible AND NOT q.held AND q.part = ANY (parts) IS NOT TRUE AS alone
      FROM (SELECT u.*, ~.floors(~.queue_lock(u.queue), since_) AS f
              FROM unnest(queues_, held_) WITH ORDINALITY u(queue, held, part) OFFSET 0) q,
        LATERAL (
          SELECT a.least, a.visible, own_ AND NOT a.visible AND EXISTS (SELECT 1 FROM ~.pointers p
                WHERE p.queue || '' = q.queue AND p.pointer IS DISTINCT FROM a.least) AS moves,
              -9223372036854775808 AS from_, NULL::bigint AS then_
            FROM (SELECT min(l.vesting) AS least, coalesce(bool_or(l.vesting <= now_), false) AS visible
                    FROM ~.all_heads(q.queue) l) a
            WHERE q.f IS NULL
          UNION ALL SELECT t.* FROM ~.rest(q.queue, q.f, now_, lease_,
              coalesce(cardinality(array_positions(parts, q.part::integer)), 0), own_) t
            WHERE q.f IS NOT NULL) h
  LOOP
    tail.part := r.part;
    tail.priority := r.alone::integer;
    tail.attempts := 0;
    tail.max_attempts := 0;
    tail.snoozes := (r.visible AND NOT r.held)::integer;
    tail.state := r.held::integer;
    tail.vesting := ~.span(r.least, now_);
    RETURN NEXT tail;
    IF r.moves AND NOT r.alone THEN
      moved := moved || r.part::integer;
      froms := froms || r.from_;
      thens := thens || r.then_;
    END IF;
  END LOOP;
  IF cardinality(moved) > 0 THEN
    PERFORM ~.move_pointers(array_agg(queues_[m.part]), array_agg(shards_[m.part]),
                               array_agg(m.first), array_agg(m.then_), since_)
      FROM unnest(moved, froms, thens) m(part, first, then_);
  END IF;
END $$;
)sql";

inline constexpr char floors[] = R"sql(
-- What is known of the order. NULL: nothing, and it is not to be noted; most orders are looked through
-- once or twice, so only every eighth look begins to know one. `now_` NULL: the step is by a clock of
-- somebody else's, and floors may not be below what comes. Two orders may have the same setting: then
-- the one that was looked through last has it.
CREATE FUNCTION ~.floors(order_ bigint, now_ bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  here bigint := '~.state'::regclass::oid;
  returned_ bigint := pg_sequence_last_value('~.returned');
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
CREATE FUNCTION ~.to_be_raised(floors_ bigint[], now_ bigint, own_ boolean) RETURNS boolean
  LANGUAGE sql STABLE
  RETURN own_ AND floors_ IS NOT NULL
    AND (floors_[10] IS NULL OR now_ >= floors_[5] + 10000000 OR now_ >= floors_[4])
    AND ~.sees_all();

-- The highest of them. What is known to be below it was not looked for.
CREATE FUNCTION ~.top_floor(floors_ bigint[]) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN (SELECT max(floors_[n]) FROM generate_series(11, cardinality(floors_), 4) n);

CREATE FUNCTION ~.keep_floors(floors_ bigint[]) RETURNS boolean LANGUAGE sql VOLATILE
  RETURN set_config('weir.floors_' || (floors_[2] & 511), floors_::text, false) IS NULL;

-- The time of the server, to say how long something takes.
CREATE FUNCTION ~.took(since_ timestamptz) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN (extract(epoch FROM clock_timestamp() - since_) * 1000000000)::bigint;

-- Keeps the floors after a look from them, or from the beginning if that was due, which found these
-- levels' first ones; the rest had none. `now_` was read before `since_`, and that before the look, which
-- began at `began_`.
CREATE FUNCTION ~.raise_floors(floors_ bigint[], levels_ integer[], firsts_ bigint[], now_ bigint,
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
    out_[4] := now_ + least(greatest(1000000000, ~.took(began_) * 30), 2000000000);
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
  RETURN ~.keep_floors(out_);
END $$;
)sql";

inline constexpr char from_4[] = R"sql(
LOCK TABLE ~.jobs;
CREATE UNLOGGED TABLE ~.dead_4 AS
  SELECT j.*, j.death AS number FROM ~.jobs j WHERE j.death IS NOT NULL;
CREATE UNLOGGED TABLE ~.ended_4 AS
  SELECT j.*, j.kept AS until FROM ~.jobs j WHERE j.death IS NULL AND j.kept IS NOT NULL;
DELETE FROM ~.jobs WHERE death IS NOT NULL OR kept IS NOT NULL;
UPDATE ~.jobs SET vesting = 0 WHERE vesting IS NULL;
UPDATE ~.dead_4 SET vesting = 0;
UPDATE ~.ended_4 SET vesting = 0;
ALTER TABLE ~.dead_4 DROP death, DROP kept;
ALTER TABLE ~.ended_4 DROP death, DROP kept;
DROP INDEX ~.jobs_order;
-- An enqueue that was under way, and waited, does not know where to look for ids that are taken. It
-- is refused: it says no state.
ALTER TABLE ~.jobs DROP death, DROP kept, ALTER vesting SET NOT NULL, ALTER state DROP DEFAULT;
CREATE INDEX jobs_order ON ~.jobs ((queue || ''), priority, vesting, id);
)sql";

inline constexpr char from_4_fill[] = R"sql(
INSERT INTO ~.dead_letters SELECT * FROM ~.dead_4;
INSERT INTO ~.ended SELECT * FROM ~.ended_4;
DROP TABLE ~.dead_4, ~.ended_4;
DO $$
DECLARE
  g record;
BEGIN
  SELECT c.relowner::regrole AS tables INTO g FROM pg_class c WHERE c.oid = '~.jobs'::regclass;
  EXECUTE 'ALTER TABLE ~.dead_letters OWNER TO ' || g.tables;
  EXECUTE 'ALTER TABLE ~.ended OWNER TO ' || g.tables;
  FOR g IN SELECT a.privilege_type AS what, a.grantee, a.is_grantable
      FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = '~.jobs'::regclass LOOP
    EXECUTE 'GRANT ' || g.what || ' ON ~.dead_letters, ~.ended TO '
      || CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
      || CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
  END LOOP;
END $$;
)sql";

inline constexpr char from_6[] = R"sql(
-- First: all others use used_keys, too, and would wait with it for steps of unique keys.
LOCK TABLE ~.keys;
ALTER TABLE ~.used_keys ADD due bigint;
CREATE INDEX used_keys_due ON ~.used_keys (due) WHERE due IS NOT NULL;
DROP INDEX ~.keys_until;
ALTER TABLE ~.keys DROP CONSTRAINT keys_pkey, ALTER owner DROP NOT NULL, ADD fence bigint,
  ADD uses bigint NOT NULL DEFAULT 0, ADD number bigint NOT NULL DEFAULT 0, SET (fillfactor = 70);
CREATE INDEX keys_last ON ~.keys ((int4send(octet_length(queue)) || queue || key), run, number);
UPDATE ~.keys w SET fence = j.fence FROM ~.jobs j
  WHERE w.run AND j.queue = w.queue AND j.id = w.owner;
INSERT INTO ~.used_keys SELECT 5 + w.run::integer, ~.dequeue_key(w.queue, w.key), 0
  FROM ~.keys w;
DROP FUNCTION ~.take_key;
DROP FUNCTION IF EXISTS ~.free_run, ~.leaves_run;
)sql";

inline constexpr char from_6_fill[] = R"sql(
DO $$
DECLARE
  old pg_proc;
  f regprocedure;
  g record;
BEGIN
  SELECT p.* INTO old FROM pg_proc p WHERE p.oid = '~.end_job'::regproc;
  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = old.pronamespace
      AND p.proname IN ('give_way', 'lock_keys', 'possessor', 'take_key') LOOP
    IF old.proacl IS NOT NULL THEN
      EXECUTE 'REVOKE ALL ON FUNCTION ' || f || ' FROM PUBLIC';
    END IF;
    EXECUTE 'ALTER FUNCTION ' || f || ' OWNER TO ' || old.proowner::regrole;
    FOR g IN SELECT a.grantee, a.is_grantable FROM aclexplode(old.proacl) a LOOP
      EXECUTE 'GRANT EXECUTE ON FUNCTION ' || f || ' TO '
        || CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
        || CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
    END LOOP;
  END LOOP;
END $$;
)sql";

inline constexpr char jobs[] = R"sql(
-- What a job takes in an answer that claims it.
CREATE FUNCTION ~.claim_bytes(j ~.jobs) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN octet_length(j.kind)::bigint + octet_length(j.payload) + octet_length(j.unique_key)
    + octet_length(j.memo) + octet_length(j.headers) + octet_length(j.checkpoint);

-- Waits for unique keys, in order, and has them to itself until the transaction ends (5: enqueue keys;
-- 6: run locks). Says how many there were not. The row of one that is there is locked and stays as it
-- is, so that nobody goes through what it was before (F79).
CREATE FUNCTION ~.lock_keys(kind_ integer, queue_ bytea, keys_ bytea[], at_ bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  due_ bigint := ~.first_due(60000000000, at_);
  n integer;
BEGIN
  INSERT INTO ~.used_keys SELECT kind_, k.key, due_
    FROM (SELECT DISTINCT ~.dequeue_key(queue_, u.key) AS key FROM unnest(keys_) u(key)) k ORDER BY k.key
    ON CONFLICT (kind, key) DO UPDATE SET kind = excluded.kind WHERE false;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- The job that has an enqueue key, which is locked. No row: the key is free. The id may be another
-- job's by now. The job itself is read by those who need it: as a value of this function it would
-- have its payload read, too, which may be damaged.
CREATE FUNCTION ~.possessor(queue_ bytea, key_ bytea, now_ bigint)
  RETURNS TABLE (owner uuid) LANGUAGE sql STABLE BEGIN ATOMIC
  SELECT w.owner FROM (SELECT k.owner, k.until FROM ~.keys k
      WHERE ~.dequeue_key(k.queue, k.key) = ~.dequeue_key(queue_, key_) AND NOT k.run
      ORDER BY k.number DESC LIMIT 1) w
    LEFT JOIN LATERAL (SELECT j.id FROM ~.jobs j WHERE j.queue = queue_ AND j.id = w.owner
      AND j.unique_key = key_ AND j.strategy NOT IN (0, 3) OFFSET 0) l ON true
    WHERE CASE WHEN w.until IS NULL THEN l.id IS NOT NULL ELSE w.until > now_ END;
END;

-- Numbers a dead letter. Until the transaction ends its lock says that numbers after the one that
-- was last given out may still be committed: what is listed ends before these (F72). Where a stranger
-- has that lock, an earlier one says more than that, and is as good.
CREATE FUNCTION ~.next_death() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  here text := '~.state'::regclass::oid::text;
  last bigint := coalesce(pg_sequence_last_value('~.deaths'), 0);
  most constant bigint := 100000;
BEGIN
  IF coalesce(current_setting('weir.numbers_deaths', true), '') <> here THEN
    FOR before IN 0 .. most LOOP
      EXIT WHEN pg_try_advisory_xact_lock_shared(
        (pg_sequence_last_value('~.seed') & 2147483647)::integer,
        ((last - before) & 2147483647)::integer);
      IF before = most THEN
        RAISE lock_not_available USING MESSAGE = 'the locks of dead letters are taken';
      END IF;
    END LOOP;
    PERFORM set_config('weir.numbers_deaths', here, true);
  END IF;
  RETURN nextval('~.deaths');
END $$;

-- Every dead letter up to this number is there to be seen from now on, or never will be. The last
-- number is read before the locks are, and they before the letters. Locks of a role that can number
-- none are a stranger's (F94).
CREATE FUNCTION ~.settled_deaths() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  last bigint := coalesce(pg_sequence_last_value('~.deaths'), 0);
BEGIN
  RETURN least(last, (SELECT min(last - ((last - l.objid::bigint) & 2147483647)) FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2
      AND l.classid::bigint = pg_sequence_last_value('~.seed') & 2147483647
      AND l.database = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database())
      AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.pid = l.pid
        AND NOT EXISTS (SELECT 1 FROM pg_roles r WHERE pg_has_role(a.usesysid, r.oid, 'MEMBER')
          AND has_sequence_privilege(r.oid, '~.deaths'::regclass, 'USAGE, UPDATE')))));
END $$;

-- Ends a job that is locked; the counters are the caller's. `result_` NULL: as it was.
CREATE FUNCTION ~.end_job(j ~.jobs, how_ smallint, now_ bigint, result_ bytea, reason_ bytea)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF how_ = 3 OR j.retention <> 0 THEN
    j.state := how_; j.holder := NULL; j.sequence := 0;
    j.result := coalesce(result_, j.result); j.reason := coalesce(reason_, j.reason);
    IF how_ = 3 THEN
      INSERT INTO ~.dead_letters SELECT j.*, ~.next_death() ON CONFLICT (queue, id) DO NOTHING;
    ELSE
      INSERT INTO ~.ended SELECT j.*, now_ + j.retention ON CONFLICT (queue, id) DO NOTHING;
    END IF;
  END IF;
  DELETE FROM ~.jobs k WHERE k.queue = j.queue AND k.id = j.id;
END $$;

-- Gives a key to a job, whoever had it; NULL: to none. The key's lock and the job are the caller's.
CREATE FUNCTION ~.take_key(queue_ bytea, run_ boolean, key_ bytea, owner_ uuid, until_ bigint,
    fence_ bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  name_ bytea := ~.dequeue_key(queue_, key_);
BEGIN
  UPDATE ~.keys w SET owner = owner_, until = until_, fence = fence_,
      uses = ~.next_use(w.uses), number = ~.next_use(w.uses) >> 5
    WHERE w.ctid = (SELECT k.ctid FROM ~.keys k WHERE ~.dequeue_key(k.queue, k.key) = name_
      AND k.run = run_ ORDER BY k.number DESC LIMIT 1);
  IF NOT FOUND THEN
    INSERT INTO ~.keys VALUES (queue_, run_, key_, owner_, until_, fence_);
    UPDATE ~.used_keys u SET kind = u.kind  -- see may_make
      WHERE u.kind = 5 + run_::integer AND u.key = name_ AND u.xmin <> pg_current_xact_id()::xid;
  END IF;
END $$;

-- Can a job not be read, or counted with, that waits or is leased?
CREATE FUNCTION ~.damaged(j ~.jobs) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN NOT (j.state = 0 AND j.priority <= 255 AND j.strategy <= 5 AND j.policy <= 4
    AND least(j.priority, j.strategy, j.policy, j.attempts, j.snoozes) >= 0 AND j.max_attempts > 0
    AND least(j.fence, j.deadline, j.retention) >= 0 AND j.deadline_from >= -4611686018427387904
    AND greatest(j.attempts, j.max_attempts) <= 1000000 AND j.snoozes < 2147483647
    AND greatest(j.fence, j.deadline_from) <= 4611686018427387904
    AND greatest(j.deadline, j.retention) <= 315360000000000000
    AND j.kind <> '' AND (j.strategy = 0) = (j.unique_key = '')
    AND greatest(octet_length(j.kind), octet_length(j.unique_key)) <= 1024
    AND greatest(octet_length(j.payload), octet_length(j.result)) <= 1048576
    AND octet_length(j.memo) <= 1024 AND octet_length(j.reason) <= 4096
    AND octet_length(j.headers) <= 4096
    AND octet_length(j.progress) <= 1024
    AND octet_length(j.checkpoint) <= 65536);

-- Why a visible job may not be claimed any more; NULL: it may.
CREATE FUNCTION ~.unclaimable(j ~.jobs, now_ bigint) RETURNS text LANGUAGE sql IMMUTABLE
  RETURN CASE WHEN ~.damaged(j) THEN 'the record is damaged'
              WHEN j.attempts >= j.max_attempts THEN 'its attempts are spent: the last holder let its lease end'
              WHEN j.deadline <> 0 AND j.deadline_from + j.deadline < now_ THEN
                'its deadline was missed' END;

-- Buries a job that waits, and is locked, if it may not be claimed any more (1), or if its record is
-- damaged (2), which makes it a dead letter that can be read. 0: neither. The counters are the
-- caller's.
CREATE FUNCTION ~.bury(j ~.jobs, now_ bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  reason_ text := ~.unclaimable(j, now_);
BEGIN
  IF reason_ IS NULL THEN
    RETURN 0;
  ELSIF reason_ <> 'the record is damaged' THEN
    PERFORM ~.end_job(j, 3::smallint, now_, NULL, convert_to(reason_, 'UTF8'));
    RETURN 1;
  END IF;
  j.state := 3; j.holder := NULL; j.sequence := 0;
  j.strategy := 0; j.policy := 0;
  j.unique_key := ''; j.priority := least(greatest(j.priority, 0), 255); j.snoozes := 0;
  j.attempts := least(greatest(j.attempts, 0), 1000000);
  j.max_attempts := least(greatest(j.max_attempts, 1), 1000000);
  j.fence := least(greatest(j.fence, 0), 4611686018427387904);
  j.enqueued := least(j.enqueued, now_); j.deadline_from := now_; j.deadline := 0;
  j.retention := 0;
  j.kind := CASE WHEN octet_length(j.kind) BETWEEN 1 AND 1024 THEN j.kind ELSE 'damaged' END;
  j.payload := substr(j.payload, 1, 1048576);
  j.memo := substr(j.memo, 1, 1024); j.result := '';
  j.headers := substr(j.headers, 1, 4096);
  j.progress := substr(j.progress, 1, 1024);
  j.checkpoint := substr(j.checkpoint, 1, 65536);
  j.reason := 'the record is damaged';
  INSERT INTO ~.dead_letters SELECT j.*, ~.next_death() ON CONFLICT (queue, id) DO NOTHING;
  DELETE FROM ~.jobs k WHERE k.queue = j.queue AND k.id = j.id;
  RETURN 2;
END $$;

-- Whether a job that waits in possession of a unique key, and is locked, gives the key up because
-- it cannot be claimed any more: it is then buried; the counters are the caller's. NULL: it can be
-- claimed. False: it cannot, but its key is held until_expired, and it is left as it is.
CREATE FUNCTION ~.bury_unclaimable(j ~.jobs, now_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF j.strategy = 5
      AND ~.unclaimable(j, now_) <> 'the record is damaged' THEN
    RETURN false;
  END IF;
  RETURN nullif(~.bury(j, now_) > 0, false);
END $$;

-- Of jobs that were just added, removes those whose ids are kept by what has ended, and returns how
-- many these were; where the retention is over, the record goes instead. It is done after they are
-- added, and by other statements: who moved a job of such an id here had committed by then, and nobody
-- else has one to move from now on. A transaction that sees what was then does not see that, but a
-- unique index does: it is refused as if the record had stayed where the job was. Such a one reads no
-- more than it has to, since SERIALIZABLE ones are refused for what others write there.
CREATE FUNCTION ~.give_way(queue_ bytea, ids_ uuid[], added_ tid[], now_ bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  taken tid[];
  over_ tid[];
  n integer;
BEGIN
  IF ~.sees_all() THEN
    IF NOT EXISTS (SELECT 1 FROM unnest(ids_) u(id), LATERAL (
        SELECT 1 FROM ~.dead_letters d WHERE d.queue = queue_ AND d.id = u.id
        UNION ALL SELECT 1 FROM ~.ended e WHERE e.queue = queue_ AND e.id = u.id OFFSET 0) l) THEN
      RETURN 0;
    END IF;
  ELSE
    -- Of a row that is tried only the id matters, and no scan of what is over comes by it.
    WITH tried AS (INSERT INTO ~.dead_letters (queue, id, priority, state, strategy, policy,
          max_attempts, vesting, enqueued, deadline_from, deadline, retention, unique_key, kind,
          payload, death)
        SELECT j.queue, j.id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', 9223372036854775807
          FROM ~.jobs j WHERE j.ctid = ANY (added_) ON CONFLICT DO NOTHING RETURNING ctid)
      SELECT array_agg(t.ctid) INTO taken FROM tried t;
    DELETE FROM ~.dead_letters d WHERE d.ctid = ANY (taken);
    WITH tried AS (INSERT INTO ~.ended (queue, id, priority, state, strategy, policy,
          max_attempts, vesting, enqueued, deadline_from, deadline, retention, unique_key, kind,
          payload, kept)
        SELECT j.queue, j.id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', 9223372036854775807
          FROM ~.jobs j WHERE j.ctid = ANY (added_) ON CONFLICT DO NOTHING RETURNING ctid)
      SELECT array_agg(t.ctid) INTO over_ FROM tried t;
    DELETE FROM ~.ended e WHERE e.ctid = ANY (over_);
    IF cardinality(taken) = cardinality(added_) AND cardinality(over_) = cardinality(added_) THEN
      RETURN 0;
    END IF;
  END IF;
  over_ := ARRAY(SELECT l.place FROM unnest(ids_) u(id), LATERAL (SELECT e.ctid AS place
    FROM ~.ended e WHERE e.queue = queue_ AND e.id = u.id AND e.kept <= now_ OFFSET 0) l);
  DELETE FROM ~.ended e WHERE e.ctid = ANY (over_) AND e.kept <= now_;
  taken := ARRAY(SELECT j.ctid FROM ~.jobs j WHERE j.ctid = ANY (added_) AND EXISTS (
    SELECT 1 FROM ~.dead_letters d WHERE d.queue = queue_ AND d.id = j.id
    UNION ALL SELECT 1 FROM ~.ended e WHERE e.queue = queue_ AND e.id = j.id AND e.kept > now_));
  DELETE FROM ~.jobs j WHERE j.ctid = ANY (taken);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- `plain_`: no job of these takes a key with its enqueue. `hurries_`: whoever has one of the keys is
-- not waited for, or hardly: others wait behind this, and it is asked again where nobody does (F50).
CREATE FUNCTION ~.enqueue_jobs(queue_ bytea, shard_ integer, plain_ boolean, ids_ uuid[],
    kinds_ bytea[], payloads_ bytea[], keys_ bytea[], priorities_ integer[], attempts_ integer[],
    strategies_ integer[], policies_ integer[], delays_ bigint[], deadlines_ bigint[],
    retentions_ bigint[], ttls_ bigint[], headers_ bytea[], own_ boolean, at_ bigint,
    hurries_ boolean DEFAULT false)
  RETURNS TABLE (outcome integer, other uuid) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  now_ bigint;
  n integer;
  o ~.jobs;
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
    now_ := coalesce(at_, ~.clock());
    IF cardinality(ids_) = 1 THEN  -- a statement of its own, which takes less
      vests := now_ + delays_[1];
      INSERT INTO ~.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
          strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
        VALUES (queue_, ids_[1], 0, kinds_[1], payloads_[1], keys_[1],
          priorities_[1], attempts_[1], strategies_[1], policies_[1], vests, deadlines_[1],
          retentions_[1], now_, now_, headers_[1])
        ON CONFLICT (queue, id) DO NOTHING RETURNING ctid INTO place;
      n := CASE WHEN FOUND THEN 1 ELSE 0 END;
      IF FOUND AND (NOT ~.sees_all()
          OR EXISTS (SELECT 1 FROM ~.dead_letters d WHERE d.queue = queue_ AND d.id = ids_[1])
          OR EXISTS (SELECT 1 FROM ~.ended e WHERE e.queue = queue_ AND e.id = ids_[1])) THEN
        n := n - ~.give_way(queue_, ids_, ARRAY[place], now_);
      END IF;
    ELSE
      -- In the order of the ids: an insert waits for another of the same id, so two batches would
      -- wait for each other (F72).
      order_ := ARRAY(SELECT g.i FROM generate_series(1, cardinality(ids_)) g(i) ORDER BY ids_[g.i], g.i);  -- of one that is named twice, the first
      WITH added AS (
          INSERT INTO ~.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
              strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
            SELECT queue_, ids_[i], 0, kinds_[i], payloads_[i], keys_[i],
                priorities_[i], attempts_[i], strategies_[i], policies_[i], now_ + delays_[i],
                deadlines_[i], retentions_[i], now_, now_, headers_[i]
              FROM unnest(order_) i
            ON CONFLICT (queue, id) DO NOTHING RETURNING ctid)
        SELECT count(*), array_agg(a.ctid) INTO n, places FROM added a;
      IF n > 0 THEN
        n := n - ~.give_way(queue_, ids_, places, now_);
      END IF;
      SELECT min(CASE WHEN n = cardinality(ids_) THEN now_ + u.delay ELSE (SELECT j.vesting
            FROM ~.jobs j WHERE j.queue = queue_ AND j.id = u.id AND j.deadline_from = now_) END)
        INTO vests FROM unnest(ids_, delays_) u(id, delay);
    END IF;
    IF n > 0 THEN
      done := ~.touch(queue_, shard_, vests, CASE WHEN at_ IS NULL THEN now_ END, own_);
      done := ~.count_jobs(queue_, shard_, n, 0, 0, 0, 0, own_);
    END IF;
    outcome := 0;
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
    PERFORM ~.guard(ARRAY(
      SELECT ~.key_name(3, queue_, uuid_send(u.id)) FROM unnest(ids_) u(id)));
  END IF;
  keyed := ARRAY(SELECT u.key FROM unnest(keys_, strategies_) u(key, strategy)
    WHERE u.strategy NOT IN (0, 3));
  unused := ~.lock_keys(5, queue_, keyed, at_) = cardinality(keyed);
  now_ := coalesce(at_, ~.clock());
  -- Nearly always all of the ids are new and all of the keys free: then there is nothing to lock, and
  -- all of them are added at once.
  fresh := cardinality(ids_) > 1 AND (SELECT count(DISTINCT u.id) = count(*) FROM unnest(ids_) u(id))
      AND (unused OR (SELECT count(DISTINCT u.key) = count(*) FROM unnest(keyed) u(key)))
      AND NOT EXISTS (SELECT 1 FROM unnest(ids_) u(id),
        LATERAL (SELECT 1 FROM ~.jobs j WHERE j.queue = queue_ AND j.id = u.id
                 UNION ALL SELECT 1 FROM ~.dead_letters d WHERE d.queue = queue_ AND d.id = u.id
                 UNION ALL SELECT 1 FROM ~.ended e WHERE e.queue = queue_ AND e.id = u.id
                 OFFSET 0) l)
      AND (unused OR NOT EXISTS (SELECT 1 FROM unnest(keyed) u(key),
        LATERAL (SELECT 1 FROM ~.possessor(queue_, u.key, now_) OFFSET 0) l));
  IF NOT fresh THEN
    PERFORM 1 FROM (
        SELECT u.id FROM unnest(ids_) u(id)
        UNION SELECT l.owner FROM unnest(keyed) u(key),
          LATERAL (SELECT p.owner FROM ~.possessor(queue_, u.key, now_) p OFFSET 0) l ORDER BY 1) f,
      LATERAL (SELECT 1 FROM ~.jobs j WHERE j.queue = queue_ AND j.id = f.id FOR UPDATE) j;
    now_ := coalesce(at_, ~.clock());
  END IF;
  n := 0;
  IF fresh THEN
    WITH added AS (
        INSERT INTO ~.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
            strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
          SELECT queue_, ids_[i], 0, kinds_[i], payloads_[i], keys_[i], priorities_[i],
              attempts_[i], strategies_[i], policies_[i], now_ + delays_[i], deadlines_[i],
              retentions_[i], now_, now_, headers_[i]
            FROM generate_series(1, cardinality(ids_)) i ORDER BY ids_[i]
          ON CONFLICT (queue, id) DO NOTHING RETURNING vesting, ctid)
      SELECT count(*), min(a.vesting), array_agg(a.ctid) INTO n, vests, places FROM added a;
    IF n > 0 THEN
      n := n - ~.give_way(queue_, ids_, places, now_);
    END IF;
    -- Where an id is there by now, without a key of these, its job is another one.
    PERFORM ~.take_key(queue_, false, keys_[i], ids_[i],
        CASE WHEN strategies_[i] = 5 THEN now_ + ttls_[i] END, NULL)
      FROM generate_series(1, cardinality(ids_)) i
      WHERE NOT unused AND strategies_[i] NOT IN (0, 3)
        AND (n = cardinality(ids_) OR EXISTS (SELECT 1 FROM ~.jobs j
          WHERE j.queue = queue_ AND j.id = ids_[i] AND j.unique_key = keys_[i]));
    INSERT INTO ~.keys SELECT queue_, false, keys_[i], ids_[i],
        CASE WHEN strategies_[i] = 5 THEN now_ + ttls_[i] END
      FROM generate_series(1, cardinality(ids_)) i
      WHERE unused AND strategies_[i] NOT IN (0, 3)
        AND (n = cardinality(ids_) OR EXISTS (SELECT 1 FROM ~.jobs j
          WHERE j.queue = queue_ AND j.id = ids_[i] AND j.unique_key = keys_[i]));
    IF n > 0 THEN
      done := ~.touch(queue_, shard_, vests, CASE WHEN at_ IS NULL THEN now_ END, own_);
      done := ~.count_jobs(queue_, shard_, n, 0, 0, 0, 0, own_);
    END IF;
    outcome := 0;
    FOR i IN 1 .. cardinality(ids_) LOOP
      RETURN NEXT;
    END LOOP;
    RETURN;
  END IF;
  FOR i IN 1 .. cardinality(ids_) LOOP
    outcome := 0; other := NULL;
    IF EXISTS (SELECT 1 FROM ~.jobs j WHERE j.queue = queue_ AND j.id = ids_[i]
        UNION ALL SELECT 1 FROM ~.dead_letters d WHERE d.queue = queue_ AND d.id = ids_[i]
        UNION ALL SELECT 1 FROM ~.ended e
          WHERE e.queue = queue_ AND e.id = ids_[i] AND e.kept > now_) THEN
      RETURN NEXT;
      CONTINUE;
    END IF;
    possessor := 0;
    IF strategies_[i] NOT IN (0, 3) THEN
      SELECT p.owner INTO other FROM ~.possessor(queue_, keys_[i], now_) p;
      IF FOUND THEN
        SELECT j.* INTO o FROM ~.jobs j WHERE j.queue = queue_ AND j.id = other
          AND j.unique_key = keys_[i] AND j.strategy NOT IN (0, 3);
        possessor := CASE WHEN NOT FOUND OR o.state <> 0 THEN 3
                          WHEN o.holder IS NOT NULL AND o.vesting > now_ THEN 2 ELSE 1 END;
        IF possessor = 1 THEN
          gives_way := ~.bury_unclaimable(o, now_);
          IF gives_way THEN
            buried := buried + 1;
            other := NULL;
          END IF;
          possessor := CASE WHEN gives_way THEN 0 WHEN gives_way IS NULL THEN 1 ELSE 3 END;
        END IF;
      END IF;
    END IF;
    IF possessor = 1 AND policies_[i] = 4 THEN
      outcome := 3;
      UPDATE ~.jobs j SET holder = NULL, sequence = 0, vesting = now_ + delays_[i],
          priority = priorities_[i] WHERE j.queue = queue_ AND j.id = o.id;
    ELSIF possessor = 0 OR (possessor = 1 AND policies_[i] = 3) THEN
      IF possessor = 1 THEN
        outcome := 2;
        PERFORM ~.end_job(o, 4::smallint, now_, NULL, NULL);
        cancelled := cancelled + 1;
      END IF;
      INSERT INTO ~.jobs (queue, id, state, kind, payload, unique_key, priority, max_attempts,
          strategy, policy, vesting, deadline, retention, enqueued, deadline_from, headers)
        VALUES (queue_, ids_[i], 0, kinds_[i], payloads_[i], keys_[i],
          priorities_[i], attempts_[i],
          strategies_[i], policies_[i], now_ + delays_[i], deadlines_[i], retentions_[i], now_,
          now_, headers_[i])
        ON CONFLICT (queue, id) DO NOTHING RETURNING ctid INTO place;
      GET DIAGNOSTICS added_ = ROW_COUNT;
      IF added_ = 1 THEN
        added_ := 1 - ~.give_way(queue_, ARRAY[ids_[i]], ARRAY[place], now_);
      END IF;
      n := n + added_;
      -- One that is there by now has a key of its own, or none, and would not free this one.
      IF added_ = 1 AND strategies_[i] NOT IN (0, 3) THEN
        PERFORM ~.take_key(queue_, false, keys_[i], ids_[i],
                           CASE WHEN strategies_[i] = 5 THEN now_ + ttls_[i] END, NULL);
      END IF;
    ELSE
      outcome := 1;
      RETURN NEXT;
      CONTINUE;
    END IF;
    vests := least(vests, now_ + delays_[i]);
    RETURN NEXT;
  END LOOP;
  IF vests IS NOT NULL THEN
    done := ~.touch(queue_, shard_, vests, CASE WHEN at_ IS NULL THEN now_ END, own_);
    done := ~.count_jobs(queue_, shard_, n, 0, cancelled, 0, buried, own_);
  END IF;
END $$;

CREATE FUNCTION ~.peek_jobs(queue_ bytea, limit_ integer, at_ bigint) RETURNS SETOF ~.job_row
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
  level smallint := -1;
  left_ integer := limit_;
  room bigint := 4194304;
  n integer;
  fits integer;
  bytes bigint;
BEGIN
  LOOP
    SELECT j.priority INTO level FROM ~.jobs j
      WHERE j.queue || '' = queue_ AND j.priority > level
      ORDER BY j.priority, j.vesting, j.id LIMIT 1;
    EXIT WHEN NOT FOUND OR left_ = 0;
    SELECT count(*), count(*) FILTER (WHERE s.upto <= room), max(s.upto)
      INTO n, fits, bytes
      FROM (SELECT sum({job_bytes}) OVER (ORDER BY j.vesting, j.id ROWS UNBOUNDED PRECEDING) AS upto
              FROM (SELECT k.* FROM ~.jobs k
                      WHERE k.queue || '' = queue_ AND k.priority = level AND k.vesting <= now_
                      ORDER BY k.vesting, k.id LIMIT left_) j) s;
    RETURN QUERY SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint, NULL::integer FROM ~.jobs j
      WHERE j.queue || '' = queue_ AND j.priority = level AND j.vesting <= now_
      ORDER BY j.vesting, j.id LIMIT fits;
    EXIT WHEN fits < n;
    left_ := left_ - n;
    room := room - coalesce(bytes, 0);
  END LOOP;
END $$;

CREATE FUNCTION ~.find_job(queue_ bytea, id_ uuid, at_ bigint) RETURNS SETOF ~.job_row
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
BEGIN
  RETURN QUERY SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint, NULL::integer FROM ~.jobs j
      WHERE j.queue = queue_ AND j.id = id_
    UNION ALL SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint, NULL::integer FROM ~.dead_letters j
      WHERE j.queue = queue_ AND j.id = id_
    UNION ALL SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint, NULL::integer FROM ~.ended j
      WHERE j.queue = queue_ AND j.id = id_ AND j.kept > now_;
END $$;

-- The last one may be more than fits the answer: it says that there are more.
CREATE FUNCTION ~.list_dead_letters(queue_ bytea, limit_ integer, after_ bigint, at_ bigint)
  RETURNS SETOF ~.job_row LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
  settled bigint := ~.settled_deaths();
BEGIN
  RETURN QUERY SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, j.death, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint, NULL::integer
    FROM (SELECT l.*, sum(l.size) OVER (ORDER BY l.death ROWS UNBOUNDED PRECEDING) AS upto
            FROM (SELECT j.*, {job_bytes} AS size FROM ~.dead_letters j
                    WHERE j.queue || '' = queue_ AND j.death > after_ AND j.death <= settled
                    ORDER BY j.death LIMIT limit_) l) j
    WHERE j.upto - j.size <= 4194304 ORDER BY j.death;
END $$;

CREATE FUNCTION ~.cancel_job(queue_ bytea, shard_ integer, id_ uuid, running_ boolean, own_ boolean,
    at_ bigint) RETURNS integer LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  j ~.jobs;
  how smallint;
  now_ bigint;
BEGIN
  LOOP
    SELECT k.* INTO j FROM ~.jobs k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
    now_ := coalesce(at_, ~.clock());
    EXIT WHEN FOUND;
    SELECT o.state INTO how
      FROM (SELECT NULL::smallint AS state FROM ~.jobs k WHERE k.queue = queue_ AND k.id = id_
            UNION ALL SELECT 3::smallint FROM ~.dead_letters d
              WHERE d.queue = queue_ AND d.id = id_
            UNION ALL SELECT e.state FROM ~.ended e
              WHERE e.queue = queue_ AND e.id = id_ AND e.kept > now_) o;
    IF NOT FOUND THEN
      RETURN 3;
    ELSIF how IS NOT NULL THEN  -- otherwise it was replayed in between
      RETURN CASE WHEN how = 4 THEN 0 ELSE 2 END;
    END IF;
  END LOOP;
  IF j.holder IS NOT NULL AND j.vesting > now_ AND NOT running_ THEN
    RETURN 1;
  END IF;
  -- This is rare, so that it need not be known whether the holder waits for it.
  IF j.holder IS NOT NULL AND j.vesting > now_ THEN
    PERFORM pg_notify(btrim('~', '"'), 'c' || encode(j.holder, 'hex'));
  END IF;
  PERFORM ~.end_job(j, 4::smallint, now_, NULL, NULL);
  PERFORM ~.count_jobs(queue_, shard_, 0, 0, 1, 0, 0, own_);
  RETURN 0;
END $$;

-- `other`: the job that has the unique key.
CREATE FUNCTION ~.replay_dead_letter(queue_ bytea, shard_ integer, id_ uuid, delay_ bigint,
    own_ boolean, at_ bigint, OUT outcome integer, OUT other uuid) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  j ~.dead_letters;
  was record;
  o ~.jobs;
  now_ bigint;
  buried integer := 0;
BEGIN
  LOOP
    SELECT k.strategy, k.unique_key INTO was FROM ~.dead_letters k
      WHERE k.queue = queue_ AND k.id = id_;
    IF was.strategy NOT IN (0, 3) THEN
      PERFORM ~.lock_keys(5, queue_, ARRAY[was.unique_key], at_);
      now_ := coalesce(at_, ~.clock());
      PERFORM 1 FROM ~.possessor(queue_, was.unique_key, now_) p,
        LATERAL (SELECT 1 FROM ~.jobs k WHERE k.queue = queue_ AND k.id = p.owner FOR UPDATE) l;
    END IF;
    SELECT k.* INTO j FROM ~.dead_letters k WHERE k.queue = queue_ AND k.id = id_ FOR UPDATE;
    now_ := coalesce(at_, ~.clock());
    -- Meanwhile it may have become another one, whose key is not locked.
    EXIT WHEN j.id IS NULL OR j.strategy = was.strategy AND j.unique_key = was.unique_key;
  END LOOP;
  IF j.id IS NULL THEN
    outcome := 2;
    RETURN;
  END IF;
  IF j.strategy NOT IN (0, 3) THEN
    SELECT p.owner INTO other FROM ~.possessor(queue_, j.unique_key, now_) p
      WHERE p.owner <> id_;
    IF FOUND THEN
      SELECT k.* INTO o FROM ~.jobs k WHERE k.queue = queue_ AND k.id = other
        AND k.unique_key = j.unique_key AND k.strategy NOT IN (0, 3);
      IF (o.state = 0 AND (o.holder IS NULL OR o.vesting <= now_)
          AND ~.bury_unclaimable(o, now_)) IS NOT TRUE THEN
        outcome := 1;
        RETURN;
      END IF;
      buried := 1;
      other := NULL;
    END IF;
    IF j.strategy <> 5 THEN
      PERFORM ~.take_key(queue_, false, j.unique_key, id_, NULL, NULL);
    END IF;
  END IF;
  INSERT INTO ~.jobs (queue, id, priority, state, strategy, policy, max_attempts, vesting, fence,
      unclaimed, enqueued, deadline_from, deadline, retention, unique_key, kind, payload, memo,
      reason, result, headers, progress, checkpoint)
    VALUES (j.queue, j.id, j.priority, 0, j.strategy, j.policy, j.max_attempts,
      now_ + delay_, j.fence, j.unclaimed, j.enqueued, now_, j.deadline, j.retention, j.unique_key,
      j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint);
  DELETE FROM ~.dead_letters k WHERE k.queue = queue_ AND k.id = id_;
  PERFORM ~.touch(queue_, shard_, now_ + delay_, CASE WHEN at_ IS NULL THEN now_ END, own_);
  IF buried = 0 THEN
    PERFORM ~.count_jobs(queue_, shard_, 0, 0, 0, 0, -1, own_);
  END IF;
  outcome := 0;
END $$;

CREATE FUNCTION ~.purge_job(queue_ bytea, shard_ integer, id_ uuid, own_ boolean, at_ bigint)
  RETURNS boolean LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  how smallint;
BEGIN
  DELETE FROM ~.dead_letters k WHERE k.queue = queue_ AND k.id = id_
    RETURNING 3::smallint INTO how;
  IF NOT FOUND THEN
    DELETE FROM ~.ended k WHERE k.queue = queue_ AND k.id = id_
      AND k.kept > coalesce(at_, ~.clock()) RETURNING k.state INTO how;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
  END IF;
  PERFORM ~.count_jobs(queue_, shard_, 0, -(how = 2)::integer, -(how = 4)::integer, 1,
                       -(how = 3)::integer, own_);
  RETURN true;
END $$;

-- Jobs in one state, by id, and where it went on, up to a thousand records are looked at. Where
-- there may be more, a last row without an id has, as its payload, the id after which to go on.
CREATE FUNCTION ~.list_jobs(queue_ bytea, state_ integer, limit_ integer, after_ uuid, at_ bigint)
  RETURNS SETOF ~.job_row LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
  room bigint := 4194304;
  j record;
  tail ~.job_row;
  page refcursor;
  ends uuid[];
  end_ uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';  -- how far it looks; at last, NULL: to all
  last_ uuid := after_;
  n integer := 0;
BEGIN
  IF state_ = 3 THEN
    OPEN page FOR SELECT k.* FROM ~.dead_letters k WHERE k.queue = queue_ AND k.id > after_
      ORDER BY k.id LIMIT limit_ + 1;
  ELSIF state_ IN (0, 1) THEN
    ends := ARRAY(SELECT k.id FROM ~.jobs k WHERE k.queue = queue_ AND k.id > after_
                    ORDER BY k.id OFFSET 999 LIMIT 2);
    OPEN page FOR SELECT k.* FROM ~.jobs k WHERE k.queue = queue_ AND k.id > after_
        AND k.id <= CASE WHEN cardinality(ends) = 2 THEN ends[1] ELSE end_ END
        AND k.state = 0
        AND (k.holder IS NOT NULL AND k.vesting > now_) = (state_ = 1)
      ORDER BY k.id LIMIT limit_ + 1;
  ELSE
    ends := ARRAY(SELECT k.id FROM ~.ended k WHERE k.queue = queue_ AND k.id > after_
                    ORDER BY k.id OFFSET 999 LIMIT 2);
    OPEN page FOR SELECT k.* FROM ~.ended k WHERE k.queue = queue_ AND k.id > after_
        AND k.id <= CASE WHEN cardinality(ends) = 2 THEN ends[1] ELSE end_ END
        AND k.state = state_ AND k.kept > now_
      ORDER BY k.id LIMIT limit_ + 1;
  END IF;
  end_ := CASE WHEN cardinality(ends) = 2 THEN ends[1] END;
  LOOP
    FETCH page INTO j;
    EXIT WHEN NOT FOUND;
    room := room - {job_bytes};
    IF n = limit_ OR room < 0 AND n > 0 THEN
      end_ := last_;
      EXIT;
    END IF;
    n := n + 1;
    last_ := j.id;
    RETURN QUERY SELECT now_, j.id, j.priority, j.state, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting, NULL::bigint, j.fence, j.enqueued, j.deadline_from, j.deadline, j.holder, j.unique_key, j.kind, j.payload, j.memo, j.reason, j.result, j.headers, j.progress, j.checkpoint, NULL::integer;
  END LOOP;
  CLOSE page;
  IF end_ IS NOT NULL THEN
    tail.payload := uuid_send(end_);
    RETURN NEXT tail;
  END IF;
END $$;
)sql";

inline constexpr char leases[] = R"sql(
-- Can a line be counted with?
CREATE FUNCTION ~.counts_line(live_ integer, waiting_ integer, turn_ bigint, fence_ bigint)
  RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN least(live_, waiting_, turn_, fence_) >= 0
    AND greatest(turn_, fence_) < 4611686018427387904;

-- When a row that is made now is to be looked at for the first time.
CREATE FUNCTION ~.first_due(lasts_ bigint, at_ bigint) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN coalesce(at_, ~.clock()) + least(lasts_, 60000000000);

-- Locks a key's line and then reads the time (F19) and ends what is over. It makes one, unless
-- `lasts_` is NULL, for something that lasts so long. It looks only at what the line says may be over,
-- unless it is to look at everything.
CREATE FUNCTION ~.open_line(key_ bytea, at_ bigint, lasts_ bigint, everything_ boolean,
    OUT now bigint, OUT live integer, OUT waiting integer, OUT turn bigint, OUT fence bigint,
    OUT soonest bigint, OUT head bigint, OUT oldest bigint, OUT place tid, OUT ended integer)
  LANGUAGE plpgsql AS $$
DECLARE
  hurries boolean := ~.hurry();
  gone_ record;
BEGIN
  ended := 0;
  LOOP
    SELECT l.live, l.waiting, l.turn, l.fence, l.soonest, l.head, l.oldest, l.ctid
      INTO live, waiting, turn, fence, soonest, head, oldest, place
      FROM ~.permit_lines l WHERE l.key = key_ ORDER BY l.number DESC LIMIT 1 FOR UPDATE;
    IF FOUND THEN
      IF everything_ THEN
        soonest := -9223372036854775808; head := 0; oldest := 0;
      END IF;
      EXIT WHEN CASE WHEN ~.counts_line(live, waiting, turn, fence)
        THEN head <= turn + 1 AND oldest <= fence + 1 END;
      RAISE SQLSTATE 'WEIR2' USING MESSAGE = 'weir: a damaged line of permits';
    END IF;
    IF lasts_ IS NULL THEN
      now := coalesce(at_, ~.clock());
      RETURN;
    END IF;
    CONTINUE WHEN NOT ~.may_make(1, key_);
    IF NOT EXISTS (SELECT 1 FROM ~.permit_lines l WHERE l.key = key_) THEN
      INSERT INTO ~.permit_lines AS l (key, live, waiting, turn, fence, soonest, due)
        VALUES (key_, 0, 0, 0, 0, 9223372036854775807, ~.first_due(lasts_, at_))
        RETURNING l.ctid INTO place;
      live := 0; waiting := 0; turn := 0; fence := 0; soonest := 9223372036854775807;
      head := 0; oldest := 0;
      EXIT;
    END IF;
  END LOOP;
  now := coalesce(at_, ~.clock());
  IF now < soonest THEN
    RETURN;
  END IF;
  WITH gone AS (DELETE FROM ~.permits p
      WHERE p.key || '' = key_ AND p.until + 0 BETWEEN soonest AND now RETURNING p.ticket)
    SELECT count(*) FILTER (WHERE NOT gone.ticket) AS permits,
           count(*) FILTER (WHERE gone.ticket) AS tickets INTO gone_ FROM gone;
  live := live - gone_.permits;
  waiting := waiting - gone_.tickets;
  ended := gone_.permits + gone_.tickets;
  soonest := coalesce((SELECT p.until FROM ~.permits p WHERE p.key || '' = key_
      AND p.until + 0 > now ORDER BY p.until + 0 LIMIT 1), 9223372036854775807);
END $$;

-- The topic by which a holder is told that its turn has come. Every role of the database may listen;
-- the secret keeps it from finding out whether a key that it guesses is in use.
CREATE FUNCTION ~.turn_topic(key_ bytea, holder_ bytea) RETURNS text LANGUAGE sql STABLE
  RETURN 'p' || left(encode(sha256(uuid_send((SELECT s.secret FROM ~.state s))
                                   || int4send(octet_length(key_)) || key_ || holder_), 'hex'), 32);

-- After so many places became free: tells those whose turn has come by it, and hardly anybody else:
-- who was to be told before has been. Where limits differ it looks at the first ones of the line. Which turn
-- the first of them has.
CREATE FUNCTION ~.call_next(key_ bytea, head_ bigint, live_ integer, freed_ integer)
  RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  turns integer;
  first bigint;
BEGIN
  SELECT p.top - live_, p.number INTO turns, first FROM ~.permits p
    WHERE p.key || 't' = key_ || 't' AND p.ticket AND p.number >= head_
    ORDER BY p.number LIMIT 1;
  PERFORM pg_notify(btrim('~', '"'), ~.turn_topic(key_, n.holder))
    FROM (SELECT f.holder, f.listens, live_ + row_number() OVER () - 1 AS before, f.top
            FROM (SELECT p.holder, p.listens, p.top FROM ~.permits p
                WHERE p.key || 't' = key_ || 't' AND p.ticket AND p.number >= first
                ORDER BY p.number LIMIT greatest(turns, 8)) f) n
    WHERE n.listens AND n.before BETWEEN n.top - freed_ AND n.top - 1;
  RETURN first;
END $$;

-- Leaves the line as it is now, and says who is next if places became free. It is changed whenever
-- something ends sooner than it would have: a REPEATABLE READ transaction that sees less is refused.
CREATE FUNCTION ~.close_line(key_ bytea, place_ tid, live_ integer, waiting_ integer,
    turn_ bigint, fence_ bigint, soonest_ bigint, head_ bigint, oldest_ bigint, freed_ integer)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF waiting_ = 0 THEN
    head_ := turn_ + 1;
  ELSIF freed_ > 0 THEN
    head_ := coalesce(~.call_next(key_, head_, live_, freed_), 0);  -- 0: it was damaged
  END IF;
  IF live_ = 0 THEN
    oldest_ := fence_ + 1;
  ELSIF freed_ > 0 THEN
    oldest_ := coalesce((SELECT p.number FROM ~.permits p
      WHERE p.key || 'p' = key_ || 'p' AND NOT p.ticket AND p.number >= oldest_
      ORDER BY p.number LIMIT 1), 0);
  END IF;
  UPDATE ~.permit_lines l SET live = live_, waiting = waiting_, turn = turn_, fence = fence_,
      soonest = soonest_, head = head_, oldest = oldest_, uses = ~.next_use(l.uses),
      number = ~.next_use(l.uses) >> 5
    WHERE l.ctid = place_ AND (l.live <> live_ OR l.waiting <> waiting_ OR l.turn <> turn_
      OR l.fence <> fence_ OR l.soonest <> soonest_ OR l.head <> head_ OR l.oldest <> oldest_);
END $$;

-- Steps of one key, of any holders, one after the other: the line is locked once for all of them.
-- Acquired: whether it was granted, and its grant. Renewed: false: the lease is lost. Released:
-- whether a permit was freed, and (place) whether a ticket was given up.
CREATE FUNCTION ~.permit_steps(key_ bytea, steps_ integer[], holders_ bytea[], fences_ bigint[],
    limits_ integer[], ttls_ bigint[], patiences_ bigint[], listens_ boolean, at_ bigint)
  RETURNS TABLE (done boolean, fence bigint, expires_in bigint, in_use integer, place integer,
    retry_after bigint) LANGUAGE plpgsql {function_settings} AS $$
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
  l := ~.open_line(key_, at_, CASE WHEN 0 = ANY (steps_)
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
      SELECT p.ticket, p.number, p.until INTO waits, number_, until_ FROM ~.permits p
        WHERE p.key = key_ AND p.holder = holders_[i];
      known := FOUND;
    END IF;
    IF steps_[i] = 1 THEN
      IF known AND NOT waits AND number_ = fences_[i] THEN
        UPDATE ~.permits p SET until = l.now + ttls_[i]
          WHERE p.key = key_ AND p.holder = holders_[i];
        l.turn := l.turn + (l.now + ttls_[i] < until_)::integer;
        l.soonest := least(l.soonest, l.now + ttls_[i]);
        done := true; expires_in := ttls_[i];
      END IF;
    ELSIF steps_[i] = 2 THEN
      IF known AND (fences_[i] = 0 OR NOT waits AND number_ = fences_[i]) THEN
        DELETE FROM ~.permits p WHERE p.key = key_ AND p.holder = holders_[i];
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
        SELECT count(*) INTO ahead FROM ~.permits p
          WHERE p.key || 't' = key_ || 't' AND p.ticket
            AND p.number >= l.head AND p.number < number_;
      END IF;
      IF l.live + ahead < limits_[i] THEN
        fence := ~.next_fence(l.now, l.fence);
        INSERT INTO ~.permits VALUES (key_, holders_[i], false, fence, l.now + ttls_[i])
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
          INSERT INTO ~.permits VALUES (key_, holders_[i], true, l.turn, l.now + patiences_[i],
              limits_[i], listens_)
            ON CONFLICT (key, holder) DO UPDATE SET until = excluded.until, top = excluded.top,
              listens = excluded.listens;
          l.turn := l.turn + (known AND l.now + patiences_[i] < until_)::integer;
          l.soonest := least(l.soonest, l.now + patiences_[i]);
        ELSE
          IF known THEN
            DELETE FROM ~.permits p WHERE p.key = key_ AND p.holder = holders_[i];
            l.waiting := l.waiting - 1;
            freed := freed + 1;
          END IF;
          ahead := l.waiting;  -- whoever comes without a place comes last
        END IF;
        k := l.live + ahead - limits_[i];
        -- One of the first to end is met soon in the order of ends, unless many wait, which are in it,
        -- too. Of a few permits all are read: that order also has what is dead (F79).
        IF k + l.waiting < l.live / 64 THEN
          SELECT p.until INTO ends FROM ~.permits p
            WHERE p.key || '' = key_ AND NOT p.ticket AND p.until + 0 >= l.soonest
            ORDER BY p.until + 0 OFFSET k LIMIT 1;
        ELSIF k < l.live THEN
          SELECT p.until INTO ends FROM ~.permits p
            WHERE p.key || 'p' = key_ || 'p' AND NOT p.ticket AND p.number >= l.oldest
            ORDER BY p.until + 0 OFFSET k LIMIT 1;
        ELSE
          SELECT p.until INTO ends FROM ~.permits p
            WHERE p.key || '' = key_ AND p.holder <> holders_[i] ORDER BY p.until + 0 DESC LIMIT 1;
        END IF;
        retry_after := ends - l.now;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF l.live IS NOT NULL THEN
    PERFORM ~.close_line(key_, l.place, l.live, l.waiting, l.turn, l.fence, l.soonest, l.head,
                            l.oldest, freed);
  END IF;
END $$;

-- Has each of these holders reason to ask again? `due`: it is its turn, or it is not in line. `due_in`:
-- when the first lease or ticket before it ends; NULL: it stands so far back that no single end can
-- make it its turn, and those before it watch the time. `topic_`: the topic by which it is told.
CREATE FUNCTION ~.await_permits(keys_ bytea[], holders_ bytea[], at_ bigint)
  RETURNS TABLE (due boolean, due_in bigint, topic_ text)
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
  o record;
  l record;
BEGIN
  FOR i IN 1 .. cardinality(keys_) LOOP
    SELECT p.number, p.top INTO o FROM ~.permits p
      WHERE p.key = keys_[i] AND p.holder = holders_[i] AND p.ticket AND (p.until > now_) IS TRUE;
    due := NOT FOUND; due_in := NULL; topic_ := ~.turn_topic(keys_[i], holders_[i]);
    IF NOT due THEN
      SELECT w.head, w.oldest INTO l FROM ~.permit_lines w
        WHERE w.key = keys_[i] ORDER BY w.number DESC LIMIT 1;
      SELECT count(*) < o.top, CASE WHEN count(*) < o.top + 9 THEN min(f.until) - now_ END
        INTO due, due_in
        FROM ((SELECT p.until FROM ~.permits p
                WHERE p.key || 'p' = keys_[i] || 'p' AND NOT p.ticket
                  AND p.number >= l.oldest AND p.until > now_ ORDER BY p.number LIMIT o.top + 9)
            UNION ALL (SELECT p.until FROM ~.permits p
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
CREATE FUNCTION ~.inspect_permits(key_ bytea, limit_ integer, at_ bigint)
  RETURNS TABLE (holder bytea, number bigint, expires_in bigint)
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
BEGIN
  RETURN QUERY SELECT a.* FROM (
      SELECT NULL::bytea AS who, count(*) FILTER (WHERE NOT p.ticket) AS by,
          count(*) FILTER (WHERE p.ticket) AS lasts
        FROM ~.permits p WHERE p.key = key_ AND p.until > now_
      UNION ALL (SELECT p.holder, p.number, p.until - now_ FROM ~.permits p
        WHERE p.key = key_ AND NOT p.ticket AND p.until > now_ ORDER BY p.number LIMIT limit_)) a
    ORDER BY a.who IS NOT NULL, a.by;
END $$;

CREATE FUNCTION ~.acquire_lock(key_ bytea, holder_ bytea, ttl_ bigint, at_ bigint,
    OUT granted boolean, OUT fence bigint, OUT expires_in bigint, OUT holder bytea)
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  l record;
  now_ bigint;
BEGIN
  LOOP
    SELECT k.holder, k.fence, k.until, k.ctid AS place INTO l FROM ~.locks k
      WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
    EXIT WHEN FOUND;
    CONTINUE WHEN NOT ~.may_make(2, key_);
    IF NOT EXISTS (SELECT 1 FROM ~.locks k WHERE k.key = key_) THEN
      INSERT INTO ~.locks (key, due, holder, fence, until)
        VALUES (key_, ~.first_due(ttl_, at_), '', 0, -9223372036854775808);
    END IF;
  END LOOP;
  now_ := coalesce(at_, ~.clock());
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
  fence := ~.next_fence(now_, l.fence); expires_in := ttl_;
  UPDATE ~.locks k SET holder = holder_, fence = acquire_lock.fence, until = now_ + ttl_,
      uses = ~.next_use(k.uses), number = ~.next_use(k.uses) >> 5
    WHERE k.ctid = l.place;
END $$;

CREATE FUNCTION ~.renew_lock(key_ bytea, holder_ bytea, fence_ bigint, ttl_ bigint, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  l record;
  now_ bigint;
BEGIN
  SELECT k.holder, k.fence, k.until, k.ctid AS place INTO l FROM ~.locks k
    WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
  now_ := coalesce(at_, ~.clock());
  IF (l.holder = holder_ AND l.fence = fence_ AND l.until > now_ AND fence_ <> 0) IS NOT TRUE THEN
    RETURN NULL;
  END IF;
  UPDATE ~.locks k SET until = now_ + ttl_, uses = ~.next_use(k.uses), number = ~.next_use(k.uses) >> 5
    WHERE k.ctid = l.place;
  RETURN ttl_;
END $$;

CREATE FUNCTION ~.release_lock(key_ bytea, holder_ bytea, fence_ bigint, at_ bigint)
  RETURNS boolean LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  l record;
BEGIN
  SELECT k.holder, k.fence, k.until, k.ctid AS place INTO l FROM ~.locks k
    WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1 FOR UPDATE;
  IF (l.holder = holder_ AND (fence_ = 0 OR l.fence = fence_)) IS NOT TRUE THEN
    RETURN false;
  END IF;
  UPDATE ~.locks k SET holder = '', until = -9223372036854775808, uses = ~.next_use(k.uses),
      number = ~.next_use(k.uses) >> 5
    WHERE k.ctid = l.place;
  RETURN coalesce(at_, ~.clock()) < l.until;
END $$;

CREATE FUNCTION ~.inspect_lock(key_ bytea, at_ bigint,
    OUT holder bytea, OUT fence bigint, OUT expires_in bigint)
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
BEGIN
  SELECT k.holder, k.fence, CASE WHEN k.until > now_ THEN k.until - now_ END
    INTO holder, fence, expires_in
    FROM ~.locks k WHERE k.key = key_ ORDER BY k.number DESC LIMIT 1;
  IF expires_in IS NULL THEN
    holder := NULL; fence := NULL;
  END IF;
END $$;
)sql";

inline constexpr char own_schema[] = R"sql(
SET LOCAL search_path = pg_catalog, pg_temp;
DO $$
DECLARE
  r name;
BEGIN
  SELECT o.rolname INTO r FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner
    JOIN pg_database d ON d.datname = current_database()
    JOIN pg_roles me ON me.rolname = current_user
    WHERE n.nspname = btrim('~', '"') AND NOT (o.oid IN (me.oid, d.datdba) OR o.rolsuper
      OR NOT me.rolsuper AND pg_has_role(o.oid, 'USAGE'));
  IF FOUND THEN
    RAISE SQLSTATE 'WEIR1' USING MESSAGE =
      format('weir: the schema %I belongs to the role %I', btrim('~', '"'), r);
  END IF;
END $$;
)sql";

inline constexpr char past[] = R"sql(
-- Dead letters, in the order in which they died.
CREATE TABLE ~.dead_letters (
  LIKE ~.jobs INCLUDING DEFAULTS,
  death     bigint NOT NULL,
  PRIMARY KEY (queue, id)
) WITH ({hot_table});
CREATE INDEX dead_letters_order ON ~.dead_letters ((queue || ''), death);  -- see permits

-- Records that are kept until their retention is over, and the ids of their jobs with them. Then
-- they are removed in steps (see tidy).
CREATE TABLE ~.ended (
  LIKE ~.jobs INCLUDING DEFAULTS,
  kept      bigint NOT NULL,
  PRIMARY KEY (queue, id)
) WITH ({ended_table});
CREATE INDEX ended_kept ON ~.ended ((kept + 0));  -- see permits
)sql";

inline constexpr char pointers[] = R"sql(
-- The number of the scan that finds the queue: those of schedules have one of their own.
CREATE FUNCTION ~.scan_of(queue_ bytea, shard_ integer) RETURNS integer LANGUAGE sql IMMUTABLE
  RETURN shard_ + CASE WHEN substring(queue_ FROM 1 FOR 15) = decode('776569722e7363686564756c65732f', 'hex')
                    THEN 1024 ELSE 0 END;

-- A queue's first pointer up to a time, and before which time it was not looked for.
CREATE FUNCTION ~.first_pointer(queue_ bytea, upto_ bigint, now_ bigint, OUT first bigint,
    OUT from_ bigint) LANGUAGE plpgsql AS $$
DECLARE
  f bigint[] := ~.floors(~.queue_lock(queue_) # 1, now_);
  since_ pg_snapshot;
  began_ timestamptz;
  kept boolean;
BEGIN
  from_ := coalesce(CASE WHEN now_ < f[4] THEN f[11] END, -9223372036854775808);
  IF ~.to_be_raised(f, now_, true) THEN
    since_ := pg_current_snapshot();
    began_ := clock_timestamp();
  END IF;
  SELECT p.pointer INTO first FROM ~.pointers p
    WHERE p.queue || '' = queue_ AND p.pointer + 0 >= from_ AND p.pointer + 0 <= upto_
    ORDER BY p.pointer + 0 LIMIT 1;
  IF since_ IS NOT NULL THEN
    kept := ~.raise_floors(f, '{0}', ARRAY[coalesce(first, upto_)], now_, since_, began_);
  END IF;
END $$;

-- A job of the queue vests at `vesting_`. A pointer that others have is relied on only where it
-- cannot be removed before this step is committed; otherwise the step adds its own (F41, F48).
-- Returns whether it did. (A function that returns something is called for less by an assignment
-- than by PERFORM, which is a statement to execute.) `now_`: when the step began; NULL: by a clock
-- of somebody else's.
CREATE FUNCTION ~.touch(queue_ bytea, shard_ integer, vesting_ bigint, now_ bigint, own_ boolean)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  scan_ integer;
  held_until bigint;
BEGIN
  IF (vesting_ >= now_) IS NOT TRUE THEN  -- it may come below a floor
    PERFORM nextval('~.returned');
  END IF;
  IF own_ AND ~.sees_all() AND pg_try_advisory_xact_lock_shared(~.queue_lock(queue_)) THEN
    IF (~.first_pointer(queue_, vesting_, now_)).first IS NOT NULL THEN
      RETURN false;
    END IF;
    -- A hold that ends sooner than is seen here brings its own pointer (see end_hold).
    SELECT CASE WHEN q.paused THEN 9223372036854775807 ELSE q.snoozed END INTO held_until
      FROM ~.queues q WHERE q.queue = queue_;
    IF held_until > vesting_
        AND (~.first_pointer(queue_, held_until, now_)).first IS NOT NULL THEN
      RETURN false;
    END IF;
  END IF;
  scan_ := ~.scan_of(queue_, shard_);
  INSERT INTO ~.pointers VALUES (scan_, vesting_, queue_);
  PERFORM ~.tell('j' || scan_, own_);
  RETURN true;
END $$;

-- The first job of each level that is in use, one probe for each.
CREATE FUNCTION ~.all_heads(queue_ bytea) RETURNS TABLE (priority integer, vesting bigint)
  LANGUAGE sql STABLE BEGIN ATOMIC
  WITH RECURSIVE heads AS (
      (SELECT j.priority, j.vesting FROM ~.jobs j
         WHERE j.queue || '' = queue_
         ORDER BY j.priority, j.vesting, j.id LIMIT 1)
    UNION ALL
      SELECT n.priority, n.vesting FROM heads h, LATERAL (
        SELECT j.priority, j.vesting FROM ~.jobs j
          WHERE j.queue || '' = queue_ AND j.priority > h.priority
          ORDER BY j.priority, j.vesting, j.id LIMIT 1) n)
    SELECT h.priority::integer, h.vesting FROM heads h;
END;

-- The same from the floors on: one probe for each level, and one for what is between two that have a
-- floor. Of those that have one only jobs up to a time. And the first of all.
CREATE FUNCTION ~.level_heads(queue_ bytea, floors_ bigint[], upto_ bigint, OUT levels integer[],
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
      FROM ~.all_heads(queue_) h;
    RETURN;
  END IF;
  LOOP
    known := coalesce(floors_[n], 32768);
    WHILE below + 1 < known LOOP
      SELECT j.priority, j.vesting INTO level, first FROM ~.jobs j
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
    SELECT j.vesting INTO first FROM ~.jobs j
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
CREATE FUNCTION ~.move_pointers(queues_ bytea[], shards_ integer[], froms_ bigint[],
    thens_ bigint[], now_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  alone integer[];  -- the queues that it has to itself, once for each pointer
  seen tid[];
  times bigint[];
  leasts bigint[];
  until_ bigint;
BEGIN
  IF NOT ~.sees_all() THEN
    RETURN false;
  END IF;
  SELECT array_agg(q.n), array_agg(p.place), array_agg(p.pointer) INTO alone, seen, times
    FROM (SELECT u.queue, u.n FROM unnest(queues_) WITH ORDINALITY u(queue, n)
            WHERE pg_try_advisory_xact_lock(~.queue_lock(u.queue)) OFFSET 0) q
      LEFT JOIN LATERAL (SELECT p.ctid AS place, p.pointer FROM ~.pointers p
        WHERE p.queue || '' = q.queue AND p.pointer + 0 >= froms_[q.n]
          AND p.pointer + 0 <= coalesce(thens_[q.n], 9223372036854775807) LIMIT 1000) p ON true;
  until_ := CASE WHEN now_ IS NOT NULL THEN ~.clock() END;  -- somebody may have enqueued since now_
  leasts := ARRAY(SELECT CASE WHEN l.least IS NOT NULL THEN greatest(l.least, l.held_until) END
    FROM (SELECT u.n, u.held_until, CASE WHEN u.n <> ALL (alone) IS NOT FALSE THEN NULL
        WHEN u.then_ IS NOT NULL
          THEN least(u.then_, (~.level_heads(u.queue, u.f, until_)).least_)
        WHEN now_ < u.f[4] AND u.f[10] IS NOT NULL AND ~.top_floor(u.f) <=
            (SELECT min(s.pointer) FROM unnest(alone, times) s(n, pointer) WHERE s.n = u.n)
          THEN (~.level_heads(u.queue, u.f, 9223372036854775807)).least_
        ELSE (SELECT min(h.vesting) FROM ~.all_heads(u.queue) h) END AS least
      FROM (SELECT o.*, ~.floors(~.queue_lock(o.queue), now_) AS f,
                (SELECT CASE WHEN q.paused THEN 9223372036854775807 ELSE q.snoozed END
                   FROM ~.queues q WHERE q.queue = o.queue) AS held_until
              FROM unnest(queues_, thens_) WITH ORDINALITY o(queue, then_, n)) u OFFSET 0) l
    ORDER BY l.n);
  IF now_ IS NULL AND EXISTS (SELECT 1 FROM unnest(leasts) l(least) WHERE l.least < ~.clock()) THEN
    PERFORM pg_current_xact_id();
    PERFORM nextval('~.returned');  -- it may come below a floor
  END IF;
  WITH gone AS (DELETE FROM ~.pointers p USING unnest(seen, alone) s(place, n)
      WHERE p.ctid = s.place AND p.pointer IS DISTINCT FROM leasts[s.n]
        AND (thens_[s.n] IS NULL OR p.pointer <= until_))
    INSERT INTO ~.pointers SELECT ~.scan_of(u.queue, u.shard), u.least, u.queue
      FROM unnest(queues_, shards_, leasts, froms_, thens_) u(queue, shard, least, first, then_)
      WHERE u.least IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ~.pointers p
        WHERE p.queue || '' = u.queue AND p.pointer + 0 >= u.first AND p.pointer + 0 <= u.least
          AND (p.pointer = u.least OR u.then_ IS NOT NULL AND p.pointer > until_
            OR NOT p.ctid = ANY (coalesce(seen, '{}'))) OFFSET 0);
  RETURN alone IS NOT NULL;
END $$;

-- A queue is held for less long than before, until `until_`, or not at all. A step that is not
-- committed yet may rely on the pointer at the end that the hold had. So where somebody enqueues, or
-- may, the queue is due as if it had a job by then.
CREATE FUNCTION ~.end_hold(queue_ bytea, shard_ integer, until_ bigint, own_ boolean, at_ bigint)
  RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
BEGIN
  IF (CASE WHEN own_ THEN ~.move_pointers(ARRAY[queue_], ARRAY[shard_],
      '{-9223372036854775808}', ARRAY[NULL]::bigint[], NULL) END) IS NOT TRUE THEN
    PERFORM ~.touch(queue_, shard_, greatest(now_, until_), CASE WHEN at_ IS NULL THEN now_ END,
                       own_);
  END IF;
END $$;

-- The first look of a dequeue: the levels that are in use, and the first job of each. The time was read
-- before it.
CREATE FUNCTION ~.look(queue_ bytea, f bigint[], now_ bigint, own_ boolean, OUT levels integer[],
    OUT firsts bigint[]) LANGUAGE plpgsql AS $$
DECLARE
  since_ pg_snapshot;
  began_ timestamptz;
  kept boolean;
BEGIN
  IF ~.to_be_raised(f, now_, own_) THEN
    since_ := pg_current_snapshot();
    began_ := clock_timestamp();
  END IF;
  SELECT h.levels, h.firsts INTO levels, firsts
    FROM ~.level_heads(queue_, CASE WHEN now_ < f[4] THEN f END, now_) h;
  IF since_ IS NOT NULL THEN
    kept := ~.raise_floors(f, levels, firsts, now_, since_, began_);
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
CREATE FUNCTION ~.rest(queue_ bytea, f bigint[], now_ bigint, lease_ bigint, claimed_ integer,
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
    least_ := (~.level_heads(queue_, CASE WHEN now_ < f[4] THEN f END, 9223372036854775807)).least_;
  ELSIF now_ < f[6] THEN
    latest := then_;
    then_ := least(then_, greatest(f[6], now_ + 100000000));
    least_ := least(then_, (~.level_heads(queue_, f, now_)).least_);
  ELSE
    began_ := clock_timestamp();
    least_ := least(then_, (~.level_heads(queue_, f, 9223372036854775807)).least_);
    took_ := ~.took(began_);
    f[6] := now_ + CASE WHEN took_ > 200000 THEN least(took_ * 30, 1000000000) ELSE 0 END;
    then_ := least_;
    latest := then_;
  END IF;
  visible := coalesce(least_ <= now_, false);
  IF f[10] IS NOT NULL THEN
    kept := ~.keep_floors(f);
  END IF;
  moves := false;
  IF own_ AND NOT visible THEN
    SELECT p.first, p.from_ INTO first, from_
      FROM ~.first_pointer(queue_, 9223372036854775807, CASE WHEN f IS NOT NULL THEN now_ END) p;
    IF then_ IS NOT NULL AND first > now_ THEN
      least_ := least(least_, first);
    END IF;
    moves := first IS NOT NULL AND CASE WHEN then_ IS NOT NULL THEN first <= now_ OR first > latest
      ELSE first IS DISTINCT FROM least_ OR EXISTS (SELECT 1 FROM ~.pointers p
        WHERE p.queue || '' = queue_ AND p.pointer + 0 >= first
          AND p.pointer IS DISTINCT FROM least_) END;
  END IF;
END $$;

CREATE FUNCTION ~.min_vesting_time(queue_ bytea, at_ bigint) RETURNS bigint
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
  f bigint[];
BEGIN
  IF at_ IS NULL AND ~.sees_all() THEN
    f := ~.floors(~.queue_lock(queue_), now_);
  END IF;
  RETURN ~.span((~.level_heads(queue_, CASE WHEN now_ < f[4] THEN f END,
    9223372036854775807)).least_, now_);
END $$;

CREATE FUNCTION ~.update_queue_pointer(queue_ bytea, shard_ integer, own_ boolean, at_ bigint)
  RETURNS bigint LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
BEGIN
  IF own_ THEN
    PERFORM ~.move_pointers(ARRAY[queue_], ARRAY[shard_], '{-9223372036854775808}', ARRAY[NULL]::bigint[], NULL);
  END IF;
  RETURN ~.span((SELECT min(h.vesting) FROM ~.all_heads(queue_) h), now_);
END $$;

-- May a step that only reads change something by the way? Not where its transaction has begun before,
-- as an application's may have, or sees what was then.
CREATE FUNCTION ~.may_write() RETURNS boolean LANGUAGE sql STABLE
  RETURN pg_current_xact_id_if_assigned() IS NULL
    AND NOT current_setting('transaction_read_only')::boolean
    AND ~.sees_all();

-- Of the pointers of each queue that are over, the first one is enough (F77): applications' enqueues
-- leave one each. It has the queue to itself before it looks for the first one, so that nobody moves
-- that one; and who relies on another of them has the queue, too.
CREATE FUNCTION ~.fold_pointers(queues_ bytea[], now_ bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  alone bytea[] := ARRAY(SELECT u.queue FROM unnest(queues_) u(queue)
    WHERE pg_try_advisory_xact_lock(~.queue_lock(u.queue)));
BEGIN
  DELETE FROM ~.pointers p WHERE p.ctid = ANY (ARRAY(SELECT k.place
    FROM unnest(alone) u(queue), LATERAL (SELECT o.ctid AS place FROM ~.pointers o
      WHERE o.queue || '' = u.queue AND o.pointer + 0 <= now_
      ORDER BY o.pointer + 0 OFFSET 1) k LIMIT 10000));
END $$;

-- Where the first pointer of a scan is, or no pointer before it. `now_` NULL: no floor is known. A scan
-- has no number of a transaction, and takes one only where a higher floor saves it something.
CREATE FUNCTION ~.scan_from(scan_ integer, now_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  f bigint[] := ~.floors(-1 - scan_, now_);
  from_ bigint := coalesce(CASE WHEN now_ < f[4] THEN f[11] END, -9223372036854775808);
  first bigint;
  since_ pg_snapshot := pg_current_snapshot();
  began_ timestamptz := clock_timestamp();
  kept boolean;
BEGIN
  SELECT p.pointer INTO first FROM ~.pointers p WHERE p.scan = scan_ AND p.pointer >= from_
    ORDER BY p.pointer, p.queue LIMIT 1;
  IF ~.to_be_raised(f, now_, ~.may_write())
      AND (now_ >= f[5] + 10000000000 OR ~.took(began_) > 100000) THEN
    kept := ~.raise_floors(f, '{0}', ARRAY[first], now_, since_, began_);
  END IF;
  RETURN coalesce(first, from_);
END $$;

-- First, with no queue, when the next pointer after these is due.
CREATE FUNCTION ~.scan_visible_queues(scan_ integer, limit_ integer, entropy_ bigint, at_ bigint)
  RETURNS TABLE (queue bytea, next_in bigint) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  writes_ boolean := ~.may_write();  -- before the time is read, which may be noted
  now_ bigint := coalesce(at_, ~.clock());
  from_ bigint := ~.scan_from(scan_, CASE WHEN at_ IS NULL THEN now_ END);
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
  room integer := 4194304;
BEGIN
  start := first;
  IF now_ > first THEN
    start := first + floor((now_ - first)
      * (entropy_::numeric + CASE WHEN entropy_ < 0 THEN 18446744073709551616 ELSE 0 END)
      / 18446744073709551616)::bigint;
  END IF;
  FOR p IN
    (SELECT k.pointer, k.queue AS name, q.paused, q.snoozed, q.shard
       FROM ~.pointers k LEFT JOIN ~.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer >= start AND k.pointer <= now_
       ORDER BY k.pointer, k.queue)
    UNION ALL
    (SELECT k.pointer, k.queue, q.paused, q.snoozed, q.shard
       FROM ~.pointers k LEFT JOIN ~.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer < start AND k.pointer >= from_
       ORDER BY k.pointer, k.queue)
    UNION ALL
    (SELECT k.pointer, k.queue, q.paused, q.snoozed, q.shard
       FROM ~.pointers k LEFT JOIN ~.queues q ON q.queue = k.queue
       WHERE k.scan = scan_ AND k.pointer > now_ AND k.pointer < 9223372036854775807
       ORDER BY k.pointer, k.queue)
  LOOP
    IF p.name = ANY (found_) OR p.name = ANY (held_) THEN
      again_ := again_ + 1;
      IF p.name <> ALL (crowded_) AND cardinality(crowded_) < 100 THEN
        crowded_ := crowded_ || p.name;
      END IF;
      IF again_ >= 1000 AND cardinality(found_) > 0 THEN
        upcoming := least(upcoming, now_);
        EXIT;
      END IF;
      CONTINUE WHEN p.paused OR p.name = ANY (found_);
    END IF;
    IF (p.paused OR p.snoozed > greatest(p.pointer, now_)) AND p.name <> ALL (held_)
        AND cardinality(held_) < 100 THEN
      held_ := held_ || p.name;
      shards_ := shards_ || p.shard;
    END IF;
    CONTINUE WHEN p.paused OR octet_length(p.name) NOT BETWEEN 1 AND 1024;
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
    PERFORM ~.fold_pointers(crowded_, now_);
  END IF;
  IF writes_ AND cardinality(held_) > 0 THEN
    PERFORM ~.move_pointers(held_, shards_,
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
CREATE FUNCTION ~.await_jobs(scan_ integer, every_ bigint, at_ bigint, OUT due boolean, OUT due_in bigint,
    OUT topic_ text) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  settled boolean := true;
BEGIN
  topic_ := 'j' || scan_;
  FOR i IN 1 .. 2 LOOP
    SELECT coalesce(bool_or(s.queue IS NOT NULL), false), max(s.next_in) INTO due, due_in
      FROM ~.scan_visible_queues(scan_, 1, 0, at_) s;
    EXIT WHEN due OR i = 2;
    settled := ~.ask_for(topic_, every_);
  END LOOP;
  IF NOT settled THEN
    due_in := 0;
  END IF;
END $$;

-- Removes pointers in the statement that sees that there is no job, so that both are looked up at
-- one time (F57). Where all of an application's transaction sees one time, that may be long ago: an
-- enqueue that has relied on a pointer since would not be seen. Each queue takes a place in the lock
-- table that all databases share, so a call takes few (F94).
CREATE FUNCTION ~.gc_stale_pointers(shard_ integer, limit_ integer, grace_ bigint, at_ bigint)
  RETURNS integer LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
  deleted integer := 0;
  p record;
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    RETURN 0;
  END IF;
  FOR p IN SELECT k.queue AS name
      FROM ~.pointers k LEFT JOIN ~.queues q ON q.queue = k.queue
      WHERE k.scan IN (shard_, shard_ + 1024) AND k.pointer < now_ - grace_ AND NOT coalesce(q.paused, false)
        AND NOT EXISTS (SELECT 1 FROM ~.jobs j WHERE j.queue || '' = k.queue)
      GROUP BY k.queue HAVING min(greatest(k.pointer, q.snoozed)) < now_ - grace_
      ORDER BY k.queue LIMIT least(limit_, 100) LOOP
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(~.queue_lock(p.name));
    DELETE FROM ~.pointers k WHERE k.queue || '' = p.name
      AND NOT EXISTS (SELECT 1 FROM ~.jobs j WHERE j.queue || '' = p.name);
    deleted := deleted + FOUND::integer;
  END LOOP;
  RETURN deleted;
END $$;
)sql";

inline constexpr char queues[] = R"sql(
-- Has a row of counters room for more? One that is damaged may not.
CREATE FUNCTION ~.counts_on(c ~.counters) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN greatest(c.enqueued, c.completed, c.cancelled, c.purged, c.dead) < 4611686018427387904
    AND least(c.enqueued, c.completed, c.cancelled, c.purged, c.dead) > -4611686018427387904;

-- The stripe of a row of counters after one more use.
CREATE FUNCTION ~.next_stripe(uses_ bigint, stripe_ bigint) RETURNS bigint LANGUAGE sql VOLATILE
  RETURN CASE WHEN ~.next_use(uses_) & 31 = 0 THEN nextval('~.stripes') ELSE stripe_ END;

CREATE FUNCTION ~.count_jobs(queue_ bytea, shard_ integer, enqueued_ bigint, completed_ bigint,
    cancelled_ bigint, purged_ bigint, dead_ bigint, own_ boolean)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  place tid;
BEGIN
  IF own_ THEN
    SELECT c.ctid INTO place FROM ~.counters c
      WHERE c.queue = queue_ AND c.shard = shard_ AND ~.counts_on(c)
      ORDER BY c.stripe DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
    -- By another statement, which sees what the row was when it was locked.
    UPDATE ~.counters c SET enqueued = c.enqueued + enqueued_, completed = c.completed + completed_, cancelled = c.cancelled + cancelled_,
        purged = c.purged + purged_, dead = c.dead + dead_, day = ~.day(),
        uses = ~.next_use(c.uses), stripe = ~.next_stripe(c.uses, c.stripe)
      WHERE c.ctid = place;
    IF FOUND THEN
      RETURN false;
    END IF;
  END IF;
  INSERT INTO ~.counters (queue, shard, enqueued, completed, cancelled, purged, dead)
    VALUES (queue_, shard_, enqueued_, completed_, cancelled_, purged_, dead_);
  RETURN true;
END $$;

-- Counts jobs of any queues as completed: a queue and its shard for each job. A row is chosen once for
-- each queue, before any is changed: what has been changed would be skipped.
CREATE FUNCTION ~.count_completed(queues_ bytea[], shards_ integer[]) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  places tid[];
  counts bigint[];
BEGIN
  SELECT array_agg(e.queue), array_agg(e.shard), array_agg(e.jobs), array_agg(f.place)
    INTO queues_, shards_, counts, places
    FROM (SELECT u.queue, u.shard, count(*) AS jobs FROM unnest(queues_, shards_) u(queue, shard)
            GROUP BY u.queue, u.shard) e
      LEFT JOIN LATERAL (SELECT c.ctid AS place FROM ~.counters c
        WHERE c.queue = e.queue AND c.shard = e.shard AND ~.counts_on(c)
        ORDER BY c.stripe DESC LIMIT 1 FOR UPDATE SKIP LOCKED) f ON true;
  WITH counted AS (UPDATE ~.counters c SET completed = c.completed + f.jobs,
        day = ~.day(), uses = ~.next_use(c.uses), stripe = ~.next_stripe(c.uses, c.stripe)
      FROM unnest(places, counts) f(place, jobs) WHERE c.ctid = f.place)
    INSERT INTO ~.counters (queue, shard, enqueued, completed, cancelled, purged, dead)
      SELECT f.queue, f.shard, 0, f.jobs, 0, 0, 0
        FROM unnest(queues_, shards_, counts, places) f(queue, shard, jobs, place)
        WHERE f.place IS NULL;
END $$;

CREATE FUNCTION ~.held(queue_ bytea, now_ bigint) RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce((SELECT paused OR now_ < snoozed FROM ~.queues WHERE queue = queue_), false);

CREATE FUNCTION ~.open_queue(queue_ bytea, shard_ integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  hurries boolean := ~.hurry();
BEGIN
  LOOP
    INSERT INTO ~.queues (queue, shard) VALUES (queue_, shard_) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM ~.queues q WHERE q.queue = queue_ FOR UPDATE;
    EXIT WHEN FOUND;  -- otherwise it was forgotten in between
  END LOOP;
END $$;

-- The next scan that finds the queue moves its pointer to the end of the hold.
CREATE FUNCTION ~.snooze_queue(queue_ bytea, shard_ integer, delay_ bigint, at_least_ boolean,
    own_ boolean, at_ bigint) RETURNS void LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  was bigint;
  until_ bigint;
BEGIN
  PERFORM ~.open_queue(queue_, shard_);
  SELECT q.snoozed INTO was FROM ~.queues q WHERE q.queue = queue_;
  until_ := greatest(CASE WHEN delay_ = 0 THEN -9223372036854775808
    ELSE coalesce(at_, ~.clock()) + delay_ END, CASE WHEN at_least_ THEN was END);
  UPDATE ~.queues q SET snoozed = until_ WHERE q.queue = queue_;
  IF until_ < was THEN
    PERFORM ~.end_hold(queue_, shard_, until_, own_, at_);
  END IF;
END $$;

-- Moves the pointer at once: many queues may be paused together, and a scan moves few.
CREATE FUNCTION ~.pause_queue(queue_ bytea, shard_ integer, own_ boolean) RETURNS void
  LANGUAGE plpgsql {function_settings} AS $$
BEGIN
  PERFORM ~.open_queue(queue_, shard_);
  UPDATE ~.queues q SET paused = true WHERE q.queue = queue_;
  IF own_ THEN
    PERFORM ~.move_pointers(ARRAY[queue_], ARRAY[shard_], '{-9223372036854775808}', ARRAY[NULL]::bigint[], NULL);
  END IF;
END $$;

CREATE FUNCTION ~.resume_queue(queue_ bytea, own_ boolean, at_ bigint) RETURNS void LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
  shard_ integer;
BEGIN
  UPDATE ~.queues q SET paused = false, snoozed = -9223372036854775808 WHERE q.queue = queue_
    RETURNING q.shard INTO shard_;
  IF FOUND THEN
    PERFORM ~.end_hold(queue_, shard_, NULL, own_, at_);
    PERFORM ~.tell('j' || ~.scan_of(queue_, shard_), own_);
  END IF;
END $$;

CREATE FUNCTION ~.obtain_queue_lease(queue_ bytea, shard_ integer, holder_ bytea, lease_ bigint,
    at_ bigint, OUT granted boolean, OUT fence bigint, OUT expires_in bigint, OUT holder bytea)
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  q record;
  now_ bigint;
BEGIN
  PERFORM ~.open_queue(queue_, shard_);
  SELECT k.holder, k.fence, k.until INTO q FROM ~.queues k WHERE k.queue = queue_;
  now_ := coalesce(at_, ~.clock());
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
  fence := ~.next_fence(now_, q.fence); expires_in := lease_;
  UPDATE ~.queues k SET holder = holder_, fence = obtain_queue_lease.fence, until = now_ + lease_
    WHERE k.queue = queue_;
END $$;

CREATE FUNCTION ~.release_queue_lease(queue_ bytea, holder_ bytea, fence_ bigint, at_ bigint)
  RETURNS boolean LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  hurries boolean := ~.hurry();
BEGIN
  PERFORM 1 FROM ~.queues q WHERE q.queue = queue_ FOR UPDATE;
  UPDATE ~.queues q SET until = -9223372036854775808
    WHERE q.queue = queue_ AND q.holder = holder_ AND q.until > coalesce(at_, ~.clock())
      AND (fence_ = 0 OR q.fence = fence_);
  RETURN FOUND;
END $$;

-- In one statement, so from one snapshot; what is pending is what is left of what came in. Leases are
-- counted in the index of those alone, whatever the server knows of the queue: no other one has the
-- holder, and for the one that has the vesting time, too, coalesce hides it.
CREATE FUNCTION ~.read_queue_stats(queue_ bytea, at_ bigint, OUT enqueued bigint,
    OUT leased bigint, OUT completed bigint, OUT dead bigint, OUT cancelled bigint,
    OUT purged bigint, OUT paused boolean, OUT next_in bigint) LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  now_ bigint := coalesce(at_, ~.clock());
BEGIN
  SELECT greatest(~.held_within(sum(c.enqueued)), 0), greatest(~.held_within(sum(c.completed)), 0),
      greatest(~.held_within(sum(c.dead)), 0), greatest(~.held_within(sum(c.cancelled)), 0),
      greatest(~.held_within(sum(c.purged)), 0),
      (SELECT count(*) FROM ~.jobs j
         WHERE j.queue || '' = queue_ AND j.holder > '' AND coalesce(j.vesting, now_) > now_),
      coalesce((SELECT q.paused FROM ~.queues q WHERE q.queue = queue_), false)
    INTO enqueued, completed, dead, cancelled, purged, leased, paused
    FROM ~.counters c WHERE c.queue = queue_;
  next_in := ~.span((SELECT min(h.vesting) FROM ~.all_heads(queue_) h), now_);
END $$;

-- The last one may be more than fits the answer: it says that there are more.
CREATE FUNCTION ~.list_queues(shard_ integer, limit_ integer, after_ bytea) RETURNS SETOF bytea
  LANGUAGE plpgsql {function_settings} AS $$
DECLARE
  last bytea := after_;
  room integer := 4194304;
BEGIN
  FOR i IN 1 .. limit_ LOOP
    last := least((SELECT c.queue FROM ~.counters c WHERE c.shard + 0 = shard_
                       AND c.queue || '' > last ORDER BY c.queue || '' LIMIT 1),
                  (SELECT q.queue FROM ~.queues q WHERE q.shard = shard_ AND q.queue > last
                     ORDER BY q.queue LIMIT 1));
    EXIT WHEN last IS NULL;
    RETURN NEXT last;
    room := room - octet_length(last);
    EXIT WHEN room < 0;
  END LOOP;
END $$;
)sql";

inline constexpr char tables[] = R"sql(
CREATE TABLE ~.state (
  one       boolean PRIMARY KEY DEFAULT true CHECK (one),
  version   integer NOT NULL,            -- how many of the migrations were made
  shards    integer NOT NULL,
  forgotten bigint NOT NULL,             -- every bucket that is not there was full from then on
  secret    uuid NOT NULL DEFAULT gen_random_uuid()  -- what others hear of keys depends on it
);
CREATE SEQUENCE ~.fences;
CREATE SEQUENCE ~.seed;                  -- of the numbers of advisory locks: never drawn from
SELECT setval('~.seed',
  1 + (hashtextextended(gen_random_uuid()::text, 0) & 4611686018427387903));
CREATE SEQUENCE ~.stripes;
CREATE SEQUENCE ~.deaths;
CREATE SEQUENCE ~.returned MINVALUE 0;   -- see floors
CREATE SEQUENCE ~.ahead MINVALUE 0;      -- of the server's clock, in nanoseconds
CREATE SEQUENCE ~.seen MINVALUE 0;       -- the time that was last noted: once in a second
SELECT setval('~.returned', 0), setval('~.ahead', 0), setval('~.seen', 0);

-- Which keys have a row that is used again and again: 1: of permit_lines; 2: of locks; 3: of buckets;
-- 4: of dequeues; 5: of the enqueue keys of jobs; 6: of their run locks.
CREATE TABLE ~.used_keys (
  kind    smallint NOT NULL,
  key     bytea NOT NULL,
  due     bigint,                        -- of keys of jobs: when to look whether it is over
  PRIMARY KEY (kind, key)
) WITH ({hot_table});
CREATE INDEX used_keys_due ON ~.used_keys (due) WHERE due IS NOT NULL;

-- A row for each key with permits or tickets: whoever has it locked has the key to itself.
CREATE TABLE ~.permit_lines (
  key     bytea NOT NULL,
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0,     -- see above
  due     bigint NOT NULL,               -- when to look whether it is over
  live    integer NOT NULL,              -- permits, and
  waiting integer NOT NULL,              -- tickets of the key that are not known to be over
  turn    bigint NOT NULL,               -- of the last ticket
  head    bigint NOT NULL DEFAULT 0,     -- no ticket has an earlier one
  oldest  bigint NOT NULL DEFAULT 0,     -- no permit has an earlier fence
  fence   bigint NOT NULL,               -- of the last permit
  soonest bigint NOT NULL                -- nothing of it is over before this
) WITH (fillfactor = 70, {hot_table});
CREATE INDEX permit_lines_last ON ~.permit_lines (key, number);
CREATE INDEX permit_lines_due ON ~.permit_lines (due);
CREATE TABLE ~.permits (
  key     bytea NOT NULL,
  holder  bytea NOT NULL,
  ticket  boolean NOT NULL,
  number  bigint NOT NULL,               -- its fence, or its turn
  until   bigint NOT NULL,
  top     integer NOT NULL DEFAULT 0,    -- the limit that its ticket waits for
  listens boolean NOT NULL DEFAULT false,  -- is its holder to be told of its turn?
  PRIMARY KEY (key, holder)
) WITH ({hot_table});
-- The plan of a look-up was perhaps made when there was nothing, and then one index is as good as any
-- other that has one of its columns. So each has expressions of its own, and a statement names those
-- of the index that is meant for it.
CREATE INDEX permits_turns ON ~.permits ((key || 't'), number) WHERE ticket;
CREATE INDEX permits_fences ON ~.permits ((key || 'p'), number) WHERE NOT ticket;
CREATE INDEX permits_ends ON ~.permits ((key || ''), (until + 0));
CREATE INDEX permits_until ON ~.permits (until);

CREATE TABLE ~.locks (
  key     bytea NOT NULL,
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0,     -- see above
  due     bigint NOT NULL,               -- when to look whether it is over
  holder  bytea NOT NULL,                -- of a lock that is not held: empty
  fence   bigint NOT NULL,
  until   bigint NOT NULL
) WITH (fillfactor = 70, {hot_table});
CREATE INDEX locks_last ON ~.locks (key, number);
CREATE INDEX locks_due ON ~.locks (due);

CREATE TABLE ~.buckets (
  key     bytea NOT NULL,
  quotas  bytea NOT NULL,                -- as they were asked for
  scales  bigint[] NOT NULL,             -- of each quota: capacity, gain, price
  arrival numeric[] NOT NULL,            -- of each quota, in its units
  due     bigint NOT NULL,               -- it is not full before; a lower bound
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0      -- see above
) WITH (fillfactor = 70, {hot_table});
CREATE INDEX buckets_last ON ~.buckets (key, number);
CREATE INDEX buckets_due ON ~.buckets (due);

-- What a queue has beside its jobs. There is no row where all of it is as it is at first.
CREATE TABLE ~.queues (
  queue   bytea PRIMARY KEY,
  shard   integer NOT NULL,
  paused  boolean NOT NULL DEFAULT false,
  snoozed bigint NOT NULL DEFAULT -9223372036854775808,
  holder  bytea NOT NULL DEFAULT '',     -- of the queue lease
  fence   bigint NOT NULL DEFAULT 0,
  until   bigint NOT NULL DEFAULT -9223372036854775808
);

-- A queue's pointer is the least of its rows here. Any step may add an earlier one without waiting
-- for anybody; they are removed only by who has the queue's advisory lock to itself. The pointer of a
-- queue that is held comes to be where the hold ends, so that no scan goes through held queues: of
-- one that is paused, at the largest number, where no scan looks.
CREATE TABLE ~.pointers (
  scan    integer NOT NULL,
  pointer bigint NOT NULL,
  queue   bytea NOT NULL
) WITH ({hot_table});
CREATE INDEX pointers_due ON ~.pointers (scan, pointer, queue);
CREATE INDEX pointers_queue ON ~.pointers ((queue || ''), (pointer + 0));  -- see permits

-- A queue's counters are the sums of its rows. A step takes the last one that nobody else has. A row
-- becomes the last one again now and then, by a new stripe (see above).
CREATE TABLE ~.counters (
  queue     bytea NOT NULL,
  stripe    bigint NOT NULL DEFAULT nextval('~.stripes'),
  uses      bigint NOT NULL DEFAULT 0,
  shard     integer NOT NULL,
  enqueued  bigint NOT NULL,
  completed bigint NOT NULL,
  cancelled bigint NOT NULL,
  purged    bigint NOT NULL,
  dead      bigint NOT NULL,
  day       bigint NOT NULL,              -- of its last use
  PRIMARY KEY (queue, stripe)
) WITH (fillfactor = 70, {hot_table});
CREATE INDEX counters_day ON ~.counters (day);
CREATE INDEX counters_shard ON ~.counters ((shard + 0), (queue || ''));  -- see permits

-- The jobs that have not ended. What has is in a table of its own (see past.sql), so that this one,
-- where all look for the first job of a queue, is as large as what there is to do.
CREATE TABLE ~.jobs (
  queue     bytea NOT NULL,
  id        uuid NOT NULL,
  priority  smallint NOT NULL,
  state     smallint NOT NULL,            -- of one that has ended: how
  strategy  smallint NOT NULL,
  policy    smallint NOT NULL,
  attempts  integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  snoozes   integer NOT NULL DEFAULT 0,
  vesting   bigint NOT NULL,              -- or when its lease ends
  fence     bigint NOT NULL DEFAULT 0,    -- of its last lease
  sequence  bigint NOT NULL DEFAULT 0,    -- of the numbered dequeue that gave it
  unclaimed bigint NOT NULL DEFAULT 0,    -- claimed: the vesting time whose place the lease took
  enqueued  bigint NOT NULL,
  deadline_from bigint NOT NULL,
  deadline  bigint NOT NULL,              -- 0: none
  retention bigint NOT NULL,
  holder    bytea,                        -- of its lease, over or not; NULL: unclaimed
  unique_key bytea NOT NULL,
  kind      bytea NOT NULL,
  payload   bytea NOT NULL,
  memo      bytea NOT NULL DEFAULT '',
  reason    bytea NOT NULL DEFAULT '',
  result    bytea NOT NULL DEFAULT '',
  headers   bytea NOT NULL DEFAULT '',
  progress  bytea NOT NULL DEFAULT '',
  checkpoint bytea NOT NULL DEFAULT '',
  PRIMARY KEY (queue, id)
) WITH ({jobs_table});
CREATE INDEX jobs_order ON ~.jobs ((queue || ''), priority, vesting, id);  -- see permits
CREATE INDEX jobs_claimed ON ~.jobs ((queue || ''), holder, sequence, vesting) WHERE holder IS NOT NULL;

-- A holder's latest numbered dequeue of a queue.
CREATE TABLE ~.dequeues (
  queue    bytea NOT NULL,
  holder   bytea NOT NULL,
  uses     bigint NOT NULL DEFAULT 0,
  number   bigint NOT NULL DEFAULT 0,    -- see above
  sequence bigint NOT NULL,
  day      bigint NOT NULL
) WITH (fillfactor = 70, {hot_table});
CREATE INDEX dequeues_last ON ~.dequeues (queue, holder, number);
CREATE INDEX dequeues_day ON ~.dequeues (day);

-- Unique keys of jobs, each with the job that took it last. A row changes only in a step that has the
-- key locked, and the end of the job, or of its lease, changes nothing here: a key is taken where
-- `until` has not come, or there is no such time and the job has not ended (see possessor), or is
-- under the lease that the run lock is of.
CREATE TABLE ~.keys (
  queue   bytea NOT NULL,
  run     boolean NOT NULL,              -- taken by the start, and not by the enqueue
  key     bytea NOT NULL,
  owner   uuid,                          -- NULL: nobody has it
  until   bigint,
  fence   bigint,                        -- of a run lock: of the lease
  uses    bigint NOT NULL DEFAULT 0,
  number  bigint NOT NULL DEFAULT 0      -- see above
) WITH (fillfactor = 70, {hot_table});
CREATE INDEX keys_last ON ~.keys ((int4send(octet_length(queue)) || queue || key), run, number);  -- see dequeue_key

-- The topics that somebody waits for: those of queues (of a permit's turn see permits.listens). To
-- notify takes a lock on the whole server at the commit (F43). So a step of weir's own that has news
-- takes the row, and others need not notify; and a row that nobody renews is over.
CREATE UNLOGGED TABLE ~.hints (
  topic   text PRIMARY KEY,
  until   bigint NOT NULL
);

-- Names that a step has to itself until its transaction ends. A row never outlives the transaction
-- that inserted it, and others that insert the same one wait for that. So the server's lock table
-- holds one entry for each transaction, however many names it has.
CREATE UNLOGGED TABLE ~.guards (
  name    bigint PRIMARY KEY
) WITH ({hot_table});

-- A job in an answer.
CREATE TYPE ~.job_row AS (
  now bigint, id uuid, priority smallint, state smallint, strategy smallint, policy smallint,
  attempts integer, max_attempts integer, snoozes integer, vesting bigint, death bigint,
  fence bigint, enqueued bigint, deadline_from bigint, deadline bigint, holder bytea,
  unique_key bytea, kind bytea, payload bytea, memo bytea, reason bytea, result bytea,
  headers bytea, progress bytea, checkpoint bytea,
  part integer);  -- of several dequeues: which one it is of
)sql";

inline constexpr char const* whole[] = {tables, past, base, leases, buckets, floors, pointers, queues, jobs, claims, dequeue};

}  // namespace weir::detail::pgsql

#endif
