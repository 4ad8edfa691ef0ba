// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/target.hpp"

#include "integration/nats_process.hpp"
#include "integration/postgres_server.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <utility>

namespace soak {

namespace {

/// One that is there: nothing is done to it but what its clients may do.
class stranger final : public target {
 public:
  explicit stranger(opening o) : at_{std::move(o)} {}
  [[nodiscard]] opening direct() const override { return at_; }

 private:
  opening at_;
};

}  // namespace

std::unique_ptr<target> make_target(wish const& w) {
  if (!w.url.empty()) {
    // Each run has a name of its own, so that nothing that is there is touched.
    return std::make_unique<stranger>(
        opening{.url = w.url, .prefix = "soak_" + std::to_string(::getpid())});
  }
  static std::map<std::string, std::unique_ptr<target> (*)(wish const&)> const engines{
      {"redis", make_redis},
      {"redis-cluster", make_redis_cluster},
      {"redis-sentinel", make_redis_sentinel},
      {"nats", make_nats},
      {"nats-cluster", make_nats_cluster},
      {"postgres", make_postgres},
      {"postgres-standby", make_postgres_standby},
      {"sqlite", make_sqlite}};
  auto const found = engines.find(w.name);
  if (found == engines.end()) throw std::runtime_error{"no engine is called " + w.name};
  return found->second(w);
}

std::string version_of(std::string const& name) {
  std::string command =
      name.starts_with("redis")      ? "(redis-server --version || redis-check-rdb --version)"
      : name.starts_with("postgres") ? postgres_test::program::find("postgres") + " --version"
      : name.starts_with("nats")     ? std::string{nats_test::server_program} + " --version"
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
