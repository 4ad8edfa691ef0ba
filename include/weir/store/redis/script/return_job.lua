---@use common, next_in_turn, queue, form, sound, record, find, leased, lease, drains, typed, index, unique
---@use wait_again, flags, holds, no_later_than
j.attempts = math.max(j.attempts - 1, 0)
wait_again(j, j.unclaimed)
no_later_than(j.vesting)
return 1
