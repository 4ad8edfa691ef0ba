--- Notes how many shards there are, or says what was noted. KEYS: of shard 0. A server that cannot
--- write notes it another time. Nothing: the server is one of 32 bits, and cannot write a time.
---@use common
if decimal(2 ^ 52) ~= '4503599627370496' then return '' end
local known = call('GET', KEYS[1])
if known then return known end
redis.pcall('SET', KEYS[1], ARGV[2], 'NX')
return ARGV[2]
