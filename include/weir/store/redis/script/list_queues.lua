--- ARGV: limit, the last name of the page before. Answers the names, and whether there are more.
--- Where all that it meets are none, it looks again: they are gone then.
---@use common, is_name, answer_bytes
local from, limit, room = ARGV[3] == '' and '-' or '(' .. ARGV[3], tonumber(ARGV[2]), answer_bytes
local out, more = {}, false
for _ = 1, 10 do
  local found = call('ZRANGEBYLEX', KEYS[2], from, '+', 'LIMIT', 0, limit + 1)
  more = #found > limit
  for _, name in ipairs(found) do
    if is_name(name, KEYS[2]) then
      room = room - #name
      if #out == limit or room < 0 then
        more = true
        break
      end
      out[#out + 1] = name
    end
  end
  if #out > 0 or not more then break end
end
return {out, more and 1 or 0}
