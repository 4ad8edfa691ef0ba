// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_LUA_HPP
#define WEIR_STORE_REDIS_JOB_LUA_HPP

#include "weir/job.hpp"
#include "weir/limits.hpp"

// What the scripts of the job commands are made of. Each takes the pieces that it uses; a piece
// names those that have to come before it.
namespace weir::detail::lua {

/// A queue's keys, in the order of KEYS:
///
/// - `queue`: a hash with its counters, pause, snooze and lease; all that an empty queue leaves
/// - `index`: the jobs that have not ended, in the order of their ranks. All scores are 0, and the
///   members are {priority, vesting time, id} as bytes: so each priority level is a range, whose
///   head is found in O(log n), and empty levels cost nothing
/// - `jobs`: a hash; for each job its id, with its `record`; and what few jobs have besides: its id
///   and "b", with a body that is too long to be written anew at each step, its id and "n", with
///   its notes (memo, result, reason)
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
-- A counter that is damaged begins anew; deaths go on from the last one, or from now.
local function increase(what, n)
  local total = redis.pcall('HINCRBY', queue, what, n)
  if type(total) == 'number' and total >= 0 and total <= 9007199254740992 then return total end
  if what == 'deaths' then
    n = math.floor(tonumber(call('ZREVRANGE', dead, 0, 0, 'WITHSCORES')[2] or 0)) + 1
    if not (n > 0 and n < 9007199254740992) then n = now end
  end
  call('HSET', queue, what, decimal(math.max(n, 0)))
  return n
end
)lua";

/// Where a step can come to any of a queue's keys, it looks at each of them before it writes: one
/// of a wrong type is an error of the server's, which would otherwise end the step half-way.
/// `names` is written first, or does not matter. After `queue`.
inline constexpr char typed[] = R"lua(
call('HLEN', queue)
call('ZCARD', index)
call('HLEN', jobs)
call('HLEN', keys)
call('HLEN', runs)
call('ZCARD', dead)
call('ZCARD', kept)
call('ZCARD', claimed)
call('ZCARD', due)
)lua";

/// What is kept of a job in one field, and travels as it is (store/redis/job_record.hpp): these
/// numbers, its unique key, its holder and, unless that is long, its body. What a claim changes
/// comes first: attempts, vesting time, the one before, fence, size of the holder. Then priority,
/// how it ended, `extras` (1 where it has notes, and 2 where its body is elsewhere); most attempts,
/// what its deadline counts from, the deadline, size of the key; strategy, policy, snoozes, when it
/// was enqueued, retention, which death it died.
inline constexpr char form[] = R"lua(
local form, long_body = '>I4I8I8I8I2BBBI4I8I8I2BBI4I8I8I8', 200
)lua";

/// Can a record be read, with what the job has besides? After `queue` and `form`.
inline constexpr char sound[] = R"lua(
local function sound(id, raw)
  if not raw or #raw < 85 then return false end
  local _, vesting, unclaimed, by, holder, _, ended, extras, _, deadline_from, deadline, key,
    strategy, policy, _, enqueued, retention, death, at = struct.unpack(form, raw)
  local latest = math.max(vesting, unclaimed, by, deadline_from, deadline, enqueued, retention, death)
  if latest > 9007199254740992 or ended > 4 or extras > 3 or strategy > 5 or policy > 4 then
    return false
  end
  local body = extras > 1 and call('HGET', jobs, id .. 'b')
  if extras > 1 then
    at = 1
    if not body or #raw ~= 85 + key + holder then return false end
  else
    at, body = at + key + holder, raw
  end
  if #body < at + 1 or #body < at + 1 + struct.unpack('>I2', body, at) then return false end
  if extras % 2 == 0 then return true end
  local notes = call('HGET', jobs, id .. 'n')
  if not notes or #notes < 6 then return false end
  local memo, result = struct.unpack('>I2I4', notes)
  return #notes >= 6 + memo + result
end
)lua";

/// The beginning of what most runs of a script do not need, of which each such script has an end of
/// its own. Its functions are made when it is called: making one costs a quarter of a command.
inline constexpr char rarely[] = R"lua(
local function rarely()
)lua";

/// A record as a table. After `sound`.
inline constexpr char record[] = R"lua(
-- All fields at once: a table that grows is made several times.
local function parse(id, raw)
  local attempts, vesting, unclaimed, by, holder, priority, ended, extras, max_attempts,
    deadline_from, deadline, key, strategy, policy, snoozes, enqueued, retention, death, at =
    struct.unpack(form, raw)
  return {id = id, raw = raw, priority = priority, ended = ended, strategy = strategy,
    policy = policy, extras = extras, attempts = attempts, max_attempts = max_attempts,
    snoozes = snoozes, vesting = vesting, unclaimed = unclaimed, enqueued = enqueued,
    deadline_from = deadline_from, deadline = deadline, retention = retention, fence = by,
    death = death, key = raw:sub(at, at + key - 1),
    holder = raw:sub(at + key, at + key + holder - 1), body = raw:sub(at + key + holder)}
end
local function save(j)
  j.raw = struct.pack(form, j.attempts, j.vesting, j.unclaimed, j.fence, #j.holder, j.priority,
    j.ended, j.extras, j.max_attempts, j.deadline_from, j.deadline, #j.key, j.strategy, j.policy,
    j.snoozes, j.enqueued, j.retention, j.death) .. j.key .. j.holder .. j.body
  call('HSET', jobs, j.id, j.raw)
end
local function gone(j)
  return (j.ended == COMPLETED or j.ended == CANCELLED) and j.vesting <= now
end
local function state_of(j)
  if j.ended ~= PENDING then return j.ended end
  return j.holder ~= '' and j.vesting > now and LEASED or PENDING
end
)lua";

/// One job. One that is damaged is none to `look`, and an error to `find`. After `record`.
inline constexpr char find[] = R"lua(
local function look(id)
  local raw = call('HGET', jobs, id)
  if not sound(id, raw) then return nil, raw end
  local j = parse(id, raw)
  if not gone(j) then return j end
end
local function find(id)
  local j, raw = look(id)
  if raw then error('CORRUPT weir: a job') end
  return j
end
)lua";

/// The lease of a job, if it is this one still. After `find`.
inline constexpr char leased[] = R"lua(
local function leased(id, by)
  local j = look(id)
  if j and state_of(j) == LEASED and j.fence == tonumber(by) then return j end
end
)lua";

/// The records of the n jobs whose ids are among ARGV, from there on and so far apart; false: none.
inline constexpr char find_all[] = R"lua(
local function find_all(n, from, step)
  if n == 1 then return {call('HGET', jobs, ARGV[from])} end
  local out = {}
  for first = 1, n, 1000 do
    local ids = {}
    for i = first, math.min(first + 999, n) do
      ids[i - first + 1] = ARGV[from + (i - 1) * step]
    end
    for i, raw in ipairs(call('HMGET', jobs, unpack(ids))) do out[first + i - 1] = raw end
  end
  return out
end
)lua";

/// After `record`.
inline constexpr char index[] = R"lua(
local function rank(priority, vesting) return struct.pack('>BI8', priority, vesting) end
local function put(j) call('ZADD', index, '0', rank(j.priority, j.vesting) .. j.id) end
local function remove(j) call('ZREM', index, rank(j.priority, j.vesting) .. j.id) end
)lua";

/// The least vesting time, and whether any job is visible.
inline constexpr char heads[] = R"lua(
local function heads()
  local head, last = call('ZRANGE', index, '0', '0')[1], nil
  local least, any = nil, false
  while head do
    local priority, vesting = head:byte() or 0, 0  -- of one that is damaged
    if #head >= 9 then priority, vesting = struct.unpack('>BI8', head) end
    if not least or vesting < least then least = vesting end
    any = any or vesting <= now
    last = last or call('ZRANGE', index, '-1', '-1')[1]:byte()
    if priority == last then break end
    local from = '[' .. string.char(priority + 1)
    head = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', '0', '1')[1]
  end
  if least and least > 9007199254740992 then least = 9007199254740992 end  -- damaged
  return least, any
end
)lua";

/// Calls `use` with visible jobs' members of the index, in their order and up to `most()` at once,
/// until that is 0.
inline constexpr char visible[] = R"lua(
local function visible(most, use)
  local from, n = nil, most()
  while n > 0 do
    local here, members = {}, nil
    if from then
      members = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', '0', n)
    else
      members = call('ZRANGE', index, '0', n - 1)
    end
    from = #members == n and '(' .. members[n]
    for i, member in ipairs(members) do
      local priority, vesting = member:byte() or 0, 0  -- of one that is damaged
      if #member >= 9 then priority, vesting = struct.unpack('>BI8', member) end
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
  if not v or #v ~= 24 then return end
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

/// After `queue`.
inline constexpr char erase[] = R"lua(
local function erase(id) call('HDEL', jobs, id, id .. 'b', id .. 'n') end
)lua";

/// How jobs end. After `index`, `unique` and `erase`.
inline constexpr char ends[] = R"lua(
local function count(what, n) return increase(what, n) end
local function drop(j)
  if j.ended == DEAD then call('ZREM', dead, j.id) else call('ZREM', kept, 'j' .. j.id) end
  erase(j.id)
end
-- To be saved.
local function note(j, memo, result, reason)
  local has, m, r, w = j.extras % 2 == 1, '', '', ''
  if has then
    local v = call('HGET', jobs, j.id .. 'n')
    local a, b, at = struct.unpack('>I2I4', v)
    m, r, w = v:sub(at, at + a - 1), v:sub(at + a, at + a + b - 1), v:sub(at + a + b)
  end
  m, r, w = memo or m, result or r, reason or w
  if has or #m + #r + #w > 0 then
    call('HSET', jobs, j.id .. 'n', struct.pack('>I2I4', #m, #r) .. m .. r .. w)
    if not has then j.extras = j.extras + 1 end
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
  note(j, nil, nil, reason)
  finish(j, DEAD)
end
)lua";

/// Makes a dead letter of a record that cannot be read, with the bytes found as payload. Its keys
/// are freed if they can be read, and are its own. After `ends`.
inline constexpr char set_aside[] = R"lua(
local function set_aside(member, id, raw)
  local found, key = raw or '', nil
  call('ZREM', index, member)
  call('ZREM', claimed, id)
  call('ZREM', kept, 'j' .. id)
  if #found >= 85 then
    local last = 85 + struct.unpack('>I2', found, 54)
    if #found >= last then key = found:sub(86, last) end
  end
  if key then
    free({id = id, key = key})
    if call('HGET', runs, key) == id then call('HDEL', runs, key) end
  end
  if #id ~= 16 then
    call('HDEL', jobs, id)
    id = redis.sha1hex(member):sub(1, 16)
  end
  local reason, death = 'the record is damaged', count('deaths', 1)
  call('ZADD', dead, death, id)
  call('HSET', jobs,
    id, struct.pack(form, 0, now, 0, 0, 0, member:byte() or 0, DEAD, 3, 1, now, 0, 0, 0, 0, 0, now,
      0, death),
    id .. 'b', struct.pack('>I2', 7) .. 'damaged' .. found:sub(1, 1048576),
    id .. 'n', struct.pack('>I2I4', 0, 0) .. reason)
end
)lua";

static_assert(damaged_record == "the record is damaged");
static_assert(limits::payload_size == 1'048'576);

/// The job that has an enqueue key, by its id, and its record if it has one. One that waits and
/// that nobody can claim any more gives the key up and is buried: then nobody has it. Unless the
/// key is held until_expired: then that job counts as ended, and has no record here. After `find`
/// and `ends`.
inline constexpr char possessor[] = R"lua(
local function possessor(key)
  local id = owner_of(key)
  local o, reason = id and look(id), nil
  if not o or state_of(o) ~= PENDING then return id, o end
  if o.attempts >= o.max_attempts then
    reason = 'its attempts are spent: the last holder let its lease end'
  elseif o.deadline > 0 and o.deadline_from + o.deadline < now then
    reason = 'its deadline was missed'
  end
  if not reason then return id, o end
  if not end_frees_key[o.strategy] then return id end
  bury(o, reason)
end
)lua";

/// A little of the work that time has made: as much as steps make, and never much at once. After
/// `erase`.
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
  local flags = call('HGET', queue, 'flags') or '000'
  call('HSET', queue, 'flags', flags:sub(1, 1) .. '1' .. flags:sub(3))
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

/// What a queue is held by, and whether it is fading (see `settle`), in one field: two digits, and
/// the end of the snooze. Queues that were used have it.
inline constexpr char flags[] = R"lua(
local flags = call('HGET', KEYS[1], 'flags')
if flags and flags ~= '000' and (#flags > 18 or not flags:match('^[01][01]%d+$')) then
  flags = '000'
end
)lua";

/// `held`, `paused`, and until when it is `snoozed`. After `flags`.
inline constexpr char holds[] = R"lua(
local paused, fading, snoozed = false, false, 0
if flags and flags ~= '000' then
  paused, fading = flags:sub(1, 1) == '1', flags:sub(2, 2) == '1'
  snoozed = tonumber(flags:sub(3))
end
local held = paused or now < snoozed
)lua";

/// After `holds`.
inline constexpr char save_holds[] = R"lua(
local function save_holds()
  call('HSET', queue, 'flags',
    (paused and '1' or '0') .. (fading and '1' or '0') .. decimal(snoozed))
end
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
  if call('ZADD', names, '0', name) == 1 then call('HSETNX', queue, 'enqueued', 0) end
end
)lua";

/// Adds to `out` what travels of a job: its id, its record, and what it has besides.
inline constexpr char describe[] = R"lua(
local function describe(out, id, raw)
  local extras, n = raw:byte(33), #out
  out[n + 1], out[n + 2] = id, raw
  if extras >= 2 then
    out[n + 3] = call('HGET', jobs, id .. 'b')
    n = n + 1
  end
  if extras % 2 == 1 then out[n + 3] = call('HGET', jobs, id .. 'n') end
end
)lua";
/// The same, unless that is more than an answer may have (`limits::answer_bytes`): then nothing is
/// added, and the answer ends there. It counts all that travels of a job, and so a little more than
/// its texts. After `describe`.
inline constexpr char fits[] = R"lua(
local room = 4194304
local function fits(out, id, raw)
  local n = #out
  describe(out, id, raw)
  for i = n + 1, #out do room = room - #out[i] end
  if room >= 0 then return true end
  for i = #out, n + 1, -1 do out[i] = nil end
end
)lua";
static_assert(limits::answer_bytes == 4'194'304);
}  // namespace weir::detail::lua

#endif
