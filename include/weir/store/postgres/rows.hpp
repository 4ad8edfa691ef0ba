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
#include <string>
#include <string_view>

namespace weir::detail {

/// An answer was not what the function gives. Never leaves the store.
class postgres_malformed : public std::exception {
 public:
  [[nodiscard]] char const* what() const noexcept override { return "not an answer of weir's"; }
};

/// An answer, in binary. Whatever is not as it should be is thrown as `postgres_malformed`.
class postgres_rows {
 public:
  explicit postgres_rows(PGresult const* r) noexcept : result_{r} {}

  [[nodiscard]] int size() const noexcept { return PQntuples(result_); }

  [[nodiscard]] bool null(int row, int column) const {
    check(row, column);
    return PQgetisnull(result_, row, column) != 0;
  }

  [[nodiscard]] std::string_view bytes(int row, int column) const {
    check(row, column);
    return {PQgetvalue(result_, row, column),
            static_cast<std::size_t>(PQgetlength(result_, row, column))};
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

  template <class T>
  [[nodiscard]] T as(int row, int column) const {
    return static_cast<T>(integer(row, column));
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
  void check(int row, int column) const {
    if (row >= size() || column >= PQnfields(result_)) throw postgres_malformed{};
  }

  PGresult const* result_;
};

}  // namespace weir::detail

#endif
