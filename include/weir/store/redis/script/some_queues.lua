--- The names of up to a hundred of a shard's queues, the first of them after the last. ARGV: how many
--- were given before, of which those that there are no more are not counted.
---@use common, is_name
local names = KEYS[2]
local all = call('ZCARD', names)
local from = all > 0 and tonumber(ARGV[2]) % all or 0
local out = {}
local function add(first, last)
  for _, name in ipairs(call('ZRANGE', names, decimal(first), decimal(last))) do
    if is_name(name, names) then out[#out + 1] = name end
  end
end
add(from, from + 99)
if from + 100 > all and from > 0 then add(0, math.min(from + 99 - all, from - 1)) end
return out
