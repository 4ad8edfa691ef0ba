// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Digests of what processes make of one log: that all who go by the same rule note the same,
// and that others are found.

#include "weir/command/jobs.hpp"
#include "weir/store/nats/bytes.hpp"
#include "weir/store/nats/compact.hpp"
#include "weir/store/nats/image_record.hpp"
#include "weir/store/nats/job_log.hpp"
#include "weir/store/nats/job_replica.hpp"
#include "weir/store/nats/log_info.hpp"
#include "weir/store/nats/table_digest.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace weir::detail;
using namespace std::chrono_literals;

constexpr std::size_t large = 16U << 10U;  // a message after which a note is due

/// A process that reads a log.
struct reader {
  /// @param each as for `nats_job_replica::read`
  template <class Each>
  void read(nats_logged const& m, Each&& each) {
    nats_batch_reader message{m.data};
    BOOST_TEST_REQUIRE(it.read(m, message, each));
  }
  void read(nats_logged const& m) {
    read(m, [](auto const&, auto const&) {});
  }
  void load(nats_job_replica const& other) {
    auto const image = other.image();
    nats_image_record record;
    record.position = other.position();
    record.stored = other.stored();
    record.told = other.told();
    compact_reader from{image};
    BOOST_TEST_REQUIRE(it.loading(from, record).finish());
  }
  /// The note that it would write, after a message that makes that due.
  [[nodiscard]] std::string note() const {
    auto const due = it.note_due();
    return due ? due->write() : std::string{};
  }

  nats_job_replica it{};
};

/// The messages of a log, each made when it is asked for.
class log_file {
 public:
  template <class C>
  nats_logged next(C const& c) {
    nats_batch_writer batch{{}, nats_stamp{{at(position_ + 1), 5ms}, {}}};
    batch.add(c, std::nullopt);
    return raw(std::move(batch).take());
  }
  nats_logged raw(std::string data) {
    ++position_;
    return {position_, at(position_), std::move(data), {}};
  }
  nats_logged notice() {
    return raw(nats_batch_writer{{}, {{at(position_ + 1), 5ms}, {}}, 1000}.take());
  }
  /// After it a note is due.
  nats_logged large_one() {
    std::string const payload(large, 'x');
    auto const j = job(payload);
    return next(command::enqueue_jobs{"large", {&j, 1}});
  }

  new_job job(std::string_view payload = "payload") {
    new_job j;
    for (std::size_t i = 0; i != 4; ++i) {
      j.id.data[i + 1] = static_cast<std::uint8_t>(jobs_ >> (8 * i));
    }
    j.id.data[0] = 1;
    ++jobs_;
    j.kind = "kind";
    j.payload = payload;
    return j;
  }

 private:
  [[nodiscard]] static time_point at(std::uint64_t position) {
    return time_point{1'790'000'000s + static_cast<std::int64_t>(position) * 700ms};
  }

  std::uint64_t position_ = 0;
  std::uint64_t jobs_ = 0;
};

/// Commands of all that workers do, by what came of those before.
class history {
 public:
  explicit history(log_file& log) : log_{&log} {}

  /// The next message. `read(message)` has it read, and `hear` is told of the answers.
  nats_logged next() {
    static constexpr std::string_view queues[] = {"a", "b", "c"};
    auto const queue = queues[below(3)];
    auto const held = leased_.empty() ? leased_job{} : leased_[below(leased_.size())];
    switch (below(14)) {
      case 0: return log_->next(command::pause_queue{queue});
      case 1: return log_->next(command::resume_queue{queue});
      case 2: return log_->next(command::snooze_queue{queue, 2s});
      case 3: return log_->next(command::snooze_job{queue, held.id, held.fence, 3s, "memo"});
      case 4: return log_->next(command::requeue_job{queue, held.id, held.fence, 2s, "reason"});
      case 5: return log_->next(command::bury_job{queue, held.id, held.fence, "reason"});
      case 6: return log_->next(command::obtain_queue_lease{queue, "me", 5s});
      case 7: return log_->next(command::gc_stale_pointers{0, 10, 1s});
      case 8: return log_->next(command::purge_job{queue, held.id});
      case 9: {
        finished_job const f{held.id, held.fence, "result"};
        return log_->next(command::complete_jobs{queue, {&f, 1}});
      }
      case 10:
      case 11: return log_->next(command::dequeue_jobs{queue, "me", ++sequence_, 2, 20s});
      default: {
        auto j = log_->job();
        j.priority = static_cast<std::uint8_t>(below(3));
        j.delay = std::chrono::seconds{below(3)};
        j.retention = std::chrono::seconds{below(2) * 30};
        j.max_attempts = 2;
        if (below(2) == 0) {
          j.strategy = unique_strategy::until_executed;
          j.unique_key = queues[below(3)];
          j.on_conflict = static_cast<conflict_policy>(below(4));
        }
        return log_->next(command::enqueue_jobs{queue, {&j, 1}});
      }
    }
  }
  template <class C, class Answer>
  void hear(C const&, Answer const& answer) {
    if constexpr (std::is_same_v<C, command::dequeue_jobs>) {
      if (!answer.has_value()) return;
      leased_.insert(leased_.end(), answer->jobs.begin(), answer->jobs.end());
      answers_ += answer->jobs.size();
    }
  }
  [[nodiscard]] std::size_t leases() const noexcept { return answers_; }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  log_file* log_;
  std::mt19937 random_{7};  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same in each run
  std::vector<leased_job> leased_;
  std::uint64_t sequence_ = 0;
  std::size_t answers_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_table_digests)

// One begins with the log, others with images from all along it. What these could not read before
// that, such as other images, only concerns themselves.
BOOST_AUTO_TEST_CASE(F82_who_goes_by_the_same_rule_notes_the_same_wherever_it_began) {
  log_file log;
  history next{log};
  reader first;
  std::deque<reader> others(1);
  auto const all = [&](nats_logged const& message) {
    first.read(message);
    for (auto& o : others) o.read(message);
  };
  std::size_t compared = 0;
  for (int i = 0; i != 4000; ++i) {
    if (i % 100 == 99) {
      all(log.large_one());
      auto const note = first.note();
      BOOST_TEST(!note.empty());
      for (auto const& o : others) {
        if (o.note().empty()) continue;
        BOOST_TEST(o.note() == note);
        ++compared;
      }
    }
    if (i % 200 == 199) all(log.notice());
    if (i % 1000 == 50) others.emplace_back().load(first.it);
    if (i % 1000 == 250) others.back().it.passed_over();
    auto const message = i % 97 == 0 ? log.raw("damaged") : next.next();
    first.read(message, [&](auto const& c, auto const& answer) { next.hear(c, answer); });
    for (auto& o : others) o.read(message);
  }
  BOOST_TEST(next.leases() > 200U);
  BOOST_TEST(compared == 40U + 38 + 28 + 18 + 8);
}

BOOST_AUTO_TEST_CASE(what_came_before_an_image_is_unknown_until_all_begin_anew) {
  log_file log;
  reader one;
  one.read(log.large_one());
  reader other;
  other.load(one.it);
  auto message = log.large_one();
  one.read(message);
  other.read(message);
  BOOST_TEST(!one.note().empty());
  BOOST_TEST(other.note().empty());
  message = log.large_one();
  message.note = "1 2 0 2 0 0 0.1.0 0";  // none
  other.read(message);
  BOOST_TEST(!other.it.take_contradiction().has_value());
  message = log.notice();
  one.read(message);
  other.read(message);
  message = log.large_one();
  one.read(message);
  other.read(message);
  BOOST_TEST(!one.note().empty());
  BOOST_TEST(one.note() == other.note());
}

// Its rule keeps another payload: it is given a log in which that is so.
BOOST_AUTO_TEST_CASE(F82_one_that_makes_something_else_of_the_log_is_found) {
  log_file log;
  reader one;
  reader other;
  auto const both = [&](nats_logged const& message) {
    one.read(message);
    other.read(message);
  };
  /// Notes what the one has made of it, for the other.
  auto const noted = [&](std::uint64_t at) {
    both(log.large_one());
    auto message = log.large_one();
    message.note = one.note();
    BOOST_TEST(!message.note.empty());
    both(message);
    BOOST_TEST(!one.it.take_contradiction().has_value());
    auto const found = other.it.take_contradiction();
    BOOST_TEST((!found || found->position == at));
    BOOST_TEST((!found || found->by == version));
    return found.has_value();
  };
  BOOST_TEST(!noted(0));
  auto job = log.job();
  auto message = log.next(command::enqueue_jobs{"queue", {&job, 1}});
  one.read(message);
  job.payload = "another one";
  nats_batch_writer batch{{}, nats_stamp{{message.time, 5ms}, {}}};
  batch.add(command::enqueue_jobs{"queue", {&job, 1}}, std::nullopt);
  message.data = std::move(batch).take();
  other.read(message);
  BOOST_TEST(!noted(0));  // nothing has shown it yet
  auto const at = other.it.position() + 1;
  both(log.next(command::dequeue_jobs{"queue", "me", 1, 1, 1h}));
  both(log.next(command::dequeue_jobs{"queue", "me", 2, 1, 1h}));
  both(log.next(command::dequeue_jobs{"queue", "me", 3, 1, 1h}));
  BOOST_TEST(noted(at + 3));
  BOOST_TEST(!noted(0));  // it is told once
  // A digest that begins anew is compared anew.
  both(log.notice());
  BOOST_TEST(!noted(0));
  message = log.large_one();
  one.read(message);
  ++message.time;
  other.read(message);  // the log's time is another one
  auto const later = other.it.position() + 1;
  BOOST_TEST(noted(later));
}

BOOST_AUTO_TEST_CASE(a_note_that_is_damaged_or_of_another_log_is_none) {
  log_file log;
  reader one;
  one.read(log.large_one());
  auto note = nats_table_note::read(one.note());
  BOOST_TEST_REQUIRE(note.has_value());
  BOOST_TEST(note->begin == 0U);
  BOOST_TEST(note->position == 1U);
  BOOST_TEST((note->stored == one.it.stored()));
  BOOST_TEST(note->by == version);
  auto const told_of = [&](std::string const& text) {
    auto message = log.large_one();
    message.note = text;
    one.read(message);
    return one.it.take_contradiction().has_value();
  };
  auto const good = note->write();
  BOOST_TEST(!told_of(good));
  ++note->digest;
  auto const other = note->write();
  for (std::size_t i = 0; i != other.size(); ++i) {
    auto damaged = other;
    damaged[i] = damaged[i] == '1' ? '2' : '1';
    BOOST_TEST(!nats_table_note::read(damaged).has_value(), damaged);
    BOOST_TEST(!nats_table_note::read(other.substr(0, i)).has_value());
  }
  BOOST_TEST(!told_of(other.substr(1)));
  auto of_another = *note;
  ++of_another.stored;
  BOOST_TEST(!told_of(of_another.write()));
  of_another = *note;
  of_another.begin = 1;
  BOOST_TEST(!told_of(of_another.write()));
  of_another = *note;
  of_another.position = 100;
  BOOST_TEST(!told_of(of_another.write()));
  // Answers are encoded otherwise.
  auto later = other.substr(0, other.rfind(' '));
  later.replace(2, 1, std::to_string(nats_wire_version + 1));
  later += ' ' + std::to_string(nats_checksum(later));
  BOOST_TEST(!told_of(later));
  // Text of strangers goes into the log.
  of_another = *note;
  of_another.by = "\x1b[31m";
  BOOST_TEST(!told_of(of_another.write()));
  BOOST_TEST(told_of(other));
}

BOOST_AUTO_TEST_CASE(who_is_too_far_ahead_for_a_note_compares_nothing) {
  log_file log;
  reader one;
  one.read(log.large_one());
  auto note = nats_table_note::read(one.note());
  BOOST_TEST_REQUIRE(note.has_value());
  ++note->digest;
  for (int i = 0; i != 64; ++i) one.read(log.next(command::pause_queue{"queue"}));
  auto message = log.large_one();
  message.note = note->write();
  one.read(message);
  BOOST_TEST(!one.it.take_contradiction().has_value());
}

BOOST_AUTO_TEST_CASE(a_note_is_due_now_and_then) {
  log_file log;
  reader one;
  int due = 0;
  std::size_t bytes = 0;
  for (int i = 0; i != 2000; ++i) {
    auto message = log.next(command::pause_queue{"queue"});
    bytes += message.data.size() + 64;
    message.note = one.note();
    due += message.note.empty() ? 0 : 1;
    one.read(message);
  }
  BOOST_TEST(static_cast<std::size_t>(due) == bytes / (16U << 10U));
}

// Where this fails because an answer has another member, nats_wire_version has become another one,
// and only the number here changes. Otherwise a process of this version and one of an earlier
// version would say of each other that they disagree, and perhaps they do: the rule is another one.
// Then the release notes have to say so.
BOOST_AUTO_TEST_CASE(F82_this_version_makes_of_a_log_what_earlier_ones_have) {
  log_file log;
  history next{log};
  reader one;
  for (int i = 0; i != 1000; ++i) {
    one.read(next.next(), [&](auto const& c, auto const& answer) { next.hear(c, answer); });
  }
  one.read(log.large_one());
  auto const note = nats_table_note::read(one.note());
  BOOST_TEST_REQUIRE(note.has_value());
  BOOST_TEST(note->digest == 16009046997695002128U);
}

BOOST_AUTO_TEST_SUITE_END()
