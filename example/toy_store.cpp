// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A store of your own, held to weir's promises: a toy that keeps locks in a map. One of two makes
// the oldest mistake there is, releasing a lock by its key without asking whose it is, and is told
// so; the other keeps every promise.

#include "weir/clock/manual.hpp"
#include "weir/command/locks.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/validate.hpp"
#include "weir/testing/conformance/locks.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

// What the store does: one step for each command. A lock is over once its time has come.
struct toy_locks {
  struct entry {
    std::string holder;  // empty: nobody
    std::uint64_t fence = 0;
    weir::time_point expiry{};
  };
  bool careful;
  std::map<std::string, entry> locks{};

  entry& find(std::string_view key, weir::time_point now) {
    auto& lock = locks[std::string{key}];
    if (now >= lock.expiry) lock.holder.clear();
    return lock;
  }
  weir::result<weir::lock_grant> step(weir::command::acquire_lock const& c, weir::time_point now) {
    auto& lock = find(c.key, now);
    if (lock.holder.empty())
      lock = {std::string{c.holder}, weir::rule::next_fence(lock.fence, now), now + c.ttl};
    if (lock.holder == c.holder) return weir::lock_grant{true, lock.fence, lock.expiry - now, {}};
    return weir::lock_grant{false, 0, lock.expiry - now, lock.holder};
  }
  weir::result<weir::lease_renewal> step(weir::command::renew_lock const& c, weir::time_point now) {
    auto& lock = find(c.key, now);
    if (lock.holder != c.holder || lock.fence != c.fence) return weir::errc::lease_lost;
    lock.expiry = now + c.ttl;
    return weir::lease_renewal{c.ttl};
  }
  weir::result<weir::lease_release> step(weir::command::release_lock const& c,
                                         weir::time_point now) {
    auto& lock = find(c.key, now);
    bool const own = lock.holder == c.holder && (c.fence == 0 || lock.fence == c.fence);
    bool const frees = careful ? own : !lock.holder.empty();  // the mistake
    if (frees) lock.holder.clear();
    return weir::lease_release{frees, false};
  }
  weir::result<weir::lock_info> step(weir::command::inspect_lock const& c, weir::time_point now) {
    auto& lock = find(c.key, now);
    if (lock.holder.empty()) return weir::lock_info{};
    return weir::lock_info{true, lock.holder, lock.fence, lock.expiry - now};
  }
};

// How it is asked: a handle, which completes by posting and never inline.
struct toy_store {
  using executor_type = boost::asio::any_io_executor;

  executor_type executor;
  weir::manual_clock clock;
  std::shared_ptr<toy_locks> locks;

  executor_type get_executor() const noexcept { return executor; }

  template <class C, class Token>
    requires requires(toy_locks& l, C const& c, weir::time_point now) { l.step(c, now); }
  auto async_execute(C const& c, Token&& token) {
    auto run = [self = *this](auto handler, C const& command) {
      weir::result<typename C::result> answer = weir::rule::validate(command);
      if (!answer.error()) answer = self.locks->step(command, self.clock.system_now());
      auto value = answer ? *answer : typename C::result{};
      auto done = boost::asio::append(std::move(handler), answer.error(), std::move(value));
      boost::asio::post(self.executor, std::move(done));
    };
    using signature = void(weir::error_code, typename C::result);
    auto bound = boost::asio::bind_executor(executor, std::move(run));  // cancel_after asks for it
    return boost::asio::async_initiate<Token, signature>(std::move(bound), token, c);
  }
};

// What the suite has to know of it: how to make one, how to let its time pass, and what it does not
// claim to be.
struct toy_driver {
  bool careful;
  weir::manual_clock clock{};

  toy_store make(boost::asio::any_io_executor const& ex) {
    return {ex, clock, std::make_shared<toy_locks>(careful)};
  }
  void advance(weir::duration d) { clock.advance(d); }
  weir::testing::capabilities declared() const {
    weir::testing::capabilities c;
    c.thread_safe = false;
    return c;
  }
};

weir::testing::report examine(bool careful) {
  toy_driver driver{careful};
  weir::testing::report found;
  weir::testing::conformance::locks(driver, found);
  return found;
}

// It takes any completion token, one that bounds the wait, too.
bool is_free(std::string_view key) {
  boost::asio::io_context io;
  auto store = toy_driver{true}.make(io.get_executor());
  bool free = false;
  auto note = [&](weir::error_code ec, weir::lock_info const& i) { free = !ec && !i.held; };
  store.async_execute(weir::command::inspect_lock{key},
                      boost::asio::cancel_after(std::chrono::seconds{10}, note));
  io.run();
  return free;
}

}  // namespace

int main() {
  auto const careless = examine(false);
  std::cout << "The careless one:\n" << careless;
  auto const careful = examine(true);
  std::cout << "\nThe careful one:\n" << careful;

  auto const& all = careless.findings();
  bool const told = std::any_of(all.begin(), all.end(), [](auto const& f) {
    return f.outcome == weir::testing::verdict::failed && f.number == "F13";
  });
  return told && careful.ok() && is_free("key") ? 0 : 1;
}
