// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Commands and answers as they travel between processes, which may be of different versions of
// weir.

#include "weir/command/list.hpp"
#include "weir/store/nats/wire.hpp"

#include <boost/hash2/fnv1a.hpp>
#include <boost/pfr/core.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace {

using namespace weir;
using namespace weir::detail;

/// Fills values with others that are all different, the same in each run.
class filler {
 public:
  template <class T>
    requires std::is_integral_v<T>
  void operator()(T& v) {
    v = static_cast<T>(std::is_same_v<T, bool> ? 1 : next() % 100 + 1);
  }
  template <class T>
    requires std::is_enum_v<T>
  void operator()(T& v) {
    v = static_cast<T>(1);
  }
  void operator()(duration& d) { d = duration{static_cast<duration::rep>(next()) * 1000}; }
  void operator()(new_job& j) {
    boost::pfr::for_each_field(j, [this](auto& field) { (*this)(field); });
    j.unique_ttl = {};  // its strategy has none
    j.headers = {};     // they have a form of their own
  }
  void operator()(std::string_view& t) { t = texts_.emplace_back("text" + std::to_string(next())); }
  void operator()(std::string& t) { t = "text" + std::to_string(next()); }
  void operator()(job_id& id) { id.data[3] = static_cast<std::uint8_t>(next()); }
  void operator()(quota& q) { q = quota::per_second(next() + 1000).burst(next() + 2000); }
  template <class T>
  void operator()(std::optional<T>& v) {
    (*this)(v.emplace());
  }
  template <class T>
  void operator()(std::span<T const>& all) {
    auto& kept = list_of<T>();
    auto& some = kept.emplace_back(2);
    for (auto& v : some) (*this)(v);
    all = some;
  }
  template <nats_list T>
  void operator()(T& all) {
    all.resize(2);
    for (auto& v : all) (*this)(v);
  }
  template <class T, std::size_t N>
  void operator()(std::array<T, N>& all) {
    for (auto& v : all) (*this)(v);
  }
  template <class T>
    requires std::is_aggregate_v<T>
  void operator()(T& v) {
    boost::pfr::for_each_field(v, [this](auto& field) { (*this)(field); });
  }

 private:
  std::uint64_t next() { return ++last_; }
  template <class T>
  auto& list_of() {
    if constexpr (std::is_same_v<T, new_job>) {
      return new_;
    } else if constexpr (std::is_same_v<T, finished_job>) {
      return finished_;
    } else {
      return quotas_;
    }
  }

  std::uint64_t last_ = 0;
  std::deque<std::string> texts_;
  std::deque<std::vector<new_job>> new_;
  std::deque<std::vector<finished_job>> finished_;
  std::deque<std::vector<quota>> quotas_;
};

template <class... C, class F>
void for_each_command(command::list_of<C...>, F f) {
  (f.template operator()<C>(), ...);
}
template <class F>
void for_each_asked(F f) {
  for_each_command(command::permit_commands{}, f);
  for_each_command(command::lock_commands{}, f);
  for_each_command(command::list_of<command::take, command::peek_bucket, command::refund,
                                    command::reset_bucket>{},
                   f);
  for_each_command(command::job_commands{}, [&]<class C>() {
    // Hints tell of a cancel, and no owner is asked for it.
    if constexpr (!std::is_same_v<C, command::await_cancel>) f.template operator()<C>();
  });
}

/// A command that is allowed, and has something everywhere.
template <class C>
void fill_command(filler& fill, C& c) {
  fill(c);
  if constexpr (requires { c.expected; }) c.expected = c.stored = {};
  if constexpr (requires { c.progress; }) c.progress = {};
}

template <class C>
std::string question_of(C const& c) {
  std::string out;
  nats_begin_question(out, 7);
  nats_put_command(out, c, std::nullopt);
  nats_put_command(out, c, time_point{duration{5}});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_wire)

// Where this fails because a command was added last, only the number here changes: an owner that
// does not know it says so, and who asks executes it (F82). Where what was there looks different,
// nats_wire_version has to become another one.
BOOST_AUTO_TEST_CASE(questions_and_answers_look_as_those_of_this_version) {
  boost::hash2::fnv1a_64 hash;
  for_each_asked([&]<class C>() {
    C c{};
    filler fill;
    fill_command(fill, c);
    auto const question = question_of(c);
    hash.update(question.data(), question.size());
    typename C::result r{};
    fill(r);
    std::string answer;
    nats_put_answer(answer, 3, {}, r);
    hash.update(answer.data(), answer.size());
  });
  BOOST_TEST(nats_wire_version == 4U);
  BOOST_TEST(hash.result() == 7067212423365794314U);
}

BOOST_AUTO_TEST_CASE(F82_a_question_of_another_version_is_not_read) {
  auto question = question_of(command::pause_queue{"queue"});
  BOOST_TEST(nats_question_reader{question}.known());
  BOOST_TEST(nats_question_reader{question}.shards() == 7U);
  ++question[nats_question_tag.size()];
  BOOST_TEST(!nats_question_reader{question}.known());
}

BOOST_AUTO_TEST_CASE(what_is_read_is_what_was_written) {
  for_each_asked([]<class C>() {
    C c{};
    filler fill;
    fill_command(fill, c);
    BOOST_TEST(!rule::validate(c), typeid(C).name());
    auto const question = question_of(c);
    nats_question_reader reader{question};
    BOOST_TEST_REQUIRE(reader.known());
    std::string again;
    nats_begin_question(again, reader.shards());
    bool const whole = reader.for_each([&](auto const& read, std::optional<time_point> told) {
      nats_put_command(again, read, told);
      return true;
    });
    BOOST_TEST(whole);
    BOOST_TEST((again == question));

    typename C::result r{};
    fill(r);
    std::string answer;
    nats_put_answer(answer, 3, {}, r);
    compact_reader from{answer};
    auto const found = nats_next_answer(from);
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(found->place == 3U);
    typename C::result read{};
    BOOST_TEST(nats_take_answer(found->value, read));
    std::string rewritten;
    nats_put_answer(rewritten, 3, {}, read);
    BOOST_TEST((rewritten == answer));
    // And nothing of what is cut off, or goes on, is taken for it.
    typename C::result none{};
    if (!found->value.empty()) {
      BOOST_TEST(!nats_take_answer(found->value.substr(0, found->value.size() - 1), none));
    }
    BOOST_TEST(!nats_take_answer(std::string{found->value} + '\1', none));
  });
}

// Answers are read by places and enumerators, so those that cannot be right are refused.
BOOST_AUTO_TEST_CASE(F90_what_cannot_be_the_result_of_a_command_is_no_answer) {
  std::array<new_job, 2> const jobs{};
  std::array<finished_job, 2> const ended{};
  std::size_t const wrong[]{0, 1, 3};
  command::enqueue_jobs const enqueue{"queue", jobs};
  command::complete_jobs const complete{"queue", ended};
  command::relay_job relay{};
  relay.next = jobs;
  relay.jobs = jobs;
  BOOST_TEST(nats_answers(enqueue, command::enqueue_jobs::result(2)));
  BOOST_TEST(nats_answers(complete, command::complete_jobs::result(2)));
  relayed all;
  BOOST_TEST(!nats_answers(relay, all));
  all.jobs.resize(4);
  BOOST_TEST(nats_answers(relay, all));
  all.outcome = relay_outcome::changed;
  BOOST_TEST(!nats_answers(relay, all));
  for (auto const n : wrong) {
    BOOST_TEST(!nats_answers(enqueue, command::enqueue_jobs::result(n)));
    BOOST_TEST(!nats_answers(complete, command::complete_jobs::result(n)));
  }
  dequeued few;
  few.jobs.resize(3);
  BOOST_TEST(!nats_answers(command::dequeue_jobs{"queue", "me", 0, 2, duration{1}}, few));
  BOOST_TEST(nats_answers(command::dequeue_jobs{"queue", "me", 0, 3, duration{1}}, few));

  command::enqueue_jobs::result outcome(1);
  for (int value : {3, 4, 255}) {
    outcome[0].outcome = static_cast<enqueue_outcome>(value);
    std::string text;
    nats_value_writer{text}(outcome);
    command::enqueue_jobs::result read;
    BOOST_TEST(nats_take_answer(text, read) == (value == 3));
  }
}

BOOST_AUTO_TEST_CASE(what_is_negative_or_empty_is_read_as_it_was) {
  job j;
  j.vests_in = -std::chrono::hours{3};
  std::string text;
  nats_put_answer(text, 0, {}, j);
  compact_reader from{text};
  auto const found = nats_next_answer(from);
  BOOST_TEST_REQUIRE(found.has_value());
  job read;
  read.deadline_in = duration{1};
  BOOST_TEST(nats_take_answer(found->value, read));
  BOOST_TEST((read.vests_in == j.vests_in));
  BOOST_TEST(!read.deadline_in.has_value());
  decision d;
  d.mark = bucket_mark::none();
  d.mark.arrival[0] = -5;
  text.clear();
  nats_put_answer(text, 0, {}, d);
  from = compact_reader{text};
  decision again;
  BOOST_TEST(nats_take_answer(nats_next_answer(from).value().value, again));
  BOOST_TEST((again.mark == d.mark));
}

BOOST_AUTO_TEST_CASE(F90_what_nobody_may_ask_is_not_read) {
  std::string text;
  nats_begin_question(text, 1);
  nats_put_command(text, command::release_permit{"", "me", 0}, std::nullopt);
  auto const reads = [](std::string_view said) {
    nats_question_reader reader{said};
    int n = 0;
    bool const whole = reader.for_each([&](auto const&, auto) { return ++n, true; });
    BOOST_TEST(!whole);
    return n;
  };
  BOOST_TEST(reads(text) == 0);
  text.clear();
  nats_begin_question(text, 1);
  nats_put_command(text, command::release_permit{"key", "me", 0}, time_point::min());
  BOOST_TEST(reads(text) == 0);
}

BOOST_AUTO_TEST_CASE(errors_keep_their_causes) {
  std::string text;
  auto const why = explained(errc::store_full, "a cause");
  nats_put_answer(text, 1, why, hint{});
  nats_put_answer(text, 0, make_error_code(boost::system::errc::not_enough_memory), hint{});
  compact_reader from{text};
  auto const first = nats_next_answer(from);
  BOOST_TEST_REQUIRE(first.has_value());
  BOOST_TEST((first->error == errc::store_full));
  BOOST_TEST(first->error.message() == why.message());
  auto const second = nats_next_answer(from);
  BOOST_TEST_REQUIRE(second.has_value());
  BOOST_TEST(second->place == 0U);
  BOOST_TEST((second->error == boost::system::errc::not_enough_memory));
  BOOST_TEST(from.complete());
}

BOOST_AUTO_TEST_SUITE_END()
