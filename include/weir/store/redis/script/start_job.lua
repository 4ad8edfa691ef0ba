---@use common, queue, form, sound, record, find, leased, lease, drains, typed, unique
if holds_while_running[j.strategy] then
  local id = call('HGET', runs, j.key)
  local other = id and id ~= j.id and look(id, true)
  if other and state_of(other) == LEASED then return {other.vesting - now, id} end
  call('HSET', runs, j.key, j.id)
end
if start_frees_key[j.strategy] then free(j) end
return 1
