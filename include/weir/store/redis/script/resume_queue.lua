---@use common, next_in_turn, queue, heads, flags, holds, save_holds, point, drains
paused, snoozed = false, 0
local least = heads()
call('ZCARD', due)
if flags then save_holds() end
point(least)
if least and least <= now then
  redis.pcall('PUBLISH', ARGV[3], due)
  next_in_turn(KEYS[12], 1)
end
return 1
