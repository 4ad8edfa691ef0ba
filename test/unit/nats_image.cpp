// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Images of a shard of jobs: that they come back as they were, and that neither making nor reading
// one keeps others waiting for longer than a turn.

#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/image_maker.hpp"
#include "weir/store/nats/image_reader.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/job_replica.hpp"
#include "weir/store/nats/log_info.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_image.hpp"
#include "weir/table/job_shard.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using detail::nats_image_maker;
using detail::nats_image_reader;
using detail::nats_image_record;
using detail::nats_job_replica;

/// A replica with so many jobs.
struct shard {
  explicit shard(std::uint64_t jobs) {
    constexpr std::uint64_t most = 1000;
    for (std::uint64_t n = 0; n < jobs; n += most) {
      std::vector<new_job> some(std::min(most, jobs - n));
      for (std::size_t i = 0; i != some.size(); ++i) {
        auto at = n + i;
        for (auto byte = some[i].id.end(); at != 0; at /= 256) {
          *--byte = static_cast<std::uint8_t>(at % 256);
        }
        some[i].id.data[0] = 1;
        some[i].kind = "kind";
        some[i].payload = "a payload";
      }
      time_point const now{std::chrono::hours{500'000}};
      detail::nats_batch_writer batch{{some[0].id, n}, {{now, {}}, {}}};
      batch.add(command::enqueue_jobs{"queue", some}, std::nullopt);
      detail::nats_logged const message{n + 1, now, std::move(batch).take()};
      detail::nats_batch_reader reader{message.data};
      BOOST_TEST_REQUIRE(it.read(message, reader, [](auto const&, auto const& answer) {
        BOOST_TEST_REQUIRE(answer.has_value());
      }));
    }
  }

  nats_job_replica it{};
};

struct image {
  nats_image_record record;
  std::vector<std::string> parts;
  std::size_t turns = 1;
};

image made(nats_job_replica const& of, std::size_t part_size = nats_image_record::usual_part) {
  nats_image_maker maker{of, part_size};
  image out;
  out.record.part_size = part_size;
  while (maker.go_on()) ++out.turns;
  out.record.position = of.position();
  out.record.size = maker.size();
  out.record.id = "1-1";
  out.parts = std::move(maker).take();
  out.record.parts = out.parts.size();
  return out;
}

/// The inputs that the fuzz target of jobs starts from, as this version of weir writes it.
std::string written(std::string const& name) {
  std::ifstream in{std::string{WEIR_FUZZ_CORPUS "/nats_jobs/"} + name, std::ios::binary};
  std::string bytes{std::istreambuf_iterator<char>{in}, {}};
  BOOST_TEST_REQUIRE(bytes.size() > 2U, name);
  return bytes.substr(2);  // which say to the fuzz target what to do with it
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_image)

BOOST_AUTO_TEST_CASE(an_image_comes_back_as_it_was_whichever_part_comes_first) {
  for (std::uint64_t const jobs : {0U, 1U, 5'000U, 5'001U}) {
    shard const of{jobs};
    bool const few = jobs == 5'001U;  // bytes in a part, as on a server that takes no more (F59)
    auto const whole = few ? made(of.it, 10'000) : made(of.it);
    BOOST_TEST((!few || whole.parts.size() > 20U));
    BOOST_TEST((jobs < 100 ? whole.parts.size() == 1U : whole.parts.size() > 2U));
    nats_image_reader reader{whole.record};
    std::vector<std::size_t> order;
    while (auto const n = reader.next()) order.push_back(*n);
    BOOST_TEST(order.size() == whole.parts.size());
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      BOOST_TEST(!reader.has_all());
      BOOST_TEST_REQUIRE(reader.take(*n, whole.parts[*n]));
    }
    BOOST_TEST(reader.has_all());
    while (reader.go_on()) {
    }
    auto const again = reader.replica();
    BOOST_TEST_REQUIRE(again != nullptr);
    BOOST_TEST((again->image() == of.it.image()));
    BOOST_TEST(again->position() == of.it.position());
    BOOST_TEST((again->seen() == of.it.seen()));
    BOOST_TEST(again->used() == jobs);
  }
}

BOOST_AUTO_TEST_CASE(many_jobs_take_many_turns) {
  shard const of{30'000};  // no machine does that in a millisecond
  auto const whole = made(of.it);
  BOOST_TEST(whole.turns > 1U);
  nats_image_reader reader{whole.record};
  while (auto const n = reader.next()) BOOST_TEST_REQUIRE(reader.take(*n, whole.parts[*n]));
  std::size_t turns = 1;
  while (reader.go_on()) ++turns;
  BOOST_TEST(turns > 1U);
  BOOST_TEST(reader.replica() != nullptr);
}

BOOST_AUTO_TEST_CASE(what_is_no_part_or_no_image_is_refused) {
  shard const of{5'000};  // the first two parts are as large as parts are
  auto whole = made(of.it);
  {
    nats_image_reader reader{whole.record};
    auto const size = whole.parts[0].size();
    BOOST_TEST(!reader.take(0, whole.parts[0].substr(1)));
    BOOST_TEST(!reader.take(0, whole.parts[0] + "x"));
    BOOST_TEST(!reader.take(whole.parts.size() - 1, whole.parts[0]));
    BOOST_TEST(size == nats_image_record::usual_part);
  }
  std::swap(whole.parts[0], whole.parts[1]);
  nats_image_reader reader{whole.record};
  while (auto const n = reader.next()) BOOST_TEST_REQUIRE(reader.take(*n, whole.parts[*n]));
  while (reader.go_on()) {
  }
  BOOST_TEST(reader.replica() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_record_says_which_image_it_is_or_is_none) {
  nats_image_record r;
  r.position = 7;
  r.size = nats_image_record::usual_part + 1;
  r.parts = 2;
  r.id = "0a-7";
  auto const read = nats_image_record::read(r.write());
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST(read->position == r.position);
  BOOST_TEST(read->size == r.size);
  BOOST_TEST(read->parts == r.parts);
  BOOST_TEST(read->id == r.id);
  BOOST_TEST(read->part_size == r.part_size);

  auto small = r;  // F59
  small.part_size = nats_image_record::part_within(10'000);
  small.parts = 14;
  auto const again = nats_image_record::read(small.write());
  BOOST_TEST_REQUIRE(again.has_value());
  BOOST_TEST(again->part_size == 10'000U);
  BOOST_TEST(again->parts == 14U);
  small.parts = 13;
  BOOST_TEST(!nats_image_record::read(small.write()));
  small.part_size = 1;
  small.parts = small.size;
  BOOST_TEST(!nats_image_record::read(small.write()));

  auto const refused = [&](auto change) {
    auto other = r;
    change(other);
    return !nats_image_record::read(other.write());
  };
  BOOST_TEST(refused([](nats_image_record& o) { o.parts = 3; }));
  BOOST_TEST(refused([](nats_image_record& o) { o.size = o.parts = 0; }));
  BOOST_TEST(refused([](nats_image_record& o) { o.id.clear(); }));
  BOOST_TEST(refused([](nats_image_record& o) { o.id = "a.b"; }));  // it would be another subject
  BOOST_TEST(refused([](nats_image_record& o) { o.id = ">"; }));
  BOOST_TEST(refused([](nats_image_record& o) { o.id.assign(65, '0'); }));
  auto const bytes = r.write();
  BOOST_TEST(!nats_image_record::read(bytes + "x"));
  BOOST_TEST(!nats_image_record::read(bytes.substr(0, bytes.size() - 1)));
  BOOST_TEST(!nats_image_record::read("something else"));
}

BOOST_AUTO_TEST_CASE(what_this_version_writes_is_read) {
  auto const bytes = written("image");
  detail::job_budget budget{1000};
  detail::job_shard read{detail::job_allowance{budget, 1, 1}, 4};
  detail::compact_reader from{bytes};
  BOOST_TEST(detail::job_image::load(read, from));
  BOOST_TEST(from.complete());
  std::string again;
  detail::compact_writer to{again};
  detail::job_image::save(read, to);
  BOOST_TEST((again == bytes));
  auto const all = read.apply(command::read_queue_stats{"q"}, time_point{std::chrono::seconds{1}});
  BOOST_TEST(all.value().enqueued == 6U);
  BOOST_TEST(all.value().completed == 1U);
  BOOST_TEST(all.value().dead == 1U);

  // The commands that made it.
  auto const message = detail::nats_log_message(written("message"));
  detail::job_shard made{detail::job_allowance{budget, 1, 1}, 4};
  detail::nats_batch_reader commands{message};
  std::size_t n = 0;
  BOOST_TEST(commands.for_each([&](auto const& c, std::optional<time_point> told) {
    ++n;
    BOOST_TEST(made.apply(c, told.value()).has_value());
  }));
  BOOST_TEST(n == 11U);
  again.clear();
  detail::job_image::save(made, to);
  BOOST_TEST((again == bytes));
}

BOOST_AUTO_TEST_SUITE_END()
