--- Ends a job and adds others, to this queue and to another one. KEYS: as in `queue`, those who wait
--- in turn, then the first eight of the other queue, its `due`, and who waits for that. ARGV: the job's id, its fence or 0, its payload, its result; how
--- many jobs are for the other queue, and its name; these jobs and those for this queue, as in
--- `enqueue_jobs`. The other queue is first: whatever is wrong with it is an error before the first
--- write, and this one's types were seen by then.
---@use common, keep, queue, grows, form, sound, record, find, leased, typed, index, unique, erase, note, ends
---@use fade, settle, enqueue_jobs()
call('HLEN', queue)  -- before anything is written, its type has to show: `grows` does not see it
local by_lease = ARGV[5] ~= '0'
local j
if by_lease then j = leased(ARGV[4], ARGV[5], true) else j = find(ARGV[4]) end
if by_lease and not j then return {weir.relay_outcome.last + 1} end
if not j or j.ended ~= PENDING then return {weir.relay_outcome.not_found} end
if not by_lease then
  local body = j.extras > 1 and call('HGET', jobs, j.id .. 'b') or j.body
  local size = struct.unpack('>I2', body)
  if size >= weir.redis_more then
    size = size - weir.redis_more + 2 + struct.unpack('>I2', body, 3)
  end
  if body:sub(3 + size) ~= ARGV[6] then
    return {weir.relay_outcome.changed}
  end
end
local function add(to, of, first, n)
  if n == 0 then return {} end
  local arguments = {ARGV[1], of, ARGV[3]}
  for i = 1, 4 * n do arguments[3 + i] = ARGV[first + i - 1] end
  return enqueue_jobs(to, arguments)
end
local n, other = tonumber(ARGV[8]), {}
for i = 1, 8 do other[i] = KEYS[12 + i] end
other[9], other[10], other[11], other[12], other[13] = fence, KEYS[21], names, KEYS[22], KEYS[#KEYS]
local there = add(other, ARGV[9], 10, n)
if ARGV[7] ~= '' and j.retention > 0 then note(j, nil, ARGV[7]) end
finish(j, COMPLETED)
local here = add(KEYS, name, 10 + 4 * n, (#ARGV - 9) / 4 - n)
settle()
return {weir.relay_outcome.relayed, there, here}
