// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/postgres/engine.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>

namespace {

BOOST_AUTO_TEST_SUITE(postgres_schema)

// Two schemas with one number are taken for each other, though their functions are not the same.
BOOST_AUTO_TEST_CASE(a_schema_with_another_text_has_another_version) {
  std::uint64_t digest = 14695981039346656037U;
  for (char const c : weir::postgres_migration_sql({})) {
    digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  BOOST_TEST(digest == weir::detail::postgres_schema_digest,
             "the schema is another one, of digest "
                 << digest << ": is it a step of its own, or a version that was never released?");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
