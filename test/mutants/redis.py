# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""What may be wrong in the scripts of the store on Redis, which restate the rules: each with the
conformance tests that have to notice. See rules.py.

(name, what is wrong, header below include/weir, text that stands there once, how it is changed,
{program: [test cases]})"""

from run import INCLUDE, before, instead, value

SCRIPT = "store/redis/script.hpp"
GENERATED = (INCLUDE / "store/redis/script/generated.hpp").read_text()

JOBS = {"conformance.redis_jobs": ["keep_every_promise"]}
FORGETTING = {"integration.redis_store": ["F83*"]}
IN_TURN = {"integration.redis_hints": ["*in_turn*"]}


def keys(noun):
    return {"conformance.redis_keys": [noun + "*"]}


def in_lua(old, new):
    """Another text in the scripts, as they are generated, wherever it stands. (Header, text, change.)"""
    if old not in GENERATED:
        raise SystemExit(f"redis.py: this stands in no script: {old}")
    change = f"""{{
  std::string const from = R"x({old})x", to = R"x({new})x";
  for (auto at = source_.find(from); at != source_.npos; at = source_.find(from, at + to.size())) {{
    source_.replace(at, from.size(), to);
  }}
}}"""
    return SCRIPT, "boost::hash2::sha1_160 hash;", before(change)


MUTANTS = [
    ("key_of_who_has_its_id", "a key is that of whoever has its owner's id",
     *in_lua("if o and (o.key ~= key or not holds_while_waiting[o.strategy]) then o = nil end", ""),
     JOBS),
    ("gone_is_damaged", "a record that was just removed is taken for a damaged one",
     *in_lua("then return not call('HGET', jobs, id) end", "then return false end"), JOBS),
    ("brought_forward_untold", "a lease that was taken early is not found when it is over",
     *in_lua("if early and claims > 0 then", "if false then"), JOBS),
    ("any_fence", "any fence names the lease of a job",
     *in_lua("state_of(j) == LEASED and j.fence == tonumber(by)", "state_of(j) == LEASED"), JOBS),
    ("one_attempt_more", "a job is claimed once more than it may be",
     *in_lua("elseif attempts >= max_attempts then", "elseif attempts > max_attempts then"), JOBS),
    ("one_failure_more", "a job may fail once more than it may be claimed",
     *in_lua("if j.attempts >= j.max_attempts then\n  if", "if false then\n  if"), JOBS),
    ("attempts_are_kept", "a snooze costs an attempt",
     *in_lua("math.max(j.attempts - 1, 0), j.snoozes + 1", "j.attempts, j.snoozes + 1"), JOBS),
    ("crashes_do_not_count", "a claim counts no attempt",
     *in_lua("attempts + 1, till, vesting, number, size", "attempts, till, vesting, number, size"),
     JOBS),
    ("completed_by_anybody", "a job is completed under any fence",
     *in_lua("by ~= 0 and by == last then", "by ~= 0 then"), JOBS),
    ("cancels_what_runs", "a job that runs is cancelled unasked",
     *in_lua("if state == LEASED and ARGV[5] == '0' then", "if false then"), JOBS),
    ("cancel_tells_nobody", "who runs a job that is cancelled is not told",
     *in_lua("if state == LEASED then tell(ARGV[6], ARGV[6] .. ':' .. j.holder) end", ""), JOBS),
    ("shorter_hold_wins", "a hold for at least so long ends a longer one",
     *in_lua("ARGV[5] == '1' and snoozed or 0", "0"), JOBS),
    ("what_runs_gives_way", "a running job is replaced",
     *in_lua("if o and state_of(o) == PENDING and j.policy == 3 then",
             "if o and o.ended == PENDING and j.policy == 3 then"), JOBS),
    ("two_run", "two jobs of a key run",
     *in_lua("if other and state_of(other) == LEASED then", "if false then"), JOBS),
    ("key_is_not_taken_back", "a requeued job goes without its key",
     *in_lua("if start_frees_key[j.strategy] and not owner_of(j.key) then hold(j.key, j.id, 0) end",
             ""), JOBS),
    ("relayed_by_any_fence", "a job is relayed under any fence",
     *in_lua("j = leased(ARGV[4], ARGV[5], true) else", "j = find(ARGV[4]) else"), JOBS),
    ("relayed_whatever_it_is", "a relay does not look at the payload",
     *in_lua("if not by_lease then\n  local body", "if false then\n  local body"), JOBS),
    ("ticks_among_jobs", "the queue that is relayed to is due in the other's scan",
     *in_lua("fence, KEYS[21], names", "fence, due, names"), JOBS),
    ("key_outlives_its_job", "the end of a job keeps its key",
     *in_lua("if end_frees_key[j.strategy] then free(j) end\n  j.ended", "j.ended"), JOBS),
    ("replays_are_spent", "a replayed job has no attempts left",
     *in_lua("j.deadline_from = PENDING, 0, 0, now", "j.deadline_from = PENDING, j.attempts, 0, now"),
     JOBS),
    ("one_more", "a permit is granted over the limit where nobody waits",
     *in_lua("if easy and live < tonumber(ARGV[3]) then", "if easy and live <= tonumber(ARGV[3]) then"),
     keys("permits")),
    ("overtakes", "a permit is granted over the limit where somebody does",
     *in_lua("if live + ahead < limit then", "if live < limit then"), keys("permits")),
    ("renewed_by_any_fence", "a permit is renewed under any fence",
     *in_lua("if not fence or fence ~= tonumber(ARGV[3]) then return 0 end",
             "if not fence then return 0 end"), keys("permits")),
    ("released_by_any_fence", "a lock is released under any fence",
     *in_lua("held and has == holder and (asked == 0 or asked == fence)", "held and has == holder"),
     keys("locks")),
    ("fences_again", "a fence is given out again",
     *in_lua("  call('SET', key, decimal(last + n))\n  return last + 1", "  return last"),
     keys("locks") | JOBS),
    ("saved_for_ever", "a bucket saves what it cannot hold",
     *in_lua("if q < now + wait then tq, tr = now + wait, 0 end", ""), keys("buckets")),
    ("any_grant", "a grant is refunded whatever was taken since",
     *in_lua("if a[1] ~= mark(i, 1) or a[2] ~= mark(i, 2) or cost > s[4] then return 0 end", ""),
     keys("buckets")),
    ("full_ones_count", "a bucket that is full again counts against the bound of a store",
     *in_lua("call('ZCOUNT', index, '(' .. decimal(now), '+inf')", "call('ZCARD', index)"),
     keys("buckets")),
    ("bound_for_all", "a full store sheds takes of buckets that are there",
     *in_lua("local is_new = not value or full_at(value) <= now", "local is_new = true"),
     {"integration.redis_bounded_buckets": ["*"]}),
    ("refunds_make_no_room", "a bucket counts against the bound as if nothing had gone back",
     *in_lua("redis.pcall('ZADD', KEYS[2], 'XX', decimal(full), key)", ""),
     {"integration.redis_bounded_buckets": ["*"]}),
    ("forgotten_by_change", "a change of quotas forgives what was spent",
     *in_lua("if known and known ~= quotas then", "if false then"), keys("buckets")),
    ("parted_are_overtaken", "what comes after a parted command about the same is done before it",
     *in_lua("if not parted[KEYS[1]] then good, answer = pcall(step) end", "good, answer = pcall(step)"),
     {"integration.redis_store": ["*F61_what_travels_together*"]}),
    ("grows_behind_others", "a script that has written grows where memory is full",
     *in_lua("if type(redis.pcall('ZADD', KEYS[3], 'XX', '0', '')) == 'table' then return end", ""),
     {"integration.redis_store": ["*F61_what_travels_together*"]}),
    ("another_s_key", "a permit is counted by the key before",
     *in_lua("if KEYS[1] ~= easy then\n  easy = nil", "if not easy then\n  easy = nil"),
     {"integration.redis_together": ["*"]}),
    ("holder_of_before", "the arguments of a call stay for the next",
     *in_lua("for j = 2, a + 1 do ARGV[j] = all[i * a + j + 1] end",
             "for j = 2, a do ARGV[j] = all[i * a + j + 1] end"),
     {"integration.redis_together": ["*"]}),
    ("same_id_merged", "an id is twice in a merged call", "store/redis/call.hpp",
     "(!merges_ || item() != other.item())", value("true"),
     {"unit.redis_convoy": ["*"]}),
    ("any_order", "commands about one thing change places", "store/redis/convoy.hpp",
     "if (last != none && last > o) continue;", instead(""), {"unit.redis_convoy": ["*"]}),
    ("unknown_first", "the first run does not bring its script", "store/redis/convoy.hpp",
     "redis_call::push_together(to, calls_, !is_new);",
     instead("redis_call::push_together(to, calls_, is_new || true);"),
     {"integration.redis_store": ["*what_travels_together_for_the_first_time*"]}),
    ("rights_of_others", "all are refused for what one may not do", "store/redis/convoy.hpp",
     '(!within && head.value.starts_with("NOPERM"))', value("false"),
     {"integration.redis_users": ["*alone_in_that*"]}),
    ("forgets_the_held", "a queue that is paused is forgotten",
     *in_lua("flags:sub(1, 1) == '1' or (tonumber(flags:sub(3)) or 0) > now or lease > now", "false"),
     FORGETTING),
    ("forgets_the_used", "a queue that was used since is forgotten",
     *in_lua("elseif then_ ~= total or", "elseif not then_ or"), FORGETTING),
    ("forgets_jobs", "a queue that has jobs is forgotten",
     *in_lua("if not any(at + 1, at + 7) then", "if true then"), FORGETTING),
    ("dead_are_told", "a process that nobody hears counts as told",
     *in_lua("if redis.pcall('PUBLISH', channel, idle) ~= 0 then n = n - 1 end",
             "redis.pcall('PUBLISH', channel, idle) n = n - 1"), IN_TURN),
    ("told_stays_in_line", "a process that is told waits on",
     *in_lua("redis.pcall('ZREM', idle, channel)", ""), IN_TURN),
    ("not_in_line", "a scan that finds nothing does not begin a wait",
     *in_lua("elseif channel ~= '' and #out == 0 then", "elseif false then"), IN_TURN),
    ("one_of_a_batch", "a batch tells one process",
     *in_lua("n = math.min(n, 10)", "n = math.min(n, 1)"), IN_TURN),
    ("not_passed_on", "nobody is told by who was told in vain",
     *in_lua("if channel == 'next' then", "if false then"), IN_TURN),
    ("told_in_vain", "a process in which nobody waits keeps its hint", "store/redis/waits.hpp",
     "if (command_.in_turn) pass_on();", instead(""), IN_TURN),
]
