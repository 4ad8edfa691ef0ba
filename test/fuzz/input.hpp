// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_FUZZ_INPUT_HPP
#define WEIR_TEST_FUZZ_INPUT_HPP

#include "weir/job.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// What every target needs: a property that must hold, and the fuzzer's bytes as choices. A target
// is `extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const*, std::size_t)` in a file of its
// own, NAME.cpp, with what it starts from in corpus/NAME/; CMakeLists.txt finds both.
namespace fuzz {

/// Ends the process where a property does not hold: libFuzzer keeps the input then, and so does
/// the replay.
inline void require(bool holds, char const* property) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", property);
  std::fflush(stderr);
  std::abort();
}

[[nodiscard]] inline std::string_view text_of(std::uint8_t const* data, std::size_t size) {
  return {reinterpret_cast<char const*>(data), size};
}

/// Reads choices from bytes; once they are spent, every choice is the first one. Texts that it
/// gives live as long as it does.
class input {
 public:
  input(std::uint8_t const* data, std::size_t size) : rest_{text_of(data, size)} {}

  [[nodiscard]] bool spent() const noexcept { return rest_.empty(); }

  /// Any value at all of a number, its low bytes first.
  template <class Number = std::uint64_t>
  Number bits() {
    std::make_unsigned_t<Number> value = 0;
    auto const n = std::min(rest_.size(), sizeof(value));
    if (n != 0) std::memcpy(&value, rest_.data(), n);
    rest_.remove_prefix(n);
    return static_cast<Number>(value);
  }

  std::uint8_t byte() { return bits<std::uint8_t>(); }
  bool flag() { return (byte() & 1U) != 0; }

  /// One of 0…n-1, n up to 256.
  std::size_t below(std::size_t n) { return byte() % n; }

  /// A number that is often small, or at an edge.
  template <class Number = std::uint64_t>
  Number number() {
    switch (below(4)) {
      case 0: return static_cast<Number>(below(16));
      case 1: return static_cast<Number>(bits<std::uint16_t>());
      case 2: return bits<Number>();
      default: return static_cast<Number>(~bits<std::uint16_t>());
    }
  }

  /// From never before to never again, and often what people use.
  weir::duration span() {
    using namespace std::chrono_literals;
    constexpr std::array<weir::duration, 8> usual{0ns, 1ns, 1us, 1ms, 1s, 30s, 1h, 24h * 365};
    if (auto const i = below(10); i < usual.size()) return usual[i] * below(4);
    return weir::duration{bits<std::int64_t>()};
  }

  /// Bytes: some that come again and again, some of their own, some too long.
  std::string_view text() {
    constexpr std::array<std::string_view, 4> again{"a", "b", "", "\0\xff\n\"*"};
    if (auto const i = below(8); i < again.size()) return again[i];
    if (below(16) == 0) return kept_.emplace_back(1000 + below(256), 'x');
    auto const most = below(64);
    auto const own = rest_.substr(0, most);
    rest_.remove_prefix(own.size());
    return own;
  }

  /// One of a few ids, or none.
  weir::job_id id() {
    weir::job_id out{};
    out.data[15] = static_cast<std::uint8_t>(below(5));
    return out;
  }

  std::string_view rest() { return std::exchange(rest_, {}); }

 private:
  std::string_view rest_;
  std::deque<std::string> kept_;
};

}  // namespace fuzz

#endif
