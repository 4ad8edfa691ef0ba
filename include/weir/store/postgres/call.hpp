// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_CALL_HPP
#define WEIR_STORE_POSTGRES_CALL_HPP

#if !__has_include(<libpq-fe.h>)
#error "weir/store/postgres.hpp needs libpq 14 or later: libpq-fe.h is not on the include path"
#endif

#include "weir/job.hpp"
#include "weir/time.hpp"

#include <boost/endian/conversion.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// How a function's argument of this type is sent: its type's number, and its bytes.
template <class T>
struct postgres_type;

template <>
struct postgres_type<bool> {
  static constexpr Oid number = 16;
  static void put(std::string& out, bool v) { out += v ? '\1' : '\0'; }
};
template <>
struct postgres_type<std::int32_t> {
  static constexpr Oid number = 23;
  static void put(std::string& out, std::int32_t v) {
    std::array<unsigned char, sizeof(v)> bytes;
    boost::endian::store_big_s32(bytes.data(), v);
    out.append(bytes.begin(), bytes.end());
  }
};
template <>
struct postgres_type<std::int64_t> {
  static constexpr Oid number = 20;
  static void put(std::string& out, std::int64_t v) {
    std::array<unsigned char, sizeof(v)> bytes;
    boost::endian::store_big_s64(bytes.data(), v);
    out.append(bytes.begin(), bytes.end());
  }
};
template <>
struct postgres_type<std::string_view> {
  static constexpr Oid number = 17;
  static void put(std::string& out, std::string_view v) { out += v; }
};
template <>
struct postgres_type<job_id> {
  static constexpr Oid number = 2950;
  static void put(std::string& out, job_id const& v) { out.append(v.begin(), v.end()); }
};

/// The number of the type of arrays of a type.
constexpr Oid postgres_array_of(Oid element) noexcept {
  switch (element) {
    case postgres_type<bool>::number: return 1000;
    case postgres_type<std::int32_t>::number: return 1007;
    case postgres_type<std::int64_t>::number: return 1016;
    case postgres_type<std::string_view>::number: return 1001;
    default: return 2951;  // of ids
  }
}

/// A number as the server has it: what is larger than it can count to is that.
constexpr std::int32_t postgres_count(std::uint32_t n) noexcept {
  constexpr std::uint32_t top = 0x7fffffffU;
  return static_cast<std::int32_t>(std::min(n, top));
}

class postgres_rows;

/// How the answer to several calls that were made as one is divided among them.
enum class postgres_division : std::uint8_t {
  in_turn,    ///< each has as many as it may have, as long as there are any
  with_tail,  ///< the same; and one more row follows, which is everybody's
  by_part     ///< each row says in its last column whose it is, counted from 1
};

/// A call of one of the schema's functions, with its arguments as they are sent. It views nothing.
class postgres_call {
 public:
  static constexpr std::size_t most = 23;  // of relay_job

  /// @param function its name, a constant
  explicit postgres_call(char const* function) noexcept : function_{function} {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Is it to wait, where it was refused or left out because of a lock that somebody has?
  [[nodiscard]] bool may_wait() const noexcept { return may_wait_; }
  /// @param contended the arguments that name the lock
  void expect_to_wait(std::initializer_list<std::size_t> contended) noexcept {
    may_wait_ = true;
    for (auto const i : contended) contended_.set(i);
  }
  /// Names the lock: the key or queue, and the jobs, if nothing else was said. No two calls have
  /// the same name that do not wait for the same lock.
  [[nodiscard]] std::string contended() const {
    std::string out{function_};
    for (std::size_t i = 0; i != size_; ++i) {
      bool const id = types_[i] == postgres_type<job_id>::number ||
                      types_[i] == postgres_array_of(postgres_type<job_id>::number);
      if (contended_.any() ? !contended_.test(i) : i != 0 && !id) continue;
      postgres_type<std::int32_t>::put(out, static_cast<std::int32_t>(argument(i).size()));
      out += argument(i);
    }
    return out;
  }

  template <class T>
  postgres_call& add(T const& value) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      return add(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      return add(postgres_count(value));
    } else if constexpr (std::is_same_v<T, duration>) {
      return add(std::int64_t{value.count()});
    } else {
      begin(postgres_type<T>::number);
      postgres_type<T>::put(bytes_, value);
      return end();
    }
  }

  /// Nothing: the server's time. A time that is too far from now to count with is held at the ends.
  postgres_call& add(std::optional<time_point> const& t) {
    constexpr auto end_of_time = std::int64_t{1} << 62;
    begin(postgres_type<std::int64_t>::number);
    if (!t) {
      null_[size_] = true;
    } else {
      auto const count = std::int64_t{t->time_since_epoch().count()};
      postgres_type<std::int64_t>::put(bytes_, std::clamp(count, -end_of_time, end_of_time));
    }
    return end();
  }

  /// An array of what `of(element)` gives, for each element of a range that is not empty.
  template <class T, class Range, class Of>
  postgres_call& add_each(Range const& range, Of&& of) {
    begin(postgres_array_of(postgres_type<T>::number));
    begin_array(postgres_type<T>::number, range.size());
    for (auto const& element : range) {
      auto const at = bytes_.size();
      postgres_type<std::int32_t>::put(bytes_, 0);
      postgres_type<T>::put(bytes_, T{of(element)});
      auto const length = bytes_.size() - at - sizeof(std::int32_t);
      boost::endian::store_big_s32(reinterpret_cast<unsigned char*>(bytes_.data() + at),
                                   static_cast<std::int32_t>(length));
    }
    return end();
  }

  /// The array that was added last is not joined with those of others, but is the same in all of
  /// them.
  void once() noexcept { count_[size_ - 1] = 0; }

  /// Says that such calls may be made as one, where all but their arrays is the same: by one call,
  /// whose arrays are theirs behind one another.
  ///
  /// @param rows     how many rows of the answer are this call's, at most
  /// @param division which rows are its own
  void let_join(std::size_t rows, postgres_division division) noexcept {
    rows_ = static_cast<int>(rows);
    division_ = division;
  }
  /// Joined calls call this function instead, which takes arrays for these arguments, too.
  void join_by(char const* function, std::initializer_list<std::size_t> each) noexcept {
    together_ = function;
    for (auto const i : each) each_.set(i);
  }
  /// Where the server cannot read a record that it has (`store_corrupt`), this function is called
  /// instead, once, which takes the same arguments.
  void repair_by(char const* function) noexcept { repairs_ = function; }
  [[nodiscard]] bool repair() noexcept {
    if (repairs_ == nullptr) return false;
    function_ = std::exchange(repairs_, nullptr);
    return true;
  }
  /// All such calls that may be made as one wait for the same lock. So one is under way at a time,
  /// and what refuses it would refuse each of them.
  void share_a_lock() noexcept { shares_lock_ = true; }
  [[nodiscard]] bool shares_lock() const noexcept { return shares_lock_; }
  /// The argument that was added last is true in a joined call.
  void tell_of_others() noexcept { tells_ = size_ - 1; }
  /// The argument that was added last is true where others wait behind it, joined or not: then it
  /// does not wait for locks. Where that refuses it, it is made once more, by itself.
  void hurry_in_line() noexcept {
    tell_of_others();
    hurries_ = true;
  }
  [[nodiscard]] bool hurries() const noexcept { return hurries_; }
  /// Where its part of a joined answer says so, nothing was done, and it is to be made by itself.
  void leave_out(bool (*if_so)(postgres_rows const&) noexcept) noexcept { left_out_ = if_so; }
  [[nodiscard]] bool left_out(postgres_rows const& part) const noexcept {
    return left_out_ != nullptr && left_out_(part);
  }
  [[nodiscard]] bool joinable() const noexcept { return rows_ != 0; }
  [[nodiscard]] int rows() const noexcept { return rows_; }
  [[nodiscard]] postgres_division division() const noexcept { return division_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }

  /// What calls that may be made as one have in common.
  [[nodiscard]] std::string common() const {
    std::string out{together_ != nullptr ? together_ : function_};
    for (std::size_t i = 0; i != size_; ++i) {
      out += null_[i] ? '-' : '+';
      if (count_[i] != 0 || each_.test(i)) continue;
      postgres_type<std::int32_t>::put(out, static_cast<std::int32_t>(argument(i).size()));
      out += argument(i);
    }
    return out;
  }

  /// The one that is made instead of several. `range` is not empty, and `of(element)` a call.
  template <class Range, class Of>
  [[nodiscard]] static postgres_call joined(Range const& range, Of&& of) {
    postgres_call const& first = of(*range.begin());
    if (range.size() == 1 && !first.hurries_) return first;
    postgres_call out{first};
    if (first.together_ != nullptr) out.function_ = first.together_;
    out.repairs_ = nullptr;
    out.bytes_.clear();
    out.size_ = 0;
    out.rows_ = 0;
    for (auto const& each : range) out.rows_ += of(each).rows_;
    for (std::size_t i = 0; i != first.size_; ++i) {
      auto const at = out.bytes_.size();
      if (i == first.tells_) {
        postgres_type<bool>::put(out.bytes_, true);
      } else if (first.each_.test(i)) {
        out.types_[i] = postgres_array_of(first.types_[i]);
        out.begin_array(first.types_[i], range.size());
        for (auto const& each : range) {
          auto const bytes = of(each).argument(i);
          postgres_type<std::int32_t>::put(out.bytes_, static_cast<std::int32_t>(bytes.size()));
          out.bytes_ += bytes;
        }
      } else if (first.count_[i] != 0) {
        out.bytes_ += first.argument(i).substr(0, array_header);
        out.count_[i] = 0;
        for (auto const& each : range) {
          postgres_call const& c = of(each);
          out.bytes_ += c.argument(i).substr(array_header);
          out.count_[i] += c.count_[i];
        }
        boost::endian::store_big_s32(
            reinterpret_cast<unsigned char*>(out.bytes_.data() + at + array_count), out.count_[i]);
      } else {
        out.bytes_ += first.argument(i);
      }
      out.end();
    }
    return out;
  }

  /// The statement that calls the function.
  [[nodiscard]] std::string text(std::string_view schema) const {
    std::string out = "SELECT * FROM \"";
    out.append(schema).append("\".").append(function_).append("(");
    for (std::size_t i = 1; i <= size_; ++i) {
      out.append(i == 1 ? "$" : ",$").append(std::to_string(i));
    }
    return out += ')';
  }

  /// Calls `send(n, types, values, lengths, formats)` as libpq's functions take parameters.
  template <class Send>
  auto with_parameters(Send&& send) const {
    std::array<char const*, most> values;
    std::array<int, most> lengths;
    std::array<int, most> formats;
    for (std::size_t i = 0; i != size_; ++i) {
      auto const bytes = argument(i);
      values[i] = null_[i] ? nullptr : bytes.data();
      lengths[i] = static_cast<int>(bytes.size());
      formats[i] = 1;
    }
    return send(static_cast<int>(size_), types_.data(), values.data(), lengths.data(),
                formats.data());
  }

 private:
  // Of an array as it is sent: dimensions, whether there are NULLs, the type of its elements, how
  // many there are, and the number of the first one.
  static constexpr std::size_t array_header = 5 * sizeof(std::int32_t);
  static constexpr std::size_t array_count = 3 * sizeof(std::int32_t);

  /// Of the argument that is being added, from its beginning on.
  void begin_array(Oid of, std::size_t size) {
    using number = postgres_type<std::int32_t>;
    auto const n = static_cast<std::int32_t>(size);
    count_[size_] = n;
    for (auto const v : {1, 0, static_cast<std::int32_t>(of), n, 1}) number::put(bytes_, v);
  }
  void begin(Oid type) noexcept {
    types_[size_] = type;
    null_[size_] = false;
  }
  [[nodiscard]] std::string_view argument(std::size_t i) const noexcept {
    auto const from = i == 0 ? 0 : ends_[i - 1];
    return std::string_view{bytes_}.substr(from, ends_[i] - from);
  }
  postgres_call& end() noexcept {
    ends_[size_++] = bytes_.size();
    return *this;
  }

  char const* function_;
  std::string bytes_;
  std::array<std::size_t, most> ends_{};
  std::array<Oid, most> types_{};
  std::array<std::int32_t, most> count_{};  // of an array's elements; 0: it is none
  std::array<bool, most> null_{};
  std::size_t size_ = 0;
  char const* together_ = nullptr;
  char const* repairs_ = nullptr;
  bool (*left_out_)(postgres_rows const&) noexcept = nullptr;
  std::size_t tells_ = most;  // which argument; most: none
  std::bitset<most> each_{};
  std::bitset<most> contended_{};
  int rows_ = 0;
  postgres_division division_{};
  bool may_wait_ = false;
  bool shares_lock_ = false;
  bool hurries_ = false;
};

/// What a call depends on beside its command.
struct postgres_scope {
  std::uint32_t shards = 1;
  bool own = true;      ///< in a transaction of weir's own, not in an application's
  bool listens = true;  ///< whoever gets a place in line is to be told of its turn by NOTIFY
  std::optional<time_point> at{};
};

/// What is kept of a command to read its answer by.
template <class C>
struct postgres_note {
  explicit postgres_note(C const&) noexcept {}
};

}  // namespace weir::detail

#endif
