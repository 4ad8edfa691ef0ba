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

/// ARGV: 11 for each job.
inline constexpr char enqueue_jobs[] = R"lua(
local n = (#ARGV - 3) / 11
tidy(n)
unsettle()
local out, first = {}, nil
local function add(j, body)
  put(j)
  save(j)
  call('HSET', bodies, j.id, body)
  if count('enqueued', 1) == 1 then name_it() end
end
local function arrive(at)
  local id, key, delay = ARGV[at], ARGV[at + 9], tonumber(ARGV[at + 5])
  local j = {id = id, priority = tonumber(ARGV[at + 1]), ended = PENDING,
    strategy = tonumber(ARGV[at + 2]), policy = tonumber(ARGV[at + 3]), attempts = 0,
    max_attempts = tonumber(ARGV[at + 4]), snoozes = 0, vesting = now + delay, unclaimed = 0,
    enqueued = now, deadline_from = now, deadline = tonumber(ARGV[at + 7]),
    retention = tonumber(ARGV[at + 8]), fence = 0, death = 0, key = key, holder = ''}
  local state = call('HGET', states, id)
  if state then
    local known = parse(id, state)
    if not gone(known) then return 0, '' end
    drop(known)
  end
  local other, outcome = nil, 0
  if holds_while_waiting[j.strategy] then
    other = owner_of(key)
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
    local ttl = tonumber(ARGV[at + 6])
    if outcome % 2 == 0 then hold(key, id, ttl > 0 and now + ttl or 0) end
  end
  if outcome % 2 == 0 then add(j, ARGV[at + 10]) end
  if outcome ~= 1 then first = math.min(first or j.vesting, j.vesting) end
  return outcome, other or ''
end
for i = 1, n do out[2 * i - 1], out[2 * i] = arrive(4 + (i - 1) * 11) end
if first then no_later_than(first) end
return out
)lua";

inline constexpr char peek_jobs[] = R"lua(
local most, out = tonumber(ARGV[4]), {}
levels(function(priority)
  for _, member in ipairs(visible(priority, most - #out)) do
    out[#out + 1] = describe(must_find(member:sub(10)))
  end
  return #out == most
end)
return out
)lua";

/// ARGV: holder, sequence, limit, lease. KEYS[14]: what the holder's latest numbered dequeue was
/// given: its number, and each lease's id and fence.
inline constexpr char dequeue_jobs[] = R"lua(
local latest, holder, sequence = KEYS[14], ARGV[4], ARGV[5]
local limit, lease = tonumber(ARGV[6]), tonumber(ARGV[7])
local last = sequence ~= '0' and call('GET', latest)
tidy(limit)
local held = holds()
local out, buried, given = {}, 0, {}
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
  local number = tonumber(call('GET', fence) or 0)
  levels(function(priority)
    local again = true
    while again and #out < limit and buried < 100 do
      local most = math.min(limit - #out, 256)
      local members = visible(priority, most)
      again = #members == most
      for _, member in ipairs(members) do
        local j = must_find(member:sub(10))
        local reason = unclaimable(j)
        if reason then
          if buried == 100 then return true end
          bury(j, reason)
          buried = buried + 1
        else
          number = math.max(number + 1, now)
          claim(j, holder, number, lease)
          out[#out + 1] = describe_lease(j)
          given[#given + 1] = j.id .. struct.pack('>I8', number)
        end
      end
    end
    return #out == limit or buried == 100
  end)
  if #given > 0 then
    call('SET', fence, decimal(number))
    if sequence ~= '0' then
      call('SET', latest, sequence .. ':' .. table.concat(given))
      keep(latest, now + lease)
    end
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
if state ~= PENDING or holds() or j.vesting > now then return {} end
local reason = unclaimable(j)
if reason then
  bury(j, reason)
  settle()
  return {}
end
claim(j, holder, next_fence(fence), tonumber(ARGV[6]))
return {describe_lease(j)}
)lua";

inline constexpr char find_job[] = R"lua(
local j = find(ARGV[4])
return j and {describe(j)} or {}
)lua";

}  // namespace lua

inline result<redis_call> encode(redis_names const& names, command::enqueue_jobs const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::jobs, lua::enqueue_jobs};
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
  static redis_script const script{lua::common, lua::jobs, lua::peek_jobs};
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
  static redis_script const script{lua::common, lua::jobs, lua::dequeue_jobs};
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
  static redis_script const script{lua::common, lua::jobs, lua::obtain_lease};
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
  static redis_script const script{lua::common, lua::jobs, lua::find_job};
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
