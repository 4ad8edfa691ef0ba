// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_LUA_HPP
#define WEIR_STORE_REDIS_JOB_LUA_HPP

// What the scripts of the job commands share.
namespace weir::detail::lua {

/// A queue's keys, in the order of KEYS:
///
/// - `queue`: a hash with its counters, pause, snooze and lease; all that an empty queue leaves
/// - `index`: the jobs that have not ended, in the order of their ranks. All scores are 0, and the
///   members are {priority, vesting time, id} as bytes: so each priority level is a range, whose
///   head is found in O(log n), and empty levels cost nothing
/// - `states`, `bodies`, `notes`: hashes by job id. A state is what a step may change, a body what
///   it never does (kind and payload), notes what few jobs have (memo, result, reason)
/// - `keys`: the enqueue keys, each with the job that has it, and its expiry (0: none)
/// - `runs`: the run locks, each with the job that has it
/// - `dead`: the dead letters, in the order of their deaths
/// - `kept`: what time ends: "j" and a job's id by the end of its retention, "k" and an enqueue key
///   by its expiry
/// - `claimed`: the jobs that were leased, by the end of the lease
///
/// and of its shard: the `fence`, the queues by the instant from which a scan finds them (`due`),
/// and all their `names`.
inline constexpr char jobs[] = R"lua(
local queue, index, states, bodies, notes, keys, runs, dead, kept, claimed, fence, due, names =
  unpack(KEYS, 1, 13)
local name = ARGV[2]
typed({'hash', 'zset', 'hash', 'hash', 'hash', 'hash', 'hash', 'zset', 'zset', 'zset', 'string',
  'zset', 'zset'})
local PENDING, LEASED, COMPLETED, DEAD, CANCELLED = 0, 1, 2, 3, 4
local holds_while_waiting = {true, true, false, true, true}
local holds_while_running = {false, false, true, true, false}
local start_frees_key = {false, true, false, true, false}
local end_frees_key = {true, true, false, true, false}

local form = '>BBBBI4I4I4I8I8I8I8I8I8I8I8I2'
local function parse(id, state)
  local j, size, at = {id = id}
  j.priority, j.ended, j.strategy, j.policy, j.attempts, j.max_attempts, j.snoozes, j.vesting,
    j.unclaimed, j.enqueued, j.deadline_from, j.deadline, j.retention, j.fence, j.death, size, at =
    struct.unpack(form, state)
  j.key, j.holder = state:sub(at, at + size - 1), state:sub(at + size)
  return j
end
local function save(j)
  call('HSET', states, j.id, struct.pack(form, j.priority, j.ended, j.strategy, j.policy,
    j.attempts, j.max_attempts, j.snoozes, j.vesting, j.unclaimed, j.enqueued, j.deadline_from,
    j.deadline, j.retention, j.fence, j.death, #j.key) .. j.key .. j.holder)
end
local function gone(j)
  return (j.ended == COMPLETED or j.ended == CANCELLED) and j.vesting <= now
end
local function find(id)
  local state = call('HGET', states, id)
  local j = state and parse(id, state)
  if j and not gone(j) then return j end
end
-- A job of the index or of the dead letters, which has a record unless somebody has deleted that.
local function must_find(id)
  return find(id) or error('CORRUPT weir: a job without its record')
end
local function state_of(j)
  if j.ended ~= PENDING then return j.ended end
  return j.holder ~= '' and j.vesting > now and LEASED or PENDING
end
local function leased(id, by)
  local j = find(id)
  if j and state_of(j) == LEASED and j.fence == tonumber(by) then return j end
end

local function rank(priority, vesting) return struct.pack('>BI8', priority, vesting) end
local function put(j) call('ZADD', index, 0, rank(j.priority, j.vesting) .. j.id) end
local function remove(j) call('ZREM', index, rank(j.priority, j.vesting) .. j.id) end
-- Calls `level(priority, vesting of the head)` for each level, until it returns true.
local function levels(level)
  local from = '-'
  while true do
    local head = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, 1)[1]
    if not head then return end
    local priority, vesting = struct.unpack('>BI8', head)
    if level(priority, vesting) or priority == 255 then return end
    from = '[' .. string.char(priority + 1)
  end
end
local function visible(priority, most)
  return call('ZRANGEBYLEX', index, '[' .. string.char(priority), '(' .. rank(priority, now + 1),
    'LIMIT', 0, most)
end
local function heads()
  local least, any
  levels(function(_, vesting)
    if not least or vesting < least then least = vesting end
    any = any or vesting <= now
  end)
  return least, any
end

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

local function count(what, n) return call('HINCRBY', queue, what, n) end
local function erase(id)
  call('HDEL', states, id)
  call('HDEL', bodies, id)
  call('HDEL', notes, id)
end
local function drop(j)
  if j.ended == DEAD then call('ZREM', dead, j.id) else call('ZREM', kept, 'j' .. j.id) end
  erase(j.id)
end
local function note(id, memo, result, reason)
  local v, m, r, w = call('HGET', notes, id), '', '', ''
  if v then
    local a, b, at = struct.unpack('>I2I4', v)
    m, r, w = v:sub(at, at + a - 1), v:sub(at + a, at + a + b - 1), v:sub(at + a + b)
  end
  m, r, w = memo or m, result or r, reason or w
  if v or #m + #r + #w > 0 then
    call('HSET', notes, id, struct.pack('>I2I4', #m, #r) .. m .. r .. w)
  end
end
-- The job ends; its record may be gone after this.
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
-- The job waits, with the enqueue key that its start gave up, if that is free.
local function wait_again(j, vesting)
  if start_frees_key[j.strategy] and not owner_of(j.key) then hold(j.key, j.id, 0) end
  remove(j)
  unclaim(j)
  j.vesting = vesting
  put(j)
  save(j)
end
-- Why a visible job cannot be claimed, if it cannot.
local function unclaimable(j)
  if j.attempts >= j.max_attempts then
    return 'its attempts are spent: the last holder let its lease end'
  end
  if j.deadline > 0 and j.deadline_from + j.deadline < now then
    return 'its deadline was missed'
  end
end
local function claim(j, holder, by, lease)
  remove(j)
  unclaim(j)
  j.fence, j.holder, j.attempts = by, holder, j.attempts + 1
  j.unclaimed, j.vesting = j.vesting, now + lease
  put(j)
  call('ZADD', claimed, decimal(j.vesting), j.id)
  save(j)
end

-- Where a scan finds the queue: never later than its first job vests, unless it is held.
local function holds()
  local h = call('HMGET', queue, 'paused', 'snoozed')
  local snoozed = tonumber(h[2] or 0)
  return h[1] == '1' or now < snoozed, h[1] == '1', snoozed
end
local function no_later_than(vesting)
  local _, paused, snoozed = holds()
  if paused then return end
  local at, new = tonumber(call('ZSCORE', due, name) or nil), math.max(vesting, snoozed)
  if not at or new < at then
    call('ZADD', due, decimal(new), name)
    if new <= now then tell(ARGV[3], due) end
  end
end
local function point(least)
  local _, paused, snoozed = holds()
  if paused or not least then return call('ZREM', due, name) end
  call('ZADD', due, decimal(math.max(least, snoozed)), name)
end

-- A little of the work that time has made: as much as steps make, and never much at once.
local function tidy(n)
  for _, what in ipairs(call('ZRANGEBYSCORE', kept, '-inf', decimal(now), 'LIMIT', 0, 2 * n + 2)) do
    call('ZREM', kept, what)
    if what:sub(1, 1) == 'k' then call('HDEL', keys, what:sub(2)) else erase(what:sub(2)) end
  end
end
-- After jobs may have ended: an empty queue leaves the scan in the same step, so there are no stale
-- pointers; and where only time will end what is left, that is left to the server.
local function settle()
  if call('ZCARD', index) > 0 then return end
  call('ZREM', due, name)
  if call('ZCARD', dead) > 0 then return end
  local last = call('ZREVRANGE', kept, 0, 0, 'WITHSCORES')[2]
  if not last then return end
  for _, key in ipairs({states, bodies, notes, keys, kept}) do keep(key, tonumber(last)) end
end
local function unsettle()
  if call('ZCARD', index) + call('ZCARD', dead) > 0 or call('ZCARD', kept) == 0 then return end
  for _, key in ipairs({states, bodies, notes, keys, kept}) do call('PERSIST', key) end
end
local function name_it()
  if call('ZADD', names, 0, name) == 1 then call('HSETNX', queue, 'enqueued', 0) end
end

-- What travels of a job.
local function micros_or_null(j)
  if j.deadline == 0 then return false end
  return j.deadline_from + j.deadline - now
end
local function describe_lease(j)
  return {j.id, j.fence, j.vesting - now, j.priority, j.attempts, j.max_attempts, j.snoozes,
    now - j.enqueued, micros_or_null(j), j.strategy, j.key, call('HGET', bodies, j.id),
    call('HGET', notes, j.id) or ''}
end
local function describe(j)
  local state = state_of(j)
  local has = state == LEASED
  return {j.id, state, j.priority, j.attempts, j.max_attempts, j.snoozes,
    state <= LEASED and j.vesting - now or 0, now - j.enqueued, micros_or_null(j), j.strategy,
    j.policy, j.key, call('HGET', bodies, j.id), call('HGET', notes, j.id) or '',
    has and j.holder or '', has and j.fence or 0}
end
)lua";

}  // namespace weir::detail::lua

#endif
