// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_FAILURE_HPP
#define WEIR_STORE_POSTGRES_FAILURE_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"

#include <libpq-fe.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::detail {

/// What `schema_outdated` says besides.
inline constexpr std::string_view postgres_not_migrated =
    "call async_migrate, or run postgres_migration_sql(options)";
/// The same, of a schema that is there.
inline constexpr std::string_view postgres_incomplete =
    "a function of weir's is not there, or is another: call async_migrate";

/// What a statement's failure is called outside. The server has rolled the statement back. Class
/// and codes are those of PostgreSQL's manual, appendix A.
[[nodiscard]] inline error_code postgres_error(std::string_view state) noexcept {
  using boost::system::errc::not_enough_memory;
  if (state == "53100") return errc::disk_full;
  if (state == "53200") return make_error_code(not_enough_memory);
  if (state == "25006") return errc::store_read_only;
  if (state == "42501") return errc::permission_denied;
  // Raised by the schema and by its migration.
  if (state == "WEIR1") return errc::store_foreign;
  if (state == "WEIR2") return errc::store_corrupt;
  // A pooler lost the server, or a commit's end is unknown.
  if (state.starts_with("08") || state == "40003") return errc::outcome_unknown;
  // A function, table, column or schema that is not there, or another than the one that is known.
  if (state.starts_with("42") || state == "3F000") return errc::schema_outdated;
  if (state.starts_with("XX") || state.starts_with("22") || state.starts_with("23")) {
    return errc::store_corrupt;
  }
  return errc::store_unavailable;
}

/// The same, with what the server said, where that is no value that was sent or stored.
[[nodiscard]] inline error_code postgres_error(PGresult const* r) noexcept {
  auto const* const field = PQresultErrorField(r, PG_DIAG_SQLSTATE);
  std::string_view const state = field == nullptr ? "" : field;
  auto const ec = postgres_error(state);
  if (ec == errc::schema_outdated) {
    bool const nothing = state == "42P01" || state == "3F000";
    return explained(ec, nothing ? postgres_not_migrated : postgres_incomplete);
  }
  auto const* const said = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
  bool const tells = state == "42501" || state == "25006" || state.starts_with("40") ||
                     state.starts_with("53") || state.starts_with("55") || state.starts_with("57");
  return said != nullptr && tells ? explained(ec, said) : ec;
}

[[nodiscard]] inline error_code postgres_other_shards(std::uint32_t wanted, std::int64_t there) {
  return explained(errc::invalid_option, "postgres_options::shards is " + std::to_string(wanted) +
                                             ", and the database has " + std::to_string(there));
}

}  // namespace weir::detail

#endif
