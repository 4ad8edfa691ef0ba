// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// How connections are made: names are looked up while the executor goes on, and `verify-full` is
// for whom the certificate names. And that they are kept.

#include "patience.hpp"
#include "postgres_bed.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

/// Who knows the names in `weir.test`: slow.weir.test once it is told to, and gone.weir.test never.
class directory {
 public:
  [[nodiscard]] bool knows(std::string_view name) {
    std::unique_lock lock{mutex_};
    if (name.ends_with("weir.test")) asked_by_.insert(std::this_thread::get_id());
    if (name == "slow.weir.test") told_.wait(lock, [this] { return tell_; });
    return name != "gone.weir.test";
  }
  void tell() {
    std::lock_guard const lock{mutex_};
    tell_ = true;
    told_.notify_all();
  }
  [[nodiscard]] bool asked_by(std::thread::id who) {
    std::lock_guard const lock{mutex_};
    return asked_by_.contains(who);
  }
  [[nodiscard]] bool asked() {
    std::lock_guard const lock{mutex_};
    return !asked_by_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::set<std::thread::id> asked_by_;
  bool tell_ = false;
};

directory& names() {
  static directory d;
  return d;
}

}  // namespace

// Instead of the C library's, for whoever looks up a name in this program, libpq included.
extern "C" int getaddrinfo(char const* node, char const* service, addrinfo const* hints,
                           addrinfo** out) {
  static auto const real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  std::string_view const name = node == nullptr ? "" : node;
  if (!names().knows(name)) return EAI_NONAME;
  return real(name.ends_with("weir.test") ? "127.0.0.1" : node, service, hints, out);
}

namespace {

using namespace postgres_test;

std::string at(std::string const& host, std::string const& database,
               server const& on = the_server()) {
  return "host=" + host + " port=" + std::to_string(on.port()) +
         " user=postgres dbname=" + database;
}

error_code try_it(boost::asio::io_context& io, postgres_store const& store) {
  auto const ended = start(store, take_lock("k"));
  finish(io, *ended);
  return **ended;
}

/// The sessions of stores.
std::string sessions(bed& b) {
  return b.db.must("SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity "
                   "WHERE datname = current_database() AND pid <> pg_backend_pid()");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(postgres_connections)

// No part of an answer counts as something that a server says besides (F90).
BOOST_AUTO_TEST_CASE(a_connection_is_kept_however_many_answers_it_gives) {
  auto one = quick();
  one.connections = 1;
  bed b{one};
  BOOST_TEST(b(command::dequeue_jobs{"q", "h", 1, 10, 1min}).has_value());
  auto const first = sessions(b);
  BOOST_TEST_REQUIRE(!first.empty());
  for (std::uint64_t n = 2; n != 1'500; ++n) {
    BOOST_TEST_REQUIRE(b(command::dequeue_jobs{"q", "h", n, 10, 1min}).has_value());
  }
  BOOST_TEST(sessions(b) == first);
}

BOOST_AUTO_TEST_CASE(names_are_looked_up_while_the_executor_goes_on) {
  bed b;
  auto const me = std::this_thread::get_id();
  auto const to = [&](std::string const& host, postgres_options const& o = quick()) {
    return postgres_store{b.io.get_executor(), at(host, b.database), o};
  };
  BOOST_TEST(!try_it(b.io, to("db.weir.test")));
  BOOST_TEST(names().asked());
  BOOST_TEST(!try_it(b.io, to("gone.weir.test,db.weir.test")));
  BOOST_TEST((try_it(b.io, to("gone.weir.test")) == errc::store_unavailable));
  BOOST_TEST(!migrate(b.io, to("db.weir.test")));

  // So does who listens.
  auto const waits = to("db.weir.test");
  auto const told = start(waits, command::await_jobs{});
  std::vector<new_job> const jobs{job_of(1)};
  BOOST_TEST(b(command::enqueue_jobs{"q", jobs}).has_value());
  finish(b.io, *told);
  BOOST_TEST(!**told);

  // What takes too long is given up, and nobody waits for it.
  auto brief = quick();
  brief.connect_timeout = 50ms;
  auto const slow = start(to("slow.weir.test", brief), take_lock("k"));
  BOOST_TEST(!try_it(b.io, b.store));
  finish(b.io, *slow);
  BOOST_TEST((**slow == errc::store_unavailable));
  names().tell();
  BOOST_TEST(!try_it(b.io, to("slow.weir.test")));
  BOOST_TEST(!names().asked_by(me));
}

BOOST_AUTO_TEST_CASE(a_verified_connection_is_for_whom_the_certificate_names) {
  server const there{server::kind{}};
  bed b{quick(), "", there};
  auto const key = (there.home() / "key.pem").string();
  auto const certificate = (there.home() / "certificate.pem").string();
  auto const make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=weir -addext "
                    "subjectAltName=DNS:db.weir.test -keyout " +
                    key + " -out " + certificate + " 2> /dev/null";
  BOOST_TEST_REQUIRE(::system(make.c_str()) == 0);
  struct stat home{};
  BOOST_TEST_REQUIRE(::stat(there.home().c_str(), &home) == 0);
  BOOST_TEST_REQUIRE(::chown(key.c_str(), home.st_uid, home.st_gid) == 0);
  BOOST_TEST_REQUIRE(::chmod(key.c_str(), 0600) == 0);
  b.db.must("ALTER SYSTEM SET ssl_cert_file = '" + certificate + "'");
  b.db.must("ALTER SYSTEM SET ssl_key_file = '" + key + "'");
  b.db.must("ALTER SYSTEM SET ssl = on");
  b.db.must("SELECT pg_reload_conf()");
  BOOST_TEST_REQUIRE(weir_test::happens([&] { return b.db.must("SHOW ssl") == "on"; }));
  auto const to = [&](std::string const& host, std::string const& how) {
    return postgres_store{b.io.get_executor(), at(host, b.database, there) + how, quick()};
  };
  auto const verified = " sslmode=verify-full sslrootcert=" + certificate;
  auto const store = to("db.weir.test", verified);
  BOOST_TEST(!try_it(b.io, store));
  BOOST_TEST(b.db.number("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                         "WHERE ssl AND datname = current_database()") >= 1);
  BOOST_TEST((try_it(b.io, to("other.weir.test", verified)) == errc::store_unavailable));
  BOOST_TEST((try_it(b.io, to("db.weir.test", " sslmode=verify-full sslrootcert=/none")) ==
              errc::store_unavailable));

  // As much as it takes for answers to come in many parts.
  std::string const large(60'000, 'x');
  std::vector<new_job> jobs;
  for (std::uint8_t i = 1; i <= 20; ++i) {
    jobs.push_back(job_of(i));
    jobs.back().payload = large;
  }
  BOOST_TEST(ask(b.io, store, command::enqueue_jobs{"q", jobs}).has_value());
  for (int i = 0; i < 3; ++i) {
    auto const seen = ask(b.io, store, command::peek_jobs{"q", 100});
    BOOST_TEST_REQUIRE(seen.has_value());
    BOOST_TEST(seen->size() == jobs.size());
    for (auto const& j : *seen) BOOST_TEST((j.payload == large));
  }

  // The bytes that TLS adds are a part of the answers, too.
  auto const first = sessions(b);
  for (int i = 0; i != 150; ++i) {
    BOOST_TEST_REQUIRE(ask(b.io, store, command::peek_jobs{"q", 100}).has_value());
  }
  BOOST_TEST(sessions(b) == first);
}

BOOST_AUTO_TEST_SUITE_END()
