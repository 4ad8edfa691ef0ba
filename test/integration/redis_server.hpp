// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_REDIS_SERVER_HPP
#define WEIR_TEST_INTEGRATION_REDIS_SERVER_HPP

#include "documented.hpp"
#include "integration/patience.hpp"
#include "integration/redis_process.hpp"
#include "integration/store_fixture.hpp"
#include "weir/store/redis.hpp"

#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace redis_test {

using namespace weir;
using namespace std::chrono_literals;

using weir_test::ask;

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

/// A store that runs.
struct bed : weir_test::running<redis_store> {
  using running::running;
  explicit bed(server& s, redis_options const& options = unhurried())
      : running{s.address(), options} {}
};

}  // namespace redis_test

#endif
