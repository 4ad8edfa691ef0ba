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
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace nats_test {

extern char const* const server_program;

using namespace weir;
using namespace std::chrono_literals;

/// A NATS server with JetStream of this test's own, on the loopback interface and with a directory
/// of its own.
class server : public server_test::server_process {
 public:
  /// @param options as on the command line
  /// @param configuration as in a configuration file; empty: there is none
  /// @param clock the program of preload/traced_clock.cpp, for a server whose clock is moved;
  /// empty:
  ///        it is not
  explicit server(std::vector<std::string> options = {}, std::string const& configuration = {},
                  std::string clock = {})
      : server_process{std::move(options), std::move(clock)} {
    if (!configuration.empty()) {
      std::ofstream{directory_ + "/conf"} << configuration << std::flush;
      options_.insert(options_.end(), {"-c", directory_ + "/conf"});
    }
    start();
  }

  [[nodiscard]] nats_address address() const {
    return nats_address::parse("nats://127.0.0.1:" + std::to_string(port())).value();
  }

  /// Makes it read this configuration instead of what it was given before.
  void reload(std::string const& configuration) const {
    std::ofstream{directory_ + "/conf"} << configuration << std::flush;
    ::kill(pid_, SIGHUP);
  }

  /// Starts it again, on what it left in its directory and, if it was started before, on its port.
  void start() {
    start_by([this](std::uint16_t port) { return spawn(port); },
             "nats-server does not start: is 2.12 or later installed?");
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
    auto const* const program = clock_.empty() ? server_program : clock_.c_str();
    return settles(server_test::start({program}, std::move(words)), [&] { return greets(port); });
  }
};

}  // namespace nats_test

#endif
