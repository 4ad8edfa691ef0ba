// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_HASH_FILE_HPP
#define WEIR_EXAMPLE_MANIFEST_HASH_FILE_HPP

#include "options.hpp"
#include "path_text.hpp"
#include "tree.hpp"
#include "weir.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/scope/scope_exit.hpp>
#include <boost/scope/unique_fd.hpp>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace manifest {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// SHA-256 of bytes that come in pieces.
class sha256 {
 public:
  sha256() { check(context_ ? ::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr) : 0); }
  void update(std::string_view bytes) {
    check(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  }
  /// Nothing can be added any more.
  [[nodiscard]] std::array<unsigned char, 32> finish() {
    std::array<unsigned char, 32> digest{};
    check(::EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
    return digest;
  }

 private:
  static void check(int answer) {
    if (answer != 1) throw std::runtime_error{"SHA-256 is not available"};
  }

  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_{::EVP_MD_CTX_new(),
                                                              ::EVP_MD_CTX_free};
};

[[nodiscard]] inline auto sha256_of(std::string_view bytes) {
  sha256 sum;
  sum.update(bytes);
  return sum.finish();
}

/// In lower-case hexadecimal.
[[nodiscard]] inline std::string hex_text(std::span<unsigned char const> bytes) {
  std::string text;
  for (unsigned char const byte : bytes) {
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 0xFU];
  }
  return text;
}

/// The job: make the checksum of one file. Its result is the digest, a space, and the stamp
/// (`stamp_of`) of the file that it is the digest of.
struct hash_file {
  std::string path;  ///< absolute, so that any process can do it
};

inline void to_json(nlohmann::json& json, hash_file const& job) {
  json = {{"path", to_text(job.path)}};
}

inline void from_json(nlohmann::json const& json, hash_file& job) {
  job.path = from_text(json.at("path").get<std::string>());
}

/// A path as a key; or, of one that is too long for a key, its digest.
[[nodiscard]] inline std::string key_of(std::string path) {
  return path.size() > weir::limits::key_size ? "sha256:" + hex_text(sha256_of(path)) : path;
}

/// The id of the job that reads a file as it is: every process makes the same one, and a file that
/// has changed is another job. A version 8 UUID (RFC 9562) of the SHA-256 of stamp and path.
[[nodiscard]] inline weir::job_id job_of(std::string const& path, std::string const& stamp) {
  auto const digest = sha256_of(stamp + ":" + path);
  weir::job_id id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  id.data[6] = static_cast<std::uint8_t>(0x80U | (id.data[6] & 0x0FU));
  id.data[8] = static_cast<std::uint8_t>(0x80U | (id.data[8] & 0x3FU));
  return id;
}

}  // namespace manifest

template <>
struct weir::job_traits<manifest::hash_file> {
  static constexpr std::string_view kind = "hash_file";

  /// More than any --attempts: the handler gives up sooner.
  static constexpr std::uint32_t max_attempts = 1000;
  /// What is wrong with a file is seldom over within a second, but trying again costs little.
  static constexpr jittered_backoff backoff{
      capped_backoff{exponential_backoff{std::chrono::milliseconds{200}}, std::chrono::seconds{2}},
      equal_jitter{}};
  /// This manifest is written from the results, and the next one, too.
  static constexpr duration retention = std::chrono::hours{24 * 30};

  /// One job at a time reads a file. One that waits to read what the file was before it changed
  /// gives way to the newcomer.
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::replace;
  static std::string unique_key(manifest::hash_file const& job) {
    return manifest::key_of(job.path);
  }
};

namespace manifest {

/// How long a lease is: what a process that was killed had in its hands is free again after this.
inline constexpr weir::duration lease_time = 3s;

/// The handler of `hash_file`: reads a file under the limit of open files and, if there is one, the
/// byte budget. Both are the store's: all processes that use it share them.
///
/// It blocks while it reads, so it belongs on threads of its own. It may run in many of them at
/// once.
template <class Store>
class file_reader {
 public:
  /// @param in_hand bytes that were read of files that are still open
  file_reader(Store store, options const& o, std::atomic<std::uint64_t>& in_hand)
      : open_files_{store, {.limit = o.open_files, .ttl = lease_time}},
        attempts_{o.attempts},
        in_hand_{in_hand} {
    if (o.rate == 0) return;
    // Every whole number of tokens per second is a quota that all stores represent exactly, up to a
    // bound: so a token is a block of bytes, and part of a block costs a whole one.
    while (o.rate / block_ > 2'000'000) block_ *= 2;
    auto const burst = std::max<std::uint64_t>(o.rate / block_ / 20, 1);
    budget_.emplace(std::move(store), weir::quota::per_second(o.rate / block_).burst(burst));
    // A large file is many takes, and others get theirs in between.
    chunk_ = std::min(burst * block_, chunk_);
  }

  asio::awaitable<std::string> hash(hash_file const& job, weir::job_context& context) {
    try {
      // The permit is renewed for as long as the file is open.
      auto const body = [&] { return read(job.path, context); };
      co_return co_await open_files_.async_with_permit("open files", body, asio::use_awaitable);
    } catch (std::exception const& e) {
      // Asked to stop, it has not failed: the worker gives the job back.
      if (context.stop_requested() || context.attempt() < attempts_) throw;
      throw weir::give_up{e.what()};
    }
  }

 private:
  asio::awaitable<std::string> read(std::string const& path, weir::job_context const& context) {
    // It may have become a link or a pipe since it was found: neither is followed nor waited for.
    boost::scope::unique_fd const file{
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK)};
    if (!file) refuse();
    auto const opened = status_of(file.get());
    auto const size = static_cast<std::uint64_t>(opened.st_size);
    std::uint64_t offset = 0;
    boost::scope::scope_exit const let_go{[&] { in_hand_ -= offset; }};
    sha256 sum;
    for (;;) {
      // Only a read that finds less shows the end: files in /proc have more than their size.
      auto const left = offset < size ? size - offset : offset == size ? 1 : chunk_;
      auto const wanted = std::min(left, chunk_);
      if (budget_) {
        // What lies ahead is reserved and waited for: it has its turn, however large the file is.
        weir::take_options const price{.cost = (wanted + block_ - 1) / block_,
                                       .wait = weir::limits::span};
        co_await budget_->async_take("bytes", price, asio::use_awaitable);
      }
      if (context.stop_requested()) throw std::runtime_error{"told to stop"};
      thread_local std::vector<char> buffer(largest_chunk);
      auto const n = ::read(file.get(), buffer.data(), wanted);
      if (n < 0) refuse();
      auto const got = static_cast<std::size_t>(n);
      sum.update({buffer.data(), got});
      offset += got;
      in_hand_ += got;
      if (got < wanted && (got == 0 || offset > size)) break;
    }
    // What was read of a file that was written to meanwhile may be something that it never was.
    auto const stamp = stamp_of(opened);
    if (stamp_of(status_of(file.get())) != stamp) {
      throw std::runtime_error{"changed while it was read"};
    }
    co_return hex_text(sum.finish()) + ' ' + stamp;
  }

  [[nodiscard]] static struct stat status_of(int file) {
    struct stat s{};
    if (::fstat(file, &s) != 0) refuse();
    if (!S_ISREG(s.st_mode)) throw std::runtime_error{"not a regular file any more"};
    return s;
  }
  [[noreturn]] static void refuse() {
    throw std::runtime_error{std::generic_category().message(errno)};
  }

  static constexpr std::uint64_t largest_chunk = 1 << 20;

  weir::limiter<Store> open_files_;
  std::optional<weir::rate_limiter<Store>> budget_;
  std::uint64_t block_ = 1;
  std::uint64_t chunk_ = largest_chunk;
  std::uint32_t attempts_;
  std::atomic<std::uint64_t>& in_hand_;
};

}  // namespace manifest

#endif
