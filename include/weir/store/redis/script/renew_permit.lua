---@use common

---@each
---@use permits, keep_all
local fence = held()
if not fence or fence ~= tonumber(ARGV[3]) then return 0 end
local till = now + ARGV[4]
call('ZREM', ends, '')  -- as in `drains`
call('ZADD', ends, decimal(till), holder)
keep_all(till, ends, fences)

---@use note_time
return 1
