// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SIMULATION_WORKER_JOBS_HPP
#define WEIR_TEST_SIMULATION_WORKER_JOBS_HPP

#include "weir/codec.hpp"
#include "weir/job_traits.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

// The jobs of workers.cpp: a type for every policy.
namespace simulated {

/// What a job is about: its number, and the key of its policies.
struct plain_job {
  int key = 0;
};
struct limited_job {
  int key = 0;
};
struct rated_job {
  int key = 0;
};
struct unique_job {
  int key = 0;
};
struct alone_job {
  int key = 0;
};
struct strict_job {
  int key = 0;
};
struct queue_rated_job {
  int key = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(plain_job, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(limited_job, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(rated_job, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(unique_job, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(alone_job, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(strict_job, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(queue_rated_job, key)

inline constexpr std::uint32_t few = 1;

}  // namespace simulated

template <>
struct weir::job_traits<simulated::plain_job> {
  static constexpr std::string_view kind = "plain";
  static constexpr cbor_codec codec{};
  static constexpr std::uint32_t max_attempts = 3;
  static constexpr duration timeout = std::chrono::seconds{6};
  static constexpr duration deadline = std::chrono::minutes{1};
};
template <>
struct weir::job_traits<simulated::limited_job> {
  static constexpr std::string_view kind = "limited";
  static constexpr message_pack_codec codec{};
  static constexpr std::uint32_t max_attempts = 4;
  static constexpr std::uint32_t concurrency = simulated::few;
  static std::string concurrency_key(simulated::limited_job const& j) {
    return "limit " + std::to_string(j.key);
  }
};
template <>
struct weir::job_traits<simulated::rated_job> {
  static constexpr std::string_view kind = "rated";
  static constexpr std::uint32_t max_attempts = 4;
  static constexpr quota rate = quota::per(2, std::chrono::seconds{1});
};
template <>
struct weir::job_traits<simulated::unique_job> {
  static constexpr std::string_view kind = "unique";
  static constexpr std::uint32_t max_attempts = 2;
  static constexpr auto unique = unique_strategy::until_executed;
  static constexpr auto on_conflict = conflict_policy::discard;
};
template <>
struct weir::job_traits<simulated::alone_job> {
  static constexpr std::string_view kind = "alone";
  static constexpr std::uint32_t max_attempts = 4;
  static constexpr auto unique = unique_strategy::while_executing;
};
template <>
struct weir::job_traits<simulated::strict_job> {
  static constexpr std::string_view kind = "strict";
  static constexpr std::uint32_t max_attempts = 3;
  static constexpr auto unique = unique_strategy::until_and_while_executing;
  static constexpr auto on_conflict = conflict_policy::replace;
  static constexpr std::uint32_t concurrency = simulated::few;
  static constexpr std::string_view concurrency_key = "strict limit";
  static constexpr quota rate = quota::per(3, std::chrono::seconds{1});
};
template <>
struct weir::job_traits<simulated::queue_rated_job> {
  static constexpr std::string_view kind = "queue_rated";
  static constexpr std::string_view queue = "slow lane";
  static constexpr std::uint32_t max_attempts = 4;
  static constexpr quota rate = quota::per(2, std::chrono::seconds{1});
  static constexpr auto rate_scope = limit_scope::queue;
};

#endif
