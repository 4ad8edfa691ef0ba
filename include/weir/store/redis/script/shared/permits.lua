---@part has_room
--- A script that has written is refused nothing where memory is full. So a step that would free some
--- before it takes some is done together with others only where there is room: otherwise they would
--- grow as well.
if together and not together.room then
  if type(redis.pcall('ZADD', KEYS[3], 'XX', '0', '')) == 'table' then return end
  together.room = true
end

---@part permits
--- A key's permits stand in two sorted sets, by their ends and by their fences, and its tickets in
--- two, by turn and by the instant at which they lapse; a hash has the limit of each ticket's last
--- asking, and the channel of the process that asked. Permits are counted by their ends, so it does
--- not matter how many of those that are over are still there: a step removes up to a thousand.
--- A step removes all tickets that have lapsed; of more than ten thousand the rest is left to the
--- next ones, or strangers would wait for it. The rest does not count as waiting, but a ticket that
--- others are behind may have it ahead. Nearly always nobody is in line.
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
  if fence and (not fence:match('^%d+$') or till > weir.redis_exact) then
    error('CORRUPT weir: a permit')
  end
  if till and till > now then return tonumber(fence), till end
end

---@part call_next
--- After n places became free: tells those whose turn has come by it, each in its own process, and
--- nobody else; a thousand of them at most. Those ahead of them were told before. After `permits`.
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

---@part keep_all
--- Lets keys live until then and `slack` longer, or half a minute less: so it need not be said each
--- time. What the clock is behind by is not halved: that is what they lose once it is right.
local function keep_all(till, first, ...)
  local least = math.ceil((till - now) / 1000) + slack - 30000
  if call('PTTL', first) >= least then return end
  for _, key in ipairs({first, ...}) do call('PEXPIRE', key, decimal(least + 30000)) end
end
