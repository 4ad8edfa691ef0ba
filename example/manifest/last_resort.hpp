// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_LAST_RESORT_HPP
#define WEIR_EXAMPLE_MANIFEST_LAST_RESORT_HPP

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace manifest {

inline constexpr int exit_interrupted = 130;

namespace detail {

inline std::string last_resort_file;  // written before the handler is set, only read after

extern "C" inline void quit_at_once(int) {
  if (!last_resort_file.empty()) ::unlink(last_resort_file.c_str());
  ::_exit(exit_interrupted);
}

}  // namespace detail

/// From now on SIGINT and SIGTERM end the process in whatever it is doing, deleting `unfinished`
/// (empty: nothing).
inline void quit_at_next_signal(std::string unfinished) {
  detail::last_resort_file = std::move(unfinished);
  struct sigaction action{};
  action.sa_handler = detail::quit_at_once;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace manifest

#endif
