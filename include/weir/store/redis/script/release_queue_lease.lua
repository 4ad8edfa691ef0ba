--- ARGV: holder, fence.
---@use common, queue, lease_of
local asked = tonumber(ARGV[5])
local has, by, till = unpack(call('HMGET', queue, 'holder', 'fence', 'until'))
by, till = lease_of(has, by, till)
if has ~= ARGV[4] or till <= now or (asked ~= 0 and asked ~= by) then
  return 0
end
call('HDEL', queue, 'holder', 'fence', 'until')

---@use note_time
return 1
