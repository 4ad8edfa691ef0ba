// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_PROCESS_HPP
#define WEIR_TEST_INTEGRATION_NATS_PROCESS_HPP

#include "patience.hpp"
#include "server_process.hpp"
#include "weir/store/nats/address.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <sys/wait.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace nats_test {

extern char const* const server_program;

using namespace weir;
using namespace std::chrono_literals;

/// A NATS server with JetStream of this test's own, on the loopback interface and with a directory
/// of its own.
class server {
 public:
  /// @param options as on the command line
  /// @param configuration as in a configuration file; empty: there is none
  /// @param clock the program of preload/traced_clock.cpp, for a server whose clock is moved;
  /// empty:
  ///        it is not
  explicit server(std::vector<std::string> options = {}, std::string const& configuration = {},
                  std::string clock = {})
      : options_{std::move(options)},
        clock_{std::move(clock)} {
    std::string name = std::filesystem::temp_directory_path() / "weir-nats-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary directory"};
    directory_ = name;
    if (!configuration.empty()) {
      std::ofstream{directory_ + "/conf"} << configuration << std::flush;
      options_.insert(options_.end(), {"-c", directory_ + "/conf"});
    }
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
  [[nodiscard]] std::string const& directory() const noexcept { return directory_; }
  [[nodiscard]] nats_address address() const {
    return nats_address::parse("nats://127.0.0.1:" + std::to_string(port_)).value();
  }

  /// Ends it as a crash would.
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  /// Stops it, and lets it go on: as a host that is suspended would.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }

  /// Has its clock show so many seconds more than the date.
  void move_clock(std::int64_t seconds) const { server_test::move_clock(directory_, seconds); }

  /// Makes it read this configuration instead of what it was given before.
  void reload(std::string const& configuration) const {
    std::ofstream{directory_ + "/conf"} << configuration << std::flush;
    ::kill(pid_, SIGHUP);
  }

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
    throw std::runtime_error{"nats-server does not start: is 2.12 or later installed?\n" +
                             server_test::last_words(directory_ + "/log")};
  }

 private:
  /// It greets whoever connects once it is ready.
  static bool greets(std::uint16_t port) {
    using boost::asio::ip::tcp;
    boost::asio::io_context io;
    tcp::socket socket{io};
    boost::system::error_code ec;
    socket.connect({boost::asio::ip::address_v4::loopback(), port}, ec);
    if (ec) return false;
    std::array<char, 4> begin{};
    boost::asio::read(socket, boost::asio::buffer(begin), ec);
    return !ec && std::string(begin.data(), begin.size()) == "INFO";
  }

  bool spawn(std::uint16_t port) {
    std::vector<std::string> words{
        server_program, "-a",  "127.0.0.1",        "-p", std::to_string(port),
        "-js",          "-sd", directory_ + "/js", "-l", directory_ + "/log"};
    words.insert(words.end(), options_.begin(), options_.end());
    if (!clock_.empty()) words.insert(words.begin(), {clock_, directory_ + "/clock"});
    pid_ = server_test::start({clock_.empty() ? server_program : clock_.c_str()}, std::move(words));
    bool const settled = weir_test::happens([&] {
      if (::waitpid(pid_, nullptr, WNOHANG) != 0) {  // it ended: the port was taken
        pid_ = 0;
        return true;
      }
      return greets(port);
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

}  // namespace nats_test

#endif
