// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_OPTIONS_HPP
#define WEIR_EXAMPLE_MANIFEST_OPTIONS_HPP

#include "../printable.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace manifest {

inline constexpr std::string_view usage_text =
    R"(usage: manifest [DIR] [options]

Writes the SHA-256 checksum of every regular file under DIR (default: /usr/include), as `sha256sum -c` reads it.
The files are those that `find -H DIR -type f` prints: no symbolic link is followed but DIR itself.

  -o, --output FILE   where the manifest goes (default: SHA256SUMS in the current folder; -: standard output)
      --store STORE   where the jobs live: memory; or sqlite[:PATH], a file (the default: sqlite:manifest.db, or
                      the PATH given before); or a server: redis://HOST:PORT, rediss://... with TLS;
                      postgres://USER@HOST:PORT/DATABASE, where a schema named weir is made; or
                      nats://HOST:PORT with JetStream, where streams named weir-... are made
      --fresh         forgets what is in the store first, and reads every file (not on a server, which others use)
      --workers N     files read at the same time (default: one per core)
      --open-files N  files open at the same time, those that wait for --rate too (default: 64)
      --rate RATE     bytes read per second at most, such as 200MB/s, 1.5GiB/s or 500000 (default: no limit)
      --attempts N    how often a file is tried before it counts as unreadable (default: 3)
      --plain         progress as lines, on a terminal too
  -h, --help          this text

What is in a sqlite store or on a server is not lost, however the run ends, kill -9 included: the next run takes from
there the checksums of files that have not changed (by size, time of modification and inode), reads the others, and
tries again those that could not be read. Runs at the same time on one store share the work, and each writes a whole
manifest; those on several hosts have to see the same files under the same path.

Ctrl-C or SIGTERM ends the run with what is done so far in the manifest; a second one ends it at once.
A file that changes while it is read is tried again, for no checksum can be right for it.

exit codes: 0 everything is listed; 1 some files or folders could not be read, and are not listed; 2 wrong usage;
            3 the manifest cannot be written; 4 something else failed; 130 ended by Ctrl-C or SIGTERM
)";

struct options {
  std::string directory = "/usr/include";
  std::string output = "SHA256SUMS";
  bool in_memory = false;
  std::string store = "manifest.db";  ///< the file of the sqlite store
  std::string server;                 ///< its URL; empty: none
  bool fresh = false;
  std::uint32_t workers = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  std::uint32_t open_files = 64;
  std::uint64_t rate = 0;  ///< bytes per second; 0: as fast as it goes
  std::uint32_t attempts = 3;
  bool plain = false;
  bool help = false;
};

/// A command line that cannot be followed; `what` says why.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A whole number from 1 to `most`. Throws `usage_error` for anything else.
[[nodiscard]] inline std::uint32_t parse_count(std::string_view name, std::string_view text,
                                               std::uint32_t most) {
  std::uint32_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > most) {
    throw usage_error{std::string{name} + " wants a number from 1 to " + std::to_string(most) +
                      ", not '" + std::string{text} + "'"};
  }
  return value;
}

/// Bytes per second: a decimal number; then, if need be, a unit (k, M, G or T for powers of 1000,
/// Ki, Mi, Gi or Ti for powers of 1024, each with or without B), and `/s`. Throws `usage_error` for
/// anything else, for less than one byte per second and for more than 1 TB/s, which is no limit to
/// speak of.
[[nodiscard]] inline std::uint64_t parse_rate(std::string_view const text) {
  auto const refuse = [&](std::string const& why) {
    throw usage_error{"--rate " + why + ", not '" + std::string{text} + "'"};
  };
  constexpr std::uint64_t most = 1'000'000'000'000;

  auto const unit_at = text.find_first_not_of("0123456789.");
  std::string_view const number = text.substr(0, unit_at);
  std::string_view unit = text.substr(number.size());
  if (unit.ends_with("/s")) unit.remove_suffix(2);
  if (unit.ends_with('b')) refuse("wants bytes (B), not bits (b)");
  if (unit.ends_with('B')) unit.remove_suffix(1);

  std::uint64_t scale = 1;
  std::uint64_t const base = unit.ends_with('i') ? 1024 : 1000;
  if (unit.ends_with('i')) unit.remove_suffix(1);
  if (unit == "K") unit = "k";
  auto const power = std::string_view{"kMGT"}.find(unit.empty() ? '?' : unit.front());
  if (unit.size() > 1 || (unit.size() == 1 && power == std::string_view::npos) ||
      (unit.empty() && base == 1024)) {
    refuse("wants a number of bytes per second such as 200MB/s or 1.5GiB/s");
  }
  for (std::size_t i = 0; !unit.empty() && i <= power; ++i) scale *= base;

  // In whole numbers, so that 0.1GB/s is 100,000,000. Digits that are worth less than one byte are
  // dropped.
  std::uint64_t value = 0;
  std::uint64_t place = 0;  // what the next digit after the point is worth, times 10
  std::size_t digits = 0;
  bool point = false;
  for (char const c : number) {
    if (c == '.') {
      if (point) refuse("wants a number of bytes per second such as 200MB/s or 1.5GiB/s");
      point = true;
      place = scale * 1000;  // in thousandths of a byte: a binary unit is not divisible by 10
      value *= 1000;
      continue;
    }
    ++digits;
    auto const digit = static_cast<std::uint64_t>(c - '0');
    if (point) {
      place /= 10;
      value += digit * place;
    } else {
      value = std::min(value * 10 + digit * scale, most + 1);
    }
  }
  if (point) value /= 1000;
  if (digits == 0) refuse("wants a number of bytes per second such as 200MB/s or 1.5GiB/s");
  if (value == 0) refuse("wants at least one byte per second");
  if (value > most) refuse("wants at most 1TB/s");
  return value;
}

/// Which server a URL is of.
[[nodiscard]] inline bool on_redis(std::string_view store) noexcept {
  return store.starts_with("redis://") || store.starts_with("rediss://");
}
[[nodiscard]] inline bool on_postgres(std::string_view store) noexcept {
  return store.starts_with("postgres://") || store.starts_with("postgresql://");
}
[[nodiscard]] inline bool on_nats(std::string_view store) noexcept {
  return store.starts_with("nats://") || store.starts_with("tls://");
}

/// Reads the arguments after the program's name; of an option given twice, the last counts. Throws
/// `usage_error`.
[[nodiscard]] inline options parse_options(std::span<char const* const> arguments) {
  options parsed;
  bool directory_given = false;
  bool only_names = false;  // after --

  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view const argument = arguments[i];
    if (only_names || argument == "-" || !argument.starts_with('-')) {
      if (directory_given) {
        throw usage_error{"only one DIR can be given, not '" +
                          example::without_password(parsed.directory) + "' and '" +
                          example::without_password(argument) + "'"};
      }
      if (argument.empty()) throw usage_error{"DIR is empty"};
      parsed.directory = argument;
      directory_given = true;
      continue;
    }
    if (argument == "--") {
      only_names = true;
      continue;
    }

    auto const equals = argument.starts_with("--") ? argument.find('=') : std::string_view::npos;
    std::string_view const name = argument.substr(0, equals);
    auto const flag = [&] {
      if (equals != std::string_view::npos) {
        throw usage_error{std::string{name} + " takes no value"};
      }
      return true;
    };
    auto const value = [&]() -> std::string_view {
      if (equals != std::string_view::npos) return argument.substr(equals + 1);
      if (i + 1 == arguments.size()) throw usage_error{std::string{name} + " wants a value"};
      return arguments[++i];
    };

    if (name == "--output" || name == "-o") {
      parsed.output = value();
      if (parsed.output.empty()) throw usage_error{"--output wants the name of a file"};
    } else if (name == "--store") {
      auto const store = value();
      constexpr std::string_view with_path = "sqlite:";
      parsed.in_memory = store == "memory";
      parsed.server.clear();
      if (on_redis(store) || on_postgres(store) || on_nats(store)) {
        parsed.server = store;
      } else if (store.starts_with(with_path) && store != with_path) {
        parsed.store = store.substr(with_path.size());
      } else if (store != "memory" && store != "sqlite") {
        throw usage_error{"--store knows memory, sqlite[:PATH], redis://, rediss://, postgres:// "
                          "and nats://, not '" +
                          example::without_password(store) + "'"};
      }
    } else if (name == "--fresh") {
      parsed.fresh = flag();
    } else if (name == "--workers") {
      parsed.workers = parse_count(name, value(), 256);
    } else if (name == "--open-files") {
      parsed.open_files = parse_count(name, value(), 4096);
    } else if (name == "--rate") {
      parsed.rate = parse_rate(value());
    } else if (name == "--attempts") {
      parsed.attempts = parse_count(name, value(), 100);
    } else if (name == "--plain") {
      parsed.plain = flag();
    } else if (name == "--help" || name == "-h") {
      parsed.help = flag();
    } else {
      throw usage_error{"there is no option '" + std::string{name} + "'"};
    }
  }
  if (parsed.fresh && !parsed.server.empty()) {
    throw usage_error{"--fresh forgets nothing on a server, which others use"};
  }
  return parsed;
}

}  // namespace manifest

#endif
