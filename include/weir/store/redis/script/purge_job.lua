---@use common, keep, queue, form, sound, record, find, index, unique, erase, note, ends, tidy, fade, settle
---@use drains, typed
tidy(1)
local id = ARGV[4]
local j, raw = look(id)
if not j and call('ZSCORE', dead, id) then
  j = {id = id, ended = DEAD}  -- damaged, and of no use
elseif raw then
  error('CORRUPT weir: a job')
end
if not j or j.ended == PENDING then return 0 end
if j.ended == COMPLETED then count('completed', -1) end
if j.ended == CANCELLED then count('cancelled', -1) end
count('purged', 1)
drop(j)
settle()
return 1
