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
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace redis_test {

using namespace weir;
using namespace std::chrono_literals;

/// A server of this test's own, on the loopback interface and with a directory of its own: Redis,
/// or the program that WEIR_TEST_REDIS_SERVER names.
class server {
 public:
  /// @param options as on the command line: "--appendonly", "yes"
  /// @param clock   the library by which its clock is moved; empty: it is the machine's
  explicit server(std::vector<std::string> options = {}, std::string clock = {})
      : options_{std::move(options)},
        clock_{std::move(clock)} {
    std::string name = std::filesystem::temp_directory_path() / "weir-redis-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary directory"};
    directory_ = name;
    if (!clock_.empty()) move_clock(0);
    start();
  }
  server(server const&) = delete;
  server& operator=(server const&) = delete;
  ~server() {
    kill();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] redis_address address() const { return redis_address{"127.0.0.1", port_}; }

  /// Has its clock show so many seconds more than the date.
  void move_clock(std::int64_t seconds) const { server_test::move_clock(directory_, seconds); }

  /// Where it keeps its files.
  [[nodiscard]] std::string const& directory() const noexcept { return directory_; }

  /// Ends it as a crash would.
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

  /// Lets it do nothing until `resume`.
  void pause() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }

  /// Starts it again, on what it left in its directory and, if it was started before, on its port.
  void start() {
    // Who asks for a free port may find it taken a moment later; and whose it was, by somebody's
    // connection, which comes to an end.
    bool const again = port_ != 0;
    for (int attempt = 0; attempt != (again ? 300 : 10); ++attempt) {
      auto const port = again ? port_ : server_test::free_port();
      if (spawn(port)) {
        port_ = port;
        return;
      }
      if (again) std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    throw std::runtime_error{"redis-server does not start: is it installed?\n" +
                             server_test::last_words(directory_ + "/log")};
  }

  /// The same, without waiting until it has read its data.
  void start_loading() {
    if (!spawn(port_, true)) throw std::runtime_error{"redis-server does not start again"};
  }

  /// What redis-cli prints for a command of plain words.
  std::string ask(std::string const& words) const { return ask_at(port_, words); }
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
    pid_ = server_test::start(programs, std::move(words), clock_, directory_);
    bool const settled = weir_test::happens([&] {
      if (::waitpid(pid_, nullptr, WNOHANG) != 0) {  // it ended: the port was taken
        pid_ = 0;
        return true;
      }
      auto const said = ask_at(port, "ping");
      return said == "PONG" || said.starts_with("NOAUTH") ||
             (may_load && said.starts_with("LOADING"));
    });
    if (!settled) kill();
    return pid_ != 0;
  }

  std::vector<std::string> options_;
  std::string clock_;
  std::string directory_;
  std::uint16_t port_ = 0;
  ::pid_t pid_ = 0;
};

}  // namespace redis_test

#endif
