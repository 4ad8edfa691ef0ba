// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_POSTGRES_BED_HPP
#define WEIR_TEST_INTEGRATION_POSTGRES_BED_HPP

#include "weir/store/postgres.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>
#include <sys/types.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<sys/prctl.h>)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace weir {

inline std::ostream& boost_test_print_type(std::ostream& out, errc e) {
  return out << make_error_code(e).message();
}

}  // namespace weir

namespace postgres_test {

using namespace weir;
using namespace std::chrono_literals;

/// A PostgreSQL server of this test's own: on 127.0.0.1, in a directory that goes with it, run by
/// somebody without privileges. It does not outlive the test.
class server {
 public:
  server() {
    auto name = (std::filesystem::temp_directory_path() / "weir-postgres-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary directory"};
    home_ = name;
    if (::geteuid() == 0) {
      for (auto const* const user : {"postgres", "nobody"}) {
        if (auto const* const p = ::getpwnam(user)) {
          user_ = p->pw_uid;
          group_ = p->pw_gid;
          break;
        }
      }
      if (!user_ || ::chown(home_.c_str(), *user_, group_) != 0) {
        throw std::runtime_error{"nobody to run the server as"};
      }
    }
    auto const made = run({binary("initdb"), "-D", data(), "-U", "postgres", "-A", "trust", "-N",
                           "-E", "UTF8", "--locale=C"});
    int status = 0;
    ::waitpid(made, &status, 0);
    if (status != 0) throw std::runtime_error{"initdb failed"};
    start();
  }
  server(server const&) = delete;
  server& operator=(server const&) = delete;
  ~server() {
    kill(SIGQUIT);
    std::error_code ignored;
    std::filesystem::remove_all(home_, ignored);
  }

  /// Starts it on a free port, or on the one that it had.
  void start() {
    bool const again = port_ != 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (!again) port_ = free_port();
      pid_ = run({binary("postgres"), "-D", data(), "-k", home_.string(), "-p",
                  std::to_string(port_), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off",
                  "-c", "max_connections=120", "-c", "autovacuum_naptime=5s"});
      if (answers()) return;
      kill(SIGQUIT);  // the port was taken, or what was killed is not quite gone
      std::this_thread::sleep_for(50ms);
    }
    throw std::runtime_error{"the server does not start"};
  }

  /// Ends it: SIGQUIT as soon as may be, SIGKILL at once.
  void kill(int how) noexcept {
    if (pid_ <= 0) return;
    ::kill(pid_, how);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  [[nodiscard]] unsigned short port() const noexcept { return port_; }
  [[nodiscard]] std::string conninfo(std::string const& database = "postgres") const {
    return conninfo_to(port_, database);
  }
  [[nodiscard]] static std::string conninfo_to(unsigned short port,
                                               std::string const& database = "postgres") {
    return "host=127.0.0.1 port=" + std::to_string(port) + " user=postgres dbname=" + database;
  }

 private:
  [[nodiscard]] std::string data() const { return home_ / "data"; }

  static std::string binary(std::string const& name) {
    std::vector<std::filesystem::path> found;
    std::error_code ignored;
    for (auto const& version :
         std::filesystem::directory_iterator{"/usr/lib/postgresql", ignored}) {
      auto const path = version.path() / "bin" / name;
      if (std::filesystem::exists(path)) found.push_back(path);
    }
    return found.empty() ? name : std::ranges::max(found).string();
  }

  static unsigned short free_port() {
    boost::asio::io_context io;
    boost::asio::ip::tcp::acceptor const a{io, {boost::asio::ip::address_v4::loopback(), 0}};
    return a.local_endpoint().port();
  }

  ::pid_t run(std::vector<std::string> arguments) {
    std::vector<char*> pointers;
    for (auto& a : arguments) pointers.push_back(a.data());
    pointers.push_back(nullptr);
    auto const log = (home_ / "log").string();
    auto const pid = ::fork();
    if (pid != 0) return pid;
    int const out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (::chdir("/") != 0) ::_exit(1);
    if (user_ && (::setgroups(0, nullptr) != 0 || ::setgid(group_) != 0 || ::setuid(*user_) != 0)) {
      ::_exit(1);
    }
#if __has_include(<sys/prctl.h>)
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
#endif
    ::execvp(pointers[0], pointers.data());
    ::_exit(1);
  }

  bool answers() {
    for (int i = 0; i < 600; ++i) {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return false;
      }
      if (PQping(conninfo().c_str()) == PQPING_OK) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }

  std::filesystem::path home_;
  std::optional<::uid_t> user_;
  ::gid_t group_ = 0;
  ::pid_t pid_ = -1;
  unsigned short port_ = 0;
};

/// The one of this program.
inline server& the_server() {
  static server s;
  return s;
}

/// A connection of the test's own.
class connection {
 public:
  explicit connection(std::string const& conninfo) : db_{PQconnectdb(conninfo.c_str())} {
    BOOST_TEST_REQUIRE((PQstatus(db_.get()) == CONNECTION_OK), PQerrorMessage(db_.get()));
    PQsetNoticeReceiver(db_.get(), [](void*, PGresult const*) {}, nullptr);
  }

  [[nodiscard]] PGconn* get() const noexcept { return db_.get(); }

  /// Executes statements. The first field of the last one's answer.
  std::string must(std::string const& sql) {
    weir::detail::postgres_result const r{PQexec(db_.get(), sql.c_str())};
    auto const status = PQresultStatus(r.get());
    BOOST_TEST_REQUIRE((status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK),
                       sql.substr(0, 200) << ": " << PQerrorMessage(db_.get()));
    return status == PGRES_TUPLES_OK && PQntuples(r.get()) > 0 ? PQgetvalue(r.get(), 0, 0) : "";
  }
  std::int64_t number(std::string const& sql) { return std::stoll(must(sql)); }

 private:
  std::unique_ptr<PGconn, weir::detail::postgres_finish> db_;
};

/// Options for tests, whose told times are not the server's.
[[nodiscard]] inline postgres_options quick() {
  postgres_options o;
  o.tidy_interval = limits::span;
  o.poll_interval = 20ms;
  return o;
}

/// All tables as they are at first. A TRUNCATE of so many takes ten times as long.
inline void empty_tables(connection& db) {
  std::string sql = "SELECT setval('weir.fences', 1)";
  std::string names;
  for (std::string const table : {"permit_lines", "permits", "locks", "buckets", "queues",
                                  "pointers", "counters", "jobs", "dequeues", "keys", "hints"}) {
    sql += "; DELETE FROM weir." + table;
    names += (names.empty() ? "weir." : ", weir.") + table;
  }
  db.must(sql + "; UPDATE weir.state SET forgotten = -9223372036854775808");
  db.must("VACUUM " + names);
}

/// Executes one command and waits for it.
template <class Store, class C>
[[nodiscard]] result<typename C::result> ask(boost::asio::io_context& io, Store const& store,
                                             C const& c) {
  using answer = typename C::result;
  std::optional<result<answer>> out;
  store.async_execute(c, [&](error_code ec, answer a) {
    if (ec) {
      out = ec;
    } else {
      out = std::move(a);
    }
  });
  io.restart();
  while (!out && io.run_one_for(30s) != 0) {
  }
  BOOST_TEST_REQUIRE(out.has_value());
  return *out;
}

/// Brings the database to this version's schema.
inline error_code migrate(boost::asio::io_context& io, postgres_store const& store) {
  error_code out = errc::timed_out;
  store.async_migrate([&](error_code ec) { out = ec; });
  io.restart();
  io.run();
  return out;
}

/// A fresh store in a database of its own.
struct bed {
  explicit bed(postgres_options const& o = quick(), std::string const& settings = "")
      : database{fresh(settings)},
        options{o},
        db{the_server().conninfo(database)},
        store{io.get_executor(), the_server().conninfo(database), o} {
    BOOST_TEST_REQUIRE(!migrate(io, store));
  }

  template <class C>
  [[nodiscard]] result<typename C::result> operator()(C const& c) {
    return ask(io, store, c);
  }

  static std::string fresh(std::string const& settings) {
    static int made = 0;
    auto const name = "bed" + std::to_string(++made);
    connection there{the_server().conninfo()};
    there.must("CREATE DATABASE " + name);
    if (!settings.empty()) there.must("ALTER DATABASE " + name + " SET " + settings);
    return name;
  }

  std::string database;
  postgres_options options;
  connection db;
  boost::asio::io_context io{};
  postgres_store store;
};

[[nodiscard]] inline job_id id(std::uint8_t n) {
  job_id out{};
  *(out.end() - 1) = n;
  return out;
}
[[nodiscard]] inline new_job job_of(std::uint8_t n, std::string_view unique_key = {}) {
  new_job out;
  out.id = id(n);
  out.kind = "kind";
  out.payload = "{}";
  out.unique_key = unique_key;
  if (!unique_key.empty()) out.strategy = unique_strategy::until_executed;
  return out;
}

}  // namespace postgres_test

#endif
