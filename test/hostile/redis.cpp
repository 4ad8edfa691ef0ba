// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Attacks on the Redis store: a server that answers with hostile bytes at any stage, a network that
// changes what a real one answers, and records that somebody has damaged.

#include "weir/store/redis.hpp"

// The server of the unit tests needs the library of tests.
#define BOOST_TEST_NO_MAIN
#include "campaign.hpp"
#include "integration/redis_process.hpp"
#include "integration/redis_raw.hpp"
#include "unit/redis_puppet.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/included/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using namespace std::chrono_literals;
using hostile::dice;
using hostile::expect;
using redis_test::puppet;
using tcp = boost::asio::ip::tcp;

constexpr duration lasting = 1h;
constexpr std::array quotas{quota::per_second(1000)};

redis_options hasty() {
  redis_options o;
  o.offline_patience = 100ms;
  o.connect_timeout = 100ms;
  o.health_check_interval = 20ms;
  o.least_reconnect_wait = o.longest_reconnect_wait = 1ms;
  o.poll_interval = 5ms;
  return o;
}

/// Runs until it is so, which it has to become within ten seconds.
template <class Condition>
void run_until(boost::asio::io_context& io, Condition so, std::string_view what) {
  auto const end = std::chrono::steady_clock::now() + 10s;
  while (!so()) {
    expect(std::chrono::steady_clock::now() < end, "hangs: " + std::string{what});
    io.restart();
    io.run_one_for(100ms);
  }
}

/// A store, and what came of the commands that it was given.
struct subject {
  subject(boost::asio::io_context& context, redis_address const& address, redis_options const& o)
      : io{context},
        store{io.get_executor(), address, o} {
    store.async_run([](error_code) {});
  }
  subject(subject const&) = delete;
  subject& operator=(subject const&) = delete;

  template <class C>
  void give(C const& c) {
    ++given;
    store.async_execute(c, [this](error_code ec, auto const&) {
      ++told;
      last = ec;
    });
  }
  template <class C>
  result<typename C::result> ask(C const& c) {
    std::optional<result<typename C::result>> out;
    store.async_execute(c, [&](error_code ec, typename C::result a) {
      ec ? out.emplace(ec) : out.emplace(std::move(a));
    });
    run_until(io, [&] { return out.has_value(); }, "a command");
    return std::move(*out);
  }
  /// A few of each kind.
  void give_all(dice& d) {
    std::array<new_job, 2> jobs{};
    for (std::size_t i = 0; i != jobs.size(); ++i) {
      jobs[i].id.data[0] = static_cast<std::uint8_t>(1 + d.below(9));
      jobs[i].id.data[1] = static_cast<std::uint8_t>(i);
      jobs[i].kind = "kind";
      jobs[i].payload = "payload";
      if (d.chance(50)) {
        jobs[i].unique_key = "unique";
        jobs[i].strategy = static_cast<unique_strategy>(1 + d.below(3));
      }
    }
    give(command::enqueue_jobs{"queue", jobs});
    give(command::dequeue_jobs{"queue", "me", d.below(2), 3, lasting});
    give(command::acquire_lock{"key", "me", lasting});
    give(command::acquire_permit{"key", "me", 3, lasting, {}});
    give(command::take{"key", quotas, 1, {}});
    give(command::peek_jobs{"queue", 10});
    give(command::list_dead_letters{"queue", 10, {}});
    give(command::read_queue_stats{"queue"});
    give(command::scan_visible_queues{0, 10, d.bits()});
    give(command::list_queues{0, 10, {}});
    give(command::find_job{"queue", jobs[0].id});
  }
  void finish() {
    run_until(io, [this] { return told == given; }, "some commands");
  }

  boost::asio::io_context& io;
  redis_store store;
  std::size_t given = 0;
  std::size_t told = 0;
  error_code last;
};

/// Ends what is there.
template <class... Servers>
void drain(boost::asio::io_context& io, redis_store const& store, Servers&... servers) {
  store.close();
  (servers.close(), ...);
  auto const end = std::chrono::steady_clock::now() + 10s;
  io.restart();
  io.run_until(end);
  expect(io.stopped(), "something goes on after the end");
}

/// Bytes that are nearly the protocol, or not at all.
std::string bytes(dice& d, int depth = 0) {
  constexpr std::array<std::string_view, 24> numbers{"0",
                                                     "1",
                                                     "2",
                                                     "3",
                                                     "7",
                                                     "100",
                                                     "-1",
                                                     "",
                                                     "?",
                                                     "1x",
                                                     "99999",
                                                     "8589934592",
                                                     "18446744073709551615",
                                                     "9223372036854775808",
                                                     "9223372036854775807",
                                                     "9007199254740993",
                                                     "+1",
                                                     " 1",
                                                     "1e9",
                                                     "inf",
                                                     "nan",
                                                     "4294967296",
                                                     "65536",
                                                     "-9223372036854775808"};
  constexpr std::array<std::string_view, 14> texts{"OK",
                                                   "ERR no",
                                                   "NOSCRIPT x",
                                                   "MOVED 1 127.0.0.1:1",
                                                   "ASK 1 ::1:2",
                                                   "WRONGTYPE x",
                                                   "OOM command not allowed",
                                                   "READONLY x",
                                                   "CORRUPT weir",
                                                   "LOADING x",
                                                   "message",
                                                   "{weir:0}:hints",
                                                   "NOPERM x",
                                                   ""};
  std::string out;
  switch (d.below(12)) {
    case 0: {
      for (auto n = d.below(40); n != 0; --n) out += static_cast<char>(d.below(256));
      return out;
    }
    case 1: return "+" + std::string{d.pick(texts)} + "\r\n";
    case 2: return "-" + std::string{d.pick(texts)} + "\r\n";
    case 3: return ":" + std::string{d.pick(numbers)} + "\r\n";
    case 4:
    case 5: {
      std::string const text{d.pick(texts)};
      auto const size = d.chance(70) ? std::to_string(text.size()) : std::string{d.pick(numbers)};
      return std::string(1, d.pick(std::string_view{"$$$=!;"})) + size + "\r\n" + text + "\r\n";
    }
    case 6:
      return std::string(1, d.pick(std::string_view{"_#,("})) + std::string{d.pick(numbers)} +
             "\r\n";
    default: {
      auto const n = d.below(9);
      auto const size = d.chance(80) ? std::to_string(n) : std::string{d.pick(numbers)};
      out = std::string(1, d.pick(std::string_view{"****%~>|"})) + size + "\r\n";
      for (std::size_t i = 0; i != n && depth < 9; ++i) out += bytes(d, depth + 1);
      return out;
    }
  }
}

std::string hostile_bytes(dice& d) {
  std::string out;
  for (auto n = 1 + d.below(3); n != 0; --n) out += bytes(d);
  if (d.chance(10)) out += std::string(d.below(300'000), 'a');
  if (d.chance(20)) out.resize(d.below(out.size() + 1));
  return out;
}

/// One hostile reply at one stage; then the server is as any other.
void reply_at(std::string_view stage, dice& d) {
  boost::asio::io_context io;
  puppet server{io};
  bool const cluster = stage == "CLUSTER";
  std::size_t left = 1 + d.below(3);
  if (stage == "SCRIPT") left = 4;
  auto script = [&, d](puppet::guest& by, puppet::words const& w) mutable {
    if (left != 0 && w[0] == stage) {
      --left;
      if (stage == "SCRIPT" || !d.chance(10)) {
        by.say(hostile_bytes(d));
      } else {
        by.hang_up();
      }
      return true;
    }
    if (left != 0 && stage == "SCRIPT" && w[0] == "EVALSHA") {
      by.say("-NOSCRIPT none\r\n");
      return true;
    }
    if (left != 0 && stage == "push" && w[0] == "EVALSHA") {
      --left;
      by.say(">" + hostile_bytes(d));
      return true;
    }
    if (!w[0].starts_with("EVAL") || w.size() < 4 || w[3].find(":l:") == std::string::npos) {
      return false;
    }
    by.say(redis_test::lock_free);
    return true;
  };
  server.act(std::move(script));
  auto o = hasty();
  if (stage == "WAIT") o.replicas = 1;
  auto address = server.address().authenticate("secret");
  if (cluster) address.cluster();
  subject on{io, address, o};
  on.store.async_execute(command::await_jobs{0}, [](error_code, hint) {});
  on.give_all(d);
  on.finish();
  run_until(io, [&] { return !on.ask(command::inspect_lock{"key"}).has_error(); }, "recovery");
  drain(io, on.store, server);
}

/// A server that says something as soon as it is called, to a client that wants TLS or not.
struct blurter {
  blurter(boost::asio::io_context& io, dice& d)
      : acceptor{io, {boost::asio::ip::address_v4::loopback(), 0}},
        random{d} {
    accept();
  }
  void accept() {
    acceptor.async_accept([this](error_code ec, tcp::socket peer) {
      if (ec) return;
      auto const own = std::make_shared<tcp::socket>(std::move(peer));
      auto const said = std::make_shared<std::string>(hostile_bytes(random));
      if (random.chance(50)) *said = std::string{"\x16\x03\x03\x00", 4} + *said;  // a TLS record
      boost::asio::async_write(*own, boost::asio::buffer(*said),
                               [own, said](error_code, std::size_t) {});
      open.push_back(own);
      accept();
    });
  }
  void close() {
    acceptor.close();
    for (auto const& one : open) one->close();
  }
  tcp::acceptor acceptor;
  dice& random;
  std::vector<std::shared_ptr<tcp::socket>> open;
};

void greet(bool tls, dice& d) {
  boost::asio::io_context io;
  blurter server{io, d};
  redis_address address{"127.0.0.1", server.acceptor.local_endpoint().port()};
  if (tls) address.tls();
  auto o = hasty();
  o.offline_patience = 20ms;
  o.connect_timeout = 20ms;
  subject on{io, address, o};
  on.give(command::acquire_lock{"key", "me", lasting});
  on.finish();
  drain(io, on.store, server);
}

/// Carries one store's connections to a server, and changes what that answers.
class proxy {
 public:
  proxy(boost::asio::io_context& io, std::uint16_t port, dice& d)
      : io_{io},
        port_{port},
        dice_{d},
        acceptor_{io, {boost::asio::ip::address_v4::loopback(), 0}} {
    accept();
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void close() {
    acceptor_.close();
    for (auto const& p : pairs_) p->close();
  }

  std::size_t mutations = 0;
  bool quiet = false;

 private:
  struct pair {
    explicit pair(boost::asio::io_context& io) : near{io}, far{io} {}
    void close() {
      error_code ignored;
      near.close(ignored);
      far.close(ignored);
    }
    tcp::socket near;
    tcp::socket far;
    std::array<char, 8192> out{};
    std::array<char, 8192> in{};
    std::string changed{};
  };

  void accept() {
    auto const p = std::make_shared<pair>(io_);
    acceptor_.async_accept(p->near, [this, p](error_code ec) {
      if (ec) return;
      p->far.connect({boost::asio::ip::address_v4::loopback(), port_}, ec);
      if (!ec) {
        pairs_.push_back(p);
        there(p);
        back(p);
      }
      accept();
    });
  }
  void there(std::shared_ptr<pair> const& p) {
    p->near.async_read_some(boost::asio::buffer(p->out), [this, p](error_code ec, std::size_t n) {
      if (ec) return p->close();
      boost::asio::async_write(
          p->far, boost::asio::buffer(p->out.data(), n),
          [this, p](error_code failed, std::size_t) { failed ? p->close() : there(p); });
    });
  }
  void back(std::shared_ptr<pair> const& p) {
    p->far.async_read_some(boost::asio::buffer(p->in), [this, p](error_code ec, std::size_t n) {
      if (ec) return p->close();
      p->changed.assign(p->in.data(), n);
      if (!quiet && dice_.chance(50)) mutate(p->changed);
      boost::asio::async_write(
          p->near, boost::asio::buffer(p->changed),
          [this, p](error_code failed, std::size_t) { failed ? p->close() : back(p); });
    });
  }
  void mutate(std::string& text) {
    ++mutations;
    for (auto n = 1 + dice_.below(3); n != 0 && !text.empty(); --n) {
      auto const at = dice_.below(text.size());
      switch (dice_.below(6)) {
        case 0: text[at] = static_cast<char>(dice_.below(256)); break;
        case 1: text.erase(at, 1 + dice_.below(8)); break;
        case 2: text.insert(at, hostile_bytes(dice_)); break;
        case 3: text.insert(at, text.substr(at, dice_.below(30))); break;
        case 4: text[at] = dice_.pick(std::string_view{"$*%>:_+-!=~|;\r\n0123456789"}); break;
        default: text.resize(at); break;
      }
    }
  }

  boost::asio::io_context& io_;
  std::uint16_t port_;
  dice& dice_;
  tcp::acceptor acceptor_;
  std::vector<std::shared_ptr<pair>> pairs_;
};

void mutate_session(redis_test::server const& s, dice& d) {
  redis_test::raw{s.port()}.ask("FLUSHALL");
  boost::asio::io_context io;
  proxy between{io, s.port(), d};
  subject on{io, redis_address{"127.0.0.1", between.port()}, hasty()};
  on.give_all(d);
  on.finish();
  between.quiet = true;
  run_until(io, [&] { return !on.ask(command::inspect_lock{"key"}).has_error(); }, "recovery");
  drain(io, on.store, between);
}

/// Damages one record, of whatever kind it is; what was done, in words.
std::string damage(redis_test::raw& by, dice& d) {
  std::vector<std::string> keys;
  for (auto const& n : by.ask("KEYS", "*")) {
    if (n.data_type == detail::redis_kind::blob_string) keys.push_back(n.value);
  }
  std::erase_if(keys, [](auto const& k) { return k.ends_with(":shards"); });
  if (keys.empty()) return {};
  std::ranges::sort(keys);
  std::string const key = d.pick(keys);
  auto const type = by.ask("TYPE", key)[0].value;
  auto const change = [&](std::string text) {
    constexpr std::array<std::string_view, 10> values{
        "",    "x",   "-1",        "9007199254740993",     "1e300",
        "nan", "inf", "0 0 0 0 |", "18446744073709551615", "0111"};
    switch (d.below(5)) {
      case 0: return std::string{d.pick(values)};
      case 1: text.resize(d.below(text.size() + 1)); break;
      case 2:
        for (std::size_t n = 1 + d.below(8); n != 0 && !text.empty(); --n) {
          text[d.below(text.size())] = static_cast<char>(d.chance(50) ? 255 : d.below(256));
        }
        break;
      case 3:
        text.insert(d.below(text.size() + 1),
                    std::string(d.below(40), static_cast<char>(d.below(256))));
        break;
      default:
        if (!text.empty()) text[d.below(text.size())] ^= static_cast<char>(1U << d.below(8));
    }
    return text;
  };
  std::string const what = key + " (" + type + ")";
  if (d.chance(5)) {
    by.ask("DEL", key);
    return what + " deleted";
  }
  if (d.chance(10)) {
    by.ask("DEL", key);
    switch (d.below(4)) {
      case 0: by.ask("SET", key, change("text")); break;
      case 1: by.ask("HSET", key, "a", "b"); break;
      case 2: by.ask("ZADD", key, "1", change("member")); break;
      default: by.ask("RPUSH", key, "a"); break;
    }
    return what + " of another type";
  }
  std::vector<std::string> all;
  if (type == "string") {
    auto const value = by.ask("GET", key)[0].value;
    by.ask("SET", key, change(value));
  } else if (type == "hash") {
    for (auto const& n : by.ask("HGETALL", key)) {
      if (n.depth != 0) all.push_back(n.value);
    }
    auto const at = 2 * d.below(all.size() / 2);
    switch (d.below(4)) {
      case 0: by.ask("HDEL", key, all[at]); break;
      case 1: by.ask("HSET", key, change(all[at]), all[at + 1]); break;
      default: by.ask("HSET", key, all[at], change(all[at + 1])); break;
    }
  } else if (type == "zset") {
    for (auto const& n : by.ask("ZRANGE", key, "0", "-1")) {
      if (n.depth != 0) all.push_back(n.value);
    }
    auto const member = d.pick(all);
    constexpr std::array<std::string_view, 8> scores{
        "0", "-1", "inf", "-inf", "1e300", "9007199254740993", "0.5", "1795560105190878"};
    switch (d.below(3)) {
      case 0: by.ask("ZREM", key, member); break;
      case 1: by.ask("ZADD", key, std::string{d.pick(scores)}, member); break;
      default: by.ask("ZADD", key, std::string{d.pick(scores)}, change(member)); break;
    }
  }
  return what;
}

void damage_records(redis_test::server const& s, dice& d, hostile::campaign& all) {
  redis_test::raw by{s.port()};
  by.ask("FLUSHALL");
  boost::asio::io_context io;
  auto o = hasty();
  o.offline_patience = o.connect_timeout = 5s;
  o.health_check_interval = 3s;
  subject on{io, s.address(), o};
  (void)on.ask(command::pause_queue{"paused"});
  (void)on.ask(command::acquire_permit{"key", "holder", 1, lasting, {}});
  (void)on.ask(command::acquire_permit{"key", "waits", 1, lasting, lasting});
  for (int i = 0; i != 3; ++i) on.give_all(d);
  on.finish();
  std::string done;
  for (auto n = 1 + d.below(4); n != 0; --n) {
    done += damage(by, d) + "; ";
    all.count("damaged records");
  }
  auto const told = [&](auto const& out) {
    if (!out.has_error()) return;
    auto const ec = out.error();
    expect(ec == errc::store_corrupt || ec == errc::store_foreign || ec == errc::lease_lost,
           done + ": " + ec.message());
  };
  for (int i = 0; i != 3; ++i) {
    std::array<new_job, 2> jobs{};
    jobs[0].id.data[0] = 1;
    jobs[1].id.data[0] = static_cast<std::uint8_t>(20 + i);
    for (auto& j : jobs) j.kind = "kind";
    if (i == 1) {
      jobs[1].unique_key = "unique";
      jobs[1].strategy = unique_strategy::until_executed;
      jobs[1].on_conflict = conflict_policy::replace;
    }
    told(on.ask(command::enqueue_jobs{"queue", jobs}));
    auto const got = on.ask(command::dequeue_jobs{"queue", "me", 1, 5, lasting});
    told(got);
    if (got.has_value()) {
      expect(got->damaged <= 100, "more than a step may set aside");
      for (auto const& j : got->jobs) {
        std::array const over{finished_job{j.id, j.fence, {}}};
        told(on.ask(command::start_job{"queue", j.id, j.fence}));
        switch (d.below(4)) {
          case 0: told(on.ask(command::complete_jobs{"queue", over})); break;
          case 1: told(on.ask(command::requeue_job{"queue", j.id, j.fence, {}, "why"})); break;
          case 2: told(on.ask(command::bury_job{"queue", j.id, j.fence, "why"})); break;
          default: told(on.ask(command::snooze_job{"queue", j.id, j.fence, {}, "memo"})); break;
        }
      }
    }
    told(on.ask(command::peek_jobs{"queue", 10}));
    told(on.ask(command::list_dead_letters{"queue", 10, {}}));
    told(on.ask(command::read_queue_stats{"queue"}));
    told(on.ask(command::scan_visible_queues{0, 10, d.bits()}));
    told(on.ask(command::list_queues{0, 10, {}}));
    told(on.ask(command::acquire_lock{"key", "you", lasting}));
    told(on.ask(command::inspect_lock{"key"}));
    told(on.ask(command::acquire_permit{"key", "you", 3, lasting, lasting}));
    told(on.ask(command::inspect_permits{"key", 10}));
    told(on.ask(command::take{"key", quotas, 1, {}}));
    told(on.ask(command::peek_bucket{"key", quotas, 1, {}}));
    told(on.ask(command::obtain_queue_lease{"queue", "me", lasting}));
    told(on.ask(command::resume_queue{"paused"}));
  }
  // Other keys are served, unless it was what they share.
  auto const has = [&](std::string_view text) { return done.find(text) != done.npos; };
  if (!has("}:fence") && !has("}:time (string) of another type")) {
    auto const other = on.ask(command::acquire_lock{"other", "me", lasting});
    expect(other.has_value() && other->granted, done + ": another key is not served");
  }
  drain(io, on.store);
}

}  // namespace

int main(int argc, char** argv) {
  hostile::campaign all{argc, argv};
  for (std::string_view const stage :
       {"HELLO", "EVAL", "EVALSHA", "PING", "SCRIPT", "SUBSCRIBE", "push", "CLUSTER", "WAIT"}) {
    all.add("reply_" + std::string{stage}, 10, [stage](dice& d) { reply_at(stage, d); });
  }
  all.add("greeting", 5, [](dice& d) { greet(false, d); });
  all.add("tls", 5, [](dice& d) { greet(true, d); });
  redis_test::server const server;
  all.add("session", 40, [&](dice& d) { mutate_session(server, d); });
  all.add("damage", 40, [&](dice& d) { damage_records(server, d, all); });
  return all.run();
}
