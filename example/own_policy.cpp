// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Policies of your own: a backoff is a pure function, a key policy makes a caller's key into the
// store's. Both are checked against weir's concepts, and used like weir's own.

#include "weir.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

/// Waits from a table; the last one again and again. It uses neither the wait before nor the random
/// bits: `weir::jittered_backoff` around it would.
// begin: backoff
class stairs {
 public:
  weir::duration operator()(std::uint32_t attempt, weir::duration /*previous*/,
                            std::uint64_t /*entropy*/) const noexcept {
    constexpr std::array<weir::duration, 4> steps{1s, 5s, 30s, 5min};
    return steps[std::min<std::size_t>(attempt, steps.size() - 1)];
  }
};
static_assert(weir::backoff<stairs>);
// end: backoff

/// All users of a tenant share its bucket: of "acme/ann" only "acme" counts.
class tenant_key {
 public:
  class stored {
   public:
    explicit stored(std::string_view text) : text_{text} {}
    std::string_view view() const noexcept { return text_; }  // empty only if the caller's key is

   private:
    std::string text_;
  };

  stored operator()(std::string_view key) const {
    auto const slash = key.find('/');
    return stored{slash == 0 ? key : key.substr(0, slash)};
  }
};
static_assert(weir::key_policy<tenant_key>);

struct charge {
  int cents;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(charge, cents)

template <>
struct weir::job_traits<charge> {
  static constexpr std::string_view kind = "charge";
  static constexpr stairs backoff{};  // of a failed attempt of this job
};

int main() {
  boost::asio::io_context io;
  weir::memory_store store{io.get_executor()};

  weir::rate_limiter rate{store, weir::quota::per_hour(2), weir::system_clock{}, tenant_key{}};
  for (auto const* key : {"acme/ann", "acme/bob", "acme/cy", "umbrella/ann"}) {
    std::printf("%s: %s\n", key, rate.try_take(key).value().allowed ? "allowed" : "denied");
  }

  weir::limiter llm{store, {.limit = 10, .ttl = 30s}, weir::system_clock{}, stairs{}};
  weir::worker worker{store, {.concurrency = 4}, weir::system_clock{}, stairs{}};
  std::printf("the third wait: %d s\n", static_cast<int>(stairs{}(2, 5s, 0) / 1s));
}
