// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/nemesis.hpp"

#include "integration/nats_process.hpp"
#include "integration/postgres_server.hpp"
#include "integration/redis_process.hpp"
#include "weir/testing/fault_proxy.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <sys/wait.h>

#include <sqlite3.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace soak {

using namespace std::chrono_literals;

namespace {

/// Starts a server that was killed.
template <class Server>
void start(Server& server) {
  keep_connections();
  server.start();
}

/// One that is there: nothing is done to it but what its clients may do.
class stranger final : public target {
 public:
  explicit stranger(opening o) : at_{std::move(o)} {}
  [[nodiscard]] opening direct() const override { return at_; }

 private:
  opening at_;
};

class redis_target final : public target {
 public:
  redis_target(std::vector<std::string> options, bool lasting)
      : lasting_{lasting},
        server_{std::move(options)} {}
  [[nodiscard]] opening direct() const override {
    return {.url = "redis://127.0.0.1:" + std::to_string(server_.port())};
  }
  [[nodiscard]] bool forgets() const override { return !lasting_; }
  [[nodiscard]] std::vector<fault> faults() override {
    auto const ask = [this](char const* what) { return [this, what] { server_.ask(what); }; };
    return {
        {"kill-server", 500ms, 2s, [this] { server_.kill(); }, [this] { start(server_); }},
        {"stop-server", 500ms, 2500ms, [this] { server_.pause(); }, [this] { server_.resume(); }},
        {"flush-scripts", 100ms, 200ms, ask("script flush"), {}},
        {"kill-clients", 100ms, 200ms, ask("client kill type normal"), {}},
        {"kill-subscribers", 100ms, 200ms, ask("client kill type pubsub"), {}}};
  }

 private:
  bool lasting_;
  redis_test::server server_;
};

class nats_target final : public target {
 public:
  explicit nats_target(std::uint64_t max_bytes) : max_bytes_{max_bytes} {}
  [[nodiscard]] opening direct() const override {
    return {.url = "nats://127.0.0.1:" + std::to_string(server_.port()),
            .prefix = "soak",
            .max_bytes = max_bytes_};
  }
  [[nodiscard]] std::vector<fault> faults() override {
    return {
        {"kill-server", 500ms, 2s, [this] { server_.kill(); }, [this] { start(server_); }},
        {"stop-server", 500ms, 2500ms, [this] { server_.stop(); }, [this] { server_.go_on(); }}};
  }

 private:
  std::uint64_t max_bytes_;
  nats_test::server server_{};
};

class postgres_target final : public target {
 public:
  [[nodiscard]] opening direct() const override {
    return {.url =
                "postgresql://postgres@127.0.0.1:" + std::to_string(server_.port()) + "/postgres"};
  }
  [[nodiscard]] std::vector<fault> faults() override {
    return {
        {"kill-server", 500ms, 2s, [this] { server_.kill(SIGKILL); }, [this] { start(server_); }},
        {"stop-server", 500ms, 2500ms, [this] { stop(); }, [this] { go_on(); }},
        {"terminate-backends",
         100ms,
         200ms,
         [this] {
           once("select pg_terminate_backend(pid) from pg_stat_activity where pid <> "
                "pg_backend_pid() and backend_type = 'client backend'");
         },
         {}},
        {"hold-snapshot", 10s, 20s, [this] { hold(); }, [this] { held_.reset(); }}};
  }

 private:
  using connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

  [[nodiscard]] connection connect() const {
    return {PQconnectdb(server_.conninfo().c_str()), &PQfinish};
  }
  static void run(connection const& on, char const* sql) { PQclear(PQexec(on.get(), sql)); }
  void once(char const* sql) const { run(connect(), sql); }
  /// As a backup or a report does.
  void hold() {
    held_ = connect();
    run(*held_, "begin isolation level repeatable read");
    run(*held_, "select count(*) from pg_class");  // as a backup does: it writes nothing
  }
  /// The server is several processes.
  void stop() {
    for (auto const pid : family::children_of(::getpid())) {
      auto const all = family::children_of(pid);
      if (name_of(pid) != "postgres") continue;
      stopped_.push_back(pid);
      stopped_.insert(stopped_.end(), all.begin(), all.end());
    }
    for (auto const pid : stopped_) ::kill(pid, SIGSTOP);
  }
  void go_on() {
    for (auto const pid : stopped_) ::kill(pid, SIGCONT);
    stopped_.clear();
  }
  static std::string name_of(::pid_t pid) {
    std::string name;
    std::ifstream{"/proc/" + std::to_string(pid) + "/comm"} >> name;
    return name;
  }

  postgres_test::server server_{};
  std::optional<connection> held_{};
  std::vector<::pid_t> stopped_{};
};

class sqlite_target final : public target {
 public:
  sqlite_target(std::string path, std::uint64_t max_bytes)
      : path_{std::move(path)},
        max_bytes_{max_bytes} {}
  [[nodiscard]] opening direct() const override {
    return {.url = "sqlite:" + path_, .prefix = {}, .max_bytes = max_bytes_};
  }
  [[nodiscard]] std::vector<fault> faults() override {
    auto const done = [this] { held_.reset(); };
    return {
        {"hold-snapshot", 5s, 15s, [this] { hold("begin; select * from sqlite_schema"); }, done},
        {"hold-write-lock", 500ms, 3s, [this] { hold("begin immediate"); }, done}};
  }

 private:
  /// As another connection of the application may.
  void hold(char const* sql) {
    sqlite3* db = nullptr;
    sqlite3_open(path_.c_str(), &db);
    held_.emplace(db, &sqlite3_close);
    sqlite3_busy_timeout(db, 2000);
    sqlite3_exec(db, "pragma wal_autocheckpoint = 0", nullptr, nullptr, nullptr);
    sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  }

  std::string path_;
  std::uint64_t max_bytes_;
  std::optional<std::unique_ptr<sqlite3, decltype(&sqlite3_close)>> held_{};
};

}  // namespace

std::unique_ptr<target> make_target(std::string const& name, std::string const& url,
                                    std::string const& scenario, bool lasting,
                                    std::string const& directory) {
  bool const small = scenario == "full";
  if (!url.empty()) {
    // What is there stays untouched: a name of its own for each run.
    auto const prefix = "soak_" + std::to_string(::getpid());
    return std::make_unique<stranger>(opening{.url = url, .prefix = prefix});
  }
  if (name == "redis") {
    std::vector<std::string> options;
    if (lasting) options = {"--appendonly", "yes", "--appendfsync", "always"};
    if (small) options = {"--maxmemory", "24mb", "--maxmemory-policy", "noeviction"};
    return std::make_unique<redis_target>(std::move(options), lasting);
  }
  if (name == "nats") return std::make_unique<nats_target>(small ? 24U << 20U : 0U);
  if (name == "postgres") return std::make_unique<postgres_target>();
  if (name == "sqlite") {
    return std::make_unique<sqlite_target>(directory + "/soak.db", small ? 24U << 20U : 0U);
  }
  throw std::runtime_error{"no engine is called " + name};
}

// ------------------------------------------------------------------------------ the network

struct network::state {
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy{io.get_executor()};
  weir::testing::fault_proxy proxy;
  std::thread thread;

  explicit state(boost::asio::ip::tcp::endpoint const& to)
      : proxy{io.get_executor(), to},
        thread{[this] { io.run(); }} {}
};

namespace {

/// Where host and port stand in a URL; empty: they are not simple, or TLS wants the name.
std::pair<std::size_t, std::size_t> place_of(std::string const& url) {
  auto const scheme = url.find("://");
  if (scheme == url.npos || url.starts_with("rediss") || url.starts_with("tls") ||
      url.find(',') != url.npos || url.find("sslmode") != url.npos) {
    return {};
  }
  auto const end = std::min(url.find_first_of("/?", scheme + 3), url.size());
  auto const at = url.rfind('@', end);
  return {at == url.npos || at < scheme ? scheme + 3 : at + 1, end};
}

}  // namespace

network::network(opening const& to) : to_{to} {
  auto const [begin, end] = place_of(to.url);
  if (begin == end) return;
  auto const where = to.url.substr(begin, end - begin);
  auto const colon = where.rfind(':');
  if (colon == where.npos) return;
  boost::asio::io_context io;
  boost::asio::ip::tcp::resolver resolver{io};
  auto const found = resolver.resolve(where.substr(0, colon), where.substr(colon + 1));
  state_ = std::make_unique<state>(found.begin()->endpoint());
}
network::~network() {
  if (!state_) return;
  state_->io.stop();
  state_->thread.join();
}

opening network::through() const {
  auto out = to_;
  if (!state_) return out;
  auto const [begin, end] = place_of(to_.url);
  out.url.replace(begin, end - begin,
                  "127.0.0.1:" + std::to_string(state_->proxy.endpoint().port()));
  return out;
}

void network::heal() {
  if (!state_) return;
  state_->proxy.chaos({});
  state_->proxy.async_refuse(false);
  state_->proxy.async_resume();
  // What a chaos has planned for a connection stays planned.
  state_->proxy.async_cut_all(weir::testing::proxy_ending::fin);
}

std::vector<fault> network::faults() {
  if (!state_) return {};
  using weir::testing::proxy_ending;
  using weir::testing::proxy_rates;
  auto& proxy = state_->proxy;
  auto const chaos = [&proxy](proxy_rates const& rates) {
    return [&proxy, rates] {
      proxy.chaos(rates);
      proxy.async_cut_all(proxy_ending::fin);
    };
  };
  auto const cut = [&proxy](proxy_ending how) {
    return [&proxy, how] { proxy.async_cut_all(how); };
  };
  auto const healed = [this] { heal(); };
  return {{"delays", 3s, 6s, chaos({.delay = 30, .max_delay = 150ms}), healed},
          {"cuts", 3s, 6s, chaos({.cut_before = 1, .cut_in = 1, .cut_after = 1}), healed},
          {"black-holes", 3s, 6s, chaos({.black_hole = 1}), healed},
          {"reset-all", 100ms, 200ms, cut(proxy_ending::reset), {}},
          {"silent-cut", 100ms, 200ms, cut(proxy_ending::silent), {}},
          {"silence", 1s, 5s, [&proxy] { proxy.async_stall(); }, healed},
          {"refused", 1s, 4s,
           [&proxy] {
             proxy.async_refuse(true);
             proxy.async_cut_all(proxy_ending::reset);
           },
           healed}};
}

std::vector<fault> faults_of(family& f, std::function<std::uint64_t()> chance) {
  auto const lease_ms = std::chrono::duration_cast<std::chrono::milliseconds>(lease);
  return {{"kill-process", 100ms, 200ms, [&f, chance] { f.replace_one(chance()); }, {}},
          {"kill-many",
           2s,
           4s,
           [&f, chance] {
             for (int i = 0; i != 4; ++i) f.replace_one(chance());
           },
           {}},
          {"stop-process", lease_ms + 1s, 2 * lease_ms, [&f, chance] { f.stop_one(chance()); },
           [&f] { f.resume(); }},
          {"stop-many", lease_ms + 1s, 2 * lease_ms,
           [&f, chance] {
             for (int i = 0; i != 3; ++i) f.stop_one(chance());
           },
           [&f] { f.resume(); }}};
}

std::string version_of(std::string const& name) {
  std::string command = name == "redis" ? "(redis-server --version || redis-check-rdb --version)"
                        : name == "postgres"
                            ? postgres_test::program::find("postgres") + " --version"
                        : name == "nats" ? std::string{nats_test::server_program} + " --version"
                                         : "echo SQLite " SQLITE_VERSION;
  std::FILE* const pipe = ::popen(("{ " + command + "; } 2>/dev/null | head -n 1").c_str(), "r");
  if (pipe == nullptr) return name;
  std::array<char, 256> line{};
  auto const n = std::fread(line.data(), 1, line.size() - 1, pipe);
  ::pclose(pipe);
  std::string out{line.data(), n};
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace soak
