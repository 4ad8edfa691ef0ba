// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_WHOLE_WORKER_HPP
#define WEIR_TEST_CONFORMANCE_WHOLE_WORKER_HPP

#include "integration/patience.hpp"
#include "weir/backoff/constant.hpp"
#include "weir/codec.hpp"
#include "weir/job_progress.hpp"
#include "weir/job_queue.hpp"
#include "weir/worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A worker on a store, by the store's own time: what its handlers hand over, what they are told,
// and what comes back to those who wait. The commands by themselves are the suite's.
namespace weir_test {

/// A job that is read by its codec, whatever that is.
struct rows {
  int first = 0;
  int last = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(rows, first, last)
template <class Codec>
struct rows_in : rows {};

/// The outcome of it.
struct imported {
  int count = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(imported, count)

/// A job that goes on until it is told to stop.
struct endless {};
inline void to_json(nlohmann::json& j, endless const&) { j = nlohmann::json::object(); }
inline void from_json(nlohmann::json const&, endless&) {}

}  // namespace weir_test

template <class Codec>
struct weir::job_traits<weir_test::rows_in<Codec>> {
  static constexpr std::string_view kind = Codec::name;
  static constexpr Codec codec{};
  static constexpr std::uint32_t max_attempts = 3;
  static constexpr constant_backoff backoff{std::chrono::milliseconds{1}};
  static constexpr duration retention = std::chrono::hours{1};
};
template <>
struct weir::job_traits<weir_test::endless> {
  static constexpr std::string_view kind = "endless";
};

namespace weir_test {

/// Fails once, and goes on from where it was.
template <class Codec>
boost::asio::awaitable<imported> import_rows(rows_in<Codec> const& job, weir::job_context& c) {
  if (c.attempt() == 1) {
    c.progress(3, 10, Codec::name);
    co_await c.async_checkpoint(std::to_string(job.first + 3));
    throw std::runtime_error{"the database is away"};
  }
  co_return imported{job.last - std::stoi(std::string{c.last_checkpoint()})};
}

template <class Store>
class whole_worker {
 public:
  whole_worker(boost::asio::io_context& io, Store const& store)
      : io_{io},
        queue_{store},
        // No renewal says that a job was cancelled: what does is the store's hint.
        worker_{store, {.lease = std::chrono::hours{1}, .poll = std::chrono::milliseconds{100}}} {}

  void keeps_its_promises() {
    namespace asio = boost::asio;
    bool runs = false;
    bool stopped = false;
    worker_.template handle<endless>(
        [&](endless const&, weir::job_context& c) -> asio::awaitable<void> {
          asio::steady_timer never{co_await asio::this_coro::executor,
                                   asio::steady_timer::time_point::max()};
          runs = true;
          co_await never.async_wait(asio::as_tuple(asio::use_awaitable));
          stopped = c.stop_requested();
        });
    handle<weir::cbor_codec>();
    handle<weir::message_pack_codec>();
    handle<weir::raw_codec>();
    std::optional<weir::error_code> ended;
    worker_.async_run([&](weir::error_code ec) { ended = ec; });

    come_back_with_their_results<weir::cbor_codec>();
    come_back_with_their_results<weir::message_pack_codec>();
    come_back_with_their_results<weir::raw_codec>();

    auto const id = enqueue(endless{});
    BOOST_TEST_REQUIRE(happens(io_, [&] { return runs; }));
    auto const outcome = answer<weir::cancel_outcome>(
        [&](auto h) { queue_.async_cancel("default", id, true, std::move(h)); });
    BOOST_TEST((outcome == weir::cancel_outcome::cancelled));
    BOOST_TEST(happens(io_, [&] { return stopped; }));

    worker_.stop();
    BOOST_TEST_REQUIRE(happens(io_, [&] { return ended.has_value(); }));
    BOOST_TEST(!*ended, ended->message());
  }

 private:
  template <class Codec>
  void handle() {
    worker_.template handle<rows_in<Codec>>(import_rows<Codec>);
  }

  template <class Codec>
  void come_back_with_their_results() {
    BOOST_TEST_CONTEXT(Codec::name) {
      auto const id = enqueue(rows_in<Codec>{{40, 50}});
      auto const ended = answer<std::optional<weir::job>>(
          [&](auto h) { queue_.async_wait("default", id, {}, std::move(h)); });
      BOOST_TEST_REQUIRE(ended.has_value());
      BOOST_TEST((ended->state == weir::job_state::completed));
      BOOST_TEST(ended->attempts == 2U);
      BOOST_TEST(ended->payload.find(Codec::name) == 1U);
      BOOST_TEST(ended->checkpoint == "43");
      BOOST_TEST(weir::result_as<imported>(*ended).value().count == 7);
      auto const far = weir::job_progress::of(ended->progress);
      BOOST_TEST_REQUIRE(far.has_value());
      BOOST_TEST(far->done == 3U);
      BOOST_TEST(far->total == 10U);
      BOOST_TEST(far->note == Codec::name);
    }
  }

  template <class Job>
  weir::job_id enqueue(Job const& job) {
    return answer<weir::enqueued_job>([&](auto h) { queue_.async_enqueue(job, {}, std::move(h)); })
        .id;
  }

  template <class T, class Start>
  T answer(Start start) {
    std::optional<T> out;
    start([&out](weir::error_code ec, T got) {
      BOOST_TEST(!ec, ec.message());
      out = std::move(got);
    });
    BOOST_TEST_REQUIRE(happens(io_, [&] { return out.has_value(); }));
    return std::move(*out);
  }

  boost::asio::io_context& io_;
  weir::job_queue<Store> queue_;
  weir::worker<Store> worker_;
};

/// On a store with a connection, which its driver makes.
template <class Driver>
void whole_worker_on(Driver& driver) {
  boost::asio::io_context io;
  auto const store = driver.make(io.get_executor());
  store.async_run([](weir::error_code) {});
  whole_worker{io, store}.keeps_its_promises();
  store.close();
  io.restart();
  io.run();
}

}  // namespace weir_test

#endif
