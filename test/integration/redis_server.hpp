// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_SERVER_HPP
#define WEIR_TEST_INTEGRATION_REDIS_SERVER_HPP

#include "documented.hpp"
#include "integration/patience.hpp"
#include "integration/redis_process.hpp"
#include "weir/store/redis.hpp"

#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

namespace weir {

inline std::ostream& boost_test_print_type(std::ostream& out, errc e) {
  return out << make_error_code(e).message();
}

}  // namespace weir

namespace redis_test {

using namespace weir;
using namespace std::chrono_literals;

/// Nobody is given up because a machine is slow: what a test shows of that is in its own options.
[[nodiscard]] inline redis_options unhurried() {
  redis_options o;
  o.offline_patience = o.connect_timeout = 1min;
  o.health_check_interval = 30s;
  return o;
}

/// The rights of a user that a store works as, as SECURITY.md has them, for a shell.
///
/// @param prefix the store's, or a pattern for those of several
[[nodiscard]] inline std::string least_rights(std::string const& prefix = "weir") {
  using boost::algorithm::replace_all_copy;
  auto const rights = replace_all_copy(weir_test::documented("SECURITY.md", "resetkeys"),
                                       "{weir:", "{" + prefix + ":");
  return "'" + replace_all_copy(rights, " ", "' '") + "'";
}

/// Executes one command and waits for it.
template <class C>
[[nodiscard]] result<typename C::result> ask(boost::asio::io_context& io, redis_store const& store,
                                             C const& c) {
  using answer = typename C::result;
  std::optional<result<answer>> out;
  store.async_execute(c, [&](error_code ec, answer a) {
    if (ec) {
      out = ec;
    } else {
      out = std::move(a);
    }
  });
  BOOST_TEST_REQUIRE(weir_test::happens(io, [&] { return out.has_value(); }),
                     "the operation did not end");
  return *out;
}

/// A store that runs.
struct bed {
  explicit bed(server& s, redis_options const& options = unhurried()) : bed{s.address(), options} {}
  bed(redis_address address, redis_options const& options)
      : store{io.get_executor(), std::move(address), options} {
    store.async_run([this](error_code ec) { ended = ec; });
  }
  bed(bed const&) = delete;
  bed& operator=(bed const&) = delete;
  ~bed() {
    store.close();
    io.restart();
    io.run();
  }

  template <class C>
  [[nodiscard]] result<typename C::result> operator()(C const& c) {
    return ask(io, store, c);
  }

  boost::asio::io_context io{};
  redis_store store;
  std::optional<error_code> ended{};
};

}  // namespace redis_test

#endif
