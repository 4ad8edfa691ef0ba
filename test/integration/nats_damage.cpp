// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Records and messages on the server that are damaged.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/names.hpp"
#include "weir/store/nats/reply.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using network_test::lasting;

/// The last message of a subject among the records; empty: there is none.
std::optional<std::string> look(stranger& who, std::string const& subject) {
  auto const said = nlohmann::json::parse(
      who.ask("$JS.API.STREAM.MSG.GET.weir-keys", R"({"last_by_subj":")" + subject + R"("})"));
  if (!said.contains("message")) return std::nullopt;
  return detail::nats_base64(said["message"].value("data", "")).value();
}
std::string record(stranger& who, std::string const& subject) { return look(who, subject).value(); }

/// The record of an image, and where it is.
struct kept_image {
  std::string subject;
  std::string record;
};
/// The images that there are, the newest one first.
std::vector<kept_image> images(stranger& who) {
  std::vector<kept_image> out;
  for (std::size_t i = 0; i != detail::nats_names::images; ++i) {
    auto const subject = detail::nats_names{"weir"}.image(0, i);
    auto const found = look(who, subject);
    if (found && detail::nats_image_record::read(*found)) out.push_back({subject, *found});
  }
  std::ranges::sort(out, std::greater{}, [](auto const& i) {
    return detail::nats_image_record::read(i.record)->position;
  });
  return out;
}

std::string part_of(std::string const& image, int number = 0) {
  return "weir.k.jobs.0.part." + detail::nats_image_record::read(image).value().id + "." +
         std::to_string(number);
}

std::string number(std::uint64_t n) {
  std::string out;
  detail::nats_writer{out}.number(n);
  return out;
}

/// Has written two images, so that the log is cut. Some jobs are left.
queue_stats grown(server const& s, stranger& who) {
  bed on{at(s), with_images()};
  for (std::uint64_t i = 1; i != 1000; ++i) {
    BOOST_TEST_REQUIRE(!enqueue(on, i));
    if (i > 5) complete(on, dequeue(on, i).jobs.at(0));
    if (i % 8 == 0 && log_of(who).first > 1) break;
  }
  BOOST_TEST_REQUIRE(log_of(who).first > 1U);
  BOOST_TEST(!enqueue(on, 2000));  // behind the image
  return stats(on);
}

void reads_the_same(server const& s, queue_stats const& as) {
  bed on{at(s), with_images()};
  auto const now = on(command::read_queue_stats{"queue"});
  BOOST_TEST_REQUIRE(now.has_value(), now.error().message());
  BOOST_TEST(now->enqueued == as.enqueued);
  BOOST_TEST(now->pending == as.pending);
  BOOST_TEST(now->completed == as.completed);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_damage)

BOOST_AUTO_TEST_CASE(F93_a_damaged_message_is_passed_over_by_all_and_told_once) {
  server s;
  stranger who{s};
  bed on{s, brisk()};
  for (std::uint64_t n = 1; n != 4; ++n) BOOST_TEST(!enqueue(on, n));
  auto whole = detail::nats_batch_writer{{id_of(7), 1}};
  whole.add(command::pause_queue{"queue"}, {});
  auto const bytes = std::move(whole).take();
  auto const head = bytes.size() - std::string_view{"\x26\x05queue"}.size();
  std::uint32_t damaged = 0;
  for (auto const& message :
       {std::string{}, std::string{"nonsense"}, std::string{"weir:j"}, std::string{"weir:j\x7f"},
        later_message("") + "more", bytes.substr(0, bytes.size() - 1),
        bytes.substr(0, head) + "\x7f" + bytes.substr(head + 1), bytes.substr(0, head - 3)}) {
    who.publish("weir.j.0", message);
    ++damaged;
  }
  // Headers such as a server gives.
  who.publish("weir.j.0", "Nats-Sequence: 1000000\r\nNats-Time-Stamp: 1\r\nStatus: 404\r\n", "x");
  ++damaged;
  BOOST_TEST(!enqueue(on, 4));

  bed fresh{s, brisk()};  // reads it from the server, and not as it is said again
  BOOST_TEST(stats(fresh).pending == 4U);
  BOOST_TEST(stats(on).pending == 4U);
  auto const first = dequeue(on, 1);
  BOOST_TEST(first.jobs.size() == 1U);
  BOOST_TEST(first.damaged == damaged);
  auto const second = dequeue(fresh, 2);
  BOOST_TEST(second.jobs.size() == 1U);
  BOOST_TEST(second.damaged == 0U);
  complete(fresh, first.jobs.at(0));
  complete(on, second.jobs.at(0));
  bed late{s, brisk()};
  for (auto* const one : {&on, &fresh, &late}) {
    BOOST_TEST(stats(*one).completed == 2U);
    BOOST_TEST(stats(*one).pending == 2U);
  }
}

BOOST_AUTO_TEST_CASE(F93_in_place_of_a_damaged_image_the_one_before_it_serves) {
  server s;
  stranger who{s};
  auto const before = grown(s, who);
  auto const [last_image, last] = images(who).at(0);
  auto const part = record(who, part_of(last));
  reads_the_same(s, before);

  detail::nats_image_record huge;  // as many parts as there may be, of which none is there
  huge.size = std::uint64_t{huge.part_size} << 20U;
  huge.parts = std::uint64_t{1} << 20U;
  huge.position = detail::nats_image_record::read(last).value().position;
  huge.id = detail::nats_image_record::read(last).value().id;
  for (auto const& damaged : {std::string{}, std::string{"weir:i1\n"}, last.substr(1),
                              last.substr(0, last.size() - 1), huge.write()}) {
    who.publish(last_image, damaged);
    reads_the_same(s, before);
  }
  who.publish(last_image, last);
  auto wrong = part;
  wrong[part.size() / 2] = static_cast<char>(~wrong[part.size() / 2]);
  for (auto const& damaged : {std::string{}, part.substr(1), std::string(part.size(), '\xff')}) {
    who.publish(part_of(last), damaged);
    reads_the_same(s, before);
  }

  // The next image mends it.
  {
    bed on{at(s), with_images()};
    auto const old = images(who).at(0).record;
    for (std::uint64_t i = 3000; i != 4000 && images(who).at(0).record == old; ++i) {
      BOOST_TEST_REQUIRE(!enqueue(on, i));
      complete(on, dequeue(on, i).jobs.at(0));
    }
    BOOST_TEST((images(who).at(0).record != old));
    auto const now = stats(on);
    reads_the_same(s, now);
  }
  for (auto const& i : images(who)) who.publish(i.subject, "damaged");
  bed on{at(s), with_images()};
  BOOST_TEST(is_error(on(command::read_queue_stats{"queue"}), errc::store_corrupt));
}

BOOST_AUTO_TEST_CASE(F93_in_place_of_the_only_image_the_log_serves) {
  server s;
  stranger who{s};
  queue_stats before;
  {
    bed on{at(s), with_images()};
    for (std::uint64_t i = 1; i != 1000 && images(who).empty(); ++i) {
      BOOST_TEST_REQUIRE(!enqueue(on, i));
    }
    BOOST_TEST_REQUIRE(images(who).size() == 1U);
    before = stats(on);
  }
  BOOST_TEST(log_of(who).first == 1U);
  who.publish(images(who).at(0).subject, "damaged");
  reads_the_same(s, before);
}

BOOST_AUTO_TEST_CASE(F93_a_damaged_record_is_an_error_of_its_key_alone) {
  server s;
  stranger who{s};
  bed writer{s};
  BOOST_TEST(writer(command::acquire_lock{"key", "me", lasting}).value().granted);
  BOOST_TEST(writer(command::acquire_permit{"key", "me", 1, lasting, {}}).value().granted);
  auto const quota = quota::per_second(1);
  BOOST_TEST(writer(command::take{"key", {&quota, 1}, 1, {}}).value().allowed);
  for (char const kind : {'l', 'p', 'b'}) {
    std::string const subject = std::string{"weir.k."} + kind + ".key";
    auto const bytes = record(who, subject);
    who.publish(subject, bytes.substr(0, bytes.size() - 1));
  }
  bed on{s};
  BOOST_TEST(is_error(on(command::acquire_lock{"key", "you", lasting}), errc::store_corrupt));
  BOOST_TEST(is_error(on(command::inspect_permits{"key"}), errc::store_corrupt));
  BOOST_TEST(is_error(on(command::take{"key", {&quota, 1}, 1, {}}), errc::store_corrupt));
  BOOST_TEST(on(command::acquire_lock{"other", "me", lasting}).value().granted);
  BOOST_TEST(on(command::take{"other", {&quota, 1}, 1, {}}).value().allowed);

  // How many shards there are is no key's, but of all jobs.
  BOOST_TEST(!enqueue(on, 1));
  who.publish("weir.k.jobs.shards", "\x7f");
  bed late{s};
  BOOST_TEST((enqueue(late, 2) == errc::store_corrupt));
  BOOST_TEST(late(command::inspect_lock{"other"}).value().held);
}

BOOST_AUTO_TEST_CASE(F97_a_fence_that_cannot_grow_is_damage) {
  server s;
  stranger who{s};
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"other"}).has_value());
  auto const most = std::numeric_limits<std::uint64_t>::max();
  who.publish("weir.k.l.key",
              number(0) + "weir:l1\n" + number(most) + number(0) + number(0) + number(0));
  who.publish("weir.k.p.key",
              number(0) + "weir:p1\n" + number(most) + number(0) + number(0) + number(0));
  BOOST_TEST(is_error(on(command::acquire_lock{"key", "me", lasting}), errc::store_corrupt));
  BOOST_TEST(
      is_error(on(command::acquire_permit{"key", "me", 1, lasting, {}}), errc::store_corrupt));
}

BOOST_AUTO_TEST_CASE(F97_a_time_that_cannot_be_counted_is_damage) {
  server s;
  stranger who{s};
  bed on{s};
  BOOST_TEST(on(command::inspect_lock{"other"}).has_value());
  who.publish("weir.k.b.key", number(0) + "weir:b2\n" + number(19) + number(0));
  auto const quota = quota::per_second(1);
  BOOST_TEST(is_error(on(command::take{"key", {&quota, 1}, 1, {}}), errc::store_corrupt));
}

BOOST_AUTO_TEST_SUITE_END()
