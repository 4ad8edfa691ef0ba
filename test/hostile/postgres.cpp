// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Attacks on the PostgreSQL store: a server that says anything at any stage, a network that changes
// what a real server says, and rows that weir did not write like that. Every operation ends, with a
// value or a typed error, and others are served meanwhile.

#include "weir/store/postgres.hpp"

#include "campaign.hpp"
#include "integration/postgres_server.hpp"

#include <arpa/inet.h>
#include <boost/asio/io_context.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <libpq-fe.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// libpq 15 forgets a result of which a server describes the rows twice.
extern "C" char const* __lsan_default_suppressions() { return "leak:PQmakeEmptyPGresult\n"; }

namespace {

using namespace weir;
using namespace std::chrono_literals;
using hostile::dice;
using hostile::expect;

postgres_options hurried() {
  postgres_options o;
  o.connect_timeout = 500ms;  // a server that is let speak is to be reached
  o.command_timeout = 100ms;
  o.poll_interval = 20ms;
  return o;
}

/// Runs until it is so. False: a minute has passed, and it hangs.
template <class Condition>
[[nodiscard]] bool ends(boost::asio::io_context& io, Condition so) {
  auto const give_up = std::chrono::steady_clock::now() + 60s;
  while (!so() && std::chrono::steady_clock::now() < give_up) {
    io.restart();
    if (io.run_one_for(100ms) == 0 && io.stopped()) std::this_thread::sleep_for(1ms);
  }
  return so();
}

template <class C>
result<typename C::result> ask(boost::asio::io_context& io, postgres_store const& store,
                               C const& c) {
  auto const out = std::make_shared<std::optional<result<typename C::result>>>();
  store.async_execute(c, [out](error_code ec, typename C::result a) {
    if (ec) {
      *out = ec;
    } else {
      *out = std::move(a);
    }
  });
  expect(ends(io, [&] { return out->has_value(); }), "a command does not end");
  return **out;
}

job_id id(std::uint8_t n) {
  job_id out{};
  *(out.end() - 1) = n;
  return out;
}
new_job job_of(std::uint8_t n, std::string_view key = {}) {
  new_job out;
  out.id = id(n);
  out.kind = "kind";
  out.payload = "{}";
  out.unique_key = key;
  if (!key.empty()) out.strategy = unique_strategy::until_and_while_executing;
  return out;
}

/// Any command on this queue and key; false: its answer is an error.
bool any_command(dice& d, boost::asio::io_context& io, postgres_store const& store,
                 std::string_view queue, std::string_view key) {
  std::vector<quota> const quotas{quota::per_second(10)};
  std::vector<new_job> const plain{job_of(static_cast<std::uint8_t>(d.below(9)))};
  std::vector<new_job> const keyed{job_of(static_cast<std::uint8_t>(d.below(9)), key)};
  std::vector<finished_job> const done{
      {id(static_cast<std::uint8_t>(d.below(9))), 1 + d.below(9), {}}};
  auto const try_it = [&](auto const& c) { return ask(io, store, c).has_value(); };
  switch (d.below(24)) {
    case 0: return try_it(command::enqueue_jobs{queue, plain});
    case 1: return try_it(command::enqueue_jobs{queue, keyed});
    case 2: return try_it(command::dequeue_jobs{queue, "h", d.below(3), 5, 1h});
    case 3: return try_it(command::peek_jobs{queue, 10});
    case 4: return try_it(command::find_job{queue, plain[0].id});
    case 5: return try_it(command::list_dead_letters{queue, 10, {}});
    case 6: return try_it(command::replay_dead_letter{queue, plain[0].id});
    case 7: return try_it(command::cancel_job{queue, plain[0].id});
    case 8: return try_it(command::complete_jobs{queue, done});
    case 9: return try_it(command::read_queue_stats{queue});
    case 10: return try_it(command::scan_visible_queues{.limit = 5, .entropy = d.bits()});
    case 11: return try_it(command::min_vesting_time{queue});
    case 12: return try_it(command::obtain_queue_lease{queue, "h", 1h});
    case 13: return try_it(command::list_queues{0, 5, {}});
    case 14: return try_it(command::acquire_lock{key, "h", 1h});
    case 15: return try_it(command::inspect_lock{key});
    case 16: return try_it(command::acquire_permit{key, "h", 2, 1h, 1h});
    case 17: return try_it(command::inspect_permits{key});
    case 18: return try_it(command::take{key, quotas});
    case 19: return try_it(command::peek_bucket{key, quotas});
    case 20: return try_it(command::reset_bucket{key});
    case 21: return try_it(command::obtain_lease{queue, plain[0].id, "h", 1h});
    case 22: return try_it(command::gc_stale_pointers{});
    default: return try_it(command::reap_buckets{});
  }
}

// ---- A server that says anything -------------------------------------------------------------

std::string number(std::uint32_t v, int bytes = 4) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(v >> static_cast<unsigned>(8 * i));
  return out;
}
std::string message(char type, std::string const& body) {
  return type + number(static_cast<std::uint32_t>(body.size() + 4)) + body;
}
std::string text(std::string_view s) { return std::string{s} + '\0'; }

std::string rows_description(int columns) {
  std::string body = number(static_cast<std::uint32_t>(columns), 2);
  for (int i = 0; i != columns; ++i) {
    body +=
        text("c") + number(0) + number(0, 2) + number(20) + number(8, 2) + number(0) + number(1, 2);
  }
  return message('T', body);
}
std::string row(std::vector<std::optional<std::string>> const& fields) {
  std::string body = number(static_cast<std::uint32_t>(fields.size()), 2);
  for (auto const& f : fields) {
    body += number(f ? static_cast<std::uint32_t>(f->size()) : 0xffffffffU) + f.value_or("");
  }
  return message('D', body);
}

std::string noise(dice& d, std::size_t most) {
  std::string out(d.below(most + 1), '\0');
  for (auto& c : out) c = static_cast<char>(d.below(256));
  return out;
}

std::string strange_authentication(dice& d) {
  static constexpr std::array<std::string_view, 4> mechanisms{"SCRAM-SHA-256", "SCRAM-SHA-256-PLUS",
                                                              "PLAIN", ""};
  auto const kind = static_cast<std::uint32_t>(d.chance(90) ? d.below(14) : d.bits());
  std::string body = number(kind);
  switch (kind) {
    case 5: body += noise(d, 6); break;
    case 10:
      for (auto n = d.below(5); n != 0; --n) body += text(d.pick(mechanisms));
      if (d.chance(70)) body += '\0';
      break;
    case 11:
      body += d.chance(50)
                  ? "r=" + noise(d, 20) +
                        ",s=QSXCR+Q6sek8bf92,i=" + std::to_string(d.chance(80) ? d.below(5000) : 0)
                  : noise(d, 40);
      break;
    case 12: body += d.chance(50) ? "v=" + noise(d, 40) : noise(d, 40); break;
    default: body += noise(d, 8);
  }
  return message('R', body);
}

/// A message that a server may send at the wrong time, or never.
std::string strange_message(dice& d) {
  static constexpr std::string_view types = "EENASKRZTDCIntW12s3GHdcvV";
  auto const type = d.chance(90) ? types[d.below(types.size())] : static_cast<char>(d.below(256));
  switch (d.below(8)) {
    case 0: return strange_authentication(d);
    case 1:
      return message('S', text(d.chance(50) ? "client_encoding" : "server_version") +
                              text(noise(d, 30)));
    case 2:
      return message('A', number(1) + text("weir") + text(d.chance(50) ? "j0" : noise(d, 40)));
    case 3:
      return message(d.chance(50) ? 'E' : 'N', "S" + text("FATAL") + "C" + text(noise(d, 5)) + "M" +
                                                   text(noise(d, d.chance(5) ? 1 << 18 : 60)) +
                                                   '\0');
    case 4: return message('Z', d.chance(60) ? std::string{"I"} : noise(d, 3));
    case 5: return rows_description(static_cast<int>(d.below(40)));
    case 6: {
      std::vector<std::optional<std::string>> fields(d.below(40));
      for (auto& f : fields) {
        static constexpr std::array lengths{8, 8, 8, 4, 2, 1, 16, 0, -1};
        auto const n = d.pick(lengths);
        if (n >= 0) f = std::string(static_cast<std::size_t>(n), static_cast<char>(d.below(3)));
      }
      return row(fields);
    }
    default: return message(type, noise(d, 60));
  }
}

/// Messages, changed: their bytes, lengths and types, their order and number.
std::string spoiled(dice& d, std::vector<std::string> messages) {
  for (auto n = 1 + d.below(3); n != 0; --n) {
    auto const at = d.below(messages.size() + 1);
    auto const place = messages.begin() + static_cast<std::ptrdiff_t>(at);
    bool const there = at != messages.size();
    switch (d.below(8)) {
      case 0: messages.insert(place, strange_message(d)); break;
      case 1:
        if (there) messages.erase(place);
        break;
      case 2: {
        auto const one = there ? *place : strange_message(d);
        constexpr std::size_t most = std::size_t{4} << 20U;  // it is the attacker's memory, too
        auto const times =
            std::min<std::size_t>(d.chance(10) ? 20'000 : d.below(50), most / (one.size() + 1));
        std::string all;
        for (std::uint64_t i = 0; i != times; ++i) all += one;
        messages.insert(place, all);
        break;
      }
      case 3:  // a length that is not so
        if (there && place->size() >= 5) {
          static constexpr std::array<std::uint32_t, 10> lengths{
              0, 1, 3, 4, 5, 0x3fffffff, 0x7fffffff, 0x80000000, 0xffffffff, 30001};
          place->replace(1, 4, number(d.pick(lengths)));
        }
        break;
      case 4:
        if (there && !place->empty()) place->front() = static_cast<char>(d.below(256));
        break;
      case 5: messages.insert(place, noise(d, 200)); break;
      default:
        if (there) {
          for (auto k = 1 + d.below(4); k != 0 && !place->empty(); --k) {
            (*place)[d.below(place->size())] = static_cast<char>(d.below(256));
          }
        }
    }
  }
  std::string out;
  for (auto const& m : messages) out += m;
  if (d.chance(15)) out.resize(d.below(out.size() + 1));
  return out;
}

/// An address on the loopback interface.
[[nodiscard]] sockaddr_in loopback(unsigned short port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

/// Has a socket listen on a port of its own, on the loopback interface.
[[nodiscard]] unsigned short listen_at_any_port(int socket) {
  auto a = loopback(0);
  socklen_t n = sizeof(a);
  auto* const any = reinterpret_cast<sockaddr*>(&a);
  expect(::bind(socket, any, n) == 0 && ::listen(socket, 16) == 0 &&
             ::getsockname(socket, any, &n) == 0,
         "no port");
  return ntohs(a.sin_port);
}

enum class stage {
  tls,
  startup,
  parameters,
  ready,
  greeting,
  reply,
  notification,
  migration,
  stale,
  stream
};

/// Where one that never ends begins.
enum class moment { parameters, greeting, reply, notification, migration, between };

/// Of what never ends, what is sent before nobody takes it any more, what is under way included.
constexpr std::size_t most_streamed = std::size_t{32} << 20U;

/// Speaks as a server until its stage, and then anything. Connections are served by threads.
class hostile_server {
 public:
  hostile_server(stage at, dice d)
      : stage_{at},
        moment_{static_cast<moment>(d.below(6))},
        code_{d.pick(std::array{"42P05", "26000", "0A000"})},
        closes_{d.chance(50)},
        dice_{d},
        listener_{::socket(AF_INET, SOCK_STREAM, 0)},
        port_{listen_at_any_port(listener_)} {
    accepting_ = std::thread{[this] { accept_all(); }};
  }
  hostile_server(hostile_server const&) = delete;
  hostile_server& operator=(hostile_server const&) = delete;
  ~hostile_server() {
    over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    {
      std::lock_guard const lock{mutex_};
      for (int const c : clients_) ::shutdown(c, SHUT_RDWR);
    }
    for (auto& t : threads_) t.join();
    for (int const c : clients_) ::close(c);
    ::close(listener_);
  }

  [[nodiscard]] moment streams_at() const noexcept { return moment_; }
  /// How often it has said something strange.
  [[nodiscard]] std::uint64_t said() const noexcept { return said_; }
  /// The most that a connection has taken of what never ends and has to be kept.
  [[nodiscard]] std::size_t streamed() const noexcept { return kept_ ? streamed_.load() : 0; }
  /// Did a client not take any more?
  [[nodiscard]] bool hung_up() const noexcept { return hung_up_; }

  [[nodiscard]] std::string conninfo() const {
    return "host=127.0.0.1 port=" + std::to_string(port_) +
           " user=u password=p dbname=d gssencmode=disable sslmode=" +
           (stage_ == stage::tls ? "prefer" : "disable");
  }

 private:
  struct gone {};

  void accept_all() {
    for (;;) {
      int const c = ::accept(listener_, nullptr, nullptr);
      if (c < 0) return;
      timeval const most{2, 0};
      ::setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
      ::setsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
      std::lock_guard const lock{mutex_};
      clients_.push_back(c);
      threads_.emplace_back([this, c, d = dice_.fork()]() mutable {
        try {
          serve(c, d);
        } catch (gone const&) {
        }
        ::shutdown(c, SHUT_RDWR);
      });
    }
  }

  static std::string take(int c, std::size_t n) {
    std::string out(n, '\0');
    for (std::size_t got = 0; got != n;) {
      auto const r = ::recv(c, out.data() + got, n - got, 0);
      if (r <= 0) throw gone{};
      got += static_cast<std::size_t>(r);
    }
    return out;
  }
  static std::uint32_t length(std::string const& four) {
    std::uint32_t out = 0;
    for (char const b : four) out = out << 8U | static_cast<unsigned char>(b);
    return out;
  }
  static void say(int c, std::string const& what) {
    for (std::size_t sent = 0; sent != what.size();) {
      auto const r = ::send(c, what.data() + sent, what.size() - sent, MSG_NOSIGNAL);
      if (r <= 0) throw gone{};
      sent += static_cast<std::size_t>(r);
    }
  }

  void spoil(int c, dice& d, std::vector<std::string> messages) {
    say(c, spoiled(d, std::move(messages)));
    ++said_;
    if (d.chance(30)) throw gone{};
  }

  [[nodiscard]] bool streams(moment at) const noexcept {
    return stage_ == stage::stream && moment_ == at;
  }

  /// A message of a kind that libpq keeps, none of which is like the last one.
  static std::string another(int kind, std::size_t n) {
    switch (kind) {
      case 0: return row(std::vector<std::optional<std::string>>(22, std::string(8, '\0')));
      case 1: return row(std::vector<std::optional<std::string>>(1600));
      case 2: return row({std::nullopt});
      case 3: return message('N', "C" + text("01000") + "M" + text("told") + '\0');
      case 4: return message('A', number(1) + text("weir") + text(std::to_string(n)));
      case 5: return message('S', text("p" + std::to_string(n)) + text("v"));
      case 6: return message('E', "C" + text("57000") + "M" + text("failed") + '\0');
      default: return std::string(1 << 12, '\1');
    }
  }

  /// Something for ever: messages, or one that is as long as a message can be.
  void stream(int c, dice& d) {
    auto const kind = static_cast<int>(d.below(8));
    kept_ = moment_ != moment::notification || kind != 4;
    ++said_;
    if (kind < 3) say(c, rows_description(kind == 0 ? 22 : kind == 1 ? 1600 : 1));
    if (kind == 7) say(c, d.pick(std::string_view{"DENATS"}) + number(0x3fffffff));
    constexpr std::size_t most = std::size_t{256} << 20U;  // should nobody hang up
    std::size_t sent = 0;
    std::string some;
    for (std::size_t n = 0; sent < most;) {
      if (kind == 5) some.clear();  // each has a name of its own
      // Of one message as much at a time that it comes to its end on a slow machine, too.
      std::size_t const block = kind == 7 ? 1 << 20 : 1 << 16;
      while (some.size() < block) some += another(kind, n++);
      try {
        say(c, some);
      } catch (gone const&) {
        hung_up_ = true;
        throw;
      }
      sent += some.size();
      // What comes as fast as it can be read libpq reads at once, up to the length of a message.
      if (kind == 7) std::this_thread::sleep_for(10ms);
      for (auto seen = streamed_.load();
           seen < sent && !streamed_.compare_exchange_weak(seen, sent);) {
      }
    }
    quiet(c);
  }

  /// Parameters that come with an answer, other ones each time.
  std::string trickle() {
    std::string out;
    while (out.size() < std::size_t{1} << 20U) {
      out += message('S', text("p" + std::to_string(parameters_++)) + text(std::string(4096, 'v')));
    }
    return out;
  }

  void serve(int c, dice& d) {
    auto startup = take(c, length(take(c, 4)) - 4);
    if (startup == number(80877103)) {
      say(c, stage_ == stage::tls ? d.chance(50) ? "S" + noise(d, 300) : noise(d, 3) : "N");
      if (stage_ == stage::tls) ++said_;
      if (stage_ == stage::tls && d.chance(30)) throw gone{};
      startup = take(c, length(take(c, 4)) - 4);
    }
    if (stage_ == stage::startup) {
      std::vector<std::string> all;
      for (auto n = 1 + d.below(4); n != 0; --n) all.push_back(strange_authentication(d));
      spoil(c, d, std::move(all));
      return quiet(c);
    }
    std::string const allowed = message('R', number(0));
    std::vector<std::string> const parameters{
        message('S', text("server_version") + text("15.1")),
        message('S', text("client_encoding") + text("UTF8")),
        message('S', text("standard_conforming_strings") + text("on")),
        message('K', number(42) + number(7))};
    say(c, allowed);
    if (streams(moment::parameters)) stream(c, d);
    if (stage_ == stage::parameters) {
      spoil(c, d, parameters);
    } else {
      for (auto const& p : parameters) say(c, p);
    }
    if (stage_ == stage::ready) spoil(c, d, {message('Z', "I")});
    say(c, message('Z', "I"));
    queries(c, d);
  }

  static void quiet(int c) {
    for (;;) take(c, 1);
  }

  void queries(int c, dice& d) {
    std::string asked;
    for (int answered = 0;;) {
      auto const type = take(c, 1)[0];
      auto const body = take(c, length(take(c, 4)) - 4);
      if (type == 'X') throw gone{};
      asked += body;
      if (type == 'Q') {
        if (streams(moment::migration)) stream(c, d);
        spoil(c, d,
              {rows_description(2), row({number(postgres_schema_version), number(1)}),
               message('C', text("SELECT 1")), message('Z', "T")});
      }
      if (type != 'S') continue;
      bool const listens = asked.find("LISTEN") != asked.npos;
      std::vector<std::string> const greeting{
          message('1', ""),
          message('2', ""),
          rows_description(4),
          row({number(postgres_schema_version), number(1), "read committed", number(42)}),
          message('C', text("SELECT 1")),
          message('Z', "I")};
      if (streams(moment::greeting) && !listens) stream(c, d);
      if (listens) {
        std::vector<std::string> const all{message('1', ""), message('2', ""), message('n', ""),
                                           message('C', text("LISTEN")), message('Z', "I")};
        if (stage_ == stage::notification) {
          spoil(c, d, all);
          for (auto n = d.below(200); n != 0; --n) say(c, strange_message(d));
          ++said_;
        } else {
          for (auto const& m : all) say(c, m);
          if (streams(moment::notification)) stream(c, d);
        }
      } else if (answered == 0) {
        if (stage_ == stage::greeting) {
          spoil(c, d, greeting);
        } else {
          for (auto const& m : greeting) say(c, m);
        }
      } else if (stage_ == stage::stale) {
        say(c, message('E', "C" + text(code_) + "M" + text("stale") + '\0') + message('Z', "I"));
        ++said_;
        if (closes_) throw gone{};
      } else if (stage_ == stage::stream) {
        if (moment_ == moment::reply) stream(c, d);
        // An answer of weir's to a lock that is not there, and more than was asked for.
        for (auto const& m : {message('1', ""), message('2', ""), rows_description(1),
                              row({std::nullopt}), message('C', text("SELECT 1"))}) {
          say(c, m);
        }
        if (moment_ == moment::between) say(c, trickle());
        say(c, message('Z', "I"));
      } else {
        std::vector<std::string> all{message('1', ""), message('2', "")};
        static constexpr std::array columns{1, 2, 3, 4, 6, 8, 10, 22};
        auto const n = d.pick(columns);
        all.push_back(rows_description(n));
        for (auto k = d.below(4); k != 0; --k) {
          std::vector<std::optional<std::string>> fields(static_cast<std::size_t>(n));
          for (auto& f : fields) {
            static constexpr std::array lengths{8, 8, 4, 2, 1, 16, -1};
            auto const size = d.pick(lengths);
            if (size >= 0)
              f = std::string(static_cast<std::size_t>(size), static_cast<char>(d.below(3)));
          }
          all.push_back(row(fields));
        }
        all.insert(all.end(), {message('C', text("SELECT 1")), message('Z', "I")});
        spoil(c, d, std::move(all));
      }
      ++answered;
      asked.clear();
    }
  }

  stage const stage_;
  moment const moment_;
  char const* const code_;  // by which it says that it does not have a prepared statement
  bool const closes_;       // after that
  dice dice_;
  std::atomic<std::size_t> streamed_{0};
  std::atomic<std::size_t> parameters_{0};
  std::atomic<std::uint64_t> said_{0};
  std::atomic<bool> kept_{true};
  std::atomic<bool> hung_up_{false};
  int const listener_;
  unsigned short const port_;
  std::thread accepting_;
  std::mutex mutex_;
  std::vector<int> clients_;
  std::vector<std::thread> threads_;
  std::atomic<bool> over_{false};
};

void meet(stage at, std::string const& name, dice& d, hostile::campaign& campaign) {
  {
    hostile_server const there{at, d.fork()};
    boost::asio::io_context io;
    postgres_store const store{io.get_executor(), there.conninfo(), hurried()};
    auto const ended = std::make_shared<bool>(false);
    if (at == stage::migration) {
      // It takes as long as it takes, so one whose server falls silent is left to itself.
      store.async_migrate([ended](error_code) { *ended = true; });
      auto const until = std::chrono::steady_clock::now() + 100ms;
      while (!*ended && std::chrono::steady_clock::now() < until) {
        io.restart();
        io.run_one_for(10ms);
      }
    } else if (at == stage::notification) {
      store.async_execute(command::await_jobs{}, [ended](error_code, hint) { *ended = true; });
      auto const until = std::chrono::steady_clock::now() + 50ms;
      while (!*ended && std::chrono::steady_clock::now() < until) {
        io.restart();
        io.run_one_for(10ms);
      }
      store.close();
      expect(ends(io, [&] { return *ended; }), "a wait does not end");
    } else {
      for (auto n = 1 + d.below(3); n != 0; --n) any_command(d, io, store, "q", "k");
    }
    store.close();
    io.restart();
    io.run_for(20ms);
    campaign.count("hostile replies: " + name, there.said());
  }
}

/// A server that never ends what it says is left, and has filled no memory by then.
void endure(dice& d, hostile::campaign& campaign) {
  hostile_server const there{stage::stream, d.fork()};
  boost::asio::io_context io;
  auto o = hurried();
  o.connect_timeout = o.command_timeout = 5s;  // it is never silent
  postgres_store const store{io.get_executor(), there.conninfo(), o};
  bool ended = false;
  auto const spin = [&](auto so, std::chrono::milliseconds most) {
    auto const until = std::chrono::steady_clock::now() + most;
    while (!so() && std::chrono::steady_clock::now() < until) {
      io.restart();
      io.run_one_for(10ms);
    }
  };
  switch (there.streams_at()) {
    case moment::migration:
      store.async_migrate([&](error_code) { ended = true; });
      expect(ends(io, [&] { return ended; }), "a migration does not end");
      break;
    case moment::notification:
      store.async_execute(command::await_jobs{}, [&](error_code, hint) { ended = true; });
      spin([&] { return there.hung_up(); }, there.streamed() == 0 ? 500ms : 10s);
      store.close();
      expect(ends(io, [&] { return ended; }), "a wait does not end");
      break;
    case moment::between:
      for (int i = 0; i != 100; ++i) (void)ask(io, store, command::inspect_lock{"k"});
      break;
    default: any_command(d, io, store, "q", "k");
  }
  store.close();
  spin([] { return false; }, 20ms);
  expect(there.streamed() <= most_streamed,
         "a server was listened to for " + std::to_string(there.streamed()) + " bytes");
  campaign.count("hostile replies: stream", there.said());
}

// ---- A real server ---------------------------------------------------------------------------

/// It, with a database that is migrated, and a connection of the attacker's.
struct target {
  target()
      : db{PQconnectdb(server.conninfo().c_str())},
        store{io.get_executor(), server.conninfo(), patient()} {
    PQsetNoticeReceiver(db.get(), [](void*, PGresult const*) {}, nullptr);
    error_code ec = errc::timed_out;
    store.async_migrate([&](error_code e) { ec = e; });
    expect(ends(io, [&] { return ec != errc::timed_out; }) && !ec, "no migration");
  }

  static postgres_options patient() {
    postgres_options o;
    o.connect_timeout = o.command_timeout = 10s;
    o.tidy_interval = 10ms;
    return o;
  }
  bool run(std::string const& sql) {
    detail::postgres_result const r{PQexec(db.get(), sql.c_str())};
    return PQresultStatus(r.get()) == PGRES_COMMAND_OK ||
           PQresultStatus(r.get()) == PGRES_TUPLES_OK;
  }

  /// Another queue and other keys work.
  void serves_others() {
    std::vector<new_job> const jobs{job_of(1, "fine")};
    auto const ok = [](auto const& r, char const* what) {
      expect(r.has_value(), std::string{"others are not served: "} + what + ": " +
                                (r.has_value() ? "" : r.error().message()));
    };
    ok(ask(io, store, command::enqueue_jobs{"fine", jobs}), "enqueue");
    auto const taken = ask(io, store, command::dequeue_jobs{"fine", "h", 0, 5, 1h});
    ok(taken, "dequeue");
    expect(taken->jobs.size() == 1, "others are not served: no job");
    std::vector<finished_job> const done{{taken->jobs[0].id, taken->jobs[0].fence, {}}};
    auto const ended = ask(io, store, command::complete_jobs{"fine", done});
    ok(ended, "complete");
    auto const held = ask(io, store, command::acquire_lock{"fine", "h", 1h});
    ok(held, "lock");
    ok(ask(io, store, command::release_lock{"fine", "h"}), "release");
    std::vector<quota> const quotas{quota::per_second(1'000'000)};
    ok(ask(io, store, command::take{"fine", quotas}), "take");
    ok(ask(io, store, command::scan_visible_queues{.limit = 100}), "scan");
  }

  postgres_test::server server;
  std::unique_ptr<PGconn, detail::postgres_finish> db;
  boost::asio::io_context io;
  postgres_store store;
};

target& the_target() {
  static target t;
  return t;
}

/// Passes on what a client and a server say, and changes some of what the server does.
class mutating_proxy {
 public:
  mutating_proxy(unsigned short to, dice d)
      : to_{to},
        dice_{d},
        listener_{::socket(AF_INET, SOCK_STREAM, 0)},
        port_{listen_at_any_port(listener_)} {
    thread_ = std::thread{[this] { run(); }};
  }
  mutating_proxy(mutating_proxy const&) = delete;
  mutating_proxy& operator=(mutating_proxy const&) = delete;
  ~mutating_proxy() {
    over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (auto const& [a, b] : pairs_) {
      ::close(a);
      ::close(b);
    }
    ::close(listener_);
  }
  [[nodiscard]] unsigned short port() const noexcept { return port_; }

 private:
  void run() {
    while (!over_) {
      std::vector<pollfd> all{{listener_, POLLIN, 0}};
      for (auto const& [a, b] : pairs_) {
        all.push_back({a, POLLIN, 0});
        all.push_back({b, POLLIN, 0});
      }
      if (::poll(all.data(), all.size(), 50) <= 0) continue;
      for (std::size_t i = 1; i < all.size(); ++i) {
        if (all[i].revents == 0) continue;
        bool const from_server = i % 2 == 0;
        int const other = all[from_server ? i - 1 : i + 1].fd;
        std::array<char, 4096> some;
        auto const n = ::recv(all[i].fd, some.data(), some.size(), 0);
        if (n <= 0) {
          ::shutdown(other, SHUT_RDWR);
          ::shutdown(all[i].fd, SHUT_RDWR);
          std::erase_if(pairs_, [&](auto const& p) {
            if (p.first != other && p.second != other) return false;
            ::close(p.first);
            ::close(p.second);
            return true;
          });
          break;  // numbers have moved
        }
        std::string what{some.data(), static_cast<std::size_t>(n)};
        if (from_server && dice_.chance(40)) change(what);
        ::send(other, what.data(), what.size(), MSG_NOSIGNAL);
      }
      if (!over_ && (all[0].revents & POLLIN) != 0) {
        int const c = ::accept(listener_, nullptr, nullptr);
        if (c < 0) return;
        int const s = ::socket(AF_INET, SOCK_STREAM, 0);
        auto const a = loopback(to_);
        if (::connect(s, reinterpret_cast<sockaddr const*>(&a), sizeof(a)) != 0) {
          ::close(c);
          ::close(s);
          continue;
        }
        pairs_.emplace_back(c, s);
      }
    }
  }

  void change(std::string& what) {
    for (auto n = 1 + dice_.below(3); n != 0 && !what.empty(); --n) {
      auto const place = dice_.below(what.size());
      switch (dice_.below(6)) {
        case 0: what.erase(place, 1 + dice_.below(8)); break;
        case 1: what.insert(place, noise(dice_, 8)); break;
        case 2: what.insert(place, strange_message(dice_)); break;
        case 3: what.resize(place); break;
        default: what[place] = static_cast<char>(dice_.below(256));
      }
    }
  }

  unsigned short const to_;
  dice dice_;
  int const listener_;
  unsigned short const port_;
  std::thread thread_;
  std::vector<std::pair<int, int>> pairs_;
  std::atomic<bool> over_{false};
};

void mutated_session(dice& d, hostile::campaign& campaign) {
  auto& t = the_target();
  {
    mutating_proxy const between{t.server.port(), d.fork()};
    boost::asio::io_context io;
    postgres_store const store{
        io.get_executor(), postgres_test::server::conninfo_to(between.port()) + " sslmode=disable",
        hurried()};
    for (auto n = 1 + d.below(4); n != 0; --n) {
      bool const done = any_command(d, io, store, "q", "k");
      campaign.count(done ? "commands done through the proxy" : "commands that failed there");
    }
    store.close();
    io.restart();
    io.run_for(5ms);
  }
  if (d.chance(5)) t.serves_others();
}

// ---- Damaged rows ----------------------------------------------------------------------------

/// Rows of every table, one of whose columns is anything that it can hold.
void damaged_rows(dice& d, hostile::campaign& campaign) {
  auto& t = the_target();
  struct column {
    char const* table;
    char const* name;
    char const* type;
  };
  static std::vector<column> columns;
  static std::vector<std::string> texts;
  if (columns.empty()) {
    detail::postgres_result const r{
        PQexec(t.db.get(), "SELECT c.relname, a.attname, a.atttypid::regtype FROM pg_attribute a "
                           "JOIN pg_class c ON c.oid = "
                           "a.attrelid WHERE c.relnamespace = 'weir'::regnamespace AND c.relkind = "
                           "'r' AND a.attnum > 0 AND "
                           "c.relname NOT IN ('state', 'guards') ORDER BY 1, a.attnum")};
    texts.reserve(3 * static_cast<std::size_t>(PQntuples(r.get())));
    for (int i = 0; i < PQntuples(r.get()); ++i) {
      for (int k = 0; k < 3; ++k) texts.emplace_back(PQgetvalue(r.get(), i, k));
      auto const* const last = &texts.back();
      columns.push_back({(last - 2)->c_str(), (last - 1)->c_str(), last->c_str()});
    }
    expect(columns.size() > 50, "no tables");
  }
  t.run("DELETE FROM weir.used_keys; DELETE FROM weir.permit_lines; DELETE FROM weir.permits; "
        "DELETE FROM weir.locks; "
        "DELETE FROM weir.buckets; DELETE FROM weir.queues; DELETE FROM weir.pointers; "
        "DELETE FROM weir.counters; DELETE FROM weir.jobs; DELETE FROM weir.dead_letters; "
        "DELETE FROM weir.ended; DELETE FROM weir.dequeues; "
        "DELETE FROM weir.keys; DELETE FROM weir.hints");
  if (d.chance(3)) t.run("VACUUM");
  // Something in every table.
  std::vector<new_job> jobs{job_of(1, "k"), job_of(2), job_of(3, "l"), job_of(4)};
  jobs[3].priority = 7;
  (void)ask(t.io, t.store, command::enqueue_jobs{"q", jobs});
  auto const taken = ask(t.io, t.store, command::dequeue_jobs{"q", "h", 1, 2, 1h});
  for (auto const& j : taken->jobs) {
    (void)ask(t.io, t.store, command::start_job{"q", j.id, j.fence});
    if (d.chance(40)) (void)ask(t.io, t.store, command::bury_job{"q", j.id, j.fence, "why"});
  }
  (void)ask(t.io, t.store, command::acquire_lock{"k", "h", 1h});
  (void)ask(t.io, t.store, command::acquire_permit{"k", "h", 1, 1h});
  (void)ask(t.io, t.store, command::acquire_permit{"k", "other", 1, 1h, 1h});
  std::vector<quota> const quotas{quota::per_second(10)};
  (void)ask(t.io, t.store, command::take{"k", quotas});
  (void)ask(t.io, t.store, command::obtain_queue_lease{"q", "h", 1h});

  std::string done;
  for (auto n = 1 + d.below(3); n != 0;) {
    auto const& c = d.pick(columns);
    std::string_view const type = c.type;
    static constexpr std::array<char const*, 12> numbers{"-9223372036854775808",
                                                         "9223372036854775807",
                                                         "-1",
                                                         "0",
                                                         "1",
                                                         "2147483647",
                                                         "-2147483648",
                                                         "32767",
                                                         "-32768",
                                                         "4611686018427387905",
                                                         "256",
                                                         "9007199254740993"};
    static constexpr std::array<char const*, 6> bytes{"''",
                                                      "'k'",
                                                      "'q'",
                                                      "'\\xff00'",
                                                      "convert_to(repeat('x', 5000), 'UTF8')",
                                                      "convert_to(repeat('x', 2000000), 'UTF8')"};
    static constexpr std::array<char const*, 6> arrays{
        "'{}'",      "'{1}'",           "'{NULL,1,1}'",
        "'{0,0,0}'", "'{-1,-1,-1,-1}'", "'{9223372036854775807,1,1,1}'"};
    std::string value = d.chance(15) ? "NULL" : d.pick(numbers);
    if (type == "bytea") value = d.pick(bytes);
    if (type == "boolean") value = d.chance(50) ? "true" : "false";
    if (type == "text") value = d.chance(50) ? "'j0'" : "''";
    if (type == "uuid")
      value = d.chance(50) ? "gen_random_uuid()" : "'00000000-0000-0000-0000-000000000003'";
    if (type.ends_with("[]"))
      value = type == "numeric[]" && d.chance(20) ? "'{NaN,1,1,1}'" : d.pick(arrays);
    auto const sql =
        "UPDATE weir." + std::string{c.table} + " SET " + c.name + " = " + value +
        (d.chance(50) ? " WHERE ctid = (SELECT min(ctid) FROM weir." + std::string{c.table} + ")"
                      : "");
    if (!t.run(sql)) continue;  // the table does not let it
    done += "; " + sql;
    --n;
    campaign.count("damaged records");
    campaign.count(std::string{"of "} + c.table);
  }
  for (int i = 0; i != 12; ++i) any_command(d, t.io, t.store, "q", "k");
  (void)ask(t.io, t.store, command::cancel_job{"q", id(2), true});
  // The queue goes on, and comes to its end.
  std::size_t left = 1;
  for (int i = 0; left != 0 && i != 20; ++i) {
    auto const some = ask(t.io, t.store, command::dequeue_jobs{"q", "h", 0, 10, 1h});
    expect(some.has_value(),
           "a queue stops: " + (some.has_value() ? "" : some.error().message()) + done);
    left = some->jobs.size() + some->damaged + some->dead_lettered;
  }
  expect(left == 0, "a queue does not come to its end" + done);
  expect(ask(t.io, t.store, command::list_dead_letters{"q", 100, {}}).has_value(),
         "no listing" + done);
  expect(ask(t.io, t.store, command::peek_jobs{"q", 100}).has_value(), "no peek" + done);
  expect(ask(t.io, t.store, command::scan_visible_queues{.limit = 100}).has_value(),
         "no scan" + done);
  expect(t.run("SELECT weir.tidy(100, NULL)"),
         "no tidying: " + std::string{PQerrorMessage(t.db.get())} + done);
  t.serves_others();
}

}  // namespace

int main(int argc, char** argv) {
  // libpq reserves what a message declares, and writes what comes.
  hostile::heap::reserving_is_free = true;
  hostile::campaign campaign{argc, argv};
  for (auto const& [name, at] :
       {std::pair{"tls", stage::tls}, std::pair{"startup", stage::startup},
        std::pair{"parameters", stage::parameters}, std::pair{"ready", stage::ready},
        std::pair{"greeting", stage::greeting}, std::pair{"reply", stage::reply},
        std::pair{"notification", stage::notification}, std::pair{"migration", stage::migration},
        std::pair{"stale", stage::stale}}) {
    campaign.add(name, 15, [&, name, at](dice& d) { meet(at, name, d, campaign); });
  }
  campaign.add("stream", 30, [&](dice& d) { endure(d, campaign); });
  campaign.add("proxy", 40, [&](dice& d) { mutated_session(d, campaign); });
  campaign.add("rows", 30, [&](dice& d) { damaged_rows(d, campaign); });
  return campaign.run();
}
