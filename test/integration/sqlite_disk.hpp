// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_INTEGRATION_SQLITE_DISK_HPP
#define WEIR_TEST_INTEGRATION_SQLITE_DISK_HPP

#include <sqlite3.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <new>

namespace sqlite_test {

/// SQLite's usual file system, which fails, counts and halts as a test wants it to. From its
/// construction on every connection that is opened uses it, so it must outlive them.
class disk {
 public:
  disk() {
    auto* const usual = sqlite3_vfs_find(nullptr);
    shim_ = *usual;
    shim_.pNext = nullptr;
    shim_.zName = "weir-test";
    shim_.pAppData = this;
    shim_.szOsFile = static_cast<int>(sizeof(file)) + usual->szOsFile;
    shim_.xOpen = open;
    real_ = usual;
    sqlite3_vfs_register(&shim_, 1);
  }
  disk(disk const&) = delete;
  disk& operator=(disk const&) = delete;
  ~disk() {
    sqlite3_vfs_register(real_, 1);
    sqlite3_vfs_unregister(&shim_);
  }

  std::atomic<int> write_error{SQLITE_OK};  ///< what writing says from now on
  std::atomic<int> sync_error{SQLITE_OK};   ///< what fsync says from now on
  std::atomic<std::size_t> syncs{0};
  std::atomic<std::size_t> writes{0};

  /// A disk of this size that has only the files of this folder; 0: as large as may be.
  std::atomic<std::uint64_t> capacity{0};
  std::filesystem::path folder{};

  /// Has it room for that many bytes more? What is mapped into memory is not counted.
  [[nodiscard]] bool has_room(std::uint64_t more) const {
    if (capacity == 0) return true;
    std::uint64_t used = 0;
    for (auto const& f : std::filesystem::directory_iterator{folder}) {
      if (!f.path().string().ends_with("-shm")) used += f.file_size();
    }
    return used + more <= capacity;
  }

  /// Lets every fsync wait until `go_on`.
  void halt() {
    std::lock_guard const lock{mutex_};
    halted_ = true;
  }
  void go_on() {
    std::lock_guard const lock{mutex_};
    halted_ = false;
    moved_.notify_all();
  }
  /// Waits until somebody waits in an fsync.
  void wait_for_halted() {
    std::unique_lock lock{mutex_};
    moved_.wait(lock, [&] { return waiting_ != 0; });
  }

 private:
  struct file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    disk* owner;
    [[nodiscard]] sqlite3_file* real() noexcept {
      return reinterpret_cast<sqlite3_file*>(this + 1);
    }
  };

  static file& of(sqlite3_file* f) noexcept { return *reinterpret_cast<file*>(f); }

  static int open(sqlite3_vfs* vfs, char const* name, sqlite3_file* out, int flags, int* opened) {
    auto* const self = static_cast<disk*>(vfs->pAppData);
    auto& f = *::new (static_cast<void*>(out)) file{};
    f.owner = self;
    int const rc = self->real_->xOpen(self->real_, name, f.real(), flags, opened);
    if (f.real()->pMethods == nullptr) return rc;
    f.methods = forwarding(f.real()->pMethods->iVersion);
    f.base.pMethods = &f.methods;
    return rc;
  }

  static int write(sqlite3_file* f, void const* data, int n, sqlite3_int64 at) {
    auto& self = *of(f).owner;
    ++self.writes;
    if (int const rc = self.write_error; rc != SQLITE_OK) return rc;
    sqlite3_int64 size = 0;
    of(f).real()->pMethods->xFileSize(of(f).real(), &size);
    if (at + n > size && !self.has_room(static_cast<std::uint64_t>(at + n - size))) {
      return SQLITE_FULL;
    }
    return of(f).real()->pMethods->xWrite(of(f).real(), data, n, at);
  }

  static int sync(sqlite3_file* f, int flags) {
    auto& self = *of(f).owner;
    ++self.syncs;
    {
      std::unique_lock lock{self.mutex_};
      ++self.waiting_;
      self.moved_.notify_all();
      self.moved_.wait(lock, [&] { return !self.halted_; });
      --self.waiting_;
    }
    if (int const rc = self.sync_error; rc != SQLITE_OK) return rc;
    return of(f).real()->pMethods->xSync(of(f).real(), flags);
  }

  template <auto Method, class... Args>
  static auto forward(sqlite3_file* f, Args... args) {
    return (of(f).real()->pMethods->*Method)(of(f).real(), args...);
  }

  static sqlite3_io_methods forwarding(int version) noexcept {
    using m = sqlite3_io_methods;
    m out{};
    out.iVersion = version < 2 ? version : 2;
    out.xClose = forward<&m::xClose>;
    out.xRead = forward<&m::xRead>;
    out.xWrite = write;
    out.xTruncate = forward<&m::xTruncate>;
    out.xSync = sync;
    out.xFileSize = forward<&m::xFileSize>;
    out.xLock = forward<&m::xLock>;
    out.xUnlock = forward<&m::xUnlock>;
    out.xCheckReservedLock = forward<&m::xCheckReservedLock>;
    out.xFileControl = forward<&m::xFileControl>;
    out.xSectorSize = forward<&m::xSectorSize>;
    out.xDeviceCharacteristics = forward<&m::xDeviceCharacteristics>;
    out.xShmMap = forward<&m::xShmMap>;
    out.xShmLock = forward<&m::xShmLock>;
    out.xShmBarrier = forward<&m::xShmBarrier>;
    out.xShmUnmap = forward<&m::xShmUnmap>;
    return out;
  }

  sqlite3_vfs shim_{};
  sqlite3_vfs* real_ = nullptr;
  std::mutex mutex_;
  std::condition_variable moved_;
  bool halted_ = false;
  int waiting_ = 0;
};

}  // namespace sqlite_test

#endif
