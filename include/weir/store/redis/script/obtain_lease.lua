---@use common, next_in_turn, next_fences, keep, queue, form, sound, record, find, erase, tidy, fade, settle, flags
---@use holds, describe, fits, leased
--- The beginning of what most runs of a script do not need, of which each such script has an end of
--- its own. Its functions are made when it is called: making one costs a quarter of a command.
local function rarely()

---@use index, unique, note, ends, remains, set_aside
--- The end of `rarely` for who claims.
return {
  bury = function(id, raw, reason) bury(parse(id, raw), reason) end,
  unclaim = function(id, raw) unclaim(parse(id, raw)) end,
  set_aside = set_aside,
  leased = leased,
  tidy = tidy,
}
end

---@use no_later_than, claim_all, drains, typed
--- ARGV: id, holder, lease, early.
tidy(1)
local j, holder = find(ARGV[4]), ARGV[5]
if not j then return {now, 0, {}} end
local state = state_of(j)
if state == LEASED and j.holder == holder then
  describe(out, j.id, j.raw)
  return {now, 1, out}
end
local early = j.vesting > now
if state ~= PENDING or held or early and ARGV[7] == '0' then return {now, 0, {}} end
local lease = tonumber(ARGV[6])
claim_all({struct.pack('>BI8', j.priority, j.vesting) .. j.id}, holder, lease, j.vesting)
if early and claims > 0 then no_later_than(now + lease) end
if buried + damaged > 0 then settle() end
return {now, claims, out}
