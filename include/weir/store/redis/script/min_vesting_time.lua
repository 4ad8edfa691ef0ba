---@use common, queue, heads
local least = heads()
return {least and least - now or false}
