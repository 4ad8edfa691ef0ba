// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_CONFORMANCE_WIRE_HPP
#define WEIR_TEST_CONFORMANCE_WIRE_HPP

#include "weir/decision.hpp"
#include "weir/job.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <boost/pfr.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// Commands and answers as bytes, for another process of this same program.
namespace weir::testing {

template <class T>
concept plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, duration> ||
                std::same_as<T, time_point> || std::same_as<T, job_id> || std::same_as<T, quota> ||
                std::same_as<T, bucket_mark>;

template <class T>
concept growing = requires(T& t, typename T::value_type v) { t.push_back(std::move(v)); };

template <class T>
inline constexpr bool is_span = false;
template <class T>
inline constexpr bool is_span<std::span<T const>> = true;

class wire_writer {
 public:
  [[nodiscard]] std::string take() && { return std::move(out_); }

  template <plain T>
  void put(T const& v) {
    out_.append(reinterpret_cast<char const*>(&v), sizeof(v));
  }
  void put(std::string_view v) {
    put(v.size());
    out_ += v;
  }
  void put(std::string const& v) { put(std::string_view{v}); }
  template <class T>
  void put(std::optional<T> const& v) {
    put(v.has_value());
    if (v) put(*v);
  }
  template <class T>
    requires growing<T> || is_span<T>
  void put(T const& all) {
    put(all.size());
    for (auto const& v : all) put(v);
  }
  template <class T>
    requires std::is_aggregate_v<T> && (!plain<T>)
  void put(T const& v) {
    boost::pfr::for_each_field(v, [this](auto const& field) { this->put(field); });
  }

 private:
  std::string out_;
};

/// What it reads views the bytes that it reads from, and its own memory: both must live as long.
class wire_reader {
 public:
  explicit wire_reader(std::string_view in) : in_{in} {}

  template <plain T>
  void get(T& v) {
    std::memcpy(static_cast<void*>(&v), some(sizeof(v)).data(), sizeof(v));
  }
  void get(std::string_view& v) {
    std::size_t n = 0;
    get(n);
    v = some(n);
  }
  void get(std::string& v) {
    std::string_view text;
    get(text);
    v = text;
  }
  template <class T>
  void get(std::optional<T>& v) {
    bool has = false;
    get(has);
    if (has) get(v.emplace());
  }
  template <growing T>
    requires(!std::same_as<T, std::string>)
  void get(T& all) {
    std::size_t n = 0;
    for (get(n); n != 0; --n) {
      typename T::value_type v{};
      get(v);
      all.push_back(std::move(v));
    }
  }
  template <class T>
  void get(std::span<T const>& all) {
    static_assert(std::is_trivially_destructible_v<T>);
    std::size_t n = 0;
    get(n);
    auto* const made = static_cast<T*>(memory_.allocate(n * sizeof(T) + 1, alignof(T)));
    for (std::size_t i = 0; i != n; ++i) get(*::new (static_cast<void*>(made + i)) T{});
    all = {made, n};
  }
  template <class T>
    requires std::is_aggregate_v<T> && (!plain<T>)
  void get(T& v) {
    boost::pfr::for_each_field(v, [this](auto& field) { this->get(field); });
  }

 private:
  std::string_view some(std::size_t n) {
    if (in_.size() < n) throw std::runtime_error{"a message is too short"};
    auto const out = in_.substr(0, n);
    in_.remove_prefix(n);
    return out;
  }

  std::string_view in_;
  std::pmr::monotonic_buffer_resource memory_;
};

}  // namespace weir::testing

#endif
