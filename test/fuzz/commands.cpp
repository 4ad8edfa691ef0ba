// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Any commands with any values, on the memory store: bad input is the error that the rule names,
// and an error changes nothing (R8). Cursors, which are decoded, are among the values. After every
// step the counts of R4 hold.

#include "weir/testing/commands.hpp"

#include "input.hpp"
#include "weir/clock/manual.hpp"
#include "weir/command/at.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/fields.hpp"

#include <boost/asio/io_context.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using store_type = weir::basic_memory_store<weir::manual_clock>;
namespace command = weir::command;

/// What a command views besides its own values.
struct views {
  std::vector<weir::new_job> jobs;
  std::vector<weir::new_job> next;
  std::vector<weir::finished_job> finished;
  std::vector<weir::quota> quotas;
};

template <class C>
void fill_values(C& c, fuzz::input& in) {
  if constexpr (requires { c.key; }) c.key = in.text();
  if constexpr (requires { c.queue; }) c.queue = in.text();
  if constexpr (requires { c.kind; }) c.kind = in.text();
  if constexpr (requires { c.payload; }) c.payload = in.text();
  if constexpr (requires { c.unique_key; }) c.unique_key = in.text();
  if constexpr (requires { c.holder; }) c.holder = in.text();
  if constexpr (requires { c.reason; }) c.reason = in.text();
  if constexpr (requires { c.memo; }) c.memo = in.text();
  if constexpr (requires { c.headers; }) c.headers = in.text();
  if constexpr (requires { c.progress; }) c.progress = in.text();
  if constexpr (requires { c.checkpoint; }) c.checkpoint = in.text();
  if constexpr (requires { c.result.size(); }) c.result = in.text();
  if constexpr (requires { c.cursor; }) c.cursor = in.text();
  if constexpr (requires { c.expected; }) c.expected = in.text();
  if constexpr (requires { c.stored; }) c.stored = in.text();
  if constexpr (requires { c.to; }) c.to = in.text();
  if constexpr (requires { c.state; }) c.state = static_cast<weir::job_state>(in.below(5));
  if constexpr (requires { c.id; }) c.id = in.id();
  if constexpr (requires { c.fence; }) c.fence = in.number();
  if constexpr (requires { c.sequence; }) c.sequence = in.number();
  if constexpr (requires { c.entropy; }) c.entropy = in.number();
  if constexpr (requires { c.cost; }) c.cost = in.number();
  if constexpr (requires { c.limit; }) c.limit = in.number<decltype(c.limit)>();
  if constexpr (requires { c.shard; }) c.shard = in.number<decltype(c.shard)>();
  if constexpr (requires { c.max_attempts; }) c.max_attempts = in.number<std::uint32_t>();
  if constexpr (requires { c.priority; }) c.priority = in.byte();
  if constexpr (requires { c.running; }) c.running = in.flag();
  if constexpr (requires { c.ttl; }) c.ttl = in.span();
  if constexpr (requires { c.lease; }) c.lease = in.span();
  if constexpr (requires { c.delay; }) c.delay = in.span();
  if constexpr (requires { c.patience; }) c.patience = in.span();
  if constexpr (requires { c.max_wait; }) c.max_wait = in.span();
  if constexpr (requires { c.grace; }) c.grace = in.span();
  if constexpr (requires { c.unique_ttl; }) c.unique_ttl = in.span();
  if constexpr (requires { c.deadline; }) c.deadline = in.span();
  if constexpr (requires { c.retention; }) c.retention = in.span();
  if constexpr (requires { c.strategy; }) {
    c.strategy = static_cast<weir::unique_strategy>(in.below(6));
    c.on_conflict = static_cast<weir::conflict_policy>(in.below(5));
  }
  if constexpr (requires { c.mark; }) {
    for (auto& arrival : c.mark.arrival) arrival = in.number<std::int64_t>();
    for (auto& before : c.mark.before) before = in.number<std::int64_t>();
    for (auto& arrival : c.mark.arrival_high) arrival = in.number<std::int32_t>();
    for (auto& before : c.mark.before_high) before = in.number<std::int32_t>();
  }
}

template <class C>
void fill(C& c, fuzz::input& in, views& seen) {
  fill_values(c, in);
  if constexpr (requires { c.quotas; }) {
    for (auto left = in.below(6); left != 0; --left) {
      auto const tokens = in.number();
      auto const period = in.span();
      seen.quotas.push_back(weir::quota::per(tokens, period).burst(in.number()));
    }
    c.quotas = seen.quotas;
  }
  if constexpr (requires { c.next; }) {
    for (auto left = in.below(4); left != 0; --left) fill_values(seen.next.emplace_back(), in);
    c.next = seen.next;
  }
  if constexpr (std::is_same_v<C, command::enqueue_jobs> || std::is_same_v<C, command::relay_job>) {
    for (auto left = in.below(4); left != 0; --left) fill_values(seen.jobs.emplace_back(), in);
    c.jobs = seen.jobs;
  }
  if constexpr (std::is_same_v<C, command::complete_jobs>) {
    for (auto left = in.below(4); left != 0; --left) fill_values(seen.finished.emplace_back(), in);
    c.jobs = seen.finished;
  }
}

/// A store, and the keys that have been named.
class bed {
 public:
  explicit bed(fuzz::input& in) : in_{in} {}

  template <class C>
  void step() {
    views seen;
    C c;
    fill(c, in_, seen);
    if constexpr (!weir::testing::waits_for_event<C>) {
      auto const invalid = weir::rule::validate(c);
      auto const before = state_of(c);
      auto const answer = store_.execute(command::at<C>{c, now_});
      if (invalid) {
        fuzz::require(answer.has_error() && answer.error() == invalid, "bad input is its error");
      }
      if (answer.has_error()) {
        fuzz::require(state_of(c) == before, "an error changes nothing");
        fuzz::require(!answer.error().message().empty(), "and has a name");
      }
      if constexpr (requires { c.queue; }) check_counts(c.queue);
    }
  }

  void pass() {
    auto const d = in_.span();
    now_ = weir::saturating_add(now_, d);
  }

 private:
  template <class C>
  auto ask(C const& c) const {
    return store_.execute(command::at<C>{c, now_});
  }

  template <class C>
  void describe(std::string& out, C const& c) const {
    out += weir::testing::to_text(weir::testing::fields_of(ask(c))) + '\n';
  }

  /// All that can be seen of what a command may change.
  template <class C>
  [[nodiscard]] std::string state_of(C const& c) const {
    std::string out;
    if constexpr (requires { c.quotas; }) {
      describe(out, command::peek_bucket{c.key, c.quotas, 1, weir::limits::span});
    } else if constexpr (requires { c.key; }) {
      describe(out, command::inspect_permits{c.key, 100});
      describe(out, command::inspect_lock{c.key});
    }
    if constexpr (requires { c.to; }) describe(out, command::read_queue_stats{c.to});
    if constexpr (requires { c.queue; }) {
      describe(out, command::read_queue_stats{c.queue});
      describe(out, command::peek_jobs{c.queue, 100});
      describe(out, command::list_dead_letters{c.queue, 100, {}});
      for (std::uint8_t i = 1; i != 5; ++i) {
        weir::job_id id{};
        id.data[15] = i;
        describe(out, command::find_job{c.queue, id});
      }
    }
    describe(out, command::list_queues{0, 100, {}});
    describe(out, command::scan_visible_queues{0, 100, 0});
    return out;
  }

  void check_counts(std::string_view queue) const {
    auto const stats = ask(command::read_queue_stats{queue});
    if (stats.has_error()) return;
    auto const& s = stats.value();
    fuzz::require(s.enqueued ==
                      s.pending + s.leased + s.completed + s.dead + s.cancelled + s.purged,
                  "every job is in exactly one state");
  }

  fuzz::input& in_;
  boost::asio::io_context io_{1};
  weir::manual_clock clock_;
  store_type store_{io_.get_executor(), {}, clock_};
  weir::time_point now_ = clock_.system_now();
};

template <class... Commands>
void one_of(weir::testing::command_list<Commands...>, bed& in_bed, std::size_t which) {
  using step = void (bed::*)();
  constexpr std::array<step, sizeof...(Commands)> steps{&bed::step<Commands>...};
  (in_bed.*steps[which % steps.size()])();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  bed in_bed{in};
  for (int left = 64; left != 0 && !in.spent(); --left) {
    auto const noun = in.below(8);
    auto const which = in.byte();
    switch (noun) {
      case 0: one_of(weir::testing::permit_commands{}, in_bed, which); break;
      case 1: one_of(weir::testing::lock_commands{}, in_bed, which); break;
      case 2: one_of(weir::testing::bucket_commands{}, in_bed, which); break;
      case 3: in_bed.pass(); break;
      default: one_of(weir::testing::job_commands{}, in_bed, which);
    }
  }
  return 0;
}
