// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The store on a cluster of three servers that loses its leaders: by a request to step down, and by
// kill -9. What was acknowledged stays, no more hold a key than may, and nothing hangs.

#include "nats_crew.hpp"
#include "nats_server.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace {

using namespace nats_test;
using namespace network_test;

std::size_t leader(cluster& c, std::size_t except = cluster::size) {
  return leader_of(c, "weir-keys", except);
}

/// What the clients of one cluster see of each other.
struct audit {
  static constexpr std::uint32_t limit = 3;
  std::uint32_t in_use = 0;
  std::uint64_t last_fence = 0;
  bool locked = false;
  std::uint64_t rounds = 0;
  std::uint64_t certain = 0;
  std::uint64_t unknown = 0;
  bool over = false;
};

asio::awaitable<void> work(nats_store store, audit& all, std::string holder) {
  while (!all.over) {
    command::acquire_permit const ask_permit{"key", holder, audit::limit, lasting, lasting};
    auto permit = co_await insist(store, ask_permit);
    while (!permit.granted) {  // who stands in line stays there until it is its turn
      command::await_permit const wait{"key", holder};
      co_await store.async_execute(wait, tuple);
      permit = co_await insist(store, ask_permit);
    }
    BOOST_TEST(++all.in_use <= audit::limit);

    command::acquire_lock const ask_lock{"key", holder, lasting};
    auto const lock = co_await insist(store, ask_lock);
    if (lock.granted) {
      BOOST_TEST(!std::exchange(all.locked, true));
      BOOST_TEST(lock.fence > all.last_fence);
      all.last_fence = lock.fence;
      command::renew_lock const longer{"key", holder, lock.fence, lasting};
      co_await insist(store, longer);  // it is still ours, or this fails
      all.locked = false;
      command::release_lock const free{"key", holder, lock.fence};
      co_await insist(store, free);
    }

    command::take const take{"key", quotas, 1, {}};
    auto const [ec, taken] = co_await store.async_execute(take, tuple);
    BOOST_TEST((!ec || is_transport(ec)), ec.message());
    if (!ec && taken.allowed) ++all.certain;
    if (ec == errc::outcome_unknown) ++all.unknown;

    --all.in_use;
    command::release_permit const back{"key", holder, permit.fence};
    co_await insist(store, back);
    ++all.rounds;
  }
}

/// Clients at work.
class clients {
 public:
  explicit clients(cluster& c) : all_{c, threefold()} {
    for (std::size_t i = 0; i != 6; ++i) {
      all_.start(work(all_.store(i), seen_, "holder" + std::to_string(i)));
    }
  }

  /// Until each of them could have got on.
  void get_on() {
    auto const enough = seen_.rounds + 30;
    all_.until([&] { return seen_.rounds >= enough; });
  }

  void stop() {
    seen_.over = true;
    all_.until([&] { return all_.working() == 0; });
    auto const left = all_.ask(0, command::peek_bucket{"key", quotas, 1, {}}).remaining;
    BOOST_TEST(left <= tokens - seen_.certain + 1);
    BOOST_TEST(left >= tokens - seen_.certain - seen_.unknown);
    BOOST_TEST(all_.ask(1, command::inspect_permits{"key", 0}).in_use == 0U);
    BOOST_TEST(!all_.ask(2, command::inspect_lock{"key"}).held);
    all_.close();
  }

 private:
  audit seen_{};
  crew all_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_on_a_cluster)

BOOST_AUTO_TEST_CASE(R1_R5_leaders_that_step_down_and_die_are_survived) {
  cluster c;
  clients on{c};
  on.get_on();
  for (int i = 0; i != 2; ++i) {
    step_down(c, "weir-keys");
    on.get_on();
  }
  for (int i = 0; i != 2; ++i) {
    auto const before = leader(c);
    c[before].kill();
    on.get_on();
    BOOST_TEST(leader(c, before) != before);
    c[before].start();
    on.get_on();
  }
  on.stop();
}

BOOST_AUTO_TEST_CASE(F46_without_a_majority_nothing_is_granted_and_nothing_hangs) {
  cluster c;
  auto o = threefold();
  o.offline_patience = 1s;
  bed on{c.addresses(), o};
  auto const got = eventually(on, command::acquire_lock{"key", "me", lasting});
  BOOST_TEST_REQUIRE(got.has_value());
  auto const stays = leader(c);
  for (std::size_t i = 0; i != cluster::size; ++i) {
    if (i != stays) c[i].kill();
  }
  for (int i = 0; i != 3; ++i) {
    auto const refused = on(command::acquire_lock{"other", "me", lasting});
    BOOST_TEST_REQUIRE(refused.has_error());
    BOOST_TEST(is_transport(refused.error()), refused.error().message());
  }
  for (std::size_t i = 0; i != cluster::size; ++i) {
    if (i != stays) c[i].start();
  }
  auto const found = eventually(on, command::inspect_lock{"key"});
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->fence == got->fence);
}

BOOST_AUTO_TEST_SUITE_END()
