--- ARGV: id, whether to end a running one, too, and where its holder is told.
---@use common, tell, keep, queue, form, sound, record, find, index, unique, erase, note, ends, tidy, fade, settle
---@use drains, typed
tidy(1)
local j = find(ARGV[4])
if not j then return weir.cancel_outcome.not_found end
local state = state_of(j)
if state == LEASED and ARGV[5] == '0' then return weir.cancel_outcome.running end
if state == COMPLETED or state == DEAD then return weir.cancel_outcome.ended end
if state == LEASED then tell(ARGV[6], ARGV[6] .. ':' .. j.holder) end
if state ~= CANCELLED then finish(j, CANCELLED) end
settle()
return weir.cancel_outcome.cancelled
