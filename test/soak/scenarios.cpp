// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/scenarios.hpp"

#include "soak/stage.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace soak {

std::vector<scenario> const& scenarios() {
  static std::vector<scenario> const all{
      {"waiters", "68", "three hundred waiters on one key", true},
      {"killed-waiters", "10", "two hundred who died waiting in line", true},
      {"queues", "74", "a thousand queues of one job", true},
      {"full", "61", "a full engine is drained"},
      {"payloads", "59, 60", "payloads and results of 1 MiB"},
      {"snapshot", "79", "a snapshot is held", true},
      {"hints", "69", "two hundred stores that listen to others", true},
      {"quotas", "65", "rates of all sizes, beside memory"},
      {"pointers", "57", "enqueues into queues that become empty"},
      {"results", "62", "results that cannot be kept"},
      {"batches", "72", "batches with the same keys in opposite order"},
      {"limits", "73", "a backlog behind a limit"},
      {"timeouts", "56", "handlers that are cancelled on other threads"},
      {"idle", "84", "a worker with nothing to do", true},
      {"clocks", "63, 64", "clocks that are set"},
      {"fail-over", "70", "a server that is succeeded"},
      {"far", "67", "who is far away, beside others who are near", true},
      {"locked", "71", "rows that an application has locked", true},
      {"power", "58", "images that no disk has"},
      {"blocked", "76", "a handler that blocks its thread"},
      {"outbox", "77", "transactions of an application", true},
      {"flood", "78", "buckets that are full again", true},
      {"newcomer", "81", "a process that comes to many jobs"},
      {"emptied", "83", "queues that are empty", true},
      {"pieces", "80", "many records that end at once"},
      {"moved", "53, 80", "a large queue whose slot moves", true},
      {"old-answers", "75", "answers that are older than what was heard"},
  };
  return all;
}

asio::awaitable<std::string> stage::cue(std::string what) const {
  auto const answered = given.jobs + ".answered";
  {
    std::ofstream{given.jobs + ".asking"} << what;
    std::filesystem::rename(given.jobs + ".asking", given.jobs + ".asked");
  }
  while (!std::filesystem::exists(answered)) co_await pause(10ms);
  std::string said;
  std::getline(std::ifstream{answered}, said);
  std::filesystem::remove(answered);
  co_return said;
}

boost::asio::awaitable<void> play_scenario(assignment const& a, store at, witness& log) {
  stage const s{a, at, at.get_executor()};
  auto const& name = a.scenario;
  static std::map<std::string, asio::awaitable<verdict> (*)(stage const&)> const all{
      {"waiters", waiters},
      {"killed-waiters", killed_waiters},
      {"queues", queues},
      {"full", full},
      {"payloads", payloads},
      {"snapshot", snapshot},
      {"hints", hints},
      {"quotas", quota_range},
      {"pointers", pointers},
      {"results", results},
      {"batches", batches},
      {"limits", limits},
      {"timeouts", timeouts},
      {"idle", idle},
      {"clocks", clocks},
      {"fail-over", fail_over},
      {"far", far},
      {"locked", locked_rows},
      {"power", power},
      {"blocked", blocked},
      {"outbox", outbox_scans},
      {"flood", flood},
      {"newcomer", newcomer},
      {"first-answer", first_answer},
      {"emptied", emptied},
      {"pieces", pieces},
      {"moved", moved},
      {"old-answers", old_answers}};
  auto const found = all.find(name);
  verdict v{false, "no such scenario"};
  if (found != all.end()) v = co_await found->second(s);
  std::ranges::replace(v.seen, ' ', '_');
  log.write({.kind = "verdict",
             .name = v.left_out ? "left-out"
                     : v.holds  ? "holds"
                                : "broken",
             .detail = v.seen});
}

}  // namespace soak
