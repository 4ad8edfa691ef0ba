// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The rate limit's header fields: whatever names, quotas and decisions they are made of, they are
// well-formed lists of RFC 9651, say what they were given, and never tell a client to be early.

#include "weir/http_fields.hpp"

#include "input.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

using value = std::variant<std::int64_t, std::string>;

struct member {
  std::string text;
  std::map<std::string, value> parameters;
};

/// A strict reader of a list of strings with parameters, by the grammar of RFC 9651 (sections 3.1,
/// 3.1.2, 3.3.1 and 3.3.3) and nothing else.
class reader {
 public:
  explicit reader(std::string_view text) : rest_{text} {}

  std::vector<member> list() {
    std::vector<member> out;
    if (rest_.empty()) return out;
    for (;;) {
      member m{string(), {}};
      while (take(';')) {
        auto const name = key();
        fuzz::require(take('='), "a parameter has a value");
        fuzz::require(m.parameters.emplace(name, bare()).second, "no parameter twice");
      }
      out.push_back(std::move(m));
      if (rest_.empty()) return out;
      fuzz::require(take(','), "members are separated by commas");
      while (take(' ')) {
      }
      fuzz::require(!rest_.empty(), "no comma at the end");
    }
  }

 private:
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string key() {
    auto const n = rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-.*");
    std::string out{rest_.substr(0, n)};
    rest_.remove_prefix(out.size());
    fuzz::require(!out.empty() && (out[0] == '*' || (out[0] >= 'a' && out[0] <= 'z')), "a key");
    return out;
  }

  value bare() {
    if (!rest_.empty() && rest_.front() == '"') return string();
    auto const n = std::min(rest_.find_first_not_of("-0123456789"), rest_.size());
    std::int64_t out = 0;
    auto const [end, ec] = std::from_chars(rest_.data(), rest_.data() + n, out);
    fuzz::require(n != 0 && ec == std::errc{} && end == rest_.data() + n, "an Integer");
    fuzz::require(out >= -999'999'999'999'999 && out <= 999'999'999'999'999, "of 15 digits");
    rest_.remove_prefix(n);
    return out;
  }

  std::string string() {
    fuzz::require(take('"'), "a String begins with a quote");
    std::string out;
    for (;;) {
      fuzz::require(!rest_.empty(), "a String ends with a quote");
      char const c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return out;
      fuzz::require(c >= ' ' && c <= '~', "a String is printable ASCII");
      if (c != '\\') {
        out += c;
        continue;
      }
      fuzz::require(!rest_.empty() && (rest_.front() == '"' || rest_.front() == '\\'), "an escape");
      out += rest_.front();
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
};

std::string printable(std::string_view name) {
  std::string out{name};
  std::ranges::replace_if(out, [](char c) { return c < ' ' || c > '~'; }, '_');
  return out;
}

std::int64_t integer(member const& m, std::string const& name) {
  auto const found = m.parameters.find(name);
  fuzz::require(found != m.parameters.end(), "the parameter is there");
  auto const* const n = std::get_if<std::int64_t>(&found->second);
  fuzz::require(n != nullptr && *n >= 0, "it is a number, and not negative");
  return *n;
}

constexpr std::uint64_t largest = 999'999'999'999'999;

void check_policy(std::vector<weir::http::named_quota> const& quotas) {
  auto const members = reader{weir::http::ratelimit_policy(quotas)}.list();
  fuzz::require(members.size() == quotas.size(), "a member for each quota");
  for (std::size_t i = 0; i != members.size(); ++i) {
    auto const& m = members[i];
    auto const& q = quotas[i];
    fuzz::require(m.text == printable(q.name), "under its name");
    auto const capacity = static_cast<std::uint64_t>(integer(m, "q"));
    fuzz::require(capacity == std::min(q.limit.capacity(), largest), "with its capacity");
    auto const window = static_cast<std::uint64_t>(integer(m, "w"));
    fuzz::require(window >= 1, "and a window");
    if (window != largest && q.limit.tokens() != 0 && q.limit.period() > weir::duration{}) {
      __extension__ using wide = unsigned __int128;
      auto const nanoseconds = static_cast<wide>(window) * 1'000'000'000U;
      auto const needed = static_cast<wide>(q.limit.capacity()) *
                          static_cast<wide>(q.limit.period().count()) / q.limit.tokens();
      fuzz::require(nanoseconds >= needed, "in which it refills");
    }
    auto const unit = m.parameters.find("qu");
    fuzz::require((unit == m.parameters.end()) == q.unit.empty(), "a unit, if it has one");
    if (unit != m.parameters.end()) {
      fuzz::require(std::get<std::string>(unit->second) == printable(q.unit), "its unit");
    }
  }
}

bool not_early(std::uint64_t seconds, weir::duration wait) {
  constexpr std::uint64_t longest = 9'223'372'036;  // that a duration can be
  return seconds > longest || std::chrono::seconds{seconds} >= wait;
}

void check_decision(weir::decision const& d, std::vector<weir::http::named_quota> const& quotas) {
  auto const members = reader{weir::http::ratelimit(d, quotas)}.list();
  fuzz::require(members.size() == 1, "one member");
  auto const name = d.binding < quotas.size() ? quotas[d.binding].name : std::string_view{};
  fuzz::require(members[0].text == printable(name), "under the name of the quota that binds");
  fuzz::require(static_cast<std::uint64_t>(integer(members[0], "r")) ==
                    std::min(d.remaining, largest),
                "what remains");
  fuzz::require(not_early(static_cast<std::uint64_t>(integer(members[0], "t")),
                          d.allowed ? d.reset_after : d.retry_after),
                "until when");

  auto const text = weir::http::retry_after(d);
  fuzz::require(text.empty() == d.allowed, "only a denial says when to come again");
  if (d.allowed) return;
  std::uint64_t seconds = 0;
  auto const* const end = text.data() + text.size();
  auto const [at, ec] = std::from_chars(text.data(), end, seconds);
  fuzz::require(ec == std::errc{} && at == end && text.front() != '0', "delay-seconds of RFC 9110");
  fuzz::require(not_early(seconds, d.retry_after), "who obeys is not early");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  std::vector<weir::http::named_quota> quotas;
  for (auto left = in.below(6); left != 0; --left) {
    auto const name = in.text();
    auto const tokens = in.number();
    auto const period = in.span();
    quotas.push_back({name, weir::quota::per(tokens, period).burst(in.number()), in.text()});
  }
  check_policy(quotas);

  weir::decision d;
  d.allowed = in.flag();
  d.binding = in.byte();
  d.remaining = in.number();
  d.retry_after = in.span();
  d.reset_after = in.span();
  check_decision(d, quotas);
  return 0;
}
