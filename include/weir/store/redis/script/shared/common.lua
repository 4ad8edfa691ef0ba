---@part common
--- `now`, and `slack`: for how many milliseconds more than it is needed the server keeps a key. A
--- minute, longer where its clock is behind and may be set right, and a hundred years where the time
--- was told, which that clock knows nothing of.
--- The clock may be set back, or be another server's after a failover. Time goes on from where it
--- was all the same (F99, F102): the last key has the time that was last noted, a few times in a
--- second, and what it was ahead of the clock, until the clock has come there by itself. Where the
--- clock is behind by a second at most, only fences go on, by `lead`. A note that a full
--- server did not take is `unnoted`, for who writes anyway. A bucket's key may be alone, where a slot
--- moves: then it is the clock's time, with which nothing is given that is not there.
--- Each run of a script pays for making its functions, for each of its keys and arguments, and for
--- the bytes of each of its strings, which Lua hashes: of all these, it has as few as it can.
local call = redis.call
local now, slack, lead, unnoted = tonumber(ARGV[1]), 3155760000000, 0, nil
if not now then
  local t, clock = call('TIME'), KEYS[2] and KEYS[#KEYS]
  now, slack = t[1] * 1000000 + t[2], 60000
  local noted = clock and call('GET', clock)
  local seen = tonumber(noted or nil)
  if clock and not (seen and seen - now <= 1000000 and now - seen <= weir.redis_noted) then
    local ahead
    seen, ahead = (noted or ''):match('^(%d+)%+?(%d*)$')
    seen, ahead = tonumber(seen) or 0, tonumber(ahead) or 0
    local was, may_be_right = ahead, now >= weir.redis_past
    -- A clock that cannot be right is not believed, and a note is, however far ahead. Any other is
    -- believed where a note is years ahead: it is damaged, and by it all that is held would end.
    local far = may_be_right and now + weir.redis_farthest or weir.redis_exact - 1
    if seen > far or ahead > seen then seen, ahead = 0, 0 end
    -- Right again, or nearly: what it was behind by, added once more, would end what is held.
    if now >= seen - ahead / 10 or may_be_right and seen - ahead < weir.redis_past then
      ahead = math.max(seen - now, 0)
    end
    now = now + ahead
    local behind = seen - now
    if behind > 1000000 or behind < -weir.redis_noted or ahead ~= was then
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
    if ahead > 0 then lead = weir.redis_lead end
  end
  if seen and seen > now then lead = weir.redis_lead end
end
local function decimal(number) return string.format('%d', number) end

---@part note_time
--- Where a step comes to an end, or has written already: has a full server take the note all the same,
--- or time would stand still for who is refused, and a lease of the dead never end.
if unnoted then
  call('PERSIST', KEYS[#KEYS])
  call('SET', KEYS[#KEYS], unnoted)
  unnoted = nil
end

---@part next_fences
--- The first of the next n fences. The clock is nearly always ahead of the last one. Where time goes
--- on from a note, a replica may have been promoted that lacks the last fences: these are passed by
--- `lead`. A fence that is damaged, or beyond what a script can count, stays as it is (F97).
local function next_fences(key, n)
  local first = now + lead
  local was = call('SET', key, decimal(first + n - 1), 'GET')
  local last = was and tonumber(was) or 0
  if was and (not was:match('^%d+$') or last > weir.redis_exact - n) then
    call('SET', key, was)
    error('CORRUPT weir: a fence')
  end
  if last < first then return first end
  call('SET', key, decimal(last + n))
  return last + 1
end

---@part tell
--- Publishes a hint, if that is allowed.
local function tell(channel, key) redis.pcall('PUBLISH', channel, key) end

---@part next_in_turn
--- A queue is due: tells the first n of the processes that wait for that in turn, ten at most. Of each
--- there is its channel, by when its wait began; one that nobody hears has ended. Nothing here fails.
local function next_in_turn(idle, n)
  n = math.min(n, 10)
  for _ = 1, 1000 do
    local channel = n > 0 and redis.pcall('ZRANGE', idle, 0, 0)[1]
    if not channel then return end
    redis.pcall('ZREM', idle, channel)
    if redis.pcall('PUBLISH', channel, idle) ~= 0 then n = n - 1 end
  end
end

---@part wait_in_turn
--- Adds the process whose channel it is, unless it waits already; also where memory is full, as in
--- `drains`. Those who wait ask again within a day.
redis.pcall('ZREM', idle, '')
if redis.pcall('ZADD', idle, 'NX', decimal(now), channel) == 1 then
  redis.pcall('PEXPIRE', idle, '86400000')
end

---@part keep
--- Lets a key live until then and `slack` longer. A damaged instant is held within what can be
--- said.
local function kept_for(till)
  till = math.max(now, math.min(till, weir.redis_exact))
  return decimal(math.ceil((till - now) / 1000) + slack)
end
local function keep(key, till) call('PEXPIRE', key, kept_for(till)) end
