// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Makes the checksum manifest of a directory tree. Every file is a job (hash_file.hpp), in the
// queue of its top-level folder; a worker (run.hpp) has them read under a limit of open files and,
// if wanted, a byte budget. Results stay in the store: a run that was killed is resumed by the
// next, and runs at the same time share the work.

#include "../printable.hpp"
#include "display.hpp"
#include "options.hpp"
#include "path_text.hpp"
#include "run.hpp"
#include "tree.hpp"
#include "weir/log.hpp"
#include "weir/store/memory.hpp"

#ifdef MANIFEST_WITH_SQLITE
#include "weir/store/sqlite.hpp"
#endif
#ifdef MANIFEST_WITH_REDIS
#include "weir/store/redis.hpp"
#endif
#ifdef MANIFEST_WITH_POSTGRES
#include "weir/store/postgres.hpp"
#endif
#ifdef MANIFEST_WITH_NATS
#include "weir/store/nats.hpp"
#endif

#include <sys/stat.h>

#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace {

namespace fs = std::filesystem;
using namespace manifest;

/// While it lives, a signal to end waits: a process that it ended in between would leave its new
/// file behind. The run's threads have ended by then, so this thread is the one that would be
/// asked.
class signals_held {
 public:
  signals_held() {
    ::sigset_t both;
    ::sigemptyset(&both);
    ::sigaddset(&both, SIGINT);
    ::sigaddset(&both, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &both, &before_);
  }
  signals_held(signals_held const&) = delete;
  signals_held& operator=(signals_held const&) = delete;
  ~signals_held() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  ::sigset_t before_{};
};

/// Where the manifest goes: a file that appears whole or not at all, for what is written goes to a
/// new file beside it, which takes its name at the end. `-` is standard output; that, and a name
/// that is neither a regular file nor free (a device, a pipe), is written directly.
class output {
 public:
  /// Throws `failure` for a place that cannot be written to: better before the work than after it.
  explicit output(std::string const& name) : name_{name}, target_{name} {
    if (name == "-") return;
    struct stat there{};
    bool const is_free = ::stat(name.c_str(), &there) != 0;
    if (is_free && errno != ENOENT) refuse(errno);
    if (!is_free && S_ISDIR(there.st_mode)) refuse(EISDIR);
    if (is_free || S_ISREG(there.st_mode)) {
      // A symbolic link stays one: the file that it leads to is replaced.
      target_ = fs::weakly_canonical(fs::absolute(name)).native();
      folder_ = target_.substr(0, target_.rfind('/') + 1);
      if (folder_ == target_) refuse(EISDIR);
    }
    auto const& changed = folder_.empty() ? target_ : folder_;
    if (::access(changed.c_str(), W_OK) != 0) refuse(errno);
  }

  /// Whether a file, by its absolute path, is this one, or a new one that is still being written:
  /// it has no place in the manifest.
  [[nodiscard]] bool is_mine(std::string const& path) const {
    return !folder_.empty() &&
           (path == target_ || (path.starts_with(folder_ + prefix) && path.ends_with(suffix)));
  }

  /// Throws `failure`; what was there before is there then.
  void write(std::string_view text) const {
    bool const is_new = !folder_.empty();
    std::optional<signals_held> held;
    if (is_new) held.emplace();
    auto const path =
        is_new ? folder_ + prefix + std::to_string(std::random_device{}()) + suffix : target_;
    auto* const file = target_ == "-" ? stdout : ::fopen(path.c_str(), is_new ? "wx" : "w");
    if (file == nullptr) refuse(errno);
    int error = 0;
    auto const note = [&](bool done) {
      if (!done && error == 0) error = errno;
    };
    note(::fwrite(text.data(), 1, text.size(), file) == text.size());
    note(::fflush(file) == 0);
    if (is_new) note(::fsync(::fileno(file)) == 0);
    note(::fclose(file) == 0);
    if (is_new && error == 0) note(::rename(path.c_str(), target_.c_str()) == 0);
    if (is_new && error != 0) ::unlink(path.c_str());
    if (error != 0) refuse(error);
  }

 private:
  static constexpr auto prefix = ".manifest-";
  static constexpr auto suffix = ".tmp";

  [[noreturn]] void refuse(int error) const {
    throw failure{not_written, name_ + ": " + std::generic_category().message(error)};
  }

  std::string name_;
  std::string target_;
  std::string folder_;  // of the target, with a slash at the end; empty: it is written directly
};

/// Makes the checksums of what was found, to the end or to the first signal. False: there may be
/// more to do. Throws what is wrong with the store.
bool run_on_store(options const& o, tree& found, display& shown) {
  asio::io_context io{1};
  // A connection is kept until the store is closed.
  [[maybe_unused]] auto const run_connected = [&](auto const& store) {
    store.async_run(weir::log::failures{"store"});
    return run{io, store, o, found, shown}();
  };
  auto const is = [&](std::string_view kind) { return o.store.starts_with(kind); };
  if (is("memory")) return run{io, weir::memory_store{io.get_executor()}, o, found, shown}();
#ifdef MANIFEST_WITH_SQLITE
  if (is("sqlite:")) {
    weir::sqlite_options settings;
    // Each result is there for the next run, however this process ends; a power loss may take the
    // latest ones, which are then read again.
    settings.durable = weir::durability::process_crash;
    settings.busy_timeout = std::chrono::seconds{30};
    weir::sqlite_store const store{io.get_executor(), o.database(), settings};
    return run{io, store, o, found, shown}();
  }
#endif
#ifdef MANIFEST_WITH_REDIS
  if (is("redis")) {
    auto const address = weir::redis_address::parse(o.store).value();
    return run_connected(weir::redis_store{io.get_executor(), address});
  }
#endif
#ifdef MANIFEST_WITH_NATS
  if (is("nats:") || is("tls:")) {
    // begin: nats
    auto const address = weir::nats_address::parse(o.store).value();
    return run_connected(weir::nats_store{io.get_executor(), address});
    // end: nats
  }
#endif
#ifdef MANIFEST_WITH_POSTGRES
  if (is("postgres")) {
    weir::postgres_store const store{io.get_executor(), o.store};
    weir::error_code migrated;
    store.async_migrate([&](weir::error_code ec) { migrated = ec; });
    io.run();
    io.restart();
    if (migrated) throw std::runtime_error{"postgres: " + migrated.message()};
    return run{io, store, o, found, shown}();
  }
#endif
  throw std::runtime_error{"this program was built without such a store: use another --store"};
}

int make_manifest(options const& o) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of writing
  weir::log::set_sink({});        // what goes wrong is said once, at the end
  class output const output{o.output};
  // The files of a sqlite store change meanwhile, too.
  auto const name = o.database();
  auto const database = name.empty() ? name : fs::weakly_canonical(fs::absolute(name)).native();
  auto found = find_files(o.directory, [&](std::string const& path) {
    return output.is_mine(path) || path == database || path == database + "-wal" ||
           path == database + "-shm" || path == database + "-reserve" || path == database + "-bell";
  });

  display shown{o.plain};
  bool const complete = run_on_store(o, found, shown);
  std::string lines;
  for (auto const& f : found.files) {
    if (f.state == weir::job_state::completed) lines += checksum_line(f.digest, f.path);
  }
  output.write(lines);
  if (o.output != "-") shown.tell("the manifest is in " + example::printable(o.output) + "\n");
  if (!complete) return interrupted;
  return found.unread.empty() && found.unwalked.empty() ? all_listed : some_missing;
}

}  // namespace

int main(int argc, char const* const* argv) {
  try {
    return make_manifest(parse_options(argc, argv));
  } catch (failure const& e) {
    display{true}.give_up(e.code, e.what());
  } catch (std::exception const& e) {
    display{true}.give_up(failed, e.what());
  }
}
