// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What of the jobs on NATS no client sees in an answer: what is written to the log and what is not,
// images that take its place, processes that fall behind, and who hears of what.

#include "nats_server.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;

constexpr duration lasting = 1h;

job_id id_of(std::uint32_t n) {
  job_id out{};
  for (std::size_t i = 0; i != 4; ++i)
    out.data[12 + i] = static_cast<std::uint8_t>(n >> (24 - 8 * i));
  return out;
}

new_job job_of(std::uint32_t n, std::string_view payload = "payload") {
  new_job j;
  j.id = id_of(n);
  j.kind = "kind";
  j.payload = payload;
  return j;
}

nats_options quick() {
  nats_options o;
  o.offline_patience = 20s;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 20ms;
  return o;
}

/// Images come often.
nats_options with_images() {
  auto o = quick();
  o.image_interval = 4096;
  return o;
}

template <class T>
bool fails_with(result<T> const& r, errc e) {
  return r.has_error() && r.error() == e;
}

/// Asks until there is an answer.
template <class C>
typename C::result insist(bed& on, C const& c) {
  static_assert(C::repeatable);
  for (;;) {
    auto r = on(c);
    if (r.has_value()) return std::move(r).value();
    BOOST_TEST_REQUIRE((r.error() == errc::outcome_unknown || r.error() == errc::store_unavailable),
                       r.error().message());
  }
}

error_code enqueue(bed& on, std::uint32_t n, std::string_view payload = "payload") {
  auto const j = job_of(n, payload);
  auto const r = on(command::enqueue_jobs{"queue", {&j, 1}});
  return r.has_error() ? r.error() : error_code{};
}
dequeued dequeue(bed& on, std::uint64_t sequence, std::uint32_t limit = 1) {
  return insist(on, command::dequeue_jobs{"queue", "me", sequence, limit, lasting});
}
void complete(bed& on, leased_job const& j) {
  finished_job const f{j.id, j.fence, {}};
  auto const r = insist(on, command::complete_jobs{"queue", {&f, 1}});
  BOOST_TEST((r.front() == complete_outcome::completed));
}
queue_stats stats(bed& on) { return insist(on, command::read_queue_stats{"queue"}); }

struct log_state {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};
log_state log_of(stranger& who) {
  auto const state = nlohmann::json::parse(who.ask("$JS.API.STREAM.INFO.weir-jobs-0"))["state"];
  return {state["first_seq"], state["last_seq"]};
}

/// Fills the log with commands that leave `jobs` of them, until it was cut.
void until_cut(bed& on, stranger& who, std::uint32_t& next) {
  auto const before = log_of(who).first;
  for (int i = 0; i != 2000; ++i) {
    BOOST_TEST_REQUIRE(!enqueue(on, next++));
    complete(on, dequeue(on, next).jobs.at(0));
    if (i % 8 == 0 && log_of(who).first > before) return;
  }
  BOOST_TEST_REQUIRE(false, "the log was never cut");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_jobs_on_servers)

BOOST_AUTO_TEST_CASE(what_finds_nothing_to_do_writes_nothing) {
  server s;
  bed on{s, quick()};
  BOOST_TEST(!enqueue(on, 1));
  stranger who{s};
  auto const before = log_of(who).last;
  BOOST_TEST(before == 1U);
  auto const held = dequeue(on, 1);
  BOOST_TEST(held.jobs.size() == 1U);
  (void)dequeue(on, 2);  // forgets what the first one was given
  auto const claimed = log_of(who).last;
  for (std::uint64_t i = 3; i != 20; ++i) {
    BOOST_TEST(dequeue(on, i).jobs.empty());
    (void)on(command::dequeue_jobs{"other", "me", i, 1, lasting});
    (void)on(command::scan_visible_queues{});
    (void)on(command::update_queue_pointer{"queue"});
    (void)on(command::gc_stale_pointers{});
    (void)on(command::peek_jobs{"queue"});
    (void)stats(on);
  }
  BOOST_TEST(log_of(who).last == claimed);
  BOOST_TEST(claimed > before);
}

BOOST_AUTO_TEST_CASE(commands_that_are_asked_for_together_go_in_few_messages) {
  server s;
  bed on{s, quick()};
  BOOST_TEST(!enqueue(on, 1));
  constexpr std::uint32_t many = 500;
  std::vector<new_job> jobs;
  for (std::uint32_t n = 0; n != many; ++n) jobs.push_back(job_of(2 + n));
  std::uint32_t done = 0;
  for (auto const& j : jobs) {
    on.store.async_execute(command::enqueue_jobs{"queue", {&j, 1}},
                           [&](error_code ec, auto const&) { done += ec ? 0U : 1U; });
  }
  on.io.restart();
  while (done != many) BOOST_TEST_REQUIRE(on.io.run_one_for(10s) == 1U);
  stranger who{s};
  BOOST_TEST(log_of(who).last < 50U);
  BOOST_TEST(stats(on).pending == many + 1);
}

BOOST_AUTO_TEST_CASE(F38_a_process_that_waits_hears_of_a_job_that_another_one_enqueues) {
  server s;
  bed one{s, quick()};
  bed other{s, quick()};
  BOOST_TEST(!enqueue(one, 1));
  complete(one, dequeue(one, 1).jobs.at(0));
  BOOST_TEST(stats(other).completed == 1U);  // it follows the log
  int hints = 0;
  other.store.async_execute(command::await_jobs{},
                            [&](error_code ec, hint) { hints += ec ? 0 : 1; });
  other.io.restart();
  other.io.poll();
  BOOST_TEST(hints == 0);
  BOOST_TEST(!enqueue(one, 2));
  other.io.restart();
  while (hints == 0) BOOST_TEST_REQUIRE(other.io.run_one_for(20s) == 1U, "nobody was told");
  // It knows without asking anybody.
  BOOST_TEST(dequeue(other, 1).jobs.size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_image_takes_the_place_of_the_log_and_a_new_process_begins_with_it) {
  server s;
  std::uint32_t next = 1000;
  bed on{s, with_images()};
  BOOST_TEST(!enqueue(on, 1, std::string(300'000, 'x')));  // an image of more than one part
  auto const kept = dequeue(on, 1);
  BOOST_TEST_REQUIRE(kept.jobs.size() == 1U);
  stranger who{s};
  until_cut(on, who, next);
  auto const before = stats(on);
  BOOST_TEST(before.leased == 1U);
  {
    bed fresh{s, with_images()};
    auto const after = stats(fresh);
    BOOST_TEST(after.enqueued == before.enqueued);
    BOOST_TEST(after.completed == before.completed);
    auto const found = fresh(command::find_job{"queue", id_of(1)}).value();
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(found->payload.size() == 300'000U);
    BOOST_TEST(found->fence == kept.jobs[0].fence);
    complete(fresh, kept.jobs[0]);
  }
  until_cut(on, who, next);
  BOOST_TEST(stats(on).leased == 0U);
  // Parts of images that were replaced are gone.
  auto const parts = nlohmann::json::parse(
      who.ask("$JS.API.STREAM.INFO.weir-keys", R"({"subjects_filter":"weir.k.jobs.0.part.>"})"));
  BOOST_TEST(parts["state"]["subjects"].size() <= 4U);
}

BOOST_AUTO_TEST_CASE(who_was_behind_when_the_log_was_cut_begins_again_with_the_image) {
  server s;
  std::uint32_t next = 1000;
  bed on{s, with_images()};
  bed late{s, with_images()};
  BOOST_TEST(!enqueue(on, 1));
  BOOST_TEST(stats(late).pending == 1U);
  complete(on, dequeue(on, 1).jobs.at(0));
  stranger who{s};
  for (int i = 0; i != 3; ++i) until_cut(on, who, next);  // the late one hears nothing of it
  auto const expected = stats(on);
  auto const found = stats(late);
  BOOST_TEST(found.enqueued == expected.enqueued);
  BOOST_TEST(found.completed == expected.completed);
  BOOST_TEST(!enqueue(late, 2));
  BOOST_TEST(stats(on).pending == 1U);
}

BOOST_AUTO_TEST_CASE(R4_what_was_acknowledged_survives_a_crash_of_the_server) {
  server s;
  bed on{s, with_images()};
  std::uint32_t next = 0;
  std::set<job_id> acknowledged;
  for (int round = 0; round != 3; ++round) {
    for (int i = 0; i != 100; ++i) {
      ++next;
      if (!enqueue(on, next)) acknowledged.insert(id_of(next));
    }
    s.kill();
    s.start();
  }
  std::set<job_id> seen;
  for (std::uint64_t n = 1; seen.size() < acknowledged.size(); ++n) {
    auto const got = dequeue(on, n, 100);
    BOOST_TEST_REQUIRE(!got.jobs.empty());
    for (auto const& j : got.jobs) {
      BOOST_TEST(seen.insert(j.id).second);
      complete(on, j);
    }
  }
  for (auto const& id : acknowledged) BOOST_TEST(seen.contains(id));
  auto const all = stats(on);
  BOOST_TEST(all.enqueued == all.completed + all.pending);
}

BOOST_AUTO_TEST_CASE(F47_a_log_whose_end_was_lost_and_written_anew_is_read_anew) {
  namespace fs = std::filesystem;
  server s;
  bed on{s, quick()};
  bed late{s, quick()};
  BOOST_TEST(!enqueue(on, 1));
  auto const all = s.directory() + "/js";
  auto const before = s.directory() + "/before";
  s.kill();
  fs::copy(all, before, fs::copy_options::recursive);
  s.start();
  for (std::uint32_t n = 2; n != 6; ++n) {
    while (enqueue(on, n)) {
    }
  }
  BOOST_TEST(stats(late).pending == 5U);
  s.kill();
  fs::remove_all(all);
  fs::copy(before, all, fs::copy_options::recursive);
  s.start();
  // As many others and more, before the late one looks again.
  for (std::uint32_t n = 100; n != 110; ++n) {
    while (enqueue(on, n)) {
    }
  }
  BOOST_TEST(stats(on).pending == 11U);
  BOOST_TEST(stats(late).pending == 11U);
  BOOST_TEST(!insist(late, command::find_job{"queue", id_of(2)}).has_value());
}

BOOST_AUTO_TEST_CASE(F46_a_log_that_is_full_is_a_typed_error_and_an_image_makes_room) {
  server s;
  auto o = quick();
  o.max_bytes = 200'000;
  o.image_interval = 1U << 30U;  // no other reason
  bed on{s, o};
  std::string const payload(1000, 'x');
  std::uint64_t fulls = 0;
  for (std::uint32_t n = 1; n != 1000 && fulls < 3; ++n) {
    auto const ec = enqueue(on, n, payload);
    if (ec) {
      BOOST_TEST(ec == errc::store_full);
      ++fulls;
      // The image is being written; then there is room.
      for (int i = 0; i != 200 && enqueue(on, n, payload); ++i) on.io.run_for(5ms);
    }
    auto const got = dequeue(on, n);
    if (!got.jobs.empty()) complete(on, got.jobs[0]);
  }
  BOOST_TEST(fulls == 3U);
  auto const all = stats(on);
  BOOST_TEST(all.enqueued == all.completed + all.pending + all.leased);
}

BOOST_AUTO_TEST_CASE(R8_a_shard_keeps_no_more_jobs_than_it_may) {
  server s;
  auto o = quick();
  o.max_jobs = 3;
  bed on{s, o};
  for (std::uint32_t n = 1; n != 4; ++n) BOOST_TEST(!enqueue(on, n));
  BOOST_TEST(enqueue(on, 4) == errc::store_full);
  BOOST_TEST(!enqueue(on, 3));  // it is there
  complete(on, dequeue(on, 1).jobs.at(0));
  BOOST_TEST(!enqueue(on, 4));
}

BOOST_AUTO_TEST_CASE(a_command_that_fits_into_no_message_is_a_typed_error) {
  server s;
  bed on{s, quick()};
  std::string const large(limits::payload_size, 'x');  // with the rest of the command it is too
                                                       // much
  BOOST_TEST(enqueue(on, 1, large) == errc::payload_too_large);
  BOOST_TEST(!enqueue(on, 1));
  BOOST_TEST(stats(on).pending == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_not_weirs_or_is_later_is_left_alone) {
  server s;
  {
    bed on{s, quick()};
    BOOST_TEST(!enqueue(on, 1));
    stranger who{s};
    who.publish("weir.j.0", "somebody else's");  // nobody executes it
    BOOST_TEST(stats(on).pending == 1U);
    auto o = quick();
    o.shards = 2;
    bed confused{s, o};
    BOOST_TEST(fails_with(confused(command::peek_jobs{"queue"}), errc::invalid_option));
    who.publish("weir.j.0", "weir:j\x7f");  // a version that is not known
    BOOST_TEST(fails_with(on(command::read_queue_stats{"queue"}), errc::schema_too_new));
  }
  server foreign;
  stranger other{foreign};
  (void)other.ask(
      "$JS.API.STREAM.CREATE.weir-jobs-0",
      R"({"name":"weir-jobs-0","subjects":["weir.j.0"],"retention":"limits","storage":"file"})");
  bed on{foreign, quick()};
  BOOST_TEST(fails_with(on(command::peek_jobs{"queue"}), errc::store_foreign));
}

BOOST_AUTO_TEST_SUITE_END()
