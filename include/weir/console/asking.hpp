// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_ASKING_HPP
#define WEIR_CONSOLE_ASKING_HPP

#include "weir/command/jobs.hpp"
#include "weir/console/any_store.hpp"
#include "weir/error.hpp"
#include "weir/job_queue.hpp"
#include "weir/registered_worker.hpp"

#include <boost/algorithm/hex.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

// How consoles ask a store: `weirctl`, and the page.
namespace weir::detail {

inline constexpr auto as_value = boost::asio::as_tuple(boost::asio::use_awaitable);

/// How many commands are under way at once.
inline constexpr std::size_t in_flight = 32;

/// Begins an operation for each thing, all at once, and waits for all of them: their errors, and
/// their answers, in the order of the things.
template <class T, class Things, class Begin>
boost::asio::awaitable<std::pair<std::vector<error_code>, std::vector<T>>> together(
    Things const& things, Begin begin) {
  namespace experimental = boost::asio::experimental;
  std::vector<decltype(begin(*things.begin()))> operations;
  for (auto const& thing : things) operations.push_back(begin(thing));
  auto group = experimental::make_parallel_group(std::move(operations));
  auto all = group.async_wait(experimental::wait_for_all(), boost::asio::use_awaitable);
  auto [order, errors, values] = co_await std::move(all);
  co_return std::pair{std::move(errors), std::move(values)};
}

/// The outcome for one job: done, refused and left as it is, or not there, as others were faster.
enum class verdict { done, refused, gone };
/// A verdict, and why.
using judgement = std::pair<verdict, std::string>;

[[nodiscard]] inline judgement judge(cancel_outcome const& o) {
  switch (o) {
    case cancel_outcome::cancelled: return {verdict::done, {}};
    case cancel_outcome::running: return {verdict::refused, "it is leased"};
    case cancel_outcome::ended: return {verdict::refused, "it has ended another way"};
    default: return {verdict::gone, "there is no record of it in this queue"};
  }
}
[[nodiscard]] inline judgement judge(replayed const& r) {
  switch (r.outcome) {
    case replay_outcome::replayed: return {verdict::done, {}};
    case replay_outcome::conflict:
      return {verdict::refused,
              "its unique key was taken meanwhile, by job " + boost::uuids::to_string(r.other)};
    default: return {verdict::gone, "there is no such dead letter in this queue"};
  }
}
[[nodiscard]] inline judgement judge(bool const& purged) {
  if (purged) return {verdict::done, {}};
  return {verdict::gone, "there is no record of such a job that has ended"};
}

using console_queue = job_queue<console_store>;

/// How many jobs of a queue are in a state.
[[nodiscard]] inline std::uint64_t count_of(queue_stats const& q, job_state state) {
  switch (state) {
    case job_state::pending: return q.pending;
    case job_state::leased: return q.leased;
    case job_state::completed: return q.completed;
    case job_state::dead: return q.dead;
    default: return q.cancelled;
  }
}

/// How many records a queue has, or more: of what has ended all are counted.
[[nodiscard]] inline std::uint64_t records_of(queue_stats const& q) {
  return q.pending + q.leased + q.dead + q.completed + q.cancelled;
}

/// A page of the jobs in one state; of dead letters the oldest first.
inline boost::asio::awaitable<result<job_page>> list_state(console_queue q, std::string name,
                                                           job_state state, std::uint32_t limit,
                                                           std::string cursor) {
  error_code ec;
  job_page page;
  if (state == job_state::dead) {
    std::tie(ec, page) = co_await q.async_list_dead_letters(name, limit, cursor, as_value);
  } else {
    std::tie(ec, page) = co_await q.async_list(name, state, limit, cursor, as_value);
  }
  if (ec) co_return ec;
  co_return page;
}

/// Some queues, and how many jobs they have.
struct queue_listing {
  std::vector<std::pair<std::string, queue_stats>> queues;
  std::string cursor;  ///< to go on; empty: there are no more
};

/// Lists queues of all shards. Those that weir keeps for itself are left out unless `under` begins
/// with `weir.`.
///
/// @param under what their names begin with
/// @param limit how many at most; 20 pages are looked at
/// @param cursor the number of a shard and the last name of the page before, in hexadecimal digits
inline boost::asio::awaitable<result<queue_listing>> list_queues(console_queue q, std::string under,
                                                                 std::uint32_t limit,
                                                                 std::string cursor) {
  std::uint32_t shard = 0;
  std::string after;
  auto const dot = cursor.find('.');
  try {
    if (dot != cursor.npos)
      boost::algorithm::unhex(cursor.substr(dot + 1), std::back_inserter(after));
  } catch (boost::algorithm::hex_decode_error const&) {
    co_return make_error_code(errc::invalid_option);
  }
  auto const* const end = cursor.data() + std::min(dot, cursor.size());
  auto const [read, bad] = std::from_chars(cursor.data(), end, shard);
  if (!cursor.empty() && (dot == cursor.npos || bad != std::errc{} || read != end)) {
    co_return make_error_code(errc::invalid_option);
  }
  // Stores go on behind the name that a cursor is, which need not be a queue's: so what is before
  // the prefix is not listed.
  auto before = under;
  if (!before.empty() && before.back()-- == '\0') before.pop_back();
  if (!under.empty() && before.size() == under.size()) before += '\xff';
  bool const with_kept = under.starts_with("weir.");

  queue_listing out;
  auto const shards = q.get_store().shard_count();
  if (!cursor.empty() && shard >= shards) co_return make_error_code(errc::invalid_option);
  for (int pages = 0; shard < shards && out.queues.size() < limit && pages != 20; ++pages) {
    auto const room = limit - static_cast<std::uint32_t>(out.queues.size());
    auto const from = after.empty() ? before : after;
    auto const [ec, page] = co_await q.async_list_queues(shard, room, from, as_value);
    if (ec) co_return ec;
    after = page.cursor;
    std::vector<std::string> names;
    for (auto const& name : page.queues) {
      if (!name.starts_with(under)) {
        if (name > under) after.clear();  // nothing more of this shard
      } else if (with_kept || !is_kept_by_weir(name)) {
        names.push_back(name);
      }
    }
    for (std::span<std::string const> rest{names}; !rest.empty();) {
      auto const some = rest.first(std::min(in_flight, rest.size()));
      rest = rest.subspan(some.size());
      auto const [errors, stats] =
          co_await together<queue_stats>(some, [&q](std::string const& name) {
            return q.async_stats(name, boost::asio::deferred);
          });
      for (std::size_t i = 0; i != some.size(); ++i) {
        if (errors[i]) co_return errors[i];
        out.queues.emplace_back(some[i], stats[i]);
      }
    }
    if (after.empty()) ++shard;
  }
  if (shard < shards) out.cursor = std::to_string(shard) + "." + boost::algorithm::hex_lower(after);
  co_return out;
}

/// Workers of the register.
struct worker_listing {
  std::vector<registered_worker> workers;
  std::string cursor;  ///< to go on; empty: there are no more
};

/// Lists workers of the register, up to `limit`, the living first, by name.
inline boost::asio::awaitable<result<worker_listing>> list_workers(console_queue q,
                                                                   std::uint32_t limit,
                                                                   std::string cursor) {
  auto page = co_await list_state(q, std::string{workers_queue}, job_state::pending, limit, cursor);
  if (page.has_error()) co_return page.error();
  worker_listing out;
  out.cursor = std::move(page->cursor);
  for (auto const& j : page->jobs) out.workers.push_back(registered_worker_of(j));
  std::ranges::sort(out.workers, {}, [](registered_worker const& w) {
    return std::tuple{!w.seems_alive(), std::string_view{w.name}, std::string_view{w.holder}};
  });
  co_return out;
}

}  // namespace weir::detail

#endif
