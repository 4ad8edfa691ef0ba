---@use common, permits
local most = tonumber(ARGV[3])
local out = {call('ZCOUNT', ends, '(' .. decimal(now), '+inf'),
  call('ZCOUNT', lapses, '(' .. decimal(now), '+inf')}
if most == 0 then return out end
-- A hundred thousand that are over may stand before them.
for from = 0, 99000, 1000 do
  local by_fence = call('ZRANGE', fences, from, from + 999, 'WITHSCORES')
  for i = 1, #by_fence, 2 do
    local who, by = by_fence[i], by_fence[i + 1]
    local till = tonumber(call('ZSCORE', ends, who) or 0)
    -- Damaged ones are skipped.
    if till > now and till <= weir.redis_exact and by:match('^%d+$') and --\
        #who <= weir.limits.holder_size then
      out[#out + 1] = {who, tonumber(by), till - now}
      if #out == most + 2 then return out end
    end
  end
  if #by_fence < 2000 then break end
end
return out
