// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Boost.Redis's simplest program: connects, and asks one thing.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>

#include <cstdio>
#include <string>

namespace asio = boost::asio;
namespace redis = boost::redis;

asio::awaitable<void> ask(redis::connection& connection) {
  redis::request question;
  question.push("PING", "hello");
  redis::response<std::string> answer;
  co_await connection.async_exec(question, answer, asio::deferred);
  std::puts(std::get<0>(answer).value().c_str());
  connection.cancel();
}

int main() {
  asio::io_context io;
  redis::connection connection{io};
  connection.async_run(redis::config{}, {}, asio::detached);
  asio::co_spawn(io, ask(connection), asio::detached);
  io.run();
}
