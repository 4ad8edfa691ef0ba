// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_POSTGRES_POOLER_HPP
#define WEIR_TEST_INTEGRATION_POSTGRES_POOLER_HPP

#include "postgres_server.hpp"

#include <fstream>
#include <stdexcept>
#include <string>

namespace postgres_test {

/// A pgbouncer in front of a server, which gives its connections to transactions: fewer than there
/// are clients, so that what one leaves in a session, another finds.
class pooler {
 public:
  explicit pooler(server const& behind) {
    auto const home = program_.home();
    for (int attempt = 0; attempt < 100; ++attempt) {
      program_.choose_port();
      std::ofstream{home / "users"} << "\"postgres\" \"\"\n";
      std::ofstream{home / "ini"} << "[databases]\n* = host=127.0.0.1 port=" << behind.port()
                                  << " user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                                  << "listen_port = " << program_.port() << "\nunix_socket_dir =\n"
                                  << "auth_type = any\nauth_file = " << (home / "users").string()
                                  << "\npool_mode = transaction\ndefault_pool_size = 2\n"
                                  << "max_client_conn = 200\nserver_round_robin = 1\n"
                                  << "ignore_startup_parameters = extra_float_digits,options\n";
      program_.start({program::find("pgbouncer"), (home / "ini").string()}, {});
      if (program_.answers(conninfo("postgres"))) return;
    }
    throw std::runtime_error{"pgbouncer does not start"};
  }

  [[nodiscard]] std::string conninfo(std::string const& database) const {
    return conninfo_to(program_.port(), database);
  }

 private:
  program program_;
};

}  // namespace postgres_test

#endif
