---@use common, next_fences, keep, queue, form, sound, heads, visible, flags, holds, point, describe
---@use fits
--- The beginning of what most runs of a script do not need, of which each such script has an end of
--- its own. Its functions are made when it is called: making one costs a quarter of a command.
local function rarely()

---@use record, find, leased, index, unique, erase, note, ends, remains, set_aside, tidy
--- The end of `rarely` for who claims.
return {
  bury = function(id, raw, reason) bury(parse(id, raw), reason) end,
  unclaim = function(id, raw) unclaim(parse(id, raw)) end,
  set_aside = set_aside,
  leased = leased,
  tidy = tidy,
}
end

---@use claim_all, drains, typed
--- ARGV: holder, sequence, limit, lease. KEYS[12]: what the holder's latest numbered dequeue was
--- given: its number, and each lease's id and fence.
local latest, holder, sequence = KEYS[12], ARGV[4], ARGV[5]
local limit, lease = tonumber(ARGV[6]), tonumber(ARGV[7])
local last = sequence ~= '0' and call('GET', latest)
if call('ZCARD', kept) > 0 then
  rare = rarely()
  rare.tidy(limit)
end
if last then
  local number, grants = last:match('^(%d+):(.*)$')
  if number == sequence then
    rare = rare or rarely()
    for at = 1, #grants - 23, 24 do
      local j = rare.leased(grants:sub(at, at + 15), (struct.unpack('>I8', grants, at + 16)))
      if j then
        describe(out, j.id, j.raw)
        claims = claims + 1
      end
    end
  end
  if claims == 0 then call('DEL', latest) end
end
if claims == 0 and not held then
  visible(function() return not full and not enough() and math.min(limit - claims, 256) or 0 end,
    function(members) claim_all(members, holder, lease, now) end)
  if claims > 0 and sequence ~= '0' then
    call('SET', latest, sequence .. ':' .. table.concat(given), 'PX', kept_for(now + lease))
  end
end
local least, any = heads()
point(least)
return {now, claims, out, buried, damaged, any and not held and 1 or 0, held and 1 or 0,
  least and least - now or false}
