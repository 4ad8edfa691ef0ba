// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "file_descriptor.hpp"
#include "stores.hpp"

#include <stdexcept>
#include <string>

#ifdef MANIFEST_WITH_SQLITE

#include "weir/store/sqlite.hpp"

#include <boost/asio/io_context.hpp>
#include <sys/file.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace manifest {

namespace {

weir::sqlite_options options() {
  weir::sqlite_options o;
  o.durable = weir::durability::process_crash;
  o.busy_timeout = std::chrono::seconds{30};
  return o;
}

[[noreturn]] void refuse(std::string const& path, std::string const& why) {
  throw std::runtime_error{path + ": " + why};
}

/// Opens the file, if need be makes it, and closes it again: what is wrong with it is known before
/// anything begins.
void probe(std::string const& path) {
  asio::io_context io;
  weir::error_code opened;
  {
    weir::sqlite_store const store{io.get_executor(), path, options()};
    store.async_open([&](weir::error_code ec) { opened = ec; });
    io.run();
  }
  if (opened) refuse(path, opened.message());
}

/// Says to other processes that the file is used here, for as long as this one lives: a lock of its
/// own file, for SQLite's would not survive that this one is closed.
void mark_used(std::string const& path, bool alone) {
  auto const name = path + "-used";
  file_descriptor fd{::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)};
  if (!fd) refuse(name, system_text(errno));
  if (::flock(fd.get(), (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    refuse(path, alone ? "another run uses it, so nothing in it can be forgotten"
                       : "another run is about to forget what is in it; try again");
  }
  if (alone && ::unlink((path + "-wal").c_str()) != 0 && errno != ENOENT) {
    refuse(path + "-wal", system_text(errno));
  }
  if (alone && ::unlink((path + "-shm").c_str()) != 0 && errno != ENOENT) {
    refuse(path + "-shm", system_text(errno));
  }
  if (alone && ::unlink(path.c_str()) != 0 && errno != ENOENT) refuse(path, system_text(errno));
  if (alone) ::flock(fd.get(), LOCK_SH);
  (void)fd.release();
}

}  // namespace

any_store open_sqlite_store(asio::any_io_executor const& executor, std::string const& path,
                            bool fresh) {
  probe(path);  // what is not ours is never deleted
  mark_used(path, fresh);
  if (fresh) probe(path);
  return make_any_store(weir::sqlite_store{executor, path, options()});
}

}  // namespace manifest

#else

namespace manifest {

any_store open_sqlite_store(asio::any_io_executor const&, std::string const&, bool) {
  throw std::runtime_error{"this program was built without SQLite: use --store memory"};
}

}  // namespace manifest

#endif
