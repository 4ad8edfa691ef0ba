// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_CODEC_HPP
#define WEIR_JOB_CODEC_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

namespace detail {

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

/// The payload of a job: its JSON form as text. Error: `unencodable_payload`, which is also said of
/// a form that is nested deeper than `limits::payload_depth`.
template <class T>
[[nodiscard]] result<std::string> encode(T const& value) {
  try {
    typename detail::json_for<T>::type const form = value;
    auto text = detail::json_text(form);
    if (detail::nested_too_deep(text)) {
      return detail::explained(errc::unencodable_payload, "nested too deep");
    }
    return text;
  } catch (std::bad_alloc const&) {
    throw;
  } catch (typename detail::json_for<T>::type::type_error const& e) {
    // Texts of errors are kept for as long as the process lives, and nlohmann's differ from payload
    // to payload.
    constexpr int not_utf8 = 316;
    if (e.id != not_utf8) return make_error_code(errc::unencodable_payload);
    return detail::explained(errc::unencodable_payload, "a string is not UTF-8");
  } catch (...) {  // the type's own to_json may throw what it likes
    return make_error_code(errc::unencodable_payload);
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

/// The job that a payload stands for. Never throws for a bad payload: the reason says what is wrong
/// with it. Numbers are what nlohmann makes of them: where payloads come from others, a type's
/// `from_json` must check that they fit.
template <class T>
[[nodiscard]] decoded<T> decode(std::string_view payload) {
  static_assert(
      std::default_initializable<T>,
      "weir: this job type has no default constructor, and is filled in from its JSON form");
  decoded<T> out;
  if (detail::nested_too_deep(payload)) {
    out.reason = "nested too deep";
    return out;
  }
  try {
    detail::json_of<typename detail::json_for<T>::type>(payload).get_to(out.value);
    out.ok = true;
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const& e) {  // the type's own from_json may throw what it likes
    out.reason = e.what();
  } catch (...) {
    out.reason = "an exception that is not a std::exception";
  }
  return out;
}

}  // namespace weir

#endif
