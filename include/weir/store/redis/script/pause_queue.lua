---@use common, queue, flags, holds, save_holds, name_it
call('ZCARD', due)
if flags then call('HDEL', queue, '') end  -- as in `drains`
name_it()
paused = true
save_holds()
call('ZREM', due, name)
return 1
