// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "stores.hpp"

#include <stdexcept>
#include <string>

#ifdef MANIFEST_WITH_POSTGRES

#include "weir/store/postgres.hpp"

#include <boost/asio/io_context.hpp>

namespace manifest {

any_store open_postgres_store(asio::any_io_executor const& executor, std::string const& url) {
  asio::io_context io;
  weir::error_code found;
  weir::postgres_store const first{io.get_executor(), url};
  first.async_migrate([&](weir::error_code ec) { found = ec; });
  io.run();
  // Not the URL, which may have a password in it.
  if (found) throw std::runtime_error{"PostgreSQL: " + found.message()};
  return make_any_store(weir::postgres_store{executor, url});
}

}  // namespace manifest

#else

namespace manifest {

any_store open_postgres_store(asio::any_io_executor const&, std::string const&) {
  throw std::runtime_error{"this program was built without PostgreSQL: use another --store"};
}

}  // namespace manifest

#endif
