// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_STORE_TIME_HPP
#define WEIR_STORE_NATS_STORE_TIME_HPP

#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/server_time.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// A store's time is the clock of its server and an offset, which is zero until that clock is set.
// Then the offset takes it back, so that time goes on from where it was: no lease ends because a
// clock was set forward, and nothing is stuck because one was set back, or because another server
// leads whose clock shows something else (F63, F99, F100, F102).
//
// Each process sees for itself that the clock was set: its own counts what passes, that of the
// server shows more or less. It goes on by its own, finds the offset by it, and notes that in the
// store. A later process begins with the note. A note is written anew every two seconds by one of
// those who are there, so that a newcomer sees that somebody is, and how late it was at least.
//
// Whatever a process believes, a record and a log do not run backwards: each has the time at which
// it was written last, and who writes next goes on from there.
namespace weir::detail {

/// The time in the store, for a record: not earlier than this, and later by no more than the doubt.
struct nats_now {
  time_point earliest{};
  duration doubt{};

  [[nodiscard]] constexpr time_point latest() const noexcept {
    return saturating_add(earliest, doubt);
  }
};

// The life of a lease is longer by the doubt, since the server's time is not known exactly. A
// holder counts without it.
[[nodiscard]] constexpr duration nats_longer(duration life, duration doubt) noexcept {
  return life > duration::max() - doubt ? duration::max() : life + doubt;
}
[[nodiscard]] constexpr duration nats_shorter(duration life, duration doubt) noexcept {
  return std::max(life - doubt, duration::zero());
}

/// The time for a record that was written at `seen`, which this process has known for `known_for`.
/// Time does not run backwards from one process to another. A `seen` that is a
/// year ahead is damaged, and says nothing.
[[nodiscard]] constexpr nats_now nats_agreed(nats_now now, time_point seen,
                                             duration known_for) noexcept {
  constexpr duration farthest = std::chrono::hours{24 * 366};
  auto const ahead = saturating_sub(seen, now.earliest);
  if (ahead <= duration::zero() || ahead > farthest) return now;
  if (ahead <= now.doubt) return {seen, now.doubt - ahead};
  // This process is behind. For it the record goes on from there.
  return {saturating_add(seen, std::max(known_for, duration::zero())), duration::zero()};
}

/// Beside commands in a log: what time it is in the store, as their sender knows, and how the
/// server's clock is to be read.
struct nats_stamp {
  nats_now now{};
  duration offset{};  ///< the store's time less the server's clock

  /// The time of a message that the server has stored at this time by its clock: as that says, but
  /// never earlier nor later than the sender could know. So a clock that is set between the two
  /// changes nothing.
  [[nodiscard]] constexpr time_point at(time_point stored) const noexcept {
    return std::clamp(saturating_add(stored, offset), now.earliest,
                      std::max(now.earliest, now.latest()));
  }
};

/// The note of the time in the store.
struct nats_time_note {
  time_point seen{};  ///< it was not earlier in the store
  duration offset{};  ///< the store's time less the server's clock

  [[nodiscard]] std::string write() const {
    std::string out{tag};
    nats_writer to{out};
    to.number(std::int64_t{seen.time_since_epoch().count()});
    to.number(std::int64_t{offset.count()});
    to.number(nats_checksum(out));
    return out;
  }
  /// Empty: it is none.
  [[nodiscard]] static std::optional<nats_time_note> read(std::string_view bytes) {
    if (!bytes.starts_with(tag)) return std::nullopt;
    nats_reader from{bytes.substr(tag.size())};
    nats_time_note out;
    out.seen = time_point{duration{from.signed_number()}};
    out.offset = duration{from.signed_number()};
    auto const sum = from.number();
    constexpr duration most = std::chrono::hours{24 * 366 * 230};  // more than servers tell of
    if (out.seen.time_since_epoch() < duration::zero() || out.seen.time_since_epoch() > most ||
        out.offset < -most || out.offset > most) {
      return std::nullopt;
    }
    if (!from.complete() || sum != nats_checksum(bytes.substr(0, bytes.size() - sizeof(sum)))) {
      return std::nullopt;
    }
    return out;
  }

 private:
  static constexpr std::string_view tag = "weir:t1\n";
};

/// A note as it was found in the store.
struct nats_found_note {
  std::optional<nats_time_note> note{};  ///< empty: it cannot be read
  time_point stored{};                   ///< by the server's clock
  std::uint64_t sequence = 0;  ///< another one each time that it is written; 0: there is none
};

/// The time in the store, as far as this process knows it.
class nats_store_time {
 public:
  /// A server's clock that is behind by more than this was set. By less time goes back with it,
  /// which ends nothing.
  static constexpr duration set = std::chrono::milliseconds{100};

  /// How often the time is noted, by one of all processes.
  static constexpr duration pace = std::chrono::seconds{2};

  /// It is known once the server's clock and the note were read.
  [[nodiscard]] bool known() const noexcept { return found_; }
  [[nodiscard]] nats_now now(steady_time at) const noexcept {
    return {saturating_add(server_.earliest(at), offset_), server_.doubt(at) + behind_};
  }
  [[nodiscard]] nats_stamp stamp(steady_time at) const noexcept { return {now(at), offset_}; }
  /// How exactly the server's clock is known.
  [[nodiscard]] duration doubt(steady_time at) const noexcept { return server_.doubt(at); }

  /// The server's clock was heard of.
  void heard(time_point server, steady_time sent, steady_time received) noexcept {
    if (!found_) return server_.learn(server, sent, received);
    auto const before = server_;
    server_.learn(server, sent, received);
    auto const doubt = before.doubt(received);
    auto const moved = saturating_sub(server_.earliest(received), before.earliest(received));
    if (moved >= -set && moved <= doubt) {
      // It drifts, or is corrected: that is followed, and others may see it otherwise.
      (moved < duration::zero() ? behind_ : ahead_) += moved < duration::zero() ? -moved : moved;
      return;
    }
    // It was set. Of all offsets with which time goes on the least counts: so the store's time is
    // not ahead of what it was, and is behind by no more than the doubt.
    auto const wide = server_.doubt(received);
    offset_ = less(less(offset_, moved), wide);
    behind_ += doubt + wide;
    was_set_ = true;
    agreed_since_ = received;
  }

  /// The note was looked for, right after the server's clock was heard of.
  /// @param last the time by the server's clock at which anything was stored last; empty: nothing
  /// is
  /// @param others how often others look, at least
  void looked(nats_found_note const& found, std::optional<time_point> last, duration others,
              steady_time at) noexcept {
    auto const clock = server_.earliest(at);
    auto const round = std::max(pace, others);  // in which each of the others has looked
    bool const was_set = std::exchange(was_set_, false);
    auto const before = std::exchange(looked_, clock);
    bool const is_new = found.note && found.sequence != noted_.sequence &&
                        stored_between(found, was_set ? time_point::min() : before, at);
    if (!std::exchange(found_, true)) {
      begin(found, last, round, clock);
      began_ = agreed_since_ = at;
    } else if (!certain_) {
      // Is somebody there? Then what they say counts, unless it may be older than what this process
      // has just heard. Or this process is alone, after a while.
      bool const there = is_new && !was_set;
      if (there) offset_ = found.note->offset;
      certain_ = there || at - began_ > 3 * round;
    } else if (is_new) {
      agree(*found.note, 3 * round, clock, at);
    }
    if (at - agreed_since_ > 3 * round) ahead_ = behind_ = duration::zero();
    noted_ = found;
  }

  /// The note that is to be written now; empty: none.
  [[nodiscard]] std::optional<nats_time_note> due(steady_time at) const noexcept {
    auto const seen = now(at).earliest;
    bool const told = noted_.note && noted_.note->offset == offset_ &&
                      saturating_sub(seen, noted_.note->seen) < pace;
    if (!certain_ || told) return std::nullopt;
    return nats_time_note{seen, offset_};
  }
  /// The sequence that it replaces.
  [[nodiscard]] std::uint64_t noted() const noexcept { return noted_.sequence; }

 private:
  // Messages of one moment are stored in any order.
  static constexpr duration moment = std::chrono::seconds{1};
  /// A store that nobody has used for so long goes by the clock again.
  static constexpr duration forgotten = std::chrono::hours{24};

  void begin(nats_found_note const& found, std::optional<time_point> last, duration round,
             time_point clock) noexcept {
    offset_ = found.note ? found.note->offset : duration::zero();
    auto const stored =
        std::max(last.value_or(time_point::min()), found.note ? found.stored : time_point::min());
    // A clock may have been set forward just now, and those who are there will say so. Before that
    // nothing is noted.
    certain_ = !found.note;
    if (saturating_sub(clock, stored) < -moment) {
      // It was set back, and nobody who was there has said so. Time goes on from what was stored
      // last, and those who are there may be further by as long as they take to say so.
      auto const seen = saturating_add(stored, offset_);
      offset_ = saturating_sub(found.note ? std::max(seen, found.note->seen) : seen, clock);
      behind_ = round + moment;
      certain_ = true;
    } else if (found.note && saturating_sub(clock, found.stored) > forgotten) {
      offset_ = std::max(duration::zero(), saturating_sub(found.note->seen, clock));
    }
  }

  /// Was it stored since this process looked last, by the clock that it has heard of? If not, the
  /// clock was set in between, so the note's offset is not for what this process takes it for: that
  /// it was set is heard of next.
  [[nodiscard]] bool stored_between(nats_found_note const& found, time_point before,
                                    steady_time at) const noexcept {
    auto const now = saturating_add(server_.earliest(at), server_.doubt(at));
    return found.stored <= saturating_add(now, set) && found.stored >= saturating_add(before, -set);
  }

  /// Comes to one offset with all others: what another one has noted counts where this process may
  /// be as far off, and where it is certainly behind. What it does not believe it notes otherwise;
  /// whoever is ahead is believed after a while, since two times are worse than a wrong one.
  void agree(nats_time_note const& noted, duration a_while, time_point clock,
             steady_time at) noexcept {
    bool const later = noted.seen > now(at).latest();
    if (later || near(noted.offset, at) ||
        (noted.offset > offset_ && contested_ && at - *contested_ > a_while)) {
      if (noted.offset != offset_) agreed_since_ = at;
      offset_ = later ? std::max(noted.offset, saturating_sub(noted.seen, clock)) : noted.offset;
      contested_.reset();
    } else {
      agreed_since_ = at;
      if (!contested_) contested_ = at;
    }
  }

  /// Is that the same, as exactly as this process knows?
  [[nodiscard]] bool near(duration offset, steady_time at) const noexcept {
    auto const apart = less(offset, offset_);
    auto const exact = std::min(server_.doubt(at), nats_server_time::vague);
    return apart >= -ahead_ && apart <= behind_ + exact;
  }
  [[nodiscard]] static duration less(duration a, duration b) noexcept {
    return saturating_sub(time_point{a}, time_point{b});
  }

  nats_server_time server_;
  duration offset_{};
  duration behind_{};     // by how much it may be too small, until all agree
  duration ahead_{};      // and too large
  bool found_ = false;    // the note was looked for
  bool certain_ = false;  // of the offset: nobody else may know better
  bool was_set_ = false;  // the clock, since the note was looked for
  time_point looked_{};   // for the note, by the server's clock
  steady_time began_{};
  steady_time agreed_since_{};
  std::optional<steady_time> contested_;  // the note does not fit, since then
  nats_found_note noted_;
};

}  // namespace weir::detail

#endif
