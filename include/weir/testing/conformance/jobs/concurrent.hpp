// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_CONCURRENT_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_CONCURRENT_HPP

#include "weir/command/jobs.hpp"
#include "weir/testing/arena.hpp"
#include "weir/testing/conformance/jobs/objects.hpp"
#include "weir/testing/conformance/jobs/steps.hpp"
#include "weir/testing/dice.hpp"
#include "weir/testing/linearizability.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing::conformance {

/// What several clients saw of the jobs of one queue.
struct job_records {
  static constexpr std::uint32_t keys = 2;

  std::map<std::uint32_t, std::vector<recorded<job_event>>> jobs;
  std::array<std::vector<recorded<key_event>>, keys> by_key;

  void add(job_records const& other) {
    for (auto const& [n, events] : other.jobs) {
      jobs[n].insert(jobs[n].end(), events.begin(), events.end());
    }
    for (std::uint32_t k = 0; k < keys; ++k) {
      by_key[k].insert(by_key[k].end(), other.by_key[k].begin(), other.by_key[k].end());
    }
  }
};

[[nodiscard]] inline std::uint32_t number_of(job_id const& id) noexcept {
  std::uint32_t n = 0;
  for (std::size_t i = 12; i < 16; ++i) n = n << 8U | id.data[i];
  return n;
}

/// Every third job has a unique key, of which there are few.
[[nodiscard]] constexpr bool has_key(std::uint32_t number) noexcept { return number % 3 == 0; }
[[nodiscard]] constexpr std::uint32_t key_of(std::uint32_t number) noexcept {
  return number / 3 % job_records::keys;
}

/// Produces and consumes jobs of one queue, and interferes with those of others.
class job_client final : public arena<job_commands>::client {
 public:
  static constexpr std::string_view queue = "queue";
  static constexpr std::uint32_t most = 10'000;  // jobs of one client

  job_client(arena<job_commands>& in, std::uint32_t number, std::size_t operations, dice d)
      : client{in},
        first_{number * most},
        clients_{number},
        name_{"holder" + std::to_string(number)},
        left_{operations},
        dice_{d} {}

  [[nodiscard]] job_records const& seen() const noexcept { return seen_; }

  /// What went wrong although nothing should have; empty: nothing.
  [[nodiscard]] std::string const& failure() const noexcept { return failure_; }

  bool next() override {
    if (left_ == 0) return false;
    --left_;
    auto const choice = dice_.below(100);
    if (choice < 25) {
      enqueue();
    } else if (choice < 45 || held_.empty()) {
      dequeue();
    } else if (choice < 50) {
      cancel(random_job(), dice_.chance(50));
    } else if (choice < 53) {
      replay(random_job());
    } else {
      finish();
    }
    return true;
  }

 private:
  struct lease {
    std::uint32_t number;
    std::uint64_t fence;
  };
  using kind = job_event::kind;

  [[nodiscard]] std::uint32_t random_job() noexcept {
    auto const whose = static_cast<std::uint32_t>(1 + dice_.below(clients_ + 1));
    return whose * most + static_cast<std::uint32_t>(dice_.below(made_ + 1));
  }

  template <class Answer>
  bool failed(Answer const& a) {
    if (a.has_error() && failure_.empty()) failure_ = "a command failed: " + a.error().message();
    return a.has_error();
  }
  template <class Answer>
  bool failed(Answer const& a, std::size_t outcomes) {
    if (failed(a)) return true;
    if (a->size() != outcomes && failure_.empty()) failure_ = "an outcome is missing";
    return a->size() != outcomes;
  }

  void note(std::uint32_t number, job_event const& e, std::uint64_t invoked,
            std::uint64_t returned) {
    seen_.jobs[number].push_back({e, invoked, returned});
    bool const ends = e.done && (e.what == kind::bury || e.what == kind::cancel ||
                                 e.what == kind::cancel_running || e.what == kind::complete);
    if (ends && has_key(number))
      seen_.by_key[key_of(number)].push_back(
          {{key_event::kind::end, number, {}, 0}, invoked, returned});
  }

  void enqueue() {
    auto const number = first_ + made_++;
    job_ = make_job(number);
    job_.max_attempts = 1000;
    job_.retention = job_bench::lasting;
    job_.priority = dice_.chance(20) ? 0 : 100;
    if (has_key(number)) {
      key_ = "key" + std::to_string(key_of(number));
      job_.unique_key = key_;
      job_.strategy = unique_strategy::until_executed;
      job_.on_conflict = dice_.chance(50) ? conflict_policy::replace : conflict_policy::discard;
    }
    ask(command::enqueue_jobs{queue, std::span{&job_, 1}},
        [this, number](auto const& a, std::uint64_t invoked, std::uint64_t returned) {
          if (failed(a, 1)) return;
          auto const& got = a->front();
          auto const other = got.other.is_nil() ? 0 : number_of(got.other);
          bool const added =
              got.outcome == enqueue_outcome::enqueued || got.outcome == enqueue_outcome::replaced;
          if (added) note(number, {.what = kind::enqueue, .done = true}, invoked, returned);
          if (got.outcome == enqueue_outcome::replaced) {
            seen_.jobs[other].push_back(
                {{.what = kind::replaced, .done = true}, invoked, returned});
          }
          if (has_key(number)) {
            seen_.by_key[key_of(number)].push_back(
                {{key_event::kind::enqueue, number, got.outcome, other}, invoked, returned});
          }
        });
  }

  void dequeue() {
    auto const limit = static_cast<std::uint32_t>(1 + dice_.below(3));
    ask(command::dequeue_jobs{queue, name_, ++sequence_, limit, job_bench::lasting},
        [this](auto const& a, std::uint64_t invoked, std::uint64_t returned) {
          if (failed(a)) return;
          for (auto const& j : a->jobs) {
            auto const n = number_of(j.id);
            note(n, {.what = kind::lease, .fence = j.fence, .done = true, .attempts = j.attempt},
                 invoked, returned);
            held_.push_back({n, j.fence});
          }
        });
  }

  void cancel(std::uint32_t number, bool running) {
    auto const what = running ? kind::cancel_running : kind::cancel;
    ask(command::cancel_job{queue, numbered_job(number), running},
        [this, number, what](auto const& a, std::uint64_t invoked, std::uint64_t returned) {
          if (failed(a)) return;
          note(number, {.what = what, .done = *a == cancel_outcome::cancelled}, invoked, returned);
        });
  }

  void replay(std::uint32_t number) {
    if (has_key(number)) ++number;
    ask(command::replay_dead_letter{queue, numbered_job(number), {}},
        [this, number](auto const& a, std::uint64_t invoked, std::uint64_t returned) {
          if (failed(a)) return;
          note(number, {.what = kind::replay, .done = a->outcome == replay_outcome::replayed},
               invoked, returned);
        });
  }

  /// Ends or extends one of the leases that this client has or had.
  void finish() {
    auto const i = dice_.below(held_.size());
    auto const l = held_[i];
    auto const id = numbered_job(l.number);
    auto const choice = dice_.below(7);
    // Now and then a lease is used again after it was ended.
    if (choice > 0 && dice_.chance(85)) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    switch (choice) {
      case 0:
        leased(command::extend_lease{queue, id, l.fence, job_bench::lasting}, kind::extend, l);
        break;
      case 1: leased(command::requeue_job{queue, id, l.fence, {}, {}}, kind::requeue, l); break;
      case 2: leased(command::snooze_job{queue, id, l.fence, {}, {}}, kind::snooze, l); break;
      case 3: leased(command::return_job{queue, id, l.fence}, kind::give_back, l); break;
      case 4: leased(command::bury_job{queue, id, l.fence, "reason"}, kind::bury, l); break;
      default:
        finished_ = {id, l.fence, {}};
        ask(command::complete_jobs{queue, std::span{&finished_, 1}},
            [this, l](auto const& a, std::uint64_t invoked, std::uint64_t returned) {
              if (failed(a, 1)) return;
              bool const done = a->front() == complete_outcome::completed;
              note(l.number, {.what = kind::complete, .fence = l.fence, .done = done}, invoked,
                   returned);
            });
    }
  }

  template <class C>
  void leased(C const& c, kind what, lease l) {
    ask(c, [this, what, l](auto const& a, std::uint64_t invoked, std::uint64_t returned) {
      if ((a.has_value() || a.error() != errc::lease_lost) && failed(a)) return;
      note(l.number, {.what = what, .fence = l.fence, .done = a.has_value()}, invoked, returned);
    });
  }

  std::uint32_t first_;
  std::uint64_t clients_;
  std::string name_;
  std::size_t left_;
  dice dice_;
  std::uint32_t made_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<lease> held_;
  new_job job_;
  std::string key_;
  finished_job finished_;
  job_records seen_;
  std::string failure_;
};

/// The end of each job once. Of several who were told that it had ended, one ended it: not before
/// the first of them asked, and not after the first of them was answered. A job that was replaced
/// had ended by that.
inline std::vector<recorded<key_event>> with_one_end_each(
    std::vector<recorded<key_event>> const& events) {
  std::vector<recorded<key_event>> out;
  std::map<std::uint32_t, recorded<key_event>> ends;
  for (auto const& e : events) {
    if (e.event.what != key_event::kind::end) {
      out.push_back(e);
      continue;
    }
    auto& end = ends.try_emplace(e.event.job, e).first->second;
    end.invoked = std::min(end.invoked, e.invoked);
    end.returned = std::min(end.returned, e.returned);
  }
  for (auto const& e : out) {
    if (e.event.outcome == enqueue_outcome::replaced) ends.erase(e.event.other);
  }
  for (auto const& [job, end] : ends) out.push_back(end);
  return out;
}

inline void queues_conserve_jobs(job_bench& b, std::uint64_t seed) {
  arena<job_commands> in{b};
  dice d{seed};
  std::vector<std::shared_ptr<job_client>> clients;
  for (std::uint32_t i = 1; i <= b.settings().clients; ++i) {
    clients.push_back(std::make_shared<job_client>(in, i, b.settings().operations, d.fork()));
  }
  in.run({clients.begin(), clients.end()});
  job_records all;
  for (auto const& c : clients) {
    expect(c->failure().empty(), c->failure());
    all.add(c->seen());
  }

  constexpr auto at_the_end = std::uint64_t{1} << 40U;
  std::uint64_t enqueued = 0;
  for (auto& [number, events] : all.jobs) {
    bool const added = std::any_of(events.begin(), events.end(), [](auto const& e) {
      return e.event.what == job_event::kind::enqueue;
    });
    enqueued += added ? 1U : 0U;
    auto const found = find(b, job_client::queue, number);
    job_event last{.what = job_event::kind::find, .done = found.has_value()};
    if (found) {
      last.state = found->state;
      last.attempts = found->attempts;
    }
    events.push_back({last, at_the_end, at_the_end + 1});
    expect_order<job_object>(events, "job " + std::to_string(number));
  }
  for (std::uint32_t k = 0; k < job_records::keys; ++k) {
    expect_order<key_object>(with_one_end_each(all.by_key[k]), "unique key " + std::to_string(k));
  }
  auto const s = stats(b, job_client::queue);
  expect(s.enqueued == enqueued,
         std::to_string(enqueued) + " jobs were enqueued, but the store says: " + to_text(s));
  for (auto const& [number, events] : all.jobs)
    b.must(command::cancel_job{job_client::queue, numbered_job(number), true});
  auto const end = stats(b, job_client::queue);
  expect(end.pending + end.leased == 0, "every job has been heard of; got " + to_text(end));
}

inline void job_concurrency(factory<job_commands> const& f, report& out, settings const& s) {
  check_concurrency(f,
                    {"jobs", "F17", "concurrent commands lose no job, and lease and end each once"},
                    &queues_conserve_jobs, out, s);
}

}  // namespace weir::testing::conformance

#endif
