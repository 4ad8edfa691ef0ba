---@use common, permits
local most, all = tonumber(ARGV[3]), {}
local out = {call('ZCOUNT', ends, '(' .. decimal(now), '+inf'),
  call('ZCOUNT', lapses, '(' .. decimal(now), '+inf')}
if most == 0 then return out end
-- Damaged ones are skipped.
local function add(who, by, till)
  if by and by:match('^%d+$') and till > now and till <= weir.redis_exact and --\
      #who <= weir.limits.holder_size then
    all[#all + 1] = {who, tonumber(by), till - now}
  end
end
local by_fence = call('ZRANGE', fences, 0, most + 999, 'WITHSCORES')
for i = 1, #by_fence, 2 do
  if #all == most then break end
  add(by_fence[i], by_fence[i + 1], tonumber(call('ZSCORE', ends, by_fence[i]) or 0))
end
-- Where a thousand that are over stand before them, they are found by their ends: all of them, or
-- as many as are looked at.
if #all < most and #by_fence == 2 * most + 2000 then
  all = {}
  local by_end = call('ZRANGEBYSCORE', ends, '(' .. decimal(now), '+inf', 'WITHSCORES', --\
    'LIMIT', 0, most + 1000)
  for i = 1, #by_end, 2 do
    add(by_end[i], call('ZSCORE', fences, by_end[i]), tonumber(by_end[i + 1]))
  end
  table.sort(all, function(one, other) return one[2] < other[2] end)
end
for i = 1, math.min(#all, most) do out[i + 2] = all[i] end
return out
