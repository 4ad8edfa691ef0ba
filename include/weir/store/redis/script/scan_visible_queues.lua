--- ARGV: limit, and how far between the longest due one and now the scan begins: a fraction; of who
--- waits in turn, if none is due, the channel of its process; 'next': if one is, another one is told.
---@use common, is_name, answer_bytes, next_in_turn
local due, idle, limit, way, channel = KEYS[1], KEYS[2], tonumber(ARGV[2]), ARGV[3] / ARGV[4], ARGV[5]
local function range(from, to, n)
  return call('ZRANGEBYSCORE', due, from, to, 'WITHSCORES', 'LIMIT', 0, n)
end
local first = tonumber(range('-inf', '+inf', 1)[2] or nil)
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
if first then
  local start = decimal(first + math.floor(math.max(now - first, 0) * way))
  list(start, decimal(now))
  if not later then list('-inf', '(' .. start) end
  if not later then later = tonumber(range('(' .. decimal(now), '+inf', 1)[2] or nil) end
end
if channel == 'next' then
  next_in_turn(idle, #out)
elseif channel ~= '' and #out == 0 then
---@use wait_in_turn
end
return {out, later and math.min(later, weir.redis_exact) - now or false}
