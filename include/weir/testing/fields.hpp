// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FIELDS_HPP
#define WEIR_TESTING_FIELDS_HPP

#include "weir/decision.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <boost/core/type_name.hpp>
#include <boost/pfr/core_name.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Commands and answers taken apart, so that they can be printed and compared without knowing them:
// all of them are aggregates, or lists of such.
namespace weir::testing {

/// A span of time as people write it: 1.5s, 20ms, 1h.
[[nodiscard]] inline std::string to_text(duration d) {
  struct unit {
    std::int64_t size;
    std::string_view name;
  };
  constexpr unit units[] = {{3'600'000'000'000, "h"}, {60'000'000'000, "min"}, {1'000'000'000, "s"},
                            {1'000'000, "ms"},        {1'000, "us"},           {1, "ns"}};
  auto const n = d.count();
  if (n == 0) return "0s";
  for (auto const& [size, name] : units) {
    if (n % size == 0) return std::to_string(n / size).append(name);
  }
  return {};
}

/// Any bytes, readable.
[[nodiscard]] inline std::string in_quotes(std::string_view bytes) {
  constexpr std::size_t shown = 40;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out{'"'};
  for (char const c : bytes.substr(0, shown)) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      out.append("\\x").append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
    }
  }
  out += bytes.size() > shown ? "...\"(" + std::to_string(bytes.size()) + " bytes)" : "\"";
  return out;
}

/// The last digits of a job's id, which is where the suite's ids differ.
[[nodiscard]] inline std::string to_text(job_id const& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (id.is_nil()) return {};
  std::string out{"#"};
  for (auto byte = std::prev(id.end(), 2); byte != id.end(); ++byte) {
    out.append(1, digits[*byte >> 4U]).append(1, digits[*byte & 15U]);
  }
  return out;
}

[[nodiscard]] inline std::string to_text(quota const& q) {
  return std::to_string(q.tokens()) + '/' + to_text(q.period()) + " burst " +
         std::to_string(q.capacity());
}

/// The name of an enumerator, as the compiler prints it.
template <auto Value>
[[nodiscard]] constexpr std::string_view enumerator() noexcept {
#if defined(_MSC_VER) && !defined(__clang__)
  std::string_view text = __FUNCSIG__;
  text.remove_prefix(text.find("enumerator<"));
  text = text.substr(0, text.find('>'));
#else
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("Value = "));
  text = text.substr(0, text.find_first_of(";]"));
#endif
  return text.substr(text.rfind(':') + 1);
}

/// Its name, also where it is none of its type's: a damaged answer may have any.
template <class Enum>
  requires std::is_enum_v<Enum>
[[nodiscard]] constexpr std::string_view to_text(Enum value) noexcept {
  constexpr auto names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{enumerator<static_cast<Enum>(I)>()...};
  }(std::make_index_sequence<8>{});
  auto const i = static_cast<std::size_t>(value);
  return i < names.size() ? names[i] : "out of range";
}

enum class field_kind : std::uint8_t {
  exact,  ///< equal or not
  span,   ///< a time, as precise as the store's
  fence,  ///< compared by order, since only that is promised
};

struct field {
  std::string name;
  field_kind kind = field_kind::exact;
  std::int64_t number = 0;
  std::string text;   ///< how it is printed
  std::string exact;  ///< what exact fields are compared by: values that differ may be printed
                      ///< alike
};

/// A command, or an answer.
class field_list {
 public:
  std::string name;
  std::vector<field> all;

  field_list& add(std::string_view n, std::string_view value) {
    return put(n, in_quotes(value), value.empty(), std::string{value});
  }
  field_list& add(std::string_view n, char const* value) { return add(n, std::string_view{value}); }
  field_list& add(std::string_view n, duration d) {
    all.push_back({std::string{n}, field_kind::span, d.count(), to_text(d), {}});
    return *this;
  }
  template <class Integer>
    requires std::is_integral_v<Integer>
  field_list& add(std::string_view n, Integer value) {
    if constexpr (std::is_same_v<Integer, bool>) {
      return put(n, value ? "yes" : "no", !value);
    } else {
      return put(n, std::to_string(value), value == 0);
    }
  }
  field_list& add_fence(std::string_view n, std::uint64_t fence) {
    all.push_back({std::string{n},
                   field_kind::fence,
                   static_cast<std::int64_t>(fence),
                   std::to_string(fence),
                   {}});
    return *this;
  }
  /// A word that stands for a value, or for itself.
  field_list& add_word(std::string_view n, std::string_view word, std::string exact = {}) {
    return put(n, std::string{word}, word.empty(), exact.empty() ? std::string{word} : exact);
  }

 private:
  field_list& put(std::string_view n, std::string text, bool nothing) {
    auto exact = text;
    return put(n, std::move(text), nothing, std::move(exact));
  }
  field_list& put(std::string_view n, std::string text, bool nothing, std::string exact) {
    all.push_back(
        {std::string{n}, field_kind::exact, nothing ? 0 : 1, std::move(text), std::move(exact)});
    return *this;
  }
};

/// In one line; what is zero or empty is left out.
[[nodiscard]] inline std::string to_text(field_list const& list) {
  std::string out = list.name;
  for (auto const& f : list.all) {
    if (f.number != 0) out.append(out.empty() ? "" : " ").append(f.name).append("=").append(f.text);
  }
  return out.empty() ? "nothing" : out;
}

/// Adds a value under its name, or what it consists of. A mark is the store's own affair: it is in
/// the units of that store.
template <class T>
void add_fields(field_list& out, std::string const& name, T const& value) {
  if constexpr (std::same_as<T, bucket_mark>) {
  } else if constexpr (std::same_as<T, duration> || std::convertible_to<T, std::string_view>) {
    out.add(name, value);
  } else if constexpr (std::integral<T>) {
    if (name.ends_with("fence")) {
      out.add_fence(name, static_cast<std::uint64_t>(value));
    } else {
      out.add(name, value);
    }
  } else if constexpr (std::is_enum_v<T>) {
    out.add_word(name, to_text(value),
                 std::to_string(static_cast<std::underlying_type_t<T>>(value)));
  } else if constexpr (std::same_as<T, job_id>) {
    out.add_word(name, to_text(value), {value.begin(), value.end()});
  } else if constexpr (std::same_as<T, quota>) {
    out.add_word(name, to_text(value));
  } else if constexpr (requires { value.has_value(); }) {
    if (value) add_fields(out, name, *value);
  } else if constexpr (std::ranges::range<T>) {
    std::size_t i = 0;
    for (auto const& e : value) add_fields(out, name + '[' + std::to_string(i++) + ']', e);
  } else {
    boost::pfr::for_each_field_with_name(value, [&](std::string_view n, auto const& v) {
      add_fields(out, std::string{name}.append(name.empty() ? "" : ".").append(n), v);
    });
  }
}

/// A command by its name, or an answer.
template <class T>
[[nodiscard]] field_list fields_of(T const& value) {
  field_list out;
  if constexpr (requires { T::repeatable; }) {
    out.name = boost::core::type_name<T>();
    out.name.erase(0, out.name.rfind(':') + 1);
  }
  constexpr bool named = std::is_aggregate_v<T> && !std::ranges::range<T>;
  add_fields(out, named ? "" : "answer", value);
  return out;
}

template <class T>
[[nodiscard]] field_list fields_of(result<T> const& answer) {
  if (answer.has_value()) return fields_of(answer.value());
  field_list out;
  auto const& ec = answer.error();
  out.add_word("error", ec.message(), ec.category().name() + std::to_string(ec.value()));
  return out;
}

template <class T>
  requires(!std::is_enum_v<T>)
[[nodiscard]] std::string to_text(T const& value) {
  return to_text(fields_of(value));
}

/// Which fence of a store stands for which of the rule's: the rule cannot know the store's numbers,
/// only that a new one is greater than every earlier one of its key (R5).
class fence_book {
 public:
  /// Empty: they may stand for each other.
  std::optional<std::string> match(std::string const& scope, std::uint64_t of_rule,
                                   std::uint64_t of_store) {
    if ((of_rule == 0) != (of_store == 0)) return "one has a fence, the other has none";
    if (of_rule == 0) return std::nullopt;
    auto& known = scopes_[scope];
    auto const [it, is_new] = known.of_store.emplace(of_rule, of_store);
    if (!is_new) {
      if (it->second == of_store) return std::nullopt;
      return "the same lease had fence " + std::to_string(it->second) + " before";
    }
    if (of_store <= known.last) {
      return "a new lease has a fence that is not greater than " + std::to_string(known.last);
    }
    known.last = of_store;
    return std::nullopt;
  }

  /// The store's fence for one of the rule's; 0 for 0, and the same for one that is not known.
  [[nodiscard]] std::uint64_t of_store(std::string const& scope, std::uint64_t of_rule) const {
    if (of_rule == 0) return 0;
    auto const known = scopes_.find(scope);
    if (known == scopes_.end()) return of_rule;
    auto const it = known->second.of_store.find(of_rule);
    return it == known->second.of_store.end() ? of_rule : it->second;
  }

 private:
  struct known_fences {
    std::map<std::uint64_t, std::uint64_t> of_store;
    std::uint64_t last = 0;
  };
  std::map<std::string, known_fences> scopes_;
};

/// Where an answer differs from the rule's; empty: nowhere.
///
/// @param slack how far spans of time may differ
/// @param scope the key of the fences
[[nodiscard]] inline std::optional<std::string> difference(field_list const& rule,
                                                           field_list const& store, duration slack,
                                                           fence_book& fences,
                                                           std::string const& scope) {
  for (std::size_t i = 0; i < std::min(rule.all.size(), store.all.size()); ++i) {
    auto const& r = rule.all[i];
    auto const& s = store.all[i];
    auto const differ = [&](std::string_view why) {
      return r.name + ": the rule says " + r.text + ", the store " + s.name + '=' + s.text +
             std::string{why};
    };
    if (r.name != s.name) return differ("");
    if (r.kind == field_kind::exact && r.exact != s.exact) {
      return differ(r.text == s.text ? ", which differs in what is not printed" : "");
    }
    if (r.kind == field_kind::span &&
        static_cast<std::uint64_t>(std::max(r.number, s.number)) -
                static_cast<std::uint64_t>(std::min(r.number, s.number)) >
            static_cast<std::uint64_t>(slack.count())) {
      return differ("");
    }
    if (r.kind == field_kind::fence) {
      auto const wrong = fences.match(scope, static_cast<std::uint64_t>(r.number),
                                      static_cast<std::uint64_t>(s.number));
      if (wrong) return s.name + '=' + s.text + ": " + *wrong;
    }
  }
  if (rule.all.size() == store.all.size()) return std::nullopt;
  bool const missing = rule.all.size() > store.all.size();
  auto const& extra = missing ? rule.all[store.all.size()] : store.all[rule.all.size()];
  return std::string{missing ? "the store lacks " : "the store adds "} + extra.name + '=' +
         extra.text;
}

}  // namespace weir::testing

#endif
