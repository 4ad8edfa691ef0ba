// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_TARGET_HPP
#define WEIR_TEST_SOAK_TARGET_HPP

#include "soak/engine.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace soak {

using namespace std::chrono_literals;

/// Something that goes wrong for a while.
struct fault {
  std::string name;
  std::chrono::milliseconds least;
  std::chrono::milliseconds most;
  std::function<void()> begin;
  std::function<void()> end{};
  /// It may lose all that is acknowledged until so long after its end; empty: it loses nothing.
  std::optional<std::chrono::seconds> forgets{};
  /// By so much later the engine's time may go on when it begins, or has ended.
  std::chrono::seconds leap{};
  std::chrono::seconds leap_at_end{};
};

using chance_source = std::function<std::uint64_t()>;

/// The use that an engine is started for.
struct wish {
  std::string name;  ///< of the engine
  std::string url;   ///< of one that is there, or empty
  bool small = false;
  bool lasting = true;  ///< what it acknowledges survives its own end
  bool clocks = true;   ///< its clock can be moved, even where that takes its toll
  std::string directory;
  chance_source chance;
};

/// The engine that is judged: one that was started here, or one that is there.
class target {
 public:
  target() = default;
  target(target const&) = delete;
  target& operator=(target const&) = delete;
  virtual ~target() = default;
  /// Where it is, for those that no fault of the network concerns.
  [[nodiscard]] virtual opening direct() const = 0;
  /// The faults of the engine itself.
  [[nodiscard]] virtual std::vector<fault> faults() { return {}; }
  /// Faults for scenarios alone, which know what comes of them.
  [[nodiscard]] virtual std::vector<fault> staged() { return {}; }
  /// A library that the application's processes load first: it does what files in the directory
  /// tell it.
  [[nodiscard]] virtual std::string preload() const { return {}; }
  /// How many rows, keys or messages it stores; empty: that is not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> records() { return std::nullopt; }
  /// Of what goes as a whole when its time comes, within a day, how many members the largest has;
  /// then the same of all that there is. Empty: nothing goes like that.
  [[nodiscard]] virtual std::string largest() { return {}; }
  /// How often a process has begun to read a shard; empty: processes have no copies of one.
  [[nodiscard]] virtual std::string beginnings() { return {}; }
};

/// Starts the engine of this name, or uses the one at the URL.
std::unique_ptr<target> make_target(wish const& w);

std::unique_ptr<target> make_redis(wish const& w);
std::unique_ptr<target> make_redis_cluster(wish const& w);
std::unique_ptr<target> make_redis_sentinel(wish const& w);
std::unique_ptr<target> make_nats(wish const& w);
std::unique_ptr<target> make_nats_cluster(wish const& w);
std::unique_ptr<target> make_postgres(wish const& w);
std::unique_ptr<target> make_postgres_standby(wish const& w);
std::unique_ptr<target> make_sqlite(wish const& w);

/// The version of the engine, in words.
[[nodiscard]] std::string version_of(std::string const& name);

}  // namespace soak

#endif
