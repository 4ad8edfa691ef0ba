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

---@part last_request
--- The last request that was read: with others, it is nearly always the same.
local asked, takes, most, gain, pq, pr, rq, rr

---@part quick_take
--- This is how nearly every bucket is asked: it has one quota, which is the same as it was, or is
--- new. After `bucket`. ARGV[3]: the request: whether to take, the longest wait, and for each quota
--- its gain, the price of the cost, and the room.
if ARGV[3] ~= asked then
  asked = ARGV[3]
  takes, most, gain, pq, pr, rq, rr =
    asked:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) $')
  most, gain, pq, pr, rq, rr =
    tonumber(most), tonumber(gain), tonumber(pq), tonumber(pr), tonumber(rq), tonumber(rr)
end
if takes and (not value or value:sub(1, #quotas) == quotas) then
  local q, r, wait = never, 0, 0
  if value then
    if #value < #quotas + 16 then error('CORRUPT weir: a bucket') end
    q, r = struct.unpack('>i8I8', value, #quotas + 1)
    if q > -2 * never or q < 2 * never or r > gain then error('CORRUPT weir: a bucket') end
  end
  local dq, dr = q + pq - rq, r + pr - rr
  if dr > 0 then dq = dq + (dr > gain and 2 or 1) end
  if dq > now then wait = dq - now end
  if wait > most then return {0, now, q, r} end
  if takes == '1' then
    local tq, tr = q, r
    if q < now + wait then tq, tr = now + wait, 0 end
    tq, tr = tq + pq, tr + pr
    if tr >= gain then tq, tr = tq + 1, tr - gain end
    local bytes, till = quotas .. struct.pack('>i8I8', tq, tr), --\
      decimal(math.ceil((tq + 1 - now) / 1000) + slack)
    if redis.pcall('SET', key, bytes, 'PX', till).err then
      if together then return end
      -- A bucket that is there needs no room; a full server refuses it unless something was written.
      if value then call('PERSIST', key) end
      call('SET', key, bytes, 'PX', till)
      if unnoted then call('SET', KEYS[#KEYS], unnoted) end
    end
  end
  return {1, now, q, r}
end

---@part any_take
--- The same of any bucket, after `buckets`. What was spent stays spent.
if known and known ~= quotas then
  local old, new = scales(known), scales(quotas)
  for i, s in ipairs(new) do
    local g, tq, tr, capacity = unpack(s)
    local a, o = arrivals[i], old[i]
    arrivals[i] = {never, 0}
    if a and o then
      local missing, more = 0, false
      if a[1] >= now then missing, more = divide(a[1] - now, a[2], o[2], o[3], o[1]) end
      local q, r = times(math.min(missing + (more and 1 or 0), capacity), tq, tr, g)
      arrivals[i] = {q + now, r}
    end
  end
  for i = #new + 1, #arrivals do arrivals[i] = nil end
end

local each, wait, out, request = {}, 0, {1, now}, {}
for n in ARGV[3]:gmatch('%d+') do request[#request + 1] = tonumber(n) end
local spends, max_wait = request[1] == 1, request[2]
for i = 1, (#request - 2) / 5 do
  local q = {unpack(request, 5 * i - 2, 5 * i + 2)}
  local gain, pq, pr, rq, rr = unpack(q)
  each[i], arrivals[i] = q, arrivals[i] or {never, 0}
  local a = arrivals[i]
  out[#out + 1], out[#out + 2] = a[1], a[2]
  local dq, dr = normal(a[1] + pq - rq, a[2] + pr - rr, gain)
  wait = math.max(wait, (dr > 0 and dq + 1 or dq) - now)
end
if wait > max_wait then
  out[1] = 0
elseif spends then
  local full = now
  for i, q in ipairs(each) do
    local gain, pq, pr = unpack(q)
    local a = arrivals[i]
    if a[1] < now + wait then a = {now + wait, 0} end
    a = {normal(a[1] + pq, a[2] + pr, gain)}
    arrivals[i] = a
    full = math.max(full, a[1] + 1)
  end
  local till = decimal(math.ceil((full - now) / 1000) + slack)
  if not write(arrivals, quotas, 'PX', till) then return end
end
return out
