// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The texts that the NATS store reads: records that are any bytes, JSON replies, times, base 64,
// notes; and keys as tokens of subjects, of which no two are the same (F27).

#include "input.hpp"
#include "weir/command/buckets.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/store/nats/buckets.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/locks.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/permits.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/table_digest.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace weir;
using namespace weir::detail;

std::optional<std::string> untoken(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '=') {
      out += token[i];
      continue;
    }
    constexpr std::string_view digits = "0123456789ABCDEF";
    if (token.size() - i < 3) return std::nullopt;
    out += static_cast<char>(digits.find(token[i + 1]) * 16 + digits.find(token[i + 2]));
    i += 2;
  }
  return out;
}

void check_key(std::string_view key) {
  auto const token = nats_token(key);
  fuzz::require(token.find_first_of(" .*>\t\r\n") == token.npos, "a token is one token");
  fuzz::require(token.empty() == key.empty(), "only nothing is nothing");
  fuzz::require(untoken(token) == std::string{key}, "no two keys have the same token");
  fuzz::require(token.size() <= 3 * key.size(), "a token is no longer than three times its key");
}

template <class State>
void check_record(std::string_view bytes, time_point now) {
  auto read = State::read(bytes);
  if (!read) return;
  fuzz::require(read->write() == bytes, "a record that can be read is written the same");
  (void)read->lasts(now);
  read->expire(now);
  auto const again = State::read(read->write());
  fuzz::require(again && again->write() == read->write(), "what is written can be read");
}

/// Of what a process has made of a log. The checksum is right, so that the rest is looked at.
void check_note(std::string text) {
  text += ' ' + std::to_string(nats_checksum(text));
  auto const note = nats_table_note::read(text);
  if (!note) return;
  auto const again = nats_table_note::read(note->write());
  fuzz::require(again && again->write() == note->write(), "a note comes back as it was");
}

/// A history of commands: whatever they make of a record is a record.
void check_history(fuzz::input& in) {
  nats_permits permits;
  nats_lock lock;
  nats_bucket bucket;
  time_point now{std::chrono::hours{24 * 365 * 50}};
  std::string const holders[] = {"a", std::string{"\0b", 2}, "ccc"};
  quota const quotas[] = {quota::per_second(10), quota::per_minute(60).burst(7)};
  auto const check = [](auto const& state) {
    using type = std::decay_t<decltype(state)>;
    auto const bytes = state.write();
    auto const read = type::read(bytes);
    fuzz::require(read && read->write() == bytes, "what is written can be read");
  };
  for (int i = 0; i != 50 && !in.spent(); ++i) {
    now += std::chrono::milliseconds{in.byte()};
    auto const& holder = holders[in.byte() % 3];
    auto const span = std::chrono::milliseconds{1 + in.byte()};
    duration const doubt{in.byte()};
    switch (in.byte() % 6) {
      case 0:
        (void)permits.apply(command::acquire_permit{"k", holder, 1, span, span}, now, doubt);
        break;
      case 1: (void)permits.apply(command::release_permit{"k", holder, 0}, now, doubt); break;
      case 2: (void)lock.apply(command::acquire_lock{"k", holder, span}, now, doubt); break;
      case 3: (void)lock.apply(command::release_lock{"k", holder, 0}, now, doubt); break;
      case 4: (void)bucket.apply(command::take{"k", quotas, 1, span}, now, doubt); break;
      default:
        (void)bucket.apply(command::take{"k", {quotas + in.byte() % 2, 1}, 1, {}}, now, doubt);
        break;
    }
    check(permits);
    check(lock);
    check(bucket);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  time_point const now{duration{in.bits<std::int64_t>() >> 2}};
  auto const text = fuzz::text_of(data, size).substr(std::min<std::size_t>(size, 8));
  check_key(text);
  check_record<nats_permits>(text, now);
  check_record<nats_lock>(text, now);
  check_record<nats_bucket>(text, now);
  if (auto const t = nats_time(text)) {
    fuzz::require(t->time_since_epoch() >= duration::zero(), "times are after 1970");
  }
  (void)nats_base64(text);
  auto const written = read_written(text);
  fuzz::require((written.sequence != 0) + written.overtaken + !!written.failed == 1,
                "a write was done, overtaken, or has failed");
  (void)read_leader(text);
  (void)read_stream_info(text);
  check_note(std::string{text});
  check_history(in);
  return 0;
}
