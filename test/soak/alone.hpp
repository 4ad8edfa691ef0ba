// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_ALONE_HPP
#define WEIR_TEST_SOAK_ALONE_HPP

#include "soak/scenarios.hpp"
#include "soak/target.hpp"

#include <string>

namespace soak {

/// Plays one scenario on an engine of its own, and prints what was seen.
/// @param w      the engine; what else the scenario wants of it is added
/// @param defect what is put in, or empty
/// @return did it hold; or, with a defect, was that found
bool play_alone(scenario const& s, wish w, std::uint64_t seed, std::string const& defect);

}  // namespace soak

#endif
