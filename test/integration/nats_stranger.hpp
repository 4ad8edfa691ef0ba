// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_STRANGER_HPP
#define WEIR_TEST_INTEGRATION_NATS_STRANGER_HPP

#include "integration/nats_process.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nats_test {

/// Somebody else, who speaks to the server by hand.
class stranger {
 public:
  /// @param who of the properties of CONNECT, who asks: `"user":"me","pass":"secret",`
  /// @param patience how long what is said is waited for, before it is an error
  explicit stranger(server const& s, std::string const& who = {},
                    std::chrono::seconds patience = 1min) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), s.port()});
    ::timeval const wait{patience.count(), 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    line();
    write("CONNECT {" + who +
          "\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB inbox 1\r\n");
  }

  void publish(std::string const& subject, std::string_view data) {
    write("PUB " + subject + " " + std::to_string(data.size()) + "\r\n" + std::string{data} +
          "\r\nPING\r\n");
    while (line() != "PONG") {
    }
  }

  void publish(std::string const& subject, std::string const& headers, std::string_view data) {
    auto const head = "NATS/1.0\r\n" + headers + "\r\n";
    write("HPUB " + subject + " " + std::to_string(head.size()) + " " +
          std::to_string(head.size() + data.size()) + "\r\n" + head + std::string{data} +
          "\r\nPING\r\n");
    while (line() != "PONG") {
    }
  }

  /// Listens to all that this user may hear.
  void overhear() { write("SUB > 2\r\n"); }
  void overhear_one(std::string const& subject) { write("SUB " + subject + " 4\r\n"); }
  /// All that was said to it until now.
  [[nodiscard]] std::string heard() {
    write("PING\r\n");
    std::string out;
    for (auto said = line(); said != "PONG"; said = line()) out += said + "\n";
    return out;
  }

  /// Listens to a subject, in order to give everything that comes this answer.
  void answer(std::string const& subject, std::string said) {
    answer_ = std::move(said);
    write("SUB " + subject + " 3\r\n");
  }
  /// Questions that have come there until now: where each is answered, and what it is.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> questions() {
    std::vector<std::pair<std::string, std::string>> out;
    write("PING\r\n");
    for (auto said = line(); said != "PONG"; said = line()) {
      if (!said.starts_with("MSG ")) continue;
      std::istringstream words{said};
      std::string word;
      std::string to;
      std::size_t size = 0;
      words >> word >> word >> word >> to >> size;
      out.emplace_back(to, take(size));
    }
    return out;
  }
  /// Publishes, and waits for nothing.
  void say(std::string const& to, std::string_view data) {
    write("PUB " + to + " " + std::to_string(data.size()) + "\r\n" + std::string{data} + "\r\n");
  }
  /// Answers that. @return how many questions that were, with this in them
  int answer_what_was_asked(std::string_view what = {}) {
    int answered = 0;
    for (auto const& [to, asked] : questions()) {
      answered += asked.find(what) != std::string::npos ? 1 : 0;
      say(to, answer_);
    }
    return answered;
  }
  /// Asks, and waits for no reply.
  void request(std::string const& subject, std::string_view data,
               std::string const& reply = "weir.r.me.1") {
    write("PUB " + subject + " " + reply + " " + std::to_string(data.size()) + "\r\n" +
          std::string{data} + "\r\n");
    (void)heard();
  }

  /// The reply's data.
  [[nodiscard]] std::string ask(std::string const& subject, std::string_view data = {}) {
    write("PUB " + subject + " inbox " + std::to_string(data.size()) + "\r\n" + std::string{data} +
          "\r\n");
    for (;;) {
      if (line().find("MSG inbox 1 ") != std::string::npos) return line();
    }
  }

 private:
  void write(std::string const& text) { boost::asio::write(socket_, boost::asio::buffer(text)); }
  void read_more() {
    // Not Asio's, which waits however long it takes.
    std::array<char, 4096> some{};
    auto const n = ::recv(socket_.native_handle(), some.data(), some.size(), 0);
    if (n <= 0) throw std::runtime_error{"the server says nothing"};
    read_.append(some.data(), static_cast<std::size_t>(n));
  }
  std::string line() {
    constexpr std::string_view end = "\r\n";
    auto at = read_.find(end);
    for (; at == read_.npos; at = read_.find(end)) read_more();
    auto out = read_.substr(0, at);
    read_.erase(0, at + end.size());
    return out;
  }

  /// Reads so many bytes, and the end of the line behind them.
  std::string take(std::size_t size) {
    while (read_.size() < size + 2) read_more();
    auto out = read_.substr(0, size);
    read_.erase(0, size + 2);
    return out;
  }

  boost::asio::io_context io_{};
  boost::asio::ip::tcp::socket socket_{io_};
  std::string read_{};
  std::string answer_{};
};

}  // namespace nats_test

#endif
