// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the store adds to what its writes cost: commands of the store, so many in flight at once on
// its one connection, beside as many publishes made by hand with the C client and its threads on
// one connection to the same server. And how a shard of jobs grows: what a dequeue costs in front
// of many jobs that are not due, and what a process needs to make and to read an image of them.
//
//     bench_nats [pairs in a round] [rounds] [future jobs]

#include "nats_rig.hpp"
#include "paired.hpp"
#include "report.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using namespace weir_bench;

constexpr std::size_t payload_size = 64;

/// Two writes of a record each: a create, and an update at the revision that the create was given.
class raw_pairs : by_hand {
 public:
  raw_pairs(server const& s, std::uint64_t pairs, std::uint64_t in_flight, std::string round)
      : by_hand{s, in_flight == 1},
        pairs_{pairs},
        round_{std::move(round)} {
    listen("by.hand.*", &raw_pairs::on_reply, this);
    took_ = per_second(pairs_, [&] {
      for (std::uint64_t i = 0; i != in_flight; ++i) begin();
      done_.acquire();
    });
  }
  [[nodiscard]] double rate() const noexcept { return took_; }

 private:
  void begin() {
    auto const n = begun_++;
    if (n < pairs_) write(n, "0", 'c');
  }
  void write(std::uint64_t n, char const* expected, char step) {
    auto const subject = "weir.k.l.hand" + round_ + std::to_string(n);
    auto const reply = "by.hand." + std::string{step} + std::to_string(n);
    natsMsg* message = nullptr;
    std::string const value(64, 'x');
    must(natsMsg_Create(&message, subject.c_str(), reply.c_str(), value.data(),
                        static_cast<int>(value.size())));
    must(natsMsgHeader_Set(message, "Nats-Expected-Last-Subject-Sequence", expected));
    must(natsMsgHeader_Set(message, "Nats-TTL", "120s"));
    must(natsConnection_PublishMsg(connection(), message));
    natsMsg_Destroy(message);
  }
  static void on_reply(natsConnection*, natsSubscription*, natsMsg* m, void* closure) {
    auto& self = *static_cast<raw_pairs*>(closure);
    std::string const subject{natsMsg_GetSubject(m)};
    std::string const text{natsMsg_GetData(m), static_cast<std::size_t>(natsMsg_GetDataLength(m))};
    natsMsg_Destroy(m);
    auto const at = text.find("\"seq\":");
    if (at == text.npos) std::abort();
    auto const sequence = std::to_string(std::strtoull(text.c_str() + at + 6, nullptr, 10));
    auto const n = std::strtoull(subject.c_str() + 9, nullptr, 10);
    if (subject[8] == 'c') return self.write(n, sequence.c_str(), 'u');
    if (++self.ended_ == self.pairs_) return self.done_.release();
    self.begin();
  }

  std::uint64_t pairs_;
  std::string round_;
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<std::uint64_t> ended_ = 0;
  std::binary_semaphore done_{0};
  double took_ = 0;
};

/// Messages of as many bytes as one of the log has that enqueues one job.
class raw_publishes : by_hand {
 public:
  raw_publishes(server const& s, std::uint64_t in_flight)
      : by_hand{s, in_flight == 1},
        in_flight_{in_flight} {
    std::string const config =
        R"({"name":"raw","subjects":["raw"],"retention":"limits","storage":"file","discard":"new"})";
    natsMsg* reply = nullptr;
    must(natsConnection_Request(&reply, connection(), "$JS.API.STREAM.CREATE.raw", config.data(),
                                static_cast<int>(config.size()), 5000));
    natsMsg_Destroy(reply);
    listen("by.hand", &raw_publishes::on_reply, this);
  }

  void publish(std::uint64_t n) {
    left_ = waited_ = n;
    for (std::uint64_t i = 0; i != std::min(in_flight_, n); ++i) one();
    done_.acquire();
  }

 private:
  void one() {
    if (left_ == 0) return;
    --left_;
    static std::string const data(payload_size + 70, 'x');
    must(natsConnection_PublishRequest(connection(), "raw", "by.hand", data.data(),
                                       static_cast<int>(data.size())));
  }
  static void on_reply(natsConnection*, natsSubscription*, natsMsg* m, void* closure) {
    auto& self = *static_cast<raw_publishes*>(closure);
    natsMsg_Destroy(m);
    if (--self.waited_ == 0) return self.done_.release();
    self.one();
  }

  std::uint64_t in_flight_;
  std::atomic<std::uint64_t> left_ = 0;
  std::atomic<std::uint64_t> waited_ = 0;
  std::binary_semaphore done_{0};
};

new_job make_job(id_source const& ids) {
  static std::string const payload(payload_size, 'p');
  new_job j;
  j.id = ids.job();
  j.kind = "kind";
  j.payload = payload;
  return j;
}

// ------------------------------------------------------------------------------------- the keys

void keys(report& out, std::uint64_t in_flight, std::uint64_t n, std::size_t rounds) {
  static constexpr duration ttl = 60s;
  static quota const quotas[] = {quota::per_second(1'000'000).burst(1'000'000)};
  server s;
  nats_rig r{s};
  int round = 0;

  // A key, or a holder of one key, and two commands about it.
  auto const pairs = [&](auto first, auto second) {
    return [&r, &round, in_flight, n, first, second] {
      auto const begin = "r" + std::to_string(++round) + "-";
      return per_second(n, [&] {
        r.together(n, in_flight, [&](std::uint64_t i, std::function<void()> next) {
          auto const name = std::make_shared<std::string>(begin + std::to_string(i));
          r.store.async_execute(first(*name), [&, name, next = std::move(next)](
                                                  error_code ec, auto const& granted) mutable {
            must(ec);
            r.store.async_execute(second(*name, granted.fence), going_on(std::move(next), name));
          });
        });
      });
    };
  };
  auto const locks = pairs(
      [](std::string const& k) { return command::acquire_lock{k, "holder", ttl}; },
      [](std::string const& k, std::uint64_t f) { return command::release_lock{k, "holder", f}; });
  auto const permits =
      pairs([](std::string const& k) { return command::acquire_permit{k, "holder", 10, ttl, {}}; },
            [](std::string const& k, std::uint64_t f) {
              return command::release_permit{k, "holder", f};
            });
  auto const shared = pairs(
      [](std::string const& h) { return command::acquire_permit{"key", h, 100, ttl, {}}; },
      [](std::string const& h, std::uint64_t f) { return command::release_permit{"key", h, f}; });
  auto const takes = [&] {
    return per_second(n, [&] {
      r.together(n, in_flight, [&](std::uint64_t, std::function<void()> next) {
        r.store.async_execute(command::take{"key", quotas, 1, {}}, going_on(std::move(next)));
      });
    });
  };
  auto const raw = [&] {
    return raw_pairs{s, n, in_flight, "r" + std::to_string(++round) + "-"}.rate();
  };

  auto const got = in_turn(rounds, {locks, raw, permits, shared, takes});
  auto const at = ", " + std::to_string(in_flight) + " in flight";
  auto const beside = [&](std::string const& name, std::size_t which) {
    row line{.name = name + at, .unit = "/s", .ours = got[which]};
    line.reference_name = "the same publishes by hand";
    line.reference = got[1];
    if (in_flight != 1) line.goal = ratio_at_least(0.8);
    out.add(std::move(line));
  };
  beside("lock acquire and release, a key each", 0);
  beside("permit acquire and release, a key each", 2);
  out.add({.name = "permit acquire and release, one key" + at, .unit = "/s", .ours = got[3]});
  out.add({.name = "take, one key" + at, .unit = "/s", .ours = got[4]});
}

// ------------------------------------------------------------------------------------- the jobs

void jobs(report& out, std::uint64_t in_flight, std::uint64_t n, std::size_t rounds) {
  server s;
  nats_rig r{s};
  raw_publishes by_hand{s, in_flight};
  id_source const ids;
  auto const enqueue = [&] {
    r.together(n, in_flight, [&](std::uint64_t, std::function<void()> next) {
      auto const j = make_job(ids);
      r.store.async_execute(command::enqueue_jobs{"queue", {&j, 1}}, going_on(std::move(next)));
    });
  };
  // A job is enqueued, claimed by its id and completed.
  auto const cycle = [&] {
    r.together(n, in_flight, [&](std::uint64_t, std::function<void()> next) {
      auto const j = make_job(ids);
      r.store.async_execute(command::enqueue_jobs{"cycle", {&j, 1}}, going_on([] {}));
      r.store.async_execute(
          command::obtain_lease{"cycle", j.id, "holder", 1h},
          [&, next = std::move(next)](error_code ec, std::optional<leased_job> const& got) mutable {
            must(ec);
            finished_job const f{got.value().id, got->fence, {}};
            r.store.async_execute(command::complete_jobs{"cycle", {&f, 1}},
                                  going_on(std::move(next)));
          });
    });
  };
  auto const got = in_turn(rounds, {[&] { return per_second(n, enqueue); },
                                    [&] { return per_second(n, [&] { by_hand.publish(n); }); },
                                    [&] { return per_second(n, cycle); }});
  auto const at = ", " + std::to_string(in_flight) + " in flight";
  row line{.name = "enqueue" + at, .unit = "jobs/s", .ours = got[0]};
  line.reference_name = "as many publishes by hand";
  line.reference = got[1];
  if (in_flight != 1) line.goal = ratio_at_least(0.8);
  out.add(std::move(line));
  out.add({.name = "enqueue, claim, complete" + at, .unit = "jobs/s", .ours = got[2]});
}

void enqueue_many(nats_rig& r, id_source const& ids, std::string_view queue, std::uint64_t n,
                  duration delay) {
  constexpr std::uint64_t most = 1000;
  for (; n != 0; n -= std::min(n, most)) {
    std::vector<new_job> some(std::min(n, most));
    for (auto& j : some) {
      j = make_job(ids);
      j.delay = delay;
    }
    (void)r.ask(command::enqueue_jobs{queue, some});
  }
}

void dequeues(report& out, std::uint64_t future, std::size_t rounds) {
  constexpr std::uint64_t some = 500;
  server s;
  nats_options o;
  o.max_jobs = 2 * future + 10'000;
  nats_rig r{s, o};
  id_source const ids;
  enqueue_many(r, ids, "many", future, 1h);
  enqueue_many(r, ids, "few", 1000, 1h);
  auto const dequeue = [&](std::string_view queue) {
    enqueue_many(r, ids, queue, some, {});
    return nanoseconds_each(some,
                            [&] {
                              auto const got =
                                  r.ask(command::dequeue_jobs{queue, "holder", 0, 1, 1h});
                              finished_job const f{got.jobs.at(0).id, got.jobs.at(0).fence, {}};
                              (void)r.ask(command::complete_jobs{queue, {&f, 1}});
                            }) /
           1000;
  };
  auto const got =
      in_turn(rounds, {[&] { return dequeue("many"); }, [&] { return dequeue("few"); }});
  out.add({.name = "dequeue and complete, many future jobs",
           .unit = "us",
           .ours = got[0],
           .reference_name = "1,000 future jobs",
           .reference = got[1],
           .goal = ratio_at_most(1.5),
           .note = std::to_string(future) + " future jobs of the same priority"});
  // Somebody else begins: from the last image and the log since.
  auto const begin = [&] {
    return nanoseconds_of([&] {
             nats_rig other{s, o};
             (void)other.ask(command::read_queue_stats{"many"});
           }) /
           1e6;
  };
  out.add({.name = "another process begins", .unit = "ms", .ours = in_turn(rounds, {begin})[0]});
}

// ------------------------------------------------------------------------- what a shard takes

/// All of it, in turns as the store takes them; gives the longest, in microseconds.
double longest_turn(std::function<bool()> const& go_on) {
  double longest = 0;
  for (bool more = true; more;) {
    longest = std::max(longest, nanoseconds_of([&] { more = go_on(); }) / 1000);
  }
  return longest;
}

void growth(report& out, std::uint64_t future, std::size_t rounds) {
  auto const memory = [] { return static_cast<double>(::mallinfo2().uordblks); };
  auto const each = [&](double n) { return n / static_cast<double>(future); };
  auto const before = memory();
  detail::nats_job_replica replica;
  id_source const ids;
  double log = 0;
  auto const reading = nanoseconds_of([&] {
    for (std::uint64_t i = 0; i != future; ++i) {
      auto j = make_job(ids);
      j.delay = 1h;
      time_point const now{std::chrono::hours{500'000}};
      detail::nats_batch_writer batch{{j.id, i}, {{now, {}}, {}}};
      batch.add(command::enqueue_jobs{"queue", {&j, 1}}, std::nullopt);
      detail::nats_logged const message{i + 1, now, std::move(batch).take()};
      log += static_cast<double>(message.data.size());
      detail::nats_batch_reader reader{message.data};
      (void)replica.read(message, reader, [](auto const&, auto const&) {});
    }
  });
  auto const held = memory() - before;
  samples make;
  samples make_turn;
  samples read;
  samples read_turn;
  samples forget;
  detail::nats_image_record image;
  for (std::size_t i = 0; i != rounds; ++i) {
    std::vector<std::string> parts;
    make.push_back(nanoseconds_of([&] {
                     detail::nats_image_maker maker{replica};
                     make_turn.push_back(longest_turn([&] { return maker.go_on(); }));
                     image.size = maker.size();
                     parts = std::move(maker).take();
                   }) /
                   1e6);
    image.position = future;
    image.parts = parts.size();
    std::optional<detail::nats_image_reader> reader{std::in_place, image};
    while (auto const n = reader->next()) {
      if (!reader->take(*n, parts[*n])) std::abort();
    }
    std::shared_ptr<detail::nats_job_replica> other;
    auto const go_on = [&] {
      if (reader->go_on()) return true;
      other = reader->replica();
      reader.reset();
      return false;
    };
    read.push_back(nanoseconds_of([&] { read_turn.push_back(longest_turn(go_on)); }) / 1e6);
    if (!other) std::abort();
    forget.push_back(nanoseconds_of([&] { other.reset(); }) / 1e6);
  }
  auto const one = [](double value) {
    samples out_;
    out_.push_back(value);
    return out_;
  };
  auto const jobs_ = std::to_string(future) + " jobs";
  out.add({.name = "a message that enqueues one job", .unit = "bytes", .ours = one(each(log))});
  out.add({.name = "a job in memory",
           .unit = "bytes",
           .ours = one(each(held)),
           .note = "with its payload of 64 bytes"});
  out.add({.name = "a job in an image",
           .unit = "bytes",
           .ours = one(each(static_cast<double>(image.size)))});
  out.add({.name = "a job written to the log and read there",
           .unit = "ns",
           .ours = one(each(reading))});
  out.add({.name = "an image is made", .unit = "ms", .ours = make, .note = jobs_});
  out.add({.name = "the longest turn of that", .unit = "us", .ours = make_turn});
  out.add({.name = "an image is read", .unit = "ms", .ours = read, .note = jobs_});
  out.add({.name = "the longest turn of that, too", .unit = "us", .ours = read_turn});
  out.add({.name = "what was read is forgotten", .unit = "ms", .ours = forget, .note = jobs_});
}

}  // namespace

int main(int argc, char** argv) {
  auto const number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  auto const pairs = number(1, 10'000);
  auto const rounds = static_cast<std::size_t>(number(2, 5));
  auto const future = number(3, 1'000'000);
  report out{"nats"};
  for (std::uint64_t const in_flight : {std::uint64_t{64}, std::uint64_t{1}}) {
    auto const n = in_flight == 1 ? pairs / 10 : pairs;
    out.section(std::to_string(in_flight) + " in flight, on one connection");
    keys(out, in_flight, n, rounds);
    jobs(out, in_flight, 2 * n, rounds);
  }
  out.section("a shard with many jobs");
  dequeues(out, future, rounds);
  growth(out, future, rounds);
  out.finish();
}
