// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands and records beside the `max_payload` of servers: what fits alone is done, whatever is
// asked for beside it; what does not is a typed error, and never the end of a connection.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "nats_together.hpp"
#include "patience.hpp"
#include "weir/store/nats/connection.hpp"

#include <boost/asio/executor_work_guard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using network_test::certain;
using network_test::lasting;
using weir_test::happens;

constexpr std::size_t usual = 1U << 20U;  // what servers take that nobody has told otherwise
constexpr std::size_t small = 64U << 10U;

std::string taking(std::size_t max_payload) {
  return "max_payload: " + std::to_string(max_payload) + "\n";
}

/// Did the server end a connection because of a message's size?
bool was_cut(server const& s) {
  std::ifstream log{s.directory() + "/log"};
  std::string const all{std::istreambuf_iterator<char>{log}, {}};
  return all.find("maximum payload") != all.npos || all.find("Maximum Payload") != all.npos;
}

/// The results of commands that were asked for at once.
template <class C>
struct outcomes {
  std::deque<result<typename C::result>> all{};
  std::size_t ended = 0;

  void ask(bed& on, C const& c) {
    auto& out = all.emplace_back(make_error_code(errc::timed_out));
    on.store.async_execute(c, [this, &out](error_code ec, typename C::result r) {
      if (ec) {
        out = ec;
      } else {
        out = std::move(r);
      }
      ++ended;
    });
  }
  void wait(bed& on) {
    BOOST_TEST_REQUIRE(happens(on.io, [this] { return ended == all.size(); }));
  }
  [[nodiscard]] std::size_t count(error_code ec) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [ec](auto const& r) { return r.has_error() ? r.error() == ec : !ec; }));
  }
};

/// The largest payload of a job that fits, whose queue and kind are as those of `job_of`.
std::size_t largest_payload(bed& on, std::size_t max_payload) {
  std::size_t fits = max_payload - 200;
  auto not_so = max_payload;
  for (std::uint64_t n = 1'000'000; fits + 1 != not_so; ++n) {
    auto const size = (fits + not_so) / 2;
    auto const ec = enqueue(on, n, std::string(size, 'x'));
    BOOST_TEST_REQUIRE((!ec || ec == errc::payload_too_large), ec.message());
    (ec ? not_so : fits) = size;
    (void)certain(on, command::cancel_job{"queue", id_of(n)});
  }
  return fits;
}

std::string said_of(std::size_t max_payload) {
  return "a max_payload of " + std::to_string(max_payload);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_sizes)

BOOST_AUTO_TEST_CASE(F59_small_commands_beside_large_ones_are_all_done) {
  for (auto const max_payload : {small, usual}) {
    BOOST_TEST_CONTEXT(said_of(max_payload)) {
      server s{{}, taking(max_payload)};
      auto o = brisk();
      o.in_memory = true;
      bed on{s, o};
      BOOST_TEST(!enqueue(on, 1));
      constexpr std::size_t many = 10'000;
      std::string const large(max_payload - 200, 'x');
      std::string const too_large(max_payload, 'x');
      outcomes<command::enqueue_jobs> fine;
      outcomes<command::enqueue_jobs> wrong;
      for (std::size_t n = 0; n != many; ++n) {
        auto j = job_of(2 + n);
        if (n % 500 == 250) j.payload = large;
        fine.ask(on, {"queue", {&j, 1}});
        if (n % 500 != 499) continue;
        auto const k = job_of(2 + many + n, too_large);
        wrong.ask(on, {"queue", {&k, 1}});
      }
      fine.wait(on);
      wrong.wait(on);
      BOOST_TEST(fine.count({}) == many);
      BOOST_TEST(wrong.count(errc::payload_too_large) == wrong.all.size());
      BOOST_TEST(stats(on).pending == many + 1);
      BOOST_TEST(!was_cut(s));
    }
  }
}

// Each is completed by a command of its own, as workers do whose jobs are in several queues.
BOOST_AUTO_TEST_CASE(F59_results_that_fit_into_no_message_together_are_all_kept) {
  for (auto const max_payload : {small, usual}) {
    BOOST_TEST_CONTEXT(said_of(max_payload)) {
      server s{{}, taking(max_payload)};
      bed on{s, brisk()};
      constexpr std::uint32_t many = 100;
      for (std::uint32_t n = 1; n <= many; ++n) {
        auto j = job_of(n);
        j.retention = 1h;
        BOOST_TEST_REQUIRE(on(command::enqueue_jobs{"queue", {&j, 1}}).has_value());
      }
      auto const got = dequeue(on, 1, many);
      BOOST_TEST_REQUIRE(got.jobs.size() == many);
      outcomes<command::complete_jobs> ends;
      std::string const large(max_payload - 200, 'r');
      for (std::size_t i = 0; i != many; ++i) {
        finished_job f{got.jobs[i].id, got.jobs[i].fence, "small"};
        if (i % 3 == 2) f.result = large;
        ends.ask(on, {"queue", {&f, 1}});
      }
      ends.wait(on);
      for (auto const& e : ends.all) {
        BOOST_TEST_REQUIRE(e.has_value(), e.error().message());
        BOOST_TEST((e->front() == complete_outcome::completed));
      }
      BOOST_TEST(stats(on).completed == many);
      bed fresh{s, brisk()};
      for (std::uint32_t n = 1; n <= many; ++n) {
        auto const kept = certain(fresh, command::find_job{"queue", id_of(n)});
        BOOST_TEST_REQUIRE(kept.has_value());
        auto const i = static_cast<std::size_t>(
            std::ranges::find(got.jobs, id_of(n), &leased_job::id) - got.jobs.begin());
        BOOST_TEST(kept->result.size() == (i % 3 == 2 ? large.size() : 5U));
      }
      BOOST_TEST(!was_cut(s));
    }
  }
}

// A batch is one step: it is done, or it is refused and nothing of it is done.
BOOST_AUTO_TEST_CASE(F59_a_batch_that_fits_into_no_message_is_refused_alone) {
  server s{{}, taking(small)};
  bed on{s, brisk()};
  BOOST_TEST(!enqueue(on, 1));
  std::string const half(small / 2, 'x');
  std::vector<new_job> const jobs{job_of(2, half), job_of(3, half)};
  outcomes<command::enqueue_jobs> fine;
  outcomes<command::enqueue_jobs> wrong;
  for (std::uint64_t n = 10; n != 110; ++n) {
    auto const j = job_of(n);
    fine.ask(on, {"queue", {&j, 1}});
    if (n % 10 == 0) wrong.ask(on, {"queue", jobs});
  }
  fine.wait(on);
  wrong.wait(on);
  BOOST_TEST(fine.count({}) == fine.all.size());
  BOOST_TEST(wrong.count(errc::payload_too_large) == wrong.all.size());
  BOOST_TEST(stats(on).pending == 101U);
  for (auto const& j : jobs) {
    BOOST_TEST(on(command::enqueue_jobs{"queue", {&j, 1}}).has_value());  // each fits alone
  }
  // Results.
  auto const got = dequeue(on, 1, 2);
  BOOST_TEST_REQUIRE(got.jobs.size() == 2U);
  std::vector<finished_job> ended;
  for (auto const& j : got.jobs) ended.push_back({j.id, j.fence, half});
  BOOST_TEST(is_error(on(command::complete_jobs{"queue", ended}), errc::payload_too_large));
  for (auto const& f : ended) {
    auto const r = on(command::complete_jobs{"queue", {&f, 1}});
    BOOST_TEST_REQUIRE(r.has_value());
    BOOST_TEST((r->front() == complete_outcome::completed));
  }
}

BOOST_AUTO_TEST_CASE(F59_a_job_that_fits_lives_whatever_is_recorded_of_it) {
  for (auto const max_payload : {detail::nats_least_payload, small, usual}) {
    BOOST_TEST_CONTEXT(said_of(max_payload)) {
      server s{{}, taking(max_payload)};
      auto o = with_images();
      bed on{s, o};
      BOOST_TEST(!enqueue(on, 1));
      auto const fits = largest_payload(on, max_payload);
      BOOST_TEST(fits < max_payload);
      BOOST_TEST(fits > max_payload - 200);
      std::string const payload(fits, 'p');
      // Whichever message it is in: their numbers become longer.
      for (int i = 0; i != 150; ++i) BOOST_TEST_REQUIRE(!enqueue(on, 1));
      BOOST_TEST(!enqueue(on, 9, payload));
      (void)certain(on, command::cancel_job{"queue", id_of(9)});
      std::string const queue(limits::key_size, 'q');
      std::string const reason(3U << 20U, 'r');  // as much as is kept of it
      std::string const memo(limits::memo_size, 'm');
      std::string const room(fits - 2 * limits::key_size, 'p');
      auto j = job_of(2, room);
      j.retention = 1h;
      std::uint64_t sequence = 0;
      auto const claim = [&] {
        auto const got = certain(on, command::dequeue_jobs{queue, "me", ++sequence, 1, lasting});
        BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
        return got.jobs[0];
      };
      BOOST_TEST_REQUIRE(on(command::enqueue_jobs{queue, {&j, 1}}).has_value());
      auto got = claim();
      BOOST_TEST(on(command::snooze_job{queue, got.id, got.fence, {}, memo}).has_value());
      got = claim();
      BOOST_TEST(got.memo == memo);
      BOOST_TEST(on(command::requeue_job{queue, got.id, got.fence, {}, reason}).has_value());
      got = claim();
      BOOST_TEST(on(command::bury_job{queue, got.id, got.fence, reason}).has_value());
      auto const dead = certain(on, command::list_dead_letters{queue, 10, {}});
      BOOST_TEST_REQUIRE(dead.jobs.size() == 1U);
      BOOST_TEST(dead.jobs[0].reason.size() == limits::reason_size);
      auto const again = certain(on, command::replay_dead_letter{queue, got.id});
      BOOST_TEST((again.outcome == replay_outcome::replayed));
      got = claim();
      finished_job const f{got.id, got.fence, room};
      BOOST_TEST(on(command::complete_jobs{queue, {&f, 1}}).has_value());
      // An image of it, in which a process finds it again.
      stranger who{s};
      auto const before = log_of(who).first;
      std::uint64_t next = 10;
      while (log_of(who).first == before && next != 2000) {
        BOOST_TEST_REQUIRE(!enqueue(on, next, payload));
        complete(on, dequeue(on, next++).jobs.at(0));
      }
      BOOST_TEST(log_of(who).first > before);
      bed fresh{s, o};
      auto const kept = certain(fresh, command::find_job{queue, got.id});
      BOOST_TEST_REQUIRE(kept.has_value());
      BOOST_TEST(kept->payload == room);
      BOOST_TEST(kept->result == room);
      BOOST_TEST(!was_cut(s));
    }
  }
}

// A record grows with holders. Who shortens it, or leaves it as long as it is, is not refused for
// those who do not fit.
BOOST_AUTO_TEST_CASE(R7_a_store_is_closed_with_any_number_of_calls_for_a_full_record) {
  server s{{}, taking(small)};
  for (bool const dropped : {false, true}) {
    boost::asio::io_context io;
    std::optional<nats_store> store{std::in_place, io.get_executor(), s.address(), brisk()};
    store->async_run([](error_code) {});
    constexpr std::size_t all = 50'000;
    std::size_t full = 0;
    std::size_t ended = 0;
    for (std::size_t i = 0; i != all; ++i) {
      auto const holder = std::to_string(i) + std::string(100, 'h');
      store->async_execute(command::acquire_permit{"key", holder, 1'000'000, lasting, {}},
                           [&](error_code ec, permit_grant const&) {
                             ++ended;
                             if (ec == errc::store_full) ++full;
                           });
    }
    // By then they are tried one by one.
    BOOST_TEST_REQUIRE(happens(io, [&] { return full > 2000; }));
    store->close();
    if (dropped) store.reset();
    io.restart();
    io.run();
    BOOST_TEST(ended == all);
  }
}

BOOST_AUTO_TEST_CASE(F59_a_full_record_refuses_who_would_make_it_longer_and_nobody_else) {
  server s{{}, taking(small)};
  bed on{s, brisk()};
  // Byte by byte, past the size at which only the headers are too much.
  std::vector<command::acquire_permit> held;
  std::deque<std::string> names;
  std::vector<std::uint64_t> fences;
  error_code ec;
  while (!ec) {
    names.push_back(std::to_string(names.size()) + std::string(names.size() % 97, 'h'));
    auto const r = on(command::acquire_permit{"key", names.back(), 1'000'000, lasting, {}});
    ec = r.has_error() ? r.error() : error_code{};
    if (!ec) fences.push_back(r->fence);
  }
  BOOST_TEST(ec == errc::store_full);
  names.pop_back();
  for (std::size_t length = 100; length != 0; --length) {
    auto const r =
        on(command::acquire_permit{"key", std::string(length, 'x'), 1'000'000, lasting, {}});
    if (r.has_value()) {
      names.emplace_back(length, 'x');
      fences.push_back(r->fence);
    } else {
      BOOST_TEST(r.error() == errc::store_full);
    }
  }
  BOOST_TEST(!was_cut(s));
  // Together.
  outcomes<command::acquire_permit> wrong;
  outcomes<command::renew_permit> longer;
  outcomes<command::release_permit> back;
  std::deque<std::string> others;
  constexpr std::size_t leaving = 20;
  for (std::size_t i = 0; i != 100; ++i) {
    others.push_back(std::string(100, 'o') + std::to_string(i));
    wrong.ask(on, {"key", others.back(), 1'000'000, lasting, {}});
    longer.ask(on, {"key", names[leaving + i], fences[leaving + i], lasting});
  }
  wrong.wait(on);
  longer.wait(on);
  BOOST_TEST(wrong.count(errc::store_full) == wrong.all.size());
  BOOST_TEST(longer.count({}) == longer.all.size());
  for (std::size_t i = 0; i != leaving; ++i) back.ask(on, {"key", names[i], fences[i]});
  back.wait(on);
  BOOST_TEST(back.count({}) == leaving);
  BOOST_TEST(on(command::acquire_permit{"key", "another", 1'000'000, lasting, {}}).value().granted);
  BOOST_TEST(certain(on, command::inspect_permits{"key", 0}).in_use == names.size() - leaving + 1);
  BOOST_TEST(!was_cut(s));
}

// A server ends the connection of a client that is slower than what it asks for.
BOOST_AUTO_TEST_CASE(F60_a_log_of_large_messages_is_read_on_one_connection) {
  server s{{}, taking(usual) + "max_pending: 16777216\n"};
  auto o = brisk();
  o.in_memory = true;
  o.image_interval = 1U << 30U;
  constexpr std::uint32_t many = 100;
  {
    bed on{s, o};
    std::string const large(usual - 200, 'x');
    for (std::uint32_t n = 1; n <= many; ++n) BOOST_TEST_REQUIRE(!enqueue(on, n, large));
  }
  bed fresh{s, o};
  BOOST_TEST(stats(fresh).pending == many);
  std::ifstream log{s.directory() + "/log"};
  std::string const all{std::istreambuf_iterator<char>{log}, {}};
  BOOST_TEST(all.find("Slow Consumer") == all.npos);
}

BOOST_AUTO_TEST_CASE(F60_answers_of_an_owner_that_come_together_end_no_connection) {
  server s;
  auto o = owning();
  o.in_memory = true;
  boost::asio::io_context io;
  nats_store const owner{io.get_executor(), s.address(), o};
  owner.async_run([](error_code) {});
  constexpr int queues = 64;  // whose jobs are more than a server keeps for one connection
  std::string const large(900'000, 'x');
  for (int i = 0; i != 4 * queues; ++i) {
    auto const job = job_of(static_cast<std::uint64_t>(i) + 1, large);
    auto const queue = "queue " + std::to_string(i % queues);
    BOOST_TEST_REQUIRE(ask(io, owner, command::enqueue_jobs{queue, {&job, 1}}).has_value());
  }
  // In a thread of its own, so that it can say more than is heard meanwhile.
  auto work = boost::asio::make_work_guard(io);
  std::thread other{[&io] {
    io.restart();
    io.run();
  }};
  {
    bed on{s, asking()};
    std::deque<std::string> names;
    outcomes<command::dequeue_jobs> all;
    for (int i = 0; i != queues; ++i) {
      names.push_back("queue " + std::to_string(i));
      all.ask(on, {names.back(), "me", 1, 100, lasting});
    }
    all.wait(on);
    for (auto const& r : all.all) {
      BOOST_TEST(r.has_value());
      if (r.has_value()) BOOST_TEST(r->jobs.size() == 4U);
    }
  }
  owner.close();
  work.reset();
  other.join();
}

BOOST_AUTO_TEST_CASE(F59_a_server_that_takes_too_little_is_a_typed_error_until_it_takes_more) {
  server s{{}, taking(detail::nats_least_payload - 1)};
  bed on{s, brisk()};
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::invalid_option));
  BOOST_TEST(is_error(on(command::peek_jobs{"queue"}), errc::invalid_option));
  auto const again = [&](std::size_t max_payload) {
    s.kill();
    std::ofstream{s.directory() + "/conf"} << taking(max_payload) << std::flush;
    s.start();
  };
  std::string const large(small / 2, 'x');
  again(detail::nats_least_payload);
  BOOST_TEST(eventually(on, command::inspect_lock{"key"}).has_value());
  auto const j = job_of(1, large);
  command::enqueue_jobs const add{"queue", {&j, 1}};
  auto const ends = [&](error_code wanted) {
    return happens([&] {
      auto const r = on(add);
      auto const ec = r.has_error() ? r.error() : error_code{};
      on.io.restart();
      on.io.run_for(10ms);
      return ec == wanted;
    });
  };
  BOOST_TEST(ends(errc::payload_too_large));
  again(small);
  BOOST_TEST(ends({}));
  again(detail::nats_least_payload);
  BOOST_TEST(ends(errc::payload_too_large));
  BOOST_TEST(stats(on).pending == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
