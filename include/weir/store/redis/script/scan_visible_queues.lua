--- ARGV: limit, and how far between the longest due one and now the scan begins: a fraction.
---@use common, is_name, answer_bytes
local due, limit, way = KEYS[1], tonumber(ARGV[2]), ARGV[3] / ARGV[4]
local function range(from, to, n)
  return call('ZRANGEBYSCORE', due, from, to, 'WITHSCORES', 'LIMIT', 0, n)
end
local first = tonumber(range('-inf', '+inf', 1)[2] or nil)
if not first then return {{}, false} end
local start = decimal(first + math.floor(math.max(now - first, 0) * way))
local out, later, room = {}, nil, answer_bytes
local function list(from, to)
  local found = range(from, to, limit - #out + 1)
  for i = 1, #found, 2 do
    if is_name(found[i], due) then
      room = room - #found[i]
      if #out == limit or room < 0 then
        later = tonumber(found[i + 1])
        return
      end
      out[#out + 1] = found[i]
    end
  end
end
list(start, decimal(now))
if not later then list('-inf', '(' .. start) end
if not later then later = tonumber(range('(' .. decimal(now), '+inf', 1)[2] or nil) end
return {out, later and math.min(later, weir.redis_exact) - now or false}
