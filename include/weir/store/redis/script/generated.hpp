// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Made from the .lua files beside it by `./dev generate`: change those, not this.
// clang-format off

#ifndef WEIR_STORE_REDIS_SCRIPT_GENERATED_HPP
#define WEIR_STORE_REDIS_SCRIPT_GENERATED_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/redis/job_record.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/unique.hpp"

#include <cstddef>

namespace weir::detail::lua {

static_assert(!holds_while_running(unique_strategy{0}));
static_assert(!holds_while_running(unique_strategy{1}));
static_assert(!holds_while_running(unique_strategy{2}));
static_assert(!holds_while_running(unique_strategy{5}));
static_assert(!holds_while_waiting(unique_strategy{0}));
static_assert(!holds_while_waiting(unique_strategy{3}));
static_assert(!rule::end_frees_key(unique_strategy{0}));
static_assert(!rule::end_frees_key(unique_strategy{3}));
static_assert(!rule::end_frees_key(unique_strategy{5}));
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
static_assert(limits::batch_bytes == 16777216);
static_assert(limits::checkpoint_size == 65536);
static_assert(limits::headers_size == 4096);
static_assert(limits::holder_size == 128);
static_assert(limits::key_size == 1024);
static_assert(limits::memo_size == 1024);
static_assert(limits::payload_size == 1048576);
static_assert(limits::progress_size == 1024);
static_assert(limits::reason_size == 4096);
static_assert(offsetof(redis_record, attempts) == 0);
static_assert(offsetof(redis_record, deadline) == 45);
static_assert(offsetof(redis_record, deadline_from) == 37);
static_assert(offsetof(redis_record, death) == 77);
static_assert(offsetof(redis_record, ended) == 31);
static_assert(offsetof(redis_record, enqueued) == 61);
static_assert(offsetof(redis_record, extras) == 32);
static_assert(offsetof(redis_record, fence) == 20);
static_assert(offsetof(redis_record, holder_size) == 28);
static_assert(offsetof(redis_record, key_size) == 53);
static_assert(offsetof(redis_record, max_attempts) == 33);
static_assert(offsetof(redis_record, policy) == 56);
static_assert(offsetof(redis_record, priority) == 30);
static_assert(offsetof(redis_record, retention) == 69);
static_assert(offsetof(redis_record, snoozes) == 57);
static_assert(offsetof(redis_record, strategy) == 55);
static_assert(offsetof(redis_record, unclaimed) == 12);
static_assert(offsetof(redis_record, vesting) == 4);
static_assert(redis_exact == 9007199254740992);
static_assert(redis_farthest == 315360000000000);
static_assert(redis_lead == 2000000);
static_assert(redis_more == 32768);
static_assert(redis_noted == 200000);
static_assert(redis_past == 1735689600000000);
static_assert(redis_piece == 250);
static_assert(redis_whole == 10000);
static_assert(result_had_no_room == "its result had no room");
static_assert(rule::burials_per_dequeue == 100);
static_assert(rule::end_frees_key(unique_strategy{1}));
static_assert(rule::end_frees_key(unique_strategy{2}));
static_assert(rule::end_frees_key(unique_strategy{4}));
static_assert(rule::reason_missed == "its deadline was missed");
static_assert(rule::reason_spent == "its attempts are spent: the last holder let its lease end");
static_assert(rule::start_frees_key(unique_strategy{2}));
static_assert(rule::start_frees_key(unique_strategy{4}));
static_assert(sizeof(redis_record) == 85);
static_assert(static_cast<int>(cancel_outcome::cancelled) == 0);
static_assert(static_cast<int>(cancel_outcome::ended) == 2);
static_assert(static_cast<int>(cancel_outcome::not_found) == 3);
static_assert(static_cast<int>(cancel_outcome::running) == 1);
static_assert(static_cast<int>(complete_outcome::completed) == 0);
static_assert(static_cast<int>(complete_outcome::completed_without_result) == 2);
static_assert(static_cast<int>(complete_outcome::lease_lost) == 1);
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
static_assert(static_cast<int>(relay_outcome::changed) == 1);
static_assert(static_cast<int>(relay_outcome::not_found) == 2);
static_assert(static_cast<int>(relay_outcome::relayed) == 0);
static_assert(static_cast<int>(unique_strategy::none) == 0);
static_assert(static_cast<int>(unique_strategy::until_expired) == 5);
static_assert(static_cast<int>(unique_strategy::while_executing) == 3);

inline constexpr char part_bucket[] = R"lua(
local key, quotas, never = KEYS[1], ARGV[2], -4503599627370496
local value = call('GET', key)
)lua";

inline constexpr char part_buckets[] = R"lua(
local function normal(q, r, gain)
  if r >= gain then return q + 1, r - gain end
  if r < 0 then return q - 1, r + gain end
  return q, r
end
local function before(q1, r1, q2, r2) return q1 < q2 or (q1 == q2 and r1 < r2) end

local function scales(text)
  local out = {}
  for g, q, r, c in text:gmatch('(%d+) (%d+) (%d+) (%d+) ') do
    out[#out + 1] = {tonumber(g), tonumber(q), tonumber(r), tonumber(c)}
  end
  return out
end
-- A bucket that is damaged is not counted with: some of these loops would not end.
local arrivals, known, exact = {}, nil, 9007199254740992
if value then
  known = value:match('^[%d ]*|')
  if not known then error('WRONGTYPE weir: no bucket') end
  local all = scales(known)
  local good = #value >= #known + 16 * #all
  for i, s in ipairs(all) do
    if not good then break end
    local q, r = struct.unpack('>i8I8', value, #known + 16 * i - 15)
    arrivals[i] = {q, r}
    good = s[1] > 0 and s[2] + s[3] > 0 and math.max(unpack(s)) <= exact and s[3] <= s[1] and
      r <= s[1] and q <= exact and q >= 2 * never
  end
  if not good then error('CORRUPT weir: a bucket') end
end
local function write(to, known, ...)
  local parts = {known}
  for i, a in ipairs(to) do parts[i + 1] = struct.pack('>i8I8', a[1], a[2]) end
  local bytes = table.concat(parts)
  if redis.pcall('SET', key, bytes, ...).err then
    if together then return end
    -- A bucket that is there needs no room; a full server refuses it unless something was written.
    if value then call('PEXPIRE', key, math.max(call('PTTL', key), 1)) end
    call('SET', key, bytes, ...)
    if unnoted then call('SET', KEYS[#KEYS], unnoted) end
  end
  return true
end

-- (q, r) so many times; and how many times it goes into (aq, ar), and whether something is left.
local function times(n, q, r, gain)
  local sq, sr = 0, 0
  while n > 0 do
    if n % 2 == 1 then sq, sr = normal(sq + q, sr + r, gain) end
    q, r = normal(q + q, r + r, gain)
    n = math.floor(n / 2)
  end
  return sq, sr
end
local function divide(aq, ar, q, r, gain)
  local powers, n = {}, 0
  while not before(aq, ar, q, r) do
    powers[#powers + 1] = {q, r}
    q, r = normal(q + q, r + r, gain)
  end
  for i = #powers, 1, -1 do
    n = n * 2
    if not before(aq, ar, powers[i][1], powers[i][2]) then
      aq, ar = normal(aq - powers[i][1], ar - powers[i][2], gain)
      n = n + 1
    end
  end
  return n, aq + ar > 0
end
)lua";

inline constexpr char part_last_request[] = R"lua(
local asked, takes, most, gain, pq, pr, rq, rr
)lua";

inline constexpr char part_quick_take[] = R"lua(
if ARGV[3] ~= asked then
  asked = ARGV[3]
  takes, most, gain, pq, pr, rq, rr =
    asked:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) $')
  most, gain, pq, pr, rq, rr =
    tonumber(most), tonumber(gain), tonumber(pq), tonumber(pr), tonumber(rq), tonumber(rr)
end
if takes and (not value or value:sub(1, #quotas) == quotas) then
  local q, r, wait = never, 0, 0
  if value then
    if #value < #quotas + 16 then error('CORRUPT weir: a bucket') end
    q, r = struct.unpack('>i8I8', value, #quotas + 1)
    if q > -2 * never or q < 2 * never or r > gain then error('CORRUPT weir: a bucket') end
  end
  local dq, dr = q + pq - rq, r + pr - rr
  if dr > 0 then dq = dq + (dr > gain and 2 or 1) end
  if dq > now then wait = dq - now end
  if wait > most then return {0, now, q, r} end
  if takes == '1' then
    local tq, tr = q, r
    if q < now + wait then tq, tr = now + wait, 0 end
    tq, tr = tq + pq, tr + pr
    if tr >= gain then tq, tr = tq + 1, tr - gain end
    local bytes, till = quotas .. struct.pack('>i8I8', tq, tr), decimal(math.ceil((tq + 1 - now) / 1000) + slack)
    if redis.pcall('SET', key, bytes, 'PX', till).err then
      if together then return end
      -- A bucket that is there needs no room; a full server refuses it unless something was written.
      if value then call('PERSIST', key) end
      call('SET', key, bytes, 'PX', till)
      if unnoted then call('SET', KEYS[#KEYS], unnoted) end
    end
  end
  return {1, now, q, r}
end
)lua";

inline constexpr char part_any_take[] = R"lua(
if known and known ~= quotas then
  local old, new = scales(known), scales(quotas)
  for i, s in ipairs(new) do
    local g, tq, tr, capacity = unpack(s)
    local a, o = arrivals[i], old[i]
    arrivals[i] = {never, 0}
    if a and o then
      local missing, more = 0, false
      if a[1] >= now then missing, more = divide(a[1] - now, a[2], o[2], o[3], o[1]) end
      local q, r = times(math.min(missing + (more and 1 or 0), capacity), tq, tr, g)
      arrivals[i] = {q + now, r}
    end
  end
  for i = #new + 1, #arrivals do arrivals[i] = nil end
end

local each, wait, out, request = {}, 0, {1, now}, {}
for n in ARGV[3]:gmatch('%d+') do request[#request + 1] = tonumber(n) end
local spends, max_wait = request[1] == 1, request[2]
for i = 1, (#request - 2) / 5 do
  local q = {unpack(request, 5 * i - 2, 5 * i + 2)}
  local gain, pq, pr, rq, rr = unpack(q)
  each[i], arrivals[i] = q, arrivals[i] or {never, 0}
  local a = arrivals[i]
  out[#out + 1], out[#out + 2] = a[1], a[2]
  local dq, dr = normal(a[1] + pq - rq, a[2] + pr - rr, gain)
  wait = math.max(wait, (dr > 0 and dq + 1 or dq) - now)
end
if wait > max_wait then
  out[1] = 0
elseif spends then
  local full = now
  for i, q in ipairs(each) do
    local gain, pq, pr = unpack(q)
    local a = arrivals[i]
    if a[1] < now + wait then a = {now + wait, 0} end
    a = {normal(a[1] + pq, a[2] + pr, gain)}
    arrivals[i] = a
    full = math.max(full, a[1] + 1)
  end
  local till = decimal(math.ceil((full - now) / 1000) + slack)
  if not write(arrivals, quotas, 'PX', till) then return end
end
return out
)lua";

inline constexpr char part_common[] = R"lua(
local call = redis.call
local now, slack, lead, unnoted = tonumber(ARGV[1]), 3155760000000, 0, nil
if not now then
  local t, clock = call('TIME'), KEYS[2] and KEYS[#KEYS]
  now, slack = t[1] * 1000000 + t[2], 60000
  local noted = clock and call('GET', clock)
  local seen = tonumber(noted or nil)
  if clock and not (seen and seen - now <= 1000000 and now - seen <= 200000) then
    local ahead
    seen, ahead = (noted or ''):match('^(%d+)%+?(%d*)$')
    seen, ahead = tonumber(seen) or 0, tonumber(ahead) or 0
    local was, may_be_right = ahead, now >= 1735689600000000
    -- A clock that cannot be right is not believed, and a note is, however far ahead. Any other is
    -- believed where a note is years ahead: it is damaged, and by it all that is held would end.
    local far = may_be_right and now + 315360000000000 or 9007199254740992 - 1
    if seen > far or ahead > seen then seen, ahead = 0, 0 end
    -- Right again, or nearly: what it was behind by, added once more, would end what is held.
    if now >= seen - ahead / 10 or may_be_right and seen - ahead < 1735689600000000 then
      ahead = math.max(seen - now, 0)
    end
    now = now + ahead
    local behind = seen - now
    if behind > 1000000 or behind < -200000 or ahead ~= was then
      if behind > 1000000 then ahead, now = ahead + behind, seen end
      unnoted = string.format(ahead > 0 and '%d+%d' or '%d', now, ahead)
      if not redis.pcall('SET', clock, unnoted).err then
        unnoted = nil
        if behind > 1000000 then
          redis.log(redis.LOG_WARNING, 'weir: the clock is ' .. math.floor(behind / 1000000) ..
            ' s behind; time goes on from where it was')
        end
      end
    end
    slack = slack + math.ceil(ahead / 1000)
    if ahead > 0 then lead = 2000000 end
  end
  if seen and seen > now then lead = 2000000 end
end
local function decimal(number) return string.format('%d', number) end
)lua";

inline constexpr char part_note_time[] = R"lua(
if unnoted then
  call('PERSIST', KEYS[#KEYS])
  call('SET', KEYS[#KEYS], unnoted)
  unnoted = nil
end
)lua";

inline constexpr char part_next_fences[] = R"lua(
local function next_fences(key, n)
  local first = now + lead
  local was = call('SET', key, decimal(first + n - 1), 'GET')
  local last = was and tonumber(was) or 0
  if was and (not was:match('^%d+$') or last > 9007199254740992 - n) then
    call('SET', key, was)
    error('CORRUPT weir: a fence')
  end
  if last < first then return first end
  call('SET', key, decimal(last + n))
  return last + 1
end
)lua";

inline constexpr char part_tell[] = R"lua(
local function tell(channel, key) redis.pcall('PUBLISH', channel, key) end
)lua";

inline constexpr char part_next_in_turn[] = R"lua(
local function next_in_turn(idle, n)
  n = math.min(n, 10)
  for _ = 1, 1000 do
    local channel = n > 0 and redis.pcall('ZRANGE', idle, 0, 0)[1]
    if not channel then return end
    redis.pcall('ZREM', idle, channel)
    if redis.pcall('PUBLISH', channel, idle) ~= 0 then n = n - 1 end
  end
end
)lua";

inline constexpr char part_wait_in_turn[] = R"lua(
redis.pcall('ZREM', idle, '')
if redis.pcall('ZADD', idle, 'NX', decimal(now), channel) == 1 then
  redis.pcall('PEXPIRE', idle, '86400000')
end
)lua";

inline constexpr char part_keep[] = R"lua(
local function kept_for(till)
  till = math.max(now, math.min(till, 9007199254740992))
  return decimal(math.ceil((till - now) / 1000) + slack)
end
local function keep(key, till) call('PEXPIRE', key, kept_for(till)) end
)lua";

inline constexpr char part_form[] = R"lua(
local form, long_body = '>I4I8I8I8I2BBBI4I8I8I2BBI4I8I8I8', 200
)lua";

inline constexpr char part_sound[] = R"lua(
local function sound(id, raw, bodiless)
  if not raw or #raw < 85 then return false end
  local _, vesting, unclaimed, by, holder, _, ended, extras, _, deadline_from, deadline, key,
    strategy, policy, _, enqueued, retention, death, at = struct.unpack(form, raw)
  local latest = math.max(vesting, unclaimed, by, deadline_from, deadline, enqueued, retention, death)
  if latest > 9007199254740992 or ended > 4 or extras > 3 or strategy > 5 or policy > 4 or key > 1024 or holder > 128 then
    return false
  end
  local body = raw
  at = at + key + holder
  if extras > 1 then
    if #raw ~= at - 1 then return false end
    at, body = 1, not bodiless and (call('HGET', jobs, id .. 'b') or '')
  end
  if body then
    if #body < at + 1 then return false end
    local kind, headers, payload = struct.unpack('>I2', body, at), 0, #body - at - 1
    if kind >= 32768 then
      if payload < 2 then return false end
      kind, headers, payload = kind - 32768, struct.unpack('>I2', body, at + 2), payload - 2
    end
    payload = payload - kind - headers
    if payload < 0 or payload > 1048576 or kind > 1024 or headers > 4096 then
      return false
    end
  end
  if extras % 2 == 0 then return true, body end
  local notes = call('HGET', jobs, id .. 'n')
  if not notes or #notes < 6 then return false end
  local memo, result = struct.unpack('>I2I4', notes)
  local progress, checkpoint, reason = 0, 0, #notes - 6
  if memo >= 32768 then
    if reason < 6 then return false end
    memo, reason = memo - 32768, reason - 6
    progress, checkpoint = struct.unpack('>I2I4', notes, 7)
  end
  reason = reason - memo - result - progress - checkpoint
  return memo <= 1024 and result <= 1048576 and progress <= 1024 and checkpoint <= 65536 and reason >= 0 and reason <= 4096, body
end
)lua";

inline constexpr char part_record[] = R"lua(
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

inline constexpr char part_find[] = R"lua(
local function look(id, bodiless)
  local raw = call('HGET', jobs, id)
  if not sound(id, raw, bodiless) then return nil, raw end
  local j = parse(id, raw)
  if not gone(j) then return j end
end
local function find(id)
  local j, raw = look(id)
  if raw then error('CORRUPT weir: a job') end
  return j
end
)lua";

inline constexpr char part_leased[] = R"lua(
local function leased(id, by, bodiless)
  local j = look(id, bodiless)
  if j and state_of(j) == LEASED and j.fence == tonumber(by) then return j end
end
)lua";

inline constexpr char part_lease[] = R"lua(
local j = leased(ARGV[4], ARGV[5], true)
if not j then return 0 end
)lua";

inline constexpr char part_find_all[] = R"lua(
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

inline constexpr char part_index[] = R"lua(
local function rank(priority, vesting) return struct.pack('>BI8', priority, vesting) end
local function put(j) call('ZADD', index, '0', rank(j.priority, j.vesting) .. j.id) end
local function remove(j) call('ZREM', index, rank(j.priority, j.vesting) .. j.id) end
)lua";

inline constexpr char part_unique[] = R"lua(
local holds_while_waiting = {true, true, false, true, true}
local holds_while_running = {false, false, true, true, false}
local start_frees_key = {false, true, false, true, false}
local end_frees_key = {true, true, false, true, false}

-- The job that has an enqueue key, and whether it has it for as long as it is there.
local function owner_of(key)
  local v = call('HGET', keys, key)
  if not v or #v ~= 24 then return end
  local expiry = struct.unpack('>I8', v, 17)
  if expiry == 0 or expiry > now then return v:sub(1, 16), expiry == 0 end
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

inline constexpr char part_erase[] = R"lua(
local function erase(id) call('HDEL', jobs, id, id .. 'b', id .. 'n') end
)lua";

inline constexpr char part_note[] = R"lua(
local function note(j, memo, result, reason, progress, checkpoint)
  local has, m, r, p, c, w = j.extras % 2 == 1, '', '', '', '', ''
  if has then
    local v = call('HGET', jobs, j.id .. 'n')
    local a, b, at = struct.unpack('>I2I4', v)
    local d, e = 0, 0
    if a >= 32768 then
      a = a - 32768
      d, e, at = struct.unpack('>I2I4', v, at)
    end
    m, r = v:sub(at, at + a - 1), v:sub(at + a, at + a + b - 1)
    at = at + a + b
    p, c, w = v:sub(at, at + d - 1), v:sub(at + d, at + d + e - 1), v:sub(at + d + e)
  end
  m, r, p, c, w = memo or m, result or r, progress or p, checkpoint or c, reason or w
  if has or #m + #r + #p + #c + #w > 0 then
    local sizes
    if #p + #c == 0 then
      sizes = struct.pack('>I2I4', #m, #r)
    else
      sizes = struct.pack('>I2I4I2I4', #m + 32768, #r, #p, #c)
    end
    call('HSET', jobs, j.id .. 'n', sizes .. m .. r .. p .. c .. w)
    if not has then j.extras = j.extras + 1 end
  end
end
)lua";

inline constexpr char part_ends[] = R"lua(
local function count(what, n) return increase(what, n) end
local function drop(j)
  if j.ended == DEAD then call('ZREM', dead, j.id) else call('ZREM', kept, 'j' .. j.id) end
  erase(j.id)
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
  -- Of one whose body is lost no record is kept: nobody could read it.
  if j.retention == 0 or j.extras > 1 and call('HSETNX', jobs, j.id .. 'b', '') == 1 then
    return erase(j.id)
  end
  j.vesting = now + j.retention
  call('ZADD', kept, decimal(j.vesting), 'j' .. j.id)
  save(j)
end
local function bury(j, reason)
  note(j, nil, nil, reason)
  finish(j, DEAD)
end
)lua";

inline constexpr char part_remains[] = R"lua(
local function remains(id, raw, priority, death)
  local function record(extras)
    return struct.pack(form, 0, now, 0, 0, 0, priority, DEAD, extras, 1, now, 0, 0, 0, 0, 0, now, 0,
      death)
  end
  local _, body = sound(id, record(2))
  body = body or struct.pack('>I2', 7) .. 'damaged' .. (raw or ''):sub(1, 1048576)
  return record(3), body, sound(id, record(3), true)
end
)lua";

inline constexpr char part_set_aside[] = R"lua(
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
  local death = count('deaths', 1)
  local record, body, noted = remains(id, raw, member:byte() or 0, death)
  call('ZADD', dead, death, id)
  call('HSET', jobs, id, record, id .. 'b', body)
  note({id = id, extras = noted and 3 or 2}, nil, nil, 'the record is damaged')
end
)lua";

inline constexpr char part_possessor[] = R"lua(
local function possessor(key)
  local id, stays = owner_of(key)
  local o, reason = id and look(id, true), nil
  if o and (o.key ~= key or not holds_while_waiting[o.strategy]) then o = nil end
  if stays and not o then return end
  if not o or state_of(o) ~= PENDING then return id, o end
  if o.attempts >= o.max_attempts then
    reason = 'its attempts are spent: the last holder let its lease end'
  elseif o.deadline > 0 and o.deadline_from + o.deadline < now then
    reason = 'its deadline was missed'
  end
  if not reason then return id, o end
  if not end_frees_key[o.strategy] then return id end
  if look(id) then bury(o, reason) end
end
)lua";

inline constexpr char part_tidy[] = R"lua(
local function tidy(n)
  if call('ZCARD', kept) == 0 then return 0 end
  local most, bytes = 2 * n + 2, 0
  local over = call('ZRANGEBYSCORE', kept, '-inf', decimal(now), 'LIMIT', 0, most)
  local function weigh(field)
    local size = redis.pcall('HSTRLEN', jobs, field)
    if type(size) == 'number' then bytes = bytes + size end
  end
  for _, what in ipairs(over) do
    local id = what:sub(2)
    call('ZREM', kept, what)
    if what:sub(1, 1) == 'k' then
      call('HDEL', keys, id)
    else
      weigh(id .. 'b')
      weigh(id .. 'n')
      erase(id)
      if bytes >= 16777216 then return most end
    end
  end
  return #over
end
)lua";

inline constexpr char part_wait_again[] = R"lua(
local function wait_again(j, vesting)
  if start_frees_key[j.strategy] and not owner_of(j.key) then hold(j.key, j.id, 0) end
  remove(j)
  unclaim(j)
  j.vesting = vesting
  put(j)
  save(j)
end
)lua";

inline constexpr char part_describe[] = R"lua(
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

inline constexpr char part_fits[] = R"lua(
local room = 4194304
local function fits(out, id, raw)
  local n = #out
  describe(out, id, raw)
  for i = n + 1, #out do room = room - #out[i] end
  if room >= 0 then return true end
  for i = #out, n + 1, -1 do out[i] = nil end
end
)lua";

inline constexpr char part_claim_all[] = R"lua(
local out, claims, buried, damaged, stale, given, rare, full = {}, 0, 0, 0, 0, {}, nil, false
local function enough() return buried + damaged + stale >= 100 end
local pack, unpacked, char = struct.pack, struct.unpack, string.char
local function claim_all(members, holder, lease, latest)
  local ids, o, till = {}, #out, now + lease
  for i = 1, #members do ids[i] = members[i]:sub(10) end
  local found = call('HMGET', jobs, unpack(ids))
  local old, index_new, ends, records, k, number = {}, {}, {}, {}, 0, nil
  local by_end, by_rank, size = decimal(till), pack('>I8', till), #holder
  for i = 1, #ids do
    local id, raw, reason, whole, good, body = ids[i], found[i], nil, false, false, nil
    local attempts, vesting, held_by, priority, ended, extras, max_attempts, deadline_from, deadline,
      key, _
    if #id == 16 then good, body = sound(id, raw) end
    if good then
      attempts, vesting, _, _, held_by, priority, ended, extras, max_attempts, deadline_from,
        deadline, key = unpacked('>I4I8I8I8I2BBBI4I8I8I2', raw)
      whole = ended == PENDING and vesting <= latest and priority == members[i]:byte()
    end
    if not whole then
      if enough() then break end
      -- The entry of a job that has ended, or has another one, is only an entry.
      if ended and (ended ~= PENDING or
          call('ZSCORE', index, pack('>BI8', priority, vesting) .. id)) then
        call('ZREM', index, members[i])
        stale = stale + 1
      else
        rare = rare or rarely()
        rare.set_aside(members[i], id, raw)
        damaged = damaged + 1
      end
    elseif attempts >= max_attempts then
      reason = 'its attempts are spent: the last holder let its lease end'
    elseif deadline > 0 and deadline_from + deadline < now then
      reason = 'its deadline was missed'
    end
    if whole and (reason or held_by > 0) and not rare then rare = rarely() end
    if reason and enough() then break end
    if reason then
      rare.bury(id, raw, reason)
      buried = buried + 1
      room = room - #body  -- it was read
      full = room < 0
      if full then break end
    elseif whole then
      if extras == 0 then
        room = room - #raw - size
        full = room < 0
      else
        full = not fits(out, id, raw)
      end
      if full then break end
      number = number and number + 1 or next_fences(fence, #ids)
      if held_by > 0 then rare.unclaim(id, raw) end
      raw = pack('>I4I8I8I8I2', attempts + 1, till, vesting, number, size) ..
        raw:sub(31, 85 + key) .. holder .. raw:sub(86 + key + held_by)
      k = k + 1
      local second = 2 * k
      local first = second - 1
      old[k], index_new[first], index_new[second] = members[i], '0', char(priority) .. by_rank .. id
      ends[first], ends[second], records[first], records[second] = by_end, id, id, raw
      out[o + 1], out[o + 2] = id, raw
      o = extras == 0 and o + 2 or #out
      claims = claims + 1
      given[claims] = id .. pack('>I8', number)
    end
  end
  if not number then return end
  call('ZREM', index, unpack(old))
  call('ZADD', index, unpack(index_new))
  call('ZADD', claimed, unpack(ends))
  call('HSET', jobs, unpack(records))
end
)lua";

inline constexpr char part_eight_numbers[] = R"lua(
local eight_numbers = '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)'
)lua";

inline constexpr char part_lease_of[] = R"lua(
local function lease_of(holder, fence, till)
  if not holder and not fence and not till then return 0, 0 end
  if not holder or #holder > 128 or not fence or not till or not (fence .. till):match('^%d+$') or
      math.max(tonumber(fence) or 0, tonumber(till) or 0) > 9007199254740992 then
    error('CORRUPT weir: a lease')
  end
  return tonumber(fence) or 0, tonumber(till) or 0
end
)lua";

inline constexpr char part_locks[] = R"lua(
local lock, holder = KEYS[1], ARGV[2]
local has, fence, till = unpack(call('HMGET', lock, 'holder', 'fence', 'until'))
fence, till = lease_of(has, fence, till)
local held = till > now
local function named(asked) return held and has == holder and (asked == 0 or asked == fence) end
)lua";

inline constexpr char part_has_room[] = R"lua(
if together and not together.room then
  if type(redis.pcall('ZADD', KEYS[3], 'XX', '0', '')) == 'table' then return end
  together.room = true
end
)lua";

inline constexpr char part_permits[] = R"lua(
local ends, fences, turns, lapses, limits = unpack(KEYS)
local holder = ARGV[2]
local function leave_line(...)  -- after `tickets`
  call('ZREM', lapses, ...)
  call('HDEL', limits, ...)
  call('ZREM', turns, ...)
end
-- How many wait, and how many tickets have lapsed, of which the holder's is none afterwards. Where
-- somebody waits, a wrong type of any of these shows before something is written.
local function tickets()
  local n, gone = call('ZCARD', turns), 0
  if n == 0 then return 0, 0 end
  call('HLEN', limits)
  repeat
    local over = call('ZRANGEBYSCORE', lapses, '-inf', decimal(now), 'LIMIT', 0, 1000)
    if #over > 0 then leave_line(unpack(over)) end
    gone = gone + #over
  until #over < 1000 or gone == 10000
  if gone > 0 then n = call('ZCARD', turns) end
  if gone == 10000 then
    if tonumber(call('ZSCORE', lapses, holder) or now + 1) <= now then leave_line(holder) end
    n = math.min(n, call('ZCOUNT', lapses, '(' .. decimal(now), '+inf'))
  end
  return n, gone
end
local function held()
  local fence = call('ZSCORE', fences, holder)
  local till = fence and tonumber(call('ZSCORE', ends, holder) or 0)
  if fence and (not fence:match('^%d+$') or till > 9007199254740992) then
    error('CORRUPT weir: a permit')
  end
  if till and till > now then return tonumber(fence), till end
end
)lua";

inline constexpr char part_call_next[] = R"lua(
local function limit_of(who)
  local limit, channel = (call('HGET', limits, who) or ''):match('^(%d+) ?(.*)$')
  return tonumber(limit) or 0, channel or ''
end
local function call_next(n)
  local first = call('ZRANGE', turns, 0, 0)[1]
  if not first then return end
  local last = limit_of(first) - call('ZCOUNT', ends, '(' .. decimal(now), '+inf') - 1
  if last < 0 then return end
  local next = math.max(last + 1 - n, 0)
  for _, who in ipairs(call('ZRANGE', turns, next, math.min(next + 999, last))) do
    local _, channel = limit_of(who)
    if channel ~= '' then redis.pcall('PUBLISH', channel, ends .. '|' .. who) end
  end
end
)lua";

inline constexpr char part_keep_all[] = R"lua(
local function keep_all(till, first, ...)
  local least = math.ceil((till - now) / 1000) + slack - 30000
  if call('PTTL', first) >= least then return end
  for _, key in ipairs({first, ...}) do call('PEXPIRE', key, decimal(least + 30000)) end
end
)lua";

inline constexpr char part_queue[] = R"lua(
local queue, index, jobs, keys, runs, dead, kept, claimed, fence, due, names = unpack(KEYS, 1, 11)
local name = ARGV[2]
local PENDING, LEASED, COMPLETED, DEAD, CANCELLED = 0, 1, 2, 3, 4
-- A user without the right to HINCRBY is as good as others. A counter that is damaged begins anew;
-- deaths go on from the last one, or from now.
local function increase(what, n)
  local total = redis.pcall('HINCRBY', queue, what, n)
  local by_hand = type(total) ~= 'number'
  if by_hand then total = (tonumber(call('HGET', queue, what) or 0) or -9007199254740992) + n end
  local good = total >= 0 and total <= 9007199254740992
  if good and not by_hand then return total end
  if not good and what == 'deaths' then
    n = math.floor(tonumber(call('ZREVRANGE', dead, 0, 0, 'WITHSCORES')[2] or 0)) + 1
    if not (n > 0 and n < 9007199254740992) then n = now end
  end
  if not good then total = n end
  call('HSET', queue, what, decimal(math.max(total, 0)))
  return total
end
)lua";

inline constexpr char part_drains[] = R"lua(
call('HDEL', KEYS[1], '')
if unnoted then call('SET', KEYS[#KEYS], unnoted) end
)lua";

inline constexpr char part_grows[] = R"lua(
call('ZADD', index, 'XX', '0', '')
)lua";

inline constexpr char part_typed[] = R"lua(
call('ZCARD', index)
call('HLEN', jobs)
call('HLEN', keys)
call('HLEN', runs)
call('ZCARD', dead)
call('ZCARD', kept)
call('ZCARD', claimed)
call('ZCARD', due)
)lua";

inline constexpr char part_flags[] = R"lua(
local flags = call('HGET', KEYS[1], 'flags')
if flags and flags ~= '000' and (#flags > 18 or not flags:match('^[01][01]%d+$')) then
  flags = '000'
end
)lua";

inline constexpr char part_holds[] = R"lua(
local paused, fading, snoozed = false, false, 0
if flags and flags ~= '000' then
  paused, fading = flags:sub(1, 1) == '1', flags:sub(2, 2) == '1'
  snoozed = tonumber(flags:sub(3))
end
local held = paused or now < snoozed
)lua";

inline constexpr char part_save_holds[] = R"lua(
local function save_holds()
  call('HSET', queue, 'flags',
    (paused and '1' or '0') .. (fading and '1' or '0') .. decimal(snoozed))
end
)lua";

inline constexpr char part_point[] = R"lua(
local function point(least)
  if paused or not least then return call('ZREM', due, name) end
  call('ZADD', due, decimal(math.max(least, snoozed)), name)
end
)lua";

inline constexpr char part_no_later_than[] = R"lua(
local function no_later_than(vesting, n)
  if paused then return end
  local at = math.max(vesting, snoozed)
  if call('ZADD', due, 'LT', 'CH', decimal(at), name) == 1 and at <= now then
    redis.pcall('PUBLISH', ARGV[3], due)
    next_in_turn(KEYS[12], n or 1)
  end
end
)lua";

inline constexpr char part_name_it[] = R"lua(
local function name_it()
  if call('ZADD', names, '0', name) == 1 then call('HSETNX', queue, 'enqueued', 0) end
end
)lua";

inline constexpr char part_heads[] = R"lua(
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

inline constexpr char part_visible[] = R"lua(
local function visible(most, use)
  local n, from, till, is_head = most(), nil, '+', false
  while n > 0 do
    local here, members, many = {}, nil, is_head and 1 or n
    if from then
      members = call('ZRANGEBYLEX', index, from, till, 'LIMIT', '0', many)
    else
      members = call('ZRANGE', index, '0', n - 1)
    end
    local passed = till ~= '+' and #members < many and till:byte(2)  -- the level that has no more
    for i, member in ipairs(members) do
      local priority, vesting = member:byte() or 0, 0  -- of one that is damaged
      if #member >= 9 then priority, vesting = struct.unpack('>BI8', member) end
      if vesting > now then
        passed = priority
        break
      end
      here[i] = member
    end
    if is_head and here[1] then
      from, is_head = '[' .. here[1], false
      if #here[1] >= 9 then till = '(' .. here[1]:sub(1, 1) .. struct.pack('>I8', now + 1) end
    else
      if #here > 0 then use(here) end
      if passed == 255 or not passed and #members < many then return end
      is_head = passed and true
      from = passed and '[' .. string.char(passed + 1) or '(' .. members[many]
      if passed then till = '+' end
    end
    n = most()
  end
end
)lua";

inline constexpr char part_get_ready[] = R"lua(
local fades = false
if not flags then
  local kinds = {'hash', 'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'zset', 'string', 'zset',
    'zset'}
  for i, kind in ipairs(kinds) do
    local is = call('TYPE', KEYS[i]).ok
    if is ~= kind and is ~= 'none' then
      error('WRONGTYPE weir: ' .. kind .. ' expected, ' .. is .. ' found')
    end
  end
  flags = '000'
  call('HSET', KEYS[1], 'flags', flags)
elseif flags:sub(2, 2) == '1' then
  flags, fades = flags:sub(1, 1) .. '0' .. flags:sub(3), true
end
)lua";

inline constexpr char part_stay[] = R"lua(
if fades then
  fades = false
  call('HSET', KEYS[1], 'flags', flags)
  for _, i in ipairs({3, 4, 7}) do call('PERSIST', KEYS[i]) end
end
)lua";

inline constexpr char part_fade[] = R"lua(
local function fade(queue, jobs, keys, dead, kept)
  if call('ZCARD', dead) > 0 then return end
  local last = tonumber(call('ZREVRANGE', kept, 0, 0, 'WITHSCORES')[2] or nil)
  if not last then return end
  if call('HLEN', jobs) + call('HLEN', keys) > 10000 then last = last + 604800000000 end
  local flags = call('HGET', queue, 'flags') or '000'
  call('HSET', queue, 'flags', flags:sub(1, 1) .. '1' .. flags:sub(3))
  for _, key in ipairs({jobs, keys, kept}) do keep(key, last) end
end
)lua";

inline constexpr char part_settle[] = R"lua(
local function settle()
  if call('ZCARD', index) > 0 then return end
  call('ZREM', due, name)
  fade(queue, jobs, keys, dead, kept)
end
)lua";

inline constexpr char part_is_name[] = R"lua(
local function is_name(name, among)
  if name ~= '' and #name <= 1024 then return true end
  redis.pcall('ZREM', among, name)
end
)lua";

inline constexpr char part_answer_bytes[] = R"lua(
local answer_bytes = 4194304
)lua";

inline constexpr char part_together[] = R"lua(
local all_keys, all, n, answers = KEYS, ARGV, tonumber(ARGV[2]), {}
local k, a = math.floor(#KEYS / n), (#ARGV - 2) / n
local KEYS, ARGV, together, parted = {}, {ARGV[1]}, {}, {}
KEYS[k + 1] = all_keys[n * k + 1]
local function step()
)lua";

inline constexpr char part_one_by_one[] = R"lua(
end
for i = 0, n - 1 do
  for j = 1, k do KEYS[j] = all_keys[i * k + j] end
  for j = 2, a + 1 do ARGV[j] = all[i * a + j + 1] end
  local good, answer = true, false
  if not parted[KEYS[1]] then good, answer = pcall(step) end
  if not good then
    if type(answer) ~= 'table' then answer = {err = answer} end
    if answer.line then answer = {err = answer.err .. ' on @user_script:' .. answer.line} end
  end
  if not answer then parted[KEYS[1]] = true end
  answers[i + 1] = answer or false
end
return answers
)lua";

inline redis_script const& acquire_lock() {
  static redis_script const script({part_common, part_next_fences, part_keep, part_lease_of}, {part_locks, R"lua(
if held then
  if unnoted and together then return end  -- others would grow after the note
)lua", part_note_time, R"lua(
  if has ~= holder then return {0, 0, till - now, has} end
else
  fence, till = next_fences(KEYS[2], 1), now + ARGV[3]
  call('HSET', lock, 'holder', holder, 'fence', decimal(fence), 'until', decimal(till))
  keep(lock, till)
end
return {1, fence, till - now, ''}
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& acquire_permit() {
  static redis_script const script({part_common, R"lua(
local easy, live, kept
)lua"}, {R"lua(
if KEYS[1] ~= easy then
  easy = nil
  if call('ZCARD', KEYS[3]) == 0 then
    live = call('ZCARD', KEYS[2])
    if call('ZCOUNT', KEYS[1], '-inf', decimal(now)) == 0 then
      easy, kept = KEYS[1], call('PTTL', KEYS[1])
    end
  end
end
if easy and live < tonumber(ARGV[3]) then
  local ends, fences, holder, fence, till = KEYS[1], KEYS[2], ARGV[2], now + lead, now + ARGV[4]
  local at = decimal(fence)
  -- A full server refuses this, also to a holder who has a permit already: that is seen below.
  local was = redis.pcall('SET', KEYS[6], at, 'GET')
  local full = type(was) == 'table'
  local last = was and not full and tonumber(was) or 0
  if was and not full and (not was:match('^%d+$') or last >= 9007199254740992) then
    call('SET', KEYS[6], was)
    error('CORRUPT weir: a fence')
  end
  if last >= fence then
    fence, at = last + 1, decimal(last + 1)
    call('SET', KEYS[6], at)
  end
  if not full and call('ZADD', fences, 'NX', at, holder) == 1 then
    call('ZADD', ends, decimal(till), holder)
    live = live + 1
    local least = math.ceil((till - now) / 1000) + slack - 30000  -- as in `keep_all`
    if kept < least then
      kept = least + 30000
      for i = 1, 2 do call('PEXPIRE', KEYS[i], decimal(kept)) end
    end
    return {1, fence, till - now, live, 0, 0}
  end
end
easy = nil
)lua", part_has_room, part_next_fences, part_permits, part_call_next, part_keep_all, R"lua(
local limit, ttl, patience = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local dead = call('ZCOUNT', ends, '-inf', decimal(now))
call('ZCARD', fences)
local line, free = tickets()
if dead > 0 then
  local over = call('ZRANGE', ends, 0, math.min(dead, 1000) - 1)
  free = free + #over
  call('ZREM', fences, unpack(over))
  call('ZREM', ends, unpack(over))
  dead = dead - #over
end
live = call('ZCARD', ends) - dead
local fence, till = held()
local function noted(answer)
)lua", part_note_time, R"lua(
  return answer
end
if fence then return noted({1, fence, till - now, live, 0, 0}) end

local rank = line > 0 and call('ZRANK', turns, holder)
local ahead = rank and math.max(math.min(rank, line - 1), 0) or line
-- As in `drains`: a ticket is renewed, or becomes a permit; and a limit in use goes on, since it has
-- no more permits than that.
if rank or live > 0 and live + ahead < limit then call('ZREM', ends, '') end
if live + ahead < limit then
  fence, till = next_fences(KEYS[6], 1), now + ttl
  call('ZADD', fences, decimal(fence), holder)
  call('ZADD', ends, decimal(till), holder)
  keep_all(till, ends, fences)
  if rank then leave_line(holder) end
  if free > 0 then call_next(free) end
  return noted({1, fence, ttl, live + 1, 0, 0})
end

-- Permits end one by one, and each end serves one more of the line.
local function retry_after(before)
  local k = live + before - limit
  if k < live then
    local nth = call('ZRANGE', ends, dead + k, dead + k, 'WITHSCORES')
    return math.max(math.min(tonumber(nth[2]), 9007199254740992) - now, 1)
  end
  local last = tonumber(call('ZREVRANGE', ends, 0, 0, 'WITHSCORES')[2] or 0)
  local tickets = call('ZREVRANGE', lapses, 0, 1, 'WITHSCORES')
  for i = 1, #tickets, 2 do
    if tickets[i] ~= holder then last = math.max(last, tonumber(tickets[i + 1])) end
  end
  return math.max(math.min(last, 9007199254740992) - now, 1)  -- lapsed tickets may be left
end

if free > 0 then call_next(free) end
if patience > 0 then
  -- Of these two, a wrong type has to show before anything is written.
  call('ZCARD', lapses)
  call('HLEN', limits)
  local after = retry_after(ahead)
  if not rank then
    local last = tonumber(call('ZREVRANGE', turns, 0, 0, 'WITHSCORES')[2] or 0)
    if last >= 9007199254740992 then error('CORRUPT weir: a line') end
    local refusal = redis.pcall('ZADD', turns, decimal(last + 1), holder)
    if type(refusal) == 'table' then return noted(refusal) end
  end
  call('ZADD', lapses, decimal(now + patience), holder)
  call('HSET', limits, holder, limit .. ' ' .. ARGV[6])
  keep_all(now + patience, turns, lapses, limits)
  return noted({0, 0, 0, live, ahead + 1, after})
end
local after = retry_after(rank and line - 1 or line)
if rank then
  leave_line(holder)
  call_next(1)
end
return noted({0, 0, 0, live, 0, after})
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& await_jobs() {
  static redis_script const script({part_common, R"lua(
local idle, channel = KEYS[2], ARGV[2]
local first = tonumber(call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or nil)
if channel ~= '' then
)lua", part_wait_in_turn, R"lua(
end
return {first and math.min(first, 9007199254740992) - now or false}
)lua"});
  return script;
}

inline redis_script const& await_permit() {
  static redis_script const script({part_common, part_permits, part_call_next, R"lua(
call('ZCARD', ends)  -- before anything is written, its type has to show
local line, lapsed = tickets()
if lapsed > 0 then call_next(lapsed) end
local ahead = call('ZRANK', turns, holder)
if not ahead then return 1 end
local live = call('ZCOUNT', ends, '(' .. decimal(now), '+inf')
return live + math.min(ahead, line - 1) < limit_of(holder) and 1 or 0
)lua"});
  return script;
}

inline redis_script const& bury_job() {
  static redis_script const script({part_common, part_keep, part_queue, part_form, part_sound, part_record, part_find, part_leased, part_lease, part_drains, part_typed, part_index, part_unique, part_erase, part_note, part_ends, part_fade, part_settle, R"lua(
if not look(j.id) then return 0 end  -- a dead letter has to be readable
bury(j, ARGV[6])
settle()
return 1
)lua"});
  return script;
}

inline redis_script const& cancel_job() {
  static redis_script const script({part_common, part_tell, part_keep, part_queue, part_form, part_sound, part_record, part_find, part_index, part_unique, part_erase, part_note, part_ends, part_tidy, part_fade, part_settle, part_drains, part_typed, R"lua(
tidy(1)
local j = find(ARGV[4])
if not j then return 3 end
local state = state_of(j)
if state == LEASED and ARGV[5] == '0' then return 1 end
if state == COMPLETED or state == DEAD then return 2 end
if state == LEASED then tell(ARGV[6], ARGV[6] .. ':' .. j.holder) end
if state ~= CANCELLED then finish(j, CANCELLED) end
settle()
return 0
)lua"});
  return script;
}

inline redis_script const& complete_jobs() {
  static redis_script const script({part_common, part_keep, part_queue, part_form, part_sound, part_find_all, part_erase, part_tidy, part_fade, part_settle, R"lua(
local full = false
for i = 6, #ARGV, 3 do
  if ARGV[i] ~= '' then
    full = type(redis.pcall('ZADD', index, 'XX', '0', '')) == 'table'
    break
  end
end
local function rarely()
)lua", part_record, part_index, part_unique, part_note, part_ends, R"lua(
return function(id, raw, result)
  local j = parse(id, raw)
  local stays = result ~= '' and j.retention > 0
  if stays and full then
    note(j, nil, nil, 'its result had no room')
  elseif stays then
    note(j, nil, result)
  end
  finish(j, COMPLETED)
  return stays and full
end
end
)lua", part_drains, part_typed, R"lua(
local ARGV, pack, unpacked = ARGV, struct.pack, struct.unpack
local n, out, seen = (#ARGV - 3) / 3, {}, {}
local found, ranks, ids, fields, k, f, finish = find_all(n, 4, 3), {}, {}, {}, 0, 0, nil
local function write()
  if k == 0 then return end
  call('ZREM', index, unpack(ranks, 1, k))
  call('ZREM', claimed, unpack(ids, 1, k))
  call('HDEL', jobs, unpack(fields, 1, f))
  increase('completed', k)
  k, f = 0, 0
end
for i = 1, n do
  local at = 3 * i
  local id, by, raw, outcome = ARGV[at + 1], tonumber(ARGV[at + 2]), found[i], 1
  if seen[id] then
    write()
    raw = call('HGET', jobs, id)
  end
  if sound(id, raw, true) then
    local _, vesting, _, last, holder, priority, ended, extras, _, _, _, _, strategy, _, _, _,
      retention = unpacked(form, raw)
    if vesting > now and by ~= 0 and by == last then
      if ended == COMPLETED then outcome = 0 end
      if ended == PENDING and holder > 0 then
        outcome = 0
        if strategy == 0 and retention == 0 then
          k, f = k + 1, f + 1
          ranks[k], ids[k], fields[f] = pack('>BI8', priority, vesting) .. id, id, id
          if extras > 0 then
            fields[f + 1], fields[f + 2] = id .. 'b', id .. 'n'
            f = f + 2
          end
          if k == 500 then write() end
        else
          finish = finish or rarely()
          if finish(id, raw, ARGV[at + 3]) then
            outcome = 2
          end
        end
      end
    end
  end
  seen[id], out[i] = true, outcome
end
write()
if finish then tidy(n) end
settle()
return out
)lua"});
  return script;
}

inline redis_script const& dequeue_jobs() {
  static redis_script const script({part_common, part_next_fences, part_keep, part_queue, part_form, part_sound, part_heads, part_visible, part_flags, part_holds, part_point, part_describe, part_fits, R"lua(
local function rarely()
)lua", part_record, part_find, part_leased, part_index, part_unique, part_erase, part_note, part_ends, part_remains, part_set_aside, part_tidy, R"lua(
return {
  bury = function(id, raw, reason) bury(parse(id, raw), reason) end,
  unclaim = function(id, raw) unclaim(parse(id, raw)) end,
  set_aside = set_aside,
  leased = leased,
  tidy = tidy,
}
end
)lua", part_claim_all, part_drains, part_typed, R"lua(
local latest, holder, sequence = KEYS[12], ARGV[4], ARGV[5]
local limit, lease = tonumber(ARGV[6]), tonumber(ARGV[7])
local last = sequence ~= '0' and call('GET', latest)
if call('ZCARD', kept) > 0 then
  rare = rarely()
  rare.tidy(limit)
end
if last then
  local number, grants = last:match('^(%d+):(.*)$')
  if number == sequence then
    rare = rare or rarely()
    for at = 1, #grants - 23, 24 do
      local j = rare.leased(grants:sub(at, at + 15), (struct.unpack('>I8', grants, at + 16)))
      if j then
        describe(out, j.id, j.raw)
        claims = claims + 1
      end
    end
  end
  if claims == 0 then call('DEL', latest) end
end
if claims == 0 and not held then
  visible(function() return not full and not enough() and math.min(limit - claims, 256) or 0 end,
    function(members) claim_all(members, holder, lease, now) end)
  if claims > 0 and sequence ~= '0' then
    call('SET', latest, sequence .. ':' .. table.concat(given), 'PX', kept_for(now + lease))
  end
end
local least, any = heads()
point(least)
return {now, claims, out, buried, damaged, any and not held and 1 or 0, held and 1 or 0,
  least and least - now or false}
)lua"});
  return script;
}

inline redis_script const& enqueue_jobs() {
  static redis_script const script({part_common, part_next_in_turn, part_queue, part_form, part_sound, part_typed, part_find_all, part_flags, part_get_ready, part_holds, part_no_later_than, R"lua(
local function rarely()
)lua", part_record, part_find, part_index, part_unique, part_erase, part_note, part_ends, part_possessor, part_tidy, R"lua(
local function contend(j, ttl)
  local other, o = possessor(j.key)
  local outcome = 0
  if other then
    outcome = 1
    if o and state_of(o) == PENDING and j.policy == 3 then
      outcome = 2
      finish(o, CANCELLED)
    elseif o and state_of(o) == PENDING and j.policy == 4 then
      remove(o)
      unclaim(o)
      o.vesting, o.priority = j.vesting, j.priority
      put(o)
      save(o)
      outcome = 3
    end
  end
  if outcome % 2 == 0 then hold(j.key, j.id, ttl > 0 and now + ttl or 0) end
  return outcome, other
end
)lua", part_grows, R"lua(
tidy((#ARGV - 3) / 4)
local function forget(id, raw)
  if not sound(id, raw) then return not call('HGET', jobs, id) end  -- `tidy` may have erased it
  local j = parse(id, raw)
  if gone(j) then drop(j) end
  return gone(j)
end
return forget, function(id, raw, ttl) return contend(parse(id, raw), ttl) end
end
)lua", part_eight_numbers, R"lua(
local n = (#ARGV - 3) / 4
local fields, ranks, f, r, added, fresh = {}, {}, 0, 0, 0, {}
local function write()
  if r == 0 then return end
)lua", part_stay, R"lua(
  call('ZADD', index, unpack(ranks, 1, r))
  call('HSET', jobs, unpack(fields, 1, f))
  f, r = 0, 0
end
local found, changed, out, told, first, forget, contend = find_all(n, 4, 4), false, {}, false
local function arrive(at, id, known)
  if changed then
    write()
    known = call('HGET', jobs, id)
  elseif fresh[id] then
    return 0
  end
  if known then
    if not forget then forget, contend = rarely() end
    if not forget(id, known) then return 0 end
  end
  local key, body, extras, separate = ARGV[at + 2], ARGV[at + 3], 0, nil
  if #body > long_body then body, extras, separate = '', 2, body end
  local priority, strategy, policy, attempts, delay, deadline, retention, ttl =
    ARGV[at + 1]:match(eight_numbers)
  local vesting = now + delay
  local raw = struct.pack(form, 0, vesting, 0, 0, 0, priority, PENDING, extras, attempts, now,
    deadline, #key, strategy, policy, 0, now, retention, 0) .. key .. body
  local outcome, other = 0, nil
  if strategy ~= '0' and strategy ~= '3' then
    write()
    if not forget then forget, contend = rarely() end
    changed = true
    outcome, other = contend(id, raw, tonumber(ttl))
  end
  if outcome % 2 == 0 then
    ranks[r + 1], ranks[r + 2] = '0', struct.pack('>BI8', priority, vesting) .. id
    fields[f + 1], fields[f + 2] = id, raw
    f, r, added, fresh[id] = f + 2, r + 2, added + 1, true
    if separate then
      fields[f + 1], fields[f + 2] = id .. 'b', separate
      f = f + 2
    end
    if r == 998 then write() end
  end
  if outcome ~= 1 and (not first or vesting < first) then first = vesting end
  return outcome, other
end
for i = 1, n do
  local at = i * 4
  local outcome, other = arrive(at, ARGV[at], found[i])
  out[2 * i - 1], out[2 * i] = outcome, other or ''
  told = told or outcome ~= 0
end
write()
if added > 0 and increase('enqueued', added) == added then
  redis.pcall('ZADD', names, '0', name)  -- of a new queue, its type has been seen
end
if first then no_later_than(first, added) end
return told and out or {}
)lua"});
  return script;
}

inline redis_script const& enqueue_plain() {
  static redis_script const script({part_common, part_flags, part_get_ready, part_eight_numbers, part_form, R"lua(
local queue, index, jobs, kept, due, ARGV = KEYS[1], KEYS[2], KEYS[3], KEYS[7], KEYS[10], ARGV
local added, first, numbers, key_size, separate, header, level = 0, nil, nil, nil, nil, nil, nil
local n = (#ARGV - 3) / 4
if n > 1000 then call('ZCARD', kept) end
for from = 1, n, 1000 do  -- what Lua can pass to a command is limited
  local to, found, ranks, fields, r, f = math.min(from + 999, n), nil, {}, {}, 0, 0
  if from == to then
    found = {call('HGET', jobs, ARGV[4 * from])}
  else
    local ids = {}
    for i = from, to do ids[i - from + 1] = ARGV[4 * i] end
    found = call('HMGET', jobs, unpack(ids))
  end
  for i = from, to do
    local at, known = 4 * i, found[i - from + 1]
    local id, key, body = ARGV[at], ARGV[at + 2], ARGV[at + 3]
    if ARGV[at + 1] ~= numbers or #key ~= key_size or (#body > long_body) ~= separate then
      numbers, key_size, separate = ARGV[at + 1], #key, #body > long_body
      local priority, strategy, policy, attempts, delay, deadline, retention =
        numbers:match(eight_numbers)
      local vesting = now + delay
      header = struct.pack(form, 0, vesting, 0, 0, 0, priority, 0, separate and 2 or 0, attempts,
        now, deadline, key_size, strategy, policy, 0, now, retention, 0)
      level = struct.pack('>BI8', priority, vesting)
      if not first or vesting < first then first = vesting end
    end
    if known and #known >= 85 then
      local ended, vesting = known:byte(32), struct.unpack('>I8', known, 5)
      if (ended == 2 or ended == 4) and vesting <= now then  -- it is over
        call('ZADD', index, 'XX', '0', '')  -- as in `grows`
        call('ZREM', kept, 'j' .. id)
        call('HDEL', jobs, id, id .. 'b', id .. 'n')
        known = nil
      end
    end
    if not known then
      ranks[r + 1], ranks[r + 2] = '0', level .. id
      r = r + 2
      if separate then
        fields[f + 1], fields[f + 2], fields[f + 3], fields[f + 4] =
          id, header .. key, id .. 'b', body
        f = f + 4
      else
        fields[f + 1], fields[f + 2] = id, header .. key .. body
        f = f + 2
      end
    end
  end
  if r > 0 then
    if added == 0 then call('ZCARD', due) end  -- before the first write, its type has to show
)lua", part_stay, R"lua(
    call('ZADD', index, unpack(ranks))
    call('HSET', jobs, unpack(fields))
    added = added + r / 2
  end
end
if added == 0 then return {} end
local name = ARGV[2]
local total = redis.pcall('HINCRBY', queue, 'enqueued', added == 1 and '1' or added)
if type(total) ~= 'number' then  -- as in `increase`
  total = added + (tonumber(call('HGET', queue, 'enqueued') or 0) or 0)
  if not (total >= added and total <= 9007199254740992) then total = added end
  call('HSET', queue, 'enqueued', string.format('%d', total))
end
if total == added then
  redis.pcall('ZADD', KEYS[11], '0', name)  -- of a new queue, its type has been seen
end
if flags:sub(1, 1) == '0' then
  local at = math.max(first, flags == '000' and 0 or tonumber(flags:sub(3)))
  if call('ZADD', due, 'LT', 'CH', decimal(at), name) == 1 and at <= now then
    redis.pcall('PUBLISH', ARGV[3], due)
)lua", part_next_in_turn, R"lua(
    next_in_turn(KEYS[12], added)
  end
end
return {}
)lua"});
  return script;
}

inline redis_script const& extend_lease() {
  static redis_script const script({part_common, part_next_in_turn, part_queue, part_form, part_sound, part_record, part_find, part_leased, part_lease, R"lua(
if ARGV[7] then
)lua", part_grows, R"lua(
else
)lua", part_drains, R"lua(
end
)lua", part_typed, part_index, part_flags, part_holds, part_no_later_than, R"lua(
remove(j)
j.vesting = now + ARGV[6]
put(j)
call('ZADD', claimed, decimal(j.vesting), j.id)
if ARGV[7] then
)lua", part_note, R"lua(
note(j, nil, nil, nil, ARGV[7] ~= '' and ARGV[7] or nil, ARGV[8] ~= '' and ARGV[8] or nil)
end
save(j)
no_later_than(j.vesting)
return 1
)lua"});
  return script;
}

inline redis_script const& find_job() {
  static redis_script const script({part_common, part_queue, part_form, part_sound, part_record, part_find, part_describe, R"lua(
local j, out = find(ARGV[4]), {}
if j then describe(out, j.id, j.raw) end
return {now, j and 1 or 0, out}
)lua"});
  return script;
}

inline redis_script const& forget_queues() {
  static redis_script const script({part_common, part_keep, part_fade, R"lua(
local names, two_days, piece = KEYS[1], 172800000000, 250
local function is(key, kind) return call('TYPE', key).ok == kind end
local function any(from, to)
  for i = from, to do
    if not is(KEYS[i], 'none') then return true end
  end
end
local jobs, keys, kept
)lua", part_erase, part_tidy, R"lua(
for i = 1, #ARGV - 1 do
  local at = 8 * i - 6
  local queue, index, dead = KEYS[at], KEYS[at + 1], KEYS[at + 5]
  jobs, keys, kept = KEYS[at + 2], KEYS[at + 3], KEYS[at + 6]
  if is(kept, 'zset') and (is(jobs, 'hash') or is(jobs, 'none')) and (is(keys, 'hash') or is(keys, 'none')) then
    local removed = tidy(piece / 2 - 1)
    piece = piece - removed
    if piece == 0 then return i end
    local flags = is(queue, 'hash') and call('HGET', queue, 'flags')
    if flags and (removed > 0 or flags:sub(2, 2) == '0') and is(index, 'none') and is(dead, 'none') then
      call('HDEL', queue, '')  -- goes on where memory is full, as in `drains`
      fade(queue, jobs, keys, dead, kept)
    end
  end
  if not any(at + 1, at + 7) then
    local h = redis.pcall('HMGET', queue, 'flags', 'until', 'enqueued', 'idle')
    local flags, lease, total, since = h[1] or '000', tonumber(h[2] or nil) or 0, h[3] or '0', h[4]
    local seen, then_ = (since or ''):match('^(%d+):(%d+)$')
    if h.err or flags:sub(1, 1) == '1' or (tonumber(flags:sub(3)) or 0) > now or lease > now then
      redis.pcall('HDEL', queue, 'idle')  -- it is of another type, or is held
    elseif then_ ~= total or tonumber(seen) > now then
      redis.pcall('HSET', queue, 'idle', decimal(now) .. ':' .. total)
    elseif now - tonumber(seen) > two_days then
      call('DEL', queue)
      call('ZREM', names, ARGV[i + 1])
    end
  end
end
return 0
)lua"});
  return script;
}

inline redis_script const& gc_stale_pointers() {
  static redis_script const script({part_common, R"lua(
return 0
)lua"});
  return script;
}

inline redis_script const& inspect_lock() {
  static redis_script const script({part_common, part_lease_of, part_locks, R"lua(
if not held then return {0, '', 0, 0} end
return {1, has, fence, till - now}
)lua"});
  return script;
}

inline redis_script const& inspect_permits() {
  static redis_script const script({part_common, part_permits, R"lua(
local most, all = tonumber(ARGV[3]), {}
local out = {call('ZCOUNT', ends, '(' .. decimal(now), '+inf'),
  call('ZCOUNT', lapses, '(' .. decimal(now), '+inf')}
if most == 0 then return out end
-- Damaged ones are skipped.
local function add(who, by, till)
  if by and by:match('^%d+$') and till > now and till <= 9007199254740992 and #who <= 128 then
    all[#all + 1] = {who, tonumber(by), till - now}
  end
end
local by_fence = call('ZRANGE', fences, 0, most + 999, 'WITHSCORES')
for i = 1, #by_fence, 2 do
  if #all == most then break end
  add(by_fence[i], by_fence[i + 1], tonumber(call('ZSCORE', ends, by_fence[i]) or 0))
end
-- Where a thousand that are over stand before them, they are found by their ends: all of them, or
-- as many as are looked at.
if #all < most and #by_fence == 2 * most + 2000 then
  all = {}
  local by_end = call('ZRANGEBYSCORE', ends, '(' .. decimal(now), '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1000)
  for i = 1, #by_end, 2 do
    add(by_end[i], call('ZSCORE', fences, by_end[i]), tonumber(by_end[i + 1]))
  end
  table.sort(all, function(one, other) return one[2] < other[2] end)
end
for i = 1, math.min(#all, most) do out[i + 2] = all[i] end
return out
)lua"});
  return script;
}

inline redis_script const& list_dead_letters() {
  static redis_script const script({part_common, part_queue, part_form, part_sound, part_record, part_find, part_describe, part_fits, part_remains, R"lua(
local most, out = tonumber(ARGV[5]), {}
local found =
  call('ZRANGEBYSCORE', dead, '(' .. ARGV[4], '9007199254740992', 'LIMIT', 0, most + 1)
local n, shown = 0, 0
while n < most and n < #found do
  local id = found[n + 1]
  local raw = call('HGET', jobs, id)
  if #id == 16 then
    if sound(id, raw) then
      if not fits(out, id, raw) then break end
    else  -- nobody could purge it without its id
      local record, body = remains(id, raw, 0, tonumber(call('ZSCORE', dead, id)))
      room = room - #id - #record - #body - 4096
      if room < 0 then break end
      local notes = struct.pack('>I2I4', 0, 0) .. 'the record is damaged'
      for _, part in ipairs({id, record, body, notes}) do out[#out + 1] = part end
    end
    shown = shown + 1
  end
  n = n + 1
end
return {now, shown, out, #found > n and math.ceil(tonumber(call('ZSCORE', dead, found[n]))) or 0}
)lua"});
  return script;
}

inline redis_script const& list_jobs() {
  static redis_script const script({part_common, part_queue, part_form, part_sound, part_describe, part_fits, R"lua(
local function not_behind(one, other)
  for i = 1, math.min(#one, #other) do
    local here, there = one:byte(i), other:byte(i)
    if here ~= there then return here < there end
  end
  return #one <= #other
end
local state, most, score, last, out =
  tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7], {}
local set, looks, members = state == PENDING and index or state == LEASED and claimed or state == DEAD and dead or kept, 1000, nil
if set == index then
  local from = last == '' and '-' or '(' .. last
  members = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, looks + 1)
else
  local from = state == LEASED and call('ZCOUNT', set, '-inf', decimal(now)) or 0
  if last ~= '' then
    local low = call('ZCOUNT', set, '-inf', '(' .. score)
    local high = call('ZCOUNT', set, '-inf', score)
    while low < high do
      local middle = math.floor((low + high) / 2)
      local shown = not_behind(call('ZRANGE', set, middle, middle)[1], last)
      if shown then low = middle + 1 else high = middle end
    end
    from = math.max(from, low)
  end
  members = call('ZRANGE', set, from, from + looks)
end
-- Is it in this state, as far as its numbers say? A body may be long, so none is read to see that.
local function may_be(raw)
  if not raw or #raw < 85 then return false end
  local _, vesting, _, _, held_by, _, ended = struct.unpack('>I4I8I8I8I2BBBI4I8I8I2', raw)
  if ended ~= PENDING then return ended == state and (ended == DEAD or vesting > now) end
  return state == (held_by > 0 and vesting > now and LEASED or PENDING)
end
local n, shown = 0, 0
while n < looks and n < #members and shown < most and room >= 0 do
  local member, id = members[n + 1], nil
  if set == index then id = member:sub(10) else id = set == kept and member:sub(2) or member end
  local raw = (set ~= kept or member:byte() == 106) and #id == 16 and call('HGET', jobs, id)
  if may_be(raw) and sound(id, raw) then
    if not fits(out, id, raw) then break end
    shown = shown + 1
  elseif raw then
    -- Bytes that were read for nothing count as well; a damaged job's body, whose size nobody knows
    -- here, as the longest.
    room = room - #raw - (may_be(raw) and 1048576 or 0)
  end
  n, last = n + 1, member
end
if n == #members then return {now, shown, out, 0, ''} end
score = set == index and 0 or math.ceil(tonumber(call('ZSCORE', set, last)))
-- One that is longer than any of weir's is passed over, with all that begin as it does.
if #last > 1024 then
  last = last:sub(1, 1024):gsub('\255+$', '')
  if last == '' then return {now, shown, out, 0, ''} end
  last = last:sub(1, -2) .. string.char(last:byte(-1) + 1)
end
return {now, shown, out, score, last}
)lua"});
  return script;
}

inline redis_script const& list_queues() {
  static redis_script const script({part_common, part_is_name, part_answer_bytes, R"lua(
local from, limit, room = ARGV[3] == '' and '-' or '(' .. ARGV[3], tonumber(ARGV[2]), answer_bytes
local out, more = {}, false
for _ = 1, 10 do
  local found = call('ZRANGEBYLEX', KEYS[2], from, '+', 'LIMIT', 0, limit + 1)
  more = #found > limit
  for _, name in ipairs(found) do
    if is_name(name, KEYS[2]) then
      room = room - #name
      if #out == limit or room < 0 then
        more = true
        break
      end
      out[#out + 1] = name
    end
  end
  if #out > 0 or not more then break end
end
return {out, more and 1 or 0}
)lua"});
  return script;
}

inline redis_script const& min_vesting_time() {
  static redis_script const script({part_common, part_queue, part_heads, R"lua(
local least = heads()
return {least and least - now or false}
)lua"});
  return script;
}

inline redis_script const& obtain_lease() {
  static redis_script const script({part_common, part_next_in_turn, part_next_fences, part_keep, part_queue, part_form, part_sound, part_record, part_find, part_erase, part_tidy, part_fade, part_settle, part_flags, part_holds, part_describe, part_fits, part_leased, R"lua(
local function rarely()
)lua", part_index, part_unique, part_note, part_ends, part_remains, part_set_aside, R"lua(
return {
  bury = function(id, raw, reason) bury(parse(id, raw), reason) end,
  unclaim = function(id, raw) unclaim(parse(id, raw)) end,
  set_aside = set_aside,
  leased = leased,
  tidy = tidy,
}
end
)lua", part_no_later_than, part_claim_all, part_drains, part_typed, R"lua(
tidy(1)
local j, holder = find(ARGV[4]), ARGV[5]
if not j then return {now, 0, {}} end
local state = state_of(j)
if state == LEASED and j.holder == holder then
  describe(out, j.id, j.raw)
  return {now, 1, out}
end
local early = j.vesting > now
if state ~= PENDING or held or early and ARGV[7] == '0' then return {now, 0, {}} end
local lease = tonumber(ARGV[6])
claim_all({struct.pack('>BI8', j.priority, j.vesting) .. j.id}, holder, lease, j.vesting)
if early and claims > 0 then no_later_than(now + lease) end
if buried + damaged > 0 then settle() end
return {now, claims, out}
)lua"});
  return script;
}

inline redis_script const& obtain_queue_lease() {
  static redis_script const script({part_common, part_next_fences, part_queue, part_lease_of, part_name_it, R"lua(
local holder = ARGV[4]
local has, by, till = unpack(call('HMGET', queue, 'holder', 'fence', 'until'))
by, till = lease_of(has, by, till)
if till > now then
)lua", part_note_time, R"lua(
  if has ~= holder then return {0, 0, till - now, has} end
else
  by, till = next_fences(fence, 1), now + ARGV[5]
  name_it()
  call('HSET', queue, 'holder', holder, 'fence', decimal(by), 'until', decimal(till))
end
return {1, by, till - now, ''}
)lua"});
  return script;
}

inline redis_script const& pause_queue() {
  static redis_script const script({part_common, part_queue, part_flags, part_holds, part_save_holds, part_name_it, R"lua(
call('ZCARD', due)
if flags then call('HDEL', queue, '') end  -- as in `drains`
name_it()
paused = true
save_holds()
call('ZREM', due, name)
return 1
)lua"});
  return script;
}

inline redis_script const& peek_jobs() {
  static redis_script const script({part_common, part_queue, part_form, part_sound, part_record, part_find, part_visible, part_describe, part_fits, R"lua(
local most, n, skipped, out = tonumber(ARGV[4]), 0, 0, {}
visible(function() return math.min(most - n, 1000 - skipped) end, function(members)
  for _, member in ipairs(members) do
    local id = member:sub(10)
    local raw = call('HGET', jobs, id)
    if #id == 16 and sound(id, raw) then  -- what is damaged is skipped
      if not fits(out, id, raw) then
        most = n
        return
      end
      n = n + 1
    else
      skipped = skipped + 1
    end
  end
end)
return {now, n, out}
)lua"});
  return script;
}

inline redis_script const& purge_job() {
  static redis_script const script({part_common, part_keep, part_queue, part_form, part_sound, part_record, part_find, part_index, part_unique, part_erase, part_note, part_ends, part_tidy, part_fade, part_settle, part_drains, part_typed, R"lua(
tidy(1)
local id = ARGV[4]
local j, raw = look(id)
if not j and call('ZSCORE', dead, id) then
  j = {id = id, ended = DEAD}  -- damaged, and of no use
elseif raw then
  error('CORRUPT weir: a job')
end
if not j or j.ended == PENDING then return 0 end
if j.ended == COMPLETED then count('completed', -1) end
if j.ended == CANCELLED then count('cancelled', -1) end
count('purged', 1)
drop(j)
settle()
return 1
)lua"});
  return script;
}

inline redis_script const& read_queue_stats() {
  static redis_script const script({part_common, part_queue, part_heads, part_flags, part_holds, R"lua(
local h = call('HMGET', queue, 'enqueued', 'completed', 'cancelled', 'purged')
for i = 1, 4 do  -- one that is damaged begins anew
  h[i] = tonumber((h[i] or ''):match('^%d+$')) or 0
  if h[i] > 9007199254740992 then h[i] = 0 end
end
local running = call('ZCOUNT', claimed, '(' .. decimal(now), '+inf')
local least = heads()
return {h[1], math.max(call('ZCARD', index) - running, 0), running, h[2], call('ZCARD', dead), h[3], h[4],
  paused and 1 or 0, least and least - now or false}
)lua"});
  return script;
}

inline redis_script const& refund() {
  static redis_script const script({part_common}, {part_bucket, part_buckets, R"lua(
if known ~= quotas then return 0 end
local cost, early = tonumber(ARGV[3]), ARGV[4] == '1'
local back, all = cost, scales(known)
local function mark(i, n) return tonumber(ARGV[4 * i + n]) end
for i, s in ipairs(all) do
  local a = arrivals[i]
  if a[1] ~= mark(i, 1) or a[2] ~= mark(i, 2) or cost > s[4] then return 0 end
  if not early then
    local n, more = 0, false
    if a[1] >= now then n, more = divide(a[1] - now, a[2], s[2], s[3], s[1]) end
    back = math.min(back, n + (more and 1 or 0))
  end
end
if back == 0 then return 0 end
for i, s in ipairs(all) do
  local q, r = mark(i, 3), mark(i, 4)
  if not early then q, r = times(back, s[2], s[3], s[1]) end
  arrivals[i] = {normal(arrivals[i][1] - q, arrivals[i][2] - r, s[1])}
end
if not write(arrivals, known, 'KEEPTTL') then return end
if #KEYS == (ARGV[1] == '' and 3 or 2) then  -- buckets are bounded: see `take_bounded`
  local full = now
  for _, a in ipairs(arrivals) do full = math.max(full, a[1] + 1) end
  redis.pcall('ZADD', KEYS[2], 'XX', decimal(full), key)
end
return back
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& relay_job() {
  static redis_script const script({part_common, part_keep, part_queue, part_grows, part_form, part_sound, part_record, part_find, part_leased, part_typed, part_index, part_unique, part_erase, part_note, part_ends, part_fade, part_settle, R"lua(
local function enqueue_jobs(KEYS, ARGV)
)lua", part_common, part_next_in_turn, part_queue, part_form, part_sound, part_typed, part_find_all, part_flags, part_get_ready, part_holds, part_no_later_than, R"lua(
local function rarely()
)lua", part_record, part_find, part_index, part_unique, part_erase, part_note, part_ends, part_possessor, part_tidy, R"lua(
local function contend(j, ttl)
  local other, o = possessor(j.key)
  local outcome = 0
  if other then
    outcome = 1
    if o and state_of(o) == PENDING and j.policy == 3 then
      outcome = 2
      finish(o, CANCELLED)
    elseif o and state_of(o) == PENDING and j.policy == 4 then
      remove(o)
      unclaim(o)
      o.vesting, o.priority = j.vesting, j.priority
      put(o)
      save(o)
      outcome = 3
    end
  end
  if outcome % 2 == 0 then hold(j.key, j.id, ttl > 0 and now + ttl or 0) end
  return outcome, other
end
)lua", part_grows, R"lua(
tidy((#ARGV - 3) / 4)
local function forget(id, raw)
  if not sound(id, raw) then return not call('HGET', jobs, id) end  -- `tidy` may have erased it
  local j = parse(id, raw)
  if gone(j) then drop(j) end
  return gone(j)
end
return forget, function(id, raw, ttl) return contend(parse(id, raw), ttl) end
end
)lua", part_eight_numbers, R"lua(
local n = (#ARGV - 3) / 4
local fields, ranks, f, r, added, fresh = {}, {}, 0, 0, 0, {}
local function write()
  if r == 0 then return end
)lua", part_stay, R"lua(
  call('ZADD', index, unpack(ranks, 1, r))
  call('HSET', jobs, unpack(fields, 1, f))
  f, r = 0, 0
end
local found, changed, out, told, first, forget, contend = find_all(n, 4, 4), false, {}, false
local function arrive(at, id, known)
  if changed then
    write()
    known = call('HGET', jobs, id)
  elseif fresh[id] then
    return 0
  end
  if known then
    if not forget then forget, contend = rarely() end
    if not forget(id, known) then return 0 end
  end
  local key, body, extras, separate = ARGV[at + 2], ARGV[at + 3], 0, nil
  if #body > long_body then body, extras, separate = '', 2, body end
  local priority, strategy, policy, attempts, delay, deadline, retention, ttl =
    ARGV[at + 1]:match(eight_numbers)
  local vesting = now + delay
  local raw = struct.pack(form, 0, vesting, 0, 0, 0, priority, PENDING, extras, attempts, now,
    deadline, #key, strategy, policy, 0, now, retention, 0) .. key .. body
  local outcome, other = 0, nil
  if strategy ~= '0' and strategy ~= '3' then
    write()
    if not forget then forget, contend = rarely() end
    changed = true
    outcome, other = contend(id, raw, tonumber(ttl))
  end
  if outcome % 2 == 0 then
    ranks[r + 1], ranks[r + 2] = '0', struct.pack('>BI8', priority, vesting) .. id
    fields[f + 1], fields[f + 2] = id, raw
    f, r, added, fresh[id] = f + 2, r + 2, added + 1, true
    if separate then
      fields[f + 1], fields[f + 2] = id .. 'b', separate
      f = f + 2
    end
    if r == 998 then write() end
  end
  if outcome ~= 1 and (not first or vesting < first) then first = vesting end
  return outcome, other
end
for i = 1, n do
  local at = i * 4
  local outcome, other = arrive(at, ARGV[at], found[i])
  out[2 * i - 1], out[2 * i] = outcome, other or ''
  told = told or outcome ~= 0
end
write()
if added > 0 and increase('enqueued', added) == added then
  redis.pcall('ZADD', names, '0', name)  -- of a new queue, its type has been seen
end
if first then no_later_than(first, added) end
return told and out or {}
)lua", R"lua(
end
)lua", R"lua(
call('HLEN', queue)  -- before anything is written, its type has to show: `grows` does not see it
local by_lease = ARGV[5] ~= '0'
local j
if by_lease then j = leased(ARGV[4], ARGV[5], true) else j = find(ARGV[4]) end
if by_lease and not j then return {2 + 1} end
if not j or j.ended ~= PENDING then return {2} end
if not by_lease then
  local body = j.extras > 1 and call('HGET', jobs, j.id .. 'b') or j.body
  local size = struct.unpack('>I2', body)
  if size >= 32768 then
    size = size - 32768 + 2 + struct.unpack('>I2', body, 3)
  end
  if body:sub(3 + size) ~= ARGV[6] then
    return {1}
  end
end
local function add(to, of, first, n)
  if n == 0 then return {} end
  local arguments = {ARGV[1], of, ARGV[3]}
  for i = 1, 4 * n do arguments[3 + i] = ARGV[first + i - 1] end
  return enqueue_jobs(to, arguments)
end
local n, other = tonumber(ARGV[8]), {}
for i = 1, 8 do other[i] = KEYS[12 + i] end
other[9], other[10], other[11], other[12], other[13] = fence, KEYS[21], names, KEYS[22], KEYS[#KEYS]
local there = add(other, ARGV[9], 10, n)
if ARGV[7] ~= '' and j.retention > 0 then note(j, nil, ARGV[7]) end
finish(j, COMPLETED)
local here = add(KEYS, name, 10 + 4 * n, (#ARGV - 9) / 4 - n)
settle()
return {0, there, here}
)lua"});
  return script;
}

inline redis_script const& release_lock() {
  static redis_script const script({part_common, part_lease_of}, {part_locks, R"lua(
if not named(tonumber(ARGV[3])) then return 0 end
call('DEL', lock)
)lua", part_note_time, R"lua(
return 1
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& release_permit() {
  static redis_script const script({part_common, R"lua(
local easy
)lua"}, {R"lua(
if KEYS[1] ~= easy then easy = call('ZCARD', KEYS[3]) == 0 and KEYS[1] end
if easy and not unnoted then
  local ends, fences, holder, asked = KEYS[1], KEYS[2], ARGV[2], tonumber(ARGV[3])
  local fence = call('ZSCORE', fences, holder)
  local till = fence and tonumber(call('ZSCORE', ends, holder) or 0)
  if fence and (not fence:match('^%d+$') or till > 9007199254740992) then
    error('CORRUPT weir: a permit')
  end
  if not till or till <= now or (asked ~= 0 and asked ~= tonumber(fence)) then return {0, 0} end
  call('ZREM', fences, holder)
  call('ZREM', ends, holder)
  return {1, 0}
end
)lua", part_permits, part_call_next, R"lua(
call('ZCARD', ends)  -- before anything is written, its type has to show
local asked, line, lapsed = tonumber(ARGV[3]), tickets()
local fence, freed, left = held(), 0, 0
if fence and (asked == 0 or asked == fence) then
  call('ZREM', fences, holder)
  call('ZREM', ends, holder)
  freed = 1
end
if asked == 0 and line > 0 and call('ZSCORE', turns, holder) then
  leave_line(holder)
  left = 1
end
if freed + left + lapsed > 0 and line > left then call_next(freed + left + lapsed) end
)lua", part_note_time, R"lua(
return {freed, left}
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& release_queue_lease() {
  static redis_script const script({part_common, part_queue, part_lease_of, R"lua(
local asked = tonumber(ARGV[5])
local has, by, till = unpack(call('HMGET', queue, 'holder', 'fence', 'until'))
by, till = lease_of(has, by, till)
if has ~= ARGV[4] or till <= now or (asked ~= 0 and asked ~= by) then
  return 0
end
call('HDEL', queue, 'holder', 'fence', 'until')
)lua", part_note_time, R"lua(
return 1
)lua"});
  return script;
}

inline redis_script const& renew_lock() {
  static redis_script const script({part_common, part_keep, part_lease_of}, {part_locks, R"lua(
local asked = tonumber(ARGV[3])
if asked == 0 or not named(asked) then return 0 end
till = now + ARGV[4]
keep(lock, till)  -- first, since it needs no room
call('HSET', lock, 'until', decimal(till))
)lua", part_note_time, R"lua(
return 1
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& renew_permit() {
  static redis_script const script({part_common}, {part_permits, part_keep_all, R"lua(
local fence = held()
if not fence or fence ~= tonumber(ARGV[3]) then return 0 end
local till = now + ARGV[4]
call('ZREM', ends, '')  -- as in `drains`
call('ZADD', ends, decimal(till), holder)
keep_all(till, ends, fences)
)lua", part_note_time, R"lua(
return 1
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& replay_dead_letter() {
  static redis_script const script({part_common, part_next_in_turn, part_queue, part_form, part_sound, part_record, part_find, part_index, part_unique, part_erase, part_note, part_ends, part_possessor, part_flags, part_holds, part_no_later_than, part_drains, part_typed, R"lua(
local j = find(ARGV[4])
if not j or j.ended ~= DEAD then return 0 end
local other = holds_while_waiting[j.strategy] and possessor(j.key)
if other and other ~= j.id then return {other} end
if end_frees_key[j.strategy] then hold(j.key, j.id, 0) end
call('ZREM', dead, j.id)
j.ended, j.attempts, j.snoozes, j.deadline_from = PENDING, 0, 0, now
j.vesting = now + ARGV[5]
put(j)
save(j)
no_later_than(j.vesting)
return 1
)lua"});
  return script;
}

inline redis_script const& requeue_job() {
  static redis_script const script({part_common, part_next_in_turn, part_keep, part_queue, part_form, part_sound, part_record, part_find, part_leased, part_lease, part_drains, part_typed, part_index, part_unique, part_erase, part_note, part_ends, part_fade, part_settle, part_wait_again, part_flags, part_holds, part_no_later_than, R"lua(
if j.attempts >= j.max_attempts then
  if not look(j.id) then return 0 end
  bury(j, ARGV[7])
  settle()
  return 2
end
note(j, nil, nil, ARGV[7])
wait_again(j, now + ARGV[6])
no_later_than(j.vesting)
return 1
)lua"});
  return script;
}

inline redis_script const& reset_bucket() {
  static redis_script const script({part_common, R"lua(
call('DEL', KEYS[1])
if KEYS[2] then redis.pcall('ZREM', KEYS[2], KEYS[1]) end  -- see `take_bounded`
return 1
)lua"});
  return script;
}

inline redis_script const& resume_queue() {
  static redis_script const script({part_common, part_next_in_turn, part_queue, part_heads, part_flags, part_holds, part_save_holds, part_point, part_drains, R"lua(
paused, snoozed = false, 0
local least = heads()
call('ZCARD', due)
if flags then save_holds() end
point(least)
if least and least <= now then
  redis.pcall('PUBLISH', ARGV[3], due)
  next_in_turn(KEYS[12], 1)
end
return 1
)lua"});
  return script;
}

inline redis_script const& return_job() {
  static redis_script const script({part_common, part_next_in_turn, part_queue, part_form, part_sound, part_record, part_find, part_leased, part_lease, part_drains, part_typed, part_index, part_unique, part_wait_again, part_flags, part_holds, part_no_later_than, R"lua(
j.attempts = math.max(j.attempts - 1, 0)
wait_again(j, j.unclaimed)
no_later_than(j.vesting)
return 1
)lua"});
  return script;
}

inline redis_script const& scan_visible_queues() {
  static redis_script const script({part_common, part_is_name, part_answer_bytes, part_next_in_turn, R"lua(
local due, idle, limit, way, channel = KEYS[1], KEYS[2], tonumber(ARGV[2]), ARGV[3] / ARGV[4], ARGV[5]
local function range(from, to, n)
  return call('ZRANGEBYSCORE', due, from, to, 'WITHSCORES', 'LIMIT', 0, n)
end
local first = tonumber(range('-inf', '+inf', 1)[2] or nil)
local out, later, room = {}, nil, answer_bytes
local function list(from, to)
  local found = range(from, to, limit - #out + 1)
  for i = 1, #found, 2 do
    if is_name(found[i], due) then
      room = room - #found[i]
      if #out == limit or room < 0 then
        later = tonumber(found[i + 1])
        return
      end
      out[#out + 1] = found[i]
    end
  end
end
if first then
  local start = decimal(first + math.floor(math.max(now - first, 0) * way))
  list(start, decimal(now))
  if not later then list('-inf', '(' .. start) end
  if not later then later = tonumber(range('(' .. decimal(now), '+inf', 1)[2] or nil) end
end
if channel == 'next' then
  next_in_turn(idle, #out)
elseif channel ~= '' and #out == 0 then
)lua", part_wait_in_turn, R"lua(
end
return {out, later and math.min(later, 9007199254740992) - now or false}
)lua"});
  return script;
}

inline redis_script const& shards() {
  static redis_script const script({part_common, R"lua(
if decimal(2 ^ 52) ~= '4503599627370496' then return '' end
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and info:match('maxmemory_policy:([^\r\n]*)')
if policy == 'noeviction' then policy = nil end
local write = redis.pcall('PERSIST', KEYS[1])
local reads_only = type(write) == 'table' and write.err:find('READONLY')
local known = call('GET', KEYS[1])
if not known then
  known = ARGV[2]
  redis.pcall('SET', KEYS[1], known, 'NX')
end
if policy or reads_only then return {known, policy or '', reads_only and 1 or 0} end
return known
)lua"});
  return script;
}

inline redis_script const& snooze_job() {
  static redis_script const script({part_common, part_next_in_turn, part_queue, part_form, part_sound, part_record, part_find, part_leased, part_lease, part_drains, part_typed, part_index, part_unique, part_erase, part_note, part_ends, part_wait_again, part_flags, part_holds, part_no_later_than, R"lua(
note(j, ARGV[7])
j.attempts, j.snoozes = math.max(j.attempts - 1, 0), j.snoozes + 1
wait_again(j, now + ARGV[6])
no_later_than(j.vesting)
return 1
)lua"});
  return script;
}

inline redis_script const& snooze_queue() {
  static redis_script const script({part_common, part_next_in_turn, part_queue, part_heads, part_flags, part_holds, part_save_holds, part_point, part_name_it, R"lua(
local delay, least = tonumber(ARGV[4]), heads()
local before = ARGV[5] == '1' and snoozed or 0
call('ZCARD', due)
if flags then call('HDEL', queue, '') end  -- as in `drains`
if delay > 0 then
  name_it()
end
snoozed = math.max(delay > 0 and now + delay or 0, before)
if flags or delay > 0 then save_holds() end
point(least)
if least and not paused and math.max(least, snoozed) <= now then
  redis.pcall('PUBLISH', ARGV[3], due)
  next_in_turn(KEYS[12], 1)
end
return 1
)lua"});
  return script;
}

inline redis_script const& some_queues() {
  static redis_script const script({part_common, part_is_name, R"lua(
local names = KEYS[2]
local all = call('ZCARD', names)
local from = all > 0 and tonumber(ARGV[2]) % all or 0
local out = {}
local function add(first, last)
  for _, name in ipairs(call('ZRANGE', names, decimal(first), decimal(last))) do
    if is_name(name, names) then out[#out + 1] = name end
  end
end
add(from, from + 99)
if from + 100 > all and from > 0 then add(0, math.min(from + 99 - all, from - 1)) end
return out
)lua"});
  return script;
}

inline redis_script const& start_job() {
  static redis_script const script({part_common, part_queue, part_form, part_sound, part_record, part_find, part_leased, part_lease, part_drains, part_typed, part_unique, R"lua(
if holds_while_running[j.strategy] then
  local id = call('HGET', runs, j.key)
  local other = id and id ~= j.id and look(id, true)
  if other and state_of(other) == LEASED then return {other.vesting - now, id} end
  call('HSET', runs, j.key, j.id)
end
if start_frees_key[j.strategy] then free(j) end
return 1
)lua"});
  return script;
}

inline redis_script const& take() {
  static redis_script const script({part_common, part_last_request}, {part_bucket, part_quick_take, part_buckets, part_any_take}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& take_bounded() {
  static redis_script const script({part_common, part_keep_all, part_last_request}, {part_bucket, R"lua(
local index = KEYS[2]
local function full_at(bytes)
  local full, bar = 0, bytes:find('|', 1, true) or #bytes
  for at = bar + 1, math.min(#bytes, bar + 64) - 15, 16 do  -- of four quotas at most
    full = math.max(full, (struct.unpack('>i8', bytes, at)) + 1)
  end
  return full
end
-- One that is full equals one that was never seen, though the server may still have it.
local is_new = not value or full_at(value) <= now
if is_new and call('ZCOUNT', index, '(' .. decimal(now), '+inf') >= tonumber(ARGV[4]) then
  local first = call('ZRANGEBYSCORE', index, '(' .. decimal(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return {math.min(tonumber(first[2]), 9007199254740992) - now}
end

local function take()
)lua", part_quick_take, part_buckets, part_any_take, R"lua(
end
local answer = take()
if not answer or answer[1] ~= 1 or ARGV[3]:sub(1, 1) ~= '1' then return answer end
-- The bucket is written, so that memory which is full is no reason to refuse this. If it is refused
-- all the same, the key is of another type, of which those are told who bring new buckets.
local full = full_at(call('GET', key))
if type(redis.pcall('ZADD', index, decimal(full), key)) == 'number' then
  keep_all(full, index)
  if is_new then
    local over = call('ZRANGEBYSCORE', index, '-inf', decimal(now), 'LIMIT', 0, 16)
    if #over > 0 then call('ZREM', index, unpack(over)) end
  end
end
return answer
)lua"}, part_together, part_one_by_one);
  return script;
}

inline redis_script const& update_queue_pointer() {
  static redis_script const script({part_common, part_queue, part_heads, part_flags, part_holds, part_point, part_drains, R"lua(
local least = heads()
point(least)
return {least and least - now or false}
)lua"});
  return script;
}

}  // namespace weir::detail::lua

#endif
