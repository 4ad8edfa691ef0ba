// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_NEMESIS_HPP
#define WEIR_TEST_SOAK_NEMESIS_HPP

#include "soak/engine.hpp"
#include "soak/family.hpp"
#include "soak/target.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace soak {

/// The network between the application and the engine, or nothing where there is none.
class network {
 public:
  /// @param to where the engine is; empty: no network is put before it
  explicit network(opening to);
  network(network const&) = delete;
  network& operator=(network const&) = delete;
  ~network();
  /// Where the engine is, through the network.
  [[nodiscard]] opening through() const;
  [[nodiscard]] std::vector<fault> faults();
  /// Delays each message by up to this.
  void lengthen(std::chrono::milliseconds by);
  void heal();

 private:
  struct state;
  opening to_;
  std::unique_ptr<state> state_;
};

/// The faults of the application's processes, and the guests that come for a while.
/// @param start  starts a process of a role
/// @param owners is one process the owner of what others ask for?
[[nodiscard]] std::vector<fault> faults_of(family& f, chance_source chance,
                                           std::function<void(std::string)> start, bool owners);

}  // namespace soak

#endif
