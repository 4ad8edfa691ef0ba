--- ARGV: now, quotas, cost, whether before the instant, and for each quota the mark's arrival, and
--- how far back it was before. Answers how many went back: none where the bucket has other quotas,
--- since a mark is in the units of those that it was granted by.
---@use common

---@each
---@use bucket, buckets
if known ~= quotas then return 0 end
local cost, early = tonumber(ARGV[3]), ARGV[4] == '1'
local back, all = cost, scales(known)
local function mark(i, n) return tonumber(ARGV[4 * i + n]) end
for i, s in ipairs(all) do
  local a = arrivals[i]
  if a[1] ~= mark(i, 1) or a[2] ~= mark(i, 2) or cost > s[4] then return 0 end
  if not early then
    local n, more = 0, false
    if a[1] >= now then n, more = divide(a[1] - now, a[2], s[2], s[3], s[1]) end
    back = math.min(back, n + (more and 1 or 0))
  end
end
if back == 0 then return 0 end
for i, s in ipairs(all) do
  local q, r = mark(i, 3), mark(i, 4)
  if not early then q, r = times(back, s[2], s[3], s[1]) end
  arrivals[i] = {normal(arrivals[i][1] - q, arrivals[i][2] - r, s[1])}
end
if not write(arrivals, known, 'KEEPTTL') then return end
if #KEYS == (ARGV[1] == '' and 3 or 2) then  -- buckets are bounded: see `take_bounded`
  local full = now
  for _, a in ipairs(arrivals) do full = math.max(full, a[1] + 1) end
  redis.pcall('ZADD', KEYS[2], 'XX', decimal(full), key)
end
return back
