// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/postgres/hosts.hpp"

#include <boost/test/unit_test.hpp>

#include <libpq-fe.h>
#include <stdlib.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace {

using weir::detail::postgres_hosts;
using strings = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(postgres_hosts_)

BOOST_AUTO_TEST_CASE(only_names_are_looked_up_and_each_once) {
  strings const none;
  BOOST_TEST((postgres_hosts{"host=db port=1"}.names() == strings{"db"}));
  BOOST_TEST((postgres_hosts{"postgresql://db.example/x"}.names() == strings{"db.example"}));
  BOOST_TEST((postgres_hosts{"host=a,b,a,10.0.0.1,::1,/run/x,@x"}.names() == strings{"a", "b"}));
  BOOST_TEST((postgres_hosts{"host=db hostaddr=10.0.0.1"}.names() == none));
  BOOST_TEST((postgres_hosts{"service=db"}.names() == none));
  BOOST_TEST((postgres_hosts{"dbname=x"}.names() == none));
  ::setenv("PGHOST", "db.environment", 1);
  BOOST_TEST((postgres_hosts{"dbname=x"}.names() == strings{"db.environment"}));
  BOOST_TEST((postgres_hosts{"host=db"}.names() == strings{"db"}));
  ::setenv("PGHOSTADDR", "10.0.0.1", 1);
  BOOST_TEST((postgres_hosts{"dbname=x"}.names() == none));
  ::unsetenv("PGHOST");
  ::unsetenv("PGHOSTADDR");
}

BOOST_AUTO_TEST_CASE(a_host_is_tried_at_each_of_its_addresses) {
  postgres_hosts one{"host=db port=1"};
  BOOST_TEST(one.locate({{"db", {"::1", "10.0.0.1"}}}));
  BOOST_TEST(one.of("host") == "db,db");
  BOOST_TEST(one.of("hostaddr") == "::1,10.0.0.1");
  BOOST_TEST(one.of("port") == "1,1");

  postgres_hosts several{"host=/run/x,a,gone,10.0.0.9,b port=1,2,3,4,5"};
  BOOST_TEST(several.locate({{"a", {"10.0.0.1", "10.0.0.2"}}, {"b", {"10.0.0.3"}}}));
  BOOST_TEST(several.of("host") == "/run/x,a,a,10.0.0.9,b");
  BOOST_TEST(several.of("hostaddr") == ",10.0.0.1,10.0.0.2,,10.0.0.3");
  BOOST_TEST(several.of("port") == "1,2,2,4,5");
}

// F70: a host that is mute takes no time of another's.
BOOST_AUTO_TEST_CASE(F70_each_attempt_is_at_one_host) {
  auto const tried = [](postgres_hosts const& h) {
    strings out;
    for (std::size_t i = 0; i != h.attempts(); ++i) {
      std::unique_ptr<PGconn, decltype(&PQfinish)> const c{h.start(i), &PQfinish};
      out.push_back(std::string{PQhost(c.get())} + ":" + PQport(c.get()));
    }
    return out;
  };
  BOOST_TEST((tried(postgres_hosts{"host=127.0.0.1 port=1"}) == strings{"127.0.0.1:1"}));
  BOOST_TEST((tried(postgres_hosts{"host=127.0.0.1,/nowhere,127.0.0.2 port=1,2,3"}) ==
              strings{"127.0.0.1:1", "/nowhere:2", "127.0.0.2:3"}));
  BOOST_TEST((tried(postgres_hosts{"hostaddr=127.0.0.1,127.0.0.2 port=4"}) ==
              strings{"127.0.0.1:4", "127.0.0.2:4"}));
  // libpq, too, goes through them twice.
  postgres_hosts standby{"host=127.0.0.1,127.0.0.2 port=1 target_session_attrs=prefer-standby"};
  BOOST_TEST(
      (tried(standby) == strings{"127.0.0.1:1", "127.0.0.2:1", "127.0.0.1:1", "127.0.0.2:1"}));
  standby.mix(0);  // nobody asked for it
  BOOST_TEST(tried(standby).front() == "127.0.0.1:1");
  // What is for libpq to refuse, or to read, is left to it.
  BOOST_TEST((postgres_hosts{"host=a,b port=1,2,3"}.attempts() == 1U));
  BOOST_TEST((postgres_hosts{"service=x"}.attempts() == 1U));
}

BOOST_AUTO_TEST_CASE(what_leads_nowhere_is_said) {
  BOOST_TEST(!postgres_hosts{"no such = thing"}.valid());
  BOOST_TEST(postgres_hosts{""}.valid());
  postgres_hosts gone{"host=gone"};
  BOOST_TEST(!gone.locate({}));
  postgres_hosts odd{"host=a,b port=1,2,3"};  // which libpq refuses, and says why
  BOOST_TEST(odd.locate({{"a", {"10.0.0.1"}}}));
  BOOST_TEST(odd.of("hostaddr") == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
