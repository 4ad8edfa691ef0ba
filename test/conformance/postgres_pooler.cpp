// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// With a pooler in between that gives its connections to transactions: nothing of weir's is kept in
// a session.

#include "integration/postgres_pooler.hpp"

#include "conformance/postgres_driver.hpp"
#include "conformance/suite.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::testing {
namespace {

BOOST_AUTO_TEST_SUITE(postgres_pooler)

BOOST_AUTO_TEST_CASE(promises_are_kept_through_a_pooler) {
  postgres_test::pooler const between{postgres_test::the_server()};
  postgres_driver driver{"", &between};
  settings s;
  s.histories = 6;
  s.concurrent = 2;
  report found;
  suite::of<permit_commands>(driver, found, s);
  suite::of<job_commands>(driver, found, s);
  s.only = "generated";
  suite::of<lock_commands>(driver, found, s);
  suite::of<bucket_commands>(driver, found, s);
  require_postgres(found);
}

// Whatever clients before left in the sessions that they shared.
BOOST_AUTO_TEST_CASE(a_database_is_migrated_and_used_through_a_pooler) {
  using namespace postgres_test;
  pooler const between{the_server()};
  auto const database = bed::fresh("");
  boost::asio::io_context io;
  auto o = quick();
  o.listen_conninfo = "host=127.0.0.1 port=1";  // which is not there: waiting polls
  postgres_store const store{io.get_executor(), between.conninfo(database), o};
  BOOST_TEST(!migrate(io, store));
  std::vector<std::shared_ptr<std::optional<error_code>>> ended;
  std::vector<std::string> keys(60);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = "k" + std::to_string(i);
    ended.push_back(start(store, take_lock(keys[i])));
  }
  for (auto const& e : ended) {
    finish(io, *e);
    BOOST_TEST(!**e, (*e)->message());
  }
  connection through{between.conninfo(database)};
  BOOST_TEST(through.number("SELECT count(*) FROM weir.locks") == 60);
  BOOST_TEST(through.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0);
  BOOST_TEST(through.must("SHOW lock_timeout") == "0");
  BOOST_TEST(through.must("SHOW transaction_isolation") == "read committed");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::testing
