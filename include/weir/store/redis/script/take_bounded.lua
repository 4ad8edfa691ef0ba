--- `take` where the buckets of a shard are bounded. KEYS[2]: those that are not full, by the instant
--- at which they will be. ARGV[4]: how many there may be. Where there is no room for another one:
--- answers how long it is until the first of them is full.
---@use common, keep_all, last_request

---@each
---@use bucket
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
  return {math.min(tonumber(first[2]), weir.redis_exact) - now}
end

local function take()
---@use quick_take, buckets, any_take
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
