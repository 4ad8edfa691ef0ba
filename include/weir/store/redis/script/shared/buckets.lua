---@part bucket
--- A bucket is a string: what the quotas are (redis_quota_text), and the arrival of each in
--- microseconds and a rest, 8 bytes each. It expires when the bucket is full, and so equals one
--- that was never seen. ARGV: now, quotas.
local key, quotas, never = KEYS[1], ARGV[2], -4503599627370496
local value = call('GET', key)

---@part buckets
--- After `bucket`. Together with others nothing is written where memory is full, so that none of them
--- takes more of it.
local function normal(q, r, gain)
  if r >= gain then return q + 1, r - gain end
  if r < 0 then return q - 1, r + gain end
  return q, r
end
local function before(q1, r1, q2, r2) return q1 < q2 or (q1 == q2 and r1 < r2) end

local function scales(text)
  local out = {}
  for g, q, r, c in text:gmatch('(%d+) (%d+) (%d+) (%d+) ') do
    out[#out + 1] = {tonumber(g), tonumber(q), tonumber(r), tonumber(c)}
  end
  return out
end
-- A bucket that is damaged is not counted with: some of these loops would not end.
local arrivals, known, exact = {}, nil, weir.redis_exact
if value then
  known = value:match('^[%d ]*|')
  if not known then error('WRONGTYPE weir: no bucket') end
  local all = scales(known)
  local good = #value >= #known + 16 * #all
  for i, s in ipairs(all) do
    if not good then break end
    local q, r = struct.unpack('>i8I8', value, #known + 16 * i - 15)
    arrivals[i] = {q, r}
    good = s[1] > 0 and s[2] + s[3] > 0 and math.max(unpack(s)) <= exact and s[3] <= s[1] and
      r <= s[1] and q <= exact and q >= 2 * never
  end
  if not good then error('CORRUPT weir: a bucket') end
end
local function write(to, known, ...)
  local parts = {known}
  for i, a in ipairs(to) do parts[i + 1] = struct.pack('>i8I8', a[1], a[2]) end
  local bytes = table.concat(parts)
  if redis.pcall('SET', key, bytes, ...).err then
    if together then return end
    -- A bucket that is there needs no room; a full server refuses it unless something was written.
    if value then call('PEXPIRE', key, math.max(call('PTTL', key), 1)) end
    call('SET', key, bytes, ...)
    if unnoted then call('SET', KEYS[#KEYS], unnoted) end
  end
  return true
end

-- (q, r) so many times; and how many times it goes into (aq, ar), and whether something is left.
local function times(n, q, r, gain)
  local sq, sr = 0, 0
  while n > 0 do
    if n % 2 == 1 then sq, sr = normal(sq + q, sr + r, gain) end
    q, r = normal(q + q, r + r, gain)
    n = math.floor(n / 2)
  end
  return sq, sr
end
local function divide(aq, ar, q, r, gain)
  local powers, n = {}, 0
  while not before(aq, ar, q, r) do
    powers[#powers + 1] = {q, r}
    q, r = normal(q + q, r + r, gain)
  end
  for i = #powers, 1, -1 do
    n = n * 2
    if not before(aq, ar, powers[i][1], powers[i][2]) then
      aq, ar = normal(aq - powers[i][1], ar - powers[i][2], gain)
      n = n + 1
    end
  end
  return n, aq + ar > 0
end
