// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_NEMESIS_HPP
#define WEIR_TEST_SOAK_NEMESIS_HPP

#include "soak/engine.hpp"
#include "soak/family.hpp"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace soak {

/// Something that goes wrong for a while.
struct fault {
  std::string name;
  std::chrono::milliseconds least;
  std::chrono::milliseconds most;
  std::function<void()> begin;
  std::function<void()> end;
};

/// The engine that is judged: one that was started here, or one that is there.
class target {
 public:
  virtual ~target() = default;
  target() = default;
  target(target const&) = delete;
  target& operator=(target const&) = delete;
  /// Where it is, for those that no fault of the network concerns.
  [[nodiscard]] virtual opening direct() const = 0;
  /// What may befall the engine itself.
  [[nodiscard]] virtual std::vector<fault> faults() { return {}; }
  /// Does it forget all that it had when it is killed, as it was started?
  [[nodiscard]] virtual bool forgets() const { return false; }
};

/// Starts the engine of this name, or uses the one at the URL. @param scenario may need it to be
/// small; @param lasting what it acknowledges survives its own end
std::unique_ptr<target> make_target(std::string const& name, std::string const& url,
                                    std::string const& scenario, bool lasting,
                                    std::string const& directory);

/// The network between the application and the engine, or nothing where there is none.
class network {
 public:
  explicit network(opening const& to);
  network(network const&) = delete;
  network& operator=(network const&) = delete;
  ~network();
  /// Where the engine is, through the network.
  [[nodiscard]] opening through() const;
  [[nodiscard]] std::vector<fault> faults();
  void heal();

 private:
  struct state;
  opening to_;
  std::unique_ptr<state> state_;
};

/// What may befall the application's processes.
[[nodiscard]] std::vector<fault> faults_of(family& f, std::function<std::uint64_t()> chance);

/// The version of the engine, in words.
[[nodiscard]] std::string version_of(std::string const& name);

}  // namespace soak

#endif
