// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_LUA_HPP
#define WEIR_STORE_REDIS_JOB_LUA_HPP

// What the scripts of the job commands are made of. Each takes the pieces that it uses; a piece
// names those that have to come before it.
namespace weir::detail::lua {

/// A queue's keys, in the order of KEYS:
///
/// - `queue`: a hash with its counters, pause, snooze and lease; all that an empty queue leaves
/// - `index`: the jobs that have not ended, in the order of their ranks. All scores are 0, and the
///   members are {priority, vesting time, id} as bytes: so each priority level is a range, whose
///   head is found in O(log n), and empty levels cost nothing
/// - `jobs`: a hash; for each job id, and a letter: "s" what a step may change, "b" what it never
///   does (kind and payload), "n" what few jobs have (memo, result, reason)
/// - `keys`: the enqueue keys, each with the job that has it, and its expiry (0: none)
/// - `runs`: the run locks, each with the job that has it
/// - `dead`: the dead letters, in the order of their deaths
/// - `kept`: what time ends: "j" and a job's id by the end of its retention, "k" and an enqueue key
///   by its expiry
/// - `claimed`: the jobs that were leased, by the end of the lease
///
/// and of its shard: the `fence`, the queues by the instant from which a scan finds them (`due`),
/// and all their `names`.
inline constexpr char queue[] = R"lua(
local queue, index, jobs, keys, runs, dead, kept, claimed, fence, due, names = unpack(KEYS, 1, 11)
local name = ARGV[2]
local PENDING, LEASED, COMPLETED, DEAD, CANCELLED = 0, 1, 2, 3, 4
)lua";

/// What travels and is kept of a job. After `queue`.
inline constexpr char record[] = R"lua(
local form = '>BBBBI4I4I4I8I8I8I8I8I8I8I8I2'
-- All fields at once: a table that grows is made several times.
local function parse(id, state)
  local priority, ended, strategy, policy, attempts, max_attempts, snoozes, vesting, unclaimed,
    enqueued, deadline_from, deadline, retention, by, death, size, at = struct.unpack(form, state)
  return {id = id, priority = priority, ended = ended, strategy = strategy, policy = policy,
    attempts = attempts, max_attempts = max_attempts, snoozes = snoozes, vesting = vesting,
    unclaimed = unclaimed, enqueued = enqueued, deadline_from = deadline_from,
    deadline = deadline, retention = retention, fence = by, death = death,
    key = state:sub(at, at + size - 1), holder = state:sub(at + size)}
end
local function packed(j)
  return struct.pack(form, j.priority, j.ended, j.strategy, j.policy, j.attempts, j.max_attempts,
    j.snoozes, j.vesting, j.unclaimed, j.enqueued, j.deadline_from, j.deadline, j.retention,
    j.fence, j.death, #j.key) .. j.key .. j.holder
end
local function save(j) call('HSET', jobs, j.id .. 's', packed(j)) end
local function gone(j)
  return (j.ended == COMPLETED or j.ended == CANCELLED) and j.vesting <= now
end
local function state_of(j)
  if j.ended ~= PENDING then return j.ended end
  return j.holder ~= '' and j.vesting > now and LEASED or PENDING
end
)lua";

/// One job. After `record`.
inline constexpr char find[] = R"lua(
local function find(id)
  local state = call('HGET', jobs, id .. 's')
  local j = state and parse(id, state)
  if j and not gone(j) then return j end
end
)lua";

/// The lease of a job, if it is this one still. After `find`.
inline constexpr char leased[] = R"lua(
local function leased(id, by)
  local j = find(id)
  if j and state_of(j) == LEASED and j.fence == tonumber(by) then return j end
end
)lua";

/// The states of the n jobs whose ids are among ARGV, from there on and so far apart; false: none.
inline constexpr char find_all[] = R"lua(
local function find_all(n, from, step)
  local out = {}
  for first = 1, n, 1000 do
    local fields = {}
    for i = first, math.min(first + 999, n) do
      fields[#fields + 1] = ARGV[from + (i - 1) * step] .. 's'
    end
    for i, state in ipairs(call('HMGET', jobs, unpack(fields))) do out[first + i - 1] = state end
  end
  return out
end
)lua";

/// After `record`.
inline constexpr char index[] = R"lua(
local function rank(priority, vesting) return struct.pack('>BI8', priority, vesting) end
local function put(j) call('ZADD', index, 0, rank(j.priority, j.vesting) .. j.id) end
local function remove(j) call('ZREM', index, rank(j.priority, j.vesting) .. j.id) end
)lua";

/// The least vesting time, and whether any job is visible.
inline constexpr char heads[] = R"lua(
local function heads()
  local from, least, any = '-', nil, false
  while true do
    local head = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, 1)[1]
    if not head then return least, any end
    local priority, vesting = struct.unpack('>BI8', head)
    if not least or vesting < least then least = vesting end
    any = any or vesting <= now
    if priority == 255 then return least, any end
    from = '[' .. string.char(priority + 1)
    if call('ZLEXCOUNT', index, from, '+') == 0 then return least, any end
  end
end
)lua";

/// Calls `use` with visible jobs' members of the index, in their order and up to `most()` at once,
/// until that is 0.
inline constexpr char visible[] = R"lua(
local function visible(most, use)
  local from, n = '-', most()
  while n > 0 do
    local members, here = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, n), {}
    from = #members == n and '(' .. members[n]
    for i, member in ipairs(members) do
      local priority, vesting = struct.unpack('>BI8', member)
      if vesting > now then
        from = priority < 255 and '[' .. string.char(priority + 1)
        break
      end
      here[i] = member
    end
    if #here > 0 then use(here) end
    if not from then return end
    n = most()
  end
end
)lua";

/// Enqueue keys and run locks. After `record`.
inline constexpr char unique[] = R"lua(
local holds_while_waiting = {true, true, false, true, true}
local holds_while_running = {false, false, true, true, false}
local start_frees_key = {false, true, false, true, false}
local end_frees_key = {true, true, false, true, false}

-- The job that has an enqueue key.
local function owner_of(key)
  local v = call('HGET', keys, key)
  if not v then return end
  local expiry = struct.unpack('>I8', v, 17)
  if expiry == 0 or expiry > now then return v:sub(1, 16) end
end
local function hold(key, id, expiry)
  call('ZREM', kept, 'k' .. key)
  if expiry > 0 then call('ZADD', kept, decimal(expiry), 'k' .. key) end
  call('HSET', keys, key, id .. struct.pack('>I8', expiry))
end
local function free(j)
  local v = call('HGET', keys, j.key)
  if v and v:sub(1, 16) == j.id then
    call('HDEL', keys, j.key)
    call('ZREM', kept, 'k' .. j.key)
  end
end
-- Ends the lease, over or not, and with it the run lock.
local function unclaim(j)
  if j.holder == '' then return end
  if holds_while_running[j.strategy] and call('HGET', runs, j.key) == j.id then
    call('HDEL', runs, j.key)
  end
  call('ZREM', claimed, j.id)
  j.holder = ''
end
)lua";

/// How jobs end. After `index` and `unique`.
inline constexpr char ends[] = R"lua(
local function count(what, n) return call('HINCRBY', queue, what, n) end
local function erase(id) call('HDEL', jobs, id .. 's', id .. 'b', id .. 'n') end
local function drop(j)
  if j.ended == DEAD then call('ZREM', dead, j.id) else call('ZREM', kept, 'j' .. j.id) end
  erase(j.id)
end
local function note(id, memo, result, reason)
  local v, m, r, w = call('HGET', jobs, id .. 'n'), '', '', ''
  if v then
    local a, b, at = struct.unpack('>I2I4', v)
    m, r, w = v:sub(at, at + a - 1), v:sub(at + a, at + a + b - 1), v:sub(at + a + b)
  end
  m, r, w = memo or m, result or r, reason or w
  if v or #m + #r + #w > 0 then
    call('HSET', jobs, id .. 'n', struct.pack('>I2I4', #m, #r) .. m .. r .. w)
  end
end
-- The job's record may be gone after this.
local function finish(j, how)
  remove(j)
  unclaim(j)
  if end_frees_key[j.strategy] then free(j) end
  j.ended = how
  if how == DEAD then
    j.death = count('deaths', 1)
    call('ZADD', dead, j.death, j.id)
    return save(j)
  end
  count(how == COMPLETED and 'completed' or 'cancelled', 1)
  if j.retention == 0 then return erase(j.id) end
  j.vesting = now + j.retention
  call('ZADD', kept, decimal(j.vesting), 'j' .. j.id)
  save(j)
end
local function bury(j, reason)
  note(j.id, nil, nil, reason)
  finish(j, DEAD)
end
)lua";

/// A little of the work that time has made: as much as steps make, and never much at once. After
/// `ends`.
inline constexpr char tidy[] = R"lua(
local function tidy(n)
  if call('ZCARD', kept) == 0 then return end
  for _, what in ipairs(call('ZRANGEBYSCORE', kept, '-inf', decimal(now), 'LIMIT', 0, 2 * n + 2)) do
    call('ZREM', kept, what)
    if what:sub(1, 1) == 'k' then call('HDEL', keys, what:sub(2)) else erase(what:sub(2)) end
  end
end
)lua";

/// After jobs may have ended: an empty queue leaves the scan in the same step, so there are no
/// stale pointers; and where only time will end what is left, that is left to the server: the queue
/// is then fading, until a job comes. After `keep` and `queue`.
inline constexpr char settle[] = R"lua(
local function settle()
  if call('ZCARD', index) > 0 then return end
  call('ZREM', due, name)
  if call('ZCARD', dead) > 0 then return end
  local last = call('ZREVRANGE', kept, 0, 0, 'WITHSCORES')[2]
  if not last then return end
  call('HSET', queue, 'fading', 1)
  for _, key in ipairs({jobs, keys, kept}) do keep(key, tonumber(last)) end
end
)lua";

/// The job waits, with the enqueue key that its start gave up, if that is free. After `unique`.
inline constexpr char wait_again[] = R"lua(
local function wait_again(j, vesting)
  if start_frees_key[j.strategy] and not owner_of(j.key) then hold(j.key, j.id, 0) end
  remove(j)
  unclaim(j)
  j.vesting = vesting
  put(j)
  save(j)
end
)lua";

/// Why a visible job cannot be claimed, if it cannot.
inline constexpr char unclaimable[] = R"lua(
local function unclaimable(j)
  if j.attempts >= j.max_attempts then
    return 'its attempts are spent: the last holder let its lease end'
  end
  if j.deadline > 0 and j.deadline_from + j.deadline < now then
    return 'its deadline was missed'
  end
end
)lua";

/// What a queue is held by: `held`, `paused`, and until when it is `snoozed`.
inline constexpr char holds[] = R"lua(
local flags = call('HMGET', queue, 'paused', 'snoozed', 'fading', 'enqueued')
local paused, snoozed = flags[1] == '1', tonumber(flags[2] or 0)
local held = paused or now < snoozed
)lua";

/// Where a scan finds the queue: never later than its first job vests, unless it is held. After
/// `holds`.
inline constexpr char point[] = R"lua(
local function point(least)
  if paused or not least then return call('ZREM', due, name) end
  call('ZADD', due, decimal(math.max(least, snoozed)), name)
end
)lua";
/// After `tell` and `holds`.
inline constexpr char no_later_than[] = R"lua(
local function no_later_than(vesting)
  if paused then return end
  local at = math.max(vesting, snoozed)
  if call('ZADD', due, 'LT', 'CH', decimal(at), name) == 1 and at <= now then
    tell(ARGV[3], due)
  end
end
)lua";
inline constexpr char name_it[] = R"lua(
local function name_it()
  if call('ZADD', names, 0, name) == 1 then call('HSETNX', queue, 'enqueued', 0) end
end
)lua";

/// What travels of a job, with its body and notes.
inline constexpr char describe[] = R"lua(
local function micros_or_null(j)
  if j.deadline == 0 then return false end
  return j.deadline_from + j.deadline - now
end
local function describe_lease(j, body, notes)
  if not body then body, notes = unpack(call('HMGET', jobs, j.id .. 'b', j.id .. 'n')) end
  return {j.id, j.fence, j.vesting - now, j.priority, j.attempts, j.max_attempts, j.snoozes,
    now - j.enqueued, micros_or_null(j), j.strategy, j.key, body, notes or ''}
end
)lua";
inline constexpr char describe_job[] = R"lua(
local function describe(j)
  local state = state_of(j)
  local has = state == LEASED
  local body, notes = unpack(call('HMGET', jobs, j.id .. 'b', j.id .. 'n'))
  return {j.id, state, j.priority, j.attempts, j.max_attempts, j.snoozes,
    state <= LEASED and j.vesting - now or 0, now - j.enqueued, micros_or_null(j), j.strategy,
    j.policy, j.key, body, notes or '', has and j.holder or '', has and j.fence or 0}
end
-- A job of the index or of the dead letters, which has a record unless somebody has deleted that.
local function must_find(id)
  return find(id) or error('CORRUPT weir: a job without its record')
end
)lua";

}  // namespace weir::detail::lua

#endif
