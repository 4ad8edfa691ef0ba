---@use common, keep, lease_of

---@each
---@use locks
local asked = tonumber(ARGV[3])
if asked == 0 or not named(asked) then return 0 end
till = now + ARGV[4]
keep(lock, till)  -- first, since it needs no room
call('HSET', lock, 'until', decimal(till))

---@use note_time
return 1
