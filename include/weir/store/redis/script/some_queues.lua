--- The names of up to a hundred of a shard's queues. ARGV: how many were given before, of which those
--- that there are no more are not counted.
---@use common, is_name
local names = KEYS[2]
local all = call('ZCARD', names)
local from = all > 0 and tonumber(ARGV[2]) % all or 0
local out = {}
for _, name in ipairs(call('ZRANGE', names, decimal(from), decimal(from + 99))) do
  if is_name(name, names) then out[#out + 1] = name end
end
return out
