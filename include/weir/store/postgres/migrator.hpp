// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_MIGRATOR_HPP
#define WEIR_STORE_POSTGRES_MIGRATOR_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/parking.hpp"
#include "weir/store/postgres/failure.hpp"
#include "weir/store/postgres/link.hpp"
#include "weir/store/postgres/migration.hpp"
#include "weir/store/postgres/migration_sql.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/socket.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Brings a database to this version of the schema, on a connection of its own. On a strand.
class postgres_migrator : public std::enable_shared_from_this<postgres_migrator> {
 public:
  using operation = parked<error_code>;

  postgres_migrator(postgres_strand const& strand, std::string conninfo,
                    postgres_options const& options, std::shared_ptr<operation> op)
      : socket_{strand},
        timer_{strand},
        conninfo_{std::move(conninfo)},
        schema_{options.schema},
        options_{options},
        operation_{std::move(op)} {
    options_.schema = schema_;
  }

  void run() {
    if (!valid_schema(schema_)) return end(postgres_bad_schema());
    socket_.connect(conninfo_, options_.connect_timeout,
                    [self = shared_from_this()](error_code ec) {
                      if (ec) return self->end(ec);
                      if (PQsetnonblocking(self->socket_.get(), 1) != 0) {
                        return self->end(errc::store_unavailable);
                      }
                      self->look();
                    });
  }

 private:
  struct outcome {
    error_code failed;
    std::string state;  // the SQLSTATE of a failure
    std::uint32_t version = 0;
    std::uint32_t shards = 0;
  };
  using then = std::function<void(outcome const&)>;

  void look() {
    std::string text;
    append_sql(text, "BEGIN;\n", schema_);
    append_sql(text, pgsql::own_schema, schema_);  // what is there may be anybody's
    append_sql(text, "SELECT version, shards FROM ~.state", schema_);
    ask(text, options_.command_timeout, [this](outcome const& found) {
      bool const missing = found.state == "42P01" || found.state == "3F000";
      if (found.failed && !missing) return end(found.failed);
      if (found.version > postgres_schema_version) return end(errc::schema_too_new);
      if (!missing && found.shards != bounded(options_).shards) {
        return end(postgres_other_shards(bounded(options_).shards, found.shards));
      }
      if (found.version == postgres_schema_version) return end({});
      if (!missing && found.version < postgres_first_schema) {
        return end(postgres_outdated(found.version));
      }
      migrate(found.version);
    });
  }

  void migrate(std::uint32_t from) {
    constexpr int most = 3;
    bool const again = ++attempts_ < most;
    // It may take long, by a lock that others have or by how much there is to change; who is alive
    // to do so is not given up (F72).
    ask("ROLLBACK;\n" + postgres_migration_sql(options_, from), limits::span,
        [this, again](outcome const& done) {
          // Somebody else may have done it meanwhile, and then it is there already. Or a step of an
          // earlier version waits for what this has, and has what this waits for.
          auto const& s = done.state;
          bool const late = s.starts_with("42P") || s.starts_with("23") || s == "42703" ||
                            s == "42723" || s == "42710" || s == "XX000" || s == "40P01";
          if (!done.failed || (late && again)) {
            return ask("ROLLBACK", options_.command_timeout, [this](outcome const&) { look(); });
          }
          end(done.failed);
        });
  }

  void ask(std::string const& text, duration most, then t) {
    then_ = std::move(t);
    outcome_ = {};
    wait(most);
    if (PQsendQuery(socket_.get(), text.c_str()) != 1) {
      return end(explained(errc::outcome_unknown, socket_.message()));
    }
    go_on();
  }

  void go_on() {
    if (!socket_.open()) return;
    bool const writing = PQflush(socket_.get()) == 1;
    auto const what =
        writing ? postgres_socket::descriptor::wait_write : postgres_socket::descriptor::wait_read;
    socket_.wait(what, [self = shared_from_this(), writing](error_code ec) {
      if (ec || !self->socket_.open()) return;
      if (writing) return self->go_on();
      self->read();
    });
  }

  void read() {
    auto* const c = socket_.get();
    bool const good = PQconsumeInput(c) == 1;
    while (PQisBusy(c) == 0) {
      postgres_result const r{PQgetResult(c)};
      if (!r) {
        auto const next = std::exchange(then_, {});
        return next(outcome_);
      }
      note(r.get());
    }
    bool const wordy = socket_.besides() > postgres_allowance::others;
    if (!good || wordy) return end(explained(errc::outcome_unknown, socket_.message()));
    go_on();
  }

  void note(PGresult const* r) {
    auto const status = PQresultStatus(r);
    if (status == PGRES_FATAL_ERROR && !outcome_.failed) {
      auto const* const state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
      outcome_.state = state == nullptr ? "" : state;
      // Without a code it is not the server who says so: the connection is lost.
      outcome_.failed = state != nullptr
                            ? postgres_error(r)
                            : explained(errc::outcome_unknown, PQresultErrorMessage(r));
    } else if (status == PGRES_TUPLES_OK && PQntuples(r) == 1 && PQnfields(r) == 2) {
      outcome_.version = number(PQgetvalue(r, 0, 0));
      outcome_.shards = number(PQgetvalue(r, 0, 1));
    }
  }

  static std::uint32_t number(std::string_view text) noexcept {
    std::uint32_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }

  void wait(duration most) {
    timer_.set(saturating_add(timer_.now(), most), [self = shared_from_this()] {
      self->end(explained(errc::outcome_unknown, "no answer within command_timeout"));
    });
  }

  void end(error_code ec) {
    timer_.stop();
    socket_.close();
    then_ = {};
    if (auto const op = std::exchange(operation_, nullptr)) op->resume(ec);
  }

  postgres_socket socket_;
  postgres_timer timer_;
  std::string const conninfo_;
  std::string const schema_;
  postgres_options options_;
  std::shared_ptr<operation> operation_;
  then then_;
  outcome outcome_;
  int attempts_ = 0;
};

}  // namespace weir::detail

#endif
