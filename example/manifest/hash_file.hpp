// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_MANIFEST_HASH_FILE_HPP
#define WEIR_EXAMPLE_MANIFEST_HASH_FILE_HPP

#include "file_digest.hpp"
#include "path_text.hpp"
#include "weir/backoff/capped.hpp"
#include "weir/backoff/exponential.hpp"
#include "weir/backoff/jittered.hpp"
#include "weir/job_traits.hpp"
#include "weir/limits.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace manifest {

/// The job: make the checksum of one file. Its result is the digest, and of what (`result_text`).
struct hash_file {
  std::string path;  ///< absolute, so that any process can do it; its bytes, whatever they are
};

inline void to_json(nlohmann::json& json, hash_file const& job) {
  json = {{"path", to_text(job.path)}};
}

inline void from_json(nlohmann::json const& json, hash_file& job) {
  auto path = from_text(json.at("path").get<std::string>());
  if (!path) throw std::invalid_argument{"not the text of a path"};
  job.path = std::move(*path);
}

/// The job's unique key: its path; or, of a path that is too long for a key, its digest. No path's
/// key is another's.
[[nodiscard]] inline std::string unique_key_of(std::string const& path) {
  std::string key = "path:" + path;
  if (key.size() <= weir::limits::key_size) return key;
  sha256 digest;
  digest.update(path);
  return "sha256:" + digest.finish();
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
  /// The manifest is written from the results, and the next one, too.
  static constexpr duration retention = std::chrono::hours{24 * 30};

  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
  static std::string unique_key(manifest::hash_file const& job) {
    return manifest::unique_key_of(job.path);
  }
};

#endif
