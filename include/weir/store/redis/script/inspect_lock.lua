---@use common, lease_of, locks
if not held then return {0, '', 0, 0} end
return {1, has, fence, till - now}
