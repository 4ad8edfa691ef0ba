---@use common, keep, queue, form, sound, record, find, leased, lease, drains, typed, index, unique, erase
---@use note, ends, fade, settle
bury(j, ARGV[6])
settle()
return 1
