---@use common
call('DEL', KEYS[1])
return 1
