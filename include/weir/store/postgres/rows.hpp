// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_ROWS_HPP
#define WEIR_STORE_POSTGRES_ROWS_HPP

#include "weir/job.hpp"
#include "weir/time.hpp"

#include <boost/endian/conversion.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// An answer was not what the function gives. Never leaves the store.
class postgres_malformed : public std::exception {
 public:
  [[nodiscard]] char const* what() const noexcept override { return "not an answer of weir's"; }
};

/// An answer, in binary, or one call's part of the answer to several that were made as one.
/// Whatever is not as it should be is thrown as `postgres_malformed`.
class postgres_rows {
 public:
  /// No answer.
  postgres_rows() = default;
  explicit postgres_rows(PGresult const* r) noexcept : result_{r}, size_{PQntuples(r)} {}

  /// These of its rows, by their numbers, which outlive the part.
  ///
  /// @param leads is it the first part?
  [[nodiscard]] postgres_rows part(std::span<int const> rows, bool leads) const noexcept {
    postgres_rows out{*this};
    out.rows_ = rows;
    out.size_ = static_cast<int>(rows.size());
    out.leads_ = leads;
    return out;
  }

  /// Is it the whole answer, or the first part? What is said once of all is said to that one.
  [[nodiscard]] bool leads() const noexcept { return leads_; }

  [[nodiscard]] int size() const noexcept { return size_; }
  /// Is there a number in this place that is not 0?
  [[nodiscard]] bool says(int row, int column) const noexcept {
    try {
      return integer(row, column) != 0;
    } catch (postgres_malformed const&) {
      return false;
    }
  }
  /// Is there no value in this column of any row?
  [[nodiscard]] bool lacks(int column) const noexcept {
    try {
      for (int row = 0; row != size_; ++row) {
        if (null(row, column)) return true;
      }
    } catch (postgres_malformed const&) {
    }
    return false;
  }

  /// The part that a row belongs to, from 0 on: its last column says so, from 1 on. Out of range:
  /// none.
  [[nodiscard]] std::size_t whose(int row) const noexcept {
    try {
      return as<std::uint32_t>(row, PQnfields(result_) - 1) - std::size_t{1};
    } catch (postgres_malformed const&) {
      return static_cast<std::size_t>(-1);
    }
  }

  [[nodiscard]] bool null(int row, int column) const {
    return PQgetisnull(result_, at(row, column), column) != 0;
  }

  [[nodiscard]] std::string_view bytes(int row, int column) const {
    int const place = at(row, column);
    return {PQgetvalue(result_, place, column),
            static_cast<std::size_t>(PQgetlength(result_, place, column))};
  }
  [[nodiscard]] std::string text(int row, int column) const {
    return std::string{bytes(row, column)};
  }

  [[nodiscard]] std::int64_t integer(int row, int column) const {
    auto const b = bytes(row, column);
    auto const* const at = reinterpret_cast<unsigned char const*>(b.data());
    if (null(row, column)) throw postgres_malformed{};
    switch (b.size()) {
      case sizeof(std::int64_t): return boost::endian::load_big_s64(at);
      case sizeof(std::int32_t): return boost::endian::load_big_s32(at);
      case sizeof(std::int16_t): return boost::endian::load_big_s16(at);
      case 1: return *at;
      default: throw postgres_malformed{};
    }
  }

  /// A number of this type.
  template <class T>
  [[nodiscard]] T as(int row, int column) const {
    auto const v = integer(row, column);
    if (!std::in_range<T>(v)) throw postgres_malformed{};
    return static_cast<T>(v);
  }
  /// One of an enumeration's values, of which the first is 0.
  template <class Enum>
  [[nodiscard]] Enum one_of(int row, int column, Enum last) const {
    auto const v = integer(row, column);
    if (v < 0 || v > std::int64_t{static_cast<std::underlying_type_t<Enum>>(last)}) {
      throw postgres_malformed{};
    }
    return static_cast<Enum>(v);
  }
  [[nodiscard]] bool yes(int row, int column) const { return integer(row, column) != 0; }
  [[nodiscard]] duration span(int row, int column) const { return duration{integer(row, column)}; }
  [[nodiscard]] time_point time(int row, int column) const { return time_point{span(row, column)}; }

  /// Nil where there is none.
  [[nodiscard]] job_id id(int row, int column) const {
    job_id out{};
    if (null(row, column)) return out;
    auto const b = bytes(row, column);
    if (b.size() != out.size()) throw postgres_malformed{};
    std::copy(b.begin(), b.end(), out.begin());
    return out;
  }

 private:
  [[nodiscard]] int at(int row, int column) const {
    if (row < 0 || row >= size_ || column < 0 || column >= PQnfields(result_)) {
      throw postgres_malformed{};
    }
    return rows_.empty() ? row : rows_[static_cast<std::size_t>(row)];
  }

  PGresult const* result_ = nullptr;
  std::span<int const> rows_{};  // empty: all of them
  int size_ = 0;
  bool leads_ = true;
};

}  // namespace weir::detail

#endif
