// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SETTINGS_HPP
#define WEIR_TESTING_SETTINGS_HPP

#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::testing {

/// How long and how hard a run of the suite tries. More finds more; the defaults take a store in
/// memory seconds.
struct settings {
  std::uint64_t seed = 1;          ///< of everything that is generated; a failure names its own
  std::size_t histories = 60;      ///< generated command sequences for each noun
  std::size_t real_histories = 3;  ///< the same where time passes by itself
  std::size_t steps = 60;          ///< commands in each
  std::size_t concurrent = 4;      ///< concurrent histories for each noun
  std::size_t clients = 6;         ///< in each
  std::size_t operations = 60;     ///< of each client
  std::size_t threads = 4;         ///< that run them, where the store may be shared by threads
  std::size_t shrinking = 400;  ///< replays that may be spent on making a failing history shorter
  duration patience = std::chrono::seconds{20};  ///< in real time: how long until an answer is
                                                 ///< given up
  std::uint32_t scale = 1;  ///< in real time: brief leases are that many times longer, for slow
                            ///< machines
  bool until_first_failure = false;  ///< the checks after a failed one are not run
  std::string only{};                ///< run only checks whose number or promise contains this
};

}  // namespace weir::testing

#endif
