---@use common, tell, queue, heads, flags, holds, save_holds, point, drains
paused, snoozed = false, 0
local least = heads()
call('ZCARD', due)
if flags then save_holds() end
point(least)
if least and least <= now then tell(ARGV[3], due) end
return 1
