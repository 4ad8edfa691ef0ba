---@use common, lease_of

---@each
---@use locks
if not named(tonumber(ARGV[3])) then return 0 end
call('DEL', lock)

---@use note_time
return 1
