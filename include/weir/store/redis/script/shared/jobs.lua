---@part form
--- A job's record is one field, and travels as it is: the numbers of `redis_record` in
--- store/redis/job_record.hpp, its unique key, its holder and, unless that is long, its body.
local form, long_body = 'weir.redis_record.form', 200

---@part sound
--- Can a record be read, with what the job has besides? Is nothing of it longer than weir makes it,
--- and so fits into an answer? `bodiless`: a body that stands by itself is not looked at, since to
--- read one of a megabyte takes a millisecond; otherwise it is the second result. After `queue` and
--- `form`.
local function sound(id, raw, bodiless)
  if not raw or #raw < weir.redis_record.size then return false end
  local _, vesting, unclaimed, by, holder, _, ended, extras, _, deadline_from, deadline, key,
    strategy, policy, _, enqueued, retention, death, at = struct.unpack(form, raw)
  local latest = math.max(vesting, unclaimed, by, deadline_from, deadline, enqueued, retention, death)
  if latest > weir.redis_exact or ended > weir.job_state.last or extras > 3 or --\
      strategy > weir.unique_strategy.last or policy > weir.conflict_policy.last or --\
      key > weir.limits.key_size or holder > weir.limits.holder_size then
    return false
  end
  local body = raw
  at = at + key + holder
  if extras > 1 then
    if #raw ~= at - 1 then return false end
    at, body = 1, not bodiless and (call('HGET', jobs, id .. 'b') or '')
  end
  if body then
    if #body < at + 1 then return false end
    local kind, headers, payload = struct.unpack('>I2', body, at), 0, #body - at - 1
    if kind >= weir.redis_more then
      if payload < 2 then return false end
      kind, headers, payload = kind - weir.redis_more, struct.unpack('>I2', body, at + 2), --\
        payload - 2
    end
    payload = payload - kind - headers
    if payload < 0 or payload > weir.limits.payload_size or kind > weir.limits.key_size or --\
        headers > weir.limits.headers_size then
      return false
    end
  end
  if extras % 2 == 0 then return true, body end
  local notes = call('HGET', jobs, id .. 'n')
  if not notes or #notes < 6 then return false end
  local memo, result = struct.unpack('>I2I4', notes)
  local progress, checkpoint, reason = 0, 0, #notes - 6
  if memo >= weir.redis_more then
    if reason < 6 then return false end
    memo, reason = memo - weir.redis_more, reason - 6
    progress, checkpoint = struct.unpack('>I2I4', notes, 7)
  end
  reason = reason - memo - result - progress - checkpoint
  return memo <= weir.limits.memo_size and result <= weir.limits.payload_size and --\
    progress <= weir.limits.progress_size and checkpoint <= weir.limits.checkpoint_size and --\
    reason >= 0 and reason <= weir.limits.reason_size, body
end

---@part record
--- A record as a table. After `sound`.
-- All fields at once: a table that grows is made several times.
local function parse(id, raw)
  local attempts, vesting, unclaimed, by, holder, priority, ended, extras, max_attempts,
    deadline_from, deadline, key, strategy, policy, snoozes, enqueued, retention, death, at =
    struct.unpack(form, raw)
  return {id = id, raw = raw, priority = priority, ended = ended, strategy = strategy,
    policy = policy, extras = extras, attempts = attempts, max_attempts = max_attempts,
    snoozes = snoozes, vesting = vesting, unclaimed = unclaimed, enqueued = enqueued,
    deadline_from = deadline_from, deadline = deadline, retention = retention, fence = by,
    death = death, key = raw:sub(at, at + key - 1),
    holder = raw:sub(at + key, at + key + holder - 1), body = raw:sub(at + key + holder)}
end
local function save(j)
  j.raw = struct.pack(form, j.attempts, j.vesting, j.unclaimed, j.fence, #j.holder, j.priority,
    j.ended, j.extras, j.max_attempts, j.deadline_from, j.deadline, #j.key, j.strategy, j.policy,
    j.snoozes, j.enqueued, j.retention, j.death) .. j.key .. j.holder .. j.body
  call('HSET', jobs, j.id, j.raw)
end
local function gone(j)
  return (j.ended == COMPLETED or j.ended == CANCELLED) and j.vesting <= now
end
local function state_of(j)
  if j.ended ~= PENDING then return j.ended end
  return j.holder ~= '' and j.vesting > now and LEASED or PENDING
end

---@part find
--- One job. One that is damaged is none to `look`, and an error to `find`. After `record`.
local function look(id, bodiless)
  local raw = call('HGET', jobs, id)
  if not sound(id, raw, bodiless) then return nil, raw end
  local j = parse(id, raw)
  if not gone(j) then return j end
end
local function find(id)
  local j, raw = look(id)
  if raw then error('CORRUPT weir: a job') end
  return j
end

---@part leased
--- The lease of a job, if it is this one still. After `find`.
local function leased(id, by, bodiless)
  local j = look(id, bodiless)
  if j and state_of(j) == LEASED and j.fence == tonumber(by) then return j end
end

---@part lease
--- With a live lease: ARGV: id, fence, and what the command has besides. 0: it is lost.
local j = leased(ARGV[4], ARGV[5], true)
if not j then return 0 end

---@part find_all
--- The records of the n jobs whose ids are among ARGV, from there on and so far apart; false: none.
local function find_all(n, from, step)
  if n == 1 then return {call('HGET', jobs, ARGV[from])} end
  local out = {}
  for first = 1, n, 1000 do
    local ids = {}
    for i = first, math.min(first + 999, n) do
      ids[i - first + 1] = ARGV[from + (i - 1) * step]
    end
    for i, raw in ipairs(call('HMGET', jobs, unpack(ids))) do out[first + i - 1] = raw end
  end
  return out
end

---@part index
--- After `record`.
local function rank(priority, vesting) return struct.pack('>BI8', priority, vesting) end
local function put(j) call('ZADD', index, '0', rank(j.priority, j.vesting) .. j.id) end
local function remove(j) call('ZREM', index, rank(j.priority, j.vesting) .. j.id) end

---@part unique
--- Enqueue keys and run locks. After `record`.
local holds_while_waiting = {weir.holds_while_waiting.by_strategy}
local holds_while_running = {weir.holds_while_running.by_strategy}
local start_frees_key = {weir.rule.start_frees_key.by_strategy}
local end_frees_key = {weir.rule.end_frees_key.by_strategy}

-- The job that has an enqueue key, and whether it has it for as long as it is there.
local function owner_of(key)
  local v = call('HGET', keys, key)
  if not v or #v ~= 24 then return end
  local expiry = struct.unpack('>I8', v, 17)
  if expiry == 0 or expiry > now then return v:sub(1, 16), expiry == 0 end
end
local function hold(key, id, expiry)
  call('ZREM', kept, 'k' .. key)
  if expiry > 0 then call('ZADD', kept, decimal(expiry), 'k' .. key) end
  call('HSET', keys, key, id .. struct.pack('>I8', expiry))
end
local function free(j)
  local v = call('HGET', keys, j.key)
  if v and v:sub(1, 16) == j.id then
    call('HDEL', keys, j.key)
    call('ZREM', kept, 'k' .. j.key)
  end
end
-- Ends the lease, over or not, and with it the run lock.
local function unclaim(j)
  if j.holder == '' then return end
  if holds_while_running[j.strategy] and call('HGET', runs, j.key) == j.id then
    call('HDEL', runs, j.key)
  end
  call('ZREM', claimed, j.id)
  j.holder = ''
end

---@part erase
--- After `queue`.
local function erase(id) call('HDEL', jobs, id, id .. 'b', id .. 'n') end

---@part note
--- Writes what is given of a job's notes; the job is to be saved after it. After `record`.
local function note(j, memo, result, reason, progress, checkpoint)
  local has, m, r, p, c, w = j.extras % 2 == 1, '', '', '', '', ''
  if has then
    local v = call('HGET', jobs, j.id .. 'n')
    local a, b, at = struct.unpack('>I2I4', v)
    local d, e = 0, 0
    if a >= weir.redis_more then
      a = a - weir.redis_more
      d, e, at = struct.unpack('>I2I4', v, at)
    end
    m, r = v:sub(at, at + a - 1), v:sub(at + a, at + a + b - 1)
    at = at + a + b
    p, c, w = v:sub(at, at + d - 1), v:sub(at + d, at + d + e - 1), v:sub(at + d + e)
  end
  m, r, p, c, w = memo or m, result or r, progress or p, checkpoint or c, reason or w
  if has or #m + #r + #p + #c + #w > 0 then
    local sizes
    if #p + #c == 0 then
      sizes = struct.pack('>I2I4', #m, #r)
    else
      sizes = struct.pack('>I2I4I2I4', #m + weir.redis_more, #r, #p, #c)
    end
    call('HSET', jobs, j.id .. 'n', sizes .. m .. r .. p .. c .. w)
    if not has then j.extras = j.extras + 1 end
  end
end

---@part ends
--- How jobs end. After `index`, `unique`, `erase` and `note`.
local function count(what, n) return increase(what, n) end
local function drop(j)
  if j.ended == DEAD then call('ZREM', dead, j.id) else call('ZREM', kept, 'j' .. j.id) end
  erase(j.id)
end
-- The job's record may be gone after this.
local function finish(j, how)
  remove(j)
  unclaim(j)
  if end_frees_key[j.strategy] then free(j) end
  j.ended = how
  if how == DEAD then
    j.death = count('deaths', 1)
    call('ZADD', dead, j.death, j.id)
    return save(j)
  end
  count(how == COMPLETED and 'completed' or 'cancelled', 1)
  -- Of one whose body is lost no record is kept: nobody could read it.
  if j.retention == 0 or j.extras > 1 and call('HSETNX', jobs, j.id .. 'b', '') == 1 then
    return erase(j.id)
  end
  j.vesting = now + j.retention
  call('ZADD', kept, decimal(j.vesting), 'j' .. j.id)
  save(j)
end
local function bury(j, reason)
  note(j, nil, nil, reason)
  finish(j, DEAD)
end

---@part remains
--- The record and the body of a dead letter in the place of a record that cannot be read, and
--- whether its notes are sound. A sound body that stands by itself stays; otherwise the bytes found
--- are the payload. After `sound`.
local function remains(id, raw, priority, death)
  local function record(extras)
    return struct.pack(form, 0, now, 0, 0, 0, priority, DEAD, extras, 1, now, 0, 0, 0, 0, 0, now, 0,
      death)
  end
  local _, body = sound(id, record(2))
  body = body or struct.pack('>I2', 7) .. 'damaged' .. (raw or ''):sub(1, weir.limits.payload_size)
  return record(3), body, sound(id, record(3), true)
end

---@part set_aside
--- Makes a dead letter of a record that cannot be read. Its keys are freed if they can be read, and
--- are its own. After `ends` and `remains`.
local function set_aside(member, id, raw)
  local found, key = raw or '', nil
  call('ZREM', index, member)
  call('ZREM', claimed, id)
  call('ZREM', kept, 'j' .. id)
  if #found >= weir.redis_record.size then
    local last = weir.redis_record.size + struct.unpack('>I2', found, weir.redis_record.key_size)
    if #found >= last then key = found:sub(weir.redis_record.after, last) end
  end
  if key then
    free({id = id, key = key})
    if call('HGET', runs, key) == id then call('HDEL', runs, key) end
  end
  if #id ~= 16 then
    call('HDEL', jobs, id)
    id = redis.sha1hex(member):sub(1, 16)
  end
  local death = count('deaths', 1)
  local record, body, noted = remains(id, raw, member:byte() or 0, death)
  call('ZADD', dead, death, id)
  call('HSET', jobs, id, record, id .. 'b', body)
  note({id = id, extras = noted and 3 or 2}, nil, nil, 'weir.damaged_record')
end

---@part possessor
--- The job that has an enqueue key, by its id, and its record if it has one: its id may be another
--- job's by now, if the key is held until_expired. One that waits and that nobody can claim any more
--- gives the key up and is buried: then nobody has it. Unless the key is held until_expired: then
--- that job counts as ended, and has no record here. Nor has anybody a key whose job is damaged, a
--- body that stands by itself excepted until it is needed. After `find` and `ends`.
local function possessor(key)
  local id, stays = owner_of(key)
  local o, reason = id and look(id, true), nil
  if o and (o.key ~= key or not holds_while_waiting[o.strategy]) then o = nil end
  if stays and not o then return end
  if not o or state_of(o) ~= PENDING then return id, o end
  if o.attempts >= o.max_attempts then
    reason = 'weir.rule.reason_spent'
  elseif o.deadline > 0 and o.deadline_from + o.deadline < now then
    reason = 'weir.rule.reason_missed'
  end
  if not reason then return id, o end
  if not end_frees_key[o.strategy] then return id end
  if look(id) then bury(o, reason) end
end

---@part tidy
--- A little of the work that time has made: as much as steps make, and never much at once, nor many
--- bytes, which a server is long in freeing. Gives how much it was; of bytes, all that it may be. A
--- user without the right to HSTRLEN has no bound of bytes. After `erase`.
local function tidy(n)
  if call('ZCARD', kept) == 0 then return 0 end
  local most, bytes = 2 * n + 2, 0
  local over = call('ZRANGEBYSCORE', kept, '-inf', decimal(now), 'LIMIT', 0, most)
  local function weigh(field)
    local size = redis.pcall('HSTRLEN', jobs, field)
    if type(size) == 'number' then bytes = bytes + size end
  end
  for _, what in ipairs(over) do
    local id = what:sub(2)
    call('ZREM', kept, what)
    if what:sub(1, 1) == 'k' then
      call('HDEL', keys, id)
    else
      weigh(id .. 'b')
      weigh(id .. 'n')
      erase(id)
      if bytes >= weir.limits.batch_bytes then return most end
    end
  end
  return #over
end

---@part wait_again
--- The job waits, with the enqueue key that its start gave up, if that is free. After `unique`.
local function wait_again(j, vesting)
  if start_frees_key[j.strategy] and not owner_of(j.key) then hold(j.key, j.id, 0) end
  remove(j)
  unclaim(j)
  j.vesting = vesting
  put(j)
  save(j)
end

---@part describe
--- Adds to `out` what travels of a job: its id, its record, and what it has besides.
local function describe(out, id, raw)
  local extras, n = raw:byte(weir.redis_record.extras), #out
  out[n + 1], out[n + 2] = id, raw
  if extras >= 2 then
    out[n + 3] = call('HGET', jobs, id .. 'b')
    n = n + 1
  end
  if extras % 2 == 1 then out[n + 3] = call('HGET', jobs, id .. 'n') end
end

---@part fits
--- The same, unless that is more than an answer may have (`limits::answer_bytes`): then nothing is
--- added, and the answer ends there. It counts all that travels of a job, and so a little more than
--- its texts. After `describe`.
local room = weir.limits.answer_bytes
local function fits(out, id, raw)
  local n = #out
  describe(out, id, raw)
  for i = n + 1, #out do room = room - #out[i] end
  if room >= 0 then return true end
  for i = #out, n + 1, -1 do out[i] = nil end
end

---@part claim_all
--- Claims these members of the index, which vest at `latest` at the latest, and buries those that
--- cannot be claimed, or are damaged, up to a hundred. They are written together. It ends before a
--- job that the answer has no room for (`full`); what is buried takes room as well. After `fits` and
--- `claim_rarely`.
local out, claims, buried, damaged, stale, given, rare, full = {}, 0, 0, 0, 0, {}, nil, false
local function enough() return buried + damaged + stale >= weir.rule.burials_per_dequeue end
local pack, unpacked, char = struct.pack, struct.unpack, string.char
local function claim_all(members, holder, lease, latest)
  local ids, o, till = {}, #out, now + lease
  for i = 1, #members do ids[i] = members[i]:sub(10) end
  local found = call('HMGET', jobs, unpack(ids))
  local old, index_new, ends, records, k, number = {}, {}, {}, {}, 0, nil
  local by_end, by_rank, size = decimal(till), pack('>I8', till), #holder
  for i = 1, #ids do
    local id, raw, reason, whole, good, body = ids[i], found[i], nil, false, false, nil
    local attempts, vesting, held_by, priority, ended, extras, max_attempts, deadline_from, deadline,
      key, _
    if #id == 16 then good, body = sound(id, raw) end
    if good then
      attempts, vesting, _, _, held_by, priority, ended, extras, max_attempts, deadline_from,
        deadline, key = unpacked('weir.redis_record.form_to_key_size', raw)
      whole = ended == PENDING and vesting <= latest and priority == members[i]:byte()
    end
    if not whole then
      if enough() then break end
      -- The entry of a job that has ended, or has another one, is only an entry.
      if ended and (ended ~= PENDING or
          call('ZSCORE', index, pack('>BI8', priority, vesting) .. id)) then
        call('ZREM', index, members[i])
        stale = stale + 1
      else
        rare = rare or rarely()
        rare.set_aside(members[i], id, raw)
        damaged = damaged + 1
      end
    elseif attempts >= max_attempts then
      reason = 'weir.rule.reason_spent'
    elseif deadline > 0 and deadline_from + deadline < now then
      reason = 'weir.rule.reason_missed'
    end
    if whole and (reason or held_by > 0) and not rare then rare = rarely() end
    if reason and enough() then break end
    if reason then
      rare.bury(id, raw, reason)
      buried = buried + 1
      room = room - #body  -- it was read
      full = room < 0
      if full then break end
    elseif whole then
      if extras == 0 then
        room = room - #raw - size
        full = room < 0
      else
        full = not fits(out, id, raw)
      end
      if full then break end
      number = number and number + 1 or next_fences(fence, #ids)
      if held_by > 0 then rare.unclaim(id, raw) end
      raw = pack('weir.redis_record.form_to_holder_size', attempts + 1, till, vesting, number, size) ..
        raw:sub(weir.redis_record.priority, weir.redis_record.size + key) .. holder .. --\
        raw:sub(weir.redis_record.after + key + held_by)
      k = k + 1
      local second = 2 * k
      local first = second - 1
      old[k], index_new[first], index_new[second] = members[i], '0', char(priority) .. by_rank .. id
      ends[first], ends[second], records[first], records[second] = by_end, id, id, raw
      out[o + 1], out[o + 2] = id, raw
      o = extras == 0 and o + 2 or #out
      claims = claims + 1
      given[claims] = id .. pack('>I8', number)
    end
  end
  if not number then return end
  call('ZREM', index, unpack(old))
  call('ZADD', index, unpack(index_new))
  call('ZADD', claimed, unpack(ends))
  call('HSET', jobs, unpack(records))
end

---@part eight_numbers
--- A job's numbers as they travel: priority, strategy, policy, most attempts, delay, deadline,
--- retention, TTL of its unique key.
local eight_numbers = '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)'
