--- ARGV: holder, lease.
---@use common, next_fences, queue, lease_of, name_it
local holder = ARGV[4]
local has, by, till = unpack(call('HMGET', queue, 'holder', 'fence', 'until'))
by, till = lease_of(has, by, till)
if till > now then

---@use note_time
  if has ~= holder then return {0, 0, till - now, has} end
else
  by, till = next_fences(fence, 1), now + ARGV[5]
  name_it()
  call('HSET', queue, 'holder', holder, 'fence', decimal(by), 'until', decimal(till))
end
return {1, by, till - now, ''}
