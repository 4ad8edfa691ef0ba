// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_WIRE_HPP
#define WEIR_STORE_NATS_WIRE_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/command/permits.hpp"
#include "weir/decision.hpp"
#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/job_fields.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/time.hpp"

#include <boost/pfr/core.hpp>
#include <boost/system/generic_category.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Commands and answers between processes: what is asked of an owner, and what it answers.
//
// A question has many commands, which are numbered by their places in it. A command that has a
// place in the log is written as it is there, so that one which fits into a message of the log fits
// into a question, too; of others the members follow each other. An answer comes in pieces, since
// it may be larger than a message, and commands are answered in any order.
namespace weir::detail {

inline constexpr std::string_view nats_question_tag = "weir:q";
inline constexpr std::string_view nats_answer_tag = "weir:a";

/// Of questions and answers. Tag, version, kind and number of an answer look the same in each. It
/// is another one whenever a command or an answer gets another member (test/unit/nats_wire.cpp
/// knows how they look), and not for a new command. A process that does not know it says so, and
/// the asker does itself what it wanted to ask for (F82). Once there are two, a question has the
/// lower one if that knows all that is in it, and is answered in its own.
inline constexpr std::uint32_t nats_wire_version = 3;  // no release has spoken an earlier one

/// The commands that have no place in the log. The place of each is its number between processes:
/// a new one goes last, and none is ever moved or removed.
using nats_asked_command =
    std::variant<command::acquire_permit, command::renew_permit, command::release_permit,
                 command::inspect_permits, command::await_permit, command::acquire_lock,
                 command::renew_lock, command::release_lock, command::inspect_lock, command::take,
                 command::peek_bucket, command::refund, command::reset_bucket, command::peek_jobs,
                 command::find_job, command::min_vesting_time, command::scan_visible_queues,
                 command::read_queue_stats, command::list_dead_letters, command::list_jobs,
                 command::list_queues, command::await_jobs>;
static_assert(place_in<command::await_jobs, nats_asked_command>::value == 21);

/// Above the numbers of the log.
inline constexpr std::size_t nats_first_asked = 64;
static_assert(std::variant_size_v<nats_job_command> <= nats_first_asked);

// ------------------------------------------------------------------------- values, by their
// members

template <class T>
concept nats_list = requires(T& t, typename T::value_type v) { t.push_back(std::move(v)); } &&
                    !std::same_as<T, std::string>;

/// Gives values to what a `compact_writer` is, or is like.
template <class To>
class nats_values_to {
 public:
  template <class From>
  explicit nats_values_to(From& to) noexcept : to_{to} {}

  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(T v) {
    if constexpr (std::signed_integral<T>) {
      to_(std::int64_t{v});
    } else {
      to_(v);
    }
  }
  void operator()(duration d) { to_(d); }
  void operator()(std::string_view t) { to_(t); }
  void operator()(std::string const& t) { to_(std::string_view{t}); }
  void operator()(job_id const& id) { to_(id); }
  void operator()(quota const& q) {
    to_(q.tokens());
    to_(q.period());
    to_(q.capacity());
  }
  template <class T>
  void operator()(std::optional<T> const& v) {
    to_(v.has_value());
    if (v) (*this)(*v);
  }
  template <class T>
  void operator()(std::span<T const> all) {
    to_(all.size());
    for (auto const& v : all) (*this)(v);
  }
  template <nats_list T>
  void operator()(T const& all) {
    to_(all.size());
    for (auto const& v : all) (*this)(v);
  }
  template <class T, std::size_t N>
  void operator()(std::array<T, N> const& all) {
    for (auto const& v : all) (*this)(v);
  }
  template <class T>
    requires std::is_aggregate_v<T>
  void operator()(T const& v) {
    boost::pfr::for_each_field(v, [this](auto const& field) { (*this)(field); });
  }

 private:
  To to_;
};

/// Writes values.
using nats_value_writer = nats_values_to<compact_writer>;

/// Reads them. Texts and quotas of a command view what is read from, and this.
class nats_value_reader {
 public:
  explicit nats_value_reader(compact_reader& from) noexcept : from_{from} {}

  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(T& v) {
    if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> n{};
      (*this)(n);
      v = static_cast<T>(n);
    } else if constexpr (std::signed_integral<T>) {
      std::int64_t n = 0;
      from_(n);
      v = static_cast<T>(n);
      if (v != n) from_.refuse();
    } else {
      from_(v);
    }
  }
  void operator()(duration& d) { from_(d); }
  void operator()(std::string_view& t) { from_(t); }
  void operator()(std::string& t) { from_(t); }
  void operator()(job_id& id) { from_(id); }
  void operator()(quota& q) {
    std::uint64_t tokens = 0;
    duration period{};
    std::uint64_t capacity = 0;
    from_(tokens);
    from_(period);
    from_(capacity);
    q = quota::per(tokens, period).burst(capacity);
  }
  template <class T>
  void operator()(std::optional<T>& v) {
    bool has = false;
    from_(has);
    v.reset();
    if (has) (*this)(v.emplace());
  }
  void operator()(std::span<quota const>& all) {
    quotas_.resize(std::min<std::size_t>(from_.count(), limits::quotas + 1));
    for (auto& q : quotas_) (*this)(q);
    all = quotas_;
  }
  template <nats_list T>
  void operator()(T& all) {
    auto const n = from_.count();
    for (std::size_t i = 0; i != n && from_.good(); ++i) {
      typename T::value_type v{};
      (*this)(v);
      all.push_back(std::move(v));
    }
  }
  template <class T, std::size_t N>
  void operator()(std::array<T, N>& all) {
    for (auto& v : all) (*this)(v);
  }
  template <class T>
    requires std::is_aggregate_v<T>
  void operator()(T& v) {
    boost::pfr::for_each_field(v, [this](auto& field) { (*this)(field); });
  }

 private:
  compact_reader& from_;
  std::vector<quota> quotas_;
};

// ------------------------------------------------------------------------------------- questions

/// Writes the beginning of a question.
/// @param shards how many the asker has
inline void nats_begin_question(std::string& to, std::uint32_t shards) {
  to = nats_question_tag;
  compact_writer out{to};
  out(nats_wire_version);
  out(shards);
}

/// Adds a command to a question.
/// @param told the time that it is executed at; empty: the store's
template <class C>
void nats_put_question(std::string& to, C const& c, std::optional<time_point> told) {
  compact_writer out{to};
  if constexpr (nats_logged_command<C>) {
    nats_put_command(out, c, told);
  } else {
    constexpr auto number = nats_first_asked + place_in<C, nats_asked_command>::value;
    static_assert(number < nats_first_asked + std::variant_size_v<nats_asked_command>,
                  "a command that is neither in nats_job_command nor in nats_asked_command");
    out(2 * number + (told ? 1 : 0));
    if (told) out(*told);
    nats_value_writer{to}(c);
  }
}

/// Reads a question, which it views.
class nats_question_reader {
 public:
  explicit nats_question_reader(std::string_view message) noexcept
      : from_{message.substr(std::min(nats_question_tag.size(), message.size()))} {
    if (!message.starts_with(nats_question_tag)) return;
    from_(version_);
    if (known()) from_(shards_);
    if (!from_.good()) version_ = 0;
  }

  /// Of another one nothing can be read.
  [[nodiscard]] bool known() const noexcept { return version_ == nats_wire_version; }
  [[nodiscard]] std::uint32_t shards() const noexcept { return shards_; }

  /// Calls `f(command, told)` for each, which says whether to go on. False: it ended before its
  /// end.
  template <class F>
  bool for_each(F&& f) {
    while (from_.good() && from_.left() != 0) {
      std::size_t number = 0;
      from_(number);
      std::optional<time_point> told;
      if (number % 2 != 0) from_(told.emplace());
      if (told && (*told < time_point{-far} || *told > time_point{far})) return false;
      number /= 2;
      bool const done = number < nats_first_asked
                            ? dispatch<nats_job_command>(number, told, f)
                            : dispatch<nats_asked_command>(number - nats_first_asked, told, f);
      if (!done) return false;
    }
    return from_.good();
  }

 private:
  template <class Commands, class F>
  bool dispatch(std::size_t number, std::optional<time_point> told, F& f) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      bool done = false;
      (void)((number == I &&
              (done = read<std::variant_alternative_t<I, Commands>>(told, f), true)) ||
             ...);
      return done;
    }(std::make_index_sequence<std::variant_size_v<Commands>>{});
  }

  template <class Logged, class F>
  bool read(std::optional<time_point> told, F& f) {
    if constexpr (std::same_as<Logged, std::monostate>) {
      return false;
    } else if constexpr (place_in<Logged, nats_job_command>::value !=
                         std::variant_size_v<nats_job_command>) {
      auto const c = commands_.template read<Logged>(from_);
      return c && f(*c, told);
    } else {
      Logged c{};
      nats_value_reader values{from_};
      values(c);
      if (!from_.good() || rule::validate(c)) return false;
      return f(std::as_const(c), told);
    }
  }

  /// A time that somebody tells is within what all arithmetic can be done with.
  static constexpr duration far = std::chrono::hours{24 * 365 * 200};

  compact_reader from_;
  std::uint32_t version_ = 0;
  std::uint32_t shards_ = 0;
  nats_command_reader commands_;
};

// --------------------------------------------------------------------------------------- answers

/// A piece of an answer.
enum class nats_piece : std::uint8_t {
  alive,    ///< who is asked is there, and says nothing else
  whole,    ///< with it what came before ends: the answers of some commands
  part,     ///< more follows
  moved,    ///< nothing of the question was executed: somebody else is the owner
  unknown,  ///< from a place on, which follows, nothing was executed: the command there is not
            ///< known; without a place: the question is not
};

[[nodiscard]] inline std::string nats_answer_piece(nats_piece what, std::uint32_t number,
                                                   std::uint32_t version = nats_wire_version) {
  std::string out{nats_answer_tag};
  compact_writer to{out};
  to(version);
  to(what);
  to(number);
  return out;
}
/// Bytes of a piece without what it carries, at most.
inline constexpr std::size_t nats_piece_head = nats_answer_tag.size() + 11;

/// Adds the answer of a command, by its place in the question.
template <class Result>
void nats_put_answer(std::string& to, std::size_t place, error_code ec, Result const& r) {
  compact_writer out{to};
  out(place);
  if (!ec) {
    out(std::uint32_t{0});
    std::string value;
    nats_value_writer{value}(r);
    out(std::string_view{value});
    return;
  }
  bool const ours = ec.category() == weir::error_category();
  out(std::uint32_t{ours ? 1U : 2U});
  out(static_cast<std::uint32_t>(ec.value()));
  out(ours ? std::string_view{explanation_of(ec)} : std::string_view{});
}

/// An answer of a command, as it is found.
struct nats_answer {
  std::size_t place = 0;
  error_code error{};
  std::string_view value{};  ///< without an error
};

/// Reads the next one. Empty: there is none, or it cannot be read (`from` knows).
[[nodiscard]] inline std::optional<nats_answer> nats_next_answer(compact_reader& from) {
  if (!from.good() || from.left() == 0) return std::nullopt;
  nats_answer out;
  std::uint32_t kind = 0;
  from(out.place);
  from(kind);
  if (kind > 2) from.refuse();
  if (kind != 0) {
    std::uint32_t value = 0;
    std::string_view text;
    from(value);
    from(text);
    auto const n = static_cast<int>(value);
    out.error = kind == 1 ? error_code{n, weir::error_category()}
                          : error_code{n, boost::system::generic_category()};
    if (!out.error) from.refuse();
    if (!text.empty()) out.error = explained(out.error, text);
  } else {
    from(out.value);
  }
  if (!from.good()) return std::nullopt;
  return out;
}

/// Does a process say so of itself, and not of the command? Another one may be able to do it.
/// @param reads of a command that only reads: a cursor of its may be an invalid option
[[nodiscard]] inline bool nats_is_owners_own(error_code const& ec, bool reads) noexcept {
  return ec == errc::permission_denied || (ec == errc::invalid_option && !reads) ||
         ec == errc::schema_too_new || ec == errc::schema_outdated || ec == errc::store_foreign;
}

/// The result that an answer has. False: it is none of this command's.
template <class Result>
[[nodiscard]] bool nats_take_answer(std::string_view value, Result& to) {
  compact_reader from{value};
  nats_value_reader{from}(to);
  return from.complete();
}

}  // namespace weir::detail

#endif
