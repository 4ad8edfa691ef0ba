--- ARGV: limit, the last name of the page before. Answers the names, and whether there are more.
---@use common, answer_bytes
local from, limit, room = ARGV[3] == '' and '-' or '(' .. ARGV[3], tonumber(ARGV[2]), answer_bytes
local out = call('ZRANGEBYLEX', KEYS[2], from, '+', 'LIMIT', 0, limit + 1)
local n, all = 0, #out
while n < limit and n < all and #out[n + 1] <= room do
  n = n + 1
  room = room - #out[n]
end
for i = all, n + 1, -1 do out[i] = nil end
return {out, n < all and 1 or 0}
