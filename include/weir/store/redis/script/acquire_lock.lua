---@use common, next_fences, keep, lease_of

---@each
---@use locks
if held and has ~= holder then return {0, 0, till - now, has} end
if not held then
  fence, till = next_fences(KEYS[2], 1), now + ARGV[3]
  call('HSET', lock, 'holder', holder, 'fence', decimal(fence), 'until', decimal(till))
  keep(lock, till)
end
return {1, fence, till - now, ''}
