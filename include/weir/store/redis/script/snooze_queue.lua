--- ARGV: delay.
---@use common, queue, heads, flags, holds, save_holds, point, name_it
local delay, least = tonumber(ARGV[4]), heads()
call('ZCARD', due)
if flags then call('HDEL', queue, '') end  -- as in `drains`
if delay > 0 then
  name_it()
end
snoozed = delay > 0 and now + delay or 0
if flags or delay > 0 then save_holds() end
point(least)
return 1
