--- The housekeeping of some queues: removes what time has ended, a piece of it in each run (F80), and
--- forgets queues that have nothing, and whose counters have not changed for two days. For that, one
--- that has nothing is marked when it is seen: by the time, and what was enqueued until then.
--- KEYS: `names`; for each queue those that it has of its own, as in `queue`. ARGV: their names.
--- Answers the number of the queue at which there may be more to remove; 0: at none.
---@use common, keep, fade
local names, two_days, piece = KEYS[1], 172800000000, weir.redis_piece
local function is(key, kind) return call('TYPE', key).ok == kind end
local function any(from, to)
  for i = from, to do
    if not is(KEYS[i], 'none') then return true end
  end
end
local jobs, keys, kept
---@use erase, tidy
for i = 1, #ARGV - 1 do
  local at = 8 * i - 6
  local queue, index, dead = KEYS[at], KEYS[at + 1], KEYS[at + 5]
  jobs, keys, kept = KEYS[at + 2], KEYS[at + 3], KEYS[at + 6]
  if is(kept, 'zset') and (is(jobs, 'hash') or is(jobs, 'none')) and --\
      (is(keys, 'hash') or is(keys, 'none')) then
    local removed = tidy(piece / 2 - 1)
    piece = piece - removed
    if piece == 0 then return i end
    local flags = is(queue, 'hash') and call('HGET', queue, 'flags')
    if flags and (removed > 0 or flags:sub(2, 2) == '0') and is(index, 'none') and --\
        is(dead, 'none') then
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
