// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_ENQUEUES_HPP
#define WEIR_STORE_REDIS_ENQUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/job_lua.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/unique.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

// How jobs come.
namespace weir::detail {

namespace lua {

/// A job with an enqueue key that another one may have. Answers the outcome, and that other one.
inline constexpr char contend[] = R"lua(
local function contend(j, ttl)
  local other, o = possessor(j.key)
  local outcome = 0
  if other then
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

/// A queue gets jobs. If it is seen for the first time: raises an error unless its keys have these
/// types, or do not exist. If it is fading (see `settle`), it no longer is. After `flags`.
inline constexpr char get_ready[] = R"lua(
if not flags then
  local kinds = {'hash', 'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'zset', 'string', 'zset',
    'zset'}
  for i, kind in ipairs(kinds) do
    local is = call('TYPE', KEYS[i]).ok
    if is ~= kind and is ~= 'none' then
      error('WRONGTYPE weir: ' .. kind .. ' expected, ' .. is .. ' found')
    end
  end
  flags = '000'
  call('HSET', KEYS[1], 'flags', flags)
elseif flags:sub(2, 2) == '1' then
  flags = flags:sub(1, 1) .. '0' .. flags:sub(3)
  call('HSET', KEYS[1], 'flags', flags)
  for _, i in ipairs({3, 4, 7}) do call('PERSIST', KEYS[i]) end
end
)lua";

/// A job's numbers as they travel: priority, strategy, policy, most attempts, delay, deadline,
/// retention, TTL of its unique key.
inline constexpr char eight_numbers[] = R"lua(
local eight_numbers = '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)'
)lua";

/// Jobs that hold no unique key while they wait, and of which none is named twice: what nearly
/// every enqueue is. ARGV: 4 for each job: its id, its numbers, its unique key, its body. What jobs
/// have in common is made once. After `get_ready`.
inline constexpr char enqueue_plain[] = R"lua(
local queue, index, jobs, kept, due, ARGV = KEYS[1], KEYS[2], KEYS[3], KEYS[7], KEYS[10], ARGV
local added, first, numbers, key_size, separate, header, level = 0, nil, nil, nil, nil, nil, nil
local n = (#ARGV - 3) / 4
if n > 1000 then call('ZCARD', kept) end
for from = 1, n, 1000 do  -- what Lua can pass to a command is limited
  local to, found, ranks, fields, r, f = math.min(from + 999, n), nil, {}, {}, 0, 0
  if from == to then
    found = {call('HGET', jobs, ARGV[4 * from])}
  else
    local ids = {}
    for i = from, to do ids[i - from + 1] = ARGV[4 * i] end
    found = call('HMGET', jobs, unpack(ids))
  end
  for i = from, to do
    local at, known = 4 * i, found[i - from + 1]
    local id, key, body = ARGV[at], ARGV[at + 2], ARGV[at + 3]
    if ARGV[at + 1] ~= numbers or #key ~= key_size or (#body > long_body) ~= separate then
      numbers, key_size, separate = ARGV[at + 1], #key, #body > long_body
      local priority, strategy, policy, attempts, delay, deadline, retention =
        numbers:match(eight_numbers)
      local vesting = now + delay
      header = struct.pack(form, 0, vesting, 0, 0, 0, priority, 0, separate and 2 or 0, attempts,
        now, deadline, key_size, strategy, policy, 0, now, retention, 0)
      level = struct.pack('>BI8', priority, vesting)
      if not first or vesting < first then first = vesting end
    end
    if known and #known >= 85 then
      local ended, vesting = known:byte(32), struct.unpack('>I8', known, 5)
      if (ended == 2 or ended == 4) and vesting <= now then  -- it is over
        call('ZREM', kept, 'j' .. id)
        call('HDEL', jobs, id, id .. 'b', id .. 'n')
        known = nil
      end
    end
    if not known then
      ranks[r + 1], ranks[r + 2] = '0', level .. id
      r = r + 2
      if separate then
        fields[f + 1], fields[f + 2], fields[f + 3], fields[f + 4] =
          id, header .. key, id .. 'b', body
        f = f + 4
      else
        fields[f + 1], fields[f + 2] = id, header .. key .. body
        f = f + 2
      end
    end
  end
  if r > 0 then
    if added == 0 then call('ZCARD', due) end  -- before the first write, its type has to show
    call('ZADD', index, unpack(ranks))
    call('HSET', jobs, unpack(fields))
    added = added + r / 2
  end
end
if added == 0 then return {} end
local name = ARGV[2]
local total = redis.pcall('HINCRBY', queue, 'enqueued', added == 1 and '1' or added)
if type(total) ~= 'number' then  -- a counter that is damaged begins anew
  call('HSET', queue, 'enqueued', added)
  total = added
end
if total == added then
  redis.pcall('ZADD', KEYS[11], '0', name)  -- of a new queue, its type has been seen
end
if flags:sub(1, 1) == '0' then
  local at = math.max(first, flags == '000' and 0 or tonumber(flags:sub(3)))
  if call('ZADD', due, 'LT', 'CH', decimal(at), name) == 1 and at <= now then
    redis.pcall('PUBLISH', ARGV[3], due)
  end
end
return {}
)lua";

/// The end of `rarely`.
inline constexpr char enqueue_rarely[] = R"lua(
tidy((#ARGV - 3) / 4)
local function forget(id, raw)
  if not sound(id, raw) then return false end
  local j = parse(id, raw)
  if gone(j) then drop(j) end
  return gone(j)
end
return forget, function(id, raw, ttl) return contend(parse(id, raw), ttl) end
end
)lua";

/// Any jobs. ARGV as in `enqueue_plain`. Those that hold no unique key while they wait are written
/// together. After `get_ready`.
inline constexpr char enqueue_jobs[] = R"lua(
local n = (#ARGV - 3) / 4
local fields, ranks, f, r, added, fresh = {}, {}, 0, 0, 0, {}
local function write()
  if r == 0 then return end
  call('ZADD', index, unpack(ranks, 1, r))
  call('HSET', jobs, unpack(fields, 1, f))
  f, r = 0, 0
end
local found, changed, out, told, first, forget, contend = find_all(n, 4, 4), false, {}, false
local function arrive(at, id, known)
  if changed then
    write()
    known = call('HGET', jobs, id)
  elseif fresh[id] then
    return 0
  end
  if known then
    if not forget then forget, contend = rarely() end
    if not forget(id, known) then return 0 end
  end
  local key, body, extras, separate = ARGV[at + 2], ARGV[at + 3], 0, nil
  if #body > long_body then body, extras, separate = '', 2, body end
  local priority, strategy, policy, attempts, delay, deadline, retention, ttl =
    ARGV[at + 1]:match(eight_numbers)
  local vesting = now + delay
  local raw = struct.pack(form, 0, vesting, 0, 0, 0, priority, PENDING, extras, attempts, now,
    deadline, #key, strategy, policy, 0, now, retention, 0) .. key .. body
  local outcome, other = 0, nil
  if strategy ~= '0' and strategy ~= '3' then
    write()
    if not forget then forget, contend = rarely() end
    changed = true
    outcome, other = contend(id, raw, tonumber(ttl))
  end
  if outcome % 2 == 0 then
    ranks[r + 1], ranks[r + 2] = '0', struct.pack('>BI8', priority, vesting) .. id
    fields[f + 1], fields[f + 2] = id, raw
    f, r, added, fresh[id] = f + 2, r + 2, added + 1, true
    if separate then
      fields[f + 1], fields[f + 2] = id .. 'b', separate
      f = f + 2
    end
    if r == 998 then write() end
  end
  if outcome ~= 1 and (not first or vesting < first) then first = vesting end
  return outcome, other
end
for i = 1, n do
  local at = i * 4
  local outcome, other = arrive(at, ARGV[at], found[i])
  out[2 * i - 1], out[2 * i] = outcome, other or ''
  told = told or outcome ~= 0
end
write()
if added > 0 and increase('enqueued', added) == added then
  redis.pcall('ZADD', names, '0', name)  -- of a new queue, its type has been seen
end
if first then no_later_than(first) end
return told and out or {}
)lua";

}  // namespace lua

/// Does none hold a unique key while it waits, and is none named twice?
[[nodiscard]] inline bool are_plain(std::span<new_job const> jobs) {
  if (std::ranges::any_of(jobs, holds_while_waiting, &new_job::strategy)) return false;
  if (jobs.size() == 1) return true;
  std::vector<job_id> ids;
  ids.reserve(jobs.size());
  for (auto const& j : jobs) ids.push_back(j.id);
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

inline result<redis_call> encode(redis_names const& names, command::enqueue_jobs const& c,
                                 redis_now now) {
  static redis_script const plain{lua::common,        lua::flags, lua::get_ready,
                                  lua::eight_numbers, lua::form,  lua::enqueue_plain};
  static redis_script const any{
      lua::common,        lua::tell,           lua::queue,         lua::form,        lua::sound,
      lua::typed,         lua::find_all,       lua::flags,         lua::get_ready,   lua::holds,
      lua::no_later_than, lua::rarely,         lua::record,        lua::find,        lua::index,
      lua::unique,        lua::erase,          lua::ends,          lua::possessor,   lua::tidy,
      lua::contend,       lua::enqueue_rarely, lua::eight_numbers, lua::enqueue_jobs};
  auto out = queue_call(are_plain(c.jobs) ? plain : any, names, c, now);
  for (auto const& j : c.jobs) {
    redis_numbers numbers;
    numbers.add(unsigned{j.priority}).add(static_cast<unsigned>(j.strategy));
    numbers.add(static_cast<unsigned>(j.on_conflict)).add(j.max_attempts);
    numbers.add(redis_ceil(j.delay)).add(redis_ceil(j.deadline));
    numbers.add(redis_ceil(j.retention)).add(redis_ceil(j.unique_ttl));
    out.arg(redis_id(j.id)).arg(numbers.text()).arg(j.unique_key);
    add_redis_body(out, j.kind, j.payload);
  }
  return out;
}
/// Nothing: all of them were simply enqueued.
inline result<command::enqueue_jobs::result> decode(command::enqueue_jobs const& c,
                                                    redis_reply& r) {
  command::enqueue_jobs::result out;
  auto const told = r.array();
  if (told == 0 && r.good()) {
    out.resize(c.jobs.size());
    return out;
  }
  if (told != 2 * c.jobs.size()) r.fail();
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

}  // namespace weir::detail

#endif
