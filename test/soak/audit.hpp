// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SOAK_AUDIT_HPP
#define WEIR_TEST_SOAK_AUDIT_HPP

#include "soak/tick_audit.hpp"
#include "soak/witness.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace soak {

/// A promise that was seen broken.
struct finding {
  std::string promise;  ///< R1 … R8, or hang
  std::string what;
  std::int64_t at = 0;
};

/// One operation, or a job's way from its enqueue to its handler, for the figures.
struct sample {
  std::int64_t at = 0;  ///< its end
  std::int64_t latency = 0;
  std::string name;
  bool ok = false;
};

/// Judges what the witnesses of all processes saw. Nothing in here knows an engine or reads a
/// clock: the same records give the same findings.
///
/// An operation takes effect at an instant between its intent and its outcome. Only what is broken
/// whichever instants these were is a finding.
class auditor {
 public:
  /// @param precision by how much the engine's processes may differ about the time, as it declares
  explicit auditor(weir::duration precision) : precision_{ns_of(precision)} {}

  /// @param process a number of one log: operations are numbered within it
  void feed(std::uint32_t process, record const& r);
  /// The process was killed, or has ended: it holds and waits for nothing any more.
  void ended(std::uint32_t process, std::int64_t at);
  /// The process stood still: what it waits for may take so much longer.
  void stood_still(std::uint32_t process, std::int64_t from, std::int64_t to);
  /// The engine may have forgotten what it had before this instant, as its table says.
  void forgotten(std::int64_t at) { forgotten_ = at; }
  /// Between these instants the engine's time may have gone on from a later one. What that ends is
  /// ended.
  void leapt(std::int64_t from, std::int64_t to, std::int64_t by) {
    leaps_.push_back({from, to, by});
  }
  /// What can be said so far.
  void check(std::int64_t now);
  /// What has to be true at the end, once the inspector has looked.
  void finish(std::int64_t now);

  /// Jobs of which there may be a record, with their queues, for the inspector.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> jobs(std::int64_t now) const;
  /// When the process was last told something by the engine; 0: never.
  [[nodiscard]] std::int64_t answered(std::uint32_t process) const {
    auto const at = answered_.find(process);
    return at == answered_.end() ? 0 : at->second;
  }
  [[nodiscard]] std::vector<finding> const& findings() const noexcept { return findings_; }
  [[nodiscard]] std::vector<sample> const& samples() const noexcept { return samples_; }
  [[nodiscard]] bool inspected() const noexcept { return inspected_; }
  /// What was seen, by name: grants, takes, runs, …
  [[nodiscard]] std::map<std::string, std::uint64_t> const& counts() const noexcept {
    return counts_;
  }
  void report(std::string promise, std::string what, std::int64_t at);

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  struct operation {
    record ask;
    std::int64_t still = 0;  // how long its process stood still meanwhile
    bool told = false;
  };
  struct hold {
    std::int64_t from = 0;
    std::int64_t until = never;  // as the holder believes
    std::int64_t dropped = never;
    std::uint64_t fence = 0;
    [[nodiscard]] std::int64_t end() const { return std::min(until, dropped); }
  };
  struct span {
    std::int64_t asked = 0;
    std::int64_t granted = 0;
    std::uint64_t fence = 0;
  };
  struct run {
    std::int64_t at = 0;
    std::uint64_t fence = 0;
    std::int64_t attempt = 0;
  };
  /// A checkpoint that was acknowledged, or that an attempt has found.
  struct checkpoint {
    std::int64_t at = 0;  // when that was seen
    std::uint64_t fence = 0;
    std::int64_t n = 0;
  };
  struct job {
    std::string queue;
    std::string unique;
    std::vector<checkpoint> kept;
    std::vector<checkpoint> found;
    std::int64_t delay = 0;
    std::int64_t asked = never;  // first
    std::int64_t acked = never;  // first
    bool unknown = false;
    std::uint32_t asks = 0;
    std::uint32_t refusals = 0;  // of which the answer was that nothing was changed
    std::vector<run> runs;
    std::set<std::uint64_t> fences;
    std::int64_t may_have_ended = never;
    std::int64_t ran_ok = never;
    std::int64_t completed = never;
    std::uint64_t completed_fence = 0;
    std::int64_t dead = never;
    std::uint64_t dead_fence = 0;
    std::int64_t replay_asked = never;
    std::int64_t cancel_asked = never;
    std::int64_t cancelled = never;
    std::int64_t purge_asked = never;
    std::string state;  // as the inspector found it
    bool row = false;   // the application's own, of its transaction
    bool told = false;
  };
  struct duplicate {
    std::int64_t asked = 0;
    std::string other;
  };

  void end(std::uint32_t process, operation const& o, record const& r);
  void end_enqueue(operation const& o, record const& r);
  void end_lease(std::uint32_t process, operation const& o, record const& r);
  void end_take(operation const& o, record const& r);
  void end_claim(operation const& o, record const& r);
  void start(record const& r);
  void check_holds(std::string const& key, std::int64_t now);
  void check_job(std::string const& id, job& j);
  void check_unique(std::int64_t now);
  /// Has it ended so long ago that its record is gone?
  [[nodiscard]] bool expired(job const& j, std::int64_t now) const;
  /// By how much more of the engine's time may have passed between these?
  [[nodiscard]] std::int64_t leap(std::int64_t from, std::int64_t to) const {
    std::int64_t all = 0;
    for (auto const& l : leaps_) {
      if (l.from <= to && from <= l.to) all += l.by;
    }
    return all;
  }
  [[nodiscard]] hold* find_hold(std::uint32_t process, std::uint64_t op);

  std::map<std::pair<std::uint32_t, std::uint64_t>, operation> open_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> hold_keys_;
  std::map<std::string, std::map<std::pair<std::uint32_t, std::uint64_t>, hold>> holds_;
  std::map<std::string, std::vector<span>> grants_, takes_, claims_;
  std::map<std::string, std::uint64_t> highest_;  // fence of grants that are no longer remembered
  std::map<std::string, job> jobs_;
  std::map<std::string, std::vector<std::string>> by_unique_;  // in the order of their acks
  std::vector<duplicate> duplicates_;
  std::set<std::string> to_check_;  // jobs of which something new was seen
  std::vector<finding> findings_;
  std::vector<sample> samples_;
  std::map<std::string, std::uint64_t> counts_;
  std::map<std::string, std::string> stats_;
  std::map<std::uint32_t, std::int64_t> answered_;
  struct time_leap {
    std::int64_t from;
    std::int64_t to;
    std::int64_t by;
  };
  std::vector<time_leap> leaps_;
  tick_audit ticks_;
  std::set<std::pair<std::string, std::string>> told_;
  std::int64_t precision_;
  std::int64_t forgotten_ = 0;
  std::int64_t checked_ = 0;
  bool inspected_ = false;
};

}  // namespace soak

#endif
