---@use common, queue, form, sound, record, find, visible, describe, fits
local most, n, skipped, out = tonumber(ARGV[4]), 0, 0, {}
visible(function() return math.min(most - n, 1000 - skipped) end, function(members)
  for _, member in ipairs(members) do
    local id = member:sub(10)
    local raw = call('HGET', jobs, id)
    if #id == 16 and sound(id, raw) then  -- what is damaged is skipped
      if not fits(out, id, raw) then
        most = n
        return
      end
      n = n + 1
    else
      skipped = skipped + 1
    end
  end
end)
return {now, n, out}
