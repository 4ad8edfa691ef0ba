// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_UNIT_JOBS_TEXT_HPP
#define WEIR_TEST_UNIT_JOBS_TEXT_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

// The answers of job commands as text: two are the same if their texts are, and a difference can be
// read.
namespace test {

class text {
 public:
  template <class T>
  static std::string of(T const& v) {
    text t;
    t.put(v);
    return std::move(t.out_).str();
  }

 private:
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  void put(T v) {
    out_ << static_cast<std::int64_t>(v) << ' ';
  }
  void put(std::string const& s) { out_ << '"' << s << "\" "; }
  void put(weir::duration d) { out_ << d.count() << "ns "; }
  void put(weir::job_id const& id) {
    for (auto const b : id) {
      if (b != 0) out_ << static_cast<int>(b) << '.';
    }
    out_ << ' ';
  }
  template <class T>
  void put(std::optional<T> const& o) {
    if (o) {
      put(*o);
    } else {
      out_ << "none ";
    }
  }
  template <class T>
  void put(weir::result<T> const& r) {
    if (r.has_value()) {
      put(r.value());
    } else {
      out_ << r.error().message();
    }
  }
  template <class T>
    requires requires(T const& t) { t.begin(); }
  void put(T const& elements) {
    out_ << "[ ";
    for (auto const& e : elements) put(e);
    out_ << "] ";
  }
  template <class... T>
  void all(T const&... v) {
    out_ << "{ ";
    (put(v), ...);
    out_ << "} ";
  }

  void put(weir::hint const&) { out_ << "done "; }
  void put(weir::job const& j) {
    all(j.id, j.kind, j.payload, j.priority, j.state, j.attempts, j.max_attempts, j.snoozes,
        j.vests_in, j.age, j.deadline_in, j.strategy, j.on_conflict, j.unique_key, j.memo, j.result,
        j.reason, j.holder, j.fence);
  }
  void put(weir::leased_job const& j) {
    all(j.id, j.fence, j.expires_in, j.kind, j.payload, j.priority, j.attempt, j.max_attempts,
        j.snoozes, j.age, j.deadline_in, j.strategy, j.unique_key, j.memo);
  }
  void put(weir::queue_stats const& s) {
    all(s.enqueued, s.pending, s.leased, s.completed, s.dead, s.cancelled, s.purged, s.paused,
        s.next_in);
  }
  void put(weir::enqueued const& e) { all(e.outcome, e.other); }
  void put(weir::dequeued const& d) { all(d.jobs, d.dead_lettered, d.more, d.held, d.next_in); }
  void put(weir::started const& s) { all(s.outcome, s.retry_after, s.other); }
  void put(weir::replayed const& r) { all(r.outcome, r.other); }
  void put(weir::lease_renewal const& l) { all(l.expires_in); }
  void put(weir::visible_queues const& v) { all(v.queues, v.next_in); }
  void put(weir::lock_grant const& g) { all(g.granted, g.fence, g.expires_in, g.holder); }
  void put(weir::lease_release const& r) { all(r.freed, r.left_line); }

  std::ostringstream out_;
};

}  // namespace test

#endif
