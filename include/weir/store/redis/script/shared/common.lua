---@part common
--- `now`, and `slack`: for how many milliseconds more than it is needed the server keeps a key. A
--- minute, so that a clock that steps back finds it; and a hundred years where the time was told,
--- which the server's clock knows nothing of. Each run of a script pays for making its functions,
--- for each of its keys and arguments, and for the bytes of each of its strings, which Lua hashes:
--- of all these, it has as few as it can.
local call = redis.call
local now, slack = tonumber(ARGV[1]), 3155760000000
if not now then
  local t = call('TIME')
  now, slack = t[1] * 1000000 + t[2], 60000
end
local function decimal(number) return string.format('%d', number) end

---@part next_fences
--- The first of the next n fences. The clock is nearly always ahead of the last one. A fence that
--- is damaged, or beyond what a script can count, stays as it is (F97).
local function next_fences(key, n)
  local was = call('SET', key, decimal(now + n - 1), 'GET')
  local last = was and tonumber(was) or 0
  if was and (not was:match('^%d+$') or last > weir.redis_exact - n) then
    call('SET', key, was)
    error('CORRUPT weir: a fence')
  end
  if last < now then return now end
  call('SET', key, decimal(last + n))
  return last + 1
end

---@part tell
--- Publishes a hint, if that is allowed.
local function tell(channel, key) redis.pcall('PUBLISH', channel, key) end

---@part keep
--- Lets a key live until then and `slack` longer. A damaged instant is held within what can be
--- said.
local function kept_for(till)
  till = math.max(now, math.min(till, weir.redis_exact))
  return decimal(math.ceil((till - now) / 1000) + slack)
end
local function keep(key, till) call('PEXPIRE', key, kept_for(till)) end
