--- Pointers never become stale here: the step that empties a queue deletes its pointer.
---@use common
return 0
