// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F86, F87: what a PostgreSQL store says of mistakes, and when its server is away.

#include "mistakes.hpp"
#include "postgres_bed.hpp"
#include "server_process.hpp"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace {

using namespace postgres_test;
using weir_test::compare_row;
using weir_test::heard_log;
using weir_test::names;

/// What is told first where the store is made of this connection string.
void row(std::string const& name, std::string const& conninfo, names const& known = {},
         postgres_options const& o = quick()) {
  heard_log const heard;
  boost::asio::io_context io;
  postgres_store const store{io.get_executor(), conninfo, o};
  compare_row(name, weir_test::first_line(io, store, heard), known);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_mistakes)

BOOST_AUTO_TEST_CASE(F86_what_is_wrong_with_the_connection_string_is_told) {
  row("postgres.misspelt_option", "host=127.0.0.1 sslmod=require");
  row("postgres.unknown_host", "host=no-such-host.invalid",
      {{"Host not found (authoritative)", "REASON"},
       {"Host not found (non-authoritative), try again later", "REASON"}});
  auto const closed = std::to_string(server_test::free_port());
  row("postgres.closed_port", "host=127.0.0.1 port=" + closed, {{closed, "PORT"}});
}

BOOST_AUTO_TEST_CASE(F98_a_connection_string_that_cannot_be_read_is_not_repeated) {
  heard_log const heard;
  boost::asio::io_context io;
  for (std::string const bad :
       {"host=127.0.0.1 password=my secret", "host=a password=b hidden=c",
        "postgresql://user:secret@[::1/hidden", "postgresql://user:my@secret@127.0.0.1/db"}) {
    postgres_store const store{io.get_executor(), bad};
    auto const ec = weir_test::outcome(io, store, command::inspect_lock{"key"});
    BOOST_TEST((ec == errc::invalid_option), ec.message());
    for (auto const* const part : {"secret", "hidden"}) {
      BOOST_TEST(ec.message().find(part) == std::string::npos, ec.message());
      BOOST_TEST(heard.count(part) == 0U, heard.all());
    }
  }
}

BOOST_AUTO_TEST_CASE(F86_what_the_server_has_against_us_is_told) {
  auto const port = std::to_string(the_server().port());
  names const known{{port, "PORT"}};
  std::string const at = "host=127.0.0.1 port=" + port + " dbname=postgres";
  row("postgres.role", at + " user=stranger", known);
  row("postgres.database", "host=127.0.0.1 user=postgres dbname=nowhere port=" + port, known);
  row("postgres.tls", at + " user=postgres sslmode=require", known);
}

BOOST_AUTO_TEST_CASE(F87_a_forgotten_migration_is_named) {
  auto const database = bed::fresh("");
  row("postgres.not_migrated", the_server().conninfo(database),
      {{database, "DATABASE"}, {std::to_string(the_server().port()), "PORT"}});
}

BOOST_AUTO_TEST_CASE(F85_a_worker_ends_where_it_is_refused_for_good) {
  boost::asio::io_context io;
  postgres_store const unmigrated{io.get_executor(), the_server().conninfo(bed::fresh("")),
                                  quick()};
  BOOST_TEST((weir_test::end_of_a_worker(io, unmigrated) == errc::schema_outdated));

  bed on;
  on.db.must("CREATE ROLE mere LOGIN");
  postgres_store const denied{on.io.get_executor(),
                              the_server().conninfo(on.database) + " user=mere", quick()};
  BOOST_TEST((weir_test::end_of_a_worker(on.io, denied) == errc::permission_denied));
}

BOOST_AUTO_TEST_CASE(F87_a_migration_from_an_earlier_version_is_named) {
  bed on;
  on.db.must("UPDATE weir.state SET version = 4");
  row("postgres.earlier_version", the_server().conninfo(on.database),
      {{on.database, "DATABASE"}, {std::to_string(the_server().port()), "PORT"}});
}

BOOST_AUTO_TEST_CASE(F86_an_option_that_is_wrong_is_named) {
  auto o = quick();
  o.schema = "Weir";
  row("postgres.schema", the_server().conninfo(), {}, o);
  bed on;
  o = quick();
  o.shards = 2;
  row("postgres.shards", the_server().conninfo(on.database),
      {{on.database, "DATABASE"}, {std::to_string(the_server().port()), "PORT"}}, o);
}

BOOST_AUTO_TEST_CASE(F87_a_call_that_has_waited_enough_says_for_what) {
  auto o = quick();
  o.connections = o.pipeline = 1;
  bed on{o};
  auto const row_of = [&](std::string const& name, postgres_store const& store) {
    auto const ec =
        weir_test::outcome(on.io, store.with_patience(50ms), command::inspect_lock{"k"});
    compare_row(name, weir_test::told(ec));
  };
  boost::asio::ip::tcp::acceptor const mute{on.io, {boost::asio::ip::address_v4::loopback(), 0}};
  row_of("patience.no_connection",
         postgres_store{on.io.get_executor(), conninfo_to(mute.local_endpoint().port()), o});
  // All that may be under way is.
  let_locks_take_long(on.db);
  BOOST_TEST(on(take_lock("held")).has_value());
  connection other{the_server().conninfo(on.database)};
  other.must("BEGIN; SELECT 1 FROM weir.locks FOR UPDATE");
  auto const first = start(on.store, take_lock("held"));
  until_somebody_waits(on.io, on.database);
  row_of("patience.not_served", on.store);
  other.must("ROLLBACK");
  finish(on.io, *first);
}

BOOST_AUTO_TEST_CASE(F87_calls_end_when_the_server_is_gone) {
  server s;
  bed on{quick(), "", s};
  weir_test::F87_calls_end_when_the_store_is_stopped(on.io, on.store, [&] {
    s.kill(SIGQUIT);
    BOOST_TEST_REQUIRE(weir_test::happens(
        on.io, [&] { return static_cast<bool>(on.store.last_failure().error); }));
  });
}

BOOST_AUTO_TEST_SUITE_END()
