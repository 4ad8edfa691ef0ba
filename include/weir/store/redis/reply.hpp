// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_REPLY_HPP
#define WEIR_STORE_REDIS_REPLY_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/store/redis/resp.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace weir::detail {

/// Reads a server's reply from its beginning to its end. What is not of the kind that is asked for
/// spoils it: from then on it gives zeros and empty texts, and `good` says so in the end.
class redis_reply {
 public:
  using node = redis_value;
  using kind = redis_kind;

  explicit redis_reply(std::span<node const> nodes) noexcept : rest_{nodes} {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  /// Was all of it read, and as expected?
  [[nodiscard]] bool complete() const noexcept { return good_ && rest_.empty(); }
  void fail() noexcept { good_ = false; }

  /// The beginning of an array: the number of its elements.
  std::size_t array() noexcept {
    auto const* const n = take(kind::array);
    return n == nullptr ? 0 : n->aggregate_size;
  }
  /// The same, which must be so many.
  void array(std::size_t expected) noexcept {
    if (array() != expected) fail();
  }
  /// Does an array come next?
  [[nodiscard]] bool is_array() const noexcept {
    return good_ && !rest_.empty() && rest_.front().data_type == kind::array;
  }

  template <std::integral T>
  T number() noexcept {
    auto const* const n = take(kind::number);
    T value{};
    if (n == nullptr) return value;
    auto const* const end = n->value.data() + n->value.size();
    auto const [at, ec] = std::from_chars(n->value.data(), end, value);
    if (ec == std::errc{} && at == end) return value;
    fail();
    return T{};
  }

  bool boolean() noexcept {
    auto const n = number<std::int64_t>();
    if (n != 0 && n != 1) fail();
    return good_ && n == 1;
  }

  /// A time in microseconds since 1970, such as scripts can count with.
  std::int64_t time() noexcept {
    constexpr auto latest = std::int64_t{1} << 53;
    auto const n = number<std::int64_t>();
    if (n >= 0 && n <= latest) return n;
    fail();
    return 0;
  }

  /// A span of time that travels in microseconds.
  duration micros() noexcept {
    auto const n = number<std::int64_t>();
    constexpr auto most = std::chrono::duration_cast<std::chrono::microseconds>(duration::max());
    return std::chrono::microseconds{std::clamp(n, -most.count(), most.count())};
  }

  /// The same, or null.
  std::optional<duration> optional_micros() noexcept {
    if (null()) return std::nullopt;
    return micros();
  }

  /// Any bytes.
  std::string_view text() noexcept {
    auto const* const n = take(kind::blob_string);
    return n == nullptr ? std::string_view{} : std::string_view{n->value};
  }

  /// Skips an empty text; false: something else comes.
  bool empty_text() noexcept {
    if (!good_ || rest_.empty() || rest_.front().data_type != kind::blob_string) return false;
    if (!rest_.front().value.empty()) return false;
    rest_ = rest_.subspan(1);
    return true;
  }

  job_id id() noexcept {
    job_id out{};
    auto const bytes = text();
    if (bytes.size() != out.size()) {
      fail();
      return job_id{};
    }
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
  }

  /// Skips a null; false: something else comes.
  bool null() noexcept {
    if (!good_ || rest_.empty() || rest_.front().data_type != kind::null) return false;
    rest_ = rest_.subspan(1);
    return true;
  }

 private:
  node const* take(kind wanted) noexcept {
    if (good_ && (rest_.empty() || rest_.front().data_type != wanted)) good_ = false;
    if (!good_) return nullptr;
    auto const* const n = &rest_.front();
    rest_ = rest_.subspan(1);
    return n;
  }

  std::span<node const> rest_;
  bool good_ = true;
};

/// What the server's refusal of a command means. It puts the code first, or, where a script ran
/// into it, somewhere within.
[[nodiscard]] inline error_code redis_refusal(std::string_view text) noexcept {
  struct meaning {
    std::string_view code;
    errc error;
  };
  constexpr meaning meanings[] = {
      {"OOM command not allowed", errc::store_full},
      {"WRONGTYPE", errc::store_foreign},
      {"CORRUPT weir", errc::store_corrupt},
      {"READONLY", errc::store_read_only},
      {"MISCONF", errc::store_read_only},
      // A user without the right to what a script calls: the command, a key or the channel.
      {"NOPERM", errc::permission_denied},
      {"ACL failure in script", errc::permission_denied},  // Valkey 8, without that code
      {"The user executing the script", errc::permission_denied},
      // A script meets a record that is damaged.
      {"attempt to ", errc::store_corrupt},
      {"bad argument", errc::store_corrupt},
      {"data string too short", errc::store_corrupt},
      {"is not an integer", errc::store_corrupt},
      {"is not a valid float", errc::store_corrupt},
      {"NOREPLICAS", errc::store_unavailable},
      {"LOADING", errc::store_unavailable},
      {"BUSY", errc::store_unavailable},
      {"MASTERDOWN", errc::store_unavailable},
      {"CLUSTERDOWN", errc::store_unavailable},
      {"TRYAGAIN", errc::store_unavailable},
      // A node of a cluster, for a store that was not told so.
      {"MOVED", errc::invalid_option},
      {"ASK", errc::invalid_option},
      {"CROSSSLOT", errc::invalid_option},
      {"NOAUTH", errc::permission_denied},
      {"WRONGPASS", errc::permission_denied},
      {"DENIED", errc::permission_denied},  // protected mode
      // A database that it does not have.
      {"ERR DB index", errc::invalid_option},
      {"ERR SELECT is not allowed", errc::invalid_option},
  };
  for (auto const& m : meanings) {
    if (text.starts_with(m.code)) return m.error;
  }
  constexpr std::size_t within_scripts = 14;
  for (auto const& m : std::span{meanings}.first<within_scripts>()) {
    if (text.find(m.code) != text.npos) return m.error;
  }
  return errc::outcome_unknown;  // a script may have stopped half-way
}

/// The same with what the server said, but for what may differ each time.
[[nodiscard]] inline error_code redis_refused(std::string_view text) noexcept {
  constexpr std::string_view of_clusters[] = {"MOVED", "ASK", "CROSSSLOT"};
  for (auto const code : of_clusters) {
    if (text.starts_with(code)) {
      return explained(errc::invalid_option,
                       "the server is a node of a cluster: its URL begins with redis+cluster://");
    }
  }
  auto const ec = redis_refusal(text);
  if (ec == errc::store_corrupt || ec == errc::outcome_unknown) return ec;
  constexpr std::size_t longest = 160;
  return explained(ec, text.substr(0, longest));
}

/// The same of a connection that cannot begin: whatever the server said is why.
[[nodiscard]] inline error_code redis_greeting_refused(std::string_view text) noexcept {
  auto const ec = redis_refused(text);
  constexpr std::size_t longest = 160;
  return ec == errc::outcome_unknown ? explained(errc::store_unavailable, text.substr(0, longest))
                                     : ec;
}

/// What a user lacks the right to, from the text of a refusal that is `permission_denied`. Servers
/// say which command it is, those before Valkey 8 only where in the script it stands.
[[nodiscard]] inline std::string redis_denied(std::string_view text, std::string_view script) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz|-";
  constexpr std::size_t longest = 32;
  auto const command = [&](std::string_view from, std::string_view before) -> std::string_view {
    auto const at = from.find(before);
    if (at == from.npos) return {};
    from.remove_prefix(at + before.size());
    auto const name = from.substr(0, from.find('\''));
    // Whatever a server says may end on a terminal: only a word is repeated.
    bool const word = name.size() <= longest && name.find_first_not_of(letters) == name.npos;
    return word ? name : std::string_view{};
  };
  std::string_view name = command(text, "to run the '");
  constexpr std::string_view place = "@user_script:";
  if (auto const at = text.rfind(place); name.empty() && at != text.npos) {
    std::size_t line = 0;
    std::from_chars(text.data() + at + place.size(), text.data() + text.size(), line);
    for (; line > 1 && !script.empty(); --line) {
      script.remove_prefix(std::min(script.find('\n'), script.size() - 1) + 1);
    }
    name = command(script.substr(0, script.find('\n')), "call('");
  }
  bool const keys = text.find("access") != text.npos;
  if (keys) return "the server's user has no right to one of the keys or channels of its prefix";
  return "the server's user has no right to " +
         (name.empty() ? "a command that is needed" : "the command " + std::string{name});
}

/// Does another server, which has the same name or will have it, perhaps do what this one refuses?
/// So it is where a server has become a replica, which then loads its data once more, or cannot
/// write to its disk. It has not executed what it refused.
[[nodiscard]] inline bool redis_refusal_moves(std::string_view text) noexcept {
  return redis_refusal(text) == errc::store_read_only || text.starts_with("LOADING") ||
         text.starts_with("MASTERDOWN");
}

/// Will it be refused again, until somebody changes the server or what it is asked for? Everything
/// else passes: it loads its data, is busy, is a replica without its master.
[[nodiscard]] inline bool redis_refusal_stays(error_code why) noexcept {
  return why == errc::permission_denied || why == errc::invalid_option ||
         why == errc::store_foreign || why == errc::store_evicts;
}

}  // namespace weir::detail

#endif
