// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_ERROR_HPP
#define WEIR_ERROR_HPP

#include "weir/detail/requirements.hpp"

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <type_traits>

namespace weir {

/// The error of an operation: an `errc`, an error of Asio, or one of a client library. Where there
/// is more to say (which option, which host, what the engine said) its `message()` ends with that;
/// it compares as without. `docs/errors.md` shows what is seen of many mistakes.
using error_code = boost::system::error_code;

/// A value or an `error_code`: what a synchronous operation returns.
template <class T>
using result = boost::system::result<T>;

/// Everything that weir itself reports. Asio's own errors (`operation_aborted` for a cancelled
/// operation) and a client library's come through unchanged beside these.
enum class errc {
  // An operation ended without doing what it was asked for. Nothing was changed.
  timed_out = 1,    ///< the wait that the caller allowed is over
  unique_conflict,  ///< the unique key is taken and its policy is `reject`
  not_found,        ///< what was asked for is not there, such as the trace of a job without one
  store_full,       ///< a configured bound of the store is reached
  closed,           ///< the store was closed

  // Who asked no longer has what it needs. Nothing was changed.
  lease_lost,  ///< the lease expired, was released, or belongs to a successor

  // The engine.
  store_unavailable,   ///< the engine cannot be reached; the command was definitely not executed
  outcome_unknown,     ///< the connection ended after the request left: done, or not done
  disk_full,           ///< the engine has no space left for its data; the command was not executed
  store_read_only,     ///< what the engine keeps can only be read; the command was not executed
  store_corrupt,       ///< what the engine keeps is damaged; the command was not executed
  permission_denied,   ///< the engine refuses who asks, or what was asked for; not executed
  store_foreign,       ///< what is there was not made by weir, and was left untouched
  store_evicts,        ///< the engine may forget what it keeps when its memory is short
  schema_too_new,      ///< a later version of weir made it; it was left untouched
  schema_outdated,     ///< what weir needs is not there, or of an earlier version: migrate it
  not_in_transaction,  ///< the application's transaction is not open for writing; nothing was
                       ///< changed

  // Bad input, found before any I/O and before any change.
  invalid_key,     ///< a key is empty, or longer than `limits::key_size`
  invalid_holder,  ///< a holder is empty, or longer than `limits::holder_size`
  invalid_limit,   ///< a concurrency limit of 0, or above `limits::permits`
  invalid_ttl,     ///< a time to live that is not within (0, `limits::span`]
  invalid_wait,   ///< a wait, delay, deadline or retention that is negative or above `limits::span`
  invalid_quota,  ///< a quota without tokens, period or burst; or no quota; or more than
                  ///< `limits::quotas`
  quota_too_large,        ///< a quota that is none of those that stores take: see `quota`
  invalid_cost,           ///< a cost of 0
  cost_exceeds_capacity,  ///< a cost above the capacity of a quota: it can never be granted
  invalid_queue,          ///< a queue name is empty, or longer than `limits::key_size`
  invalid_kind,           ///< a job kind is empty, or longer than `limits::key_size`
  payload_too_large,      ///< a payload, result, memo, the headers, progress or checkpoint of a job
                          ///< above its limit; or a command that fits into no message of the
                          ///< store's engine
  invalid_attempts,       ///< max_attempts of 0, or above `limits::attempts`
  invalid_batch,          ///< a batch or page of 0, or above `limits::batch`; or a batch whose
                          ///< jobs have more than `limits::batch_bytes` together
  invalid_unique_key,     ///< a strategy without key, a key without strategy, or a key that is too
                          ///< long
  invalid_shard,          ///< a shard number that the store does not have
  invalid_option,         ///< any other option outside its documented range
  undecodable_payload,    ///< a payload that is not the JSON form of its job type
  unencodable_payload,    ///< a job that has no JSON form, such as one holding a string that is not
                          ///< UTF-8
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(errc e) noexcept {
  switch (e) {
    case errc::timed_out: return "timed_out";
    case errc::unique_conflict: return "unique_conflict";
    case errc::not_found: return "not_found";
    case errc::store_full: return "store_full";
    case errc::closed: return "closed";
    case errc::lease_lost: return "lease_lost";
    case errc::store_unavailable: return "store_unavailable";
    case errc::outcome_unknown: return "outcome_unknown";
    case errc::disk_full: return "disk_full";
    case errc::store_read_only: return "store_read_only";
    case errc::store_corrupt: return "store_corrupt";
    case errc::permission_denied: return "permission_denied";
    case errc::store_foreign: return "store_foreign";
    case errc::store_evicts: return "store_evicts";
    case errc::schema_too_new: return "schema_too_new";
    case errc::schema_outdated: return "schema_outdated";
    case errc::not_in_transaction: return "not_in_transaction";
    case errc::invalid_key: return "invalid_key";
    case errc::invalid_holder: return "invalid_holder";
    case errc::invalid_limit: return "invalid_limit";
    case errc::invalid_ttl: return "invalid_ttl";
    case errc::invalid_wait: return "invalid_wait";
    case errc::invalid_quota: return "invalid_quota";
    case errc::quota_too_large: return "quota_too_large";
    case errc::invalid_cost: return "invalid_cost";
    case errc::cost_exceeds_capacity: return "cost_exceeds_capacity";
    case errc::invalid_queue: return "invalid_queue";
    case errc::invalid_kind: return "invalid_kind";
    case errc::payload_too_large: return "payload_too_large";
    case errc::invalid_attempts: return "invalid_attempts";
    case errc::invalid_batch: return "invalid_batch";
    case errc::invalid_unique_key: return "invalid_unique_key";
    case errc::invalid_shard: return "invalid_shard";
    case errc::invalid_option: return "invalid_option";
    case errc::undecodable_payload: return "undecodable_payload";
    case errc::unencodable_payload: return "unencodable_payload";
  }
  return "?";
}

/// The kind of an error, for callers that react to the kind: `ec == weir::condition::bad_input`.
enum class condition {
  bad_input = 1,  ///< the caller's mistake: the same call will fail again
  transient,      ///< may succeed when tried again
  refused,        ///< a definite answer that is not success
};

namespace detail {

[[nodiscard]] constexpr char const* message_of(errc e) noexcept {
  switch (e) {
    case errc::timed_out: return "the allowed wait is over";
    case errc::unique_conflict: return "the unique key is taken";
    case errc::not_found: return "it is not there";
    case errc::store_full: return "a configured bound of the store is reached";
    case errc::closed: return "closed";
    case errc::lease_lost: return "the lease is over";
    case errc::store_unavailable: return "the store cannot be reached";
    case errc::outcome_unknown:
      return "the connection ended before the answer: the outcome is unknown";
    case errc::disk_full: return "the store has no space left";
    case errc::store_read_only: return "the store can only be read";
    case errc::store_corrupt: return "the store's data are damaged";
    case errc::permission_denied: return "the store refuses the user, or what it was asked for";
    case errc::store_foreign: return "the data there are not weir's";
    case errc::store_evicts: return "the store may forget what it keeps";
    case errc::schema_too_new: return "the store was made by a later version of weir";
    case errc::schema_outdated: return "the store is not migrated to this version of weir";
    case errc::not_in_transaction: return "no transaction is open for writing";
    case errc::invalid_key: return "the key is empty or too long";
    case errc::invalid_holder: return "the holder is empty or too long";
    case errc::invalid_limit: return "the concurrency limit is zero or too large";
    case errc::invalid_ttl: return "the time to live is not positive or too long";
    case errc::invalid_wait: return "the wait, delay or retention is negative or too long";
    case errc::invalid_quota: return "the quota has no tokens, no period or no burst";
    case errc::quota_too_large: return "the store cannot represent this quota exactly";
    case errc::invalid_cost: return "the cost is zero";
    case errc::cost_exceeds_capacity:
      return "the cost is above the capacity and can never be granted";
    case errc::invalid_queue: return "the queue name is empty or too long";
    case errc::invalid_kind: return "the job kind is empty or too long";
    case errc::payload_too_large: return "the payload is too large";
    case errc::invalid_attempts: return "the number of attempts is zero or too large";
    case errc::invalid_batch: return "the batch is empty or too large";
    case errc::invalid_unique_key:
      return "the unique key and its strategy do not fit, or the key is too long";
    case errc::invalid_shard: return "the store has no such shard";
    case errc::invalid_option: return "an option is outside its range";
    case errc::undecodable_payload: return "the payload is not the JSON form of its job type";
    case errc::unencodable_payload: return "the job has no JSON form";
  }
  return "unknown weir error";
}

[[nodiscard]] constexpr condition condition_of(errc e) noexcept {
  if (e >= errc::invalid_key) return condition::bad_input;
  switch (e) {
    case errc::store_unavailable:
    case errc::outcome_unknown:
    case errc::disk_full:
    case errc::store_full: return condition::transient;
    default: return condition::refused;
  }
}

// Categories live as long as the program: nobody deletes one.
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor)
class error_category : public boost::system::error_category {
 public:
  constexpr error_category() noexcept : boost::system::error_category(0x7765697265727263) {}
  [[nodiscard]] char const* name() const noexcept override { return "weir"; }
  [[nodiscard]] std::string message(int value) const override {
    return message_of(static_cast<errc>(value));
  }
  [[nodiscard]] char const* message(int value, char*, std::size_t) const noexcept override {
    return message_of(static_cast<errc>(value));
  }
  [[nodiscard]] bool equivalent(
      int value, boost::system::error_condition const& wanted) const noexcept override;
};

class condition_category final : public boost::system::error_category {
 public:
  constexpr condition_category() noexcept : boost::system::error_category(0x77656972636f6e64) {}
  [[nodiscard]] char const* name() const noexcept override { return "weir.condition"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<condition>(value)) {
      case condition::bad_input: return "bad input";
      case condition::transient: return "may succeed when tried again";
      case condition::refused: return "refused";
    }
    return "unknown weir condition";
  }
};

inline constexpr error_category error_category_instance;
inline constexpr condition_category condition_category_instance;

inline bool error_category::equivalent(
    int value, boost::system::error_condition const& wanted) const noexcept {
  if (wanted.category() == condition_category_instance) {
    bool const known = value >= static_cast<int>(errc::timed_out) &&
                       value <= static_cast<int>(errc::unencodable_payload);
    return known && wanted.value() == static_cast<int>(condition_of(static_cast<errc>(value)));
  }
  return default_error_condition(value) == wanted;
}

}  // namespace detail

/// The category of `errc`.
[[nodiscard]] inline boost::system::error_category const& error_category() noexcept {
  return detail::error_category_instance;
}

/// So that an `errc` is an `error_code`.
[[nodiscard]] inline error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), detail::error_category_instance};
}

/// So that an `error_code` can be compared with a `condition`.
[[nodiscard]] inline boost::system::error_condition make_error_condition(condition c) noexcept {
  return {static_cast<int>(c), detail::condition_category_instance};
}

}  // namespace weir

/// @cond  what Boost asks for
template <>
struct boost::system::is_error_code_enum<weir::errc> : std::true_type {};
template <>
struct boost::system::is_error_condition_enum<weir::condition> : std::true_type {};
/// @endcond

#endif
