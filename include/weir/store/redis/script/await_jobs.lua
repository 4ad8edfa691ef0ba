--- Is a queue due? Otherwise, when the first one will be; null: none. ARGV: of who waits in turn, the
--- channel of its process.
---@use common
local idle, channel = KEYS[2], ARGV[2]
local first = tonumber(call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or nil)
if channel ~= '' then
---@use wait_in_turn
end
return {first and math.min(first, weir.redis_exact) - now or false}
