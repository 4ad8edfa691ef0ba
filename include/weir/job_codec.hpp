// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_CODEC_HPP
#define WEIR_JOB_CODEC_HPP

#include "weir/error.hpp"

#include <nlohmann/json.hpp>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

/// A type with a JSON form, by nlohmann's `to_json` and `from_json` (or its macros).
template <class T>
concept json_form = requires(nlohmann::json& j, T& t, T const& c) {
  nlohmann::json(c);
  j.get_to(t);
};

/// The payload of a job: its JSON form as text. Error: `unencodable_payload`.
template <class T>
[[nodiscard]] result<std::string> encode(T const& value) {
  try {
    nlohmann::json const form = value;
    return form.dump();
  } catch (std::bad_alloc const&) {
    throw;
  } catch (...) {  // the type's own to_json may throw what it likes
    return make_error_code(errc::unencodable_payload);
  }
}

/// A decoded job, or why it could not be decoded.
template <class T>
struct decoded {
  decoded() = default;

  bool ok = false;
  T value{};
  std::string reason;
};

/// The job that a payload stands for. Never throws for a bad payload: the reason says what is wrong
/// with it.
template <class T>
[[nodiscard]] decoded<T> decode(std::string_view payload) {
  decoded<T> out;
  try {
    nlohmann::json::parse(payload).get_to(out.value);
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
