// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/table/job_image.hpp"

#include "jobs_bed.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/testing/fields.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// A shard that is kept as a log of its commands, and images of what came before them.

namespace {

using namespace test;
using detail::compact_reader;
using detail::compact_writer;
using detail::job_image;
using detail::job_shard;
using detail::nats_batch_reader;
using detail::nats_batch_writer;

/// A shard with room for everything, and few queues remembered, so that some are forgotten.
class replica {
 public:
  job_shard& operator*() noexcept { return shard_; }

  [[nodiscard]] std::string image() const {
    std::string out;
    compact_writer to{out};
    job_image::save(shard_, to);
    return out;
  }
  [[nodiscard]] bool load(std::string_view bytes) {
    compact_reader from{bytes};
    return job_image::load(shard_, from) && from.complete();
  }
  [[nodiscard]] std::size_t free() const noexcept { return budget_.left(); }

 private:
  detail::job_budget budget_{std::numeric_limits<std::size_t>::max() / 2};
  job_shard shard_{detail::job_allowance{budget_, 1, 1}, 2};
};

/// One shard is told commands; another one reads them from messages, and begins again from an image
/// of the first one every now and then. Both have to answer the same, and to be the same.
class history {
 public:
  explicit history(std::uint32_t seed) : random_{seed} {}

  void run(int steps) {
    for (int i = 0; i != steps; ++i) {
      if (below(3) != 0) now_ += std::chrono::milliseconds{below(4000)};
      if (below(40) == 0) now_ -= 2s;  // the server's clock was set
      step();
      BOOST_TEST_REQUIRE(replica_->image() == told_.image());
      BOOST_TEST_REQUIRE(replica_->free() == told_.free());
      if (below(10) == 0) begin_again();
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  duration seconds(std::uint32_t least, std::uint32_t most) {
    return std::chrono::seconds{least + below(most - least + 1)};
  }

  void begin_again() {
    auto const image = told_.image();
    replica_ = std::make_unique<replica>();
    BOOST_TEST_REQUIRE(replica_->load(image));
    BOOST_TEST_REQUIRE(replica_->image() == image);
  }

  template <class C>
  auto both(C const& c) {
    BOOST_TEST_REQUIRE(!rule::validate(c));
    auto const answer = (*told_).apply(c, now_);
    nats_batch_writer writer{{}};
    writer.add(c, below(2) == 0 ? std::optional{now_} : std::nullopt);
    auto const message = std::move(writer).take();
    nats_batch_reader reader{message};
    int commands = 0;
    BOOST_TEST_REQUIRE(reader.for_each([&](auto const& read, std::optional<time_point> at) {
      ++commands;
      auto const other = (**replica_).apply(read, at.value_or(now_));
      if constexpr (std::is_same_v<std::decay_t<decltype(other)>, std::decay_t<decltype(answer)>>) {
        BOOST_TEST(testing::to_text(testing::fields_of(other)) ==
                   testing::to_text(testing::fields_of(answer)));
      }
    }));
    BOOST_TEST(commands == 1);
    return answer;
  }

  void note(std::string_view queue, job_id const& id, std::uint64_t fence) {
    leases_.emplace_back(queue, id, fence);
    if (leases_.size() > 12) leases_.pop_front();
  }

  new_job newcomer() {
    static constexpr std::array<std::string_view, 3> keys{"a", "b", "c"};
    auto j = make_job(below(4) == 0 ? 1 + below(next_id_) : next_id_++);
    j.priority = static_cast<std::uint8_t>(below(3));
    j.delay = seconds(0, 6);
    j.max_attempts = 1 + below(3);
    if (below(3) == 0) j.deadline = seconds(1, 20);
    if (below(2) == 0) j.retention = seconds(1, 20);
    j.strategy = static_cast<unique_strategy>(below(6));
    j.on_conflict = static_cast<conflict_policy>(below(5));
    if (j.strategy != unique_strategy::none) j.unique_key = keys[below(3)];
    if (j.strategy == unique_strategy::until_expired) j.unique_ttl = seconds(1, 30);
    if (below(3) == 0) j.headers = "headers";
    return j;
  }

  void step() {
    static constexpr std::array<std::string_view, 4> queues{"mail", "reports", "z", "q"};
    static constexpr std::array<std::string_view, 3> holders{"ann", "bob", "eve"};
    auto const queue = queues[below(4)];
    auto const holder = holders[below(3)];
    auto const id = id_of(1 + below(next_id_));
    auto const& [home, leased, fence] =
        leases_.empty() ? nothing_ : leases_[below(static_cast<std::uint32_t>(leases_.size()))];
    switch (below(26)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        std::vector<new_job> jobs;
        for (auto n = 1 + below(3); n != 0; --n) jobs.push_back(newcomer());
        both(command::enqueue_jobs{.queue = queue, .jobs = jobs});
        break;
      }
      case 4:
      case 5:
      case 6:
      case 7: {
        auto const got = both(command::dequeue_jobs{.queue = queue,
                                                    .holder = holder,
                                                    .sequence = below(4),
                                                    .limit = 1 + below(3),
                                                    .lease = seconds(1, 10)});
        for (auto const& j : got.value().jobs) note(queue, j.id, j.fence);
        break;
      }
      case 8: {
        auto const got = both(command::obtain_lease{queue, id, holder, seconds(1, 10)});
        if (got.value()) note(queue, id, got.value()->fence);
        break;
      }
      case 9:
        both(command::extend_lease{home, leased, fence, seconds(1, 10), below(2) == 0 ? "1/2" : "",
                                   below(3) == 0 ? "as far as here" : ""});
        break;
      case 10:
      case 11: both(command::start_job{home, leased, fence}); break;
      case 12:
      case 13: {
        finished_job const f{leased, fence, "result"};
        both(command::complete_jobs{home, {&f, 1}});
        break;
      }
      case 14: both(command::requeue_job{home, leased, fence, seconds(0, 5), "why"}); break;
      case 15: both(command::snooze_job{home, leased, fence, seconds(0, 5), "memo"}); break;
      case 16: both(command::return_job{home, leased, fence}); break;
      case 17: both(command::bury_job{home, leased, fence, "r"}); break;
      case 18: both(command::cancel_job{queue, id, below(2) == 0}); break;
      case 19: both(command::replay_dead_letter{queue, id, seconds(0, 5)}); break;
      case 20: both(command::purge_job{queue, id}); break;
      case 21: both(command::update_queue_pointer{queue}); break;
      case 22: both(command::gc_stale_pointers{0, 1 + below(3), seconds(0, 5)}); break;
      case 23: both(command::obtain_queue_lease{queue, holder, seconds(1, 5)}); break;
      case 24: both(command::release_queue_lease{queue, holder, 0}); break;
      default:
        switch (below(4)) {
          case 0: both(command::pause_queue{queue}); break;
          case 1: both(command::snooze_queue{queue, seconds(0, 5)}); break;
          default: both(command::resume_queue{queue});
        }
    }
  }

  std::mt19937 random_;
  replica told_;
  std::unique_ptr<replica> replica_ = std::make_unique<replica>();
  time_point now_{1'800'000'000s};
  std::uint32_t next_id_ = 1;
  std::tuple<std::string_view, job_id, std::uint64_t> const nothing_{"mail", id_of(1), 1};
  std::deque<std::tuple<std::string_view, job_id, std::uint64_t>> leases_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(job_image_and_log)

BOOST_AUTO_TEST_CASE(a_shard_is_what_its_image_and_the_log_since_make_of_it) {
  for (std::uint32_t seed = 0; seed != 60; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) { history{seed}.run(250); }
  }
}

BOOST_AUTO_TEST_CASE(an_image_that_was_cut_is_refused) {
  replica full;
  auto j = unique_job(1, unique_strategy::until_and_while_executing);
  (void)(*full).apply(command::enqueue_jobs{.queue = "q", .jobs = {&j, 1}}, time_point{1s});
  auto const got =
      (*full).apply(command::dequeue_jobs{.queue = "q", .holder = "h", .sequence = 1, .lease = 1h},
                    time_point{1s});
  (void)(*full).apply(command::start_job{"q", j.id, got.value().jobs.front().fence},
                      time_point{1s});
  auto const image = full.image();
  for (std::size_t n = 0; n != image.size(); ++n) {
    replica cut;
    BOOST_TEST(!cut.load(std::string_view{image}.substr(0, n)));
  }
  replica longer;
  BOOST_TEST(!longer.load(image + '\0'));
}

BOOST_AUTO_TEST_CASE(a_message_is_known_by_its_sender_and_number) {
  nats_batch_writer writer{{id_of(7), 300}, {}, 12'345};
  auto const message = std::move(writer).take();
  nats_batch_reader reader{message};
  BOOST_TEST((reader.what() == nats_batch_reader::kind::ours));
  BOOST_TEST((reader.id() == detail::nats_batch_id{id_of(7), 300}));
  BOOST_TEST((reader.notice() == detail::nats_notice::image));
  BOOST_TEST(reader.image() == 12'345U);
  BOOST_TEST(reader.for_each([](auto const&, auto) { BOOST_TEST(false); }));
}

BOOST_AUTO_TEST_CASE(damaged_messages_are_told_from_those_of_later_versions) {
  using kind = nats_batch_reader::kind;
  auto const what = [](std::string_view bytes) { return nats_batch_reader{bytes}.what(); };
  BOOST_TEST((what("") == kind::damaged));
  BOOST_TEST((what("hello") == kind::damaged));
  BOOST_TEST((what("weir:j") == kind::damaged));
  BOOST_TEST((what("weir:j\x01") == kind::damaged));
  BOOST_TEST((what("weir:j\x02 whatever that has") == kind::damaged));
  auto later = detail::nats_log_message("whatever that has", detail::nats_log_version + 1);
  BOOST_TEST((what(later) == kind::later));
  later.back() ^= 1;
  BOOST_TEST((what(later) == kind::damaged));
}

BOOST_AUTO_TEST_CASE(a_message_has_no_more_than_fits_and_nothing_of_what_was_cut_off) {
  auto const j = make_job(1);
  command::enqueue_jobs const first{"q", {&j, 1}};
  nats_batch_writer one{{id_of(7), 1}};
  one.add(first, std::nullopt);
  nats_batch_writer two{{id_of(7), 1}};
  two.add(first, std::nullopt);
  auto const before = two.size();
  two.add(first, std::nullopt);
  BOOST_TEST(!two.fits(before + 20));
  two.cut(before);
  auto message = std::move(two).take();
  BOOST_TEST((message == std::move(one).take()));
  message.back() ^= 1;
  BOOST_TEST((nats_batch_reader{message}.what() == nats_batch_reader::kind::damaged));
}

BOOST_AUTO_TEST_CASE(R4_jobs_do_not_get_the_headers_of_those_of_an_earlier_command) {
  auto carrying = make_job(1);
  carrying.headers = "1:a,1:b,";
  auto const plain = make_job(2);
  command::relay_job relay{.queue = "q", .id = carrying.id, .fence = 3, .to = "r"};
  relay.next = relay.jobs = {&carrying, 1};
  auto plain_relay = relay;
  plain_relay.next = plain_relay.jobs = {&plain, 1};
  nats_batch_writer writer{{id_of(7), 1}};
  writer.add(relay, std::nullopt);
  writer.add(command::enqueue_jobs{"q", {&plain, 1}}, std::nullopt);
  writer.add(plain_relay, std::nullopt);
  auto const message = std::move(writer).take();
  std::vector<std::string> headers;
  nats_batch_reader reader{message};
  BOOST_TEST(reader.for_each([&](auto const& c, auto) {
    if constexpr (requires { c.jobs[0].headers; }) headers.emplace_back(c.jobs[0].headers);
    if constexpr (requires { c.next[0].headers; }) headers.emplace_back(c.next[0].headers);
  }));
  BOOST_TEST((headers == std::vector<std::string>{"1:a,1:b,", "1:a,1:b,", "", "", ""}));
}

BOOST_AUTO_TEST_CASE(a_damaged_message_ends_where_it_is_damaged) {
  nats_batch_writer writer{{id_of(7), 1}};
  writer.add(command::pause_queue{"q"}, std::nullopt);
  constexpr auto head = detail::nats_log_tag.size() + 1 + sizeof(std::uint64_t);
  auto const whole = std::move(writer).take();
  auto const message = detail::nats_log_message(whole.substr(head) + "\x7f rest");
  int commands = 0;
  nats_batch_reader reader{message};
  BOOST_TEST(!reader.for_each([&](auto const&, auto) { ++commands; }));
  BOOST_TEST(commands == 1);
}

BOOST_AUTO_TEST_CASE(what_the_rule_does_not_allow_is_not_executed) {
  nats_batch_writer writer{{id_of(7), 1}};
  writer.add(command::pause_queue{""}, std::nullopt);
  auto const message = std::move(writer).take();
  nats_batch_reader reader{message};
  BOOST_TEST(!reader.for_each([](auto const&, auto) { BOOST_TEST(false); }));
}

BOOST_AUTO_TEST_CASE(numbers_are_short_and_there_is_one_way_to_write_each) {
  for (std::int64_t n :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{63}, std::int64_t{-64}, std::int64_t{64},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    std::string bytes;
    compact_writer{bytes}(n);
    BOOST_TEST(bytes.size() == (n >= -64 && n < 64 ? 1U : n == 64 ? 2U : 10U));
    std::int64_t back = 5;
    compact_reader from{bytes};
    from(back);
    BOOST_TEST(from.complete());
    BOOST_TEST(back == n);
  }
  for (std::string_view const bytes :
       {std::string_view{"\x80\x00", 2},
        std::string_view{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"}, std::string_view{"\x80"}}) {
    std::uint64_t n = 0;
    compact_reader from{bytes};
    from(n);
    BOOST_TEST(!from.good());
  }
}

BOOST_AUTO_TEST_SUITE_END()
