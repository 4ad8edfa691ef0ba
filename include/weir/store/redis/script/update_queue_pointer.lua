---@use common, queue, heads, flags, holds, point, drains
local least = heads()
point(least)
return {least and least - now or false}
