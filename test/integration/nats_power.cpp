// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A server whose host loses power, and with it what was acknowledged and not on the disk yet. Its
// folder is what that was some time before, as a whole or one stream of it.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace nats_test;
namespace fs = std::filesystem;

/// The disk, and all that it has.
class disk {
 public:
  explicit disk(server& s) : server_{s} {}

  /// All that was written until now.
  void synchronise() {
    server_.kill();
    fs::remove_all(kept());
    fs::copy(streams(), kept(), fs::copy_options::recursive);
    server_.start();
  }
  /// Power fails: what was written to this stream since is lost.
  void forget(std::string const& stream) {
    server_.kill();
    fs::remove_all(streams() / stream);
    if (fs::exists(kept() / stream)) {
      fs::copy(kept() / stream, streams() / stream, fs::copy_options::recursive);
    }
    server_.start();
  }

 private:
  [[nodiscard]] fs::path streams() const {
    return fs::path{server_.directory()} / "js/jetstream/$G/streams";
  }
  [[nodiscard]] fs::path kept() const { return fs::path{server_.directory()} / "kept"; }

  server& server_;
};

/// Images come often, and are safe after four minutes, as by default.
nats_options as_by_default() {
  auto o = brisk();
  o.image_interval = 4096;
  o.offline_patience = 5s;
  return o;
}

/// The images that there are, the newest one first.
std::vector<detail::nats_image_record> images(stranger& who) {
  std::vector<detail::nats_image_record> out;
  for (std::size_t i = 0; i != detail::nats_names::images; ++i) {
    auto const subject = detail::nats_names{"weir"}.image(0, i);
    auto const said = nlohmann::json::parse(
        who.ask("$JS.API.STREAM.MSG.GET.weir-keys", R"({"last_by_subj":")" + subject + R"("})"));
    if (!said.contains("message")) continue;
    auto const found = detail::nats_image_record::read(
        detail::nats_base64(said["message"].value("data", "")).value());
    if (found) out.push_back(*found);
  }
  std::ranges::sort(out, std::greater{}, &detail::nats_image_record::position);
  return out;
}
/// Messages in which images are.
std::size_t count_parts(stranger& who, std::string const& of = ">") {
  auto const said =
      nlohmann::json::parse(who.ask("$JS.API.STREAM.INFO.weir-keys",
                                    R"({"subjects_filter":"weir.k.jobs.0.part.)" + of + R"("})"));
  auto const subjects = said["state"].find("subjects");
  return subjects == said["state"].end() ? 0 : subjects->size();
}

/// Works until so many bytes are in the log, or it was cut.
void work(bed& on, stranger& who, std::uint64_t& next, std::size_t bytes) {
  for (int i = 0; i != 4000; ++i) {
    BOOST_TEST_REQUIRE(!enqueue(on, ++next));
    if (next % 4 != 0) complete(on, dequeue(on, next).jobs.at(0));
    if (i % 8 != 0) continue;
    auto const said = nlohmann::json::parse(who.ask("$JS.API.STREAM.INFO.weir-jobs-0"));
    if (said["state"]["bytes"] > bytes || said["state"]["first_seq"] > 1) return;
  }
  BOOST_TEST_REQUIRE(false, "the log does not grow");
}

/// Makes the streams, and enqueues a job.
void begin(server& s, std::uint64_t& next) {
  bed on{s, as_by_default()};
  BOOST_TEST_REQUIRE(!enqueue(on, ++next));
}

void same(queue_stats const& a, queue_stats const& b) {
  BOOST_TEST(a.enqueued == b.enqueued);
  BOOST_TEST(a.completed == b.completed);
  BOOST_TEST(a.pending == b.pending);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_power)

// Many images are written meanwhile; the disk may have none of them.
BOOST_AUTO_TEST_CASE(F58_a_log_lasts_until_the_disk_has_the_image_of_it) {
  server s;
  disk d{s};
  std::uint64_t next = 0;
  queue_stats before;
  begin(s, next);
  d.synchronise();
  {
    bed on{s, as_by_default()};
    stranger who{s};
    work(on, who, next, 100'000);
    BOOST_TEST(log_of(who).first == 1U);
    BOOST_TEST(images(who).size() == detail::nats_names::images);
    // Images that are written over leave nothing behind.
    BOOST_TEST(weir_test::happens(on.io, [&] { return count_parts(who) <= 6; }));
    before = stats(on);
  }
  d.forget("weir-keys");
  bed late{s, as_by_default()};
  same(stats(late), before);
  complete(late, dequeue(late, 1).jobs.at(0));
}

// The other way round: an image has what the log has lost. It goes on behind that.
BOOST_AUTO_TEST_CASE(F58_an_image_replaces_the_end_of_a_log_that_was_lost) {
  server s;
  disk d{s};
  std::uint64_t next = 0;
  queue_stats before;
  std::uint64_t last = 0;
  begin(s, next);
  d.synchronise();
  {
    bed on{s, as_by_default()};
    stranger who{s};
    work(on, who, next, 20'000);
    last = log_of(who).last;
    before = stats(on);
  }
  d.forget("weir-jobs-0");
  stranger who{s};
  BOOST_TEST(log_of(who).last < last);
  bed late{s, as_by_default()};
  auto const answered = [&] { return late(command::read_queue_stats{"queue"}).has_value(); };
  BOOST_TEST_REQUIRE(weir_test::happens(answered));
  auto const after = stats(late);
  // All that came after the image is lost, as the server's configuration has it.
  BOOST_TEST(2 * after.enqueued > before.enqueued);
  BOOST_TEST(after.enqueued <= before.enqueued);
  BOOST_TEST(!enqueue(late, 5000));
  complete(late, dequeue(late, 1).jobs.at(0));
  auto const now = stats(late);
  BOOST_TEST(now.enqueued == after.enqueued + 1);
  BOOST_TEST(now.completed == after.completed + 1);
  bed other{s, as_by_default()};
  same(stats(other), now);
}

// The newest image is on the disk in part, and the one before it as a whole.
BOOST_AUTO_TEST_CASE(F58_an_image_that_lost_a_part_gives_way_to_the_one_before_it) {
  server s;
  std::uint64_t next = 0;
  queue_stats before;
  stranger who{s};
  {
    bed on{s, as_by_default()};
    work(on, who, next, 20'000);
    BOOST_TEST(images(who).size() > 1U);
    before = stats(on);
  }
  (void)who.ask("$JS.API.STREAM.PURGE.weir-keys",
                R"({"filter":")" + detail::nats_names{"weir"}.parts(0, images(who).at(0).id) +
                    R"("})");
  bed late{s, as_by_default()};
  BOOST_TEST_REQUIRE(
      weir_test::happens([&] { return late(command::read_queue_stats{"queue"}).has_value(); }));
  same(stats(late), before);
}

// There is room for the end of an image and, until the reserve is given up, not for its beginning.
BOOST_AUTO_TEST_CASE(F58_the_next_image_leaves_all_parts_of_one_that_made_room) {
  configured s{"jetstream { max_file_store: 1GB, max_memory_store: 1MB }\n"
               "accounts { A: { jetstream: { max_file: 24MB, max_mem: 1MB }, "
               "users: [ { user: a, password: a } ] } }\nno_auth_user: a\n"};
  stranger who{*s.it};
  auto o = as_by_default();
  o.image_interval = 64U << 20U;
  o.owner = true;
  detail::nats_image_record first;
  {
    bed on{*s.it, o};
    for (std::uint64_t n = 1; n != 8; ++n) {
      BOOST_TEST_REQUIRE(!enqueue(on, n, std::string(20'000, 'x')));
    }
    auto const got = dequeue(on, 1);
    (void)who.ask("$JS.API.STREAM.CREATE.theirs",
                  R"({"name":"theirs","subjects":["theirs"],"storage":"file","num_replicas":1})");
    while (!nlohmann::json::parse(who.ask("theirs", std::string(60'000, 'x'))).contains("error")) {
    }
    (void)who.ask("$JS.API.STREAM.PURGE.theirs", R"({"seq":2})");  // one of them
    std::string const result(130'000, 'x');
    finished_job const f{got.jobs.at(0).id, got.jobs[0].fence, result};
    auto const done = on(command::complete_jobs{"queue", {&f, 1}});
    BOOST_TEST(!done.has_error());
    BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return images(who).size() == 1; }));
    first = images(who)[0];
    BOOST_TEST(first.parts == 2U);
    (void)who.ask("$JS.API.STREAM.PURGE.theirs", {});
  }
  o.image_interval = 4096;
  bed on{*s.it, o};
  std::uint64_t next = 100;
  // The second one begins when the first one has removed what is left of others.
  while (images(who).size() != detail::nats_names::images) {
    BOOST_TEST_REQUIRE(!enqueue(on, ++next));
  }
  BOOST_TEST(count_parts(who, first.id + ".>") == first.parts);
}

// Once images are old enough the log is cut behind them, and no sooner.
BOOST_AUTO_TEST_CASE(F58_a_log_is_cut_behind_an_image_that_the_disk_has) {
  server s;
  stranger who{s};
  auto o = as_by_default();
  o.sync_interval = 100ms;
  bed on{s, o};
  std::uint64_t next = 0;
  BOOST_TEST(weir_test::happens([&] {
    work(on, who, next, 8192);
    on.io.restart();
    on.io.run_for(50ms);
    return log_of(who).first > 1;
  }));
  auto const before = stats(on);
  {
    bed late{s, o};
    same(stats(late), before);
  }
  // It was cut behind one that is safe: without those that are newer all is still there.
  auto const all = images(who);
  auto const first = log_of(who).first;
  BOOST_TEST_REQUIRE(all.size() > 1U);
  BOOST_TEST(all.at(0).position >= first);
  for (auto const& i : all) {
    if (i.position < first) break;
    (void)who.ask("$JS.API.STREAM.PURGE.weir-keys",
                  R"({"filter":")" + detail::nats_names{"weir"}.parts(0, i.id) + R"("})");
  }
  bed without{s, o};
  BOOST_TEST_REQUIRE(
      weir_test::happens([&] { return without(command::read_queue_stats{"queue"}).has_value(); }));
  same(stats(without), before);
}

// It is no image: the next one takes its place, and not that of one that is whole. Who wrote it has
// not read it since, and does not know.
BOOST_AUTO_TEST_CASE(F58_an_image_that_lost_a_part_is_replaced_first) {
  server s;
  stranger who{s};
  auto o = as_by_default();
  o.sync_interval = 0s;
  std::uint64_t next = 0;
  bed on{s, o};
  std::string const payload(60'000, 'x');
  while (images(who).size() != detail::nats_names::images) {
    BOOST_TEST_REQUIRE(!enqueue(on, ++next, payload));
  }
  auto const before = images(who);
  BOOST_TEST_REQUIRE(before[0].parts > 1U);
  (void)who.ask("$JS.API.STREAM.PURGE.weir-keys",
                R"({"filter":")" + detail::nats_names{"weir"}.part(0, before[0].id, 1) + R"("})");
  while (images(who)[0].position == before[0].position) {
    BOOST_TEST_REQUIRE(!enqueue(on, ++next, payload));
  }
  auto const now = images(who);
  BOOST_TEST(now.at(1).id == before[1].id);
  BOOST_TEST(now.at(2).id == before[2].id);
}

// A process that had not read the end that is lost does not go on without it.
BOOST_AUTO_TEST_CASE(F58_nobody_goes_on_with_a_log_that_has_lost_its_end) {
  server s;
  disk d{s};
  std::uint64_t next = 0;
  begin(s, next);
  bed late{s, as_by_default()};
  BOOST_TEST(stats(late).pending == 1U);  // and hears no more
  d.synchronise();
  queue_stats before;
  {
    bed on{s, as_by_default()};
    stranger who{s};
    work(on, who, next, 20'000);
    before = stats(on);
  }
  d.forget("weir-jobs-0");
  stranger who{s};
  error_code ec;
  BOOST_TEST_REQUIRE(weir_test::happens([&] {
    ec = enqueue(late, 5000);
    return !ec;
  }));
  auto const after = stats(late);
  BOOST_TEST(after.enqueued > 2U);
  BOOST_TEST(after.enqueued <= before.enqueued + 1);
  bed other{s, as_by_default()};
  same(stats(other), after);
}

BOOST_AUTO_TEST_SUITE_END()
