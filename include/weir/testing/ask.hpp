// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_ASK_HPP
#define WEIR_TESTING_ASK_HPP

#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/testing/report.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace weir::testing {

/// Executes one command to its end, running `io` meanwhile in the calling thread.
///
/// @param io       the context of the store; nobody else may run it
/// @param patience in real time: how long until the answer is given up
/// @throws broken_promise if no answer came
template <class Store, class C>
  requires executes<Store, C>
result<typename C::result> ask(boost::asio::io_context& io, Store& store, C const& c,
                               std::chrono::nanoseconds patience = std::chrono::seconds{20}) {
  auto const got = std::make_shared<std::optional<result<typename C::result>>>();
  auto on_answer = [got](error_code ec, typename C::result answer) {
    got->emplace(ec);
    if (!ec) got->emplace(std::move(answer));
  };
  store.async_execute(c, boost::asio::bind_executor(io.get_executor(), std::move(on_answer)));
  auto const give_up = std::chrono::steady_clock::now() + patience;
  while (!*got && std::chrono::steady_clock::now() < give_up) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds{10});
  }
  expect(got->has_value(), "a command was never answered");
  return std::move(**got);
}

}  // namespace weir::testing

#endif
