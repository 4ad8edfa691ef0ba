---@use common, tell, queue, form, sound, record, find, leased, lease, drains, typed, index, flags, holds
---@use no_later_than
remove(j)
j.vesting = now + ARGV[6]
put(j)
call('ZADD', claimed, decimal(j.vesting), j.id)
save(j)
no_later_than(j.vesting)
return 1
