// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SIMULATION_AUDIT_HPP
#define WEIR_TESTING_SIMULATION_AUDIT_HPP

#include "weir/concept.hpp"
#include "weir/testing/simulation/bucket_audit.hpp"
#include "weir/testing/simulation/job_audit.hpp"
#include "weir/testing/simulation/lease_audit.hpp"
#include "weir/testing/simulation/world.hpp"
#include "weir/time.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace weir::testing::simulation {

/// Sees every step that the store makes, and its answer, and then what the store has.
class audit {
 public:
  explicit audit(world& in) : leases{in}, buckets{in}, jobs{in} {}

  /// @param now the store's time at the step
  template <class Engine, class C>
  void after(Engine& engine, C const& c, result<typename C::result> const& a, time_point now) {
    if constexpr (requires { leases.on(c, a, now); }) {
      leases.on(c, a, now);
      end_leases(engine, now);
      if constexpr (of_locks<C>) {
        auto const found = engine.execute(command::inspect_lock{.key = c.key});
        if (found.has_value()) leases.compare(c.key, found.value(), now);
      } else {
        auto const found = engine.execute(command::inspect_permits{.key = c.key, .limit = 0});
        if (found.has_value()) leases.compare(c.key, found.value(), now);
      }
    } else if constexpr (requires { buckets.on(c, a, now); }) {
      buckets.on(c, a, now);
    } else {
      job_audit::probe look{[&](std::string_view queue, job_id id) -> std::optional<job> {
        auto found = engine.execute(command::find_job{.queue = queue, .id = id});
        if (found.has_error()) return std::nullopt;
        return std::move(found).value();
      }};
      if constexpr (requires { jobs.on(c, a, now, look); }) {
        jobs.on(c, a, now, look);
        if constexpr (requires { c.queue; }) {
          auto const stats = engine.execute(command::read_queue_stats{.queue = c.queue});
          if (stats.has_value()) jobs.compare(c.queue, stats.value());
        }
        jobs.pass(now);
        visible_queues due;
        for (std::uint32_t shard = 0; shard != engine.shard_count(); ++shard) {
          for (bool const schedules : {false, true}) {
            auto found = engine.execute(command::scan_visible_queues{
                .shard = shard, .limit = 1000, .schedules = schedules});
            if (found.has_error()) return;
            for (auto& queue : found.value().queues) due.queues.push_back(std::move(queue));
          }
        }
        jobs.compare_scan(due, now);
      }
    }
  }

  /// Somebody is about to wait for a hint: the store looks, and may end what is over.
  template <class Engine>
  void before_wait(Engine& engine, time_point now) {
    end_leases(engine, now);
  }

  lease_audit leases;
  bucket_audit buckets;
  job_audit jobs;

 private:
  template <class Engine>
  void end_leases(Engine& engine, time_point now) {
    leases.end_all(now, [&](std::string_view key, bool lock) {
      if (lock) {
        static_cast<void>(engine.execute(command::inspect_lock{.key = key}));
      } else {
        static_cast<void>(engine.execute(command::inspect_permits{.key = key, .limit = 0}));
      }
    });
  }

  template <class C>
  static constexpr bool of_locks =
      std::same_as<C, command::acquire_lock> || std::same_as<C, command::renew_lock> ||
      std::same_as<C, command::release_lock>;
};

}  // namespace weir::testing::simulation

#endif
