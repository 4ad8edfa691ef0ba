---@use common
--- The last request that was read: with others, it is nearly always the same.
local asked, takes, most, gain, pq, pr, rq, rr

---@each
---@use bucket
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

---@use buckets
--- What was spent stays spent.
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
