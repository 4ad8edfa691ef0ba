// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_FILE_READER_HPP
#define WEIR_EXAMPLE_MANIFEST_FILE_READER_HPP

#include "byte_tokens.hpp"
#include "file_digest.hpp"
#include "hash_file.hpp"
#include "weir/job_context.hpp"
#include "weir/limiter.hpp"
#include "weir/limits.hpp"
#include "weir/rate_limiter.hpp"
#include "weir/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace manifest {

namespace asio = boost::asio;

struct reading_options {
  std::uint32_t open_files = 64;
  std::uint64_t rate = 0;  ///< bytes per second; 0: no limit
  std::uint32_t attempts = 3;
};

/// How long a lease is: what a process that was killed had in its hands is free again after this.
inline constexpr weir::duration lease_time = std::chrono::seconds{3};

/// The handler of `hash_file`: reads a file under the limit of open files and, if there is one, the
/// byte budget.
///
/// It blocks while it reads, so it belongs on threads of its own. It may run in many of them at
/// once.
template <class Store>
class file_reader {
 public:
  /// @param bytes_read counts along; what a failed attempt read is taken off again
  file_reader(Store store, reading_options const& options, std::atomic<std::uint64_t>& bytes_read)
      : open_files_{store, {.limit = options.open_files, .ttl = lease_time}},
        attempts_{options.attempts},
        bytes_read_{bytes_read} {
    if (options.rate == 0) return;
    tokens_ = byte_tokens::of(options.rate);
    chunk_ = tokens_.chunk;
    budget_.emplace(std::move(store), tokens_.quota());
  }

  asio::awaitable<std::string> hash(hash_file const& job, weir::job_context& context) {
    try {
      // The permit is renewed for as long as the file is open.
      auto const body = [&] { return read(job.path, context); };
      co_return co_await open_files_.async_with_permit("open files", body, asio::use_awaitable);
    } catch (std::exception const& e) {
      // Told to stop, it has not failed: the worker gives the job back.
      if (context.stop_requested() || context.attempt() < attempts_) throw;
      throw weir::give_up{e.what()};
    }
  }

 private:
  // Takes back what it counted, unless it is kept.
  class tally {
   public:
    explicit tally(std::atomic<std::uint64_t>& total) : total_{total} {}
    tally(tally const&) = delete;
    tally& operator=(tally const&) = delete;
    ~tally() { total_ -= counted_; }
    void add(std::uint64_t n) {
      total_ += n;
      counted_ += n;
    }
    void keep() { counted_ = 0; }

   private:
    std::atomic<std::uint64_t>& total_;
    std::uint64_t counted_ = 0;
  };

  asio::awaitable<std::string> read(std::string const& path, weir::job_context const& context) {
    tally counted{bytes_read_};
    file_digest file{path};
    for (;;) {
      auto const wanted = next_read(file.size(), file.offset(), chunk_);
      if (budget_) {
        // What lies ahead is reserved and waited for: it has its turn, however large the file is.
        weir::take_options const price{.cost = tokens_.cost(wanted), .wait = weir::limits::span};
        co_await budget_->async_take("bytes", price, asio::use_awaitable);
      }
      if (context.stop_requested()) throw unreadable{"told to stop"};
      auto const got = file.read(wanted);
      counted.add(got);
      if (got < wanted) break;
    }
    auto const digest = file.finish();
    counted.keep();
    co_return result_text(digest, file.stamp());
  }

  weir::limiter<Store> open_files_;
  std::optional<weir::rate_limiter<Store>> budget_;
  byte_tokens tokens_;
  std::uint64_t chunk_ = 1 << 20;
  std::uint32_t attempts_;
  std::atomic<std::uint64_t>& bytes_read_;
};

}  // namespace manifest

#endif
