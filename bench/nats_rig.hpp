// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_NATS_RIG_HPP
#define WEIR_BENCH_NATS_RIG_HPP

#include "../test/integration/nats_process.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir_bench {

using namespace weir;

inline void must(error_code ec) {
  if (ec) throw std::runtime_error{ec.message()};
}
inline void must(natsStatus s) {
  if (s != NATS_OK) throw std::runtime_error{natsStatus_GetText(s)};
}

/// A handler that goes on with `next`, and wants no error; `kept` lives until then.
template <class Next, class... Kept>
auto going_on(Next next, Kept... kept) {
  return [next = std::move(next), ... kept = std::move(kept)](error_code ec, auto&&...) {
    must(ec);
    next();
  };
}

/// A store that runs on one connection to a server.
class nats_rig {
 public:
  explicit nats_rig(nats_test::server const& s, nats_options const& o = {})
      : store{io_.get_executor(), s.address(), o} {
    store.async_run(boost::asio::detached);
  }
  nats_rig(nats_rig const&) = delete;
  nats_rig& operator=(nats_rig const&) = delete;
  ~nats_rig() {
    store.close();
    io_.restart();
    io_.run();
  }

  template <class C>
  typename C::result ask(C const& c) {
    typename C::result out{};
    bool done = false;
    store.async_execute(c, [&](error_code ec, typename C::result r) {
      must(ec);
      out = std::move(r);
      done = true;
    });
    io_.restart();
    while (!done) io_.run_one();
    return out;
  }

  using step = std::function<void(std::uint64_t, std::function<void()>)>;

  /// Runs chains, in each of which one follows the other, until there were enough. `one(n, next)`
  /// does the n-th, and calls `next`.
  void together(std::uint64_t n, std::uint64_t in_flight, step const& one) {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::function<void()> next = [&] {
      if (begun == n) return;
      one(begun++, [&] {
        ++ended;
        next();
      });
    };
    for (std::uint64_t i = 0; i != in_flight; ++i) next();
    io_.restart();
    while (ended != n) io_.run_one();
  }

 private:
  boost::asio::io_context io_{};

 public:
  nats_store store;
};

/// A connection of the C client with its own threads.
class by_hand {
 public:
  /// @param one_by_one what is sent goes at once, and does not wait for more to go with it
  explicit by_hand(nats_test::server const& s, bool one_by_one) {
    auto const url = "nats://127.0.0.1:" + std::to_string(s.port());
    natsOptions* options = nullptr;
    must(natsOptions_Create(&options));
    must(natsOptions_SetURL(options, url.c_str()));
    must(natsOptions_SetSendAsap(options, one_by_one));
    must(natsConnection_Connect(&connection_, options));
    natsOptions_Destroy(options);
  }
  by_hand(by_hand const&) = delete;
  by_hand& operator=(by_hand const&) = delete;
  ~by_hand() {
    natsSubscription_Destroy(inbox_);
    natsConnection_Destroy(connection_);
  }

 protected:
  void listen(char const* inbox, natsMsgHandler on_reply, void* self) {
    must(natsConnection_Subscribe(&inbox_, connection_, inbox, on_reply, self));
  }
  [[nodiscard]] natsConnection* connection() const noexcept { return connection_; }

 private:
  natsConnection* connection_ = nullptr;
  natsSubscription* inbox_ = nullptr;
};

}  // namespace weir_bench

#endif
