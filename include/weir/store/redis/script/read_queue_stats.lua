---@use common, queue, heads, flags, holds
local h = call('HMGET', queue, 'enqueued', 'completed', 'cancelled', 'purged')
for i = 1, 4 do  -- one that is damaged begins anew
  h[i] = tonumber((h[i] or ''):match('^%d+$')) or 0
  if h[i] > weir.redis_exact then h[i] = 0 end
end
local running = call('ZCOUNT', claimed, '(' .. decimal(now), '+inf')
local least = heads()
return {h[1], math.max(call('ZCARD', index) - running, 0), running, h[2], call('ZCARD', dead), h[3], h[4],
  paused and 1 or 0, least and least - now or false}
