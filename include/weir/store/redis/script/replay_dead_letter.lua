--- ARGV: id, delay. 0: there is no such dead job, 1: it waits again; or who has its key.
---@use common, next_in_turn, queue, form, sound, record, find, index, unique, erase, note, ends, possessor, flags
---@use holds, no_later_than, drains, typed
local j = find(ARGV[4])
if not j or j.ended ~= DEAD then return 0 end
local other = holds_while_waiting[j.strategy] and possessor(j.key)
if other and other ~= j.id then return {other} end
if end_frees_key[j.strategy] then hold(j.key, j.id, 0) end
call('ZREM', dead, j.id)
j.ended, j.attempts, j.snoozes, j.deadline_from = PENDING, 0, 0, now
j.vesting = now + ARGV[5]
put(j)
save(j)
no_later_than(j.vesting)
return 1
