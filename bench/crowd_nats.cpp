// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Several processes on one server, which share a key or a queue: takes of one key, waiters of one
// limiter, dequeues and enqueues of one queue; and the memory of a process that only enqueues into
// a queue with many jobs.
//
//     bench_crowd_nats [rounds] [takes|far|waiters|jobs|memory]
//
// The processes are forked by one that has no thread and no client, and each makes its own store.
// They begin together, warm up for a second, and are counted for three.

#include "distance.hpp"
#include "nats_rig.hpp"
#include "report.hpp"
#include "weir/limiter.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace weir_bench;
using nats_test::server;
using std::chrono::steady_clock;
using steady_point = steady_clock::time_point;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""min;

constexpr auto warm_up = 1s;
constexpr auto counted = 3s;
constexpr unsigned longest_life = 60;  // seconds, of a process
constexpr std::size_t in_flight = 64;  // of a process
constexpr std::size_t payload_size = 100;
constexpr std::size_t most_processes = 10;

constexpr auto as_awaited = boost::asio::as_tuple(boost::asio::use_awaitable);
template <class T = void>
using awaitable = boost::asio::awaitable<T>;

double seconds(steady_clock::duration d) { return std::chrono::duration<double>{d}.count(); }
double milliseconds(steady_clock::duration d) { return 1000 * seconds(d); }

// ---------------------------------------------------------------------------------- processes

/// An error, and how often it was the end of a command.
struct failure {
  std::array<char, 120> text{};
  std::uint64_t times = 0;
};

/// The results of one process: read when it has ended.
struct tally {
  std::uint64_t done = 0;
  double rate = 0;  ///< of what was done, for each second
  double waited = 0;
  double longest = 0;
  double memory = 0;
  std::array<failure, 6> failures{};

  void failed(std::string_view text) noexcept {
    auto const length = std::min(text.size(), failures[0].text.size() - 1);
    for (auto& f : failures) {
      if (f.times == 0) std::memcpy(f.text.data(), text.data(), length);
      if (f.times == 0 || text.substr(0, length) == f.text.data()) {
        ++f.times;
        return;
      }
    }
  }
};

/// Common to all processes of a measurement.
struct board {
  std::atomic<std::size_t> ready = 0;
  std::atomic<steady_clock::rep> begin = 0;
  std::atomic<bool> over = false;
  std::atomic<std::uint16_t> far_port = 0;
  std::atomic<int> held = 0;
  std::atomic<int> most_held = 0;
  std::array<tally, most_processes> of{};
};

/// The processes of a measurement, and the memory that they share.
class crowd {
 public:
  crowd() {
    void* const at =
        ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error{"no memory to share"};
    shared_ = new (at) board;
  }
  crowd(crowd const&) = delete;
  crowd& operator=(crowd const&) = delete;
  ~crowd() {
    for (auto const& c : running_) ::kill(c.first, SIGKILL);
    wait();
    ::munmap(shared_, sizeof(board));
  }

  [[nodiscard]] board& shared() const noexcept { return *shared_; }
  [[nodiscard]] tally& of(std::size_t i) const noexcept { return shared_->of.at(i); }

  /// Begins the process of this number. It ends when `work` returns, or after `longest_life`.
  void begin(std::size_t number, std::function<void()> const& work) {
    std::fflush(nullptr);
    auto const parent = ::getpid();
    auto const pid = ::fork();
    if (pid < 0) throw std::runtime_error{"no process can be started"};
    if (pid != 0) {
      running_.emplace(pid, number);
      return;
    }
    // The server and its directory are the parent's: nothing of them is destroyed here.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::alarm(longest_life);
    try {
      work();
    } catch (std::exception const& e) {
      of(number).failed(e.what());
    }
    ::_exit(0);
  }
  /// Waits until one process has ended, and lets its failures be known.
  void wait(std::size_t number) {
    for (auto i = running_.begin(); i != running_.end(); ++i) {
      if (i->second == number) {
        end_of(i->first, number);
        running_.erase(i);
        return;
      }
    }
  }
  void wait() {
    while (!running_.empty()) wait(running_.begin()->second);
  }
  void kill(std::size_t number) {
    for (auto const& [pid, of] : running_) {
      if (of == number) ::kill(pid, SIGKILL);
    }
  }
  /// Waits until so many are ready, or it is in vain.
  void wait_for_ready(std::size_t n) const {
    auto const end = steady_clock::now() + std::chrono::seconds{longest_life};
    while (shared_->ready < n && steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  }

 private:
  void end_of(::pid_t pid, std::size_t number) const {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
      of(number).failed("killed by signal " + std::to_string(WTERMSIG(status)));
    }
  }

  board* shared_ = nullptr;
  std::map<::pid_t, std::size_t> running_{};
};

/// A process that makes commands on a store of its own.
class member {
 public:
  /// @param port of the server, or of what stands for it
  member(std::uint16_t port, crowd const& c, std::size_t number)
      : store{io.get_executor(), "nats://127.0.0.1:" + std::to_string(port)},
        shared_{c.shared()},
        own_{c.of(number)} {
    store.async_run([this](error_code) { left_ = true; });
    deadline_.expires_after(std::chrono::seconds{longest_life - 2});
    deadline_.async_wait([this](error_code) {
      own_.failed("a process did not end in time");
      ::_exit(1);
    });
  }
  member(member const&) = delete;
  member& operator=(member const&) = delete;

  using work = std::function<awaitable<>()>;

  /// Runs to the end of it.
  void run(work const& main) {
    boost::asio::co_spawn(io, main(), [this](std::exception_ptr const& e) {
      try {
        if (e) std::rethrow_exception(e);
      } catch (std::exception const& thrown) {
        own_.failed(thrown.what());
      }
      io.stop();
    });
    io.run();
  }

  /// Is ready once `first` is done, begins with the other processes of the crowd, and counts what
  /// so many of `one` do meanwhile.
  void measure(std::size_t processes, work const& first, std::size_t at_once, work const& one) {
    run([&]() -> awaitable<> {
      co_await first();
      ++shared_.ready;
      while (shared_.ready < processes) co_await pause(1ms);
      auto begin = steady_clock::rep{0};
      auto const now = steady_clock::now().time_since_epoch().count();
      if (shared_.begin.compare_exchange_strong(begin, now)) begin = now;
      from_ = steady_point{steady_clock::duration{begin}} + warm_up;
      until_ = from_ + counted;
      for (std::size_t i = 0; i != at_once; ++i) {
        boost::asio::co_spawn(io, one(), [](std::exception_ptr const& e) {
          if (e) std::rethrow_exception(e);
        });
      }
      co_await pause(until_ - steady_clock::now());
      own_.rate = static_cast<double>(own_.done) / seconds(counted);
    });
  }

  /// Ends the connection in good order.
  void leave() {
    store.close();
    io.restart();
    while (!left_) io.run_one();
  }

  awaitable<> pause(steady_clock::duration d) {
    boost::asio::steady_timer timer{io, d};
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
  /// Notes an error, and goes on a little later.
  awaitable<> failed(error_code ec) {
    own_.failed(ec.message());
    co_await pause(1ms);
  }
  /// A step is done. @return does it count?
  bool done() noexcept {
    auto const now = steady_clock::now();
    bool const counts = now >= from_ && now < until_;
    if (counts) ++own_.done;
    return counts;
  }
  [[nodiscard]] steady_point until() const noexcept { return until_; }
  [[nodiscard]] tally& own() const noexcept { return own_; }
  [[nodiscard]] board& shared() const noexcept { return shared_; }

  boost::asio::io_context io{1};
  nats_store store;

 private:
  board& shared_;
  tally& own_;
  boost::asio::steady_timer deadline_{io};
  bool left_ = false;
  steady_point from_ = steady_point::max();
  steady_point until_ = steady_point::max();
};

/// Begins a process that works as a member of the crowd. It ends without giving its connection up.
void begin_member(crowd& c, std::uint16_t port, std::size_t number,
                  std::function<void(member&)> const& work) {
  c.begin(number, [&, port, number] {
    member m{port, c, number};
    work(m);
    ::_exit(0);
  });
}
void begin_member(crowd& c, server const& s, std::size_t number,
                  std::function<void(member&)> const& work) {
  begin_member(c, s.port(), number, work);
}

/// Asks until there is an answer.
template <class C>
awaitable<> asks(member& m, C const c) {
  for (;;) {
    auto const [ec, got] = co_await m.store.async_execute(c, as_awaited);
    if (!ec) co_return;
    co_await m.failed(ec);
  }
}

/// Adds the failures of a measurement to a note.
void note_failures(std::string& note, crowd const& c) {
  std::map<std::string, std::uint64_t> all;
  for (auto const& t : c.shared().of) {
    for (auto const& f : t.failures) {
      if (f.times != 0) all[f.text.data()] += f.times;
    }
  }
  for (auto const& [text, times] : all) {
    note += (note.empty() ? "" : "; ") + std::to_string(times) + " times: " + text;
  }
}

double total_rate(crowd const& c) {
  double out = 0;
  for (auto const& t : c.shared().of) out += t.rate;
  return out;
}

std::string of_processes(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " process" : " processes");
}

// -------------------------------------------------------------------------------------- takes

awaitable<> takes_one(member& m) {
  static quota const quotas[] = {quota::per_second(1'000'000'000).burst(1'000'000'000)};
  for (;;) {
    command::take const c{"key", quotas, 1, {}};
    auto const [ec, got] = co_await m.store.async_execute(c, as_awaited);
    if (ec) {
      co_await m.failed(ec);
    } else if (!got.allowed) {
      m.own().failed("a take was denied");
    } else {
      m.done();
    }
  }
}

void take_in(member& m, std::size_t processes, std::size_t at_once = in_flight) {
  static quota const quotas[] = {quota::per_second(1).burst(1)};
  auto const first = [&] { return asks(m, command::peek_bucket{"another", quotas, 1, {}}); };
  m.measure(processes, first, at_once, [&] { return takes_one(m); });
}

void answer_all(natsConnection* c, char const* to) {
  static std::string const answers(32 * in_flight, 'a');
  must(natsConnection_Publish(c, to, answers.data(), static_cast<int>(answers.size())));
}

/// For each message, in which commands of a process were joined, one with their answers.
class bare_service : by_hand {
 public:
  explicit bare_service(server const& s) : by_hand{s, true} {
    listen("bare.ask", &bare_service::on_request, this);
    must(natsConnection_Flush(connection()));
  }

 private:
  static void on_request(natsConnection* c, natsSubscription*, natsMsg* m, void*) {
    answer_all(c, natsMsg_GetReply(m));
    natsMsg_Destroy(m);
  }
};

/// The same, but what it answers is acknowledged by JetStream before: one write at a time, for all
/// messages that have come meanwhile.
class writing_service : by_hand {
 public:
  explicit writing_service(server const& s) : by_hand{s, true} {
    constexpr std::string_view stream =
        R"({"name":"KEPT","subjects":["kept"],"max_msgs_per_subject":1})";
    natsMsg* made = nullptr;
    must(natsConnection_Request(&made, connection(), "$JS.API.STREAM.CREATE.KEPT", stream.data(),
                                static_cast<int>(stream.size()), 5000));
    natsMsg_Destroy(made);
    listen("bare.*", &writing_service::on_message, this);
    must(natsConnection_Flush(connection()));
  }

 private:
  static void on_message(natsConnection* c, natsSubscription*, natsMsg* m, void* closure) {
    auto& self = *static_cast<writing_service*>(closure);
    if (std::string_view{natsMsg_GetSubject(m)} == "bare.ask") {
      self.come_.emplace_back(natsMsg_GetReply(m));
    } else {
      for (auto const& to : self.written_) answer_all(c, to.c_str());
      self.written_.clear();
    }
    natsMsg_Destroy(m);
    if (!self.written_.empty() || self.come_.empty()) return;
    self.written_.swap(self.come_);
    static std::string const record(100, 'r');
    must(natsConnection_PublishRequest(c, "kept", "bare.written", record.data(),
                                       static_cast<int>(record.size())));
  }

  std::vector<std::string> come_;
  std::vector<std::string> written_;  ///< or about to be
};

/// A process that asks it: as many commands in flight, all in one message.
class bare_asker : by_hand {
 public:
  bare_asker(server const& s, std::size_t number)
      : by_hand{s, true},
        inbox_{"answers." + std::to_string(number)} {
    listen(inbox_.c_str(), &bare_asker::on_reply, this);
    must(natsConnection_Flush(connection()));
  }
  void ask() {
    static std::string const commands(32 * in_flight, 'c');
    must(natsConnection_PublishRequest(connection(), "bare.ask", inbox_.c_str(), commands.data(),
                                       static_cast<int>(commands.size())));
  }
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }

 private:
  static void on_reply(natsConnection*, natsSubscription*, natsMsg* m, void* closure) {
    auto& self = *static_cast<bare_asker*>(closure);
    natsMsg_Destroy(m);
    self.done_ += in_flight;
    self.ask();
  }

  std::string inbox_;
  std::atomic<std::uint64_t> done_ = 0;
};

void ask_bare(server const& s, crowd const& c, std::size_t number, std::size_t processes) {
  bare_asker asker{s, number};
  ++c.shared().ready;
  c.wait_for_ready(processes + 1);
  asker.ask();
  std::this_thread::sleep_for(warm_up);
  auto const began = steady_clock::now();
  auto const before = asker.done();
  std::this_thread::sleep_for(counted);
  auto const done = asker.done() - before;
  c.of(number).done = done;
  c.of(number).rate = static_cast<double>(done) / seconds(steady_clock::now() - began);
  ::_exit(0);  // and answers nothing more
}

template <class Service>
void serve_bare(server const& s, crowd const& c) {
  Service const service{s};
  ++c.shared().ready;
  while (!c.shared().over) std::this_thread::sleep_for(1ms);
  ::_exit(0);
}

void takes(report& out, std::size_t rounds) {
  for (std::size_t const n : {1U, 2U, 4U, 8U}) {
    samples ours;
    samples bare;
    samples writing;
    samples even;
    samples least;
    samples largest;
    std::string note;
    auto const measure_ours = [&] {
      server const s;
      crowd c;
      for (std::size_t i = 0; i != n; ++i) {
        begin_member(c, s, i, [&](member& m) { take_in(m, n); });
      }
      c.wait();
      auto const total = total_rate(c);
      auto const end = c.shared().of.begin() + static_cast<std::ptrdiff_t>(n);
      auto const [a, b] = std::ranges::minmax_element(c.shared().of.begin(), end, {}, &tally::rate);
      ours.push_back(total);
      even.push_back(total / static_cast<double>(n));
      least.push_back(a->rate);
      largest.push_back(b->rate * static_cast<double>(n) / total);
      note_failures(note, c);
    };
    auto const measure = [&]<class Service>(std::type_identity<Service>, samples& rates) {
      server const s;
      crowd c;
      c.begin(n, [&] { serve_bare<Service>(s, c); });
      for (std::size_t i = 0; i != n; ++i) {
        c.begin(i, [&, i] { ask_bare(s, c, i, n); });
      }
      for (std::size_t i = 0; i != n; ++i) c.wait(i);
      c.shared().over = true;
      c.wait();
      rates.push_back(total_rate(c));
      note_failures(note, c);
    };
    for (std::size_t round = 0; round != rounds; ++round) {
      if (round % 2 == 0) measure_ours();
      measure(std::type_identity<bare_service>{}, bare);
      measure(std::type_identity<writing_service>{}, writing);
      if (round % 2 != 0) measure_ours();
    }
    auto const name = "takes of one key: " + of_processes(n);
    out.add({.name = name,
             .unit = "/s",
             .ours = ours,
             .reference_name = "a bare service, as many joined",
             .reference = bare,
             .note = note});
    out.add({.name = name + ", written",
             .unit = "/s",
             .ours = ours,
             .reference_name = "the same service, which writes before it answers",
             .reference = writing});
    if (n == 1) continue;
    out.add({.name = name + ", the least of a process",
             .unit = "/s",
             .ours = least,
             .reference_name = "an even share",
             .reference = even});
    out.add({.name = name + ", the most of a process", .unit = "shares", .ours = largest});
  }
}

// ---------------------------------------------------------------------------------------- far

/// Takes of one key by a process far away with so many in flight, beside so many near ones, and by
/// all of them.
std::pair<double, double> takes_from_afar(std::size_t near, std::size_t at_once,
                                          std::string& note) {
  server const s;
  crowd c;
  c.begin(near + 1, [&] {
    distance const line{s.port(), 4ms};
    c.shared().far_port = line.port();
    while (!c.shared().over) std::this_thread::sleep_for(1ms);
  });
  while (c.shared().far_port == 0) std::this_thread::sleep_for(1ms);
  auto const take = [&](member& m) { take_in(m, near + 1); };
  for (std::size_t i = 0; i != near; ++i) begin_member(c, s, i, take);
  begin_member(c, c.shared().far_port, near, [&](member& m) { take_in(m, near + 1, at_once); });
  for (std::size_t i = 0; i != near + 1; ++i) c.wait(i);
  c.shared().over = true;
  c.wait();
  note_failures(note, c);
  return {c.of(near).rate, total_rate(c)};
}

void far(report& out, std::size_t rounds) {
  constexpr std::size_t near = 8;
  samples alone;
  samples beside;
  samples even;
  samples more;
  samples even_of_more;
  std::string note;
  for (std::size_t round = 0; round != rounds; ++round) {
    alone.push_back(takes_from_afar(0, in_flight, note).first);
    auto const [its, all] = takes_from_afar(near, in_flight, note);
    beside.push_back(its);
    even.push_back(all / (near + 1));
    auto const [its_more, all_of_more] = takes_from_afar(near, 4 * in_flight, note);
    more.push_back(its_more);
    even_of_more.push_back(all_of_more / (near + 1));
  }
  out.add({.name = "a process 4 ms away",
           .unit = "/s",
           .ours = beside,
           .reference_name = "an even share of it and 8 near ones",
           .reference = even,
           .note = note});
  out.add({.name = "the same with four times as much in flight",
           .unit = "/s",
           .ours = more,
           .reference_name = "an even share of it and 8 near ones",
           .reference = even_of_more});
  out.add({.name = "a process 4 ms away, of what it gets alone",
           .unit = "/s",
           .ours = beside,
           .reference_name = "alone",
           .reference = alone});
}

// ------------------------------------------------------------------------------------ waiters

constexpr std::uint32_t permits = 10;
constexpr auto hold = 2ms;

awaitable<> waits(member& m, limiter<nats_store> const& l, steady_point& since) {
  auto& all = m.shared();
  for (;;) {
    since = steady_clock::now();
    auto [ec, got] = co_await l.async_acquire("key", as_awaited);
    if (ec) {
      co_await m.failed(ec);
      continue;
    }
    auto const waited = milliseconds(steady_clock::now() - std::exchange(since, steady_point{}));
    if (m.done()) {
      m.own().waited += waited;
      m.own().longest = std::max(m.own().longest, waited);
    }
    int const held = ++all.held;
    for (int most = all.most_held; most < held;) {
      if (all.most_held.compare_exchange_weak(most, held)) break;
    }
    co_await m.pause(hold);
    --all.held;
  }
}

void wait_in(member& m, std::size_t processes, std::size_t waiters) {
  limiter<nats_store> const l{m.store, {.limit = permits}};
  auto const first = [&] { return asks(m, command::inspect_permits{"another", 1}); };
  std::vector<steady_point> since(waiters);
  std::size_t next = 0;
  m.measure(processes, first, waiters, [&] { return waits(m, l, since[next++]); });
  for (auto const& s : since) {
    if (s != steady_point{}) {  // it still waits
      m.own().longest = std::max(m.own().longest, milliseconds(m.until() - s));
    }
  }
}

void waiters(report& out, std::size_t rounds) {
  struct shape {
    std::size_t processes;
    std::size_t waiters;
  };
  for (auto const& shape : {shape{1, 10}, shape{1, 1000}, shape{4, 250}}) {
    samples grants;
    samples mean;
    samples worst;
    std::string note;
    int most_held = 0;
    for (std::size_t round = 0; round != rounds; ++round) {
      server const s;
      crowd c;
      for (std::size_t i = 0; i != shape.processes; ++i) {
        begin_member(c, s, i, [&](member& m) { wait_in(m, shape.processes, shape.waiters); });
      }
      c.wait();
      tally all;
      for (auto const& t : c.shared().of) {
        all.done += t.done;
        all.waited += t.waited;
        all.longest = std::max(all.longest, t.longest);
      }
      grants.push_back(total_rate(c));
      mean.push_back(all.waited / static_cast<double>(std::max<std::uint64_t>(all.done, 1)));
      worst.push_back(all.longest);
      most_held = std::max(most_held, c.shared().most_held.load());
      note_failures(note, c);
    }
    if (most_held > static_cast<int>(permits)) {
      note += (note.empty() ? "" : "; ") + std::to_string(most_held) + " were held at once";
    }
    auto const name = "limit 10, held for 2 ms: " + of_processes(shape.processes) + " of " +
                      std::to_string(shape.waiters) + " waiters";
    out.add({.name = name,
             .unit = "/s",
             .ours = grants,
             .reference_name = "held without a pause",
             .reference = permits / seconds(hold),
             .note = note});
    out.add({.name = name + ", mean wait", .unit = "ms", .ours = mean});
    out.add({.name = name + ", worst wait", .unit = "ms", .ours = worst});
  }
}

// --------------------------------------------------------------------------------------- jobs

new_job make_job(id_source const& ids) {
  static std::string const payload(payload_size, 'p');
  new_job j;
  j.id = ids.job();
  j.kind = "kind";
  j.payload = payload;
  return j;
}

awaitable<> enqueue_one(member& m, id_source const& ids) {
  auto const j = make_job(ids);
  command::enqueue_jobs const c{"queue", {&j, 1}};
  auto const [ec, got] = co_await m.store.async_execute(c, as_awaited);
  if (ec) {
    co_await m.failed(ec);
  } else {
    m.done();
  }
}

awaitable<> enqueues(member& m, id_source const& ids) {
  for (;;) co_await enqueue_one(m, ids);
}

/// Claims one and completes it. @return was there one?
awaitable<bool> serve_one(member& m, std::string_view holder) {
  command::dequeue_jobs const claim{"queue", holder, 0, 1, 1min};
  auto const [ec, got] = co_await m.store.async_execute(claim, as_awaited);
  if (ec) {
    co_await m.failed(ec);
    co_return false;
  }
  if (got.jobs.empty()) co_return false;
  finished_job const f{got.jobs[0].id, got.jobs[0].fence, {}};
  command::complete_jobs const end{"queue", {&f, 1}};
  auto const [failed, outcome] = co_await m.store.async_execute(end, as_awaited);
  if (failed) {
    co_await m.failed(failed);
    co_return false;
  }
  if (outcome[0] == complete_outcome::completed) {
    m.done();
  } else {
    m.own().failed("a job was not completed");
  }
  co_return true;
}

// With `if (co_await ...) continue;` g++ 12 makes a program that crashes.
awaitable<> serves(member& m, std::string_view holder) {
  for (;;) {
    bool const served = co_await serve_one(m, holder);
    if (!served) {
      m.own().failed("a dequeue gave no job");
      co_await m.pause(1ms);
    }
  }
}

/// Knows the queue.
awaitable<> sees_queue(member& m) { return asks(m, command::read_queue_stats{"queue"}); }

awaitable<> fills(member& m, std::uint64_t n) {
  id_source const ids;
  constexpr std::uint64_t most = 1000;
  for (; n != 0; n -= std::min(n, most)) {
    std::vector<new_job> jobs(std::min(n, most));
    for (auto& j : jobs) j = make_job(ids);
    command::enqueue_jobs const c{"queue", jobs};
    auto const [ec, got] = co_await m.store.async_execute(c, as_awaited);
    must(ec);
  }
}

void serve_in(member& m, std::size_t processes, std::size_t number) {
  auto const holder = "holder " + std::to_string(number);
  m.measure(processes, [&] { return sees_queue(m); }, in_flight, [&] { return serves(m, holder); });
}

void enqueue_in(member& m, std::size_t processes) {
  id_source const ids;
  auto const first = [&] { return enqueue_one(m, ids); };
  m.measure(processes, first, in_flight, [&] { return enqueues(m, ids); });
}

void jobs(report& out, std::size_t rounds) {
  constexpr std::uint64_t waiting = 500'000;  // more than are served meanwhile
  auto const measure = [&](std::string const& what, std::uint64_t before,
                           std::function<void(member&, std::size_t, std::size_t)> const& in) {
    for (std::size_t const n : {1U, 2U, 4U, 8U}) {
      samples rate;
      std::string note;
      for (std::size_t round = 0; round != rounds; ++round) {
        server const s;
        crowd c;
        if (before != 0) {
          begin_member(c, s, 0, [&](member& m) {
            m.run([&] { return fills(m, before); });
            m.leave();
          });
          c.wait();
        }
        for (std::size_t i = 0; i != n; ++i) {
          begin_member(c, s, i, [&](member& m) { in(m, n, i); });
        }
        c.wait();
        rate.push_back(total_rate(c));
        note_failures(note, c);
      }
      out.add({.name = what + ": " + of_processes(n), .unit = "/s", .ours = rate, .note = note});
    }
  };
  measure("dequeue and complete, one by one", waiting, &serve_in);
  measure("enqueue, one by one", 0,
          [](member& m, std::size_t processes, std::size_t) { enqueue_in(m, processes); });
}

// ------------------------------------------------------------------------------------- memory

/// Resident bytes of this process.
double resident() {
  std::ifstream in{"/proc/self/statm"};
  double pages = 0;
  in >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Fills the queue, and serves it: another job comes for each that has been completed.
awaitable<> keeps(member& m, std::uint64_t waiting) {
  id_source const ids;
  co_await sees_queue(m);
  auto const before = resident();
  co_await fills(m, waiting);
  co_await sees_queue(m);
  if (waiting != 0) m.own().memory = (resident() - before) / static_cast<double>(waiting);
  ++m.shared().ready;
  while (!m.shared().over) {
    bool const served = co_await serve_one(m, "holder");
    if (served) co_await enqueue_one(m, ids);
    co_await m.pause(1ms);
  }
}

/// A process that has done nothing yet, and enqueues.
void enqueue_fresh(member& m) {
  auto const began = steady_clock::now();
  m.run([&]() -> awaitable<> {
    id_source const ids;
    co_await enqueue_one(m, ids);
    m.own().waited = milliseconds(steady_clock::now() - began);
    while (steady_clock::now() < began + 2s) {
      co_await enqueue_one(m, ids);
      co_await m.pause(1ms);
    }
    m.own().memory = resident() / (1 << 20);
  });
}

/// A process that has done nothing yet, and takes the place of one that was killed.
void succeed(member& m, std::uint64_t waiting) {
  auto const began = steady_clock::now();
  m.run([&]() -> awaitable<> {
    co_await sees_queue(m);
    m.own().waited = milliseconds(steady_clock::now() - began);
    auto const stats = co_await m.store.async_execute(command::read_queue_stats{"queue"},
                                                      boost::asio::use_awaitable);
    if (stats.pending < waiting) m.own().failed("jobs are missing");
  });
}

void memory(report& out, std::size_t rounds) {
  constexpr std::uint64_t waiting = 990'000;  // a shard may have 1,000,000
  samples first[2];
  samples size[2];
  samples succession[2];
  samples owned;
  std::string note;
  for (std::size_t round = 0; round != rounds; ++round) {
    for (std::size_t const many : {round % 2, 1 - round % 2}) {
      server const s;
      crowd c;
      begin_member(c, s, 0, [&](member& m) { m.run([&] { return keeps(m, many * waiting); }); });
      c.wait_for_ready(1);
      begin_member(c, s, 1, &enqueue_fresh);
      c.wait(1);
      c.kill(0);
      begin_member(c, s, 2, [&](member& m) { succeed(m, many * waiting); });
      c.wait(2);
      first[many].push_back(c.of(1).waited);
      size[many].push_back(c.of(1).memory);
      succession[many].push_back(c.of(2).waited);
      if (many != 0) owned.push_back(c.of(0).memory);
      note_failures(note, c);
    }
  }
  std::string const name = "990,000 jobs wait: ";
  auto const beside_none = [&](std::string const& what, char const* unit, samples const* of) {
    out.add({.name = name + what,
             .unit = unit,
             .ours = of[1],
             .reference_name = "no job waits",
             .reference = of[0],
             .note = std::exchange(note, {})});
  };
  beside_none("a process that only enqueues, resident", "MiB", size);
  beside_none("its first enqueue", "ms", first);
  beside_none("the owner is killed, and another one answers", "ms", succession);
  out.add(
      {.name = name + "the owner's memory for each, payload included", .unit = "B", .ours = owned});
}

}  // namespace

int main(int argc, char** argv) {
  auto const rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 3;
  std::string_view const only = argc > 2 ? argv[2] : "";
  auto const wanted = [&](std::string_view part) { return only.empty() || only == part; };
  report out{"crowd_nats"};
  if (wanted("takes")) {
    out.section("takes of one key, 64 in flight of each process");
    takes(out, rounds);
  }
  if (wanted("far")) {
    out.section("the same with a process far away");
    far(out, rounds);
  }
  if (wanted("waiters")) {
    out.section("a limiter's waiters");
    waiters(out, rounds);
  }
  if (wanted("jobs")) {
    out.section("jobs of one queue with payloads of 100 bytes, 64 in flight of each process");
    jobs(out, rounds);
  }
  if (wanted("memory")) {
    out.section("a shard with many jobs");
    memory(out, rounds);
  }
  out.finish();
}
