---@use common
--- How nearly every permit is released: nobody is in line.
if call('ZCARD', KEYS[3]) == 0 then
  local ends, fences, holder, asked = KEYS[1], KEYS[2], ARGV[2], tonumber(ARGV[3])
  local fence = call('ZSCORE', fences, holder)
  local till = fence and tonumber(call('ZSCORE', ends, holder) or 0)
  if fence and (not fence:match('^%d+$') or till > weir.redis_exact) then
    error('CORRUPT weir: a permit')
  end
  if not till or till <= now or (asked ~= 0 and asked ~= tonumber(fence)) then return {0, 0} end
  call('ZREM', fences, holder)
  call('ZREM', ends, holder)
  return {1, 0}
end

---@use tell, permits
local asked, line, freed, left = tonumber(ARGV[3]), tickets(), 0, 0
local fence = held()
if fence and (asked == 0 or asked == fence) then
  call('ZREM', fences, holder)
  call('ZREM', ends, holder)
  freed = 1
end
if asked == 0 and line > 0 and call('ZSCORE', turns, holder) then
  leave_line(holder)
  left = 1
end
if freed + left > 0 and line > left then tell(ARGV[4], ends) end
return {freed, left}
