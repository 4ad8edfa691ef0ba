// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_WIRE_HPP
#define WEIR_STORE_NATS_WIRE_HPP

#include "weir/detail/explained.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/command_codec.hpp"
#include "weir/store/nats/compact.hpp"

#include <boost/system/generic_category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Commands and answers between processes: what is asked of an owner, and what it answers.
//
// A question has many commands, which are numbered by their places in it, and are written as they
// are in the log, so that one which fits into a message of the log fits into a question, too. An
// answer comes in pieces, since it may be larger than a message, and commands are answered in any
// order.
namespace weir::detail {

inline constexpr std::string_view nats_question_tag = "weir:q";
inline constexpr std::string_view nats_answer_tag = "weir:a";

/// Of questions and answers. Tag, version, kind and number of an answer look the same in each. It
/// is another one whenever a command or an answer gets another member (test/unit/nats_wire.cpp
/// knows how they look), and not for a new command. A process that does not know it says so, and
/// the asker does itself what it wanted to ask for (F82). Once there are two, a question has the
/// lower one if that knows all that is in it, and is answered in its own.
inline constexpr std::uint32_t nats_wire_version = 4;  // no release has spoken an earlier one

// ------------------------------------------------------------------------------------- questions

/// Writes the beginning of a question.
/// @param shards how many the asker has
inline void nats_begin_question(std::string& to, std::uint32_t shards) {
  to = nats_question_tag;
  compact_writer out{to};
  out(nats_wire_version);
  out(shards);
}

/// Reads a question, which it views.
class nats_question_reader : public nats_command_reader {
 public:
  explicit nats_question_reader(std::string_view message) noexcept
      : nats_command_reader{message.substr(std::min(nats_question_tag.size(), message.size()))} {
    if (!message.starts_with(nats_question_tag)) return;
    from_(version_);
    if (known()) from_(shards_);
    if (!from_.good()) version_ = 0;
  }

  /// Of another one nothing can be read.
  [[nodiscard]] bool known() const noexcept { return version_ == nats_wire_version; }
  [[nodiscard]] std::uint32_t shards() const noexcept { return shards_; }

 private:
  std::uint32_t version_ = 0;
  std::uint32_t shards_ = 0;
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

/// Has a result as many parts as its command can have? They are read by their places.
template <class C>
[[nodiscard]] bool nats_answers(C const& c, typename C::result const& r) {
  if constexpr (requires { c.next; }) {
    bool const relayed = r.outcome == relay_outcome::relayed;
    return r.jobs.size() == (relayed ? c.jobs.size() + c.next.size() : 0);
  } else if constexpr (requires { c.jobs; }) {
    return r.size() == c.jobs.size();
  } else if constexpr (requires { r.jobs; }) {
    return r.jobs.size() <= c.limit;
  } else if constexpr (requires { r.queues; }) {
    return r.queues.size() <= c.limit;
  } else if constexpr (requires { r.holders; }) {
    return r.holders.size() <= c.limit;
  } else if constexpr (nats_list<typename C::result>) {
    return r.size() <= c.limit;
  } else {
    return true;
  }
}

}  // namespace weir::detail

#endif
