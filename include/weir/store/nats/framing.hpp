// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_FRAMING_HPP
#define WEIR_STORE_NATS_FRAMING_HPP

#include "weir/store/nats/bytes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::detail {

/// Looks at what a server sends before the C client does. That client (3.4.1) trusts its server:
/// a declared size near 2^31 makes it read before its buffer, a line without an end grows in memory
/// for ever, the subject of a message that is split is read beyond the 512 bytes that it keeps, and
/// a message in which the connection ends is leaked, in the size that was declared.
///
/// Whole lines of the protocol pass, and whole messages of sizes that a server may use (64 MiB).
/// Everything else ends the connection. Of INFO only what the client needs passes. A message whose
/// subjects the client has no room for is left out: of weir's own these are hints about long keys,
/// which promise nothing.
class nats_framing {
 public:
  /// Of a message, in bytes.
  static constexpr std::size_t longest_subjects = 480;

  /// Appends to `out` what may pass of the next bytes. False: the server does not speak NATS.
  [[nodiscard]] bool pass(std::string_view bytes, std::string& out) {
    while (!bytes.empty()) {
      if (payload_ != 0) {
        auto const some = bytes.substr(0, payload_);
        if (!ends_well(some)) return false;
        payload_ -= some.size();
        if (passes_) message_ += some;
        bytes.remove_prefix(some.size());
        if (payload_ == 0) {
          out += message_;
          message_.clear();
        }
        continue;
      }
      auto const end = bytes.find('\n');
      auto const some = bytes.substr(0, end == bytes.npos ? end : end + 1);
      line_ += some;
      bytes.remove_prefix(some.size());
      if (line_.size() > longest_line) return false;
      if (end == some.npos) continue;
      if (!read_line(out)) return false;
      line_.clear();
    }
    return true;
  }

 private:
  static constexpr std::size_t longest_line = 32U << 10U;  // INFO; the client reads no longer one
  static constexpr std::size_t largest = 64U << 20U;       // that a server can be configured for

  /// A payload is followed by the end of a line.
  [[nodiscard]] bool ends_well(std::string_view some) const noexcept {
    for (std::size_t i = payload_ > 2 ? payload_ - 2 : 0; i < some.size(); ++i) {
      if (some[i] != (payload_ - i == 2 ? '\r' : '\n')) return false;
    }
    return true;
  }

  [[nodiscard]] bool read_line(std::string& out) {
    std::string_view line{line_};
    if (!line.ends_with("\r\n")) return false;
    line.remove_suffix(2);
    bool const plain = std::ranges::none_of(line, [](char c) { return c == '\r' || c == '\0'; });
    if (!plain) return false;
    if (line.starts_with("MSG ")) return read_message(line.substr(4), false);
    if (line.starts_with("HMSG ")) return read_message(line.substr(5), true);
    if (line.starts_with("INFO ")) return read_info(line.substr(5), out);
    bool const known =
        line == "PING" || line == "PONG" || line == "+OK" || line.starts_with("-ERR ");
    if (known) out += line_;
    return known;
  }

  /// SUBJECT SID [REPLY] [SIZE OF HEADERS] SIZE
  [[nodiscard]] bool read_message(std::string_view rest, bool headers) {
    constexpr std::size_t most = 5;
    std::string_view words[most];
    std::size_t count = 0;
    for (;;) {
      if (count == most) return false;
      auto const space = rest.find(' ');
      words[count] = rest.substr(0, space);
      if (words[count++].empty()) return false;
      if (space == rest.npos) break;
      rest.remove_prefix(space + 1);
    }
    std::size_t const least = headers ? 4 : 3;
    if (count != least && count != least + 1) return false;
    std::uint64_t size = 0;
    std::uint64_t head = 0;
    std::uint64_t sid = 0;
    if (!number(words[count - 1], size) || !number(words[1], sid)) return false;
    if (headers && (!number(words[count - 2], head) || head > size)) return false;
    if (size > largest) return false;
    payload_ = static_cast<std::size_t>(size) + 2;
    auto const reply = count == least ? std::size_t{0} : words[2].size();
    passes_ = words[0].size() + reply <= longest_subjects;
    if (passes_) message_ = line_;
    return true;
  }
  [[nodiscard]] static bool number(std::string_view text, std::uint64_t& out) noexcept {
    constexpr std::size_t longest = 10;
    return text.size() <= longest && nats_digits(text, out);
  }

  [[nodiscard]] static bool read_info(std::string_view text, std::string& out) {
    using json = nlohmann::json;
    constexpr int deepest = 8;
    bool deep = false;
    auto const said = json::parse(
        text.begin(), text.end(),
        [&deep](int depth, json::parse_event_t, json&) {
          deep = deep || depth > deepest;
          return depth <= deepest;
        },
        false);
    if (deep || !said.is_object()) return false;
    json kept = json::object();
    for (char const* const name : {"server_id", "server_name", "version", "nonce"}) {
      constexpr std::size_t longest = 256;
      auto const it = said.find(name);
      if (it == said.end() || !it->is_string()) continue;
      auto const& value = it->get_ref<json::string_t const&>();
      if (value.size() <= longest) kept[name] = value;
    }
    for (char const* const name : {"auth_required", "tls_required", "tls_available", "headers"}) {
      auto const it = said.find(name);
      if (it != said.end() && it->is_boolean()) kept[name] = *it;
    }
    for (char const* const name : {"proto", "max_payload"}) {
      auto const it = said.find(name);
      if (it == said.end() || !it->is_number_unsigned()) continue;
      kept[name] = std::min<std::uint64_t>(it->get<std::uint64_t>(), largest);
    }
    out += "INFO ";
    out += kept.dump(-1, ' ', true, json::error_handler_t::replace);
    out += "\r\n";
    return true;
  }

  std::string line_;         // that has not ended
  std::size_t payload_ = 0;  // bytes of it that are still to come, with the end of its line
  bool passes_ = false;      // it does
  std::string message_;      // as far as it has come
};

}  // namespace weir::detail

#endif
