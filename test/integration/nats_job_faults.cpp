// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs on NATS over connections that end before, in and after every kind of message, and processes
// that end with them, in the middle of an image among others.

#include "nats_server.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using weir::testing::fault_proxy;
using weir::testing::planned_fault;
using weir::testing::proxy_ending;
using weir::testing::proxy_fault;
using weir::testing::proxy_rates;
using weir::testing::traffic;

job_id id_of(std::uint32_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 4; ++i) {
    out.data[12 + i] = static_cast<std::uint8_t>(n >> (24 - 8 * i));
  }
  return out;
}

nats_options with_images(std::string_view prefix) {
  nats_options o;
  o.prefix = prefix;
  o.offline_patience = 20s;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 20ms;
  o.image_interval = 4096;
  return o;
}

bool is_transport(error_code ec) {
  return ec == errc::outcome_unknown || ec == errc::store_unavailable;
}

/// A store whose connections are not to be relied on.
struct shaky {
  shaky(server const& s, nats_options const& o)
      : proxy{io.get_executor(), {boost::asio::ip::address_v4::loopback(), s.port()}},
        store{io.get_executor(),
              nats_address::parse("nats://127.0.0.1:" + std::to_string(proxy.endpoint().port()))
                  .value(),
              o} {
    store.async_run([](error_code) {});
  }
  shaky(shaky const&) = delete;
  shaky& operator=(shaky const&) = delete;
  ~shaky() {
    store.close();
    proxy.async_close();
    io.restart();
    io.run();
  }
  template <class C>
  [[nodiscard]] result<typename C::result> operator()(C const& c) {
    return ask(io, store, c);
  }

  boost::asio::io_context io{};
  fault_proxy proxy;
  nats_store store;
};

template <class On>
error_code enqueue(On& on, std::uint32_t n) {
  static std::string const payload(100, 'p');
  new_job j;
  j.id = id_of(n);
  j.kind = "kind";
  j.payload = payload;
  auto const r = on(command::enqueue_jobs{"queue", {&j, 1}});
  return r.has_error() ? r.error() : error_code{};
}

/// Asks until there is an answer.
template <class On, class C>
typename C::result insist(On& on, C const& c) {
  static_assert(C::repeatable);
  for (;;) {
    auto r = on(c);
    if (r.has_value()) return std::move(r).value();
    BOOST_TEST_REQUIRE(is_transport(r.error()), r.error().message());
  }
}

/// Claims and completes whatever there is, and says what that was.
std::set<job_id> drain(bed& on) {
  std::set<job_id> seen;
  for (std::uint64_t n = 1;; ++n) {
    auto const got = insist(on, command::dequeue_jobs{"queue", "drain", n, 100, 1h});
    if (got.jobs.empty()) return seen;
    std::vector<finished_job> ended;
    for (auto const& j : got.jobs) {
      BOOST_TEST(j.attempt == 1U);
      BOOST_TEST(seen.insert(j.id).second);
      ended.push_back({j.id, j.fence, {}});
    }
    for (auto const o : insist(on, command::complete_jobs{"queue", ended})) {
      BOOST_TEST((o == complete_outcome::completed));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_job_faults)

// Each round a process ends with its connection, somewhere else in what it does; what it does most
// is to write images.
BOOST_AUTO_TEST_CASE(R4_a_process_that_ends_anywhere_leaves_every_job_that_was_acknowledged) {
  server s;
  stranger who{s};
  int round = 0;
  std::uint64_t cuts = 0;
  std::uint64_t images = 0;
  for (std::uint64_t message = 6; message < 126; message += 4) {
    for (auto const direction : {traffic::to_server, traffic::to_client}) {
      auto const prefix = "end" + std::to_string(++round);
      auto const o = with_images(prefix);
      std::set<job_id> acknowledged;
      std::uint32_t asked = 0;
      {
        shaky on{s, o};
        std::array const faults{proxy_fault::cut_before, proxy_fault::cut_in,
                                proxy_fault::cut_after};
        planned_fault cut{.fault = faults[static_cast<std::size_t>(round) % 3],
                          .direction = direction,
                          .message = message};
        cut.ending = round % 2 == 0 ? proxy_ending::reset : proxy_ending::fin;
        on.proxy.script({cut});
        auto const was_cut = [&] {
          auto const c = on.proxy.counts();
          return c.cut_before + c.cut_in + c.cut_after;
        };
        while (was_cut() == 0 && asked != 150) {
          auto const ec = enqueue(on, ++asked);
          if (!ec) acknowledged.insert(id_of(asked));
          if (ec) BOOST_TEST(is_transport(ec), ec.message());
        }
        cuts += was_cut();
      }
      BOOST_TEST_CONTEXT("round " << round << ", message " << message) {
        bed after{s, o};
        auto const seen = drain(after);
        for (auto const& id : acknowledged) BOOST_TEST(seen.contains(id));
        BOOST_TEST(seen.size() <= asked);
        auto const all = insist(after, command::read_queue_stats{"queue"});
        BOOST_TEST(all.enqueued == seen.size());
        BOOST_TEST(all.completed == seen.size());
      }
      auto const info = nlohmann::json::parse(who.ask("$JS.API.STREAM.INFO." + prefix + "-jobs-0"));
      images += info["state"]["first_seq"] > 1 ? 1U : 0U;
    }
  }
  BOOST_TEST(cuts > 30U);
  BOOST_TEST(images > 15U);
}

BOOST_AUTO_TEST_CASE(R4_a_network_that_breaks_all_the_time_loses_no_job_and_repeats_none) {
  server s;
  auto o = with_images("chaos");
  o.health_check_interval = 200ms;
  o.request_timeout = 1s;
  std::map<job_id, std::uint32_t> ended;
  std::uint64_t cuts = 0;
  {
    shaky one{s, o};
    shaky other{s, o};
    std::uint64_t seed = 1;
    for (auto* on : {&one, &other}) {
      proxy_rates rates;
      rates.seed = seed++;
      rates.cut_before = rates.cut_in = rates.cut_after = 1;
      rates.delay = 5;
      rates.max_delay = 5ms;
      on->proxy.chaos(rates);
    }
    for (std::uint32_t n = 1; n != 120; ++n) {
      auto& in = n % 2 == 0 ? one : other;
      auto& out = n % 3 == 0 ? one : other;
      while (auto const ec = enqueue(in, n)) BOOST_TEST_REQUIRE(is_transport(ec), ec.message());
      auto const got = insist(out, command::dequeue_jobs{"queue", "me", n, 1, 1h});
      BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
      BOOST_TEST(got.jobs[0].attempt == 1U);
      ++ended[got.jobs[0].id];
      finished_job const f{got.jobs[0].id, got.jobs[0].fence, {}};
      (void)insist(in, command::complete_jobs{"queue", {&f, 1}});
    }
    for (auto* on : {&one, &other}) {
      auto const c = on->proxy.counts();
      cuts += c.cut_before + c.cut_in + c.cut_after;
    }
  }
  BOOST_TEST(ended.size() == 119U);
  for (auto const& [id, times] : ended) BOOST_TEST(times == 1U);
  BOOST_TEST(cuts > 5U);
  bed after{s, o};
  auto const all = insist(after, command::read_queue_stats{"queue"});
  BOOST_TEST(all.enqueued == 119U);
  BOOST_TEST(all.completed == 119U);
}

BOOST_AUTO_TEST_SUITE_END()
