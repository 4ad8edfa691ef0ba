// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_RAW_HPP
#define WEIR_TEST_INTEGRATION_REDIS_RAW_HPP

#include "weir/store/redis/resp.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redis_test {

/// A connection that says any bytes to a server: what no store does.
class raw {
 public:
  explicit raw(std::uint16_t port) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    ask("HELLO", "3");
  }

  template <class... Args>
  std::vector<weir::detail::redis_value> ask(std::string_view command, Args const&... args) {
    weir::detail::redis_wire wire;
    wire.push(command, args...);
    return ask(wire);
  }
  std::vector<weir::detail::redis_value> ask(weir::detail::redis_wire const& wire) {
    send(wire);
    return reply();
  }
  /// So that each command of it has a reply, which are to be read one after the other.
  void send(weir::detail::redis_wire const& wire) {
    boost::asio::write(socket_, boost::asio::buffer(wire.payload()));
  }
  std::vector<weir::detail::redis_value> reply() {
    weir::detail::redis_parser parser;
    using outcome = weir::detail::redis_parser::outcome;
    for (;;) {
      auto const got = parser.read(rest_, {std::size_t{64} << 20U, 1'000'000});
      rest_.erase(0, parser.consumed());
      if (got == outcome::complete) return {parser.nodes().begin(), parser.nodes().end()};
      if (got == outcome::refused) throw std::runtime_error{"no protocol"};
      std::array<char, 16384> bytes{};
      auto const n = socket_.read_some(boost::asio::buffer(bytes));
      rest_.append(bytes.data(), n);
    }
  }

 private:
  boost::asio::io_context io_{};
  boost::asio::ip::tcp::socket socket_{io_};
  std::string rest_;
};

}  // namespace redis_test

#endif
