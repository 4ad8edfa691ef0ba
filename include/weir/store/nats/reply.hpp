// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_REPLY_HPP
#define WEIR_STORE_NATS_REPLY_HPP

#include "weir/error.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/server_time.hpp"
#include "weir/time.hpp"

#include <nats/nats.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// JetStream's error codes that mean something here.
enum class nats_code : std::uint16_t {
  none = 0,
  unavailable = 10008,
  wrong_last_sequence = 10071,
  wrong_last_sequence_too = 10164,  // where the server does not say which it is
  message_not_found = 10037,
  stream_not_found = 10059,
};

/// Why JetStream refused. None of these were executed.
[[nodiscard]] inline error_code nats_refusal(int code) noexcept {
  switch (code) {
    case 10002:  // the account's limits
    case 10023:  // insufficient resources
    case 10027:  // the account's streams
    case 10028:  // the account's memory
    case 10047:  // the account's storage
    case 10054:  // a message above the stream's limit
    case 10077:  // the stream is full, or could not store
    case 10122:  // the account's bytes
      return errc::store_full;
    case 10059:  // no such stream
    case 10166:  // it has no TTLs
      return errc::schema_outdated;
    case 10058:  // it is there with another configuration
    case 10065:  // another stream has its subjects
      return errc::store_foreign;
    case 10074:  // replicas, where there is no cluster
    case 10113:  // the account requires `max_bytes`
      return errc::invalid_option;
    case 10109:  // it is sealed
      return errc::store_read_only;
    default:  // no leader, not enabled, unavailable, too many requests: that may pass
      return errc::store_unavailable;
  }
}

/// What came on the inbox: a message, or what there is instead of one.
class nats_reply {
 public:
  explicit nats_reply(natsMsg* message) noexcept : message_{message} {}

  [[nodiscard]] std::string_view data() const noexcept {
    auto const size = natsMsg_GetDataLength(message_);
    if (size <= 0) return {};
    return {natsMsg_GetData(message_), static_cast<std::size_t>(size)};
  }
  /// Where an answer goes; empty: none is wanted.
  [[nodiscard]] std::string_view reply_to() const noexcept {
    auto const* const to = natsMsg_GetReply(message_);
    return to == nullptr ? std::string_view{} : std::string_view{to};
  }
  /// The last one of that name, since a server puts its own behind those that a message was stored
  /// with; empty if there is none.
  [[nodiscard]] std::string_view header(char const* name) const noexcept {
    char const** values = nullptr;
    int count = 0;
    if (natsMsgHeader_Values(message_, name, &values, &count) != NATS_OK) return {};
    std::string_view const last = count > 0 ? values[count - 1] : "";
    std::free(static_cast<void*>(values));  // the array is ours, what it names is the message's
    return last;
  }

 private:
  natsMsg* message_;
};

namespace nats_json {

using json = nlohmann::json;

[[nodiscard]] inline json parse(std::string_view text) {
  return json::parse(text.begin(), text.end(), nullptr, false);
}
[[nodiscard]] inline std::uint64_t number(json const& in, char const* name) {
  if (!in.is_object()) return 0;
  auto const found = in.find(name);
  return found != in.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}
[[nodiscard]] inline std::string text(json const& in, char const* name) {
  if (!in.is_object()) return {};
  auto const found = in.find(name);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string{};
}
[[nodiscard]] inline bool flag(json const& in, char const* name) {
  if (!in.is_object()) return false;
  auto const found = in.find(name);
  return found != in.end() && found->is_boolean() && found->get<bool>();
}
/// 0: none.
[[nodiscard]] inline int error(json const& in) {
  if (!in.is_object()) return 0;
  auto const found = in.find("error");
  if (found == in.end()) return 0;
  auto const code = number(*found, "err_code");
  return code == 0 || code > 65'535 ? 1 : static_cast<int>(code);
}

}  // namespace nats_json

/// The header of a message of a log that says what its sender has made of the log
/// (table_digest.hpp).
inline constexpr char const* nats_note_header = "weir-table";

/// The answer to a write.
struct nats_written {
  std::uint64_t sequence = 0;  ///< of what was written; 0: it was not
  bool overtaken = false;      ///< somebody else has written since
  error_code failed{};
};

[[nodiscard]] inline nats_written read_written(std::string_view text) {
  nats_written out;
  auto const json = nats_json::parse(text);
  if (auto const code = nats_json::error(json); code != 0) {
    out.overtaken = code == static_cast<int>(nats_code::wrong_last_sequence) ||
                    code == static_cast<int>(nats_code::wrong_last_sequence_too);
    if (!out.overtaken) out.failed = nats_refusal(code);
    return out;
  }
  out.sequence = nats_json::number(json, "seq");
  if (out.sequence == 0) out.failed = make_error_code(errc::outcome_unknown);  // whoever that was
  return out;
}

/// The answer to a read: the last message of a subject.
struct nats_record {
  std::uint64_t sequence = 0;  ///< 0: there is none
  std::string value{};
  std::optional<time_point> stored{};  ///< by the server's clock; empty: it does not say
};

/// Standard base 64, with padding. Empty: it is none.
[[nodiscard]] inline std::optional<std::string> nats_base64(std::string_view text) {
  static constexpr auto values = [] {
    std::array<std::int8_t, 256> out{};
    out.fill(-1);
    std::string_view const digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i != digits.size(); ++i) {
      out[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
    }
    return out;
  }();
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.ends_with('=')) text.remove_suffix(1);
  if (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (char const c : text) {
    auto const value = values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xFFU);
    }
  }
  return out;
}

/// As the stream's leader answers.
[[nodiscard]] inline result<nats_record> read_leader(std::string_view text) {
  nats_record out;
  auto const json = nats_json::parse(text);
  if (auto const code = nats_json::error(json); code != 0) {
    if (code == static_cast<int>(nats_code::message_not_found)) return out;
    return nats_refusal(code);
  }
  auto const message = json.is_object() ? json.find("message") : json.end();
  if (!json.is_object() || message == json.end()) return make_error_code(errc::store_unavailable);
  out.sequence = nats_json::number(*message, "seq");
  auto value = nats_base64(nats_json::text(*message, "data"));
  if (out.sequence == 0 || !value) return make_error_code(errc::store_unavailable);
  out.value = std::move(*value);
  out.stored = nats_time(nats_json::text(*message, "time"));
  return out;
}

/// As any server that has the stream answers, by headers, or the one that leads it, without.
[[nodiscard]] inline result<nats_record> read_record(nats_reply const& reply) {
  nats_record out;
  auto const digits = reply.header("Nats-Sequence");
  auto const status = reply.header("Status");
  if (digits.empty() && status.empty()) return read_leader(reply.data());
  if (nats_digits(digits, out.sequence) && out.sequence != 0) {
    out.value = reply.data();
    out.stored = nats_time(reply.header("Nats-Time-Stamp"));
    return out;
  }
  if (status == "404") return nats_record{};
  return make_error_code(errc::store_unavailable);
}

/// The error in what is said of a stream; 0: none. A server that is cut off from the others of its
/// cluster says what it knew last, and no leader: that is as good as unavailable (F70).
[[nodiscard]] inline int nats_stream_error(nats_json::json const& said) {
  if (auto const code = nats_json::error(said); code != 0) return code;
  if (!said.is_object()) return 0;
  auto const cluster = said.find("cluster");
  bool const served = cluster == said.end() || !nats_json::text(*cluster, "leader").empty();
  return static_cast<int>(served ? nats_code::none : nats_code::unavailable);
}

/// What the stream is like, and what time it is there.
struct nats_stream_info {
  int error = 0;  ///< JetStream's; 0: none
  std::optional<time_point> time{};
  std::optional<time_point> last{};  ///< at which a message was stored last; empty: none was
  bool fits = false;                 ///< it can be used for records
  bool replicated = false;           ///< on more than one server
  std::uint64_t max_bytes = 0;       ///< 0: it has no limit of its own
  /// The numbers at the end of those subjects that were asked for.
  std::vector<std::size_t> numbers{};
};

[[nodiscard]] inline nats_stream_info read_stream_info(std::string_view text) {
  nats_stream_info out;
  auto const json = nats_json::parse(text);
  out.error = nats_stream_error(json);
  if (out.error != 0) return out;
  out.time = nats_time(nats_json::text(json, "ts"));
  if (!json.is_object() || !json.contains("config")) return out;
  if (auto const state = json.find("state"); state != json.end()) {
    out.last = nats_time(nats_json::text(*state, "last_ts"));
    auto const subjects = state->find("subjects");
    if (subjects != state->end() && subjects->is_object()) {
      for (auto const& subject : subjects->items()) {
        auto const digits = std::string_view{subject.key()}.substr(subject.key().rfind('.') + 1);
        std::size_t number = 0;
        if (nats_digits(digits, number)) out.numbers.push_back(number);
      }
    }
  }
  auto const& config = json["config"];
  auto const name = nats_json::text(config, "name");
  auto const subjects = config.is_object() ? config.find("subjects") : config.end();
  bool const has_keys = subjects != config.end() && subjects->is_array() &&
                        std::find(subjects->begin(), subjects->end(),
                                  name.substr(0, name.rfind('-')) + ".k.>") != subjects->end();
  out.fits = has_keys && nats_json::number(config, "max_msgs_per_subject") == 1 &&
             nats_json::number(config, "max_age") == 0 &&
             nats_json::text(config, "retention") == "limits" &&
             nats_json::text(config, "discard") == "new" && !nats_json::flag(config, "no_ack") &&
             nats_json::flag(config, "allow_direct") && nats_json::flag(config, "allow_msg_ttl") &&
             nats_json::number(config, "subject_delete_marker_ttl") == 0;
  out.replicated = nats_json::number(config, "num_replicas") > 1;
  out.max_bytes = nats_json::number(config, "max_bytes");  // -1 is no limit, and none of these
  return out;
}

}  // namespace weir::detail

#endif
