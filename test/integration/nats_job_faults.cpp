// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs on NATS over connections that end before, in and after every kind of message, and processes
// that end with them, in the middle of an image among others.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using network_test::certain;
using network_test::insist;
using network_test::is_transport;
using weir::testing::fault_proxy;
using weir::testing::planned_fault;
using weir::testing::proxy_ending;
using weir::testing::proxy_fault;
using weir::testing::proxy_rates;
using weir::testing::traffic;
namespace asio = boost::asio;

std::string const payload(100, 'p');

/// A store whose connections are not to be relied on.
struct shaky {
  shaky(asio::io_context& on, server const& s, nats_options const& o)
      : io{on},
        proxy{io.get_executor(), {asio::ip::address_v4::loopback(), s.port()}},
        store{io.get_executor(),
              nats_address::parse("nats://127.0.0.1:" + std::to_string(proxy.endpoint().port()))
                  .value(),
              o} {
    store.async_run([](error_code) {});
  }
  shaky(shaky const&) = delete;
  shaky& operator=(shaky const&) = delete;
  ~shaky() {
    close();
    io.restart();
    io.run();
  }
  void close() {
    if (std::exchange(closed, true)) return;
    store.close();
    proxy.async_close();
  }
  template <class C>
  [[nodiscard]] result<typename C::result> operator()(C const& c) {
    return ask(io, store, c);
  }
  [[nodiscard]] std::uint64_t cuts() const {
    auto const c = proxy.counts();
    return c.cut_before + c.cut_in + c.cut_after;
  }

  asio::io_context& io;
  fault_proxy proxy;
  nats_store store;
  bool closed = false;
};

/// How often each job was given to somebody.
using givings = std::map<job_id, std::uint32_t>;

/// Enqueues jobs from this number on at one store, and for each takes one at the other. There is
/// one then, whoever else does the same.
asio::awaitable<void> pass_on(nats_store in, nats_store out, std::uint64_t from, givings& given) {
  auto const holder = "from " + std::to_string(from);
  for (auto n = from; n != from + 20; ++n) {
    auto j = job_of(n, payload);
    j.retention = 1h;  // who asks again finds that it was done, although others have done the job
    command::enqueue_jobs const add{"queue", {&j, 1}};
    co_await insist(in, add);
    command::dequeue_jobs const take{"queue", holder, n, 1, 1h};
    auto const got = co_await insist(out, take);
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    BOOST_TEST(got.jobs[0].attempt == 1U);
    ++given[got.jobs[0].id];
    finished_job const f{got.jobs[0].id, got.jobs[0].fence, {}};
    command::complete_jobs const end{"queue", {&f, 1}};
    co_await insist(in, end);
  }
}

/// Claims and completes whatever there is, and says what that was.
std::set<job_id> drain(bed& on) {
  std::set<job_id> seen;
  for (std::uint64_t n = 1;; ++n) {
    auto const got = certain(on, command::dequeue_jobs{"queue", "drain", n, 100, 1h});
    if (got.jobs.empty()) return seen;
    std::vector<finished_job> ended;
    for (auto const& j : got.jobs) {
      BOOST_TEST(j.attempt == 1U);
      BOOST_TEST(seen.insert(j.id).second);
      ended.push_back({j.id, j.fence, {}});
    }
    for (auto const o : certain(on, command::complete_jobs{"queue", ended})) {
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
        asio::io_context io;
        shaky on{io, s, o};
        std::array const faults{proxy_fault::cut_before, proxy_fault::cut_in,
                                proxy_fault::cut_after};
        planned_fault cut{.fault = faults[static_cast<std::size_t>(round) % 3],
                          .direction = direction,
                          .message = message};
        cut.ending = round % 2 == 0 ? proxy_ending::reset : proxy_ending::fin;
        on.proxy.script({cut});
        while (on.cuts() == 0 && asked != 150) {
          auto const ec = enqueue(on, ++asked, payload);
          if (!ec) acknowledged.insert(id_of(asked));
          if (ec) BOOST_TEST(is_transport(ec), ec.message());
        }
        cuts += on.cuts();
      }
      BOOST_TEST_CONTEXT("round " << round << ", message " << message) {
        bed after{s, o};
        auto const seen = drain(after);
        for (auto const& id : acknowledged) BOOST_TEST(seen.contains(id));
        BOOST_TEST(seen.size() <= asked);
        auto const all = stats(after);
        BOOST_TEST(all.enqueued == seen.size());
        BOOST_TEST(all.completed == seen.size());
      }
      images += log_of(who, prefix).first > 1 ? 1U : 0U;
    }
  }
  BOOST_TEST(cuts > 30U);
  BOOST_TEST(images != 0U);  // how many are done before the end is the machine's matter
}

BOOST_AUTO_TEST_CASE(R4_a_network_that_breaks_all_the_time_loses_no_job_and_repeats_none) {
  server s;
  auto o = with_images("chaos");
  o.health_check_interval = 500ms;
  o.request_timeout = 1s;
  givings given;
  std::uint64_t cuts = 0;
  constexpr std::uint64_t clients = 6;
  {
    asio::io_context io;
    std::uint64_t left = clients;
    shaky one{io, s, o};
    shaky other{io, s, o};
    std::uint64_t seed = 1;
    for (auto* on : {&one, &other}) {
      proxy_rates rates;
      rates.seed = seed++;
      rates.cut_before = rates.cut_in = rates.cut_after = 1;
      rates.delay = 5;
      rates.max_delay = 5ms;
      on->proxy.chaos(rates);
    }
    for (std::uint64_t n = 0; n != clients; ++n) {
      auto const& in = n % 2 == 0 ? one.store : other.store;
      auto const& out = n % 3 == 0 ? one.store : other.store;
      asio::co_spawn(io, pass_on(in, out, 1 + 100 * n, given), [&](std::exception_ptr const& e) {
        BOOST_TEST(!e);
        --left;
      });
    }
    BOOST_TEST(weir_test::happens(io, [&] { return left == 0; }));
    cuts = one.cuts() + other.cuts();
    one.close();  // both, before either is waited for
    other.close();
  }
  BOOST_TEST(given.size() == clients * 20);
  for (auto const& [id, times] : given) BOOST_TEST(times == 1U);
  BOOST_TEST(cuts > 5U);
  bed after{s, o};
  auto const all = stats(after);
  BOOST_TEST(all.enqueued == given.size());
  BOOST_TEST(all.completed == given.size());
}

BOOST_AUTO_TEST_SUITE_END()
