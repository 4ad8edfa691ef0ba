---@use common
--- The key in whose line nobody is.
local easy

---@each
--- How nearly every permit is released.
if KEYS[1] ~= easy then easy = call('ZCARD', KEYS[3]) == 0 and KEYS[1] end
if easy and not unnoted then
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

---@use permits, call_next
call('ZCARD', ends)  -- before anything is written, its type has to show
local asked, line, lapsed = tonumber(ARGV[3]), tickets()
local fence, freed, left = held(), 0, 0
if fence and (asked == 0 or asked == fence) then
  call('ZREM', fences, holder)
  call('ZREM', ends, holder)
  freed = 1
end
if asked == 0 and line > 0 and call('ZSCORE', turns, holder) then
  leave_line(holder)
  left = 1
end
if freed + left + lapsed > 0 and line > left then call_next(freed + left + lapsed) end

---@use note_time
return {freed, left}
