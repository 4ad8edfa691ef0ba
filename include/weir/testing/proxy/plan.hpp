// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_PROXY_PLAN_HPP
#define WEIR_TESTING_PROXY_PLAN_HPP

#include "weir/testing/dice.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

// What a `fault_proxy` is to do, and what it did.
namespace weir::testing {

/// The direction in which bytes go.
enum class traffic : std::uint8_t {
  to_server,  ///< what the client says
  to_client,  ///< what the server says
};

/// The faults that happen to a message, or from it on.
enum class proxy_fault : std::uint8_t {
  none,        ///< it is forwarded
  cut_before,  ///< the connection ends before the message
  cut_in,      ///< after some of its bytes
  cut_after,   ///< after all of it
  delay,       ///< the message, and so what follows it, comes later
  stall,  ///< nothing moves any more in either direction, and nothing is closed, until `resume`
  black_hole,  ///< half-open: this direction's bytes, from this message on, are taken and lost
};

/// How a connection ends.
enum class proxy_ending : std::uint8_t {
  fin,     ///< in order, as when a process ends
  reset,   ///< by RST, to both
  silent,  ///< the server is reset, and the client is told nothing: its peer is gone without a FIN
};

/// A fault of one connection.
struct planned_fault {
  proxy_fault fault = proxy_fault::none;   ///< what happens
  traffic direction = traffic::to_server;  ///< to messages of which direction
  std::uint64_t message = 0;               ///< which one of that direction, from 0
  std::size_t bytes = 1;  ///< cut_in: so many get through, but never the whole message
  duration delay{};       ///< delay: how much later
  proxy_ending ending = proxy_ending::fin;  ///< how a connection that is cut ends
};

/// Faults that a seed picks, for each message: chances in percent, tried in this order.
struct proxy_rates {
  std::uint64_t seed = 0;        ///< equal seeds and equal conversations have equal faults
  std::uint32_t cut_before = 0;  ///< `proxy_fault::cut_before`
  std::uint32_t cut_in = 0;      ///< `proxy_fault::cut_in`
  std::uint32_t cut_after = 0;   ///< `proxy_fault::cut_after`
  std::uint32_t delay = 0;       ///< `proxy_fault::delay`
  std::uint32_t stall = 0;       ///< `proxy_fault::stall`
  std::uint32_t black_hole = 0;  ///< `proxy_fault::black_hole`
  std::uint32_t reset = 50;      ///< of the cuts, those that end in a reset; the rest end by FIN
  std::uint32_t silent = 0;      ///< of the cuts, those of which the client is told nothing
  duration max_delay = std::chrono::milliseconds{20};  ///< delays are between 0 and this
};

/// The size of the first message in the bytes that have come; 0: it is not complete yet.
using message_splitter = std::function<std::size_t(std::string_view)>;

/// Makes the splitter of one direction of one connection, which may so remember where it is.
using splitter_factory = std::function<message_splitter(traffic)>;

/// Counts of what a proxy has done.
struct proxy_counts {
  std::uint64_t accepted = 0;     ///< connections
  std::uint64_t unreachable = 0;  ///< connections closed because the target did not take them
  std::uint64_t messages_to_server = 0;  ///< that went through whole
  std::uint64_t messages_to_client = 0;  ///< that went through whole
  std::uint64_t bytes_to_server = 0;     ///< of cut messages too
  std::uint64_t bytes_to_client = 0;     ///< of cut messages too
  std::uint64_t cut_before = 0;          ///< connections that ended by `proxy_fault::cut_before`
  std::uint64_t cut_in = 0;              ///< connections that ended by `proxy_fault::cut_in`
  std::uint64_t cut_after = 0;           ///< connections that ended by `proxy_fault::cut_after`
  std::uint64_t cut_all = 0;             ///< connections ended by `cut_all`
  std::uint64_t delayed = 0;             ///< messages that came later
  std::uint64_t stalled = 0;             ///< times that something began to stall
  std::uint64_t swallowed = 0;           ///< messages lost in a black hole
  std::uint64_t resets = 0;              ///< connections that ended by RST
  std::uint64_t silenced = 0;            ///< connections whose client was told nothing
  /// Did they do as much?
  friend constexpr bool operator==(proxy_counts const&, proxy_counts const&) = default;
};

namespace detail {

/// The faults of one direction of one connection, message by message.
class proxy_plan {
 public:
  proxy_plan(std::vector<planned_fault> scripted, traffic direction, proxy_rates const& rates,
             std::uint64_t connection)
      : scripted_{std::move(scripted)},
        direction_{direction},
        rates_{rates},
        dice_{
            dice{rates.seed + 2 * connection + (direction == traffic::to_client ? 1 : 0)}.bits()} {}

  /// What happens to the next message, which is so many bytes long.
  planned_fault next(std::size_t size) {
    auto const number = next_++;
    for (auto const& f : scripted_) {
      if (f.direction == direction_ && f.message == number) return f;
    }
    planned_fault out;
    out.direction = direction_;
    out.message = number;
    auto own = dice_.fork();  // each message has its own, whatever the one before used
    struct choice {
      proxy_fault fault;
      std::uint32_t percent;
    };
    std::array const choices{choice{proxy_fault::cut_before, rates_.cut_before},
                             choice{proxy_fault::cut_in, rates_.cut_in},
                             choice{proxy_fault::cut_after, rates_.cut_after},
                             choice{proxy_fault::delay, rates_.delay},
                             choice{proxy_fault::stall, rates_.stall},
                             choice{proxy_fault::black_hole, rates_.black_hole}};
    for (auto const& c : choices) {
      if (!own.chance(c.percent)) continue;
      out.fault = c.fault;
      break;
    }
    out.bytes = static_cast<std::size_t>(own.below(size));
    out.delay = duration{static_cast<duration::rep>(
        own.below(static_cast<std::uint64_t>(std::max(rates_.max_delay, duration{}).count())))};
    auto const ending = own.below(100);
    out.ending = ending < rates_.silent                  ? proxy_ending::silent
                 : ending < rates_.silent + rates_.reset ? proxy_ending::reset
                                                         : proxy_ending::fin;
    return out;
  }

 private:
  std::vector<planned_fault> scripted_;
  traffic direction_;
  proxy_rates rates_;
  dice dice_;
  std::uint64_t next_ = 0;
};

}  // namespace detail
}  // namespace weir::testing

#endif
