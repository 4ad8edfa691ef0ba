// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/audit.hpp"

#include "soak/plan.hpp"

#include <algorithm>
#include <sstream>

namespace soak {

namespace {

constexpr std::int64_t ms = 1'000'000;
/// Records of another process may come so much later than those that they belong to.
constexpr std::int64_t lag = 3'000 * ms;
/// What is older decides nothing any more.
constexpr std::int64_t memory = 90'000 * ms;

std::vector<std::string> split(std::string const& text) {
  std::vector<std::string> out;
  std::istringstream in{text};
  for (std::string part; std::getline(in, part, ',');) out.push_back(part);
  return out;
}

std::string in_seconds(std::int64_t ns) {
  std::ostringstream out;
  out.precision(3);
  out << std::fixed << static_cast<double>(ns) / 1e9 << " s";
  return out.str();
}

}  // namespace

void auditor::report(std::string promise, std::string what, std::int64_t at) {
  constexpr std::ptrdiff_t enough = 50;
  if (std::ranges::count(findings_, promise, &finding::promise) >= enough) return;
  findings_.push_back({std::move(promise), std::move(what), at});
}

auditor::hold* auditor::find_hold(std::uint32_t process, std::uint64_t op) {
  auto const key = hold_keys_.find({process, op});
  return key == hold_keys_.end() ? nullptr : &holds_[key->second][{process, op}];
}

void auditor::feed(std::uint32_t process, record const& r) {
  if (r.kind == "ask") {
    open_[{process, r.op}] = {r};
    if (r.name == "enqueue") {
      auto const parts = split(r.detail);
      auto& j = jobs_[parts.at(0)];
      j.asked = std::min(j.asked, r.at);
      ++j.asks;
      j.queue = r.key;
      j.unique = parts.at(1);
      j.delay = std::stoll(parts.at(2));
    } else if (r.name == "cancel") {
      auto& j = jobs_[r.key];
      j.cancel_asked = std::min(j.cancel_asked, r.at);
      j.may_have_ended = std::min(j.may_have_ended, r.at);
    } else if (r.name == "replay") {
      auto& j = jobs_[r.key];
      j.replay_asked = std::min(j.replay_asked, r.at);
    } else if (r.name == "purge") {
      auto& j = jobs_[r.key];
      j.purge_asked = std::min(j.purge_asked, r.at);
    }
  } else if (r.kind == "end") {
    auto const o = open_.find({process, r.op});
    if (o == open_.end()) return;
    end(process, o->second, r);
    open_.erase(o);
  } else if (r.kind == "held") {
    if (auto* const h = find_hold(process, r.op)) h->until = std::max(h->until, r.n);
  } else if (r.kind == "lost") {
    auto const* const h = find_hold(process, r.op);
    if (r.detail == "lease_lost" && h != nullptr && h->from > forgotten_ &&
        r.at + leap(h->from, r.at) < h->until) {
      auto const& key = hold_keys_[{process, r.op}];
      report(key.starts_with("permit-") ? "R1" : "R2",
             key + ": a renewal was refused " + in_seconds(h->until - r.at) +
                 " before the end of what its holder has, fence " + std::to_string(h->fence),
             r.at);
    }
  } else if (r.kind == "row") {
    jobs_[r.key].row = true;
  } else if (r.kind == "drop") {
    if (auto* const h = find_hold(process, r.op)) h->dropped = r.at;
  } else if (r.kind == "run") {
    start(r);
  } else if (r.kind == "kept" || r.kind == "found") {
    auto& j = jobs_[r.key];
    (r.kind == "kept" ? j.kept : j.found).push_back({r.at, r.fence, r.n});
    if (r.kind == "kept") ++counts_["kept"];
    to_check_.insert(r.key);
  } else if (r.kind == "ran") {
    auto& j = jobs_[r.key];
    if (r.detail == "ok" || r.detail == "gave-up") {
      j.may_have_ended = std::min(j.may_have_ended, r.at);
    }
    if (r.detail == "ok") j.ran_ok = std::min(j.ran_ok, r.at);
  } else if (r.kind == "completed") {
    auto& j = jobs_[r.key];
    j.completed = std::min(j.completed, r.at);
    j.completed_fence = r.fence;
    to_check_.insert(r.key);
    ++counts_["completed"];
  } else if (r.kind == "dead") {
    auto& j = jobs_[r.key];
    j.dead = std::min(j.dead, r.at);
    j.dead_fence = std::max(j.dead_fence, r.fence);
    to_check_.insert(r.key);
  } else if (r.kind == "tick") {
    ++counts_["tick"];
    if (r.fence != 0) samples_.push_back({r.at, std::stoll(r.detail), "tick", true});
    if (forgotten_ == 0) ticks_.job(r, [&](std::string what) { report("R4", what, r.at); });
  } else if (r.kind == "schedule") {
    ticks_.booked(r);
  } else if (r.kind == "stats") {
    stats_[r.key] = r.detail;
    if (r.n != 0) {
      report("R6",
             "queue " + r.key + " has not drained: " + std::to_string(r.n) + " jobs wait or run",
             r.at);
    }
  } else if (r.kind == "census") {
    if (r.n != 0) {
      report("R6",
             r.key + " is not free after the faults: " + std::to_string(r.n) + " hold or wait",
             r.at);
    }
  } else if (r.kind == "state") {
    jobs_[r.key].state = r.detail;
  } else if (r.kind == "inspected") {
    inspected_ = true;
  }
}

void auditor::start(record const& r) {
  auto& j = jobs_[r.key];
  auto const latest = std::stoll(r.name);
  ++counts_["run"];
  if (!j.fences.insert(r.fence).second) {
    report("R4",
           "job " + r.key + " was run twice under one lease, fence " + std::to_string(r.fence),
           r.at);
  }
  if (r.n > latest) {
    report("R4", "job " + r.key + " is in attempt " + std::to_string(r.n) + " of " + r.name, r.at);
  }
  if (j.runs.empty() && j.asked != never) {
    samples_.push_back({r.at, std::max<std::int64_t>(r.at - j.asked - j.delay, 0), "run", true});
  }
  // Its last attempts may have been used up by processes that were killed.
  if (r.n + 1 >= latest) j.may_have_ended = std::min(j.may_have_ended, r.at);
  j.runs.push_back({r.at, r.fence, r.n});
  to_check_.insert(r.key);
}

void auditor::end(std::uint32_t process, operation const& o, record const& r) {
  auto const& name = o.ask.name;
  ++counts_[name + " " + split(r.detail + ",")[0]];
  bool const answered = r.detail == "granted" || r.detail == "refused" || r.detail == "enqueued" ||
                        r.detail.starts_with("duplicate") || r.detail == "freed" ||
                        r.detail == "late" || r.detail == "done" || r.detail == "cancelled" ||
                        r.detail == "replayed" || r.detail == "purged" || r.detail == "timed_out";
  samples_.push_back({r.at, r.at - o.ask.at, name, answered});
  if (r.detail != "store_unavailable" && r.detail != "outcome_unknown" && r.detail != "quit") {
    answered_[process] = r.at;
  }
  if (name == "enqueue") {
    end_enqueue(o, r);
  } else if (name == "cancel") {
    if (r.detail == "cancelled") jobs_[o.ask.key].cancelled = r.at;
  } else if (r.detail == "granted") {
    if (name == "take") {
      end_take(o, r);
    } else if (name == "claim") {
      end_claim(o, r);
    } else {
      end_lease(process, o, r);
    }
  }
}

void auditor::end_enqueue(operation const& o, record const& r) {
  auto const id = split(o.ask.detail).at(0);
  auto& j = jobs_[id];
  if (r.detail == "enqueued") {
    if (j.acked == never && !j.unique.empty()) by_unique_[j.unique].push_back(id);
    j.acked = std::min(j.acked, r.at);
  } else if (r.detail.starts_with("duplicate,")) {
    duplicates_.push_back({o.ask.at, split(r.detail).at(1)});
    ++j.refusals;
  } else if (r.detail == "store_unavailable" || r.detail == "store_full" ||
             r.detail == "disk_full" || r.detail == "rolled_back") {
    ++j.refusals;
  } else {
    j.unknown = true;
  }
}

void auditor::end_lease(std::uint32_t process, operation const& o, record const& r) {
  auto const& key = o.ask.key;
  // R5: a grant that was answered before another was asked for has the lower fence.
  auto const wrong = [&](span const& before, span const& after) {
    if (before.granted >= after.asked || before.fence < after.fence) return;
    report("R5",
           key + ": fence " + std::to_string(after.fence) + " was granted after " +
               std::to_string(before.fence),
           r.at);
  };
  span const now{o.ask.at, r.at, r.fence};
  auto& all = grants_[key];
  for (auto const& other : all) {
    wrong(other, now);
    wrong(now, other);
  }
  all.push_back(now);
  hold_keys_[{process, r.op}] = key;
  // A grant of before time leapt, which is answered after that, may be over.
  bool const over = std::ranges::any_of(
      leaps_, [&](auto const& l) { return l.by > 0 && o.ask.at <= l.to && r.at > l.to; });
  holds_[key][{process, r.op}] = {r.at, over ? r.at : r.n, never, r.fence};
}

void auditor::end_take(operation const& o, record const& r) {
  // R3: whatever lies within a window, from an intent to an outcome.
  auto const& key = o.ask.key;
  auto const& q = quotas.at(limit_of(key));
  auto& all = takes_[key];
  all.push_back({o.ask.at, r.at, 0});
  std::erase_if(all, [&](span const& s) { return s.granted < r.at - 30'000 * ms; });
  std::ranges::sort(all, {}, &span::asked);
  for (auto const& last : all) {
    if (last.granted < r.at) continue;  // windows that end earlier have been looked at
    std::uint64_t taken = 0;
    for (auto first = all.rbegin(); first != all.rend(); ++first) {
      if (first->granted > last.granted) continue;
      ++taken;
      auto const window = static_cast<double>(last.granted - first->asked + precision_ +
                                              leap(first->asked, last.granted));
      auto const allowed =
          static_cast<double>(q.capacity()) +
          static_cast<double>(q.tokens()) * window / static_cast<double>(q.period().count());
      if (first->asked < forgotten_ || static_cast<double>(taken) <= allowed) continue;

      report("R3",
             key + ": " + std::to_string(taken) + " tokens within " +
                 in_seconds(last.granted - first->asked) + ", of which " + std::to_string(allowed) +
                 " are allowed",
             r.at);
      all.clear();
      return;
    }
  }
}

void auditor::end_claim(operation const& o, record const& r) {
  auto& all = claims_[o.ask.key];
  span const now{o.ask.at, r.at, 0};
  auto const both = [&](span const& first, span const& second) {
    return second.asked > first.granted && first.asked > forgotten_ &&
           second.granted + leap(first.asked, second.granted) <
               first.asked + ns_of(claim_ttl) - precision_;
  };
  for (auto const& other : all) {
    if (both(other, now) || both(now, other)) {
      report("R2", o.ask.key + " was claimed twice within " + in_seconds(ns_of(claim_ttl)), r.at);
    }
  }
  all.push_back(now);
}

void auditor::ended(std::uint32_t process, std::int64_t at) {
  std::erase_if(open_, [&](auto const& o) { return o.first.first == process; });
  for (auto& [key, holds] : holds_) {
    for (auto& [who, h] : holds) {
      if (who.first == process) h.dropped = std::min(h.dropped, at);
    }
  }
}

void auditor::stood_still(std::uint32_t process, std::int64_t from, std::int64_t to) {
  for (auto& [at, o] : open_) {
    if (at.first == process) o.still += to - from;
  }
}

void auditor::check_holds(std::string const& key, std::int64_t now) {
  auto& holds = holds_[key];
  auto const forget = [&](auto const& old) {
    std::erase_if(holds, [&](auto const& entry) {
      if (!old(entry.second)) return false;
      hold_keys_.erase(entry.first);
      return true;
    });
  };
  std::size_t const limit = key.starts_with("permit-") ? limit_of(key) : 1;
  std::vector<std::pair<std::int64_t, int>> edges;
  for (auto const& [who, h] : holds) {
    auto end = std::min(h.end(), now);
    // It ends by so much earlier, but not before the leap.
    for (auto const& l : leaps_) {
      if (h.from <= l.to) end = std::min(end, std::max(l.from, end - l.by));
    }
    if (end <= h.from || h.from < forgotten_) continue;
    edges.emplace_back(h.from, 1);
    edges.emplace_back(end, -1);
  }
  std::ranges::sort(edges);  // at one instant, ends come first
  std::size_t held = 0;
  for (auto const& [at, step] : edges) {
    if (step < 0) {
      --held;
    } else if (++held > limit) {
      std::string who;
      for (auto const& [name, h] : holds) {
        if (h.from <= at && at < h.end()) {
          who += "; fence " + std::to_string(h.fence) + " of process " +
                 std::to_string(name.first) + " since " + in_seconds(at - h.from) + ", for " +
                 in_seconds(h.end() - at) + " more";
        }
      }
      report(limit == 1 && !key.starts_with("permit-") ? "R2" : "R1",
             key + ": " + std::to_string(held) + " hold it at once" + who, at);
      forget([](hold const&) { return true; });
      return;
    }
  }
  forget([&](hold const& h) { return h.end() < now - memory; });
}

void auditor::check_job(std::string const& id, job& j) {
  if (j.told) return;
  auto const tell = [&](std::string promise, std::string what) {
    j.told = true;
    report(std::move(promise), "job " + id + " of " + j.queue + " " + std::move(what), checked_);
  };
  if (j.runs.empty()) return;
  if (j.asked == never) return tell("R4", "was run and never enqueued");
  if (j.acked == never && j.refusals == j.asks) return tell("R4", "was refused, and run");
  auto const first = std::ranges::min(j.runs, {}, &run::at);
  if (first.at + leap(j.asked, first.at) < j.asked + j.delay - precision_) {
    return tell("R4", "was run " + in_seconds(j.asked + j.delay - first.at) + " before its time");
  }
  for (auto const& k : j.kept) {
    if (k.at < forgotten_) continue;
    for (auto const& f : j.found) {
      if (f.fence <= k.fence || f.n >= k.n) continue;
      return tell("F104", "found checkpoint " + std::to_string(f.n) + " under fence " +
                              std::to_string(f.fence) + ", and " + std::to_string(k.n) +
                              " was acknowledged under " + std::to_string(k.fence));
    }
  }
  for (auto const& r : j.runs) {
    if (j.completed != never && j.completed > forgotten_ && r.fence > j.completed_fence) {
      return tell("R4", "was run under fence " + std::to_string(r.fence) +
                            " after it was completed under " + std::to_string(j.completed_fence));
    }
    if (j.dead != never && j.dead > forgotten_ && r.fence > j.dead_fence &&
        j.replay_asked == never) {
      return tell("R4", "was run again after it was dead, and nobody replayed it");
    }
  }
}

void auditor::check_unique(std::int64_t now) {
  for (auto const& d : duplicates_) {
    if (d.asked > now - lag) continue;
    auto const& other = jobs_[d.other];
    auto const ended = std::min(other.completed, other.cancelled);
    if (ended < d.asked && ended > forgotten_ && other.asked != never) {
      report("R2",
             "job " + d.other + " has its unique key " + in_seconds(d.asked - ended) +
                 " after its end",
             d.asked);
    }
  }
  std::erase_if(duplicates_, [&](duplicate const& d) { return d.asked <= now - lag; });
  for (auto& [key, ids] : by_unique_) {
    for (std::size_t b = 1; b < ids.size(); ++b) {
      auto const& later = jobs_[ids[b]];
      if (later.acked > now - lag) continue;
      for (std::size_t a = 0; a != b; ++a) {
        auto const& earlier = jobs_[ids[a]];
        if (later.asked < earlier.acked || later.acked > earlier.may_have_ended) continue;
        if (earlier.acked < forgotten_ || !told_.insert({ids[a], ids[b]}).second) continue;
        report("R2",
               "jobs " + ids[a] + " and " + ids[b] + " have the unique key " + key + " at once",
               later.acked);
      }
    }
    // Those that have ended long ago, and are no one's earlier any more.
    std::erase_if(ids, [&](std::string const& id) {
      auto const& j = jobs_[id];
      return j.acked < now - memory && j.may_have_ended < now - memory;
    });
  }
}

void auditor::check(std::int64_t now) {
  checked_ = now;
  for (auto const& [key, holds] : holds_) check_holds(key, now);
  for (auto* const all : {&grants_, &claims_}) {
    for (auto& [key, spans] : *all) {
      std::erase_if(spans, [&](span const& s) { return s.granted < now - 10 * lag; });
    }
  }
  for (auto& [at, o] : open_) {
    auto const bound = o.ask.n + ns_of(hang) + o.still;
    if (o.told || now - o.ask.at <= bound) continue;
    o.told = true;
    report(o.ask.detail == "quits" ? "R7" : "hang",
           o.ask.name + " of " + o.ask.key + " has had no outcome for " +
               in_seconds(now - o.ask.at),
           now);
  }
  std::erase_if(to_check_, [&](std::string const& id) {
    auto& j = jobs_[id];
    // Each process is read by itself, so that the latest run need not come last.
    auto const news = j.runs.empty() ? std::int64_t{0} : std::ranges::max(j.runs, {}, &run::at).at;
    if (news > now - lag) return false;
    check_job(id, j);
    return true;
  });
  check_unique(now);
}

bool auditor::expired(job const& j, std::int64_t now) const {
  // Its end may be older than the last that was seen of it, and a record may be gone a little late.
  auto const ended = j.completed != never ? j.completed : j.ran_ok;
  return ended != never && now - ended + leap(ended, now) > ns_of(retention);
}

std::vector<std::pair<std::string, std::string>> auditor::jobs(std::int64_t now) const {
  std::vector<std::pair<std::string, std::string>> out;
  for (auto const& [id, j] : jobs_) {
    if (!j.queue.empty() && !expired(j, now)) out.emplace_back(j.queue, id);
  }
  return out;
}

void auditor::finish(std::int64_t now) {
  check(now + lag + 1);
  if (forgotten_ == 0) ticks_.finish([&](std::string what) { report("R4", what, now); });
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> counted;  // acknowledged, possible
  for (auto& [id, j] : jobs_) {
    if (j.queue.empty()) continue;
    auto& count = counted[j.queue];
    bool const there = j.state != "absent" && !j.state.empty();
    count.first += j.acked != never ? 1U : 0U;
    count.second += 1;
    if (j.told || expired(j, now)) continue;
    auto const tell = [&, &name = id](std::string promise, std::string const& what) {
      report(std::move(promise), "job " + name + " of " + j.queue + " " + what, now);
    };
    bool const removed = j.purge_asked != never || j.cancel_asked != never;
    if (j.queue == "outbox" && j.asked > forgotten_ && !removed && j.row != there) {
      tell("R4", j.row ? "is not there, and the row of its transaction is"
                       : "is there, and the row of its transaction is not");
      continue;
    }
    if (j.acked != never && !there && !removed && j.acked > forgotten_) {
      tell("R4", "was acknowledged and is lost");
    } else if (j.completed != never && j.state != "completed" && j.completed > forgotten_) {
      tell("R4", "was completed and is " + j.state);
    } else if (j.state == "completed" && j.ran_ok == never) {
      tell("R4", "is completed and no handler of it succeeded");
    } else if (j.state == "cancelled" && j.cancel_asked == never) {
      tell("R4", "is cancelled and nobody cancelled it");
    } else if (j.state == "pending" || j.state == "leased") {
      tell("R6", "is " + j.state + " after the faults");
    }
  }
  for (auto const& [queue, text] : stats_) {
    std::vector<std::uint64_t> n;
    for (auto const& part : split(text)) n.push_back(std::stoull(part));
    auto const sum = n.at(1) + n.at(2) + n.at(3) + n.at(4) + n.at(5) + n.at(6);
    if (n[0] != sum) {
      report("R4", "the counts of " + queue + " do not add up: " + text, now);
    }
    auto const [acknowledged, possible] = counted[queue];
    if (queue.starts_with("ticks-")) continue;  // nobody of the application enqueues into these
    if (forgotten_ == 0 && (n[0] < acknowledged || n[0] > possible)) {
      report("R4",
             queue + " counts " + std::to_string(n[0]) + " enqueued, of " +
                 std::to_string(acknowledged) + " acknowledged and " + std::to_string(possible) +
                 " asked for",
             now);
    }
  }
}

}  // namespace soak
