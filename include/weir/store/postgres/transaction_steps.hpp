// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_TRANSACTION_STEPS_HPP
#define WEIR_STORE_POSTGRES_TRANSACTION_STEPS_HPP

#include "weir/command/list.hpp"
#include "weir/detail/engine_call.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/failure.hpp"
#include "weir/store/postgres/migration.hpp"
#include "weir/store/postgres/migration_sql.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/store/postgres/socket.hpp"
#include "weir/store/postgres/step.hpp"
#include "weir/store/postgres/transaction_way.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace weir::detail {

/// Makes calls in an application's transaction, each with a savepoint around it.
class postgres_savepoint {
 public:
  explicit postgres_savepoint(postgres_session& in) noexcept : in_{in} {}

  error_code run(postgres_call const& call, postgres_result& answer) {
    if (!valid_schema(in_.schema)) return postgres_bad_schema();
    if (PQpipelineStatus(in_.connection) != PQ_PIPELINE_OFF) {
      return explained(errc::invalid_option, "the connection is in pipeline mode");
    }
    if (PQisnonblocking(in_.connection) != 0) {
      return explained(errc::invalid_option, "the connection is in non-blocking mode");
    }
    if (auto const ec = transaction()) return ec;
    if (PQenterPipelineMode(in_.connection) != 1) return errc::invalid_option;
    auto const text = call.text(in_.schema);
    bool looked = false;
    bool sent = send("SAVEPOINT weir_command") && send(guard().c_str());
    sent = sent && call.with_parameters([&](int n, auto types, auto values, auto lengths,
                                            auto formats) {
      return PQsendQueryParams(in_.connection, text.c_str(), n, types, values, lengths, formats, 1);
    }) == 1;
    sent = sent && send("RELEASE SAVEPOINT weir_command") && PQpipelineSync(in_.connection) == 1;
    auto ec = sent ? read(answer, looked) : make_error_code(errc::outcome_unknown);
    PQexitPipelineMode(in_.connection);
    if (PQstatus(in_.connection) != CONNECTION_OK) return errc::outcome_unknown;
    if (ec) {
      PQclear(PQexec(in_.connection, "ROLLBACK TO SAVEPOINT weir_command"));
      PQclear(PQexec(in_.connection, "RELEASE SAVEPOINT weir_command"));
      if (looked) return ec;
      if (auto const why = look()) return why;
      // Somebody has migrated it meanwhile.
      if (ec == errc::store_corrupt) return explained(errc::store_unavailable, "it was migrated");
    }
    return ec;
  }

 private:
  /// Why there is no transaction that a command could be a part of.
  [[nodiscard]] error_code transaction() const {
    switch (PQtransactionStatus(in_.connection)) {
      case PQTRANS_INTRANS: return {};
      case PQTRANS_IDLE: return explained(errc::not_in_transaction, "BEGIN was not sent");
      case PQTRANS_INERROR:
        return explained(errc::not_in_transaction,
                         "a statement of it failed, and only ROLLBACK is left");
      case PQTRANS_ACTIVE:
        return explained(errc::not_in_transaction, "another statement is running");
      default: return explained(errc::store_unavailable, "the connection is lost");
    }
  }

  bool send(char const* text) {
    return PQsendQueryParams(in_.connection, text, 0, nullptr, nullptr, nullptr, nullptr, 1) == 1;
  }

  /// Fails unless the schema is this version's. Asked each time: somebody else may migrate it.
  [[nodiscard]] std::string guard() const {
    std::string out;
    append_sql(out,
               "SELECT 1 OPERATOR(pg_catalog./) pg_catalog.count(*) FROM ~.state WHERE version "
               "OPERATOR(pg_catalog.=) ",
               in_.schema);
    return out + std::to_string(postgres_schema_version) + " AND shards OPERATOR(pg_catalog.=) " +
           std::to_string(in_.shards);
  }

  /// @param looked the guard lets it pass
  error_code read(postgres_result& answer, bool& looked) {
    error_code ec;
    for (int nothing = 0; nothing < 2;) {
      postgres_result r{PQgetResult(in_.connection)};
      if (!r) {
        ++nothing;
        continue;
      }
      nothing = 0;
      switch (PQresultStatus(r.get())) {
        case PGRES_PIPELINE_SYNC: return ec || answer ? ec : make_error_code(errc::store_corrupt);
        case PGRES_TUPLES_OK:
          if (std::exchange(looked, true)) answer = std::move(r);
          break;
        case PGRES_FATAL_ERROR:
          if (!ec) ec = postgres_error(r.get());
          break;
        default: break;
      }
    }
    return errc::outcome_unknown;
  }

  /// Why the guard does not let it pass.
  error_code look() {
    std::string text = "SAVEPOINT weir_command; ";
    append_sql(text, "SELECT version, shards FROM ~.state", in_.schema);
    postgres_result const r{PQexec(in_.connection, text.c_str())};
    error_code ec;
    if (PQresultStatus(r.get()) != PGRES_TUPLES_OK) {
      ec = postgres_error(r.get());
    } else if (PQntuples(r.get()) != 1 || number(r, 0) < 0 || number(r, 1) < 0) {
      ec = errc::store_foreign;
    } else if (number(r, 0) > postgres_schema_version) {
      ec = errc::schema_too_new;
    } else if (number(r, 0) < postgres_schema_version) {
      ec = postgres_outdated(number(r, 0));
    } else if (number(r, 1) != in_.shards) {
      ec = postgres_other_shards(in_.shards, number(r, 1));
    }
    PQclear(PQexec(in_.connection, "ROLLBACK TO SAVEPOINT weir_command"));
    PQclear(PQexec(in_.connection, "RELEASE SAVEPOINT weir_command"));
    return ec;
  }

  /// Below 0: what is there is no number.
  static std::int64_t number(postgres_result const& r, int column) noexcept {
    std::string_view const text = PQgetvalue(r.get(), 0, column);
    std::int64_t out = -1;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }

  postgres_session& in_;
};

template <class C>
result<typename C::result> postgres_transaction_way<C>::execute(postgres_session& in, C const& c,
                                                                told_time at) {
  postgres_scope const scope{.shards = in.shards, .own = false, .at = at};
  if (auto const ec = refusal(c, scope)) return ec;
  postgres_result answer;
  if (auto const ec = postgres_savepoint{in}.run(postgres_nouns::call(c, scope), answer)) return ec;
  return read_answer<C>(postgres_note<C>{c}, postgres_rows{answer.get()});
}

/// Instantiated explicitly, has the steps of a list's commands compiled right there.
template <class List>
struct postgres_transaction_ways;
template <class... Cs>
struct postgres_transaction_ways<command::list_of<Cs...>> {
  template <class C>
  static constexpr auto way() {
    if constexpr (engine_step<C>)
      return &postgres_transaction_way<C>::execute;
    else
      return nullptr;
  }
  static constexpr std::tuple all{way<Cs>()...};
};

}  // namespace weir::detail

#endif
