--- ARGV: the state, limit, and after which score and member of the set of those in this state, or
--- nothing. At most a thousand members are looked at. What is damaged is skipped. A member of a set
--- with scores may have moved, or many may have one score, so the place is searched for.
---@use common, queue, form, sound, describe, fits
--- Is the one before the other, or the same? By their bytes, which is a set's order; Lua's `<=` is
--- the order of the server's language.
local function not_behind(one, other)
  for i = 1, math.min(#one, #other) do
    local here, there = one:byte(i), other:byte(i)
    if here ~= there then return here < there end
  end
  return #one <= #other
end
local state, most, score, last, out =
  tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7], {}
local set, looks, members = state == PENDING and index or state == LEASED and claimed or --\
  state == DEAD and dead or kept, 1000, nil
if set == index then
  local from = last == '' and '-' or '(' .. last
  members = call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, looks + 1)
else
  local from = state == LEASED and call('ZCOUNT', set, '-inf', decimal(now)) or 0
  if last ~= '' then
    local low = call('ZCOUNT', set, '-inf', '(' .. score)
    local high = call('ZCOUNT', set, '-inf', score)
    while low < high do
      local middle = math.floor((low + high) / 2)
      local shown = not_behind(call('ZRANGE', set, middle, middle)[1], last)
      if shown then low = middle + 1 else high = middle end
    end
    from = math.max(from, low)
  end
  members = call('ZRANGE', set, from, from + looks)
end
-- Is it in this state, as far as its numbers say? A body may be long, so none is read to see that.
local function may_be(raw)
  if not raw or #raw < weir.redis_record.size then return false end
  local _, vesting, _, _, held_by, _, ended = struct.unpack('weir.redis_record.form_to_key_size', raw)
  if ended ~= PENDING then return ended == state and (ended == DEAD or vesting > now) end
  return state == (held_by > 0 and vesting > now and LEASED or PENDING)
end
local n, shown = 0, 0
while n < looks and n < #members and shown < most and room >= 0 do
  local member, id = members[n + 1], nil
  if set == index then id = member:sub(10) else id = set == kept and member:sub(2) or member end
  local raw = (set ~= kept or member:byte() == 106) and #id == 16 and call('HGET', jobs, id)
  if may_be(raw) and sound(id, raw) then
    if not fits(out, id, raw) then break end
    shown = shown + 1
  elseif raw then
    -- Bytes that were read for nothing count as well; a damaged job's body, whose size nobody knows
    -- here, as the longest.
    room = room - #raw - (may_be(raw) and weir.limits.payload_size or 0)
  end
  n, last = n + 1, member
end
if n == #members then return {now, shown, out, 0, ''} end
score = set == index and 0 or math.ceil(tonumber(call('ZSCORE', set, last)))
-- One that is longer than any of weir's is passed over, with all that begin as it does.
if #last > weir.limits.key_size then
  last = last:sub(1, weir.limits.key_size):gsub('\255+$', '')
  if last == '' then return {now, shown, out, 0, ''} end
  last = last:sub(1, -2) .. string.char(last:byte(-1) + 1)
end
return {now, shown, out, score, last}
