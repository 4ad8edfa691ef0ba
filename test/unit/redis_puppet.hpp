// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_REDIS_PUPPET_HPP
#define WEIR_TEST_UNIT_REDIS_PUPPET_HPP

#include "integration/patience.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/options.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redis_test {

using namespace std::chrono_literals;

/// A server that says what a test has it say, in the test's own context: what a real one does once
/// in a million times, it does each time.
class puppet {
 public:
  using tcp = boost::asio::ip::tcp;
  using words = std::vector<std::string>;

  /// One of its connections.
  class guest : public std::enable_shared_from_this<guest> {
   public:
    guest(tcp::socket socket, puppet& host) : socket_{std::move(socket)}, host_{host} {}

    void start() { read(); }

    /// In the protocol, after all that was said before.
    void say(std::string_view bytes) {
      said_ += bytes;
      if (saying_.empty()) write();
    }
    void hang_up() {
      boost::system::error_code ignored;
      socket_.close(ignored);
    }
    [[nodiscard]] bool has_left() {
      ::tcp_info info{};
      ::socklen_t size = sizeof info;
      auto const got = ::getsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size);
      auto const state = info.tcpi_state;
      return got == 0 && state != TCP_ESTABLISHED && state != TCP_FIN_WAIT1 &&
             state != TCP_FIN_WAIT2;
    }
    /// Nothing more is said, but it still listens.
    void fall_silent() {
      boost::system::error_code ignored;
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
    }

   private:
    void read() {
      socket_.async_read_some(boost::asio::buffer(bytes_),
                              [self = shared_from_this()](auto ec, std::size_t n) {
                                if (ec) return;
                                self->heard_.append(self->bytes_.data(), n);
                                while (auto const command = self->next()) {
                                  self->host_.hear(*self, *command);
                                }
                                self->read();
                              });
    }

    void write() {
      saying_ = std::exchange(said_, {});
      boost::asio::async_write(socket_, boost::asio::buffer(saying_),
                               [self = shared_from_this()](auto ec, std::size_t) {
                                 self->saying_.clear();
                                 if (!ec && !self->said_.empty()) self->write();
                               });
    }

    /// A number behind a letter, and the end of its line.
    static std::optional<std::size_t> number(std::string_view& rest) {
      auto const end = rest.find("\r\n");
      if (end == rest.npos) return std::nullopt;
      std::size_t out = 0;
      std::from_chars(rest.data() + 1, rest.data() + end, out);
      rest.remove_prefix(end + 2);
      return out;
    }

    /// The next command that is there as a whole: an array of bulk strings.
    std::optional<words> next() {
      std::string_view rest = heard_;
      auto const count = number(rest);
      if (!count) return std::nullopt;
      words out;
      for (std::size_t i = 0; i != *count; ++i) {
        auto const size = number(rest);
        if (!size || rest.size() < *size + 2) return std::nullopt;
        out.emplace_back(rest.substr(0, *size));
        rest.remove_prefix(*size + 2);
      }
      heard_.erase(0, heard_.size() - rest.size());
      return out;
    }

    tcp::socket socket_;
    puppet& host_;
    std::array<char, 4096> bytes_{};
    std::string heard_;
    std::string said_;
    std::string saying_;
  };

  /// Answers a command; false: the puppet is to do as a server does.
  using script = std::function<bool(guest&, words const&)>;

  explicit puppet(boost::asio::io_context& io)
      : acceptor_{io, {boost::asio::ip::address_v4::loopback(), 0}} {
    accept();
  }
  puppet(puppet const&) = delete;
  puppet& operator=(puppet const&) = delete;

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  [[nodiscard]] weir::redis_address address() const {
    return weir::redis_address{"127.0.0.1", port()};
  }

  /// How it answers from now on.
  void act(script how) { script_ = std::move(how); }
  /// Hangs up on so many more who call.
  void turn_away(std::size_t n) noexcept { turn_away_ = n; }
  /// Who serves all slots, as it says.
  void serves_all(std::uint16_t port) { master_ = port; }

  /// How often it was called.
  [[nodiscard]] std::size_t calls() const noexcept { return calls_; }
  /// Has somebody who was here closed a connection? As the network has it: whether that was read
  /// does not matter.
  [[nodiscard]] bool was_left() const {
    for (auto const& weak : guests_) {
      auto const g = weak.lock();
      if (g && g->has_left()) return true;
    }
    return false;
  }
  /// How often this was asked of it.
  [[nodiscard]] std::size_t heard(std::string_view command) const {
    std::size_t out = 0;
    for (auto const& w : heard_) out += w[0] == command;
    return out;
  }
  /// The first words of what it was asked since it was greeted.
  [[nodiscard]] words verbs() const {
    words out;
    for (auto const& w : heard_) out.push_back(w[0]);
    return out;
  }
  void forget() { heard_.clear(); }

  void close() {
    acceptor_.close();
    for (auto const& weak : guests_) {
      if (auto const g = weak.lock()) g->hang_up();
    }
  }

 private:
  void accept() {
    acceptor_.async_accept([this](auto ec, tcp::socket socket) {
      if (ec) return;
      ++calls_;
      if (turn_away_ != 0) {
        --turn_away_;
      } else {
        auto const g = std::make_shared<guest>(std::move(socket), *this);
        guests_.push_back(g);
        g->start();
      }
      accept();
    });
  }

  static std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n";
  }

  void hear(guest& by, words const& w) {
    heard_.push_back(w);
    if (script_ && script_(by, w)) return;
    auto const& verb = w[0];
    if (verb == "HELLO") return by.say("%1\r\n$5\r\nproto\r\n:3\r\n");
    if (verb == "SUBSCRIBE") return by.say(">3\r\n$9\r\nsubscribe\r\n" + bulk(w[1]) + ":1\r\n");
    if (verb == "PING") return by.say(bulk(w[1]));
    if (verb.starts_with("EVAL")) return by.say(bulk(w.back()));  // the number of shards
    if (verb == "SCRIPT") return by.say(bulk(std::string(40, 'a')));
    if (verb == "CLUSTER") {
      auto const at = std::to_string(master_ == 0 ? port() : master_);
      return by.say("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + at + "\r\n");
    }
    by.say("+OK\r\n");
  }

  tcp::acceptor acceptor_;
  script script_;
  std::size_t turn_away_ = 0;
  std::size_t calls_ = 0;
  std::uint16_t master_ = 0;
  std::vector<words> heard_;
  std::vector<std::weak_ptr<guest>> guests_;
};

/// What a script answers that has acquired, or looked at, a lock.
inline constexpr std::string_view lock_granted = "*4\r\n:1\r\n:7\r\n:1000\r\n$0\r\n\r\n";
inline constexpr std::string_view lock_free = "*4\r\n:0\r\n$0\r\n\r\n:0\r\n:0\r\n";

/// Nothing happens by time, but that it tries again.
inline weir::redis_options patient() {
  weir::redis_options o;
  o.offline_patience = 1h;
  o.health_check_interval = 1h;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 2ms;
  return o;
}

/// Runs until it is so, which it has to become.
template <class Condition>
void run_until(boost::asio::io_context& io, Condition so) {
  BOOST_TEST_REQUIRE(weir_test::happens(io, so), "it did not come to that");
}

}  // namespace redis_test

#endif
