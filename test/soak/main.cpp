// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "integration/directory.hpp"
#include "soak/alone.hpp"
#include "soak/audit.hpp"
#include "soak/family.hpp"
#include "soak/figures.hpp"
#include "soak/nemesis.hpp"
#include "soak/plan.hpp"
#include "soak/scenarios.hpp"
#include "soak/target.hpp"
#include "weir/testing/dice.hpp"

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

// The coordinator: it starts the engine, the application and the nemesis, and judges what the
// witnesses saw.
namespace soak {
namespace {

constexpr std::int64_t second = 1'000'000'000;
/// No fault begins so shortly before the end: what comes after it should be seen.
constexpr std::int64_t calm_end = 10 * second;
/// No process of the application needs more, nor does a server of this little data.
constexpr std::uint64_t process_memory = 256U << 20U;
constexpr std::uint64_t server_memory = 1024U << 20U;

struct choices {
  std::string engine = "sqlite";
  double minutes = 1;
  double kill_every = 0;
  std::uint64_t seed = 1;
  std::string url{};
  std::string only{};
  std::string defect{};
  std::string beside{};
  std::string output = ".";
  std::vector<std::string> faults{};
  bool lasting = true;
  bool keep = false;

  /// Is a fault named whose name begins with this?
  [[nodiscard]] bool wants(std::string_view begin) const {
    return std::ranges::any_of(faults, [&](auto const& f) { return f.starts_with(begin); });
  }
};

/// On NATS a shard's owner knows the server's time from what its replies say, to within ten
/// milliseconds, and so does the one that succeeds it; the others' servers tell it.
weir::duration precision_of(std::string const& name) {
  return name.starts_with("nats") ? 20ms : 2ms;
}

void print_findings(auditor const& judge, std::size_t from, std::int64_t since) {
  auto const& all = judge.findings();
  for (auto i = from; i < all.size(); ++i) {
    std::printf("BROKEN %s after %.1f s: %s\n", all[i].promise.c_str(),
                static_cast<double>(boot_now() - since) / 1e9, all[i].what.c_str());
  }
  std::fflush(stdout);
}

class soak_run {
 public:
  soak_run(choices c, std::string directory)
      : c_{std::move(c)},
        directory_{std::move(directory)},
        chance_{c_.seed},
        to_{make_target({.name = c_.engine,
                         .url = c_.url,
                         .lasting = c_.lasting,
                         .clocks = !c_.engine.starts_with("nats") || c_.wants("clock-"),
                         .directory = directory_,
                         .chance = [this] { return chance_.bits(); }})},
        net_{to_->direct()},
        all_{directory_, to_->preload(), judge_, c_.beside} {
    if (to_->direct().url.starts_with("postgres")) migrate_postgres(to_->direct());
    for (auto faults :
         {to_->faults(), net_.faults(),
          faults_of(
              all_, [this] { return chance_.bits(); },
              [this](std::string role) { all_.start(assigned(std::move(role), net_.through())); },
              c_.engine.starts_with("nats"))}) {
      for (auto& f : faults) {
        if (c_.faults.empty() || std::ranges::count(c_.faults, f.name) != 0) {
          faults_.push_back(std::move(f));
        }
      }
    }
  }

  /// @return was everything as promised; or, with a defect, was it found
  bool play() {
    began_ = boot_now();
    for (auto const* const role :
         {"enqueuer", "enqueuer", "worker", "worker", "old-worker", "limiter", "limiter", "locker",
          "locker", "rater", "rater", "scheduler", "scheduler"}) {
      all_.start(assigned(role, net_.through()));
    }
    all_.start(assigned("administrator", to_->direct()));
    // Its own connection is no matter of weir's, and nothing watches over it.
    if (open_outbox(to_->direct())) all_.start(assigned("outbox", to_->direct()));
    auto const until = began_ + static_cast<std::int64_t>(c_.minutes * 60 * second);
    auto next = boot_now() + 5 * second;
    std::optional<fault> now;
    auto until_healed = next;
    auto const kill_every = static_cast<std::int64_t>(c_.kill_every * second);
    auto kill_at = next;
    while (boot_now() < until && !is_over()) {
      step();
      if (kill_every > 0 && boot_now() >= kill_at && boot_now() < until - calm_end) {
        all_.replace_one(chance_.bits());
        kill_at = boot_now() + kill_every;
        ++summary_.kills;
      }
      if (now && boot_now() >= until_healed) {
        heal(*now);
        now.reset();
        next = boot_now() + static_cast<std::int64_t>(3 + chance_.below(4)) * second;
      } else if (!now && !faults_.empty() && boot_now() >= next && boot_now() < until - calm_end) {
        now = faults_[draw()];
        auto const spread = static_cast<std::uint64_t>((now->most - now->least).count());
        auto const lasts = now->least + std::chrono::milliseconds{chance_.below(spread + 1)};
        begin(*now);
        until_healed = boot_now() + std::chrono::nanoseconds{lasts}.count();
      }
    }
    if (now) heal(*now);
    net_.heal();
    all_.resume();
    calm_down();
    summary_.to = boot_now();
    if (!is_over()) end();
    print_findings(judge_, told_, began_);
    return told();
  }

 private:
  [[nodiscard]] assignment assigned(std::string role, opening at) const {
    return {.role = std::move(role),
            .log = {},
            .at = std::move(at),
            .defect = c_.defect,
            .scenario = {},
            .jobs = directory_ + "/jobs",
            .seed = c_.seed};
  }
  /// A defect has been found by the promise that it breaks: that is all that it was put in for.
  [[nodiscard]] bool is_over() const {
    auto const d = std::ranges::find(defects(), c_.defect, &known_defect::name);
    return d != defects().end() && std::ranges::find(judge_.findings(), d->promise,
                                                     &finding::promise) != judge_.findings().end();
  }

  void step() {
    std::this_thread::sleep_for(50ms);
    // Until then everything is read; of what comes while it reads, only some.
    auto const seen = boot_now();
    all_.read();
    if (seen < checked_ + second / 2) return;
    checked_ = seen;
    judge_.check(checked_);
    all_.weigh(process_memory);
    std::uint64_t largest = 0;
    for (auto const pid : family::children_of(::getpid())) {
      if (!all_.has(pid)) largest = std::max(largest, family::resident_with_children(pid));
    }
    server_ = std::max(server_, largest);
    if (largest > server_memory && !server_told_) {
      server_told_ = true;
      judge_.report("R8", "a server has " + std::to_string(largest >> 20U) + " MiB", checked_);
    }
    print_findings(judge_, told_, began_);
    told_ = judge_.findings().size();
    if (found_ == 0 && is_over()) found_ = boot_now();
  }

  /// Soon after all is well every process that is at work is answered again (R6).
  void calm_down() {
    auto const healed = boot_now();
    while (boot_now() < healed + calm_end && !is_over()) step();
    if (is_over()) return;
    for (auto const& [process, role] : all_.at_work()) {
      // The others have nothing to ask, or each of their operations is dozens of commands.
      bool const asks =
          role != "worker" && role != "old-worker" && role != "sprawl" && role != "scheduler";
      if (!asks || judge_.answered(process) >= healed) continue;
      judge_.report("R6",
                    role + " " + std::to_string(process) + " has had no answer since all is well",
                    boot_now());
    }
  }

  /// Every fault comes before one comes again.
  std::size_t draw() {
    if (deck_.empty()) {
      deck_.resize(faults_.size());
      std::iota(deck_.begin(), deck_.end(), std::size_t{0});
    }
    auto const at = deck_.begin() + static_cast<std::ptrdiff_t>(chance_.below(deck_.size()));
    auto const drawn = *at;
    deck_.erase(at);
    return drawn;
  }
  void begin(fault const& f) {
    std::printf("%7.1f s  %s\n", static_cast<double>(boot_now() - began_) / 1e9, f.name.c_str());
    std::fflush(stdout);
    summary_.faults.push_back({f.name, boot_now(), 0});
    if (f.forgets) judge_.forgotten(std::numeric_limits<std::int64_t>::max());
    auto const before = boot_now();
    f.begin();
    note_leap(before, f.leap);
  }
  void heal(fault const& f) {
    auto const before = boot_now();
    if (f.end) f.end();
    // A clock that was ahead, later set back, and then set right again is taken for one that is
    // ahead.
    note_leap(before, f.leap_at_end == 0s ? 0s : std::max(f.leap_at_end, furthest_));
    if (f.forgets) judge_.forgotten(boot_now() + ns_of(*f.forgets));
    summary_.faults.back().to = boot_now();
  }

  void note_leap(std::int64_t from, std::chrono::seconds by) {
    if (by == 0s) return;
    furthest_ = std::max(furthest_, by);
    judge_.leapt(from, boot_now() + second / 10, ns_of(by));
  }

  /// All faults are healed: everything has to come to its end.
  void end() {
    constexpr std::array clients{"enqueuer", "limiter",   "locker",        "rater", "outbox",
                                 "sprawl",   "scheduler", "administrator", "crowd", "key-flood"};
    all_.end({clients.begin(), clients.end()});
    auto const patience = boot_now() + ns_of(hang) + 10 * second;
    auto const alive = [&](char const* role) { return all_.alive(role); };
    while (std::ranges::any_of(clients, alive)) {
      step();
      if (is_over()) return;
      if (boot_now() > patience) {
        judge_.report("hang", "a process does not end when it is asked to", boot_now());
        return;
      }
    }
    {
      std::ofstream jobs{directory_ + "/jobs"};
      for (auto const& [queue, id] : judge_.jobs(boot_now())) jobs << queue << ' ' << id << '\n';
    }
    all_.start(assigned("inspector", to_->direct()));
    auto const bound = boot_now() + 4 * ns_of(drain);
    while (all_.alive("inspector") && boot_now() < bound && !is_over()) step();
    if (is_over()) return;
    all_.end({"worker", "old-worker"});
    auto const drained = boot_now() + ns_of(hang);
    auto const works = [this] { return all_.alive("worker") || all_.alive("old-worker"); };
    while (works() && boot_now() < drained) step();
    if (works()) judge_.report("hang", "a worker does not stop", boot_now());
    all_.read();
    all_.read();
    if (judge_.inspected()) {
      judge_.finish(boot_now());
    } else {
      judge_.report("R6", "the engine could not be inspected after the faults", boot_now());
    }
  }

  bool told() {
    summary_.engine = c_.engine;
    summary_.version = c_.url.empty() ? version_of(c_.engine) : c_.url.substr(0, c_.url.find(':'));
    summary_.seed = c_.seed;
    summary_.from = began_;
    summary_.memory = all_.most();
    summary_.memory["server"] = server_;
    auto const& found = judge_.findings();
    if (c_.defect.empty()) tell(summary_, judge_, c_.output);
    std::printf("\n%s, %s, seed %llu, %.0f s:", c_.engine.c_str(), summary_.version.c_str(),
                static_cast<unsigned long long>(c_.seed),
                static_cast<double>(summary_.to - began_) / 1e9);
    for (auto const& [what, n] : judge_.counts()) {
      if (what.ends_with("granted") || what.ends_with("enqueued") || what == "run" ||
          what == "tick" || what == "completed") {
        std::printf(" %s %llu,", what.c_str(), static_cast<unsigned long long>(n));
      }
    }
    std::printf(" %zu faults", summary_.faults.size());
    if (summary_.kills != 0) std::printf(", %zu kills beside them", summary_.kills);
    std::printf("\n");
    if (!c_.defect.empty()) {
      if (found_ == 0 && is_over()) found_ = boot_now();
      std::string by;
      for (auto const& f : found) {
        if (by.find(f.promise) == by.npos) by += (by.empty() ? "" : ", ") + f.promise;
      }
      auto const after = static_cast<double>((is_over() ? found_ : boot_now()) - began_) / 1e9;
      std::printf("%s: %s after %.1f s, by %s\n", c_.defect.c_str(),
                  is_over() ? "found" : "NOT FOUND", after, by.empty() ? "nothing" : by.c_str());
      return is_over();
    }
    std::printf(found.empty() ? "every promise was kept\n" : "%zu promises were seen broken\n",
                found.size());
    return found.empty();
  }

  choices c_;
  std::string directory_;
  weir::testing::dice chance_;
  std::unique_ptr<target> to_;
  network net_;
  auditor judge_{precision_of(c_.engine)};
  family all_;
  std::vector<fault> faults_{};
  std::vector<std::size_t> deck_{};
  run_summary summary_{};
  std::chrono::seconds furthest_{};
  std::int64_t began_ = 0;
  std::int64_t checked_ = 0;
  std::size_t told_ = 0;
  std::uint64_t server_ = 0;
  std::int64_t found_ = 0;
  bool server_told_ = false;
};

int lead(choices const& c) {
  weir_test::directory const place;
  auto const directory = place.path().string();
  if (!c.only.empty()) {
    bool ok = true;
    bool any = false;
    for (auto const& s : scenarios()) {
      bool const wanted =
          c.only == "all" || c.only == s.name || (c.only == "counted" && !s.is_timed);
      if (!wanted) continue;
      any = true;
      auto const own = directory + "/" + std::string{s.name};
      std::filesystem::create_directory(own);
      weir::testing::dice chance{c.seed};
      wish w{.name = c.engine, .url = c.url, .directory = own, .chance = [&] {
               return chance.bits();
             }};
      ok = play_alone(s, std::move(w), c.seed, c.defect) && ok;
    }
    if (!any) throw std::runtime_error{"no scenario is called " + c.only};
    return ok ? 0 : 1;
  }
  bool const ok = soak_run{c, directory}.play();
  if (!ok || c.keep) {
    auto const kept = c.output + "/soak-" + c.engine + "-" + std::to_string(c.seed);
    std::filesystem::remove_all(kept);
    std::filesystem::create_directories(kept);
    for (auto const& file : std::filesystem::directory_iterator{directory}) {
      if (file.path().extension() == ".log") {
        std::filesystem::copy(file.path(), std::filesystem::path{kept} / file.path().filename());
      }
    }
    std::printf("what the witnesses wrote is in %s\n", kept.c_str());
  }
  return ok ? 0 : 1;
}

/// Plays several engines at once, each by a program of its own, and prints what they said one after
/// the other: all of them have more to wait for than to do.
int side_by_side(std::vector<std::string> const& engines, std::vector<std::string> options) {
  weir_test::directory const place;
  std::vector<::pid_t> playing;
  auto const log_of = [&](std::string const& engine) { return place.file(engine + ".log"); };
  for (auto const& engine : engines) {
    std::vector<char*> arguments{const_cast<char*>("weir_soak"), const_cast<char*>(engine.c_str())};
    for (auto& o : options) arguments.push_back(o.data());
    arguments.push_back(nullptr);
    auto const pid = ::fork();
    if (pid < 0) throw std::system_error{errno, std::generic_category(), "fork"};
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      int const log = ::open(log_of(engine).c_str(), O_WRONLY | O_CREAT, 0600);
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
      ::execv("/proc/self/exe", arguments.data());
      ::_exit(127);
    }
    playing.push_back(pid);
  }
  int worst = 0;
  for (std::size_t i = 0; i != engines.size(); ++i) {
    int status = 0;
    ::waitpid(playing[i], &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 2);
    std::printf("---- %s\n", engines[i].c_str());
    std::ifstream in{log_of(engines[i])};
    for (std::string line; std::getline(in, line);) std::printf("%s\n", line.c_str());
  }
  return worst;
}

int list() {
  std::printf("scenarios (--only):\n");
  for (auto const& s : scenarios()) {
    std::printf("  %-16s %-9s %s\n", std::string{s.name}.c_str(), std::string{s.failures}.c_str(),
                std::string{s.what}.c_str());
  }
  std::printf("defects (--defect):\n");
  for (auto const& d : defects()) {
    auto const shows = d.scenario.empty() ? d.promise : d.scenario;
    std::printf("  %-22s %-9s %-4s %s\n", std::string{d.name}.c_str(), std::string{shows}.c_str(),
                std::string{d.failure}.c_str(), std::string{d.what}.c_str());
  }
  return 0;
}

int run(std::vector<std::string> const& words) {
  choices c;
  assignment a;
  std::vector<std::string> engines;
  std::vector<std::string> options;
  std::map<std::string, std::string*> const texts{
      {"--url", &c.url},       {"--only", &c.only},        {"--defect", &c.defect},
      {"--output", &c.output}, {"--beside", &c.beside},    {"--child", &a.role},
      {"--log", &a.log},       {"--prefix", &a.at.prefix}, {"--scenario", &a.scenario},
      {"--jobs", &a.jobs}};
  for (std::size_t i = 0; i != words.size(); ++i) {
    auto const& word = words[i];
    if (word == "--list" || word == "--help") return list();
    if (word.starts_with("--")) options.push_back(word);
    if (word == "--keep") {
      c.keep = true;
    } else if (word == "--forgetful") {
      c.lasting = false;
    } else if (!word.starts_with("--")) {
      engines.push_back(word);
    } else {
      if (i + 1 == words.size()) throw std::runtime_error{word + " needs a value"};
      auto const& value = words[++i];
      options.push_back(value);
      if (word == "--minutes") {
        c.minutes = std::stod(value);
      } else if (word == "--kill-every") {
        c.kill_every = std::stod(value);
      } else if (word == "--seed") {
        c.seed = a.seed = std::stoull(value);
      } else if (word == "--max-bytes") {
        a.at.max_bytes = std::stoull(value);
      } else if (word == "--shards") {
        a.at.shards = static_cast<std::uint32_t>(std::stoul(value));
      } else if (word == "--replicas") {
        a.at.replicas = static_cast<std::uint32_t>(std::stoul(value));
      } else if (word == "--fault") {
        c.faults.push_back(value);
      } else if (auto const t = texts.find(word); t != texts.end()) {
        *t->second = value;
      } else {
        throw std::runtime_error{"unknown option " + word};
      }
    }
  }
  if (!a.role.empty()) {
    a.at.url = c.url;
    a.defect = c.defect;
    return play(a);
  }
  if (engines.size() > 1) return side_by_side(engines, std::move(options));
  if (!engines.empty()) c.engine = engines.front();
  if (!c.defect.empty() &&
      std::ranges::find(defects(), c.defect, &known_defect::name) == defects().end()) {
    throw std::runtime_error{"no defect is called " + c.defect};
  }
  if (!c.url.empty()) {
    c.engine = c.url.substr(0, c.url.find(':'));
    if (c.engine == "postgresql") c.engine = "postgres";
  }
  if (!c.defect.empty() && c.only.empty()) {
    c.only = std::ranges::find(defects(), c.defect, &known_defect::name)->scenario;
  }
  return lead(c);
}

}  // namespace
}  // namespace soak

int main(int argc, char** argv) try {
  return soak::run({argv + 1, argv + argc});
} catch (std::exception const& e) {
  std::fprintf(stderr, "weir_soak: %s\n", e.what());
  return 2;
}
