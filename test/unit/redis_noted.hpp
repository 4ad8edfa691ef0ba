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

#include <boost/asio/any_io_executor.hpp>
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
    sent = true;
    if (when_sent) std::exchange(when_sent, {})();
    return true;
  }
  void complete(weir::detail::redis_reply&) noexcept override { told = weir::error_code{}; }
  void fail(weir::error_code ec) noexcept override { told = ec; }

  mutable std::function<void()> when_sent{};
  mutable bool sent = false;
  bool too_late = false;
  std::optional<weir::error_code> told{};
};

/// The server's connection falls silent and is called anew, and in each turn until then somebody
/// asks. The connection is closed a few turns before a link is told: the server knows who came too
/// late, and they have to be answered in the end. It is played again where nobody was late, since
/// both happened in one turn.
///
/// @param make       `make(executor, address)`: what is asked, a pointer
/// @param is_command is this one of those who ask?
template <class Make, class IsCommand>
void ask_while_the_connection_ends(Make make, IsCommand is_command) {
  std::size_t late = 0;
  for (int i = 0; late == 0 && i != 20; ++i) {
    boost::asio::io_context io;
    puppet server{io};
    auto const to = make(boost::asio::any_io_executor{io.get_executor()}, server.address());
    server.act([&](puppet::guest& by, puppet::words const& w) {
      if (!is_command(w)) return false;
      server.calls() == 1 ? by.fall_silent() : by.say(lock_free);
      return true;
    });
    to->run({});
    std::vector<std::shared_ptr<noted>> all;
    while (server.calls() != 2) {
      all.push_back(std::make_shared<noted>(to->names()));
      all.back()->when_sent = [r = all.back().get(), &server] { r->too_late = server.was_left(); };
      to->submit(all.back());
      io.restart();
      io.run_one_for(100ms);
      // What is made in one turn differs each time.
      for (auto n = all.size() % (static_cast<std::size_t>(i) + 1); n != 0; --n) io.poll_one();
    }
    for (auto const& r : all) {
      run_until(io, [&] { return r->told.has_value(); });
      late += r->too_late;
      // What was not sent to a server that is gone is done by the next one, and known.
      bool const unknown = *r->told == weir::errc::outcome_unknown;
      BOOST_TEST((!*r->told || unknown), r->told->message());
      BOOST_TEST((!unknown || (r->sent && !r->too_late)), "outcome_unknown of what was not sent");
    }
    to->close();
    server.close();
    io.restart();
    io.run();
  }
  BOOST_TEST(late > 0U);
}

}  // namespace redis_test

#endif
