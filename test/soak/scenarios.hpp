// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_SCENARIOS_HPP
#define WEIR_TEST_SOAK_SCENARIOS_HPP

#include "soak/plan.hpp"
#include "soak/witness.hpp"

#include <boost/asio/awaitable.hpp>

#include <string_view>
#include <vector>

namespace soak {

/// A short soak of one failure.
struct scenario {
  std::string_view name;
  std::string_view failures;  ///< their numbers in the project's list
  std::string_view what;
  bool is_timed = false;  ///< it holds by speed, so the machine has to have nothing else to do
};
[[nodiscard]] std::vector<scenario> const& scenarios();

/// Plays one and writes its verdict: a record of kind `verdict`, whose name is `holds`, `broken` or
/// `left-out` and whose detail says what was seen.
boost::asio::awaitable<void> play_scenario(assignment const& a, store at, witness& log);

}  // namespace soak

#endif
