// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_JOB_ENDS_HPP
#define WEIR_STORE_REDIS_JOB_ENDS_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/job_calls.hpp"
#include "weir/store/redis/job_lua.hpp"
#include "weir/store/redis/job_record.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/script.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

// What holders do with their leases, and how jobs end.
namespace weir::detail {

namespace lua {

// With a live lease: ARGV: id, fence, and what the command has besides. 0: it is lost.
inline constexpr char lease[] = R"lua(
local j = leased(ARGV[4], ARGV[5])
if not j then return 0 end
)lua";

inline constexpr char extend_lease[] = R"lua(
remove(j)
j.vesting = now + ARGV[6]
put(j)
call('ZADD', claimed, decimal(j.vesting), j.id)
save(j)
no_later_than(j.vesting)
return 1
)lua";

inline constexpr char start_job[] = R"lua(
if holds_while_running[j.strategy] then
  local id = call('HGET', runs, j.key)
  local other = id and id ~= j.id and look(id)
  if other and state_of(other) == LEASED then return {other.vesting - now, id} end
  call('HSET', runs, j.key, j.id)
end
if start_frees_key[j.strategy] then free(j) end
return 1
)lua";

inline constexpr char requeue_job[] = R"lua(
if j.attempts >= j.max_attempts then
  bury(j, ARGV[7])
  settle()
  return 2
end
note(j, nil, nil, ARGV[7])
wait_again(j, now + ARGV[6])
no_later_than(j.vesting)
return 1
)lua";

inline constexpr char snooze_job[] = R"lua(
note(j, ARGV[7])
j.attempts, j.snoozes = math.max(j.attempts - 1, 0), j.snoozes + 1
wait_again(j, now + ARGV[6])
no_later_than(j.vesting)
return 1
)lua";

inline constexpr char return_job[] = R"lua(
j.attempts = math.max(j.attempts - 1, 0)
wait_again(j, j.unclaimed)
no_later_than(j.vesting)
return 1
)lua";

inline constexpr char bury_job[] = R"lua(
bury(j, ARGV[6])
settle()
return 1
)lua";

/// The end of `rarely`.
inline constexpr char complete_rarely[] = R"lua(
return function(id, raw, result)
  local j = parse(id, raw)
  if result ~= '' and j.retention > 0 then note(j, nil, result) end
  finish(j, COMPLETED)
end
end
)lua";

/// ARGV: 3 for each job. Jobs that are simply over are written together.
inline constexpr char complete_jobs[] = R"lua(
local ARGV, pack, unpacked = ARGV, struct.pack, struct.unpack
local n, out, seen = (#ARGV - 3) / 3, {}, {}
local found, ranks, ids, fields, k, f, finish = find_all(n, 4, 3), {}, {}, {}, 0, 0, nil
local function write()
  if k == 0 then return end
  call('ZREM', index, unpack(ranks, 1, k))
  call('ZREM', claimed, unpack(ids, 1, k))
  call('HDEL', jobs, unpack(fields, 1, f))
  increase('completed', k)
  k, f = 0, 0
end
for i = 1, n do
  local at = 3 * i
  local id, by, raw, outcome = ARGV[at + 1], tonumber(ARGV[at + 2]), found[i], 1
  if seen[id] then
    write()
    raw = call('HGET', jobs, id)
  end
  if sound(id, raw) then
    local _, vesting, _, last, holder, priority, ended, extras, _, _, _, _, strategy, _, _, _,
      retention = unpacked(form, raw)
    if vesting > now and by ~= 0 and by == last then
      if ended == COMPLETED then outcome = 0 end
      if ended == PENDING and holder > 0 then
        outcome = 0
        if strategy == 0 and retention == 0 then
          k, f = k + 1, f + 1
          ranks[k], ids[k], fields[f] = pack('>BI8', priority, vesting) .. id, id, id
          if extras > 0 then
            fields[f + 1], fields[f + 2] = id .. 'b', id .. 'n'
            f = f + 2
          end
          if k == 500 then write() end
        else
          finish = finish or rarely()
          finish(id, raw, ARGV[at + 3])
        end
      end
    end
  end
  seen[id], out[i] = true, outcome
end
write()
if finish then tidy(n) end
settle()
return out
)lua";

/// ARGV: id, whether to end a running one, too.
inline constexpr char cancel_job[] = R"lua(
tidy(1)
local j = find(ARGV[4])
if not j then return 3 end
local state = state_of(j)
if state == LEASED and ARGV[5] == '0' then return 1 end
if state == COMPLETED or state == DEAD then return 2 end
if state ~= CANCELLED then finish(j, CANCELLED) end
settle()
return 0
)lua";

/// ARGV: after which death, limit.
inline constexpr char list_dead_letters[] = R"lua(
local most, out = tonumber(ARGV[5]), {}
local found =
  call('ZRANGEBYSCORE', dead, '(' .. ARGV[4], '9007199254740992', 'LIMIT', 0, most + 1)
local n, shown = 0, 0
while n < most and n < #found do
  local id = found[n + 1]
  local raw = call('HGET', jobs, id)
  if #id == 16 and sound(id, raw) then  -- what is damaged is skipped
    if not fits(out, id, raw) then break end
    shown = shown + 1
  end
  n = n + 1
end
return {now, shown, out, #found > n and math.ceil(tonumber(call('ZSCORE', dead, found[n]))) or 0}
)lua";

/// ARGV: id, delay. 0: there is no such dead job, 1: it waits again; or who has its key.
inline constexpr char replay_dead_letter[] = R"lua(
local j = find(ARGV[4])
if not j or j.ended ~= DEAD then return 0 end
local other = holds_while_waiting[j.strategy] and possessor(j.key)
if other and other ~= j.id then return {other} end
if end_frees_key[j.strategy] then hold(j.key, j.id, 0) end
call('ZREM', dead, j.id)
j.ended, j.attempts, j.snoozes, j.deadline_from = PENDING, 0, 0, now
j.vesting = now + ARGV[5]
put(j)
save(j)
no_later_than(j.vesting)
return 1
)lua";

inline constexpr char purge_job[] = R"lua(
tidy(1)
local j = find(ARGV[4])
if not j or j.ended == PENDING then return 0 end
if j.ended == COMPLETED then count('completed', -1) end
if j.ended == CANCELLED then count('cancelled', -1) end
count('purged', 1)
drop(j)
settle()
return 1
)lua";

}  // namespace lua

template <class C>
redis_call lease_call(redis_script const& script, redis_names const& names, C const& c,
                      redis_now now) {
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id)).arg(c.fence);
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::extend_lease const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::tell,          lua::queue,       lua::form,
                                   lua::sound,  lua::record,        lua::find,        lua::leased,
                                   lua::lease,  lua::typed,         lua::index,       lua::flags,
                                   lua::holds,  lua::no_later_than, lua::extend_lease};
  auto out = lease_call(script, names, c, now);
  out.arg(redis_ceil(c.lease));
  return out;
}
inline result<lease_renewal> decode(command::extend_lease const& c, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return lease_renewal{redis_ceil(c.lease)};
}

inline result<redis_call> encode(redis_names const& names, command::start_job const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::queue,  lua::form,     lua::sound,
                                   lua::record, lua::find,   lua::leased,   lua::lease,
                                   lua::typed,  lua::unique, lua::start_job};
  return lease_call(script, names, c, now);
}
inline result<started> decode(command::start_job const&, redis_reply& r) {
  if (r.is_array()) {
    r.array(2);
    started out{start_outcome::blocked, r.micros()};
    out.other = r.id();
    return out;
  }
  if (!r.boolean()) return errc::lease_lost;
  return started{};
}

inline result<redis_call> encode(redis_names const& names, command::requeue_job const& c,
                                 redis_now now) {
  static redis_script const script{
      lua::common, lua::tell,          lua::keep,       lua::queue,  lua::form,       lua::sound,
      lua::record, lua::find,          lua::leased,     lua::lease,  lua::typed,      lua::index,
      lua::unique, lua::erase,         lua::ends,       lua::settle, lua::wait_again, lua::flags,
      lua::holds,  lua::no_later_than, lua::requeue_job};
  auto out = lease_call(script, names, c, now);
  out.arg(redis_ceil(c.delay)).arg(rule::kept_reason(c.reason));
  return out;
}
inline result<requeue_outcome> decode(command::requeue_job const&, redis_reply& r) {
  auto const n = r.number<std::uint8_t>();
  if (n > 2) r.fail();
  if (n == 0) return errc::lease_lost;
  return n == 1 ? requeue_outcome::requeued : requeue_outcome::dead_lettered;
}

inline result<redis_call> encode(redis_names const& names, command::snooze_job const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::tell,          lua::queue,      lua::form,
                                   lua::sound,  lua::record,        lua::find,       lua::leased,
                                   lua::lease,  lua::typed,         lua::index,      lua::unique,
                                   lua::erase,  lua::ends,          lua::wait_again, lua::flags,
                                   lua::holds,  lua::no_later_than, lua::snooze_job};
  auto out = lease_call(script, names, c, now);
  out.arg(redis_ceil(c.delay)).arg(c.memo);
  return out;
}
inline result<redis_call> encode(redis_names const& names, command::return_job const& c,
                                 redis_now now) {
  static redis_script const script{
      lua::common,     lua::tell,   lua::queue, lua::form,          lua::sound,     lua::record,
      lua::find,       lua::leased, lua::lease, lua::typed,         lua::index,     lua::unique,
      lua::wait_again, lua::flags,  lua::holds, lua::no_later_than, lua::return_job};
  return lease_call(script, names, c, now);
}
inline result<redis_call> encode(redis_names const& names, command::bury_job const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::keep,   lua::queue,  lua::form,
                                   lua::sound,  lua::record, lua::find,   lua::leased,
                                   lua::lease,  lua::typed,  lua::index,  lua::unique,
                                   lua::erase,  lua::ends,   lua::settle, lua::bury_job};
  auto out = lease_call(script, names, c, now);
  out.arg(rule::kept_reason(c.reason));
  return out;
}
template <class C>
  requires std::is_same_v<C, command::snooze_job> || std::is_same_v<C, command::return_job> ||
           std::is_same_v<C, command::bury_job>
result<hint> decode(C const&, redis_reply& r) {
  if (!r.boolean()) return errc::lease_lost;
  return hint{};
}

inline result<redis_call> encode(redis_names const& names, command::complete_jobs const& c,
                                 redis_now now) {
  static redis_script const script{
      lua::common, lua::keep, lua::queue,           lua::form,   lua::sound,        lua::find_all,
      lua::erase,  lua::tidy, lua::settle,          lua::rarely, lua::record,       lua::index,
      lua::unique, lua::ends, lua::complete_rarely, lua::typed,  lua::complete_jobs};
  auto out = queue_call(script, names, c, now);
  for (auto const& j : c.jobs) out.arg(redis_id(j.id)).arg(j.fence).arg(j.result);
  return out;
}
inline result<command::complete_jobs::result> decode(command::complete_jobs const& c,
                                                     redis_reply& r) {
  command::complete_jobs::result out;
  r.array(c.jobs.size());
  for (std::size_t i = 0; i != c.jobs.size() && r.good(); ++i) {
    out.push_back(read_enum(r, complete_outcome::lease_lost));
  }
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::cancel_job const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::keep,   lua::queue,     lua::form,
                                   lua::sound,  lua::record, lua::find,      lua::index,
                                   lua::unique, lua::erase,  lua::ends,      lua::tidy,
                                   lua::settle, lua::typed,  lua::cancel_job};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id)).arg(c.running ? 1 : 0);
  return out;
}
inline result<cancel_outcome> decode(command::cancel_job const&, redis_reply& r) {
  return read_enum(r, cancel_outcome::not_found);
}

/// Error: `invalid_option` for a cursor that no page gave.
inline result<redis_call> encode(redis_names const& names, command::list_dead_letters const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,   lua::queue,  lua::form,
                                   lua::sound,    lua::record, lua::find,
                                   lua::describe, lua::fits,   lua::list_dead_letters};
  std::int64_t after = 0;
  auto const* const end = c.cursor.data() + c.cursor.size();
  if (!c.cursor.empty()) {
    auto const [at, ec] = std::from_chars(c.cursor.data(), end, after);
    if (ec != std::errc{} || at != end || after < 0) return errc::invalid_option;
  }
  auto out = queue_call(script, names, c, now);
  out.arg(after).arg(c.limit);
  return out;
}
inline result<job_page> decode(command::list_dead_letters const&, redis_reply& r) {
  job_page out;
  r.array(4);
  out.jobs = read_jobs<job>(r);
  if (auto const last = r.number<std::uint64_t>()) out.cursor = std::to_string(last);
  return out;
}

inline result<redis_call> encode(redis_names const& names, command::replay_dead_letter const& c,
                                 redis_now now) {
  static redis_script const script{lua::common,
                                   lua::tell,
                                   lua::queue,
                                   lua::form,
                                   lua::sound,
                                   lua::record,
                                   lua::find,
                                   lua::index,
                                   lua::unique,
                                   lua::erase,
                                   lua::ends,
                                   lua::possessor,
                                   lua::flags,
                                   lua::holds,
                                   lua::no_later_than,
                                   lua::typed,
                                   lua::replay_dead_letter};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id)).arg(redis_ceil(c.delay));
  return out;
}
inline result<replayed> decode(command::replay_dead_letter const&, redis_reply& r) {
  if (r.is_array()) {
    r.array(1);
    return replayed{replay_outcome::conflict, r.id()};
  }
  return replayed{r.boolean() ? replay_outcome::replayed : replay_outcome::not_found};
}

inline result<redis_call> encode(redis_names const& names, command::purge_job const& c,
                                 redis_now now) {
  static redis_script const script{lua::common, lua::keep,   lua::queue,    lua::form,
                                   lua::sound,  lua::record, lua::find,     lua::index,
                                   lua::unique, lua::erase,  lua::ends,     lua::tidy,
                                   lua::settle, lua::typed,  lua::purge_job};
  auto out = queue_call(script, names, c, now);
  out.arg(redis_id(c.id));
  return out;
}
inline result<bool> decode(command::purge_job const&, redis_reply& r) { return r.boolean(); }

}  // namespace weir::detail

#endif
