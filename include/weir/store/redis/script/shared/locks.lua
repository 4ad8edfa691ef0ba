---@part lease_of
--- The fence and the end of a lease, of which all is there, or nothing.
local function lease_of(holder, fence, till)
  if not holder and not fence and not till then return 0, 0 end
  if not holder or #holder > weir.limits.holder_size or not fence or not till or --\
      not (fence .. till):match('^%d+$') or
      math.max(tonumber(fence) or 0, tonumber(till) or 0) > weir.redis_exact then
    error('CORRUPT weir: a lease')
  end
  return tonumber(fence) or 0, tonumber(till) or 0
end

---@part locks
--- A lock is a hash with its holder, fence and end. After `lease_of`.
local lock, holder = KEYS[1], ARGV[2]
local has, fence, till = unpack(call('HMGET', lock, 'holder', 'fence', 'until'))
fence, till = lease_of(has, fence, till)
local held = till > now
local function named(asked) return held and has == holder and (asked == 0 or asked == fence) end
