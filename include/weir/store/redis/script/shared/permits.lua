---@part permits
--- A key's permits stand in two sorted sets, by their ends and by their fences, and its tickets in
--- two, by turn and by the instant at which they lapse; a hash has the limit of each ticket's last
--- asking. Permits are counted by their ends, so it does not matter how many of those that are over
--- are still there; of those, and of tickets, a step removes up to a thousand. Nearly always nobody
--- is in line.
local ends, fences, turns, lapses, limits = unpack(KEYS)
local holder = ARGV[2]
local function leave_line(...)  -- after `tickets`
  call('ZREM', lapses, ...)
  call('HDEL', limits, ...)
  call('ZREM', turns, ...)
end
-- How many wait. Where somebody does, a wrong type of any of these shows before something is written.
local function tickets()
  local n = call('ZCARD', turns)
  if n == 0 then return 0 end
  call('HLEN', limits)
  local over = call('ZRANGEBYSCORE', lapses, '-inf', decimal(now), 'LIMIT', 0, 1000)
  if #over == 0 then return n end
  leave_line(unpack(over))
  return call('ZCARD', turns)
end
local function held()
  local fence = call('ZSCORE', fences, holder)
  local till = fence and tonumber(call('ZSCORE', ends, holder) or 0)
  if fence and (not fence:match('^%d+$') or till > weir.redis_exact) then
    error('CORRUPT weir: a permit')
  end
  if till and till > now then return tonumber(fence), till end
end

---@part keep_all
--- Lets keys live until then and half of `slack` longer, or all of it: so it need not be said each
--- time.
local function keep_all(till, first, ...)
  local least = math.ceil((till - now) / 1000) + slack / 2
  if call('PTTL', first) >= least then return end
  for _, key in ipairs({first, ...}) do call('PEXPIRE', key, decimal(least + slack / 2)) end
end
