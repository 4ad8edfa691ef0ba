--- ARGV: after which death, limit.
---@use common, queue, form, sound, record, find, describe, fits, remains
local most, out = tonumber(ARGV[5]), {}
local found =
  call('ZRANGEBYSCORE', dead, '(' .. ARGV[4], 'weir.redis_exact', 'LIMIT', 0, most + 1)
local n, shown = 0, 0
while n < most and n < #found do
  local id = found[n + 1]
  local raw = call('HGET', jobs, id)
  if #id == 16 then
    if sound(id, raw) then
      if not fits(out, id, raw) then break end
    else  -- nobody could purge it without its id
      local record, body = remains(id, raw, 0, tonumber(call('ZSCORE', dead, id)))
      room = room - #id - #record - #body - weir.limits.reason_size
      if room < 0 then break end
      local notes = struct.pack('>I2I4', 0, 0) .. 'weir.damaged_record'
      for _, part in ipairs({id, record, body, notes}) do out[#out + 1] = part end
    end
    shown = shown + 1
  end
  n = n + 1
end
return {now, shown, out, #found > n and math.ceil(tonumber(call('ZSCORE', dead, found[n]))) or 0}
