// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOBS_HPP
#define WEIR_STORE_REDIS_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/job_lua.hpp"
#include "weir/store/redis/job_record.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Jobs are claimed and looked at. How they come: store/redis/enqueues.hpp. What a holder does with
// its lease, and how jobs end otherwise: store/redis/job_ends.hpp.
namespace weir::detail {

namespace lua {

inline constexpr char peek_jobs[] = R"lua(
local most, n, out = tonumber(ARGV[4]), 0, {}
visible(function() return most - n end, function(members)
  for _, member in ipairs(members) do
    local id = member:sub(10)
    local raw = call('HGET', jobs, id)
    if #id == 16 and sound(id, raw) then  -- what is damaged is skipped
      if not fits(out, id, raw) then
        most = n
        return
      end
      n = n + 1
    end
  end
end)
return {now, n, out}
)lua";

/// The end of `rarely` for who claims.
inline constexpr char claim_rarely[] = R"lua(
return {
  bury = function(id, raw, reason) bury(parse(id, raw), reason) end,
  unclaim = function(id, raw) unclaim(parse(id, raw)) end,
  set_aside = set_aside,
  leased = leased,
  tidy = tidy,
}
end
)lua";

/// Claims these members of the index, which are visible, and buries those that cannot be claimed,
/// or are damaged, up to a hundred. They are written together. It ends before a job that the answer
/// has no room for
/// (`full`). After `fits` and `claim_rarely`.
inline constexpr char claim_all[] = R"lua(
local out, claims, buried, damaged, stale, given, rare, full = {}, 0, 0, 0, 0, {}, nil, false
local function enough() return buried + damaged + stale >= 100 end
local pack, unpacked, char = struct.pack, struct.unpack, string.char
local function claim_all(members, holder, lease)
  local ids, o, till = {}, #out, now + lease
  for i = 1, #members do ids[i] = members[i]:sub(10) end
  local found = call('HMGET', jobs, unpack(ids))
  local old, index_new, ends, records, k, number = {}, {}, {}, {}, 0, nil
  local by_end, by_rank, size = decimal(till), pack('>I8', till), #holder
  for i = 1, #ids do
    local id, raw, reason, whole = ids[i], found[i], nil, false
    local attempts, vesting, held_by, priority, ended, extras, max_attempts, deadline_from, deadline,
      key, _
    if #id == 16 and sound(id, raw) then
      attempts, vesting, _, _, held_by, priority, ended, extras, max_attempts, deadline_from,
        deadline, key = unpacked('>I4I8I8I8I2BBBI4I8I8I2', raw)
      whole = ended == PENDING and vesting <= now and priority == members[i]:byte()
    end
    if not whole then
      if enough() then break end
      -- The entry of a job that has ended, or has another one, is only an entry.
      if ended and (ended ~= PENDING or
          call('ZSCORE', index, pack('>BI8', priority, vesting) .. id)) then
        call('ZREM', index, members[i])
        stale = stale + 1
      else
        rare = rare or rarely()
        rare.set_aside(members[i], id, raw)
        damaged = damaged + 1
      end
    elseif attempts >= max_attempts then
      reason = 'its attempts are spent: the last holder let its lease end'
    elseif deadline > 0 and deadline_from + deadline < now then
      reason = 'its deadline was missed'
    end
    if whole and (reason or held_by > 0) and not rare then rare = rarely() end
    if reason and enough() then break end
    if reason then
      rare.bury(id, raw, reason)
      buried = buried + 1
    elseif whole then
      if extras == 0 then
        room = room - #raw - size
        full = room < 0
      else
        full = not fits(out, id, raw)
      end
      if full then break end
      number = number and number + 1 or next_fences(fence, #ids)
      if held_by > 0 then rare.unclaim(id, raw) end
      raw = pack('>I4I8I8I8I2', attempts + 1, till, vesting, number, size) ..
        raw:sub(31, 85 + key) .. holder .. raw:sub(86 + key + held_by)
      k = k + 1
      local second = 2 * k
      local first = second - 1
      old[k], index_new[first], index_new[second] = members[i], '0', char(priority) .. by_rank .. id
      ends[first], ends[second], records[first], records[second] = by_end, id, id, raw
      out[o + 1], out[o + 2] = id, raw
      o = extras == 0 and o + 2 or #out
      claims = claims + 1
      given[claims] = id .. pack('>I8', number)
    end
  end
  if not number then return end
  call('ZREM', index, unpack(old))
  call('ZADD', index, unpack(index_new))
  call('ZADD', claimed, unpack(ends))
  call('HSET', jobs, unpack(records))
end
)lua";

/// ARGV: holder, sequence, limit, lease. KEYS[12]: what the holder's latest numbered dequeue was
/// given: its number, and each lease's id and fence.
inline constexpr char dequeue_jobs[] = R"lua(
local latest, holder, sequence = KEYS[12], ARGV[4], ARGV[5]
local limit, lease = tonumber(ARGV[6]), tonumber(ARGV[7])
local last = sequence ~= '0' and call('GET', latest)
if call('ZCARD', kept) > 0 then
  rare = rarely()
  rare.tidy(limit)
end
if last then
  local number, grants = last:match('^(%d+):(.*)$')
  if number == sequence then
    rare = rare or rarely()
    for at = 1, #grants - 23, 24 do
      local j = rare.leased(grants:sub(at, at + 15), (struct.unpack('>I8', grants, at + 16)))
      if j then
        describe(out, j.id, j.raw)
        claims = claims + 1
      end
    end
  end
  if claims == 0 then call('DEL', latest) end
end
if claims == 0 and not held then
  visible(function() return not full and not enough() and math.min(limit - claims, 256) or 0 end,
    function(members) claim_all(members, holder, lease) end)
  if claims > 0 and sequence ~= '0' then
    call('SET', latest, sequence .. ':' .. table.concat(given), 'PX', kept_for(now + lease))
  end
end
local least, any = heads()
point(least)
return {now, claims, out, buried, damaged, any and not held and 1 or 0, held and 1 or 0,
  least and least - now or false}
)lua";

/// ARGV: id, holder, lease.
inline constexpr char obtain_lease[] = R"lua(
tidy(1)
local j, holder = find(ARGV[4]), ARGV[5]
if not j then return {now, 0, {}} end
local state = state_of(j)
if state == LEASED and j.holder == holder then
  describe(out, j.id, j.raw)
  return {now, 1, out}
end
if state ~= PENDING or held or j.vesting > now then return {now, 0, {}} end
claim_all({struct.pack('>BI8', j.priority, j.vesting) .. j.id}, holder, tonumber(ARGV[6]))
if buried + damaged > 0 then settle() end
return {now, claims, out}
)lua";

inline constexpr char find_job[] = R"lua(
local j, out = find(ARGV[4]), {}
if j then describe(out, j.id, j.raw) end
return {now, j and 1 or 0, out}
)lua";

}  // namespace lua

inline result<redis_call> encode(redis_names const& names, command::peek_jobs const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::queue,    lua::form,    lua::sound,
                                   lua::record, lua::find,     lua::visible, lua::describe,
                                   lua::fits,   lua::peek_jobs};
  auto out = queue_call(script, names, c, now);
  out.arg(c.limit);
  return out;
}
inline result<std::vector<job>> decode(command::peek_jobs const&, redis_reply& r) {
  r.array(3);
  return read_jobs<job>(r);
}

inline result<redis_call> encode(redis_names const& names, command::dequeue_jobs const& c,
                                 redis_now now) {
  static redis_script const script{
      lua::common, lua::next_fences, lua::keep,    lua::queue,        lua::form,
      lua::sound,  lua::heads,       lua::visible, lua::flags,        lua::holds,
      lua::point,  lua::describe,    lua::fits,    lua::rarely,       lua::record,
      lua::find,   lua::leased,      lua::index,   lua::unique,       lua::erase,
      lua::ends,   lua::set_aside,   lua::tidy,    lua::claim_rarely, lua::claim_all,
      lua::typed,  lua::dequeue_jobs};
  auto latest = names.key(names.shard_of(c.queue), "h", std::to_string(c.queue.size()));
  latest.append(":").append(c.queue).append(c.holder);
  auto out = queue_call(script, names, c, now, latest);
  out.arg(c.holder).arg(c.sequence).arg(c.limit).arg(redis_ceil(c.lease));
  return out;
}
inline result<dequeued> decode(command::dequeue_jobs const&, redis_reply& r) {
  dequeued out;
  r.array(8);
  out.jobs = read_jobs<leased_job>(r);
  out.dead_lettered = r.number<std::uint32_t>();
  out.damaged = r.number<std::uint32_t>();
  out.more = r.boolean();
  out.held = r.boolean();
  out.next_in = r.optional_micros();
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::obtain_lease const& c,
                                 redis_now now) {
  static redis_script const script{
      lua::common,    lua::next_fences,  lua::keep,      lua::queue,    lua::form,
      lua::sound,     lua::record,       lua::find,      lua::erase,    lua::tidy,
      lua::settle,    lua::flags,        lua::holds,     lua::describe, lua::fits,
      lua::leased,    lua::rarely,       lua::index,     lua::unique,   lua::ends,
      lua::set_aside, lua::claim_rarely, lua::claim_all, lua::typed,    lua::obtain_lease};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id)).arg(c.holder).arg(redis_ceil(c.lease));
  return out;
}
inline result<std::optional<leased_job>> decode(command::obtain_lease const&, redis_reply& r) {
  return read_optional_job<leased_job>(r);
}

inline result<redis_call> encode(redis_names const& names, command::find_job const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::queue, lua::form,     lua::sound,
                                   lua::record, lua::find,  lua::describe, lua::find_job};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id));
  return out;
}
inline result<std::optional<job>> decode(command::find_job const&, redis_reply& r) {
  return read_optional_job<job>(r);
}

}  // namespace weir::detail

#endif
