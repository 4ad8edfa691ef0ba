---@use common, next_fences, keep, lease_of

---@each
---@use locks
if held then
  if unnoted and together then return end  -- others would grow after the note

---@use note_time
  if has ~= holder then return {0, 0, till - now, has} end
else
  fence, till = next_fences(KEYS[2], 1), now + ARGV[3]
  call('HSET', lock, 'holder', holder, 'fence', decimal(fence), 'until', decimal(till))
  keep(lock, till)
end
return {1, fence, till - now, ''}
