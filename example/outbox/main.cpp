// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The outbox: what an application wants done outside is written by the same SQL transaction as its
// own data, and done by a worker afterwards. Kill either of them whenever you like (`kill -9`) and
// start it again: every order that was committed is delivered at least once, and no other ever is.

#include "../printable.hpp"
#include "orders.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

int main(int argc, char** argv) try {
  std::string_view const verb = argc == 4 ? argv[1] : "";
  if (verb == "order" && std::atoi(argv[3]) > 0) {
    outbox::place_orders(argv[2], static_cast<std::uint32_t>(std::atoi(argv[3])));
  } else if (verb == "deliver") {
    outbox::deliver_orders(argv[2], argv[3]);
  } else {
    std::fputs("usage: outbox order FILE COUNT    places orders; every third is rolled back\n"
               "       outbox deliver FILE LIST   delivers them until SIGINT or SIGTERM: a line in "
               "LIST for each\n"
               "FILE is a SQLite database, of the application and of weir.\n",
               stderr);
    return 2;
  }
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "outbox: %s\n", example::printable(e.what()).c_str());
  return 1;
}
