// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Questions to an owner and its answers, as processes on a NATS server read them of each other.

#include "input.hpp"
#include "weir/store/nats/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace weir;
using namespace weir::detail;

/// Reads a question and writes it again. Empty: not all of it could be read.
std::optional<std::string> read_again(std::string_view question) {
  nats_question_reader reader{question};
  if (!reader.known()) return std::nullopt;
  std::string out;
  nats_begin_question(out, reader.shards());
  bool const whole = reader.for_each([&](auto const& c, std::optional<time_point> told) {
    nats_put_command(out, c, told);
    return true;
  });
  return whole ? std::optional{std::move(out)} : std::nullopt;
}

/// A value that is taken for a result is one: it is written and read again.
template <class Result>
void check_result(std::string_view value) {
  Result r{};
  if (!nats_take_answer(value, r)) return;
  std::string once;
  nats_value_writer{once}(r);
  Result again{};
  fuzz::require(nats_take_answer(once, again), "what was read is a result");
  std::string twice;
  nats_value_writer{twice}(again);
  fuzz::require(once == twice, "a result comes back as it was");
}

template <class... Cs>
void check_results(std::string_view value, command::list_of<void, Cs...>) {
  (check_result<typename Cs::result>(value), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  auto const text = in.rest();
  if (auto const once = read_again(text)) {
    auto const twice = read_again(*once);
    fuzz::require(twice.has_value(), "what was read is a question");
    fuzz::require(*once == *twice, "a question comes back as it was");
  }
  compact_reader from{text};
  while (auto const answer = nats_next_answer(from)) {
    fuzz::require(!answer->error || answer->value.empty(), "an error has no result");
    check_results(answer->value, nats_commands{});
  }
  return 0;
}
