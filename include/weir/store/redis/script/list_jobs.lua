--- ARGV: the state, limit, and after which score and member of the set of those in this state, or
--- nothing. At most a thousand members are looked at. What is damaged is skipped.
---@use common, queue, form, sound, record, describe, fits
local state, most, score, last, out =
  tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7], {}
local set, looks, members = state <= LEASED and index or state == DEAD and dead or kept, 1000, nil
if set == index then
  local from = last == '' and '-' or '(' .. last
  members = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, looks + 1)
else
  local from = 0
  if last ~= '' then
    local rank = call('ZRANK', set, last)
    from = rank and rank + 1 or call('ZCOUNT', set, '-inf', '(' .. score)
  end
  members = call('ZRANGE', set, from, from + looks)
end
local n, shown = 0, 0
while n < looks and n < #members and shown < most do
  local member, id = members[n + 1], nil
  if set == index then id = member:sub(10) else id = set == dead and member or member:sub(2) end
  local raw = (set ~= kept or member:byte() == 106) and #id == 16 and call('HGET', jobs, id)
  if raw and sound(id, raw) then
    local j = parse(id, raw)
    if not gone(j) and state_of(j) == state then
      if not fits(out, id, raw) then break end
      shown = shown + 1
    end
  end
  n, last = n + 1, member
end
if n == #members then return {now, shown, out, 0, ''} end
return {now, shown, out, set == index and 0 or math.ceil(tonumber(call('ZSCORE', set, last))), last}
