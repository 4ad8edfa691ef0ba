// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_MIGRATION_SQL_HPP
#define WEIR_STORE_POSTGRES_MIGRATION_SQL_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/failure.hpp"
#include "weir/store/postgres/migration.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/schema/generated.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// The first schema that can be migrated. An earlier one was never released.
inline constexpr std::uint32_t postgres_first_schema = 4;

/// The step from each schema to the next one. It replaces functions that are there. One from a
/// schema that was released never changes: a change is one more step. Of 6 functions are new, which
/// are in the step after it.
inline constexpr char const* postgres_from_4[] = {
    pgsql::from_4, pgsql::past,     pgsql::base,   pgsql::leases,     pgsql::buckets,
    pgsql::floors, pgsql::pointers, pgsql::queues, pgsql::from_4_fill};
inline constexpr char const* postgres_from_6[] = {pgsql::from_6, pgsql::jobs, pgsql::claims,
                                                  pgsql::dequeue, pgsql::from_6_fill};
inline constexpr char const* postgres_from_7[] = {pgsql::jobs, pgsql::dequeue};
inline constexpr char const* postgres_from_8[] = {pgsql::buckets};
inline constexpr std::array<std::span<char const* const>, 5> postgres_migrations{
    postgres_from_4, std::span<char const* const>{}, postgres_from_6, postgres_from_7,
    postgres_from_8};
static_assert(postgres_first_schema + postgres_migrations.size() == postgres_schema_version);

/// FNV-1a of what makes the schema. A schema with another text is another version, or a database of
/// the one is taken for the other: a test compares.
inline constexpr std::uint64_t postgres_schema_digest = 5284290727201659005U;

/// Of a database with an earlier version than this one's.
[[nodiscard]] inline error_code postgres_outdated(std::int64_t schema) {
  if (schema < std::int64_t{postgres_first_schema}) {
    return explained(errc::schema_outdated,
                     "a version of weir made it that was never released: what is in it can be "
                     "worked off with that one only");
  }
  return explained(errc::schema_outdated,
                   "call async_migrate, or run postgres_migration_sql(options, " +
                       std::to_string(schema) + ")");
}

/// The bytes of a job's row in an answer, as in rule/bytes.hpp.
inline constexpr std::string_view postgres_job_bytes =
    "(octet_length(j.kind) + octet_length(j.payload) + octet_length(j.unique_key) + "
    "octet_length(j.memo) + octet_length(j.result) + octet_length(j.reason) + "
    "octet_length(j.headers) + octet_length(j.progress) + octet_length(j.checkpoint))";

/// What every command is executed with. Whoever waits for longer than the lock timeout is told so
/// instead of holding up what is behind it (F50). A plan is made once, for whatever there will be:
/// not for the empty tables that there are at first.
///
/// Names are looked up in the system's schema alone. What somebody else has put in front of it, by
/// a setting of the database or by a name that fits better, is not executed with weir's rights
/// (F89). The temporary schema comes last: where it is not listed, tables and types are looked up
/// there first.
inline constexpr std::string_view postgres_function_settings =
    "SET search_path = pg_catalog, pg_temp "
    "SET lock_timeout = '1s' SET enable_seqscan = off SET enable_bitmapscan = off "
    "SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off "
    "SET plan_cache_mode = force_generic_plan";

/// How a table is vacuumed whose rows come and go: long before the fifth of it is dead that
/// PostgreSQL waits for, and without pauses.
inline constexpr std::string_view postgres_hot_table =
    "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, "
    "autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0, "
    "autovacuum_analyze_scale_factor = 0.05";

/// The jobs' table likewise, but by how many rows are dead and not by their share, and its indexes
/// with it every time: who looks for the first job of a queue goes through what is dead before it,
/// and that is as much as it is beside millions of jobs that wait.
inline constexpr std::string_view postgres_jobs_table =
    "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, "
    "vacuum_index_cleanup = on, "
    "autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0, "
    "autovacuum_analyze_scale_factor = 0.05";

/// The table of ended jobs is vacuumed less often: nobody goes through the dead rows there, and a
/// vacuum goes through all of an index.
inline constexpr std::string_view postgres_ended_table =
    "autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0, "
    "autovacuum_analyze_scale_factor = 0.1";

/// The text with its placeholders filled in.
inline void append_sql(std::string& out, std::string_view text, std::string_view schema) {
  while (!text.empty()) {
    auto const at = text.find_first_of("~{");
    out += text.substr(0, at);
    if (at == std::string_view::npos) return;
    text.remove_prefix(at);
    constexpr std::pair<std::string_view, std::string_view> filled[] = {
        {"{job_bytes}", postgres_job_bytes},
        {"{function_settings}", postgres_function_settings},
        {"{hot_table}", postgres_hot_table},
        {"{jobs_table}", postgres_jobs_table},
        {"{ended_table}", postgres_ended_table}};
    auto const* const known = std::ranges::find_if(
        filled, [&](auto const& each) { return text.starts_with(each.first); });
    if (text.starts_with('~')) {
      out.append("\"").append(schema).append("\"");
      text.remove_prefix(1);
    } else if (known != std::end(filled)) {
      out += known->second;
      text.remove_prefix(known->first.size());
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
}

}  // namespace weir::detail

#endif
