// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_CODEC_HPP
#define WEIR_JOB_CODEC_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/job_traits.hpp"
#include "weir/limits.hpp"

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weir {

namespace detail {

/// The text of an exception, whose `what` may be null.
[[nodiscard]] inline std::string text_of(std::exception const& e) {
  auto const* const text = e.what();
  return text == nullptr ? std::string{} : std::string{text};
}

/// nlohmann::json, looked at only where a job is encoded or decoded: whoever has jobs includes
/// <nlohmann/json.hpp>, and nobody else pays for it.
template <class T>
struct json_for {
  using type = nlohmann::json;
};

}  // namespace detail

namespace detail {

/// Was <nlohmann/json.hpp> included? Asked for a job type, so that it is asked where that is used.
template <class T> concept json_is_known = requires { sizeof(typename json_for<T>::type); };

}  // namespace detail

/// A type with a JSON form, by nlohmann's `to_json` and `from_json` (or its macros), for which
/// <nlohmann/json.hpp> is to be included.
template <class T>
concept json_form = requires(typename detail::json_for<T>::type& j, T& t, T const& c) {
  static_cast<typename detail::json_for<T>::type>(c);
  j.get_to(t);
};

namespace detail {

/// Are more than `limits::payload_depth` arrays and objects of a JSON text within each other? What
/// copies, prints or reads such a value calls itself as deep, and a stack that overflows takes the
/// process with it, whatever handlers it runs: a small payload would end every worker that meets
/// it.
[[nodiscard]] constexpr bool nested_too_deep(std::string_view json) noexcept {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    char const c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '[' || c == '{') {
      if (++depth > limits::payload_depth) return true;
    } else if (c == ']' || c == '}') {
      depth -= std::min<std::size_t>(depth, 1);
    } else {
      in_string = c == '"';
    }
  }
  return false;
}

}  // namespace detail

namespace detail {

// What costs most to compile of JSON, and is the same for all job types. Templates, since
// nlohmann::json is not known here.

template <class Json>
std::string json_text(Json const& json) {
  return json.dump();
}
template <class Json>
Json json_of(std::string_view text) {
  return Json::parse(text);
}

#if defined(WEIR_SEPARATE_COMPILATION)
extern template std::string json_text(nlohmann::json const& json);
extern template nlohmann::json json_of(std::string_view text);
#endif

}  // namespace detail

/// A way to write a job of type `T` other than JSON, as a value in `job_traits<T>::codec`: its
/// `name` (1…32 letters, digits, underscores, dashes and dots), which is stored with each payload;
/// `encode`, and `decode`, which gives what was encoded. Both may throw: a job that cannot be
/// encoded is `unencodable_payload`, one that cannot be decoded is a dead letter with the
/// exception's text.
///
///     struct compressed {
///       static constexpr std::string_view name = "zlib";
///       std::string encode(report const& r) const;
///       template <class T> T decode(std::string_view bytes) const;
///     };
template <class C, class T>
concept codec_of = requires(C const& codec, T const& value, std::string_view bytes) {
  std::string_view{codec.name};
  { codec.encode(value) } -> std::convertible_to<std::string>;
  { codec.template decode<T>(bytes) } -> std::convertible_to<T>;
};

namespace detail {

template <class T> concept has_codec = requires { job_traits<T>::codec; };

/// The codecs of a job type: the first writes, and all of them read.
template <has_codec T>
constexpr auto codecs_of() {
  using type = std::remove_cvref_t<decltype(job_traits<T>::codec)>;
  if constexpr (requires { std::tuple_size<type>::value; }) {
    return job_traits<T>::codec;
  } else {
    return std::tuple<type>{job_traits<T>::codec};
  }
}

constexpr bool is_codec_name(std::string_view name) noexcept {
  auto const fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 32 && std::ranges::all_of(name, fits);
}

constexpr bool are_distinct(std::initializer_list<std::string_view> names) noexcept {
  for (auto i = names.begin(); i != names.end(); ++i) {
    if (std::find(names.begin(), i, *i) != i) return false;
  }
  return names.size() != 0;
}

/// Does not compile for a job type that has no payload.
template <class T>
struct payload_check {
  static_assert(json_is_known<T>,
                "weir: include <nlohmann/json.hpp>: jobs are kept in their JSON form");
  static_assert(
      std::default_initializable<T>,
      "weir: this job type has no default constructor, and is filled in from its JSON form");
  static_assert(json_form<T>,
                "weir: this job type has no JSON form (nlohmann to_json and from_json)");
};
template <has_codec T>
struct payload_check<T> {
  static_assert(std::default_initializable<T>,
                "weir: this job type has no default constructor, and is filled in by its codec");
  static_assert(
      std::apply([](auto const&... c) { return (codec_of<decltype(c), T> && ...); },
                 codecs_of<T>()),
      "weir: codec in job_traits is no codec of this type: it has a name, encode(job), and "
      "decode<Job>(bytes)");
  static_assert(std::apply([](auto const&... c) { return (is_codec_name(c.name) && ...); },
                           codecs_of<T>()),
                "weir: the name of a codec has 1 to 32 letters, digits, _, - and .");
  static_assert(
      std::apply([](auto const&... c) { return are_distinct({std::string_view{c.name}...}); },
                 codecs_of<T>()),
      "weir: each codec in job_traits has a name of its own, and there is one at least");
};

/// A payload that is not JSON begins as no JSON text does, and with its codec's name: a zero, the
/// name, a zero.
inline constexpr char codec_mark = '\0';

template <class T>
[[nodiscard]] result<std::string> encode_json(T const& value) {
  try {
    typename json_for<T>::type const form = value;
    auto text = json_text(form);
    if (nested_too_deep(text)) return explained(errc::unencodable_payload, "nested too deep");
    return text;
  } catch (std::bad_alloc const&) {
    throw;
  } catch (typename json_for<T>::type::type_error const& e) {
    // Texts of errors are kept for as long as the process lives, and nlohmann's differ from payload
    // to payload.
    constexpr int not_utf8 = 316;
    if (e.id != not_utf8) return make_error_code(errc::unencodable_payload);
    return explained(errc::unencodable_payload, "a string is not UTF-8");
  } catch (...) {  // the type's own to_json may throw what it likes
    return make_error_code(errc::unencodable_payload);
  }
}

}  // namespace detail

/// The payload of a job: written by its type's codec, or its JSON form as text. Error:
/// `unencodable_payload`, which is also said of a form that is nested deeper than
/// `limits::payload_depth`. A number that is not finite becomes `null`, as nlohmann writes it.
template <class T>
[[nodiscard]] result<std::string> encode(T const& value) {
  if constexpr (detail::has_codec<T>) {
    try {
      constexpr auto codecs = detail::codecs_of<T>();
      auto const& codec = std::get<0>(codecs);
      std::string out{detail::codec_mark};
      out.append(std::string_view{codec.name}).push_back(detail::codec_mark);
      out += codec.encode(value);
      return out;
    } catch (std::bad_alloc const&) {
      throw;
    } catch (...) {  // whatever the codec throws
      return make_error_code(errc::unencodable_payload);
    }
  } else {
    return detail::encode_json(value);
  }
}

/// A decoded job, or why it could not be decoded.
template <class T>
struct decoded {
  /// Nothing decoded yet.
  decoded() = default;

  bool ok = false;     ///< is there a value?
  T value{};           ///< ok: the job
  std::string reason;  ///< not ok: why, in words
};

namespace detail {

template <class T>
void decode_json(std::string_view payload, decoded<T>& out) {
  if (nested_too_deep(payload)) {
    out.reason = "nested too deep";
    return;
  }
  json_of<typename json_for<T>::type>(payload).get_to(out.value);
  out.ok = true;
}

/// @param payload behind its first zero
template <has_codec T>
void decode_by_name(std::string_view payload, decoded<T>& out) {
  auto const end = payload.find(codec_mark);
  auto const name = payload.substr(0, end);
  if (end == payload.npos || !is_codec_name(name)) {
    out.reason = "it does not begin with the name of a codec";
    return;
  }
  auto const read = [&](auto const& codec) {
    if (name != std::string_view{codec.name}) return false;
    out.value = codec.template decode<T>(payload.substr(end + 1));
    return out.ok = true;
  };
  constexpr auto codecs = codecs_of<T>();
  if (!std::apply([&](auto const&... c) { return (read(c) || ...); }, codecs)) {
    out.reason = "this type has no codec named " + std::string{name};
  }
}

}  // namespace detail

/// The job that a payload stands for: whichever of its type's codecs has written it, or as JSON.
/// Never throws for a bad payload: the reason says what is wrong with it. Numbers are what nlohmann
/// makes of them: where payloads come from others, a type's `from_json` must check that they fit.
template <class T>
[[nodiscard]] decoded<T> decode(std::string_view payload) {
  decoded<T> out;
  try {
    if (!payload.empty() && payload.front() == detail::codec_mark) {
      if constexpr (detail::has_codec<T>) {
        detail::decode_by_name(payload.substr(1), out);
      } else {
        out.reason = "it was written by a codec, and its type has none";
      }
    } else if constexpr (json_form<T>) {
      detail::decode_json(payload, out);
    } else {
      out.reason = "it was not written by a codec, and its type has no JSON form";
    }
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const& e) {  // whatever a codec or the type's own from_json throws
    out.reason = detail::text_of(e);
  } catch (...) {
    out.reason = "an exception that is not a std::exception";
  }
  return out;
}

/// The result of a job that has ended well (`job::result`), as its handler returned it.
///
/// @param done a job that was completed
/// Error: `undecodable_payload`, which says why: it has no result, or that of another type.
template <class T>
[[nodiscard]] result<T> result_as(job const& done) {
  if constexpr (std::is_same_v<T, std::string>) {
    return done.result;
  } else {
    static_assert(json_form<T>, "weir::result_as: this type has no JSON form");
    auto read = decode<T>(done.result);
    if (read.ok) return std::move(read.value);
    // Texts of errors are kept for as long as the process lives, and nlohmann's of what is no JSON
    // go on with a part of it.
    std::string_view why = read.reason;
    if (why.starts_with("[json.exception.parse_error")) why = why.substr(0, why.find(" at "));
    return detail::explained(errc::undecodable_payload, why);
  }
}

}  // namespace weir

#endif
