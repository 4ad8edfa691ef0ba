// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_PATIENCE_HPP
#define WEIR_TEST_INTEGRATION_PATIENCE_HPP

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <thread>

// How long a test waits for what has to happen: until it has, and on a machine that is slow or has
// much else to do, too; but not for ever.
namespace weir_test {

inline constexpr std::chrono::minutes patience{2};

/// Waits until it is so. False: it did not come to that.
template <class Condition>
[[nodiscard]] bool happens(Condition so) {
  auto const give_up = std::chrono::steady_clock::now() + patience;
  while (!so()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return true;
}

/// The same, while this runs.
template <class Condition>
[[nodiscard]] bool happens(boost::asio::io_context& io, Condition so) {
  auto const give_up = std::chrono::steady_clock::now() + patience;
  while (!so()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds{100});
    // There is nothing left to run: somebody else may still do something.
    if (io.stopped()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace weir_test

#endif
