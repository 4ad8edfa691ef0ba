// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Makes the checksum manifest of a directory tree. Every file is a job, in the queue of its
// top-level folder; a worker runs them under a limit of open files and, if wanted, a byte budget;
// the manifest is written from the jobs' results. They stay in the store: a run that was killed is
// resumed by the next, and runs at the same time share the work.

#include "checksum_lines.hpp"
#include "display.hpp"
#include "last_resort.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "path_text.hpp"
#include "report.hpp"
#include "run.hpp"
#include "store_files.hpp"
#include "stores.hpp"
#include "tree_walk.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;

enum exit_code { all_listed = 0, some_missing = 1, wrong_usage = 2, not_written = 3, failed = 4 };

int complain(exit_code code, std::string_view why) {
  auto const text = "manifest: " + manifest::for_terminal(why) + "\n";
  std::fputs(text.c_str(), stderr);
  return code;
}

/// Threads may still use it: it stays until the process has ended.
void leave_behind(std::unique_ptr<manifest::run> run) {
  [[maybe_unused]] auto const* const kept = run.release();
}

/// Runs on a store, to the end or to the first signal; a second one ends the process.
///
/// An exception, and an outcome that is `abandoned`, leave threads behind that may still use what
/// is here: the process is to be ended without tidying up.
manifest::outcome run_on(manifest::any_store const& store, asio::io_context& io,
                         asio::signal_set& signals, manifest::options const& options,
                         manifest::tree_walk walk, manifest::output_file const& output,
                         manifest::display& shown) {
  auto run = std::make_unique<manifest::run>(io, store, options, std::move(walk), shown);
  manifest::outcome result;
  signals.async_wait([&](boost::system::error_code const& cancelled, int) {
    if (cancelled) return;
    signals.clear();
    manifest::quit_at_next_signal(output.unfinished());
    shown.tell("manifest: stopping (once more: at once)\n");
    run->interrupt();
  });
  asio::co_spawn(io, run->execute(), [&](std::exception_ptr failure, manifest::outcome reached) {
    if (failure) std::rethrow_exception(failure);
    result = std::move(reached);
    signals.cancel();
    if (!options.server.empty()) store.close();
    if (result.abandoned) io.stop();
  });
  try {
    io.run();
  } catch (...) {
    leave_behind(std::move(run));
    throw;
  }
  if (result.abandoned) leave_behind(std::move(run));
  return result;
}

void write(manifest::output_file& output, std::vector<manifest::checksum> const& sums) {
  std::string lines;
  for (auto const& sum : sums) {
    manifest::append_line(lines, sum);
    if (lines.size() < 1 << 16) continue;
    output.write(lines);
    lines.clear();
  }
  output.write(lines);
  output.commit();
}

/// How many files can be open at once beside all else that needs a descriptor.
std::uint32_t descriptors() {
  constexpr rlim_t others = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return static_cast<std::uint32_t>(std::clamp<rlim_t>(limit.rlim_cur, others + 1, 1 << 20) -
                                    others);
}

manifest::any_store open_store(asio::any_io_executor const& executor,
                               manifest::options const& options) {
  if (manifest::on_redis(options.server)) {
    return manifest::open_redis_store(executor, options.server);
  }
  if (manifest::on_postgres(options.server)) {
    return manifest::open_postgres_store(executor, options.server);
  }
  if (manifest::on_nats(options.server)) {
    return manifest::open_nats_store(executor, options.server);
  }
  if (options.in_memory) return manifest::open_memory_store(executor);
  return manifest::open_sqlite_store(executor, options.store, options.fresh);
}

int make_manifest(manifest::options options) {
  options.open_files = std::min(options.open_files, descriptors());
  asio::io_context io{1};
  // From here on a signal is ours, and leaves no unfinished file behind.
  asio::signal_set signals{io, SIGINT, SIGTERM};
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of writing

  std::optional<manifest::output_file> output;
  std::optional<manifest::tree_walk> walk;
  try {
    output.emplace(options.output);
  } catch (std::system_error const& e) {
    return complain(not_written, e.what());
  }
  bool const in_file = !options.in_memory && options.server.empty();
  manifest::store_files const own{in_file ? options.store : std::string{}};
  try {
    walk.emplace(options.directory, [&](struct stat const& folder, std::string_view name) {
      return output->is_mine(folder, name) || own.is_mine(folder, name);
    });
  } catch (std::system_error const& e) {
    return complain(wrong_usage, e.what());
  }

  std::optional<manifest::any_store> store;
  try {
    store = open_store(io.get_executor(), options);
  } catch (std::exception const& e) {
    return complain(failed, e.what());
  }

  manifest::display shown{options.plain};
  manifest::outcome result;
  try {
    result = run_on(*store, io, signals, options, std::move(*walk), *output, shown);
  } catch (std::exception const& e) {
    output.reset();
    std::_Exit(complain(failed, e.what()));
  }

  // What follows may wait for whoever reads the manifest.
  signals.clear();
  manifest::quit_at_next_signal(output->unfinished());

  int code =
      result.told.dead_letters.empty() && result.told.unwalked.empty() ? all_listed : some_missing;
  if (result.interrupted) code = manifest::exit_interrupted;
  auto const listed = manifest::count_text(result.sums.size());
  shown.tell(manifest::report_text(std::move(result.told)));
  try {
    write(*output, result.sums);
    shown.tell("\n" + listed + " lines in " + manifest::for_terminal(options.output) + "\n");
  } catch (std::system_error const& e) {
    code = complain(not_written, options.output + ": " + e.what());
  }
  if (result.abandoned) std::_Exit(code);
  return code;
}

}  // namespace

int main(int argc, char const* const* argv) {
  try {
    auto const options =
        manifest::parse_options(std::span{argv, static_cast<std::size_t>(argc)}.subspan(1));
    if (options.help) {
      std::fwrite(manifest::usage_text.data(), 1, manifest::usage_text.size(), stdout);
      return all_listed;
    }
    return make_manifest(options);
  } catch (manifest::usage_error const& e) {
    return complain(wrong_usage, std::string{e.what()} + " (see --help)");
  } catch (std::exception const& e) {
    return complain(failed, e.what());
  }
}
