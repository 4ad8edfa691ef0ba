// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_REDIS_NOTED_HPP
#define WEIR_TEST_UNIT_REDIS_NOTED_HPP

#include "redis_puppet.hpp"
#include "weir/command/locks.hpp"
#include "weir/store/redis.hpp"
#include "weir/store/redis/call.hpp"
#include "weir/store/redis/reply.hpp"
#include "weir/store/redis/request.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace redis_test {

/// A command, and what it was told.
struct noted final : weir::detail::redis_request {
  explicit noted(weir::detail::redis_names const& names)
      : redis_request{encode(names, weir::command::inspect_lock{"key"}, {}).value()} {}
  /// Which is asked when it is sent.
  [[nodiscard]] bool wanted() const noexcept override {
    if (when_sent) std::exchange(when_sent, {})();
    return true;
  }
  void complete(weir::detail::redis_reply&) noexcept override { told = weir::error_code{}; }
  void fail(weir::error_code ec) noexcept override { told = ec; }

  mutable std::function<void()> when_sent{};
  bool too_late = false;
  std::optional<weir::error_code> told{};
};

/// Gives commands to `to` until it has called the server for the second time, which falls silent at
/// the first of them. The connection is closed a few turns before a link is told. In each of them
/// somebody asks; the server knows who came too late, and those have to be answered in the end.
/// Returns how many they were: none, where both happened in one turn.
template <class To>
std::size_t ask_while_the_connection_ends(boost::asio::io_context& io, puppet const& server,
                                          To& to) {
  std::vector<std::shared_ptr<noted>> all;
  while (server.calls() != 2) {
    all.push_back(std::make_shared<noted>(to.names()));
    all.back()->when_sent = [r = all.back().get(), &server] { r->too_late = server.was_left(); };
    to.submit(all.back());
    io.restart();
    io.run_one_for(100ms);
  }
  std::size_t late = 0;
  for (auto const& r : all) {
    run_until(io, [&] { return r->told.has_value(); });
    late += r->too_late;
    BOOST_TEST((!*r->told || (!r->too_late && *r->told == weir::errc::outcome_unknown)),
               r->told->message());
  }
  return late;
}

}  // namespace redis_test

#endif
