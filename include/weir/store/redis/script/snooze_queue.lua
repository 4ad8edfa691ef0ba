--- ARGV: delay, at least that (0 or 1).
---@use common, next_in_turn, queue, heads, flags, holds, save_holds, point, name_it
local delay, least = tonumber(ARGV[4]), heads()
local before = ARGV[5] == '1' and snoozed or 0
call('ZCARD', due)
if flags then call('HDEL', queue, '') end  -- as in `drains`
if delay > 0 then
  name_it()
end
snoozed = math.max(delay > 0 and now + delay or 0, before)
if flags or delay > 0 then save_holds() end
point(least)
if least and not paused and math.max(least, snoozed) <= now then
  redis.pcall('PUBLISH', ARGV[3], due)
  next_in_turn(KEYS[12], 1)
end
return 1
