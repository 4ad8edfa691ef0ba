// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the store adds to what its writes cost: commands of the store, so many in flight at once on
// its one connection, beside the same writes made by hand with the C client and its threads on one
// connection to the same server: a create, and an update at the revision that the create was given.
// Medians of the rounds.
//
//     bench_nats [pairs in a round] [in flight] [rounds]

#include "weir/store/nats.hpp"

#include "../test/integration/nats_process.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
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
  auto const pairs = number(1, 20'000);
  auto const in_flight = number(2, 64);
  auto const rounds = number(3, 3);
  server s;
  rig r{s};
  constexpr duration ttl = 60s;
  quota const quotas[] = {quota::per_second(1'000'000).burst(1'000'000)};

  struct line {
    char const* name;
    std::function<double(std::string const&)> run;
  };
  std::vector<line> const lines{
      {"lock acquire+release, a key each",
       [&](std::string const& round) {
         return r.together(pairs, in_flight, [&](std::uint64_t n, std::function<void()> next) {
           auto const key = std::make_shared<std::string>(round + std::to_string(n));
           r.store().async_execute(
               command::acquire_lock{*key, "holder", ttl},
               [&, key, next = std::move(next)](error_code ec, lock_grant const& g) mutable {
                 must(ec);
                 r.store().async_execute(
                     command::release_lock{*key, "holder", g.fence},
                     [key, next = std::move(next)](error_code e, lease_release) {
                       must(e);
                       next();
                     });
               });
         });
       }},
      {"the same writes by hand",
       [&](std::string const& round) { return by_hand{s, pairs, in_flight, round}.per_second(); }},
      {"permit acquire+release, limit 100, one key",
       [&](std::string const&) {
         return r.together(pairs, in_flight, [&](std::uint64_t n, std::function<void()> next) {
           auto const holder = std::make_shared<std::string>(std::to_string(n));
           r.store().async_execute(
               command::acquire_permit{"key", *holder, 100, ttl, {}},
               [&, holder, next = std::move(next)](error_code ec, permit_grant const& g) mutable {
                 must(ec);
                 r.store().async_execute(
                     command::release_permit{"key", *holder, g.fence},
                     [holder, next = std::move(next)](error_code e, lease_release) {
                       must(e);
                       next();
                     });
               });
         });
       }},
      {"take, one key",
       [&](std::string const&) {
         return r.together(pairs, in_flight, [&](std::uint64_t, std::function<void()> next) {
           r.store().async_execute(command::take{"key", quotas, 1, {}},
                                   [next = std::move(next)](error_code ec, decision const&) {
                                     must(ec);
                                     next();
                                   });
         });
       }},
  };
  for (auto const& l : lines) {
    std::vector<double> rates;
    for (std::uint64_t i = 0; i != rounds; ++i)
      rates.push_back(l.run("r" + std::to_string(i) + "-"));
    std::ranges::sort(rates);
    std::printf("%-45s %10.0f /s at %llu in flight\n", l.name, rates[rates.size() / 2],
                static_cast<unsigned long long>(in_flight));
    std::fflush(stdout);
  }
}
