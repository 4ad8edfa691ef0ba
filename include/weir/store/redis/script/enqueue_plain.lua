--- Jobs that hold no unique key while they wait, and of which none is named twice: what nearly
--- every enqueue is. ARGV: 4 for each job: its id, its numbers, its unique key, its body. What jobs
--- have in common is made once. After `get_ready`.
---@use common, flags, get_ready, eight_numbers, form
local queue, index, jobs, kept, due, ARGV = KEYS[1], KEYS[2], KEYS[3], KEYS[7], KEYS[10], ARGV
local added, first, numbers, key_size, separate, header, level = 0, nil, nil, nil, nil, nil, nil
local n = (#ARGV - 3) / 4
if n > 1000 then call('ZCARD', kept) end
for from = 1, n, 1000 do  -- what Lua can pass to a command is limited
  local to, found, ranks, fields, r, f = math.min(from + 999, n), nil, {}, {}, 0, 0
  if from == to then
    found = {call('HGET', jobs, ARGV[4 * from])}
  else
    local ids = {}
    for i = from, to do ids[i - from + 1] = ARGV[4 * i] end
    found = call('HMGET', jobs, unpack(ids))
  end
  for i = from, to do
    local at, known = 4 * i, found[i - from + 1]
    local id, key, body = ARGV[at], ARGV[at + 2], ARGV[at + 3]
    if ARGV[at + 1] ~= numbers or #key ~= key_size or (#body > long_body) ~= separate then
      numbers, key_size, separate = ARGV[at + 1], #key, #body > long_body
      local priority, strategy, policy, attempts, delay, deadline, retention =
        numbers:match(eight_numbers)
      local vesting = now + delay
      header = struct.pack(form, 0, vesting, 0, 0, 0, priority, 0, separate and 2 or 0, attempts,
        now, deadline, key_size, strategy, policy, 0, now, retention, 0)
      level = struct.pack('>BI8', priority, vesting)
      if not first or vesting < first then first = vesting end
    end
    if known and #known >= weir.redis_record.size then
      local ended, vesting = known:byte(weir.redis_record.ended), --\
        struct.unpack('>I8', known, weir.redis_record.vesting)
      if (ended == weir.job_state.completed or ended == weir.job_state.cancelled) and --\
          vesting <= now then  -- it is over
        call('ZADD', index, 'XX', '0', '')  -- as in `grows`
        call('ZREM', kept, 'j' .. id)
        call('HDEL', jobs, id, id .. 'b', id .. 'n')
        known = nil
      end
    end
    if not known then
      ranks[r + 1], ranks[r + 2] = '0', level .. id
      r = r + 2
      if separate then
        fields[f + 1], fields[f + 2], fields[f + 3], fields[f + 4] =
          id, header .. key, id .. 'b', body
        f = f + 4
      else
        fields[f + 1], fields[f + 2] = id, header .. key .. body
        f = f + 2
      end
    end
  end
  if r > 0 then
    if added == 0 then call('ZCARD', due) end  -- before the first write, its type has to show
---@use stay
    call('ZADD', index, unpack(ranks))
    call('HSET', jobs, unpack(fields))
    added = added + r / 2
  end
end
if added == 0 then return {} end
local name = ARGV[2]
local total = redis.pcall('HINCRBY', queue, 'enqueued', added == 1 and '1' or added)
if type(total) ~= 'number' then  -- as in `increase`
  total = added + (tonumber(call('HGET', queue, 'enqueued') or 0) or 0)
  if not (total >= added and total <= weir.redis_exact) then total = added end
  call('HSET', queue, 'enqueued', string.format('%d', total))
end
if total == added then
  redis.pcall('ZADD', KEYS[11], '0', name)  -- of a new queue, its type has been seen
end
if flags:sub(1, 1) == '0' then
  local at = math.max(first, flags == '000' and 0 or tonumber(flags:sub(3)))
  if call('ZADD', due, 'LT', 'CH', decimal(at), name) == 1 and at <= now then
    redis.pcall('PUBLISH', ARGV[3], due)
---@use next_in_turn
    next_in_turn(KEYS[12], added)
  end
end
return {}
