// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_GATEWAY_GATE_HPP
#define WEIR_EXAMPLE_GATEWAY_GATE_HPP

#include "options.hpp"
#include "weir/decision.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

// What stands between the clients and the backend, as the HTTP side sees it. Behind it is one store
// or another, each compiled in a file of its own.
namespace gateway {

namespace asio = boost::asio;

inline constexpr std::string_view console_prefix = "/console";

/// What is to be done in turn: asks the backend. Cancelled if the client goes, or the permit is
/// lost.
using work = std::function<asio::awaitable<weir::result<std::string>>()>;

enum class verdict {
  done,         ///< the work has ended; `answer` is what it said
  too_often,    ///< the key has used up its quota: `rate.retry_after`
  no_turn,      ///< too many run at once, and its turn did not come; its token went back
  permit_lost,  ///< it ran, and may have run beside others: its answer is not to be used
  failed,       ///< the store failed: `problem`
};

struct passage {
  passage() = default;

  verdict outcome = verdict::failed;
  weir::decision rate{};
  weir::result<std::string> answer{weir::error_code{}};
  weir::error_code problem{};
};

struct occupancy {
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
};

/// Thread-safety: all functions may be called by any number of threads at once.
class gate {
 public:
  gate() = default;
  gate(gate const&) = delete;
  gate& operator=(gate const&) = delete;
  virtual ~gate() = default;

  /// Takes one of the key's tokens, waits for a turn, and does the work. Reports failures in its
  /// result; throws only if it is cancelled. However it ends, the turn is given back.
  virtual asio::awaitable<passage> pass(std::string_view api_key, work const& what) = 0;

  /// How many run and wait now, over all gateways on the store. Throws the store's error.
  virtual asio::awaitable<occupancy> look() = 0;

  /// A page about the store, below `console_prefix`: see `weir::console`.
  virtual asio::awaitable<serving::response> page(serving::request const& asked) = 0;

  /// Ends when every turn has been given back. Nothing may be under way, or come after.
  virtual asio::awaitable<void> close() = 0;
};

/// Opens the store that `options.store` names. Throws `usage_error`, or what is wrong with it.
[[nodiscard]] std::unique_ptr<gate> open_gate(asio::any_io_executor const& executor,
                                              options const& options);

// Each null if this program was built without it.
[[nodiscard]] std::unique_ptr<gate> open_memory_gate(asio::any_io_executor const& executor,
                                                     options const& options);
[[nodiscard]] std::unique_ptr<gate> open_sqlite_gate(asio::any_io_executor const& executor,
                                                     std::string const& path,
                                                     options const& options);
[[nodiscard]] std::unique_ptr<gate> open_redis_gate(asio::any_io_executor const& executor,
                                                    std::string const& url, options const& options);

}  // namespace gateway

#endif
