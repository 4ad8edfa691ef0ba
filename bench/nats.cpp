// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the store adds to what its writes cost: commands of the store, so many in flight at once on
// its one connection, beside the same writes made by hand with the C client and its threads on one
// connection to the same server: a create, and an update at the revision that the create was given.
//
//     bench_nats [pairs in a round] [rounds]

#include "weir/store/nats.hpp"

#include "../test/integration/nats_process.hpp"
#include "paired.hpp"
#include "report.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace nats_test;

double rate(std::uint64_t n, std::chrono::steady_clock::time_point start) {
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(n) / took.count();
}

/// Pairs of writes by the C client alone.
class by_hand {
 public:
  by_hand(server const& s, std::uint64_t pairs, std::uint64_t in_flight, std::string round)
      : pairs_{pairs},
        round_{std::move(round)} {
    auto const url = "nats://127.0.0.1:" + std::to_string(s.port());
    natsOptions* options = nullptr;
    check(natsOptions_Create(&options));
    check(natsOptions_SetURL(options, url.c_str()));
    // Otherwise what is sent waits for a millisecond, for more to be sent with it.
    check(natsOptions_SetSendAsap(options, in_flight == 1));
    check(natsConnection_Connect(&connection_, options));
    natsOptions_Destroy(options);
    check(natsConnection_Subscribe(&inbox_, connection_, "by.hand.*", &by_hand::on_reply, this));
    start_ = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i != in_flight; ++i) begin();
    done_.acquire();
    rate_ = rate(pairs_, start_);
  }
  by_hand(by_hand const&) = delete;
  by_hand& operator=(by_hand const&) = delete;
  ~by_hand() {
    natsSubscription_Destroy(inbox_);
    natsConnection_Destroy(connection_);
  }
  [[nodiscard]] double per_second() const noexcept { return rate_; }

 private:
  static void check(natsStatus s) {
    if (s != NATS_OK) throw std::runtime_error{natsStatus_GetText(s)};
  }
  void begin() {
    auto const n = begun_++;
    if (n < pairs_) write(n, "0", 'c');
  }
  void write(std::uint64_t n, char const* expected, char step) {
    auto const subject = "weir.k.l.hand" + round_ + std::to_string(n);
    auto const reply = "by.hand." + std::string{step} + std::to_string(n);
    natsMsg* message = nullptr;
    std::string const value(64, 'x');
    check(natsMsg_Create(&message, subject.c_str(), reply.c_str(), value.data(),
                         static_cast<int>(value.size())));
    check(natsMsgHeader_Set(message, "Nats-Expected-Last-Subject-Sequence", expected));
    check(natsMsgHeader_Set(message, "Nats-TTL", "120s"));
    check(natsConnection_PublishMsg(connection_, message));
    natsMsg_Destroy(message);
  }
  static void on_reply(natsConnection*, natsSubscription*, natsMsg* m, void* closure) {
    auto& self = *static_cast<by_hand*>(closure);
    std::string const subject{natsMsg_GetSubject(m)};
    std::string const text{natsMsg_GetData(m), static_cast<std::size_t>(natsMsg_GetDataLength(m))};
    natsMsg_Destroy(m);
    auto const at = text.find("\"seq\":");
    if (at == text.npos) std::abort();
    auto const sequence = std::to_string(std::strtoull(text.c_str() + at + 6, nullptr, 10));
    auto const n = std::strtoull(subject.c_str() + 9, nullptr, 10);
    if (subject[8] == 'c') return self.write(n, sequence.c_str(), 'u');
    if (++self.ended_ == self.pairs_) return self.done_.release();
    self.begin();
  }

  std::uint64_t pairs_;
  std::string round_;
  natsConnection* connection_ = nullptr;
  natsSubscription* inbox_ = nullptr;
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<std::uint64_t> ended_ = 0;
  std::binary_semaphore done_{0};
  std::chrono::steady_clock::time_point start_{};
  double rate_ = 0;
};

class rig {
 public:
  explicit rig(server const& s) : store_{io_.get_executor(), s.address()} {
    store_.async_run(boost::asio::detached);
  }
  rig(rig const&) = delete;
  rig& operator=(rig const&) = delete;
  ~rig() {
    store_.close();
    io_.restart();
    io_.run();
  }
  [[nodiscard]] nats_store const& store() const noexcept { return store_; }

  /// Runs chains, in each of which one follows the other, until there were enough. `one(n, next)`
  /// does the n-th, and calls `next`.
  double together(std::uint64_t n, std::uint64_t in_flight,
                  std::function<void(std::uint64_t, std::function<void()>)> const& one) {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::function<void()> next = [&] {
      if (begun != n)
        one(begun++, [&] {
          ++ended;
          next();
        });
    };
    auto const start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i != in_flight; ++i) next();
    io_.restart();
    while (ended != n) io_.run_one();
    return rate(n, start);
  }

 private:
  boost::asio::io_context io_{};
  nats_store store_;
};

void must(error_code ec) {
  if (ec) throw std::runtime_error{ec.message()};
}

}  // namespace

int main(int argc, char** argv) {
  auto const number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  auto const pairs = number(1, 10'000);
  auto const rounds = number(2, 5);
  server s;
  rig r{s};
  constexpr duration ttl = 60s;
  quota const quotas[] = {quota::per_second(1'000'000).burst(1'000'000)};
  int round = 0;

  using measurement = std::function<double(std::uint64_t in_flight, std::uint64_t n)>;
  measurement const lock_pairs = [&](std::uint64_t in_flight, std::uint64_t n) {
    auto const begin = "r" + std::to_string(++round) + "-";
    return r.together(n, in_flight, [&](std::uint64_t i, std::function<void()> next) {
      auto const key = std::make_shared<std::string>(begin + std::to_string(i));
      r.store().async_execute(
          command::acquire_lock{*key, "holder", ttl},
          [&, key, next = std::move(next)](error_code ec, lock_grant const& g) mutable {
            must(ec);
            r.store().async_execute(command::release_lock{*key, "holder", g.fence},
                                    [key, next = std::move(next)](error_code e, lease_release) {
                                      must(e);
                                      next();
                                    });
          });
    });
  };
  measurement const permit_pairs = [&](std::uint64_t in_flight, std::uint64_t n) {
    auto const begin = "r" + std::to_string(++round) + "-";
    return r.together(n, in_flight, [&](std::uint64_t i, std::function<void()> next) {
      auto const key = std::make_shared<std::string>(begin + std::to_string(i));
      r.store().async_execute(
          command::acquire_permit{*key, "holder", 10, ttl, {}},
          [&, key, next = std::move(next)](error_code ec, permit_grant const& g) mutable {
            must(ec);
            r.store().async_execute(command::release_permit{*key, "holder", g.fence},
                                    [key, next = std::move(next)](error_code e, lease_release) {
                                      must(e);
                                      next();
                                    });
          });
    });
  };
  measurement const shared_permit_pairs = [&](std::uint64_t in_flight, std::uint64_t n) {
    return r.together(n, in_flight, [&](std::uint64_t i, std::function<void()> next) {
      auto const holder = std::make_shared<std::string>(std::to_string(i));
      r.store().async_execute(
          command::acquire_permit{"key", *holder, 100, ttl, {}},
          [&, holder, next = std::move(next)](error_code ec, permit_grant const& g) mutable {
            must(ec);
            r.store().async_execute(command::release_permit{"key", *holder, g.fence},
                                    [holder, next = std::move(next)](error_code e, lease_release) {
                                      must(e);
                                      next();
                                    });
          });
    });
  };
  measurement const takes = [&](std::uint64_t in_flight, std::uint64_t n) {
    return r.together(n, in_flight, [&](std::uint64_t, std::function<void()> next) {
      r.store().async_execute(command::take{"key", quotas, 1, {}},
                              [next = std::move(next)](error_code ec, decision const&) {
                                must(ec);
                                next();
                              });
    });
  };
  measurement const by_hand_pairs = [&](std::uint64_t in_flight, std::uint64_t n) {
    return by_hand{s, n, in_flight, "r" + std::to_string(++round) + "-"}.per_second();
  };

  weir_bench::report out{"nats"};
  for (std::uint64_t const in_flight : {std::uint64_t{64}, std::uint64_t{1}}) {
    auto const n = in_flight == 1 ? pairs / 10 : pairs;
    auto const of = [&](measurement const& m) { return [&, m] { return m(in_flight, n); }; };
    auto const taken =
        weir_bench::in_turn(rounds, {of(lock_pairs), of(by_hand_pairs), of(permit_pairs),
                                     of(shared_permit_pairs), of(takes)});
    auto const at = ", " + std::to_string(in_flight) + " in flight";
    auto const beside = [&](std::string name, std::size_t which) {
      weir_bench::row line{.name = name + at, .unit = "/s", .ours = taken[which]};
      line.reference_name = "the same writes by hand";
      line.reference = taken[1];
      if (in_flight != 1) line.goal = weir_bench::ratio_at_least(0.8);
      out.add(std::move(line));
    };
    out.section(std::to_string(in_flight) + " in flight, on one connection");
    beside("lock acquire and release, a key each", 0);
    beside("permit acquire and release, a key each", 2);
    out.add({.name = "permit acquire and release, one key" + at, .unit = "/s", .ours = taken[3]});
    out.add({.name = "take, one key" + at, .unit = "/s", .ours = taken[4]});
  }
  out.finish();
}
