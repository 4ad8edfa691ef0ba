// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_ENGINE_HPP
#define WEIR_STORE_POSTGRES_ENGINE_HPP

#include "weir/clock/system.hpp"
#include "weir/command/list.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/detail/engine_way.hpp"
#include "weir/detail/patience.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/failure.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/migration_sql.hpp"
#include "weir/store/postgres/migrator.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/pool.hpp"
#include "weir/store/postgres/request.hpp"
#include "weir/store/postgres/step.hpp"
#include "weir/store/postgres/transaction_steps.hpp"
#include "weir/store/postgres/waits.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// What the handles of a PostgreSQL store share. With the last of them what waits ends.
class postgres_engine {
 public:
  postgres_engine(boost::asio::any_io_executor executor, std::string conninfo,
                  postgres_options const& options)
      : executor_{std::move(executor)},
        pool_{std::make_shared<postgres_pool>(executor_, std::move(conninfo), options)},
        waits_{std::make_shared<postgres_waits>(pool_, options.listen_conninfo.empty()
                                                           ? pool_->conninfo()
                                                           : std::string{options.listen_conninfo})},
        patience_{std::make_shared<patience_watch<system_clock>>(
            executor_, [pool = pool_] { return pool->state().gives_up(); })} {}
  postgres_engine(postgres_engine const&) = delete;
  postgres_engine& operator=(postgres_engine const&) = delete;
  ~postgres_engine() { postgres_waits::forsake(waits_); }

  void migrate(boost::asio::any_completion_handler<void(error_code)> handler) {
    auto const run =
        std::make_shared<postgres_migrator>(pool_->strand(), pool_->conninfo(), pool_->options(),
                                            park<error_code>(executor_, std::move(handler)));
    dispatch_task(pool_->strand(), [run] { run->run(); });
  }

  template <class C>
  void execute(C const& c, call_terms const& terms, erased_handler<C> handler) {
    using answer = typename C::result;
    auto const& o = pool_->options();
    postgres_scope const in{.shards = o.shards, .own = true, .listens = o.listen, .at = terms.at};
    if (auto const ec = refusal(c, in)) {
      return post_completion(executor_, std::move(handler), ec, answer{});
    }
    if constexpr (command::waits_for_event<C>) {
      waits_->wait(executor_, std::move(handler), c);
    } else {
      auto const op = park<error_code, answer>(executor_, std::move(handler));
      if (!op->waiting()) return;  // its handler is gone, and with it what the command views
      auto copy = std::make_unique<postgres_command<C>>(op, c, in);
      if (terms.at) pool_->tidy_no_more();
      patience_->add(op, terms.patience);  // which may end it at once
      pool_->submit(std::move(copy));
    }
  }

  [[nodiscard]] store_failure last_failure() const { return pool_->state().last(); }

  void close() {
    waits_->close();
    pool_->close();
  }

 private:
  boost::asio::any_io_executor executor_;
  std::shared_ptr<postgres_pool> pool_;
  std::shared_ptr<postgres_waits> waits_;
  std::shared_ptr<patience_watch<system_clock>> patience_;
};

WEIR_DECL std::shared_ptr<postgres_engine> make_postgres_engine(
    boost::asio::any_io_executor const& executor, std::string conninfo,
    postgres_options const& options) {
  return std::make_shared<postgres_engine>(executor, std::move(conninfo), options);
}

WEIR_DECL void migrate_postgres(postgres_engine& engine,
                                boost::asio::any_completion_handler<void(error_code)> handler) {
  engine.migrate(std::move(handler));
}

WEIR_DECL void close_engine(postgres_engine& engine) { engine.close(); }

WEIR_DECL store_failure last_failure_of(postgres_engine const& engine) {
  return engine.last_failure();
}

}  // namespace weir::detail

namespace weir {

WEIR_DECL std::string postgres_migration_sql(postgres_options const& options, std::uint32_t from,
                                             std::uint32_t to) {
  std::string out;
  if (!detail::valid_schema(options.schema)) return out;
  auto const o = detail::bounded(options);
  from = std::min(from, postgres_schema_version);
  to = std::min(to, postgres_schema_version);
  // There is no way back to a version before, but to none.
  if (to != 0 &&
      (to < postgres_schema_version || (from != 0 && from < detail::postgres_first_schema))) {
    return out;
  }
  auto const add = [&](std::string_view text) { detail::append_sql(out, text, o.schema); };
  add("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;\n");
  // It takes as long as it takes, and names mean what they do by themselves.
  add("SET LOCAL statement_timeout = 0;\n");
  add("SET LOCAL search_path = pg_catalog, pg_temp;\n");
  // Others who do the same wait here, and then fail.
  if (from == 0 && to > 0) add("CREATE SCHEMA IF NOT EXISTS ~;\n");
  add(detail::pgsql::own_schema);
  if (from > 0) {
    // From 5 on others use the tables meanwhile, but those of unique keys.
    add("LOCK TABLE ~.state");
    add(from >= 5 && to > 0 ? " IN SHARE UPDATE EXCLUSIVE MODE;\n" : ";\n");
  }
  if (to == 0) {
    if (from > 0) add("DROP SCHEMA ~ CASCADE;\n");
  } else if (from == 0) {
    for (auto const* const part : detail::pgsql::whole) add(part);
    // Twice at once, or over another version, this fails, and nothing was done.
    add("INSERT INTO ~.state VALUES (true, " + std::to_string(to) + ", " +
        std::to_string(o.shards) + ", -9223372036854775808);\n");
  } else {
    for (auto v = from; v < to; ++v) {
      for (std::string_view part : detail::postgres_migrations[v - detail::postgres_first_schema]) {
        constexpr std::string_view made = "\nCREATE FUNCTION ";
        for (auto at = part.find(made); at != std::string_view::npos; at = part.find(made)) {
          add(part.substr(0, at));
          add("\nCREATE OR REPLACE FUNCTION ");
          part.remove_prefix(at + made.size());
        }
        add(part);
      }
    }
    add("UPDATE ~.state SET version = " + std::to_string(to) + ";\n");
  }
  add("COMMIT;\n");
  return out;
}

}  // namespace weir

#endif
