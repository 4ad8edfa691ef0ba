// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/store/postgres/hosts.hpp"

#include <boost/test/unit_test.hpp>

#include <stdlib.h>

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
