// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BUCKETS_HPP
#define WEIR_STORE_REDIS_BUCKETS_HPP

#include "weir/command/buckets.hpp"
#include "weir/error.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/redis/bucket_scale.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace weir::detail {

namespace lua {

/// A bucket is a string: what the quotas are (redis_quota_text), and the arrival of each in
/// microseconds and a rest, 8 bytes each. It expires when the bucket is full, and so equals one
/// that was never seen. ARGV: now, quotas.
inline constexpr char bucket[] = R"lua(
local key, quotas, never = KEYS[1], ARGV[2], -4503599627370496
local value = call('GET', key)
)lua";

/// This is how nearly every bucket is asked: it has one quota, which is the same as it was, or is
/// new. After `bucket`. ARGV[3]: the request: whether to take, the longest wait, and for each quota
/// its gain, the price of the cost, and the room.
inline constexpr char take_one[] = R"lua(
local takes, most, gain, pq, pr, rq, rr =
  ARGV[3]:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) $')
if takes and (not value or value:sub(1, #quotas) == quotas) then
  local q, r, wait = never, 0, 0
  gain = tonumber(gain)
  if value then
    if #value < #quotas + 16 then error('CORRUPT weir: a bucket') end
    q, r = struct.unpack('>i8I8', value, #quotas + 1)
    if q > -2 * never or q < 2 * never or r > gain then error('CORRUPT weir: a bucket') end
  end
  local dq, dr = q + pq - rq, r + pr - rr
  if dr > 0 then dq = dq + (dr > gain and 2 or 1) end
  if dq > now then wait = dq - now end
  if wait > tonumber(most) then return {0, now, q, r} end
  if takes == '1' then
    local tq, tr = q, r
    if q < now + wait then tq, tr = now + wait, 0 end
    tq, tr = tq + pq, tr + pr
    if tr >= gain then tq, tr = tq + 1, tr - gain end
    call('SET', key, quotas .. struct.pack('>i8I8', tq, tr), 'PX',
      decimal(math.ceil((tq + 1 - now) / 1000) + slack))
  end
  return {1, now, q, r}
end
)lua";

/// After `bucket`.
inline constexpr char buckets[] = R"lua(
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
local arrivals, known, exact = {}, nil, 9007199254740992
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
  call('SET', key, table.concat(parts), ...)
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
)lua";

/// What was spent stays spent.
inline constexpr char changed_quotas[] = R"lua(
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
)lua";

inline constexpr char take[] = R"lua(
local asked, wait, out, request = {}, 0, {1, now}, {}
for n in ARGV[3]:gmatch('%d+') do request[#request + 1] = tonumber(n) end
local takes, max_wait = request[1] == 1, request[2]
for i = 1, (#request - 2) / 5 do
  local q = {unpack(request, 5 * i - 2, 5 * i + 2)}
  local gain, pq, pr, rq, rr = unpack(q)
  asked[i], arrivals[i] = q, arrivals[i] or {never, 0}
  local a = arrivals[i]
  out[#out + 1], out[#out + 2] = a[1], a[2]
  local dq, dr = normal(a[1] + pq - rq, a[2] + pr - rr, gain)
  wait = math.max(wait, (dr > 0 and dq + 1 or dq) - now)
end
if wait > max_wait then
  out[1] = 0
elseif takes then
  local full = now
  for i, q in ipairs(asked) do
    local gain, pq, pr = unpack(q)
    local a = arrivals[i]
    if a[1] < now + wait then a = {now + wait, 0} end
    a = {normal(a[1] + pq, a[2] + pr, gain)}
    arrivals[i] = a
    full = math.max(full, a[1] + 1)
  end
  write(arrivals, quotas, 'PX', decimal(math.ceil((full - now) / 1000) + slack))
end
return out
)lua";

/// ARGV: now, quotas, cost, whether before the instant, and for each quota the mark's arrival, and
/// how far back it was before. Answers how many went back: none where the bucket has other quotas,
/// since a mark is in the units of those that it was granted by.
inline constexpr char refund[] = R"lua(
if known ~= quotas then return 0 end
local cost, early = tonumber(ARGV[3]), ARGV[4] == '1'
local back, all = cost, scales(known)
local function mark(i, n) return tonumber(ARGV[4 * i + n]) end
for i, s in ipairs(all) do
  local a = arrivals[i]
  if a[1] ~= mark(i, 1) or a[2] ~= mark(i, 2) or cost > s[4] then return 0 end
  if not early then
    back = math.min(back, a[1] < now and 0 or (divide(a[1] - now, a[2], s[2], s[3], s[1])))
  end
end
if back == 0 then return 0 end
for i, s in ipairs(all) do
  local q, r = mark(i, 3), mark(i, 4)
  if not early then q, r = times(back, s[2], s[3], s[1]) end
  arrivals[i] = {normal(arrivals[i][1] - q, arrivals[i][2] - r, s[1])}
end
write(arrivals, known, 'KEEPTTL')
return back
)lua";

inline constexpr char reset_bucket[] = R"lua(
call('DEL', KEYS[1])
return 1
)lua";

}  // namespace lua

template <class C>
concept redis_asks_bucket =
    std::is_same_v<C, command::take> || std::is_same_v<C, command::peek_bucket>;

template <redis_asks_bucket C>
result<redis_call> encode(redis_names const& names, C const& c, redis_now now) {
  static redis_script const script{lua::common,  lua::bucket,         lua::take_one,
                                   lua::buckets, lua::changed_quotas, lua::take};
  auto const scales = rule::bucket_scales::of(c.quotas, redis_tick);
  if (!scales) return errc::quota_too_large;
  redis_call out{script};
  auto const shard = names.shard_of(c.key);
  out.key(names, shard, "b", c.key).arg(now).arg(redis_quota_text(*scales));
  redis_numbers request;
  request.add(std::is_same_v<C, command::take> ? 1 : 0).add(c.max_wait);
  for (auto const& s : scales->span()) {
    auto const price = redis_units::of(s.price_of(c.cost), s);
    auto const room = redis_units::of(s.room(), s);
    request.add(s.gain).add(price.micros).add(price.rest).add(room.micros).add(room.rest);
  }
  out.arg(request.text());
  return out;
}

/// The script has decided; the rule says the rest, and has to agree.
template <redis_asks_bucket C>
result<typename C::result> decode(C const& c, redis_reply& r) {
  auto const scales = rule::bucket_scales::of(c.quotas, redis_tick);
  if (!scales) return errc::quota_too_large;
  auto arrivals = rule::unseen_bucket;
  r.array(2 + 2 * scales->size);
  bool const allowed = r.boolean();
  auto const now = r.time();
  for (std::size_t i = 0; i != scales->size; ++i) {
    redis_units units;
    units.micros = r.template number<std::int64_t>();
    units.rest = r.template number<std::int64_t>();
    auto const arrival = units.after(now, scales->each[i]);
    if (!arrival) r.fail();
    arrivals[i] = arrival.value_or(0);
  }
  // A wait that the caller allows is counted in the server's microseconds, as the script counts.
  auto asked = c;
  asked.max_wait = duration{c.max_wait / redis_tick};
  auto d = rule::ask(scales->span(), arrivals, duration::zero(), asked);
  d.wait *= redis_tick.count();
  d.retry_after *= redis_tick.count();
  d.reset_after *= redis_tick.count();
  if (d.allowed != allowed) r.fail();
  if constexpr (std::is_same_v<C, command::peek_bucket>) {
    for (auto& level : d.levels) level.reset_after *= redis_tick.count();
  } else if (allowed) {
    // A mark has the arrival by the server's time, and how far back it was before the take.
    for (std::size_t i = 0; i != scales->size; ++i) {
      auto const after = rule::arrival_in(d.mark, i);
      rule::set_mark(d.mark, i, after + scales->each[i].units_at(duration{now}),
                     after - arrivals[i]);
    }
  }
  return d;
}

inline result<redis_call> encode(redis_names const& names, command::refund const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::bucket, lua::buckets, lua::refund};
  auto const scales = rule::bucket_scales::of(c.quotas, redis_tick);
  if (!scales) return errc::quota_too_large;
  redis_call out{script};
  auto const shard = names.shard_of(c.key);
  out.key(names, shard, "b", c.key).arg(now).arg(redis_quota_text(*scales));
  out.arg(c.cost).arg(c.before_instant ? 1 : 0);
  for (std::size_t i = 0; i != scales->size; ++i) {
    auto const& s = scales->each[i];
    auto const arrival = redis_units::of(rule::arrival_in(c.mark, i), s);
    auto const back = redis_units::of(rule::before_in(c.mark, i), s);
    out.arg(arrival.micros).arg(arrival.rest);
    out.arg(back.micros).arg(back.rest);
  }
  return out;
}
inline result<refund_receipt> decode(command::refund const& c, redis_reply& r) {
  auto const back = r.number<std::uint64_t>();
  if (back > c.cost) r.fail();
  return refund_receipt{.credited = back, .forfeited = c.cost - back};
}

inline result<redis_call> encode(redis_names const& names, command::reset_bucket const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::reset_bucket};
  redis_call out{script};
  auto const shard = names.shard_of(c.key);
  out.key(names, shard, "b", c.key).arg(now);
  return out;
}
inline result<hint> decode(command::reset_bucket const&, redis_reply& r) {
  r.number<std::int64_t>();
  return hint{};
}

}  // namespace weir::detail

#endif
