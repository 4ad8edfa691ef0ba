// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_MISTAKES_HPP
#define WEIR_TEST_INTEGRATION_MISTAKES_HPP

#include "documented.hpp"
#include "heard_log.hpp"
#include "patience.hpp"
#include "weir/error.hpp"
#include "weir/limiter.hpp"
#include "weir/quota.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/uniqueness.hpp"
#include "weir/worker.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The rows of docs/errors.md are what users see first of a mistake. Each is produced here, and
// compared with the page.
namespace weir_test {

/// The first line that the page shows for a row, by the name in its last column.
[[nodiscard]] inline std::string shown_line(std::string const& row) {
  std::ifstream in{std::filesystem::path{project_folder} / "docs/errors.md"};
  for (std::string line; std::getline(in, line);) {
    if (!line.ends_with("| `" + row + "` |")) continue;
    auto const begin = line.find(" | `") + std::string_view{" | `"}.size();
    return line.substr(begin, line.find("` | ", begin) - begin);
  }
  return {};
}

/// Texts that differ from run to run, and what stands for them on the page.
using names = std::vector<std::pair<std::string, std::string>>;

/// Compares what was seen with the page.
inline void compare_row(std::string const& row, std::string seen, names const& known = {}) {
  for (auto const& [text, name] : known) {
    for (auto at = seen.find(text); at != seen.npos; at = seen.find(text, at + name.size())) {
      seen.replace(at, text.size(), name);
    }
  }
  // What an exception's text adds of a code's number, which another version may change.
  if (auto const at = seen.find(" [weir:"); at != seen.npos) seen.resize(at);
  BOOST_TEST(seen == shown_line(row),
             "ROW\t" << row << "\t" << seen << "\n  the page has " << shown_line(row));
}

/// As a program shows the error of a call.
[[nodiscard]] inline std::string told(weir::error_code const& ec) {
  return ec ? "error: " + ec.message() : "no error";
}

/// Executes a command, and waits for its end.
template <class Store, class Command>
[[nodiscard]] weir::error_code outcome(boost::asio::io_context& io, Store const& store,
                                       Command const& c) {
  std::optional<weir::error_code> out;
  store.async_execute(c, [&](weir::error_code ec, typename Command::result const&) { out = ec; });
  BOOST_TEST_REQUIRE(happens(io, [&] { return out.has_value(); }));
  return *out;
}

/// How a worker ends by itself, which nobody stops.
template <class Store>
[[nodiscard]] weir::error_code end_of_a_worker(boost::asio::io_context& io, Store const& store) {
  weir::worker worker{store};
  std::optional<weir::error_code> ended;
  worker.async_run([&](weir::error_code ec) { ended = ec; });
  BOOST_TEST_REQUIRE(happens(io, [&] { return ended.has_value(); }));
  return *ended;
}

/// The first thing that is told while a command is executed, or at its end.
template <class Store>
[[nodiscard]] std::string first_line(boost::asio::io_context& io, Store const& store,
                                     heard_log const& heard) {
  // The command may end after this.
  auto const out = std::make_shared<std::optional<weir::error_code>>();
  store.async_execute(weir::command::acquire_lock{"key", "me", std::chrono::minutes{1}},
                      [out](weir::error_code ec, weir::lock_grant const&) { *out = ec; });
  auto const told_of = [&] { return out->has_value() || !heard.first().empty(); };
  BOOST_TEST_REQUIRE(happens(io, told_of));
  return heard.first().empty() ? told(**out) : heard.first();
}

/// Compares what is told first where a store is made of these URLs.
template <class Store, class Options>
void compare_row_of(std::string const& name, std::string const& urls, names const& known,
                    Options const& o) {
  heard_log const heard;
  boost::asio::io_context io;
  std::string seen;
  try {
    Store const store{io.get_executor(), urls, o};
    store.async_run([](weir::error_code) {});
    seen = first_line(io, store, heard);
    store.close();
    io.restart();
    io.run();
  } catch (boost::system::system_error const& e) {
    seen = std::string{"exception: "} + e.what();
  }
  compare_row(name, seen, known);
}

/// F87: nobody has called `async_run` on a store.
template <class Store, class Address, class Options>
void F87_a_forgotten_run_is_named(std::string const& row, Address const& address, Options o) {
  heard_log const heard;
  boost::asio::io_context io;
  o.offline_patience = std::chrono::milliseconds{50};
  Store const store{io.get_executor(), address, o};
  BOOST_TEST(store.last_failure().text == "async_run was not called on this store");
  auto const ec = outcome(io, store, weir::command::inspect_lock{"key"});
  BOOST_TEST((ec == weir::errc::store_unavailable));
  BOOST_TEST(ec.message().ends_with("async_run was not called on this store"), ec.message());
  compare_row(row, heard.first());
}

/// F87: a store is stopped while its callers are at work. Each call ends with `store_unavailable`,
/// by the patience of its handle, since the store's own is not over while the test lasts; a limit
/// in use ends with `timed_out`.
///
/// @param stop lets the store answer no more, and comes back once nothing is under way with it
template <class Store, class Stop>
void F87_calls_end_when_the_store_is_stopped(boost::asio::io_context& io, Store const& store,
                                             Stop stop) {
  using namespace std::chrono_literals;
  using weir::errc;
  auto const hasty = store.with_patience(200ms);
  weir::limiter const limiter{hasty, {.limit = 1, .ttl = 10min, .poll = 50ms}};
  weir::uniqueness const once{hasty, {.ttl = 10min, .poll = 50ms}};
  weir::rate_limiter const rates{hasty, weir::quota::per_second(5)};
  std::optional<weir::error_code> out;
  weir::permit held;
  auto const end = [&](auto start) {
    out.reset();
    start([&](weir::error_code ec, auto const&...) { out = ec; });
    BOOST_TEST_REQUIRE(happens(io, [&] { return out.has_value(); }));
    return *out;
  };

  // What a slow machine does not answer in time is asked again.
  auto const got = [&] {
    out.reset();
    weir::limiter{store, {.limit = 1, .ttl = 10min}}.async_try_acquire(
        "busy", [&](weir::error_code ec, std::optional<weir::permit> p) {
          out = ec;
          if (p) held = std::move(*p);
        });
    BOOST_TEST_REQUIRE(happens(io, [&] { return out.has_value(); }));
    return static_cast<bool>(held);
  };
  BOOST_TEST_REQUIRE(got());
  weir::limiter const patient{store, {.limit = 1, .ttl = 10min, .poll = 50ms}};
  auto const in_use = end([&](auto h) {
    patient.async_acquire("busy", {.wait = 5s},
                          [h](weir::error_code ec, weir::permit const&) { h(ec); });
  });
  BOOST_TEST((in_use == errc::timed_out), in_use.message());

  // In mid-run: one waits.
  std::optional<weir::error_code> waited;
  limiter.async_acquire("busy", {.wait = 15s},
                        [&](weir::error_code ec, weir::permit const&) { waited = ec; });
  for (auto const until = std::chrono::steady_clock::now() + 200ms;
       std::chrono::steady_clock::now() < until;) {
    io.restart();
    io.run_for(50ms);
  }
  stop();
  BOOST_TEST_REQUIRE(happens(io, [&] { return waited.has_value(); }));
  BOOST_TEST((*waited == errc::store_unavailable), waited->message());

  auto const is_away = [](weir::error_code const& ec) { return ec == errc::store_unavailable; };
  auto const acquired = end([&](auto h) {
    limiter.async_acquire("busy", {.wait = 1s},
                          [h](weir::error_code ec, weir::permit const&) { h(ec); });
  });
  BOOST_TEST(is_away(acquired), acquired.message());
  auto const tried = end([&](auto h) {
    limiter.async_try_acquire(
        "free", [h](weir::error_code ec, std::optional<weir::permit> const&) { h(ec); });
  });
  BOOST_TEST(is_away(tried), tried.message());
  auto const locked = end([&](auto h) {
    once.async_try_lock("key", [h](weir::error_code ec, auto const&) { h(ec); });
  });
  BOOST_TEST(is_away(locked), locked.message());
  auto const taken = end([&](auto h) {
    rates.async_try_take("key", [h](weir::error_code ec, weir::decision const&) { h(ec); });
  });
  BOOST_TEST(is_away(taken), taken.message());
  weir::new_job job;
  job.id = weir::job_id{{1}};
  job.kind = "kind";
  job.max_attempts = 1;
  BOOST_TEST(is_away(outcome(io, hasty, weir::command::enqueue_jobs{"queue", {&job, 1}})));
}

}  // namespace weir_test

#endif
