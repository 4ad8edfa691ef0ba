// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_NATS_SERVER_HPP
#define WEIR_TEST_INTEGRATION_NATS_SERVER_HPP

#include "integration/directory.hpp"
#include "integration/nats_process.hpp"
#include "integration/nats_stranger.hpp"
#include "integration/patience.hpp"
#include "integration/store_fixture.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace nats_test {

using weir_test::ask;

template <class T>
[[nodiscard]] bool is_error(result<T> const& r, error_code e) {
  return r.has_error() && r.error() == e;
}

/// Goes on as soon as it can, and gives nobody up because a machine is slow: what a test shows of
/// that is in its own options. It owns nothing, and so does all by itself where nobody else does:
/// a store of a test runs only while the test waits for it, and could not be asked.
[[nodiscard]] inline nats_options brisk() {
  nats_options o;
  o.offline_patience = o.connect_timeout = o.request_timeout = 1min;
  o.health_check_interval = 10s;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 20ms;
  o.owner = false;
  return o;
}

/// A server with this configuration; `DIRECTORY` in it is one of its own, with what `prepare` left
/// there.
struct configured {
  using preparation = std::function<void(std::string const&)>;

  explicit configured(std::string text, preparation const& prepare = {}) {
    if (prepare) prepare(directory);
    constexpr std::string_view place = "DIRECTORY";
    for (std::size_t at = 0; (at = text.find(place)) != text.npos;) {
      text.replace(at, place.size(), directory);
    }
    std::ofstream{directory + "/conf"} << text << std::flush;
    it.emplace(std::vector<std::string>{"-c", directory + "/conf"});
  }

  weir_test::directory home{};
  std::string directory{home.path()};
  std::optional<server> it{};
};

[[nodiscard]] inline nats_address at(server const& s, std::string const& who = {}) {
  return nats_address::parse("nats://" + who + "127.0.0.1:" + std::to_string(s.port())).value();
}

/// A store that runs.
struct bed : weir_test::running<nats_store> {
  explicit bed(nats_address const& where, nats_options const& options = brisk())
      : running{where, options} {}
  explicit bed(server& s, nats_options const& options = brisk()) : bed{s.address(), options} {}
};

/// Asks until there is an answer, which has to come in time.
template <class C>
[[nodiscard]] result<typename C::result> eventually(bed& on, C const& c) {
  static_assert(C::repeatable);
  auto r = on(c);
  (void)weir_test::happens([&] {
    if (r.has_value()) return true;
    on.io.restart();
    on.io.run_for(10ms);
    r = on(c);
    return r.has_value();
  });
  return r;
}

}  // namespace nats_test

#endif
