---@use common
--- The key in whose line nobody is, and of whose permits none is over; how many it has, and for how
--- long the server keeps them.
local easy, live, kept

---@each
--- How nearly every permit is acquired: so it is with its key, there is one to be had, and the holder
--- has none.
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
  if was and not full and (not was:match('^%d+$') or last >= weir.redis_exact) then
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

---@use has_room, next_fences, permits, call_next, keep_all
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

---@use note_time
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
    return math.max(math.min(tonumber(nth[2]), weir.redis_exact) - now, 1)
  end
  local last = tonumber(call('ZREVRANGE', ends, 0, 0, 'WITHSCORES')[2] or 0)
  local tickets = call('ZREVRANGE', lapses, 0, 1, 'WITHSCORES')
  for i = 1, #tickets, 2 do
    if tickets[i] ~= holder then last = math.max(last, tonumber(tickets[i + 1])) end
  end
  return math.max(math.min(last, weir.redis_exact) - now, 1)  -- lapsed tickets may be left
end

if free > 0 then call_next(free) end
if patience > 0 then
  -- Of these two, a wrong type has to show before anything is written.
  call('ZCARD', lapses)
  call('HLEN', limits)
  local after = retry_after(ahead)
  if not rank then
    local last = tonumber(call('ZREVRANGE', turns, 0, 0, 'WITHSCORES')[2] or 0)
    if last >= weir.redis_exact then error('CORRUPT weir: a line') end
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
