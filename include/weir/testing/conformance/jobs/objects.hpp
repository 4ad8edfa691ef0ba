// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_OBJECTS_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_OBJECTS_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/testing/fields.hpp"

#include <boost/container_hash/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// One job, and one unique key, in concurrent histories: what can happen to them one step after the
// other, as long as no lease ends by time. A command on several jobs is several events.
namespace weir::testing {

/// One event of a job's life, with the store's answer.
struct job_event {
  enum class kind : std::uint8_t {
    enqueue,
    lease,
    extend,
    complete,
    requeue,
    snooze,
    give_back,
    bury,
    cancel,
    cancel_running,
    replaced,
    replay,
    find
  };

  kind what = kind::find;
  std::uint64_t fence = 0;  ///< that was asked with; lease: that was given
  bool done = false;        ///< it did what it was asked for; otherwise it was refused and changed
                            ///< nothing
  std::uint32_t attempts = 0;            ///< lease, find: in the answer
  job_state state = job_state::pending;  ///< find: in the answer
};

[[nodiscard]] inline std::string to_text(job_event const& e) {
  constexpr std::string_view words[] = {
      "enqueue", "lease",  "extend",         "complete",    "requeue", "snooze", "return",
      "bury",    "cancel", "cancel running", "is replaced", "replay",  "find"};
  std::string out{words[static_cast<std::size_t>(e.what)]};
  if (e.fence != 0) out += " fence " + std::to_string(e.fence);
  if (e.attempts != 0) out += " attempt " + std::to_string(e.attempts);
  if (e.what == job_event::kind::find) return out + " -> " + std::string{to_string(e.state)};
  return out + (e.done ? " -> done" : " -> refused");
}

/// One job. It is enqueued once, and has more attempts than are used.
struct job_object {
  using event = job_event;

  struct state {
    bool exists = false;
    job_state where = job_state::pending;
    std::uint32_t attempts = 0;
    std::uint64_t fence = 0;  // of the last lease
    friend bool operator==(state const&, state const&) = default;
    friend std::size_t hash_value(state const& s) noexcept {
      std::size_t seed = s.exists ? 1 : 0;
      boost::hash_combine(seed, static_cast<int>(s.where));
      boost::hash_combine(seed, s.attempts);
      boost::hash_combine(seed, s.fence);
      return seed;
    }
  };

  static bool apply(state& s, event const& e, bool answered) noexcept {
    if (!answered) return true;
    using kind = event::kind;
    bool const leased = s.exists && s.where == job_state::leased;
    bool const own = leased && s.fence == e.fence;
    switch (e.what) {
      case kind::enqueue:
        if (s.exists) return false;
        s.exists = true;
        return true;
      case kind::lease:
        if (!s.exists || s.where != job_state::pending || e.attempts != s.attempts + 1 ||
            e.fence <= s.fence)
          return false;
        s.where = job_state::leased;
        s.fence = e.fence;
        ++s.attempts;
        return true;
      case kind::extend: return e.done == own;
      case kind::complete: {
        bool const before = s.where == job_state::completed && s.fence == e.fence;
        return settle(s, e, own || before, own ? job_state::completed : s.where);
      }
      case kind::requeue: return settle(s, e, own, job_state::pending);
      case kind::snooze:
      case kind::give_back:
        if (own) --s.attempts;
        return settle(s, e, own, job_state::pending);
      case kind::bury: return settle(s, e, own, job_state::dead);
      case kind::cancel:
        return settle(
            s, e, s.exists && (s.where == job_state::pending || s.where == job_state::cancelled),
            job_state::cancelled);
      case kind::cancel_running:
        return settle(s, e, s.exists && (!is_terminal(s.where) || s.where == job_state::cancelled),
                      job_state::cancelled);
      case kind::replaced:
        return settle(s, e, s.exists && s.where == job_state::pending, job_state::cancelled);
      case kind::replay: {
        bool const dead = s.exists && s.where == job_state::dead;
        if (dead) s.attempts = 0;
        return settle(s, e, dead, job_state::pending);
      }
      case kind::find:
        return s.exists == e.done && (!e.done || (s.where == e.state && s.attempts == e.attempts));
    }
    return false;
  }

 private:
  static bool settle(state& s, event const& e, bool possible, job_state after) noexcept {
    if (possible) s.where = after;
    return e.done == possible;
  }
};

/// One event of a unique key that a job holds from enqueue to end. Jobs are known by their numbers.
struct key_event {
  enum class kind : std::uint8_t { enqueue, end };

  kind what = kind::enqueue;
  std::uint32_t job = 0;
  enqueue_outcome outcome = enqueue_outcome::enqueued;
  std::uint32_t other = 0;
};

[[nodiscard]] inline std::string to_text(key_event const& e) {
  auto const number = "job " + std::to_string(e.job);
  if (e.what == key_event::kind::end) return number + " ends";
  return "enqueue " + number + " -> " + std::string{to_text(e.outcome)} +
         (e.other != 0 ? " (job " + std::to_string(e.other) + ')' : std::string{});
}

/// One unique key: at most one job has it.
struct key_object {
  using event = key_event;

  struct state {
    std::uint32_t owner = 0;  // 0: nobody
    friend bool operator==(state const&, state const&) = default;
    friend std::size_t hash_value(state const& s) noexcept { return s.owner; }
  };

  static bool apply(state& s, event const& e, bool answered) noexcept {
    if (!answered) return true;
    if (e.what == event::kind::end) {
      if (s.owner != e.job) return false;
      s.owner = 0;
      return true;
    }
    switch (e.outcome) {
      case enqueue_outcome::enqueued:
        if (s.owner != 0) return false;
        s.owner = e.job;
        return true;
      case enqueue_outcome::replaced:
        if (s.owner == 0 || s.owner != e.other) return false;
        s.owner = e.job;
        return true;
      default: return s.owner != 0 && s.owner == e.other;
    }
  }
};

}  // namespace weir::testing

#endif
