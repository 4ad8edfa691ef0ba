// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_PROCESS_HPP
#define WEIR_TEST_INTEGRATION_REDIS_PROCESS_HPP

#include "patience.hpp"
#include "server_process.hpp"
#include "weir/store/redis/address.hpp"

#include <sys/wait.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redis_test {

using namespace weir;
using namespace std::chrono_literals;

/// A server of this test's own, on the loopback interface and with a directory of its own: Redis,
/// or the program that WEIR_TEST_REDIS_SERVER names.
class server : public server_test::server_process {
 public:
  /// @param options as on the command line: "--appendonly", "yes"
  /// @param clock   the library by which its clock is moved; empty: it is the machine's
  explicit server(std::vector<std::string> options = {}, std::string clock = {})
      : server_process{std::move(options), std::move(clock)} {
    if (!clock_.empty()) move_clock(0);
    start();
  }

  [[nodiscard]] redis_address address() const { return redis_address{"127.0.0.1", port()}; }

  /// Starts it again, on what it left in its directory and, if it was started before, on its port.
  void start() {
    start_by([this](std::uint16_t port) { return spawn(port); },
             "redis-server does not start: is it installed?");
  }

  /// The same, without waiting until it has read its data.
  void start_loading() {
    if (!spawn(port(), true)) throw std::runtime_error{"redis-server does not start again"};
  }

  /// What redis-cli prints for a command of plain words.
  std::string ask(std::string const& words) const { return ask_at(port(), words); }
  static std::string ask_at(std::uint16_t port, std::string const& words) {
    auto const line =
        "exec redis-cli -h 127.0.0.1 -p " + std::to_string(port) + " " + words + " 2>&1";
    std::string out;
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error{"redis-cli cannot be run"};
    std::array<char, 4096> buffer{};
    for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
      out.append(buffer.data(), n);
    }
    ::pclose(pipe);
    while (out.ends_with('\n')) out.pop_back();
    return out;
  }

 private:
  bool spawn(std::uint16_t port, bool may_load = false) {
    std::vector<std::string> words{"redis-server",     "--port",    std::to_string(port),
                                   "--bind",           "127.0.0.1", "--dir",
                                   directory_,         "--save",    "",
                                   "--daemonize",      "no",        "--logfile",
                                   directory_ + "/log"};
    words.insert(words.end(), options_.begin(), options_.end());
    // The server is what it is called by: Debian's tools bring it under the second name.
    auto const* const asked = std::getenv("WEIR_TEST_REDIS_SERVER");
    std::vector<char const*> programs{"redis-server", "redis-check-rdb"};
    if (asked != nullptr) programs = {asked};
    return settles(server_test::start(programs, std::move(words), clock_, directory_), [&] {
      auto const said = ask_at(port, "ping");
      return said == "PONG" || said.starts_with("NOAUTH") ||
             (may_load && said.starts_with("LOADING"));
    });
  }
};

}  // namespace redis_test

#endif
