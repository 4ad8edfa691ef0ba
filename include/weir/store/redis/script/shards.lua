--- Notes how many shards there are, or says what was noted. KEYS: of shard 0. A server that cannot
--- write notes it another time. Nothing: the server is one of 32 bits, and cannot write a time.
--- Beside the server's maxmemory-policy, where that is not noeviction and the user may ask for it, and
--- whether it is a replica. That shows in a write, which changes nothing and needs no room.
---@use common
if decimal(2 ^ 52) ~= '4503599627370496' then return '' end
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and info:match('maxmemory_policy:([^\r\n]*)')
if policy == 'noeviction' then policy = nil end
local write = redis.pcall('PERSIST', KEYS[1])
local reads_only = type(write) == 'table' and write.err:find('READONLY')
local known = call('GET', KEYS[1])
if not known then
  known = ARGV[2]
  redis.pcall('SET', KEYS[1], known, 'NX')
end
if policy or reads_only then return {known, policy or '', reads_only and 1 or 0} end
return known
