// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// F86, F87: what a NATS store says of mistakes, and when its server is away.

#include "mistakes.hpp"
#include "nats_server.hpp"
#include "server_process.hpp"

namespace {

using namespace nats_test;
using weir_test::names;

/// What is told first where the store is made of these URLs.
void row(std::string const& name, std::string const& urls, names const& known = {},
         nats_options const& o = brisk()) {
  weir_test::compare_row_of<nats_store>(name, urls, known, o);
}

std::string url_of(server const& s) { return "nats://127.0.0.1:" + std::to_string(s.port()); }
names port_of(server const& s) { return {{std::to_string(s.port()), "PORT"}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_mistakes)

BOOST_AUTO_TEST_CASE(F86_what_is_wrong_with_the_address_is_told) {
  row("nats.no_url", "localhost:4222");
  row("nats.no_host", "nats://user:secret@");
  row("nats.unknown_host", "nats://no-such-host.invalid",
      {{"Host not found (authoritative)", "REASON"},
       {"Host not found (non-authoritative), try again later", "REASON"}});
  auto const closed = std::to_string(server_test::free_port());
  row("nats.closed_port", "nats://127.0.0.1:" + closed, {{closed, "PORT"}});
}

BOOST_AUTO_TEST_CASE(F86_what_the_server_has_against_us_is_told) {
  server s{{"--user", "me", "--pass", "secret"}};
  auto const at = "127.0.0.1:" + std::to_string(s.port());
  row("nats.wrong_password", "nats://me:wrong@" + at, port_of(s));
}

BOOST_AUTO_TEST_CASE(F85_a_worker_ends_where_it_is_refused_for_good) {
  server s{{"--user", "me", "--pass", "secret"}};
  auto const at = "@127.0.0.1:" + std::to_string(s.port());
  bed denied{nats_address::parse("nats://me:wrong" + at).value()};
  BOOST_TEST((weir_test::end_of_a_worker(denied.io, denied.store) == errc::permission_denied));
  auto o = brisk();
  o.create_stream = false;
  bed unmade{nats_address::parse("nats://me:secret" + at).value(), o};
  BOOST_TEST((weir_test::end_of_a_worker(unmade.io, unmade.store) == errc::schema_outdated));
}

BOOST_AUTO_TEST_CASE(F86_an_option_that_is_wrong_is_named) {
  server s;
  auto o = brisk();
  o.prefix = "a b";
  row("nats.prefix", url_of(s), {}, o);
  o = brisk();
  o.create_stream = false;
  row("nats.no_stream", url_of(s), port_of(s), o);
  o = brisk();
  o.replicas = 3;
  row("nats.replicas", url_of(s), port_of(s), o);
}

BOOST_AUTO_TEST_CASE(F87_a_forgotten_run_is_named) {
  weir_test::F87_a_forgotten_run_is_named<nats_store>("nats.not_run", nats_address{}, brisk());
}

BOOST_AUTO_TEST_CASE(F87_calls_end_when_the_server_is_gone) {
  server s;
  auto o = brisk();
  o.offline_patience = 1h;
  bed on{s, o};
  weir_test::F87_calls_end_when_the_store_is_stopped(on.io, on.store, [&] {
    s.kill();
    BOOST_TEST_REQUIRE(weir_test::happens(
        on.io, [&] { return static_cast<bool>(on.store.last_failure().error); }));
  });
}

BOOST_AUTO_TEST_SUITE_END()
