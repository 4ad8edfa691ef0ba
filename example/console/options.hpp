// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_CONSOLE_OPTIONS_HPP
#define WEIR_EXAMPLE_CONSOLE_OPTIONS_HPP

#include "weir/time.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace console {

enum exit_code { done, refused, wrong_usage, unusable, interrupted = 130 };

/// An error that ends the program before it has done anything.
struct failure : std::runtime_error {
  failure(exit_code with, std::string const& why) : std::runtime_error{why}, code{with} {}
  exit_code code;
};

/// As --help describes them.
struct options {
  std::string command;  ///< with its subcommand: "schedules pause"

  std::string store;
  std::string prefix = "weir";
  std::string schema = "weir";
  std::uint32_t shards = 1;
  std::string ca;
  std::string credentials;
  weir::duration patience = std::chrono::seconds{5};
  bool json = false;

  std::vector<std::string> names;  ///< queues, keys or schedules
  std::string queue;
  std::vector<std::string> ids;
  std::string under;
  std::string state;
  std::string kind;
  std::string cursor;
  std::uint32_t limit = 50;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< --max
  bool all = false;
  bool yes = false;
  bool running = false;
  bool fresh = false;    ///< --new
  bool payload = false;  ///< whole
  weir::duration every = std::chrono::seconds{1};
  std::optional<std::uint64_t> count;  ///< intervals
  std::uint64_t tokens = 0;            ///< of a quota
  weir::duration period = std::chrono::seconds{1};
  std::uint64_t burst = 0;  ///< 0: as many as the tokens
  std::string listen = "127.0.0.1:8047";
  std::vector<std::string> allow;  ///< names of actions, or `all`
  std::vector<std::string> hosts;  ///< names by which the page is called, besides those of this
                                   ///< host
};

/// Reads the command line. Where it asks for help, or for completions, prints that and ends the
/// process. Throws `failure` if it cannot be followed.
[[nodiscard]] options parse_options(int argc, char const* const* argv);

/// Text that may have a URL in it, without the user and the password of that.
[[nodiscard]] std::string without_secrets(std::string_view text);

}  // namespace console

#endif
