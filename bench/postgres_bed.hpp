// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BENCH_POSTGRES_BED_HPP
#define WEIR_BENCH_POSTGRES_BED_HPP

#include "bed.hpp"
#include "distance.hpp"
#include "postgres_rig.hpp"
#include "weir/store/postgres.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace weir_bench {

/// In a database of its own, of a server that all share, if no other is given.
class postgres_bed : public bed<weir::postgres_store> {
 public:
  static constexpr char const* name = "postgres";

  /// @param round_trip how far the server is away
  explicit postgres_bed(weir::duration round_trip = {})
      : postgres_bed{shared(), "synchronous_commit = on", round_trip} {}
  /// @param settings of the database
  postgres_bed(postgres_test::server const& server, std::string const& settings,
               weir::duration round_trip = {})
      : server_{server},
        way_{far_from(server.port(), round_trip)},
        store_{io().get_executor(),
               postgres_test::conninfo_to(way_ ? way_->port() : server.port(), create(settings))} {}
  ~postgres_bed() override {
    store_.close();
    io().restart();
    io().run();
    session{server_, "postgres"}.ask("DROP DATABASE " + database_ + " WITH (FORCE)");
  }
  [[nodiscard]] weir::postgres_store const& store() const noexcept override { return store_; }

  /// Waits until the server has removed what is dead, by itself. Its sessions say within ten
  /// seconds what they have left behind.
  void settle() {
    session there{server_, database_};
    for (int quiet = 0, waited = 0; quiet != 15; ++quiet) {
      if (++waited == 600) throw std::runtime_error{"nothing is vacuumed"};
      std::this_thread::sleep_for(std::chrono::seconds{1});
      auto const dead = there.ask("SELECT coalesce(n_dead_tup, 0) FROM pg_stat_user_tables "
                                  "WHERE relid = 'weir.jobs'::regclass");
      if (std::stol(dead) > 5000) quiet = -1;
    }
  }

 private:
  static postgres_test::server const& shared() {
    static postgres_test::server const one;
    return one;
  }
  std::string const& create(std::string const& settings) const {
    session there{server_, "postgres"};
    there.ask("CREATE DATABASE " + database_);
    there.ask("ALTER DATABASE " + database_ + " SET " + settings);
    session{server_, database_}.ask(weir::postgres_migration_sql({}));
    return database_;
  }
  static std::string another() {
    static int made = 0;
    return "bed" + std::to_string(++made);
  }

  postgres_test::server const& server_;
  std::unique_ptr<distance> way_;
  std::string const database_ = another();
  weir::postgres_store store_;
};

}  // namespace weir_bench

#endif
