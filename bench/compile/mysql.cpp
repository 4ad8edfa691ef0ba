// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Boost.MySQL's simplest program: connects, and asks one thing.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/mysql/any_connection.hpp>
#include <boost/mysql/connect_params.hpp>
#include <boost/mysql/results.hpp>

#include <cstdio>

namespace asio = boost::asio;
namespace mysql = boost::mysql;

asio::awaitable<void> ask(mysql::any_connection& connection) {
  mysql::connect_params where;
  where.username = "user";
  co_await connection.async_connect(where);
  mysql::results answer;
  co_await connection.async_execute("SELECT 1", answer);
  std::printf("%zu\n", answer.rows().size());
}

int main() {
  asio::io_context io;
  mysql::any_connection connection{io};
  asio::co_spawn(io, ask(connection), asio::detached);
  io.run();
}
