// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_OPTIONS_HPP
#define WEIR_EXAMPLE_MANIFEST_OPTIONS_HPP

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace manifest {

enum exit_code { all_listed, some_missing, wrong_usage, not_written, failed, interrupted = 130 };

/// What ends the program.
struct failure : std::runtime_error {
  failure(exit_code with, std::string const& why) : std::runtime_error{why}, code{with} {}
  exit_code code;
};

/// As --help describes them.
struct options {
  std::string directory = "/usr/include";
  std::string output = "SHA256SUMS";
  std::string store = "sqlite:manifest.db";
  std::uint32_t workers = 1;
  std::uint32_t open_files = 64;
  std::uint64_t rate = 0;  ///< bytes per second; 0: as fast as it goes
  std::uint32_t attempts = 3;
  bool fresh = false;
  bool plain = false;

  /// The file of a sqlite store; empty: the store is another.
  [[nodiscard]] std::string database() const {
    return store.starts_with("sqlite:") ? store.substr(sizeof "sqlite:" - 1) : "";
  }
};

/// A decimal number; then, if need be, a unit (k, M, G or T for powers of 1000, Ki, Mi, Gi or Ti
/// for powers of 1024, each with or without B), and `/s`.
[[nodiscard]] inline std::uint64_t to_rate(std::string_view const text) {
  double number = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.ends_with("/s")) unit.remove_suffix(2);
  if (unit.ends_with('B')) unit.remove_suffix(1);
  int const base = unit.size() == 2 && unit.ends_with('i') ? 1024 : 1000;
  if (base == 1024) unit.remove_suffix(1);
  if (unit == "K") unit = "k";
  auto const power = std::string_view{" kMGT"}.find(unit.empty() ? ' ' : unit[0]);
  auto const rate = number * std::pow(base, power);
  if (error != std::errc{} || unit.size() > 1 || power > 4 || !(rate >= 1 && rate <= 1e12)) {
    throw CLI::ValidationError{"--rate is 1B/s to 1TB/s, such as 200MB/s or 1.5GiB/s, not '" +
                               std::string{text} + "'"};
  }
  return static_cast<std::uint64_t>(rate);
}

/// Says what is wrong; empty: nothing.
[[nodiscard]] inline std::string check_store(std::string const& store) {
  for (auto const* kind :
       {"sqlite:", "redis://", "rediss://", "postgres://", "postgresql://", "nats://", "tls://"}) {
    if (store.starts_with(kind) && store != kind) return {};
  }
  if (store == "memory" || store == "sqlite") return {};
  return "memory, sqlite[:PATH], or the URL of a redis, postgres or nats server, not '" + store +
         "'";
}

/// Reads the command line. Where it asks for help, prints that and ends the process. Throws
/// `failure` if it cannot be followed.
[[nodiscard]] inline options parse_options(int argc, char const* const* argv) {
  options o;
  o.workers = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);

  CLI::App app{
      R"(Writes the SHA-256 checksum of every regular file under DIR, as `sha256sum -c` reads it. The files are those
that `find -H DIR -type f` prints: no symbolic link is followed but DIR itself.)",
      "manifest"};
  app.footer(
      R"(What is in a sqlite store or on a server is not lost, however the run ends, kill -9 included: the next run takes from
there the checksums of files that have not changed (by size, time of modification and inode), reads the others, and
tries again those that could not be read. Runs at the same time on one store share the work and the limits, and each
writes a whole manifest; those on several hosts have to see the same files under the same path.

Ctrl-C or SIGTERM ends the run with what is done so far in the manifest; a second one ends it at once.
A file that changes while it is read is tried again, for no checksum can be right for it.

Exit codes: 0 everything is listed; 1 some files or folders could not be read, and are not listed; 2 wrong usage;
            3 the manifest cannot be written; 4 something else failed; 130 ended by Ctrl-C or SIGTERM)");
  app.get_formatter()->column_width(25);
  app.option_defaults()->take_last()->disable_flag_override();
  app.add_option("DIR", o.directory, "what is listed (default: /usr/include)");
  app.add_option(
      "-o,--output", o.output,
      "where the manifest goes (default: SHA256SUMS in the current folder; -: standard output)");
  app.add_option("--store", o.store,
                 R"(where the jobs live: memory; or sqlite[:PATH], a file (default: manifest.db);
or a server: redis://HOST:PORT, rediss://... with TLS; postgres://USER@HOST:PORT/DATABASE,
where a schema named weir is made; or nats://HOST:PORT with JetStream, where streams
named weir-... are made)")
      ->check(check_store);
  app.add_flag("--fresh", o.fresh, "reads every file, whatever the store knows");
  app.add_option("--workers", o.workers, "files read at the same time (default: one per core)")
      ->check(CLI::Range(1, 256));
  app.add_option("--open-files", o.open_files,
                 "files open at the same time, in all processes on the store (default: 64)")
      ->check(CLI::Range(1, 4096));
  app.add_option_function<std::string>(
      "--rate", [&](std::string const& text) { o.rate = to_rate(text); },
      "bytes read per second at most, in all processes on the store, such as 200MB/s or\n"
      "1.5GiB/s (default: no limit)");
  app.add_option("--attempts", o.attempts,
                 "how often a file is tried before it counts as unreadable (default: 3)")
      ->check(CLI::Range(1, 100));
  app.add_flag("--plain", o.plain, "progress as lines, on a terminal too");

  try {
    app.parse(argc, argv);
    if (o.store == "sqlite") o.store = options{}.store;
    if (o.output.empty()) throw CLI::ValidationError{"--output", "is empty"};
  } catch (CLI::CallForHelp const& help) {
    std::exit(app.exit(help));
  } catch (CLI::ParseError const& e) {
    throw failure{wrong_usage, std::string{e.what()} + " (see --help)"};
  }
  return o;
}

}  // namespace manifest

#endif
