// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_LOG_INFO_HPP
#define WEIR_STORE_NATS_LOG_INFO_HPP

#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/server_time.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

/// What the stream of a shard's log is like, and which messages it has.
struct nats_log_info {
  int error = 0;            ///< JetStream's; 0: none
  bool fits = false;        ///< it can be used for the log
  bool has_state = false;   ///< what follows is known
  std::uint64_t first = 0;  ///< the message that is there and that all before are not, if any is
  std::uint64_t last = 0;   ///< the last one that there ever was
};

[[nodiscard]] inline nats_log_info read_log_info(std::string_view text, std::string const& log,
                                                 std::string const& echo) {
  nats_log_info out;
  auto const json = nats_json::parse(text);
  out.error = nats_stream_error(json);
  if (out.error != 0 || !json.is_object() || !json.contains("config")) return out;
  auto const& config = json["config"];
  auto const said_again = config.is_object() ? config.find("republish") : config.end();
  auto const subjects = config.is_object() ? config.find("subjects") : config.end();
  out.fits = config.is_object() && nats_json::text(config, "retention") == "limits" &&
             nats_json::text(config, "discard") == "new" && !nats_json::flag(config, "no_ack") &&
             nats_json::flag(config, "allow_direct") && nats_json::number(config, "max_age") == 0 &&
             said_again != config.end() && nats_json::text(*said_again, "src") == log &&
             nats_json::text(*said_again, "dest") == echo && subjects != config.end() &&
             subjects->is_array() && subjects->size() == 1 && subjects->front() == log &&
             nats_json::number(config, "max_msgs_per_subject") == 0;
  auto const state = json.find("state");
  if (state == json.end() || !state->is_object() || !state->contains("last_seq")) return out;
  out.has_state = true;
  out.first = nats_json::number(*state, "first_seq");
  out.last = nats_json::number(*state, "last_seq");
  return out;
}

/// A message of the log, as it was said again or read.
struct nats_logged {
  std::uint64_t sequence = 0;
  time_point time{};
  std::string data{};
  std::string note{};  ///< of its sender (table_digest.hpp); empty: none
};

/// Empty: it is none.
[[nodiscard]] inline std::optional<nats_logged> read_logged(nats_reply const& message) {
  nats_logged out;
  auto const time = nats_time(message.header("Nats-Time-Stamp"));
  bool const numbered = nats_digits(message.header("Nats-Sequence"), out.sequence);
  if (!numbered || out.sequence == 0 || !time) return std::nullopt;
  out.time = *time;
  out.data = message.data();
  out.note = message.header(nats_note_header);
  return out;
}

}  // namespace weir::detail

#endif
