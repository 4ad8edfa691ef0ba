--- ARGV: its new end; then, if any, its progress and its checkpoint: these need room, and a
--- renewal alone does not.
---@use common, next_in_turn, queue, form, sound, record, find, leased, lease
if ARGV[7] then

---@use grows
else

---@use drains
end

---@use typed, index, flags, holds, no_later_than
remove(j)
j.vesting = now + ARGV[6]
put(j)
call('ZADD', claimed, decimal(j.vesting), j.id)
if ARGV[7] then

---@use note
note(j, nil, nil, nil, ARGV[7] ~= '' and ARGV[7] or nil, ARGV[8] ~= '' and ARGV[8] or nil)
end
save(j)
no_later_than(j.vesting)
return 1
