// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOBS_HPP
#define WEIR_STORE_REDIS_JOBS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/job_lua.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Jobs come, are claimed and are looked at. What a holder does with its lease, and how jobs end
// otherwise: store/redis/job_ends.hpp.
namespace weir::detail {

namespace lua {

/// Jobs that have no unique key are written together.
inline constexpr char add_jobs[] = R"lua(
local fields, ranks, added, fresh = {}, {}, 0, {}
local function write()
  if #ranks == 0 then return end
  call('ZADD', index, unpack(ranks))
  call('HSET', jobs, unpack(fields))
  fields, ranks = {}, {}
end
local function add(j, body)
  local f = #fields
  fields[f + 1], fields[f + 2], fields[f + 3], fields[f + 4] = j.id .. 's', packed(j), j.id .. 'b', body
  f = #ranks
  ranks[f + 1], ranks[f + 2] = 0, rank(j.priority, j.vesting) .. j.id
  added, fresh[j.id] = added + 1, true
  if f == 998 then write() end
end
)lua";

/// A job with an enqueue key that another one may have. Answers the outcome, and that other one.
inline constexpr char contend[] = R"lua(
local function contend(j, ttl)
  local other, outcome = owner_of(j.key), 0
  if other then
    local o = find(other)
    outcome = 1
    if o and state_of(o) == PENDING and j.policy == 3 then
      outcome = 2
      finish(o, CANCELLED)
    elseif o and state_of(o) == PENDING and j.policy == 4 then
      remove(o)
      unclaim(o)
      o.vesting, o.priority = j.vesting, j.priority
      put(o)
      save(o)
      outcome = 3
    end
  end
  if outcome % 2 == 0 then hold(j.key, j.id, ttl > 0 and now + ttl or 0) end
  return outcome, other
end
)lua";

/// ARGV: 11 for each job.
inline constexpr char enqueue_jobs[] = R"lua(
local n = (#ARGV - 3) / 11
if not flags[4] then
  typed({'hash', 'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'zset', 'string', 'zset', 'zset'})
end
tidy(n)
if flags[3] then
  call('HDEL', queue, 'fading')
  for _, key in ipairs({jobs, keys, kept}) do call('PERSIST', key) end
end
local known, changed, out, first = find_all(n, 4, 11), false, {}, nil
local function arrive(i)
  local at = i * 11 - 7
  local id, key, delay = ARGV[at], ARGV[at + 9], tonumber(ARGV[at + 5])
  local j = {id = id, priority = tonumber(ARGV[at + 1]), ended = PENDING,
    strategy = tonumber(ARGV[at + 2]), policy = tonumber(ARGV[at + 3]), attempts = 0,
    max_attempts = tonumber(ARGV[at + 4]), snoozes = 0, vesting = now + delay, unclaimed = 0,
    enqueued = now, deadline_from = now, deadline = tonumber(ARGV[at + 7]),
    retention = tonumber(ARGV[at + 8]), fence = 0, death = 0, key = key, holder = ''}
  if changed then
    write()
    known[i] = call('HGET', jobs, id .. 's')
  elseif fresh[id] then
    return 0
  end
  if known[i] then
    local k = parse(id, known[i])
    if not gone(k) then return 0 end
    drop(k)
  end
  local outcome, other = 0, nil
  if holds_while_waiting[j.strategy] then
    write()
    changed = true
    outcome, other = contend(j, tonumber(ARGV[at + 6]))
  end
  if outcome % 2 == 0 then add(j, ARGV[at + 10]) end
  if outcome ~= 1 then first = math.min(first or j.vesting, j.vesting) end
  return outcome, other
end
for i = 1, n do
  local outcome, other = arrive(i)
  out[2 * i - 1], out[2 * i] = outcome, other or ''
end
write()
if added > 0 and count('enqueued', added) == added then name_it() end
if first then no_later_than(first) end
return out
)lua";

inline constexpr char peek_jobs[] = R"lua(
local most, out = tonumber(ARGV[4]), {}
visible(function() return most - #out end, function(members)
  for _, member in ipairs(members) do out[#out + 1] = describe(must_find(member:sub(10))) end
end)
return out
)lua";

/// Claims these members of the index, which are visible, and buries those that cannot be claimed,
/// up to a hundred. They are written together.
inline constexpr char claim_all[] = R"lua(
local out, buried, given = {}, 0, {}
local function claim_all(members, holder, lease)
  local fields, claims = {}, {}
  for i, member in ipairs(members) do
    local id = member:sub(10)
    fields[3 * i - 2], fields[3 * i - 1], fields[3 * i] = id .. 's', id .. 'b', id .. 'n'
  end
  local found = call('HMGET', jobs, unpack(fields))
  for i, member in ipairs(members) do
    local j = found[3 * i - 2] and parse(member:sub(10), found[3 * i - 2])
    if not j or gone(j) then error('CORRUPT weir: a job without its record') end
    j.body, j.notes, claims[i] = found[3 * i - 1], found[3 * i], j
  end
  local old, index_new, ends, states, till = {}, {}, {}, {}, now + lease
  local number
  for i, j in ipairs(claims) do
    local reason = unclaimable(j)
    if reason and buried == 100 then break end
    if reason then
      bury(j, reason)
      buried = buried + 1
    else
      number = number and number + 1 or next_fences(fence, #members)
      unclaim(j)
      j.fence, j.holder, j.attempts, j.unclaimed, j.vesting =
        number, holder, j.attempts + 1, j.vesting, till
      local k = #old + 1
      old[k], index_new[2 * k - 1], index_new[2 * k] = members[i], 0, rank(j.priority, till) .. j.id
      ends[2 * k - 1], ends[2 * k] = decimal(till), j.id
      states[2 * k - 1], states[2 * k] = j.id .. 's', packed(j)
      out[#out + 1] = describe_lease(j, j.body, j.notes)
      given[#given + 1] = j.id .. struct.pack('>I8', number)
    end
  end
  if not number then return end
  call('ZREM', index, unpack(old))
  call('ZADD', index, unpack(index_new))
  call('ZADD', claimed, unpack(ends))
  call('HSET', jobs, unpack(states))
end
)lua";

/// ARGV: holder, sequence, limit, lease. KEYS[12]: what the holder's latest numbered dequeue was
/// given: its number, and each lease's id and fence.
inline constexpr char dequeue_jobs[] = R"lua(
local latest, holder, sequence = KEYS[12], ARGV[4], ARGV[5]
local limit, lease = tonumber(ARGV[6]), tonumber(ARGV[7])
local last = sequence ~= '0' and call('GET', latest)
tidy(limit)
if last then
  local number, grants = last:match('^(%d+):(.*)$')
  if number == sequence then
    for at = 1, #grants, 24 do
      local j = leased(grants:sub(at, at + 15), (struct.unpack('>I8', grants, at + 16)))
      if j then out[#out + 1] = describe_lease(j) end
    end
  end
  if #out == 0 then call('DEL', latest) end
end
if #out == 0 and not held then
  visible(function() return buried < 100 and math.min(limit - #out, 256) or 0 end,
    function(members) claim_all(members, holder, lease) end)
  if #given > 0 and sequence ~= '0' then
    call('SET', latest, sequence .. ':' .. table.concat(given))
    keep(latest, now + lease)
  end
end
local least, any = heads()
point(least)
return {out, buried, any and not held and 1 or 0, held and 1 or 0, least and least - now or false}
)lua";

/// ARGV: id, holder, lease.
inline constexpr char obtain_lease[] = R"lua(
tidy(1)
local j, holder = find(ARGV[4]), ARGV[5]
if not j then return {} end
local state = state_of(j)
if state == LEASED then return j.holder == holder and {describe_lease(j)} or {} end
if state ~= PENDING or held or j.vesting > now then return {} end
claim_all({rank(j.priority, j.vesting) .. j.id}, holder, tonumber(ARGV[6]))
if buried > 0 then settle() end
return out
)lua";

inline constexpr char find_job[] = R"lua(
local j = find(ARGV[4])
return j and {describe(j)} or {}
)lua";

}  // namespace lua

inline result<redis_call> encode(redis_names const& names, command::enqueue_jobs const& c,
                                 redis_now now) {
  static redis_script const script{
      lua::common,        lua::typed,   lua::tell,     lua::queue,   lua::record,      lua::find,
      lua::find_all,      lua::index,   lua::unique,   lua::ends,    lua::tidy,        lua::holds,
      lua::no_later_than, lua::name_it, lua::add_jobs, lua::contend, lua::enqueue_jobs};
  auto out = queue_call(script, names, c, now);
  for (auto const& j : c.jobs) {
    out.arg(redis_id(j.id)).arg(unsigned{j.priority});
    out.arg(static_cast<unsigned>(j.strategy)).arg(static_cast<unsigned>(j.on_conflict));
    out.arg(j.max_attempts).arg(redis_ceil(j.delay)).arg(redis_ceil(j.unique_ttl));
    out.arg(redis_ceil(j.deadline)).arg(redis_ceil(j.retention)).arg(j.unique_key);
    add_redis_body(out, j.kind, j.payload);
  }
  return out;
}
inline result<command::enqueue_jobs::result> decode(command::enqueue_jobs const& c,
                                                    redis_reply& r) {
  command::enqueue_jobs::result out;
  r.array(2 * c.jobs.size());
  for (std::size_t i = 0; i != c.jobs.size() && r.good(); ++i) {
    enqueued e;
    e.outcome = read_enum(r, enqueue_outcome::rescheduled);
    if (r.empty_text()) {
      if (e.outcome != enqueue_outcome::enqueued) r.fail();
    } else {
      e.other = r.id();
    }
    out.push_back(e);
  }
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::peek_jobs const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,  lua::queue,    lua::record,       lua::find,
                                   lua::visible, lua::describe, lua::describe_job, lua::peek_jobs};
  auto out = queue_call(script, names, c, now);
  out.arg(c.limit);
  return out;
}
inline result<std::vector<job>> decode(command::peek_jobs const&, redis_reply& r) {
  std::vector<job> out;
  for (auto n = r.array(); n != 0 && r.good(); --n) out.push_back(read_job(r));
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::dequeue_jobs const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,   lua::next_fences, lua::keep,        lua::queue,
                                   lua::record,   lua::find,        lua::leased,      lua::index,
                                   lua::heads,    lua::visible,     lua::unique,      lua::ends,
                                   lua::tidy,     lua::unclaimable, lua::holds,       lua::point,
                                   lua::describe, lua::claim_all,   lua::dequeue_jobs};
  auto latest = names.key(names.shard_of(c.queue), "h", std::to_string(c.queue.size()));
  latest.append(":").append(c.queue).append(c.holder);
  auto out = queue_call(script, names, c, now, latest);
  out.arg(c.holder).arg(c.sequence).arg(c.limit).arg(redis_ceil(c.lease));
  return out;
}
inline result<dequeued> decode(command::dequeue_jobs const&, redis_reply& r) {
  dequeued out;
  r.array(5);
  for (auto n = r.array(); n != 0 && r.good(); --n) out.jobs.push_back(read_lease(r));
  out.dead_lettered = r.number<std::uint32_t>();
  out.more = r.boolean();
  out.held = r.boolean();
  out.next_in = r.optional_micros();
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::obtain_lease const& c,
                                 redis_now now) {
  static redis_script const script{
      lua::common, lua::next_fences, lua::keep,      lua::queue,
      lua::record, lua::find,        lua::index,     lua::unique,
      lua::ends,   lua::tidy,        lua::settle,    lua::unclaimable,
      lua::holds,  lua::describe,    lua::claim_all, lua::obtain_lease};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id)).arg(c.holder).arg(redis_ceil(c.lease));
  return out;
}
inline result<std::optional<leased_job>> decode(command::obtain_lease const&, redis_reply& r) {
  std::optional<leased_job> out;
  auto const n = r.array();
  if (n > 1) r.fail();
  if (n == 1) out = read_lease(r);
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::find_job const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,   lua::queue,        lua::record,  lua::find,
                                   lua::describe, lua::describe_job, lua::find_job};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id));
  return out;
}
inline result<std::optional<job>> decode(command::find_job const&, redis_reply& r) {
  std::optional<job> out;
  auto const n = r.array();
  if (n > 1) r.fail();
  if (n == 1) out = read_job(r);
  return out;
}

}  // namespace weir::detail

#endif
