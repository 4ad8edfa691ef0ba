--- ARGV: after which death, limit.
---@use common, queue, form, sound, record, find, describe, fits
local most, out = tonumber(ARGV[5]), {}
local found =
  call('ZRANGEBYSCORE', dead, '(' .. ARGV[4], 'weir.redis_exact', 'LIMIT', 0, most + 1)
local n, shown = 0, 0
while n < most and n < #found do
  local id = found[n + 1]
  local raw = call('HGET', jobs, id)
  if #id == 16 and sound(id, raw) then  -- what is damaged is skipped
    if not fits(out, id, raw) then break end
    shown = shown + 1
  end
  n = n + 1
end
return {now, shown, out, #found > n and math.ceil(tonumber(call('ZSCORE', dead, found[n]))) or 0}
