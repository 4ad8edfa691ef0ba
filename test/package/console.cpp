// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Asks a console for a page, as a server does that mounts one.

#include "weir/console.hpp"

#include "weir/store/memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/verb.hpp>

#include <iostream>
#include <utility>

int main() {
  namespace http = boost::beast::http;
  boost::asio::io_context context;
  weir::console page{weir::memory_store{context.get_executor()}};
  weir::console::request_type request{http::verb::get, "/queues", 11};
  request.set(http::field::host, "localhost");
  unsigned status = 0;
  page.async_handle(std::move(request), [&](weir::error_code, auto const& response) {
    status = response.result_int();
  });
  context.run();
  std::cout << "weir::console: " << status << '\n';
  return status == 200 ? 0 : 1;
}
