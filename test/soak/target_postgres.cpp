// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "integration/postgres_server.hpp"
#include "soak/family.hpp"
#include "soak/target.hpp"

#include <libpq-fe.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

namespace soak {

namespace {

using postgres_test::server;

server::kind kind_of(server const* primary = nullptr) {
  return {.primary = primary, .preload = WEIR_FULL_DISK ":" WEIR_MOVED_CLOCK};
}

class postgres_servers : public target {
 public:
  [[nodiscard]] std::vector<fault> faults() override {
    return {{"kill-server", 500ms, 2s, [this] { serving().kill(SIGKILL); }, [this] { start(); }},
            {"stop-server", 500ms, 2500ms, [this] { stop(); }, [this] { go_on(); }},
            {"terminate-backends", 100ms, 200ms,
             [this] {
               once("select pg_terminate_backend(pid) from pg_stat_activity where pid <> "
                    "pg_backend_pid() and backend_type = 'client backend'");
             }},
            {"hold-snapshot", 10s, 20s, [this] { hold(); }, [this] { held_.reset(); }},
            {"hold-rows", 500ms, 3s, [this] { hold_rows(); }, [this] { held_.reset(); }},
            {"full", 1s, 4s, [this] { std::ofstream{serving().home() / "full"} << "/base/"; },
             [this] { std::filesystem::remove(serving().home() / "full"); }},
            {"clock-ahead",
             2s,
             2s,
             [this] { move_clocks(3600); },
             [this] { move_clocks(0); },
             {},
             1h,
             3s},
            {"clock-back",
             3s,
             6s,
             [this] { move_clocks(-3600); },
             [this] { move_clocks(0); },
             {},
             0s,
             3s}};
  }
  [[nodiscard]] std::vector<fault> staged() override {
    return {{"days-ahead", 1ms, 1ms, [this] { move_clocks(days_ahead_ += 3 * 86'400); }}};
  }
  [[nodiscard]] std::optional<std::uint64_t> records() override {
    std::uint64_t all = 0;
    auto const on = connect();
    for (std::string const table : {"permit_lines", "permits", "locks", "buckets", "queues",
                                    "pointers", "counters", "jobs", "dequeues", "keys"}) {
      auto* const r = PQexec(on.get(), ("select count(*) from soak." + table).c_str());
      if (PQntuples(r) == 1) all += std::stoull(PQgetvalue(r, 0, 0));
      PQclear(r);
    }
    return all;
  }

 protected:
  [[nodiscard]] virtual server& serving() = 0;
  virtual void move_clocks(std::int64_t seconds) { serving().move_clock(seconds); }
  void once(char const* sql) { run(connect(), sql); }

 private:
  using connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

  [[nodiscard]] connection connect() {
    return {PQconnectdb(serving().conninfo().c_str()), &PQfinish};
  }
  static void run(connection const& on, char const* sql) { PQclear(PQexec(on.get(), sql)); }
  /// As a backup or a report does: it writes nothing.
  void hold() {
    held_ = connect();
    run(*held_, "begin isolation level repeatable read");
    run(*held_, "select count(*) from pg_class");
  }
  /// As an application that looks at what it should leave alone.
  void hold_rows() {
    held_ = connect();
    run(*held_, "begin");
    run(*held_, "select * from soak.buckets for update");
  }
  void start() {
    keep_connections();
    serving().start();
  }
  /// The server is several processes.
  void stop() {
    stopped_ = family::children_of(serving().pid());
    stopped_.push_back(serving().pid());
    for (auto const pid : stopped_) ::kill(pid, SIGSTOP);
  }
  void go_on() {
    for (auto const pid : stopped_) ::kill(pid, SIGCONT);
    stopped_.clear();
  }

  std::optional<connection> held_{};
  std::vector<::pid_t> stopped_{};
  std::int64_t days_ahead_ = 0;  // in seconds
};

class postgres_target final : public postgres_servers {
 public:
  [[nodiscard]] opening direct() const override {
    return {.url =
                "postgresql://postgres@127.0.0.1:" + std::to_string(server_.port()) + "/postgres"};
  }

 private:
  [[nodiscard]] server& serving() override { return server_; }

  server server_{kind_of()};
};

/// A primary whose commits wait for its standby, which succeeds it, and is succeeded by it in turn.
class postgres_standby_target final : public postgres_servers {
 public:
  postgres_standby_target() { wait_for_standby(); }

  [[nodiscard]] opening direct() const override {
    auto const place = [](server const& s) { return "127.0.0.1:" + std::to_string(s.port()); };
    return {.url = "postgresql://postgres@" + place(first_) + "," + place(second_) +
                   "/postgres?target_session_attrs=read-write"};
  }
  [[nodiscard]] std::vector<fault> faults() override {
    auto out = postgres_servers::faults();
    out.push_back({"promote", 500ms, 3s, [this] { promote(); }, [this] { follow(); }});
    return out;
  }

 private:
  [[nodiscard]] server& serving() override { return first_serves_ ? first_ : second_; }
  [[nodiscard]] server& waiting() { return first_serves_ ? second_ : first_; }
  void move_clocks(std::int64_t seconds) override {
    first_.move_clock(seconds);
    second_.move_clock(seconds);
  }

  /// From now on a commit is in both.
  void wait_for_standby() {
    once("alter system set synchronous_standby_names = '*'");
    once("select pg_reload_conf()");
  }
  /// The primary dies, and the standby, which has all that was acknowledged, takes its place.
  void promote() {
    serving().kill(SIGKILL);
    first_serves_ = !first_serves_;
    once("select pg_promote(true)");
    once("alter system reset synchronous_standby_names");
    once("select pg_reload_conf()");
  }
  void follow() {
    keep_connections();
    waiting().follow(serving());
    wait_for_standby();
  }

  server first_{kind_of()};
  server second_{kind_of(&first_)};
  bool first_serves_ = true;
};

}  // namespace

std::unique_ptr<target> make_postgres(wish const&) { return std::make_unique<postgres_target>(); }
std::unique_ptr<target> make_postgres_standby(wish const&) {
  return std::make_unique<postgres_standby_target>();
}

}  // namespace soak
