---@use common, keep, queue, form, sound, record, find, leased, lease, drains, typed, index, unique, erase
---@use note, ends, fade, settle
if not look(j.id) then return 0 end  -- a dead letter has to be readable
bury(j, ARGV[6])
settle()
return 1
