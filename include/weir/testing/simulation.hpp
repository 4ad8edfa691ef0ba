// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_HPP
#define WEIR_TESTING_SIMULATION_HPP

/// @file
/// Whole programs in a simulated world: hosts with skewed clocks that crash and come back, a store
/// behind a bad network, and virtual time, all by one seed. After every step the promises are
/// checked; after a while all heals, and everything must come to its end.
///
/// The models are the simulators of FoundationDB (Zhou et al., SIGMOD 2021) and TigerBeetle (VOPR).
///
///     struct my_program final : simulation::program<engine> { ... };  // see simulation::run
///     auto const r = simulation::run<my_program>({.seed = 7}, make_engine);
///     if (r.failure) std::cout << r.failure->promise << ": " << r.failure->detail;
///
/// Equal seeds make equal runs (`run_result::trace`), provided that the program takes all that is
/// random from its cluster: from `world::choices`, and from `node::ids` where the library asks for
/// an `id_source`.

#include "weir/testing/simulation/bodies.hpp"
#include "weir/testing/simulation/cluster.hpp"
#include "weir/testing/simulation/nemesis.hpp"
#include "weir/testing/simulation/run.hpp"

#endif
