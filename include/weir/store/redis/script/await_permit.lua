--- Has this holder reason to ask again: its turn has come, or it is not in line (any more)?
---@use common, permits, call_next
call('ZCARD', ends)  -- before anything is written, its type has to show
local line, lapsed = tickets()
if lapsed > 0 then call_next(lapsed) end
local ahead = call('ZRANK', turns, holder)
if not ahead then return 1 end
local live = call('ZCOUNT', ends, '(' .. decimal(now), '+inf')
return live + math.min(ahead, line - 1) < limit_of(holder) and 1 or 0
