// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CODEC_HPP
#define WEIR_CODEC_HPP

#include "weir/job_codec.hpp"
#include "weir/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir {

namespace detail {

enum class binary_form : std::uint8_t { cbor, message_pack };

/// Called by nlohmann's reader for each part of a value. It ends the reading where a value is too
/// deep: the reader calls itself for each level, and would overflow the stack.
template <class Json>
struct depth_gauge {
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_float(double, std::string const&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(typename Json::binary_t&) { return true; }
  bool key(std::string&) { return true; }
  bool start_object(std::size_t) { return deeper(); }
  bool start_array(std::size_t) { return deeper(); }
  bool end_object() { return higher(); }
  bool end_array() { return higher(); }
  template <class Error>
  bool parse_error(std::size_t, std::string const&, Error const&) {
    return false;  // said again by who reads
  }

  bool deeper() { return ++depth <= limits::payload_depth; }
  bool higher() {
    --depth;
    return true;
  }
  std::size_t depth = 0;
};

/// Has a string of CBOR that comes in chunks a chunk that comes in chunks? RFC 8949 forbids it, and
/// nlohmann's reader calls itself for each, without telling.
[[nodiscard]] constexpr bool has_chunks_in_chunks(std::string_view bytes) noexcept {
  bool in_chunks = false;
  for (std::size_t i = 0; i < bytes.size();) {
    auto const head = static_cast<unsigned char>(bytes[i++]);
    auto const kind = head >> 5U;
    auto const info = head & 0x1fU;
    bool const is_string = kind == 2 || kind == 3;
    if (info == 31) {  // of unknown length, or the end of that
      if (is_string && in_chunks) return true;
      in_chunks = is_string;
      continue;
    }
    std::uint64_t value = info;
    if (info >= 24) {
      if (info > 27) return false;  // no head: the reader ends here
      std::size_t const size = std::size_t{1} << (info - 24);
      if (size > bytes.size() - i) return false;
      value = 0;
      for (std::size_t k = 0; k != size; ++k) {
        value = value << 8U | static_cast<unsigned char>(bytes[i + k]);
      }
      i += size;
    }
    if (!is_string) continue;
    if (value > bytes.size() - i) return false;
    i += static_cast<std::size_t>(value);
  }
  return false;
}

/// Throws if a value is nested too deep.
///
/// @return can it be read?
template <class Json>
bool check_depth(std::string_view bytes, binary_form form) {
  using format = typename Json::input_format_t;
  depth_gauge<Json> gauge;
  bool const is_cbor = form == binary_form::cbor;
  if (is_cbor && has_chunks_in_chunks(bytes)) throw std::invalid_argument{"nested too deep"};
  bool const whole = Json::sax_parse(bytes, &gauge, is_cbor ? format::cbor : format::msgpack);
  if (gauge.depth > limits::payload_depth) throw std::invalid_argument{"nested too deep"};
  return whole;
}

// As json_text and json_of. They throw.
template <class Json>
Json form_of(std::string_view bytes, binary_form form) {
  check_depth<Json>(bytes, form);  // what else is wrong is said by the reader
  return form == binary_form::cbor ? Json::from_cbor(bytes) : Json::from_msgpack(bytes);
}
template <class Json>
std::string bytes_of(Json const& json, binary_form form) {
  std::string out;
  if (form == binary_form::cbor) {
    Json::to_cbor(json, out);
  } else {
    Json::to_msgpack(json, out);
  }
  // As bytes with a subtype, which CBOR writes behind a tag.
  if (!check_depth<Json>(out, form)) throw std::invalid_argument{"it could not be read again"};
  return out;
}

#if defined(WEIR_SEPARATE_COMPILATION)
extern template std::string bytes_of(nlohmann::json const& json, binary_form form);
extern template nlohmann::json form_of(std::string_view bytes, binary_form form);
#endif

template <binary_form Form>
struct json_codec {
  /// The JSON form of a job, in bytes.
  template <json_form T>
  [[nodiscard]] std::string encode(T const& job) const {
    return bytes_of(static_cast<typename json_for<T>::type>(job), Form);
  }
  /// The job again.
  template <json_form T>
  [[nodiscard]] T decode(std::string_view bytes) const {
    T out{};
    form_of<typename json_for<T>::type>(bytes, Form).get_to(out);
    return out;
  }
};

}  // namespace detail

/// A job's JSON form as CBOR (RFC 8949): shorter than the text, and faster to read. It can have
/// strings that are not UTF-8, and bytes.
struct cbor_codec : detail::json_codec<detail::binary_form::cbor> {
  static constexpr std::string_view name = "cbor";  ///< stored with each payload
};

/// A job's JSON form as MessagePack.
struct message_pack_codec : detail::json_codec<detail::binary_form::message_pack> {
  static constexpr std::string_view name = "msgpack";  ///< stored with each payload
};

/// The bytes of a job as they are in memory: the fastest, for types that are copied as bytes and
/// whose every bit counts (no padding, no floating point), and that points to nothing: a pointer, a
/// view or a span would be stored as an address. They are read by programs of the same byte order,
/// and of the same layout: a type that was changed needs a codec of another name.
struct raw_codec {
  static constexpr std::string_view name = "raw";  ///< stored with each payload

  /// The bytes of a job.
  template <class T>
  [[nodiscard]] std::string encode(T const& job) const {
    static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>,
                  "weir::raw_codec: the type is trivially copyable, without padding and floating "
                  "point; weir::cbor_codec takes any other");
    return std::string(reinterpret_cast<char const*>(&job), sizeof(T));
  }
  /// The job again.
  template <class T>
  [[nodiscard]] T decode(std::string_view bytes) const {
    if (bytes.size() != sizeof(T)) throw std::invalid_argument{"it is of another size"};
    T out{};
    std::memcpy(&out, bytes.data(), sizeof(T));
    return out;
  }
};

}  // namespace weir

#endif
