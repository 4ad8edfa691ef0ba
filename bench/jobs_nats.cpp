// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Jobs of the NATS store: enqueueing beside as many publishes made by hand with the C client on one
// connection to the same server, what a dequeue costs in front of a million jobs that are not due,
// and what is kept of a job in the log and in an image.
//
//     bench_jobs_nats [jobs in a round] [rounds] [future jobs]

#include "../test/integration/nats_process.hpp"
#include "paired.hpp"
#include "report.hpp"
#include "weir/store/nats.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using namespace weir_bench;

constexpr std::uint64_t in_flight = 64;
constexpr std::size_t payload_size = 64;

void must(error_code ec) {
  if (ec) throw std::runtime_error{ec.message()};
}
void must(natsStatus s) {
  if (s != NATS_OK) throw std::runtime_error{natsStatus_GetText(s)};
}

/// Publishes by the C client alone, with its threads.
class by_hand {
 public:
  explicit by_hand(server const& s) {
    auto const url = "nats://127.0.0.1:" + std::to_string(s.port());
    natsOptions* options = nullptr;
    must(natsOptions_Create(&options));
    must(natsOptions_SetURL(options, url.c_str()));
    must(natsConnection_Connect(&connection_, options));
    natsOptions_Destroy(options);
    std::string const config =
        R"({"name":"raw","subjects":["raw"],"retention":"limits","storage":"file","discard":"new"})";
    natsMsg* reply = nullptr;
    must(natsConnection_Request(&reply, connection_, "$JS.API.STREAM.CREATE.raw", config.data(),
                                static_cast<int>(config.size()), 5000));
    natsMsg_Destroy(reply);
    must(natsConnection_Subscribe(&inbox_, connection_, "by.hand", &by_hand::on_reply, this));
  }
  by_hand(by_hand const&) = delete;
  by_hand& operator=(by_hand const&) = delete;
  ~by_hand() {
    natsSubscription_Destroy(inbox_);
    natsConnection_Destroy(connection_);
  }

  void publish(std::uint64_t n) {
    left_ = n;
    waited_ = n;
    for (std::uint64_t i = 0; i != std::min(in_flight, n); ++i) one();
    done_.acquire();
  }

 private:
  void one() {
    if (left_ == 0) return;
    --left_;
    // As many bytes as a message of the log has that enqueues one such job.
    static std::string const data(payload_size + 70, 'x');
    must(natsConnection_PublishRequest(connection_, "raw", "by.hand", data.data(),
                                       static_cast<int>(data.size())));
  }
  static void on_reply(natsConnection*, natsSubscription*, natsMsg* m, void* closure) {
    auto& self = *static_cast<by_hand*>(closure);
    natsMsg_Destroy(m);
    if (--self.waited_ == 0) return self.done_.release();
    self.one();
  }

  natsConnection* connection_ = nullptr;
  natsSubscription* inbox_ = nullptr;
  std::atomic<std::uint64_t> left_ = 0;
  std::atomic<std::uint64_t> waited_ = 0;
  std::binary_semaphore done_{0};
};

class rig {
 public:
  explicit rig(server const& s) : store_{io_.get_executor(), s.address()} {
    store_.async_run(boost::asio::detached);
  }
  rig(rig const&) = delete;
  rig& operator=(rig const&) = delete;
  ~rig() {
    store_.close();
    io_.restart();
    io_.run();
  }

  template <class C>
  typename C::result ask(C const& c) {
    typename C::result out{};
    bool done = false;
    store_.async_execute(c, [&](error_code ec, typename C::result r) {
      must(ec);
      out = std::move(r);
      done = true;
    });
    io_.restart();
    while (!done) io_.run_one();
    return out;
  }

  /// Runs chains, in each of which one follows the other, until there were enough. `one(next)` does
  /// one, and calls `next`.
  void together(std::uint64_t n, std::function<void(std::function<void()>)> const& one) {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::function<void()> next = [&] {
      if (begun == n) return;
      ++begun;
      one([&] {
        ++ended;
        next();
      });
    };
    for (std::uint64_t i = 0; i != in_flight; ++i) next();
    io_.restart();
    while (ended != n) io_.run_one();
  }

  void enqueue(std::uint64_t n) {
    together(n, [this](std::function<void()> next) { enqueue_one(std::move(next)); });
  }
  /// A job is enqueued, claimed by its id and completed.
  void cycle(std::uint64_t n) {
    together(n, [this](std::function<void()> next) {
      auto const id = enqueue_one([] {});
      store_.async_execute(
          command::obtain_lease{"queue", id, "holder", 1h},
          [this, next = std::move(next)](error_code ec, std::optional<leased_job> j) mutable {
            must(ec);
            complete(j.value(), std::move(next));
          });
    });
  }
  void dequeue(std::string const& queue, std::uint64_t n) {
    for (std::uint64_t i = 0; i != n; ++i) {
      auto const got = ask(command::dequeue_jobs{queue, "holder", 0, 1, 1h});
      finished_job const f{got.jobs.at(0).id, got.jobs.at(0).fence, {}};
      (void)ask(command::complete_jobs{queue, {&f, 1}});
    }
  }
  void enqueue_many(std::string const& queue, std::uint64_t n, duration delay) {
    constexpr std::uint64_t most = 1000;
    for (; n != 0; n -= std::min(n, most)) {
      std::vector<new_job> jobs(std::min(n, most));
      for (auto& j : jobs) {
        j = job();
        j.delay = delay;
      }
      (void)ask(command::enqueue_jobs{queue, jobs});
    }
  }

 private:
  new_job job() {
    static std::string const payload(payload_size, 'p');
    new_job j;
    j.id = ids_.job();
    j.kind = "kind";
    j.payload = payload;
    return j;
  }
  job_id enqueue_one(std::function<void()> next) {
    auto const j = job();
    store_.async_execute(
        command::enqueue_jobs{"queue", {&j, 1}},
        [next = std::move(next)](error_code ec, command::enqueue_jobs::result const&) {
          must(ec);
          next();
        });
    return j.id;
  }
  void complete(leased_job const& j, std::function<void()> next) {
    finished_job const f{j.id, j.fence, {}};
    store_.async_execute(
        command::complete_jobs{"queue", {&f, 1}},
        [next = std::move(next)](error_code ec, command::complete_jobs::result const&) {
          must(ec);
          next();
        });
  }

  boost::asio::io_context io_{};
  id_source ids_;
  nats_store store_;
};

}  // namespace

int main(int argc, char** argv) {
  auto const number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  auto const jobs = number(1, 20'000);
  auto const rounds = static_cast<std::size_t>(number(2, 5));
  auto const future = number(3, 1'000'000);
  report out{"jobs_nats"};

  out.section("64 in flight, payloads of 64 bytes, one connection");
  {
    server s;
    rig r{s};
    by_hand raw{s};
    auto const got = in_turn(rounds, {[&] { return per_second(jobs, [&] { r.enqueue(jobs); }); },
                                      [&] { return per_second(jobs, [&] { raw.publish(jobs); }); },
                                      [&] { return per_second(jobs, [&] { r.cycle(jobs); }); }});
    out.add({.name = "enqueue",
             .unit = "jobs/s",
             .ours = got[0],
             .reference_name = "raw publishes",
             .reference = got[1],
             .goal = ratio_at_least(0.8)});
    out.add({.name = "enqueue, claim, complete", .unit = "jobs/s", .ours = got[2]});
  }

  out.section("one after the other");
  {
    server s;
    rig r{s};
    constexpr std::uint64_t some = 500;
    r.enqueue_many("many", future, 1h);
    r.enqueue_many("few", 1000, 1h);
    auto const dequeue = [&](std::string const& queue) {
      r.enqueue_many(queue, some, {});
      return nanoseconds_of([&] { r.dequeue(queue, some); }) / static_cast<double>(some) / 1000;
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
  }

  out.section("what is kept of a job");
  {
    detail::nats_job_replica replica;
    id_source const ids;
    std::string const payload(payload_size, 'p');
    constexpr std::uint64_t many = 100'000;
    std::uint64_t log = 0;
    for (std::uint64_t i = 0; i != many; ++i) {
      new_job j;
      j.id = ids.job();
      j.kind = "kind";
      j.payload = payload;
      detail::nats_batch_writer batch{{ids.job(), i}};
      batch.add(command::enqueue_jobs{"queue", {&j, 1}}, std::nullopt);
      detail::nats_logged const message{i + 1, time_point{std::chrono::hours{500'000}},
                                        std::move(batch).take()};
      log += message.data.size();
      detail::nats_batch_reader reader{message.data};
      (void)replica.read(message, reader, [](auto const&, auto const&) {});
    }
    auto const each = [&](std::uint64_t n) { return static_cast<double>(n) / many; };
    out.add({.name = "a message that enqueues one job", .unit = "bytes", .ours = each(log)});
    out.add({.name = "a job in an image", .unit = "bytes", .ours = each(replica.image().size())});
  }
  out.finish();
}
