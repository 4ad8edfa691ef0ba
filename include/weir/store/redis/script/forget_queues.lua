--- Forgets queues that have nothing, and whose counters have not changed for two days. For that,
--- one that has nothing is marked when it is seen: by the time, and what was enqueued until then.
--- KEYS: `names`; for each queue those that it has of its own, as in `queue`. ARGV: their names.
---@use common
local names, two_days = KEYS[1], 172800000000
local function any(from, to)
  for i = from, to do
    if call('TYPE', KEYS[i]).ok ~= 'none' then return true end
  end
end
for i = 1, #ARGV - 1 do
  local at = 8 * i - 6
  local queue = KEYS[at]
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
