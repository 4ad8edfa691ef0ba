// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_CONFORMANCE_JOBS_HISTORIES_HPP
#define WEIR_TESTING_CONFORMANCE_JOBS_HISTORIES_HPP

#include "weir/command/jobs.hpp"
#include "weir/limits.hpp"
#include "weir/testing/checks.hpp"
#include "weir/testing/conformance/jobs/operations.hpp"
#include "weir/testing/fields.hpp"
#include "weir/testing/histories.hpp"
#include "weir/testing/leases.hpp"
#include "weir/testing/model/jobs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing::conformance {

/// Queues in generated histories: see `check_histories`.
class job_game {
 public:
  using op = job_op;

  static std::vector<op> generate(time_choices const& times, capabilities const& can,
                                  std::size_t steps, dice d) {
    return generate_job_ops(times, can, steps, d);
  }
  static std::vector<op> simpler(op const& o) { return simpler_job_ops(o); }

  job_game(bench<job_commands>& b, bool verbose) : duel_{b, verbose} {}

  [[nodiscard]] auto& duel() noexcept { return duel_; }

  void play(op const& o) {
    duel_.pass(o.after);
    duel_.model().now = duel_.store().now();
    queue_ = o.queue == 2 ? beside("queue0") : "queue" + std::to_string(o.queue);
    holder_ = "holder" + std::to_string(o.holder);
    switch (o.what) {
      case kind::enqueue: enqueue(o); break;
      case kind::dequeue:
        dequeue(o.count, o.time, ++sequences_[queue_ + holder_] * (o.flag ? 1 : 0));
        break;
      case kind::dequeue_again: dequeue_again(o); break;
      case kind::obtain:
        claim(command::obtain_lease{queue_, meant(o, job_state::pending), holder_, o.time, o.flag});
        break;
      case kind::extend:
        with_lease<command::extend_lease>(o, o.time, o.flag ? "1/2" : "",
                                          o.pick % 2 == 0 ? "as far as here" : "");
        break;
      case kind::start: with_lease<command::start_job>(o); break;
      case kind::complete: complete(o); break;
      case kind::requeue:
        with_lease<command::requeue_job>(o, o.time, reason(o, "it failed"));
        break;
      case kind::snooze: with_lease<command::snooze_job>(o, o.time, o.flag ? "a memo" : ""); break;
      case kind::give_back: with_lease<command::return_job>(o); break;
      case kind::bury: with_lease<command::bury_job>(o, reason(o, "it is hopeless")); break;
      case kind::cancel:
        same(command::cancel_job{queue_, meant(o, job_state::pending), o.flag});
        break;
      case kind::find: same(command::find_job{queue_, numbered_job(o.number)}); break;
      case kind::peek: same(command::peek_jobs{queue_, o.count}); break;
      case kind::min_vesting: same(command::min_vesting_time{queue_}); break;
      case kind::update_pointer: same(command::update_queue_pointer{queue_}); break;
      case kind::scan: scan(); break;
      case kind::collect: collect(o.time); break;
      case kind::take_queue:
        same(command::obtain_queue_lease{queue_, holder_, o.time}, queue_ + " itself");
        break;
      case kind::release_queue:
        same(command::release_queue_lease{queue_, holder_, 0}, queue_ + " itself");
        break;
      case kind::snooze_queue: same(command::snooze_queue{queue_, o.time, o.pick % 2 == 0}); break;
      case kind::pause: same(command::pause_queue{queue_}); break;
      case kind::resume: same(command::resume_queue{queue_}); break;
      case kind::stats: same(command::read_queue_stats{queue_}); break;
      case kind::dead_letters: dead_letters(o.count); break;
      case kind::replay:
        same(command::replay_dead_letter{queue_, meant(o, job_state::dead), o.time});
        break;
      case kind::purge: same(command::purge_job{queue_, meant(o, job_state::dead)}); break;
      case kind::relay: relay(o); break;
      case kind::list: list(o.count, static_cast<job_state>(o.pick % 5)); break;
    }
  }

 private:
  using kind = op::kind;

  /// Executes a command that names no fence.
  template <class C>
  std::pair<result<typename C::result>, result<typename C::result>> same(
      C const& c, std::string const& scope = {}) {
    return duel_.ask(c, c, scope.empty() ? queue_ : scope);
  }

  /// The job that is meant: one in this state, if there is one and it is to be such.
  [[nodiscard]] job_id meant(op const& o, job_state state) {
    std::vector<job_id> fit;
    auto const& model = duel_.model();
    for (auto const& j : model.jobs) {
      if (j.queue == queue_ && model.stands(j) && model.state(j) == state) fit.push_back(j.id);
    }
    if (o.any_job || fit.empty()) return numbered_job(o.number);
    return fit[o.pick % fit.size()];
  }

  /// By which fence the rule knows the job's lease.
  [[nodiscard]] std::uint64_t fence_of(op const& o, job_id const& id) {
    if (o.stale) return leases_.pick(queue_ + to_text(id), {}, which_lease::first);
    auto const* const j = duel_.model().find(queue_, id);
    return j == nullptr ? nobodys_fence : j->fence;
  }

  template <class C, class... Rest>
  void with_lease(op const& o, Rest const&... rest) {
    auto const id = meant(o, job_state::leased);
    auto const fence = fence_of(o, id);
    duel_.ask(C{queue_, id, fence, rest...},
              C{queue_, id, duel_.fences().of_store(queue_, fence), rest...}, queue_);
  }

  /// Now and then one that is too long, by a character of several bytes.
  [[nodiscard]] static std::string_view reason(op const& o, std::string_view usual) {
    static auto const long_one = std::string(limits::reason_size - 1, 'r') + "\xc3\xa9\xc3\xa9";
    return o.pick == 7 ? long_one : usual;
  }

  /// The job `i` of those that the operation makes.
  [[nodiscard]] static new_job make(op const& o, std::uint32_t i, std::string const& key) {
    new_job j;
    j.id = numbered_job(o.number + i);
    j.kind = "kind";
    j.payload = i == 0 ? "payload" : "";
    j.headers = i == 0 && o.flag ? "headers" : "";
    j.priority = o.priority;
    j.delay = o.time;
    j.max_attempts = o.max_attempts;
    j.deadline = o.deadline;
    j.retention = o.retention;
    if (i != 0) return j;  // the rest of a batch goes in whatever becomes of its first (F18)
    j.strategy = o.strategy;
    j.on_conflict = o.policy;
    if (o.strategy != unique_strategy::none) j.unique_key = key;
    if (o.strategy == unique_strategy::until_expired) j.unique_ttl = o.unique_ttl;
    return j;
  }

  void enqueue(op const& o) {
    std::string const key{"key" + std::to_string(o.key)};
    std::vector<new_job> jobs;
    for (std::uint32_t i = 0; i < o.count; ++i) jobs.push_back(make(o, i, key));
    same(command::enqueue_jobs{queue_, jobs});
  }

  /// One job comes after the one that ends, or one beside it, or both.
  void relay(op const& o) {
    std::string const key{"key" + std::to_string(o.key)};
    auto const to = queue_.starts_with(companion_prefix) ? queue_.substr(companion_prefix.size())
                                                         : beside(queue_);
    auto const id = meant(o, o.flag ? job_state::leased : job_state::pending);
    auto const* const j = duel_.model().find(queue_, id);
    auto const payload = j == nullptr || o.stale ? std::string{"another"} : j->payload;
    std::array all{make(o, 0, key), make(o, 1, key)};
    if (o.any_job) all[1].id = id;
    command::relay_job c{.queue = queue_, .id = id, .stored = o.pick % 2 == 0 ? "stored" : ""};
    if (o.count != 1) c.next = {&all[1], 1};
    if (o.count != 2) {
      c.to = to;
      c.jobs = {&all[0], 1};
    }
    auto of_store = c;
    if (o.flag) {
      c.fence = fence_of(o, id);
      of_store.fence = duel_.fences().of_store(queue_, c.fence);
    } else {
      c.expected = of_store.expected = payload;
    }
    duel_.ask(c, of_store, queue_);
  }

  template <class C>
  void claim(C const& c) {
    auto const answer = same(c).first;
    if (!answer.has_value()) return;
    if constexpr (std::is_same_v<C, command::dequeue_jobs>) {
      for (auto const& j : answer->jobs) leases_.add(queue_ + to_text(j.id), {}, j.fence);
    } else {
      if (*answer) leases_.add(queue_ + to_text((*answer)->id), {}, (*answer)->fence);
    }
  }

  void dequeue(std::uint32_t limit, duration lease, std::uint64_t sequence) {
    claim(command::dequeue_jobs{queue_, holder_, sequence, limit, lease});
  }

  /// Asks for the holder's last dequeue again, as long as some of its leases live: after that it is
  /// not said whether it is a new one.
  void dequeue_again(op const& o) {
    if (auto const last = duel_.model().last_dequeue(queue_, holder_)) {
      dequeue(o.count, o.time, last);
    }
  }

  void complete(op const& o) {
    auto const id = meant(o, job_state::leased);
    auto const fence = fence_of(o, id);
    finished_job const of_rule[] = {{id, fence, "done"},
                                    {numbered_job(o.number), nobodys_fence, {}}};
    finished_job of_store[] = {of_rule[0], of_rule[1]};
    of_store[0].fence = duel_.fences().of_store(queue_, fence);
    std::size_t const n = o.flag ? 2 : 1;
    duel_.ask(command::complete_jobs{queue_, std::span{of_rule, n}},
              command::complete_jobs{queue_, std::span{of_store, n}}, queue_);
  }

  /// A pointer is at most too early, so a scan may list more than it has to, but no queue that is
  /// held.
  void scan() {
    for (bool const schedules : {false, true}) scan(schedules);
  }
  void scan(bool schedules) {
    std::set<std::string> listed;
    std::optional<duration> next_in;
    auto& b = duel_.store();
    for (std::uint32_t shard = 0; shard < b.store().shard_count(); ++shard) {
      auto const answer = b.ask(command::scan_visible_queues{shard, 100, 0, schedules});
      if (!answer.has_value())
        return duel_.fail("scan_visible_queues failed: " + answer.error().message());
      for (auto const& q : answer->queues) {
        if (!listed.insert(q).second) return duel_.fail("a scan lists " + q + " twice");
        if (q.starts_with(companion_prefix) != schedules) {
          return duel_.fail("a scan of " + std::string{schedules ? "schedules" : "jobs"} +
                            " lists " + q);
        }
      }
      if (answer->next_in && (!next_in || *answer->next_in < *next_in)) next_in = answer->next_in;
    }
    auto& model = duel_.model();
    model.now = b.now();
    for (auto const& [name, q] : model.queues) {
      if (duel_.over()) return;
      if (name.starts_with(companion_prefix) != schedules) continue;
      bool const held = model.held(name);
      if (listed.contains(name)) {
        if (held) duel_.fail("a scan lists " + name + ", which is held");
      } else if (!held && !model.visible(name).empty()) {
        duel_.fail("a scan does not list " + name + ", which has a visible job");
      } else if (auto const head = model.head(name); head && !q.paused) {
        auto const due = std::max(*head, q.snoozed_until) - model.now;
        if (!next_in || *next_in > due + b.slack()) {
          duel_.fail("a scan says that the next queue is due in " +
                     (next_in ? to_text(*next_in) : "never") + ", but " + name + " is in " +
                     to_text(due));
        }
      }
    }
  }

  void collect(duration grace) {
    auto& b = duel_.store();
    for (std::uint32_t shard = 0; shard < b.store().shard_count(); ++shard) {
      auto const answer = b.ask(command::gc_stale_pointers{shard, 100, grace});
      if (!answer.has_value()) duel_.fail("gc_stale_pointers failed: " + answer.error().message());
    }
    scan();  // which nothing may be missing from now (F41)
  }

  void dead_letters(std::uint32_t limit) {
    pages(command::list_dead_letters{queue_, limit, {}}, [](auto&) {});
  }
  void list(std::uint32_t limit, job_state state) {
    pages(command::list_jobs{queue_, state, limit, {}},
          [](job_page& all) { std::ranges::sort(all.jobs, {}, &job::id); });
  }

  /// Reads all pages of a listing, puts them in order, and compares them.
  template <class C, class Order>
  void pages(C c, Order const& order) {
    auto const of_rule = duel_.model().execute(c, duel_.store().now());
    result<job_page> all = job_page{};
    std::string cursor;
    do {
      c.cursor = cursor;
      auto page = duel_.store().ask(c);
      if (page.has_error()) {
        all = page.error();
        break;
      }
      if (page->jobs.size() > c.limit) return duel_.fail("a page is longer than asked for");
      for (auto& j : page->jobs) all->jobs.push_back(std::move(j));
      cursor = page->cursor;
    } while (!cursor.empty() && all->jobs.size() <= of_rule->jobs.size());
    if (all.has_value()) order(*all);
    duel_.judge(c, of_rule, all, queue_);
  }

  testing::duel<job_commands, job_model> duel_;
  lease_book leases_;
  std::map<std::string, std::uint64_t> sequences_;
  std::string queue_;
  std::string holder_;
};

inline void job_histories(factory<job_commands> const& f, report& out, settings const& s) {
  topic const about{"jobs", "R4", "generated histories are answered as the rule answers them"};
  for (auto const t : times_of(f)) {
    if (finished(out, s)) return;
    check_histories<job_game>(f, t, about, out, s);
  }
}

}  // namespace weir::testing::conformance

#endif
