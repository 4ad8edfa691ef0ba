// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_FAILURE_HPP
#define WEIR_STORE_POSTGRES_FAILURE_HPP

#include "weir/error.hpp"

#include <libpq-fe.h>

#include <string_view>

namespace weir::detail {

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

[[nodiscard]] inline error_code postgres_error(PGresult const* r) noexcept {
  auto const* const state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
  return postgres_error(state == nullptr ? std::string_view{} : std::string_view{state});
}

}  // namespace weir::detail

#endif
