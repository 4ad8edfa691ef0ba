--- Is a queue due? Otherwise, when the first one will be; null: none.
---@use common
local first = tonumber(call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or nil)
return {first and math.min(first, weir.redis_exact) - now or false}
