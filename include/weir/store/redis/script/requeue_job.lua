---@use common, next_in_turn, keep, queue, form, sound, record, find, leased, lease, drains, typed, index, unique
---@use erase, note, ends, fade, settle, wait_again, flags, holds, no_later_than
if j.attempts >= j.max_attempts then
  if not look(j.id) then return 0 end
  bury(j, ARGV[7])
  settle()
  return 2
end
note(j, nil, nil, ARGV[7])
wait_again(j, now + ARGV[6])
no_later_than(j.vesting)
return 1
