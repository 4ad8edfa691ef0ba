---@use common
call('DEL', KEYS[1])
if KEYS[2] then redis.pcall('ZREM', KEYS[2], KEYS[1]) end  -- see `take_bounded`
return 1
