---@use common, permits
local most = tonumber(ARGV[3])
local out = {call('ZCOUNT', ends, '(' .. decimal(now), '+inf'),
  call('ZCOUNT', lapses, '(' .. decimal(now), '+inf')}
if most == 0 then return out end
local by_fence = call('ZRANGE', fences, 0, most + 999, 'WITHSCORES')
for i = 1, #by_fence, 2 do
  local till = tonumber(call('ZSCORE', ends, by_fence[i]) or 0)
  if till > now and till <= weir.redis_exact and by_fence[i + 1]:match('^%d+$') then  -- what is damaged is skipped
    out[#out + 1] = {by_fence[i], tonumber(by_fence[i + 1]), till - now}
    if #out == most + 2 then break end
  end
end
return out
