---@use common, keep, queue, form, sound, find_all, erase, tidy, fade, settle
--- Results are all that a completion adds: where memory is full, they are left out, and the job
--- says so.
local full = false
for i = 6, #ARGV, 3 do
  if ARGV[i] ~= '' then
    full = type(redis.pcall('ZADD', index, 'XX', '0', '')) == 'table'
    break
  end
end
--- The beginning of what most runs of a script do not need, of which each such script has an end of
--- its own. Its functions are made when it is called: making one costs a quarter of a command.
local function rarely()

---@use record, index, unique, note, ends
--- The end of `rarely`.
return function(id, raw, result)
  local j = parse(id, raw)
  local stays = result ~= '' and j.retention > 0
  if stays and full then
    note(j, nil, nil, 'weir.result_had_no_room')
  elseif stays then
    note(j, nil, result)
  end
  finish(j, COMPLETED)
  return stays and full
end
end

---@use drains, typed
--- ARGV: 3 for each job. Jobs that are simply over are written together.
local ARGV, pack, unpacked = ARGV, struct.pack, struct.unpack
local n, out, seen = (#ARGV - 3) / 3, {}, {}
local found, ranks, ids, fields, k, f, finish = find_all(n, 4, 3), {}, {}, {}, 0, 0, nil
local function write()
  if k == 0 then return end
  call('ZREM', index, unpack(ranks, 1, k))
  call('ZREM', claimed, unpack(ids, 1, k))
  call('HDEL', jobs, unpack(fields, 1, f))
  increase('completed', k)
  k, f = 0, 0
end
for i = 1, n do
  local at = 3 * i
  local id, by, raw, outcome = ARGV[at + 1], tonumber(ARGV[at + 2]), found[i], --\
    weir.complete_outcome.lease_lost
  if seen[id] then
    write()
    raw = call('HGET', jobs, id)
  end
  if sound(id, raw, true) then
    local _, vesting, _, last, holder, priority, ended, extras, _, _, _, _, strategy, _, _, _,
      retention = unpacked(form, raw)
    if vesting > now and by ~= 0 and by == last then
      if ended == COMPLETED then outcome = weir.complete_outcome.completed end
      if ended == PENDING and holder > 0 then
        outcome = weir.complete_outcome.completed
        if strategy == weir.unique_strategy.none and retention == 0 then
          k, f = k + 1, f + 1
          ranks[k], ids[k], fields[f] = pack('>BI8', priority, vesting) .. id, id, id
          if extras > 0 then
            fields[f + 1], fields[f + 2] = id .. 'b', id .. 'n'
            f = f + 2
          end
          if k == 500 then write() end
        else
          finish = finish or rarely()
          if finish(id, raw, ARGV[at + 3]) then
            outcome = weir.complete_outcome.completed_without_result
          end
        end
      end
    end
  end
  seen[id], out[i] = true, outcome
end
write()
if finish then tidy(n) end
settle()
return out
