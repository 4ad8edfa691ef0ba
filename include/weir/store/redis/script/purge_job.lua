---@use common, keep, queue, form, sound, record, find, index, unique, erase, note, ends, tidy, fade, settle
---@use drains, typed
tidy(1)
local j = find(ARGV[4])
if not j or j.ended == PENDING then return 0 end
if j.ended == COMPLETED then count('completed', -1) end
if j.ended == CANCELLED then count('cancelled', -1) end
count('purged', 1)
drop(j)
settle()
return 1
