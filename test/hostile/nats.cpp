// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// NATS: servers that say what none should (F90, F96), connections on which bytes change, and
// damaged records of every kind (F93, F97).

#include "weir/store/nats.hpp"

#include "campaign.hpp"
#include "integration/nats_process.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using hostile::dice;
using hostile::expect;
namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto lasting = 1min;
constexpr auto hang = 10s;

// --------------------------------------------------------------------------------- what changes

/// Changes some bytes, as a broken or hostile peer may.
void mutate(std::string& s, dice& d) {
  static constexpr std::array<std::string_view, 16> words{"2147483640",
                                                          "2147483647",
                                                          "4294967295",
                                                          "-1",
                                                          "99999999999999999999",
                                                          "\r\n",
                                                          "\r",
                                                          "\n",
                                                          " ",
                                                          "MSG a 1 5\r\n",
                                                          "PING\r\n",
                                                          "INFO {",
                                                          "HMSG ",
                                                          "\"seq\":18446744073709551615",
                                                          "[[[[[[[[[[",
                                                          "\xff"};
  for (auto times = 1 + d.below(4); times != 0; --times) {
    auto const at = static_cast<std::size_t>(d.below(s.size() + 1));
    switch (d.below(6)) {
      case 0:
        if (at < s.size()) s[at] = static_cast<char>(d.below(256));
        break;
      case 1: s.erase(at, static_cast<std::size_t>(d.below(16))); break;
      case 2: s.insert(at, d.pick(words)); break;
      case 3: s.insert(at, s.substr(at, static_cast<std::size_t>(d.below(64)))); break;
      case 4: s.resize(at); break;
      default: {
        auto const digit = s.find_first_of("0123456789", at);
        if (digit != s.npos) s.replace(digit, 1, d.pick(words));
      }
    }
  }
}

// ------------------------------------------------------------------------------------- a client

nats_options hasty() {
  nats_options o;
  o.offline_patience = 50ms;
  o.connect_timeout = 100ms;
  o.request_timeout = 100ms;
  o.health_check_interval = 50ms;
  o.least_reconnect_wait = 1ms;
  o.longest_reconnect_wait = 5ms;
  o.poll_interval = 10ms;
  return o;
}

/// Asks for one of each noun; every answer counts, whatever it is.
struct client {
  client(asio::io_context& on, nats_address const& where, nats_options const& options)
      : io{on},
        store{on.get_executor(), where, options} {
    store.async_run([this](error_code) { ended = true; });
  }

  template <class C>
  void ask(C const& c) {
    ++asked;
    store.async_execute(c, [this](error_code ec, auto const&) {
      ++answered;
      if (!ec) ++done;
      last = ec;
    });
  }
  void ask_all(std::string_view key) {
    static auto const quota = quota::per_second(10);
    ask(command::acquire_lock{key, "holder", lasting});
    ask(command::acquire_permit{key, "holder", 2, lasting, {}});
    ask(command::take{key, {&quota, 1}, 1, {}});
    ask(command::inspect_permits{key});
    new_job j;
    j.id = id_source{}.job();
    j.kind = "kind";
    j.payload = "payload";
    ask(command::enqueue_jobs{"queue", {&j, 1}});
    ask(command::dequeue_jobs{"queue", "holder", 0, 1, lasting});
    ask(command::read_queue_stats{"queue"});
  }
  void settle(char const* what) {
    expect(run_until([this] { return answered == asked; }), std::string{what} + " hangs");
  }
  void finish() {
    store.close();
    expect(run_until([this] { return ended && answered == asked; }), "closing hangs");
  }

  template <class P>
  bool run_until(P done_now) {
    auto const until = std::chrono::steady_clock::now() + hang;
    io.restart();
    while (!done_now()) {
      if (std::chrono::steady_clock::now() > until) return false;
      io.run_one_for(100ms);
      if (io.stopped()) io.restart();
    }
    return true;
  }

  asio::io_context& io;
  nats_store store;
  int asked = 0;
  int answered = 0;
  int done = 0;
  error_code last{};
  bool ended = false;
};

nats_address at(std::uint16_t port) {
  return nats_address::parse("nats://127.0.0.1:" + std::to_string(port))
      .value()
      .authenticate("user", "password");
}

// -------------------------------------------------------------------------- a hostile endpoint

enum class stage : std::uint8_t { greeting, tls, authentication, replies, floods };

std::string info(dice& d, bool secure) {
  std::string urls;
  for (auto n = d.below(3) == 0 ? d.below(600) : 0; n != 0; --n) {
    urls += (urls.empty() ? "\"" : ",\"") + std::string{"127.0.0.1:"} + std::to_string(n) + '"';
  }
  return std::string{R"(INFO {"server_id":"A","version":"2.15.1","proto":1,"headers":true,)"} +
         (secure ? R"("tls_required":true,)" : "") + R"("max_payload":1048576,"connect_urls":[)" +
         urls + "]}\r\n";
}

/// A server that does as one should but for its stage, in which it does what the dice say.
class endpoint {
 public:
  endpoint(asio::io_context& io, stage where, dice d)
      : acceptor_{io, {asio::ip::address_v4::loopback(), 0}},
        stage_{where},
        dice_{d} {
    asio::co_spawn(io, accept(), asio::detached);
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void stop() {
    error_code ignored;
    acceptor_.close(ignored);
    for (auto const& s : sockets_) s->close(ignored);
  }

 private:
  using socket = std::shared_ptr<tcp::socket>;

  asio::awaitable<void> accept() {
    for (;;) {
      auto const s = std::make_shared<tcp::socket>(acceptor_.get_executor());
      co_await acceptor_.async_accept(*s, asio::use_awaitable);
      std::erase_if(sockets_, [](socket const& old) { return !old->is_open(); });
      sockets_.push_back(s);
      asio::co_spawn(acceptor_.get_executor(), serve(s), asio::detached);
    }
  }

  asio::awaitable<void> say(socket const& s, std::string text) {
    co_await asio::async_write(*s, asio::buffer(text), asio::use_awaitable);
  }
  /// Something that none should say; then perhaps nothing more.
  asio::awaitable<bool> misbehave(socket const& s, std::string text) {
    switch (dice_.below(10)) {
      case 0: co_return false;  // falls silent
      case 1: s->close(); co_return false;
      case 2:
        s->set_option(tcp::socket::linger{true, 0});
        s->close();
        co_return false;
      case 3: text = std::string(static_cast<std::size_t>(dice_.below(300'000)), 'x'); break;
      case 4: {
        std::string noise(static_cast<std::size_t>(dice_.below(5000)), ' ');
        for (auto& c : noise) c = static_cast<char>(dice_.below(256));
        text = noise;
        break;
      }
      case 5:
        text = "INFO " + std::string(static_cast<std::size_t>(dice_.below(40'000)), '[');
        break;
      default: mutate(text, dice_);
    }
    co_await say(s, std::move(text));
    co_return dice_.chance(80);
  }

  asio::awaitable<void> serve(socket s) {
    std::string read;
    auto hello = info(dice_, stage_ == stage::tls);
    if (stage_ == stage::greeting) {
      if (!co_await misbehave(s, hello)) co_return;
    } else {
      co_await say(s, hello);
    }
    if (stage_ == stage::tls) {
      (void)co_await misbehave(s, std::string("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", 11) +
                                      std::string(111, 'r'));
      co_return;
    }
    for (;;) {
      auto const n = co_await asio::async_read_until(*s, asio::dynamic_buffer(read), "\r\n",
                                                     asio::use_awaitable);
      auto line = read.substr(0, n - 2);
      read.erase(0, n);
      if (line.starts_with("PING")) {
        std::string answer = "PONG\r\n";
        if (stage_ == stage::authentication) {
          static constexpr std::array<std::string_view, 5> answers{
              "PONG\r\n", "-ERR 'Authorization Violation'\r\n", "+OK\r\nPONG\r\n",
              "-ERR 'Permissions Violation for Publish to \"weir.k.l.key\"'\r\n", "PONG"};
          answer = dice_.pick(answers);
          if (!co_await misbehave(s, answer)) co_return;
          continue;
        }
        co_await say(s, answer);
        if (stage_ == stage::floods) co_await flood(s);
      } else if (line.starts_with("SUB ")) {
        subscribed(line);
      } else if (line.starts_with("PUB ") || line.starts_with("HPUB ")) {
        auto const size =
            static_cast<std::size_t>(std::strtoull(line.c_str() + line.rfind(' '), nullptr, 10));
        if (size > (1U << 20U)) co_return;
        while (read.size() < size + 2) {
          std::array<char, 4096> some{};
          auto const m = co_await s->async_read_some(asio::buffer(some), asio::use_awaitable);
          read.append(some.data(), m);
        }
        auto const data = read.substr(0, size);
        read.erase(0, size + 2);
        auto text = answer(line, data);
        if (text.empty()) continue;
        if (stage_ == stage::replies && dice_.chance(40)) {
          if (!co_await misbehave(s, std::move(text))) co_return;
        } else {
          co_await say(s, std::move(text));
        }
      }
    }
  }

  asio::awaitable<void> flood(socket const& s) {
    static constexpr std::array<std::string_view, 14> kinds{
        "PING\r\n",
        "PONG\r\n",
        "+OK\r\n",
        "MSG x 1 2147483640\r\n",
        "MSG x 1 2147483647\r\nx",
        "HMSG x 1 2147483640 2147483647\r\n",
        "HMSG x 1 12 10\r\n0123456789\r\n",
        "MSG x 1 -5\r\n",
        "MSG x 99999999999999999999 3\r\nabc\r\n",
        "MSG a b c d e f g\r\n",
        "HMSG x 2 4 4\r\nNATS\r\n",
        "-ERR 'Permissions Violation for Subscription to \"weir.e.0\"'\r\n",
        "-ERR 'Stale Connection'\r\n",
        "MSG x 3 3\r\nabcd\r\n"};
    std::string text;
    auto const kind = std::string{dice_.pick(kinds)};
    switch (dice_.below(5)) {
      case 0:
        text = "MSG " + std::string(static_cast<std::size_t>(dice_.below(30'000)), 's') +
               " 1 40000\r\n" + std::string(40'000, 'p') + "\r\n";
        break;
      case 1: text = info(dice_, false); break;
      default: text = kind;
    }
    std::string all;
    for (auto n = 1 + dice_.below(2000); n != 0 && all.size() < (1U << 20U); --n) all += text;
    co_await say(s, std::move(all));
  }

  void subscribed(std::string const& line) {
    auto const space = line.rfind(' ');
    auto const sid = line.substr(space + 1);
    if (line.find(".r.") != line.npos) replies_ = sid;
    if (line.find(".e.") != line.npos) echo_ = sid;
  }

  [[nodiscard]] static std::string message(std::string const& subject, std::string const& sid,
                                           std::string const& headers, std::string const& data) {
    if (headers.empty()) {
      return "MSG " + subject + " " + sid + " " + std::to_string(data.size()) + "\r\n" + data +
             "\r\n";
    }
    return "HMSG " + subject + " " + sid + " " + std::to_string(headers.size()) + " " +
           std::to_string(headers.size() + data.size()) + "\r\n" + headers + data + "\r\n";
  }
  [[nodiscard]] static std::string stored(std::uint64_t sequence) {
    return "NATS/1.0\r\nNats-Sequence: " + std::to_string(sequence) +
           "\r\nNats-Time-Stamp: 2026-11-24T20:41:51.123456789Z\r\n\r\n";
  }

  [[nodiscard]] std::string answer(std::string const& line, std::string const& data) {
    auto const begin = line.find(' ') + 1;
    auto const subject = line.substr(begin, line.find(' ', begin) - begin);
    auto const after = begin + subject.size() + 1;
    auto const reply = line.substr(after, line.find(' ', after) - after);
    if (!reply.starts_with("weir.r.") || replies_.empty()) return {};
    auto const to = [&](std::string const& headers, std::string const& text) {
      return message(reply, replies_, headers, text);
    };
    if (subject == "$JS.API.STREAM.INFO.weir-keys") {
      return to({}, R"({"config":{"max_msgs_per_subject":1,"retention":"limits","discard":"new",)"
                    R"("allow_direct":true,"allow_msg_ttl":true,"num_replicas":1},)"
                    R"("ts":"2026-11-24T20:41:51.123456789Z"})");
    }
    if (subject.starts_with("$JS.API.STREAM.INFO.")) {
      return to({}, R"({"config":{"retention":"limits","discard":"new","allow_direct":true,)"
                    R"("max_age":0,"subjects":["weir.j.0"],"republish":{"src":"weir.j.0",)"
                    R"("dest":"weir.e.0"}},"state":{"first_seq":1,"last_seq":)" +
                        std::to_string(log_) + "}}");
    }
    if (subject.starts_with("$JS.API.DIRECT.GET.weir-keys.weir.k.jobs.shards")) {
      return to(stored(1), "1");
    }
    if (subject.starts_with("$JS.API.DIRECT.GET.")) return to("NATS/1.0 404 Not Found\r\n\r\n", {});
    if (subject == "weir.j.0") {
      ++log_;
      auto const again =
          echo_.empty() ? std::string{} : message("weir.e.0", echo_, stored(log_), data);
      return again + to({}, R"({"stream":"weir-jobs-0","seq":)" + std::to_string(log_) + "}");
    }
    return to({}, R"({"stream":"weir-keys","seq":)" + std::to_string(++sequence_) + "}");
  }

  tcp::acceptor acceptor_;
  stage stage_;
  dice dice_;
  std::vector<socket> sockets_;
  std::string replies_;
  std::string echo_;
  std::uint64_t sequence_ = 0;
  std::uint64_t log_ = 0;
};

void attack(stage where, dice& d, hostile::campaign& all) {
  asio::io_context io;
  endpoint server{io, where, d.fork()};
  auto address = at(server.port());
  if (where == stage::tls) address.tls();
  client c{io, address, hasty()};
  c.ask_all("key");
  c.settle("a command");
  c.finish();
  all.count("commands asked of hostile servers", static_cast<std::uint64_t>(c.asked));
  all.count("commands done by them", static_cast<std::uint64_t>(c.done));
  server.stop();
  io.restart();
  io.run_for(1s);
}

// ------------------------------------------------------------------------------ a mutating proxy

nats_test::server& real() {
  static nats_test::server one;
  return one;
}

asio::awaitable<void> copy(std::shared_ptr<tcp::socket> from, std::shared_ptr<tcp::socket> to,
                           dice* d, std::uint64_t percent) {
  std::array<char, 8192> some{};
  for (;;) {
    auto [ec, n] =
        co_await from->async_read_some(asio::buffer(some), asio::as_tuple(asio::use_awaitable));
    std::string text{some.data(), n};
    if (!ec && d->chance(percent)) mutate(text, *d);
    if (!ec) {
      co_await asio::async_write(*to, asio::buffer(text),
                                 asio::redirect_error(asio::use_awaitable, ec));
    }
    if (ec) {
      error_code ignored;
      from->close(ignored);
      to->close(ignored);
      co_return;
    }
  }
}

asio::awaitable<void> proxy(tcp::acceptor& at, std::uint16_t port, dice* d, std::uint64_t percent) {
  for (;;) {
    auto const there = std::make_shared<tcp::socket>(at.get_executor());
    auto const here = std::make_shared<tcp::socket>(at.get_executor());
    co_await at.async_accept(*here, asio::use_awaitable);
    co_await there->async_connect({asio::ip::address_v4::loopback(), port}, asio::use_awaitable);
    asio::co_spawn(at.get_executor(), copy(here, there, d, 0), asio::detached);
    asio::co_spawn(at.get_executor(), copy(there, here, d, percent), asio::detached);
  }
}

void mutated_session(dice& d, hostile::campaign& all) {
  auto const port = real().port();
  asio::io_context io;
  tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
  auto own = d.fork();
  asio::co_spawn(io, proxy(acceptor, port, &own, 5 + d.below(60)), asio::detached);
  client c{io, at(acceptor.local_endpoint().port()), hasty()};
  c.ask_all("key" + std::to_string(d.below(50)));
  c.settle("a command");
  c.finish();
  all.count("commands asked through the proxy", static_cast<std::uint64_t>(c.asked));
  all.count("commands done through it", static_cast<std::uint64_t>(c.done));
  acceptor.close();
  if (d.chance(5)) {  // others are served
    auto o = hasty();
    o.offline_patience = o.request_timeout = o.connect_timeout = 5s;
    client clean{io, at(port), o};
    clean.ask(command::inspect_lock{"clean"});
    clean.settle("another client");
    expect(clean.done == 1, "another client is not served: " + clean.last.message());
    clean.finish();
  }
  io.restart();
  io.run_for(1s);
}

// ------------------------------------------------------------------------------ damaged records

/// Writes to the server by hand.
class writer {
 public:
  explicit writer(std::uint16_t port) {
    socket_.connect({asio::ip::address_v4::loopback(), port});
    send("CONNECT {\"verbose\":false,\"headers\":true}\r\n");
  }
  void publish(std::string const& subject, std::string const& data) {
    send("PUB " + subject + " " + std::to_string(data.size()) + "\r\n" + data + "\r\n");
  }
  /// All of it has arrived.
  void sync() {
    send("PING\r\n");
    std::string read;
    while (read.find("PONG") == read.npos) {
      std::array<char, 4096> some{};
      auto const n = socket_.read_some(asio::buffer(some));
      read.append(some.data(), n);
    }
  }

 private:
  void send(std::string const& text) { asio::write(socket_, asio::buffer(text)); }
  asio::io_context io_;
  tcp::socket socket_{io_};
};

std::string time_and(std::string const& record) {
  std::string out;
  detail::nats_writer{out}.number(std::int64_t{1'790'000'000'000'000'000});
  return out + record;
}
std::string valid_record(char kind) {
  auto const now = time_point{1'790'000'000s};
  static auto const quota = quota::per_second(10);
  if (kind == 'l') {
    detail::nats_lock l;
    (void)l.apply(command::acquire_lock{"key", "holder", lasting}, now, {});
    return time_and(l.write());
  }
  if (kind == 'p') {
    detail::nats_permits p;
    (void)p.apply(command::acquire_permit{"key", "holder", 1, lasting, lasting}, now, {});
    (void)p.apply(command::acquire_permit{"key", "waiter", 1, lasting, lasting}, now, {});
    return time_and(p.write());
  }
  detail::nats_bucket b;
  (void)b.apply(command::take{"key", {&quota, 1}, 1, {}}, now, {});
  return time_and(b.write());
}
std::string valid_message(dice& d) {
  detail::nats_batch_writer out{{id_source{}.job(), d.below(100)}};
  new_job j;
  j.id = id_source{}.job();
  j.kind = "kind";
  j.payload = "payload";
  out.add(command::enqueue_jobs{"queue", {&j, 1}}, {});
  out.add(command::dequeue_jobs{"queue", "other", d.below(5), 2, lasting}, {});
  finished_job const f{j.id, d.bits(), "result"};
  out.add(command::complete_jobs{"queue", {&f, 1}}, {});
  out.add(command::snooze_queue{"another", 1s}, {});
  return std::move(out).take();
}
/// Damage that its checksum does not show half of the time, so that what it has is read.
void mutate_message(std::string& bytes, dice& d) {
  mutate(bytes, d);
  constexpr auto head = detail::nats_log_tag.size() + 1 + sizeof(std::uint64_t);
  if (bytes.size() > head && d.chance(50)) bytes = detail::nats_log_message(bytes.substr(head));
}
detail::nats_logged logged(std::uint64_t n, std::string data) {
  return {n, time_point{1'790'000'000s} + std::chrono::seconds{n}, std::move(data)};
}

/// All kinds, on a server: a key of each kind, and messages of a log.
void damaged_records(dice& d, hostile::campaign& all) {
  auto const port = real().port();
  static std::uint64_t keys = 0;
  writer w{port};
  asio::io_context io;
  auto o = hasty();
  o.offline_patience = o.request_timeout = o.connect_timeout = 5s;
  o.image_interval = 4096;
  client first{io, at(port), o};
  first.ask(command::read_queue_stats{"queue"});
  first.settle("a command");
  expect(first.done == 1, "a shard is not served: " + first.last.message());
  auto const key = "damaged" + std::to_string(++keys);
  for (char const kind : {'l', 'p', 'b'}) {
    auto bytes = valid_record(kind);
    mutate(bytes, d);
    w.publish(std::string{"weir.k."} + kind + "." + key, bytes);
  }
  for (int i = 0; i != 7; ++i) {
    auto bytes = valid_message(d);
    mutate_message(bytes, d);
    w.publish("weir.j.0", bytes);
  }
  w.sync();
  all.count("records on a server", 10);
  first.ask_all(key);
  first.settle("a command on a damaged record");

  // Every process has read the same, and goes on.
  client second{io, at(port), o};
  std::array<queue_stats, 2> stats{};
  int read = 0;
  for (std::size_t i = 0; i != 2; ++i) {
    (i == 0 ? first : second)
        .store.async_execute(command::read_queue_stats{"queue"},
                             [&, i](error_code ec, queue_stats const& s) {
                               stats[i] = s;
                               if (!ec) ++read;
                               if (ec) read += 100;
                             });
  }
  expect(first.run_until([&] { return read >= 2; }), "a damaged log hangs");
  expect(read == 2, "a damaged log is not served");
  expect(stats[0].enqueued == stats[1].enqueued && stats[0].dead == stats[1].dead &&
             stats[0].completed == stats[1].completed &&
             stats[0].pending + stats[0].leased == stats[1].pending + stats[1].leased,
         "two processes read a damaged log differently");
  second.ask(command::acquire_lock{"fine" + key, "holder", lasting});
  second.settle("another key");
  expect(second.done == 1, "another key is not served: " + second.last.message());
  first.finish();
  second.finish();
}

/// The same without a server, many at a time, and images.
void damaged_bytes(dice& d, hostile::campaign& all) {
  auto const now = time_point{1'790'000'100s};
  static auto const quota = quota::per_second(10);
  auto const key = [&](char kind) {
    auto bytes = valid_record(kind).substr(8);
    mutate(bytes, d);
    return bytes;
  };
  if (auto l = detail::nats_lock::read(key('l'))) {
    l->expire(now);
    (void)l->apply(command::acquire_lock{"key", "new", lasting}, now, 1ms);
    (void)l->lasts(now);
    expect(detail::nats_lock::read(l->write()).has_value(), "a lock's record does not come back");
  }
  if (auto p = detail::nats_permits::read(key('p'))) {
    p->expire(now);
    (void)p->apply(command::acquire_permit{"key", "new", 3, lasting, lasting}, now, 1ms);
    (void)p->apply(command::inspect_permits{"key"}, now, 1ms);
    (void)p->lasts(now);
    expect(detail::nats_permits::read(p->write()).has_value(), "permits do not come back");
  }
  if (auto b = detail::nats_bucket::read(key('b'))) {
    (void)b->apply(command::take{"key", {&quota, 1}, 1, {}}, now, 1ms);
    (void)b->apply(command::peek_bucket{"key", {&quota, 1}}, now, 1ms);
    (void)b->lasts(now);
    expect(detail::nats_bucket::read(b->write()).has_value(), "a bucket does not come back");
  }
  all.count("records of keys", 3);

  detail::nats_job_replica one;
  detail::nats_job_replica other;
  for (std::uint64_t n = 1; n != 6; ++n) {
    auto bytes = valid_message(d);
    if (d.chance(70)) mutate_message(bytes, d);
    auto message = logged(n, bytes);
    message.note = detail::nats_table_note{0, n - 1, now, 0, "0.1.0"}.write();
    if (d.chance(70)) mutate(message.note, d);
    for (auto* const r : {&one, &other}) {
      detail::nats_batch_reader reader{bytes};
      expect(r->read(message, reader, [](auto const&, auto const&) {}),
             "damage is taken for a later version");
    }
    expect(one.take_contradiction().has_value() == other.take_contradiction().has_value(),
           "two replicas read a note differently");
    all.count("messages and their notes");
  }
  auto image = one.image();
  expect(image == other.image(), "two replicas read a damaged log differently");
  for (int i = 0; i != 5; ++i) {
    auto damaged = image;
    mutate(damaged, d);
    detail::nats_job_replica third;
    detail::compact_reader from{damaged};
    detail::nats_image_record at;
    at.position = 5;
    if (third.loading(from, at).finish()) {
      auto const whole = valid_message(d);
      detail::nats_batch_reader reader{whole};
      (void)third.read(logged(6, whole), reader, [](auto const&, auto const&) {});
    }
    detail::nats_image_record record;
    record.position = 5;
    record.size = image.size();
    record.parts = 1;
    record.id = "ab-5";
    auto written = record.write();
    mutate(written, d);
    if (auto const read = detail::nats_image_record::read(written)) {
      detail::nats_image_reader parts{*read};
      if (auto const n = parts.next()) (void)parts.take(*n, damaged);
    }
    all.count("images and their records", 2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  hostile::campaign all{argc, argv};
  all.add("greeting", 20, [&](dice& d) { attack(stage::greeting, d, all); });
  all.add("tls", 10, [&](dice& d) { attack(stage::tls, d, all); });
  all.add("authentication", 20, [&](dice& d) { attack(stage::authentication, d, all); });
  all.add("replies", 30, [&](dice& d) { attack(stage::replies, d, all); });
  all.add("floods", 20, [&](dice& d) { attack(stage::floods, d, all); });
  all.add("proxy", 30, [&](dice& d) { mutated_session(d, all); });
  all.add("records", 5, [&](dice& d) { damaged_records(d, all); });
  all.add("bytes", 500, [&](dice& d) { damaged_bytes(d, all); });
  return all.run();
}
