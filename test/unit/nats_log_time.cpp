// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The time in a shard's log, whoever writes to it and whatever the server's clock shows.

#include "weir/command/jobs.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/job_replica.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace {

using namespace weir;
using namespace weir::detail;
using namespace std::chrono_literals;

time_point at(duration d) { return time_point{1'700'000'000s + d}; }

struct log_file {
  /// Reads the next message.
  duration read(duration stored, nats_stamp const& stamp) {
    nats_batch_writer writer{{}, stamp};
    writer.add(command::pause_queue{"q"}, std::nullopt);
    return read(stored, std::move(writer).take());
  }
  duration read(duration stored, std::string message) {
    nats_logged const logged{replica.position() + 1, at(stored), std::move(message)};
    nats_batch_reader reader{logged.data};
    BOOST_TEST(replica.read(logged, reader, [](auto const&, auto const&) {}));
    BOOST_TEST((replica.stored() == at(stored)));
    return replica.seen() - at(0s);
  }

  nats_job_replica replica{};
};

nats_stamp told(duration now, duration offset = {}) { return {{at(now), 5ms}, offset}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_log_time)

BOOST_AUTO_TEST_CASE(a_message_has_the_time_of_the_server_as_far_as_its_sender_knew) {
  log_file log;
  BOOST_TEST((log.read(10s + 2ms, told(10s)) == 10s + 2ms));
  BOOST_TEST((log.read(11s, told(10s + 4ms)) == 10s + 9ms));
  BOOST_TEST((log.read(12s + 1ms - 1h, told(12s, 1h)) == 12s + 1ms));
}

BOOST_AUTO_TEST_CASE(F99_it_does_not_run_backwards_with_the_clock) {
  log_file log;
  BOOST_TEST((log.read(10s, told(10s)) == 10s));
  BOOST_TEST((log.read(11s - 1h, told(11s)) == 11s));
  BOOST_TEST((log.read(12s + 1h, told(12s)) == 12s + 5ms));
}

// A sender that is behind holds nothing up, and when it learns the time nothing ends for it.
BOOST_AUTO_TEST_CASE(F99_a_sender_that_is_behind_does_not_hold_it_up) {
  log_file log;
  BOOST_TEST((log.read(100s, told(100s)) == 100s));
  BOOST_TEST((log.read(101s, told(26s)) == 100s));
  BOOST_TEST((log.read(103s, told(28s)) == 102s));
  BOOST_TEST((log.read(104s, told(104s)) == 104s));
}

// A message that is none of weir's says nothing of the time.
BOOST_AUTO_TEST_CASE(F93_damage_does_not_move_it) {
  log_file log;
  BOOST_TEST((log.read(10s, told(10s)) == 10s));
  BOOST_TEST((log.read(10s + 1h, std::string{"damage"}) == 10s));
  BOOST_TEST((log.read(11s, told(11s)) == 11s));
}

BOOST_AUTO_TEST_CASE(an_image_goes_on_where_the_log_was) {
  log_file one;
  (void)one.read(100s, told(100s));
  (void)one.read(101s, told(26s));
  nats_image_record record;
  record.position = one.replica.position();
  record.size = 1;
  record.parts = 1;
  record.id = "1";
  record.stored = one.replica.stored();
  record.told = one.replica.told();
  auto const read = nats_image_record::read(record.write());
  BOOST_TEST_REQUIRE(read.has_value());
  auto const image = one.replica.image();
  log_file other;
  compact_reader from{image};
  BOOST_TEST_REQUIRE(other.replica.loading(from, *read).finish());
  BOOST_TEST((one.read(103s, told(28s)) == 102s));
  BOOST_TEST((other.read(103s, told(28s)) == 102s));
}

BOOST_AUTO_TEST_SUITE_END()
