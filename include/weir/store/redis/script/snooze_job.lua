---@use common, next_in_turn, queue, form, sound, record, find, leased, lease, drains, typed, index, unique, erase
---@use note, ends, wait_again, flags, holds, no_later_than
note(j, ARGV[7])
j.attempts, j.snoozes = math.max(j.attempts - 1, 0), j.snoozes + 1
wait_again(j, now + ARGV[6])
no_later_than(j.vesting)
return 1
