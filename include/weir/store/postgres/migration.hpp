// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_MIGRATION_HPP
#define WEIR_STORE_POSTGRES_MIGRATION_HPP

#include "weir/store/postgres/options.hpp"

#include <cstdint>
#include <string>

namespace weir {

/// The version of the schema that this version of weir needs.
inline constexpr std::uint32_t postgres_schema_version = 9;

/// The SQL that takes a database from one version of weir's schema to another, in one
/// transaction: for those who run their own migrations. Version 0 is a database without it; going
/// there drops the schema with all that is in it. What `async_migrate` does is
/// `postgres_migration_sql(options)` where there is none, and `postgres_migration_sql(options,
/// from)` where there is an earlier one, whose version is in the table `state`.
///
/// The role that runs it must own the schema, or may create it. A schema that belongs to anybody
/// else but the database's owner or a superuser is refused (`store_foreign`), with its name in what
/// the server says. The role that a store connects as needs no more than USAGE on the schema,
/// SELECT, INSERT, UPDATE and DELETE on its tables, USAGE and UPDATE on its sequences, and EXECUTE
/// on its functions.
///
/// From versions 7 and 8 it replaces functions only. From versions 5 and 6 it takes the tables of
/// unique keys for itself, from version 4 the jobs' table. Commands that need them wait; one that
/// waits longer than a second is `store_unavailable`. Processes of the earlier version then go on
/// over the connections that they have.
///
/// Returns an empty text where `options.schema` is no valid name, where there is no way from
/// `from`, and where `to` is an earlier version than this one's, but for 0.
[[nodiscard]] std::string postgres_migration_sql(postgres_options const& options,
                                                 std::uint32_t from = 0,
                                                 std::uint32_t to = postgres_schema_version);

}  // namespace weir

#endif
