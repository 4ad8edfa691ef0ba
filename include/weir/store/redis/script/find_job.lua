---@use common, queue, form, sound, record, find, describe
local j, out = find(ARGV[4]), {}
if j then describe(out, j.id, j.raw) end
return {now, j and 1 or 0, out}
