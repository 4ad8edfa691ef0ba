---@part queue
--- A queue's keys, in the order of KEYS:
---
--- - `queue`: a hash with its counters, pause, snooze and lease; all that an empty queue leaves
--- - `index`: the jobs that have not ended, in the order of their ranks. All scores are 0, and the
---   members are {priority, vesting time, id} as bytes: so each priority level is a range, whose
---   head is found in O(log n), and empty levels cost nothing
--- - `jobs`: a hash; for each job its id, with its `record`; and what few jobs have besides: its id
---   and "b", with a body that is too long to be written anew at each step, its id and "n", with
---   its notes (memo, result, progress, checkpoint, reason)
--- - `keys`: the enqueue keys, each with the job that has it, and its expiry (0: none)
--- - `runs`: the run locks, each with the job that has it
--- - `dead`: the dead letters, in the order of their deaths
--- - `kept`: what time ends: "j" and a job's id by the end of its retention, "k" and an enqueue key
---   by its expiry
--- - `claimed`: the jobs that were leased, by the end of the lease
---
--- and of its shard: the `fence`, the queues by the instant from which a scan finds them (`due`),
--- and all their `names`.
local queue, index, jobs, keys, runs, dead, kept, claimed, fence, due, names = unpack(KEYS, 1, 11)
local name = ARGV[2]
local PENDING, LEASED, COMPLETED, DEAD, CANCELLED = weir.job_state.pending, --\
  weir.job_state.leased, weir.job_state.completed, weir.job_state.dead, weir.job_state.cancelled
-- A user without the right to HINCRBY is as good as others. A counter that is damaged begins anew;
-- deaths go on from the last one, or from now.
local function increase(what, n)
  local total = redis.pcall('HINCRBY', queue, what, n)
  local by_hand = type(total) ~= 'number'
  if by_hand then total = (tonumber(call('HGET', queue, what) or 0) or -weir.redis_exact) + n end
  local good = total >= 0 and total <= weir.redis_exact
  if good and not by_hand then return total end
  if not good and what == 'deaths' then
    n = math.floor(tonumber(call('ZREVRANGE', dead, 0, 0, 'WITHSCORES')[2] or 0)) + 1
    if not (n > 0 and n < weir.redis_exact) then n = now end
  end
  if not good then total = n end
  call('HSET', queue, what, decimal(math.max(total, 0)))
  return total
end

---@part drains
--- What needs no room goes on where memory is full. A full server refuses a command that may need
--- room, unless the script has written already: so this writes, and changes nothing.
call('HDEL', KEYS[1], '')
if unnoted then call('SET', KEYS[#KEYS], unnoted) end

---@part grows
--- The opposite, before a step that needs room begins with something that frees some: an error
--- where memory is full. After `queue`.
call('ZADD', index, 'XX', '0', '')

---@part typed
--- Where a step can come to any of a queue's keys, it looks at each of them before it writes: one
--- of a wrong type is an error of the server's, which would otherwise end the step half-way.
--- `names` is written first, or does not matter. After `drains` or `flags`, which see `queue`.
call('ZCARD', index)
call('HLEN', jobs)
call('HLEN', keys)
call('HLEN', runs)
call('ZCARD', dead)
call('ZCARD', kept)
call('ZCARD', claimed)
call('ZCARD', due)

---@part flags
--- The holds of a queue, and whether it is fading (see `fade`), in one field: two digits, and
--- the end of the snooze. Queues that were used have it.
local flags = call('HGET', KEYS[1], 'flags')
if flags and flags ~= '000' and (#flags > 18 or not flags:match('^[01][01]%d+$')) then
  flags = '000'
end

---@part holds
--- `held`, `paused`, and until when it is `snoozed`. After `flags`.
local paused, fading, snoozed = false, false, 0
if flags and flags ~= '000' then
  paused, fading = flags:sub(1, 1) == '1', flags:sub(2, 2) == '1'
  snoozed = tonumber(flags:sub(3))
end
local held = paused or now < snoozed

---@part save_holds
--- After `holds`.
local function save_holds()
  call('HSET', queue, 'flags',
    (paused and '1' or '0') .. (fading and '1' or '0') .. decimal(snoozed))
end

---@part point
--- Where a scan finds the queue: never later than its first job vests, unless it is held. After
--- `holds`.
local function point(least)
  if paused or not least then return call('ZREM', due, name) end
  call('ZADD', due, decimal(math.max(least, snoozed)), name)
end

---@part no_later_than
--- By so many jobs. After `next_in_turn` and `holds`. KEYS[12]: as there.
local function no_later_than(vesting, n)
  if paused then return end
  local at = math.max(vesting, snoozed)
  if call('ZADD', due, 'LT', 'CH', decimal(at), name) == 1 and at <= now then
    redis.pcall('PUBLISH', ARGV[3], due)
    next_in_turn(KEYS[12], n or 1)
  end
end

---@part name_it
local function name_it()
  if call('ZADD', names, '0', name) == 1 then call('HSETNX', queue, 'enqueued', 0) end
end

---@part heads
--- The least vesting time, and whether any job is visible.
local function heads()
  local head, last = call('ZRANGE', index, '0', '0')[1], nil
  local least, any = nil, false
  while head do
    local priority, vesting = head:byte() or 0, 0  -- of one that is damaged
    if #head >= 9 then priority, vesting = struct.unpack('>BI8', head) end
    if not least or vesting < least then least = vesting end
    any = any or vesting <= now
    last = last or call('ZRANGE', index, '-1', '-1')[1]:byte()
    if priority == last then break end
    local from = '[' .. string.char(priority + 1)
    head = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', '0', '1')[1]
  end
  if least and least > weir.redis_exact then least = weir.redis_exact end  -- damaged
  return least, any
end

---@part visible
--- Calls `use` with visible jobs' members of the index, in their order and up to `most()` at once,
--- until that is 0. Of each level behind the first one that has others as well, the head is looked at
--- before the others, of which those that are not visible are not read.
local function visible(most, use)
  local n, from, till, is_head = most(), nil, '+', false
  while n > 0 do
    local here, members, many = {}, nil, is_head and 1 or n
    if from then
      members = call('ZRANGEBYLEX', index, from, till, 'LIMIT', '0', many)
    else
      members = call('ZRANGE', index, '0', n - 1)
    end
    local passed = till ~= '+' and #members < many and till:byte(2)  -- the level that has no more
    for i, member in ipairs(members) do
      local priority, vesting = member:byte() or 0, 0  -- of one that is damaged
      if #member >= 9 then priority, vesting = struct.unpack('>BI8', member) end
      if vesting > now then
        passed = priority
        break
      end
      here[i] = member
    end
    if is_head and here[1] then
      from, is_head = '[' .. here[1], false
      if #here[1] >= 9 then till = '(' .. here[1]:sub(1, 1) .. struct.pack('>I8', now + 1) end
    else
      if #here > 0 then use(here) end
      if passed == 255 or not passed and #members < many then return end
      is_head = passed and true
      from = passed and '[' .. string.char(passed + 1) or '(' .. members[many]
      if passed then till = '+' end
    end
    n = most()
  end
end

---@part get_ready
--- A queue gets jobs. If it is seen for the first time: raises an error unless its keys have these
--- types, or do not exist. If it is fading (see `fade`), it is not to be once a job is added, and
--- `fades` says so. After `flags`.
local fades = false
if not flags then
  local kinds = {'hash', 'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'zset', 'string', 'zset',
    'zset'}
  for i, kind in ipairs(kinds) do
    local is = call('TYPE', KEYS[i]).ok
    if is ~= kind and is ~= 'none' then
      error('WRONGTYPE weir: ' .. kind .. ' expected, ' .. is .. ' found')
    end
  end
  flags = '000'
  call('HSET', KEYS[1], 'flags', flags)
elseif flags:sub(2, 2) == '1' then
  flags, fades = flags:sub(1, 1) .. '0' .. flags:sub(3), true
end

---@part stay
--- The first job is added. After `get_ready`.
if fades then
  fades = false
  call('HSET', KEYS[1], 'flags', flags)
  for _, i in ipairs({3, 4, 7}) do call('PERSIST', KEYS[i]) end
end

---@part fade
--- Where only time will end what is left of an empty queue, that is left to the server: the queue is
--- then fading, until a job comes. Where it is so much that the server would stand still for it (F80),
--- the server waits a week longer: by then the housekeeping has removed it, a piece at a time. After
--- `keep`.
local function fade(queue, jobs, keys, dead, kept)
  if call('ZCARD', dead) > 0 then return end
  local last = tonumber(call('ZREVRANGE', kept, 0, 0, 'WITHSCORES')[2] or nil)
  if not last then return end
  if call('HLEN', jobs) + call('HLEN', keys) > weir.redis_whole then last = last + 604800000000 end
  local flags = call('HGET', queue, 'flags') or '000'
  call('HSET', queue, 'flags', flags:sub(1, 1) .. '1' .. flags:sub(3))
  for _, key in ipairs({jobs, keys, kept}) do keep(key, last) end
end

---@part settle
--- After jobs may have ended: an empty queue leaves the scan in the same step, so there are no
--- stale pointers. After `fade` and `queue`.
local function settle()
  if call('ZCARD', index) > 0 then return end
  call('ZREM', due, name)
  fade(queue, jobs, keys, dead, kept)
end

---@part is_name
--- May a queue have this name? Another one, which somebody has left among them, is removed where it
--- is met: no command could be about it, and an answer might be longer than the client reads.
local function is_name(name, among)
  if name ~= '' and #name <= weir.limits.key_size then return true end
  redis.pcall('ZREM', among, name)
end

---@part answer_bytes
--- As `limits` says; counted are the names.
local answer_bytes = weir.limits.answer_bytes
