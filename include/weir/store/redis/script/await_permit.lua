--- Has this holder reason to ask again: its turn has come, or it is not in line (any more)?
---@use common, permits
tickets()
local ahead = call('ZRANK', turns, holder)
if not ahead then return 1 end
local live = call('ZCOUNT', ends, '(' .. decimal(now), '+inf')
return live + ahead < tonumber(call('HGET', limits, holder) or 0) and 1 or 0
