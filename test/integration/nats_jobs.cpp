// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What of the jobs on NATS no client sees in an answer: what is written to the log and what is not,
// images that take its place, processes that fall behind, and who hears of what.

#include "heard_log.hpp"
#include "mistakes.hpp"
#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"
#include "weir/store/nats/table_digest.hpp"
#include "weir/version.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using network_test::certain;
using network_test::lasting;
using weir_test::happens;

/// Lets the server say again what it stores in the log, or not.
void say_again(stranger& who, bool again) {
  auto const config = nlohmann::json::parse(nats_log_config(brisk(), 0));
  auto wanted = config;
  if (!again) wanted.erase("republish");
  auto const said = who.ask("$JS.API.STREAM.UPDATE.weir-jobs-0", wanted.dump());
  BOOST_TEST_REQUIRE(!nlohmann::json::parse(said).contains("error"), said);
}

/// Fills the log with commands that leave `jobs` of them, until it was cut.
void until_cut(bed& on, stranger& who, std::uint64_t& next) {
  auto const before = log_of(who).first;
  for (int i = 0; i != 2000; ++i) {
    BOOST_TEST_REQUIRE(!enqueue(on, next++));
    complete(on, dequeue(on, next).jobs.at(0));
    if (i % 8 == 0 && log_of(who).first > before) return;
  }
  BOOST_TEST_REQUIRE(false, "the log was never cut");
}

/// A message of the log, if it is there: its data, and what was noted with it.
struct kept_message {
  std::string data{};
  std::optional<weir::detail::nats_table_note> note{};
};
kept_message message_of_log(stranger& who, std::uint64_t sequence) {
  auto const said = nlohmann::json::parse(
      who.ask("$JS.API.STREAM.MSG.GET.weir-jobs-0", R"({"seq":)" + std::to_string(sequence) + "}"));
  kept_message out;
  if (!said.contains("message")) return out;
  auto const& message = said["message"];
  out.data = weir::detail::nats_base64(message["data"].get<std::string>()).value();
  if (!message.contains("hdrs")) return out;
  auto const headers = weir::detail::nats_base64(message["hdrs"].get<std::string>()).value();
  auto const name = std::string{weir::detail::nats_note_header} + ": ";
  auto const at = headers.find(name);
  BOOST_TEST_REQUIRE(at != headers.npos, headers);
  auto const begin = at + name.size();
  out.note = weir::detail::nats_table_note::read(
      std::string_view{headers}.substr(begin, headers.find("\r\n", begin) - begin));
  BOOST_TEST(out.note.has_value(), headers);
  return out;
}
/// The last message of the log that says that there is an image; 0: none does.
std::uint64_t last_notice(stranger& who) {
  auto const [first, last] = log_of(who);
  for (auto n = last; n >= first; --n) {
    auto const data = message_of_log(who, n).data;
    weir::detail::nats_batch_reader const message{data};
    if (message.notice() == weir::detail::nats_notice::image) return n;
  }
  return 0;
}
/// The sequence up to which the newest image holds the log.
std::uint64_t newest_image(stranger& who) {
  std::uint64_t newest = 0;
  for (std::size_t place = 0; place != weir::detail::nats_names::images; ++place) {
    auto const subject = weir::detail::nats_names{"weir"}.image(0, place);
    auto const said = weir::detail::read_leader(
        who.ask("$JS.API.STREAM.MSG.GET.weir-keys", R"({"last_by_subj":")" + subject + R"("})"));
    auto const image = weir::detail::nats_image_record::read(said.value().value);
    if (image) newest = std::max(newest, image->position);
  }
  return newest;
}
/// Writes to the log as a process would that has made something else of it.
void disagree(stranger& who, weir::detail::nats_table_note note) {
  ++note.digest;
  weir::detail::nats_batch_writer batch{{id_of(1), 1}};
  batch.add(command::pause_queue{"another"}, std::nullopt);
  who.publish("weir.j.0",
              std::string{weir::detail::nats_note_header} + ": " + note.write() + "\r\n",
              std::move(batch).take());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_jobs_on_servers)

BOOST_AUTO_TEST_CASE(what_finds_nothing_to_do_writes_nothing) {
  server s;
  bed on{s, brisk()};
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
  bed on{s, brisk()};
  BOOST_TEST(!enqueue(on, 1));
  constexpr std::uint32_t many = 500;
  std::vector<new_job> jobs;
  for (std::uint32_t n = 0; n != many; ++n) jobs.push_back(job_of(2 + n));
  std::uint32_t done = 0;
  for (auto const& j : jobs) {
    on.store.async_execute(command::enqueue_jobs{"queue", {&j, 1}},
                           [&](error_code ec, auto const&) { done += ec ? 0U : 1U; });
  }
  BOOST_TEST_REQUIRE(happens(on.io, [&] { return done == many; }));
  stranger who{s};
  BOOST_TEST(log_of(who).last < 50U);
  BOOST_TEST(stats(on).pending == many + 1);
}

BOOST_AUTO_TEST_CASE(F38_a_process_that_waits_hears_of_a_job_that_another_one_enqueues) {
  server s;
  bed one{s, brisk()};
  bed other{s, brisk()};
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
  BOOST_TEST_REQUIRE(happens(other.io, [&] { return hints != 0; }), "nobody was told");
  // It knows without asking anybody.
  BOOST_TEST(dequeue(other, 1).jobs.size() == 1U);
}

// Nobody has told it, and it has not listened.
BOOST_AUTO_TEST_CASE(R4_who_reads_sees_all_that_another_process_was_told_is_done) {
  server s;
  bed one{s, brisk()};
  bed other{s, brisk()};
  for (std::uint64_t n = 1; n != 20; ++n) {
    BOOST_TEST(!enqueue(one, n));
    BOOST_TEST(stats(other).pending == n);
  }
}

// How far the log goes is said later than what was stored meanwhile.
BOOST_AUTO_TEST_CASE(F75_a_shard_is_not_read_anew_because_an_answer_is_old) {
  server s;
  stranger who{s};
  who.overhear_one("$JS.API.DIRECT.GET.weir-keys.weir.k.jobs.shards");  // the beginning
  bed on{s, brisk()};
  constexpr std::uint64_t many = 4000;
  std::uint64_t asked = 0;
  std::uint64_t ended = 0;
  auto const end = [&](error_code ec, auto const&) {
    BOOST_TEST(!ec, ec.message());
    ++ended;
  };
  for (int round = 0; round != 20; ++round) {
    for (std::uint64_t n = 0; n != many; ++n) {
      auto const j = job_of(++asked);
      on.store.async_execute(command::enqueue_jobs{"queue", {&j, 1}}, end);
      on.store.async_execute(command::read_queue_stats{"queue"}, end);
      on.io.restart();
      on.io.poll_one();
    }
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return ended == 2 * asked; }));
  }
  auto const heard = who.heard();
  BOOST_TEST(heard.find("MSG ") == 0U);
  BOOST_TEST(heard.find("MSG ", 1) == heard.npos, heard);
}

BOOST_AUTO_TEST_CASE(R4_messages_that_were_not_heard_are_read_before_what_comes_after_them) {
  server s;
  stranger who{s};
  bed one{s, brisk()};
  bed other{s, brisk()};
  BOOST_TEST(!enqueue(one, 1));
  BOOST_TEST(stats(other).pending == 1U);
  std::uint64_t next = 2;
  for (int i = 0; i != 5; ++i) {
    say_again(who, false);
    for (auto const end = next + 3; next != end; ++next) BOOST_TEST(!enqueue(one, next));
    say_again(who, true);
    BOOST_TEST(!enqueue(one, next++));
    BOOST_TEST(stats(other).pending == next - 1);  // the other one has heard of the last one only
  }
  BOOST_TEST(stats(one).pending == next - 1);
}

BOOST_AUTO_TEST_CASE(an_image_takes_the_place_of_the_log_and_a_new_process_begins_with_it) {
  server s;
  std::uint64_t next = 1000;
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
  for (int i = 0; i != 3; ++i) until_cut(on, who, next);
  BOOST_TEST(stats(on).leased == 0U);
  // Parts of images that were replaced go, some time after the log was cut.
  auto const no_more_parts = [&] {
    auto const parts = nlohmann::json::parse(
        who.ask("$JS.API.STREAM.INFO.weir-keys", R"({"subjects_filter":"weir.k.jobs.0.part.>"})"));
    return parts["state"]["subjects"].size() <= 3;
  };
  BOOST_TEST(happens(on.io, no_more_parts));
}

BOOST_AUTO_TEST_CASE(who_was_behind_when_the_log_was_cut_begins_again_with_the_image) {
  server s;
  std::uint64_t next = 1000;
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
  std::uint64_t next = 0;
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
  bed on{s, brisk()};
  bed late{s, brisk()};
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
  BOOST_TEST(!certain(late, command::find_job{"queue", id_of(2)}).has_value());
}

// Nothing but that it is full has an image written, and has the log cut before the disk has that.
BOOST_AUTO_TEST_CASE(F61_a_log_that_is_full_is_cut_and_goes_on) {
  server s;
  auto o = brisk();
  o.max_bytes = 200'000;
  o.image_interval = 1U << 30U;
  bed on{s, o};
  stranger who{s};
  std::string const payload(1000, 'x');
  for (std::uint32_t n = 1; n != 1000; ++n) {
    BOOST_TEST_REQUIRE(!enqueue(on, n, payload));
    auto const got = dequeue(on, n);
    if (!got.jobs.empty()) complete(on, got.jobs[0]);
  }
  BOOST_TEST(log_of(who).first > 600U);
  auto const all = stats(on);
  BOOST_TEST(all.enqueued == 999U);
  BOOST_TEST(all.completed == 999U);
  bed late{s, o};
  BOOST_TEST(stats(late).completed == 999U);
}

BOOST_AUTO_TEST_CASE(F46_a_log_that_is_full_of_jobs_is_a_typed_error) {
  server s;
  auto o = brisk();
  o.max_bytes = 200'000;
  bed on{s, o};
  std::string const payload(1000, 'x');
  error_code ec;
  std::uint32_t n = 0;
  while (n != 1000 && !ec) ec = enqueue(on, ++n, payload);
  BOOST_TEST((ec == errc::store_full), ec.message());
  BOOST_TEST(n > 100U);
  BOOST_TEST(stats(on).pending == n - 1);
}

BOOST_AUTO_TEST_CASE(R8_a_shard_keeps_no_more_jobs_than_it_may) {
  server s;
  auto o = brisk();
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
  bed on{s, brisk()};
  std::string const large(limits::payload_size, 'x');  // with the rest of the command it is too
                                                       // much
  BOOST_TEST(enqueue(on, 1, large) == errc::payload_too_large);
  BOOST_TEST(!enqueue(on, 1));
  BOOST_TEST(stats(on).pending == 1U);
}

BOOST_AUTO_TEST_CASE(F47_a_log_or_an_image_with_a_part_missing_is_corrupt) {
  server s;
  stranger who{s};
  // There is no image, and the log does not begin where it did.
  {
    bed on{s, brisk()};
    for (std::uint64_t n = 1; n != 6; ++n) BOOST_TEST(!enqueue(on, n));
    (void)who.ask("$JS.API.STREAM.PURGE.weir-jobs-0", R"({"seq":3})");
    bed fresh{s, brisk()};
    BOOST_TEST(is_error(fresh(command::read_queue_stats{"queue"}), errc::store_corrupt));
    BOOST_TEST(stats(on).pending == 5U);  // who knows what was there goes on
  }
  // A message in the middle is gone, and parts of an image. These are waited for a while, in which
  // another image may come.
  auto o = with_images("gap");
  std::uint64_t next = 1000;
  {
    bed on{s, o};
    for (std::uint64_t n = 1; n != 6; ++n) BOOST_TEST(!enqueue(on, n));
    (void)who.ask("$JS.API.STREAM.MSG.DELETE.gap-jobs-0", R"({"seq":3})");
  }
  auto p = o;
  p.prefix = "weir";
  {
    server other;
    stranger there{other};
    bed on{other, p};
    BOOST_TEST(!enqueue(on, 1));
    until_cut(on, there, next);
    (void)there.ask("$JS.API.STREAM.PURGE.weir-keys", R"({"filter":"weir.k.jobs.0.part.>"})");
    o.offline_patience = p.offline_patience = 1s;
    bed without_message{s, o};
    bed without_part{other, p};
    auto const corrupt = [](bed& b) {
      return happens([&] {
        auto const r = b(command::read_queue_stats{"queue"});
        BOOST_TEST_REQUIRE(r.has_error());
        if (r.error() == errc::store_corrupt) return true;
        BOOST_TEST_REQUIRE((r.error() == errc::store_unavailable), r.error().message());
        return false;
      });
    };
    BOOST_TEST_REQUIRE(corrupt(without_message));
    BOOST_TEST_REQUIRE(corrupt(without_part));
  }
}

BOOST_AUTO_TEST_CASE(a_log_may_be_made_by_somebody_else) {
  server s;
  stranger who{s};
  auto o = brisk();
  o.create_stream = false;
  (void)who.ask("$JS.API.STREAM.CREATE.weir-keys", nats_stream_config(o));
  bed on{s, o};
  BOOST_TEST((enqueue(on, 1) == errc::schema_outdated));
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
  (void)who.ask("$JS.API.STREAM.CREATE.weir-jobs-0", nats_log_config(o, 0));
  error_code ec = errc::closed;
  BOOST_TEST(happens([&] {
               ec = enqueue(on, 1);
               on.io.restart();
               on.io.run_for(20ms);
               return !ec;
             }),
             ec.message());
  BOOST_TEST(stats(on).pending == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_not_weirs_or_is_later_is_left_alone) {
  server s;
  {
    bed on{s, brisk()};
    BOOST_TEST(!enqueue(on, 1));
    stranger who{s};
    who.publish("weir.j.0", "somebody else's");  // nobody executes it
    BOOST_TEST(stats(on).pending == 1U);
    auto o = brisk();
    o.shards = 2;
    bed confused{s, o};
    BOOST_TEST(is_error(confused(command::peek_jobs{"queue"}), errc::invalid_option));
    who.publish("weir.j.0", later_message("anything"));
    BOOST_TEST(is_error(on(command::read_queue_stats{"queue"}), errc::schema_too_new));
  }
  server foreign;
  stranger other{foreign};
  (void)other.ask(
      "$JS.API.STREAM.CREATE.weir-jobs-0",
      R"({"name":"weir-jobs-0","subjects":["weir.j.0"],"retention":"limits","storage":"file"})");
  bed on{foreign, brisk()};
  BOOST_TEST(is_error(on(command::peek_jobs{"queue"}), errc::store_foreign));
}

BOOST_AUTO_TEST_CASE(F82_who_makes_something_else_of_the_log_than_another_says_so_and_goes_on) {
  server s;
  stranger who{s};
  weir_test::heard_log const heard;
  bed on{s, brisk()};
  BOOST_TEST(!enqueue(on, 1, std::string(20'000, 'x')));
  BOOST_TEST(!enqueue(on, 2));
  auto const noted = message_of_log(who, 2);
  BOOST_TEST_REQUIRE(noted.note.has_value());
  BOOST_TEST(noted.note->begin == 0U);
  BOOST_TEST(noted.note->position == 1U);
  auto const told = [&] { return heard.count("makes other jobs"); };
  {
    bed fresh{s, brisk()};
    BOOST_TEST(stats(fresh).pending == 2U);
    BOOST_TEST(told() == 0U, heard.all());
  }
  disagree(who, *noted.note);
  auto const log = log_of(who);
  BOOST_TEST(stats(on).pending == 2U);  // it has heard of it
  BOOST_TEST(told() == 1U);
  weir_test::compare_row("nats.disagreement", heard.first(),
                         {{std::to_string(s.port()), "PORT"},
                          {"message 1 ", "message N "},
                          {"weir " + std::string{weir::version}, "weir VERSION"}});
  bed fresh{s, brisk()};
  BOOST_TEST(stats(fresh).pending == 2U);  // it has read it
  BOOST_TEST(told() == 2U);
  // Nothing is done about it.
  BOOST_TEST(log_of(who).first == log.first);
  BOOST_TEST(log_of(who).last == log.last);
  complete(fresh, dequeue(fresh, 1).jobs.at(0));
  BOOST_TEST(!enqueue(on, 3));
  disagree(who, *noted.note);
  BOOST_TEST(stats(on).pending == 2U);
  BOOST_TEST(stats(fresh).pending == 2U);
  BOOST_TEST(told() == 2U);  // once
}

BOOST_AUTO_TEST_CASE(F82_who_begins_with_an_image_compares_what_comes_after_its_notice) {
  server s;
  stranger who{s};
  weir_test::heard_log const heard;
  std::uint64_t next = 1000;
  std::uint64_t notice = 0;
  {
    auto o = with_images();
    o.image_interval = 40'000;  // no other one comes before the note
    bed on{s, o};
    BOOST_TEST(!enqueue(on, 999));
    until_cut(on, who, next);
    BOOST_TEST_REQUIRE(happens(on.io, [&] { return last_notice(who) > newest_image(who); }));
    notice = last_notice(who);
    BOOST_TEST(!enqueue(on, 1, std::string(20'000, 'x')));
    BOOST_TEST(!enqueue(on, 2));
  }
  auto const noted = message_of_log(who, log_of(who).last).note;
  BOOST_TEST_REQUIRE(noted.has_value());
  BOOST_TEST(noted->begin == notice);
  auto const told = [&] { return heard.count("makes other jobs"); };
  {
    bed on{s, brisk()};
    BOOST_TEST(stats(on).pending + stats(on).leased == 3U);
    BOOST_TEST(told() == 0U, heard.all());
  }
  disagree(who, *noted);
  bed on{s, brisk()};
  BOOST_TEST(stats(on).pending + stats(on).leased == 3U);
  BOOST_TEST(told() == 1U);
}

// A message may be as large as the server takes any, and a note has no room then (F59).
BOOST_AUTO_TEST_CASE(what_leaves_no_room_for_a_note_goes_without) {
  server s;
  stranger who{s};
  bed on{s, brisk()};
  BOOST_TEST(!enqueue(on, 1, std::string(20'000, 'x')));
  BOOST_TEST(!enqueue(on, 2, std::string((1U << 20U) - 160, 'x')));
  BOOST_TEST(!message_of_log(who, 2).note.has_value());
  BOOST_TEST(!enqueue(on, 3));
  BOOST_TEST(message_of_log(who, 3).note.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
