// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "soak/alone.hpp"

#include "soak/family.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace soak {

namespace {

/// Does what a scenario asks for by its cues.
class stage_hand {
 public:
  stage_hand(target& to, family& all, assignment a)
      : to_{to},
        all_{all},
        given_{std::move(a)},
        faults_{to.faults()} {
    std::ranges::move(to.staged(), std::back_inserter(faults_));
  }
  stage_hand(stage_hand const&) = delete;
  stage_hand& operator=(stage_hand const&) = delete;
  ~stage_hand() {
    for (auto const* const f : under_way_) {
      if (f->end) f->end();
    }
  }

  void look() {
    auto const asked = given_.jobs + ".asked";
    if (!std::filesystem::exists(asked)) return;
    std::string verb;
    std::string what;
    std::ifstream{asked} >> verb >> what;
    std::filesystem::remove(asked);
    auto const said = answer(verb, what);
    std::ofstream{given_.jobs + ".saying"} << said;
    std::filesystem::rename(given_.jobs + ".saying", given_.jobs + ".answered");
  }

 private:
  std::string answer(std::string const& verb, std::string const& what) {
    if (verb == "count") {
      auto const n = to_.records();
      return n ? std::to_string(*n) : std::string{};
    }
    if (verb == "largest") return to_.largest();
    if (verb == "beginnings") return to_.beginnings();
    if (verb == "start") {
      auto a = given_;
      a.scenario = what;
      a.jobs += "-" + what;
      all_.start(std::move(a));
      return "started";
    }
    auto const found = std::ranges::find(faults_, what, &fault::name);
    if (found == faults_.end()) return {};
    auto const now = std::ranges::find(under_way_, &*found);
    if (verb == "begin" && now == under_way_.end()) {
      found->begin();
      under_way_.push_back(&*found);
    } else if (verb == "end" && now != under_way_.end()) {
      under_way_.erase(now);
      if (found->end) found->end();
    }
    return "done";
  }

  target& to_;
  family& all_;
  assignment given_;
  std::vector<fault> faults_;
  std::vector<fault const*> under_way_;
};

}  // namespace

bool play_alone(scenario const& s, wish w, std::uint64_t seed, std::string const& defect) {
  w.small = s.name == "full";
  w.clocks = s.name == "clocks";
  auto const to = make_target(w);
  if (to->direct().url.starts_with("postgres")) migrate_postgres(to->direct());
  auditor judge{2ms};
  family all{w.directory, to->preload(), judge};
  assignment const a{.role = "scenario",
                     .log = {},
                     .at = to->direct(),
                     .defect = defect,
                     .scenario = std::string{s.name},
                     .jobs = w.directory + "/cue",
                     .seed = seed};
  auto const since = boot_now();
  {
    stage_hand hand{*to, all, a};
    all.start(a);
    constexpr weir::duration longest = 180s;
    while (all.alive("scenario") && boot_now() < since + ns_of(longest)) {
      std::this_thread::sleep_for(20ms);
      hand.look();
      all.read();
    }
    all.read();
  }
  // One for each process of it.
  std::string verdict = "broken";
  std::string seen = "it did not end";
  for (auto const& v : all.verdicts()) {
    bool const first = &v == &all.verdicts().front();
    verdict = first || v.name == "broken" ? v.name : verdict;
    seen = first ? v.detail : seen + "; " + v.detail;
  }
  std::ranges::replace(seen, '_', ' ');
  bool const broken = verdict == "broken";
  std::printf("%-14s %-9s %-9s %5.1f s  %s%s\n", std::string{s.name}.c_str(), w.name.c_str(),
              verdict.c_str(), static_cast<double>(boot_now() - since) / 1e9, seen.c_str(),
              broken ? (" (failure " + std::string{s.failures} + ")").c_str() : "");
  std::fflush(stdout);
  return broken != defect.empty();
}

}  // namespace soak
