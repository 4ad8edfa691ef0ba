---@use common, next_in_turn, queue, form, sound, typed, find_all, flags, get_ready, holds, no_later_than
--- The beginning of what most runs of a script do not need, of which each such script has an end of
--- its own. Its functions are made when it is called: making one costs a quarter of a command.
local function rarely()

---@use record, find, index, unique, erase, note, ends, possessor, tidy
--- A job with an enqueue key that another one may have. Answers the outcome, and that other one.
local function contend(j, ttl)
  local other, o = possessor(j.key)
  local outcome = weir.enqueue_outcome.enqueued
  if other then
    outcome = weir.enqueue_outcome.duplicate
    if o and state_of(o) == PENDING and j.policy == weir.conflict_policy.replace then
      outcome = weir.enqueue_outcome.replaced
      finish(o, CANCELLED)
    elseif o and state_of(o) == PENDING and j.policy == weir.conflict_policy.reschedule then
      remove(o)
      unclaim(o)
      o.vesting, o.priority = j.vesting, j.priority
      put(o)
      save(o)
      outcome = weir.enqueue_outcome.rescheduled
    end
  end
  if outcome % 2 == 0 then hold(j.key, j.id, ttl > 0 and now + ttl or 0) end
  return outcome, other
end

---@use grows
--- The end of `rarely`.
tidy((#ARGV - 3) / 4)
local function forget(id, raw)
  if not sound(id, raw) then return not call('HGET', jobs, id) end  -- `tidy` may have erased it
  local j = parse(id, raw)
  if gone(j) then drop(j) end
  return gone(j)
end
return forget, function(id, raw, ttl) return contend(parse(id, raw), ttl) end
end

---@use eight_numbers
--- Any jobs. ARGV as in `enqueue_plain`. Those that hold no unique key while they wait are written
--- together. After `get_ready`.
local n = (#ARGV - 3) / 4
local fields, ranks, f, r, added, fresh = {}, {}, 0, 0, 0, {}
local function write()
  if r == 0 then return end
---@use stay
  call('ZADD', index, unpack(ranks, 1, r))
  call('HSET', jobs, unpack(fields, 1, f))
  f, r = 0, 0
end
local found, changed, out, told, first, forget, contend = find_all(n, 4, 4), false, {}, false
local function arrive(at, id, known)
  if changed then
    write()
    known = call('HGET', jobs, id)
  elseif fresh[id] then
    return 0
  end
  if known then
    if not forget then forget, contend = rarely() end
    if not forget(id, known) then return 0 end
  end
  local key, body, extras, separate = ARGV[at + 2], ARGV[at + 3], 0, nil
  if #body > long_body then body, extras, separate = '', 2, body end
  local priority, strategy, policy, attempts, delay, deadline, retention, ttl =
    ARGV[at + 1]:match(eight_numbers)
  local vesting = now + delay
  local raw = struct.pack(form, 0, vesting, 0, 0, 0, priority, PENDING, extras, attempts, now,
    deadline, #key, strategy, policy, 0, now, retention, 0) .. key .. body
  local outcome, other = weir.enqueue_outcome.enqueued, nil
  if strategy ~= 'weir.unique_strategy.none' and --\
      strategy ~= 'weir.unique_strategy.while_executing' then
    write()
    if not forget then forget, contend = rarely() end
    changed = true
    outcome, other = contend(id, raw, tonumber(ttl))
  end
  if outcome % 2 == 0 then
    ranks[r + 1], ranks[r + 2] = '0', struct.pack('>BI8', priority, vesting) .. id
    fields[f + 1], fields[f + 2] = id, raw
    f, r, added, fresh[id] = f + 2, r + 2, added + 1, true
    if separate then
      fields[f + 1], fields[f + 2] = id .. 'b', separate
      f = f + 2
    end
    if r == 998 then write() end
  end
  if outcome ~= weir.enqueue_outcome.duplicate and (not first or vesting < first) then --\
    first = vesting end
  return outcome, other
end
for i = 1, n do
  local at = i * 4
  local outcome, other = arrive(at, ARGV[at], found[i])
  out[2 * i - 1], out[2 * i] = outcome, other or ''
  told = told or outcome ~= weir.enqueue_outcome.enqueued
end
write()
if added > 0 and increase('enqueued', added) == added then
  redis.pcall('ZADD', names, '0', name)  -- of a new queue, its type has been seen
end
if first then no_later_than(first, added) end
return told and out or {}
