// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Who may do what: users, tokens, TLS, and accounts with fewer rights than a store would like.

#include "documented.hpp"
#include "nats_job_steps.hpp"
#include "nats_jwt.hpp"
#include "nats_nodes.hpp"
#include "nats_server.hpp"
#include "patience.hpp"
#include "weir/job_queue.hpp"
#include "weir/testing/fault_proxy.hpp"
#include "weir/worker.hpp"

#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using boost::asio::ip::tcp;
namespace asio = boost::asio;

using network_test::lasting;

error_code denied() { return make_error_code(errc::permission_denied); }

/// A user with these permissions, one who may everything, and perhaps others.
std::string users(std::string const& permissions, std::string const& others = {}) {
  return "authorization { users: [ {user: root, password: x}, {user: me, password: x, "
         "permissions: " +
         permissions + "}" + others + " ] }\n";
}

/// Permissions without one of their subjects.
std::string without(std::string permissions, std::string const& subject) {
  auto const quoted = '"' + subject + '"';
  auto const at = permissions.find(quoted);
  BOOST_TEST_REQUIRE(at != permissions.npos, subject);
  return permissions.replace(at, quoted.size(), R"("nothing")");
}
/// The same with one more to publish to.
std::string with(std::string const& permissions, std::string const& subject) {
  return boost::algorithm::replace_first_copy(permissions, "[", "[\"" + subject + "\", ");
}

/// The permissions that SECURITY.md lists, those for jobs included.
std::string documented_for_jobs() {
  return "{ " + weir_test::documented("SECURITY.md", "publish: [") + " }";
}
std::string documented() {
  auto out = documented_for_jobs();
  for (std::string const subject :
       {"weir.j.0", "$JS.API.STREAM.INFO.weir-jobs-0", "$JS.API.DIRECT.GET.weir-jobs-0",
        "$JS.API.STREAM.PURGE.weir-jobs-0", "$JS.API.STREAM.PURGE.weir-keys", "weir.e.0"}) {
    out = without(out, subject);
  }
  return out;
}

void make_stream(server const& s) {
  bed root{at(s, "root:x@")};
  BOOST_TEST_REQUIRE(root(command::inspect_lock{"key"}).has_value());
}
void make_streams(server const& s) {
  bed root{at(s, "root:x@")};
  (void)stats(root);
}

/// A user of the same account who may hear everything but what is weir's, and reply to others.
std::string const curious =
    R"(, {user: curious, password: x, permissions: { publish: ["_INBOX.>"],)"
    R"( subscribe: { allow: [">"], deny: ["weir.>"] } } })";

struct letter {
  std::string text{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(letter, text)

/// Greets as a server that names another one, and refuses everybody.
asio::awaitable<void> refuse(tcp::acceptor& at, std::string const info, std::atomic<int>& refused) {
  for (;;) {
    auto socket = co_await at.async_accept(asio::use_awaitable);
    std::string said;
    error_code ec;
    co_await asio::async_write(socket, asio::buffer(info),
                               asio::redirect_error(asio::use_awaitable, ec));
    co_await asio::async_read_until(socket, asio::dynamic_buffer(said), "\r\n",
                                    asio::redirect_error(asio::use_awaitable, ec));
    std::string const no = "-ERR 'Authorization Violation'\r\n";
    co_await asio::async_write(socket, asio::buffer(no),
                               asio::redirect_error(asio::use_awaitable, ec));
    ++refused;
  }
}

/// How long it took is looked at only to tell "at once" from "after the patience", minutes later.
nats_options patient() {
  auto o = brisk();
  o.offline_patience = o.request_timeout = o.connect_timeout = 10min;
  return o;
}

char const* const tls_server =
    "tls { cert_file: \"DIRECTORY/server.pem\", key_file: \"DIRECTORY/server.key\" }\n";

/// Ends the program if a strand hangs: then `happens` hangs, too.
struct watchdog {
  watchdog() { ::alarm(300); }
  watchdog(watchdog const&) = delete;
  watchdog& operator=(watchdog const&) = delete;
  ~watchdog() { ::alarm(0); }
};

/// An authority, and a certificate of it for 127.0.0.1.
void make_certificates(std::string const& directory) {
  auto const in = "cd '" + directory + "' && openssl ";
  for (auto const& words :
       {std::string{"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
                    "/CN=authority -keyout ca.key -out ca.pem"},
        std::string{"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server "
                    "-addext subjectAltName=IP:127.0.0.1 -keyout server.key -out server.csr"},
        std::string{"x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                    "-copy_extensions copy -out server.pem"},
        std::string{"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
                    "/CN=stranger -keyout other.key -out other.pem"}}) {
    BOOST_TEST_REQUIRE(std::system((in + words + " 2>openssl.log").c_str()) == 0, words);
  }
}

}  // namespace

template <>
struct weir::job_traits<letter> {
  static constexpr std::string_view kind = "letter";
  static constexpr weir::duration retention = std::chrono::hours{1};
};

BOOST_AUTO_TEST_SUITE(nats_access)

BOOST_AUTO_TEST_CASE(who_asks_has_to_be_known) {
  configured known{"authorization { user: me, password: secret }\n"};
  bed right{at(*known.it, "me:secret@"), brisk()};
  BOOST_TEST(right(command::inspect_lock{"key"}).has_value());
  bed named{at(*known.it).authenticate("me", "secret"), brisk()};
  BOOST_TEST(named(command::inspect_lock{"key"}).has_value());
  bed wrong{at(*known.it, "me:wrong@"), patient()};
  BOOST_TEST(is_error(wrong(command::inspect_lock{"key"}), denied()));
  BOOST_TEST(is_error(wrong(command::inspect_lock{"key"}), denied()));
  bed nobody{at(*known.it), patient()};
  BOOST_TEST(is_error(nobody(command::inspect_lock{"key"}), denied()));

  configured token{"authorization { token: secret }\n"};
  bed with{at(*token.it).token("secret"), brisk()};
  BOOST_TEST(with(command::inspect_lock{"key"}).has_value());
  bed without{at(*token.it).token("guess"), patient()};
  BOOST_TEST(is_error(without(command::inspect_lock{"key"}), denied()));
}

BOOST_AUTO_TEST_CASE(a_server_without_jetstream_is_unavailable) {
  // The server has it, but this account has not.
  configured off{"accounts { A { users = [{user: me, password: x}] } }\n"};
  auto o = brisk();
  o.offline_patience = 300ms;
  bed on{at(*off.it, "me:x@"), o};
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::store_unavailable));
}

BOOST_AUTO_TEST_CASE(what_the_documentation_asks_for_is_enough) {
  configured restricted{users(documented())};
  make_stream(*restricted.it);
  bed on{at(*restricted.it, "me:x@"), patient()};
  auto const got = on(command::acquire_permit{"key", "me", 1, lasting, {}});
  BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
  BOOST_TEST(got->granted);
  BOOST_TEST(on(command::acquire_permit{"key", "you", 1, lasting, lasting}).value().place == 1U);
  BOOST_TEST(on(command::release_permit{"key", "me", got->fence}).value().freed);
  BOOST_TEST(on(command::acquire_lock{"key", "me", lasting}).value().granted);
  BOOST_TEST(on(command::inspect_lock{"another"}).has_value());
}

BOOST_AUTO_TEST_CASE(what_the_documentation_asks_for_is_enough_for_jobs) {
  configured restricted{users(documented_for_jobs())};
  make_streams(*restricted.it);
  auto o = patient();
  o.image_interval = 4096;
  o.sync_interval = {};
  bed on{at(*restricted.it, "me:x@"), o};
  stranger who{*restricted.it, R"("user":"root","pass":"x",)"};
  bool was_cut = false;
  for (std::uint64_t i = 1; i != 1000 && !was_cut; ++i) {
    auto const ec = enqueue(on, i);
    BOOST_TEST_REQUIRE(!ec, ec.message());
    complete(on, dequeue(on, i).jobs.at(0));
    was_cut = i % 8 == 0 && log_of(who).first > 1;
  }
  BOOST_TEST(was_cut);
  // Who begins reads the image.
  bed late{at(*restricted.it, "me:x@"), o};
  BOOST_TEST(stats(late).enqueued > 0U);
}

// Two users' processes in one context, both of which may be the owner: one has every right, the
// other what is documented, less some. Neither is hindered by the other.
BOOST_AUTO_TEST_CASE(who_owns_and_who_asks_needs_what_is_documented) {
  auto const full = documented_for_jobs();
  auto const no_asking = without(full, "weir.q.>");     // the first one: to publish to it
  auto const neither = without(no_asking, "weir.q.>");  // nor to subscribe
  auto const mute = without(full, "weir.r.>");          // to publish there
  auto const keys_only = without(full, "weir.j.0");
  for (auto const& permissions : {full, no_asking, neither, mute, keys_only}) {
    for (bool const restricted_first : {true, false}) {
      BOOST_TEST_CONTEXT(permissions << restricted_first) {
        configured restricted{users(permissions)};
        make_streams(*restricted.it);
        asio::io_context io;
        auto o = patient();
        o.owner = true;
        o.owner_patience = 300ms;
        std::vector<nats_store> stores;
        for (auto const* who : {"me:x@", "root:x@"}) {
          stores.emplace_back(io.get_executor(), at(*restricted.it, who), o);
          stores.back().async_run(asio::detached);
        }
        auto const& me = stores[0];
        auto const& root = stores[1];
        auto const enqueues = [&](nats_store const& by, std::uint64_t n) {
          auto const j = job_of(n);
          auto const got = ask(io, by, command::enqueue_jobs{"queue", {&j, 1}});
          return got.has_error() ? got.error() : error_code{};
        };
        auto const acquires = [&](nats_store const& by, char const* holder) {
          auto const got = ask(io, by, command::acquire_permit{"key", holder, 2, lasting, {}});
          return got.has_value() && got->granted;
        };
        auto const& first = restricted_first ? me : root;
        auto const& second = restricted_first ? root : me;
        // Nobody who cannot answer stays the owner: what was asked of such a one is asked again.
        auto const eventually_enqueues = [&](nats_store const& by, std::uint64_t n) {
          return weir_test::happens([&] { return !enqueues(by, n); });
        };
        bool const may = permissions != keys_only;
        if (&first == &me && !may) {
          BOOST_TEST((enqueues(me, 1) == denied()));
        } else {
          BOOST_TEST(eventually_enqueues(first, 1));
        }
        BOOST_TEST(eventually_enqueues(second, 2));
        BOOST_TEST(acquires(first, "a"));
        BOOST_TEST(weir_test::happens([&] { return acquires(second, "b"); }));
        BOOST_TEST(!acquires(first, "c"));
        BOOST_TEST(!acquires(second, "c"));
        for (auto const& store : stores) store.close();
        io.restart();
        io.run();
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(who_makes_the_streams_needs_what_is_documented_besides) {
  auto const makes = with(with(documented_for_jobs(), "$JS.API.STREAM.CREATE.weir-keys"),
                          "$JS.API.STREAM.CREATE.weir-jobs-0");
  {
    configured empty{users(makes)};
    bed on{at(*empty.it, "me:x@"), patient()};
    auto const ec = enqueue(on, 1);
    BOOST_TEST_REQUIRE(!ec, ec.message());
    complete(on, dequeue(on, 1).jobs.at(0));
  }
  auto const reads = with(makes, "$JS.API.STREAM.MSG.GET.weir-keys");
  for (bool const may : {true, false}) {
    // Nobody in particular may everything: so the test's own.
    cluster nodes{users(may ? reads : makes) + "no_auth_user: root\n"};
    auto o = patient();
    o.replicas = cluster::size;
    bed on{nats_address::parse("nats://me:x@127.0.0.1:" + std::to_string(nodes[0].port())).value(),
           o};
    auto const seen = on(command::inspect_lock{"key"});
    if (!may) {
      BOOST_TEST(is_error(seen, denied()));
      continue;
    }
    BOOST_TEST_REQUIRE(seen.has_value(), seen.error().message());
    BOOST_TEST(on(command::acquire_permit{"key", "me", 1, lasting, {}}).value().granted);
    auto const ec = enqueue(on, 1);
    BOOST_TEST_REQUIRE(!ec, ec.message());
    complete(on, dequeue(on, 1).jobs.at(0));
  }
}

BOOST_AUTO_TEST_CASE(F95_nobody_but_its_users_hears_what_the_store_says_or_is_told) {
  configured shared{users(documented_for_jobs(), curious)};
  make_streams(*shared.it);
  auto o = patient();
  o.image_interval = 4096;
  o.sync_interval = {};
  bed on{at(*shared.it, "me:x@"), o};
  stranger other{*shared.it, R"("user":"curious","pass":"x",)"};
  other.overhear();

  auto const permit = on(command::acquire_permit{"key", "holder-secret", 1, lasting, {}});
  BOOST_TEST_REQUIRE(permit.has_value(), permit.error().message());
  BOOST_TEST(on(command::acquire_lock{"key", "holder-secret", lasting}).value().granted);
  bed second{at(*shared.it, "me:x@"), o};  // reads what the first one wrote
  BOOST_TEST(second(command::inspect_lock{"key"}).value().holder == "holder-secret");
  BOOST_TEST(second(command::inspect_permits{"key"}).value().in_use == 1U);
  auto const quota = quota::per_second(1);
  BOOST_TEST(on(command::take{"key", {&quota, 1}, 1, {}}).value().allowed);
  BOOST_TEST(second(command::peek_bucket{"key", {&quota, 1}}).has_value());

  job_queue queue{on.store};
  asio::co_spawn(
      on.io,
      [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 100; ++i) {
          letter const l{"payload-secret"};
          co_await queue.async_enqueue(l);
        }
      },
      [](std::exception_ptr const& e) { BOOST_TEST(!e); });
  int completed = 0;
  bool over = false;
  worker w{on.store, worker_options{}};
  w.handle<letter>([&](letter const& l, job_context&) -> asio::awaitable<std::string> {
    BOOST_TEST(l.text == "payload-secret");
    co_return "result-secret";
  });
  w.on_event(
      [&](worker_event const& e) { completed += e.kind == worker_event_kind::completed ? 1 : 0; });
  w.async_run([&](error_code) { over = true; });
  BOOST_TEST(weir_test::happens(on.io, [&] { return completed == 100; }));
  w.stop();
  BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return over; }));
  bed late{at(*shared.it, "me:x@"), o};  // reads an image
  BOOST_TEST(late(command::scan_visible_queues{}).has_value());

  auto const heard = other.heard();
  BOOST_TEST(heard.find("$JS.API.STREAM.INFO.weir-keys") != heard.npos);  // it did listen
  BOOST_TEST(heard.find("secret") == heard.npos, heard);
}

BOOST_AUTO_TEST_CASE(F96_no_server_gets_a_password_because_another_one_names_it) {
  asio::io_context io;
  auto const here = asio::ip::address_v4::loopback();
  tcp::acceptor asked{io, {here, 0}};
  tcp::acceptor named{io, {here, 0}};
  auto const to = "\"127.0.0.1:" + std::to_string(named.local_endpoint().port()) + '"';
  std::atomic<int> refused = 0;
  std::atomic<int> lured = 0;
  auto const info = R"(INFO {"server_id":"A","version":"2.15.1","max_payload":1048576,)"
                    R"("auth_required":true,"headers":true,"connect_urls":[)" +
                    to + "]}\r\n";
  asio::co_spawn(io, refuse(asked, info, refused), asio::detached);
  asio::co_spawn(io, refuse(named, info, lured), asio::detached);
  std::jthread const servers{[&io] { io.run(); }};
  {
    auto const url = "nats://127.0.0.1:" + std::to_string(asked.local_endpoint().port());
    bed on{nats_address::parse(url).value().authenticate("me", "secret"), patient()};
    BOOST_TEST(is_error(on(command::inspect_lock{"key"}), denied()));
    BOOST_TEST(weir_test::happens(on.io, [&] { return refused >= 3; }));
  }
  io.stop();
  BOOST_TEST(lured == 0);
}

// The C client waits for both for ever.
BOOST_AUTO_TEST_CASE(F90_a_server_that_falls_silent_is_given_up) {
  configured safe{tls_server, make_certificates};
  server plain;
  for (bool const secure : {false, true}) {
    asio::io_context io;
    tcp::acceptor mute{io, {asio::ip::address_v4::loopback(), 0}};
    std::string const info =
        R"(INFO {"server_id":"A","version":"2.15.1","max_payload":1048576,"headers":true)" +
        std::string{secure ? R"(,"tls_required":true)" : ""} + "}\r\n";
    std::atomic<int> greeted = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          std::vector<tcp::socket> kept;
          for (;;) {
            kept.push_back(co_await mute.async_accept(asio::use_awaitable));
            co_await asio::async_write(kept.back(), asio::buffer(info), asio::use_awaitable);
            ++greeted;
          }
        },
        asio::detached);
    std::jthread const servers{[&io] { io.run(); }};
    std::string const scheme = secure ? "tls://127.0.0.1:" : "nats://127.0.0.1:";
    auto const serving = secure ? safe.it->port() : plain.port();
    auto const urls = scheme + std::to_string(mute.local_endpoint().port()) + "," + scheme +
                      std::to_string(serving);
    auto address = nats_address::parse(urls).value();
    if (secure) address.tls(safe.directory + "/ca.pem");
    auto o = brisk();
    o.connect_timeout = 1s;
    // Which one is asked first is random.
    while (greeted == 0) {
      bed on{address, o};
      BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
    }
    io.stop();
  }
}

BOOST_AUTO_TEST_CASE(F90_of_many_servers_the_one_that_serves_is_found_at_once) {
  server serving;
  std::string urls;
  for (int refused = 1; refused != 50; ++refused) {
    urls += "nats://127.0.0.1:" + std::to_string(refused) + ",";
  }
  auto o = brisk();
  o.least_reconnect_wait = o.longest_reconnect_wait = 1min;  // there is no second round
  bed on{nats_address::parse(urls + "nats://127.0.0.1:" + std::to_string(serving.port())).value(),
         o};
  BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
}

BOOST_AUTO_TEST_CASE(R6_without_the_right_to_listen_what_others_do_is_still_found) {
  configured restricted{users(without(without(documented_for_jobs(), "weir.h.>"), "weir.e.0"))};
  make_streams(*restricted.it);
  auto o = brisk();
  o.poll_interval = 20ms;
  bed one{at(*restricted.it, "me:x@"), o};
  bed two{at(*restricted.it, "me:x@"), o};
  BOOST_TEST(one(command::acquire_permit{"key", "x", 1, lasting, {}}).value().granted);
  BOOST_TEST(two(command::acquire_permit{"key", "y", 1, lasting, lasting}).value().place == 1U);
  bool woken = false;
  two.store.async_execute(command::await_permit{"key", "y"}, [&](error_code ec, hint) {
    BOOST_TEST(!ec);
    woken = true;
  });
  BOOST_TEST(two(command::inspect_lock{"key"}).has_value());  // it has looked, and now waits
  BOOST_TEST(!woken);
  BOOST_TEST(one(command::release_permit{"key", "x", 0}).value().freed);
  BOOST_TEST(weir_test::happens(two.io, [&] { return woken; }));
  BOOST_TEST(two(command::acquire_permit{"key", "y", 1, lasting, lasting}).value().granted);

  for (std::uint64_t n = 1; n != 20; ++n) {
    BOOST_TEST(!enqueue(one, n));
    auto const got = dequeue(two, n);
    BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
    complete(one, got.jobs[0]);
  }
  BOOST_TEST(stats(two).completed == 19U);
}

BOOST_AUTO_TEST_CASE(F46_what_is_not_permitted_is_denied_at_once) {
  configured restricted{users(
      R"({ publish: ["weir.h.>", "weir.k.l.>", "$JS.API.STREAM.INFO.*", "$JS.API.DIRECT.GET.>"] })")};
  make_stream(*restricted.it);
  bed on{at(*restricted.it, "me:x@"), patient()};
  // Many at once, each of which is told about itself.
  constexpr int callers = 100;
  int ended = 0;
  int refused = 0;
  int granted = 0;
  std::vector<std::string> keys;
  for (int i = 0; i != callers; ++i) keys.push_back("key" + std::to_string(i));
  for (auto const& key : keys) {
    on.store.async_execute(command::acquire_permit{key, "me", 1, lasting, {}},
                           [&](error_code ec, permit_grant const&) {
                             ++ended;
                             if (ec == denied()) ++refused;
                           });
    on.store.async_execute(command::acquire_lock{key, "me", lasting},
                           [&](error_code ec, lock_grant const& g) {
                             ++ended;
                             if (!ec && g.granted) ++granted;
                           });
  }
  BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return ended == 2 * callers; }));
  BOOST_TEST(refused == callers);
  BOOST_TEST(granted == callers);
  // A subject of which the client keeps only the beginning.
  std::string const key(limits::key_size, 'k');
  BOOST_TEST(is_error(on(command::acquire_permit{key, "me", 1, lasting, {}}), denied()));
}

BOOST_AUTO_TEST_CASE(F46_what_is_not_permitted_of_jobs_is_denied_at_once) {
  // One may not write, one not see the log, one not read it.
  struct lack {
    char const* subject;
    bool reads;
  };
  for (auto const& [subject, reads] :
       {lack{"weir.j.0", true}, lack{"$JS.API.STREAM.INFO.weir-jobs-0", false},
        lack{"$JS.API.DIRECT.GET.weir-jobs-0", false}}) {
    BOOST_TEST_CONTEXT(subject) {
      configured restricted{users(without(documented_for_jobs(), subject))};
      make_streams(*restricted.it);
      {
        bed root{at(*restricted.it, "root:x@")};
        BOOST_TEST(!enqueue(root, 1));
      }
      bed on{at(*restricted.it, "me:x@"), patient()};
      BOOST_TEST((enqueue(on, 2) == denied()));
      auto const read = on(command::read_queue_stats{"queue"});
      BOOST_TEST((reads ? read.has_value() : is_error(read, denied())));
      BOOST_TEST(on(command::inspect_lock{"key"}).has_value());  // other nouns go on
    }
  }
  // The log is not there, and may not be made.
  configured unmade{users(documented_for_jobs())};
  make_stream(*unmade.it);
  bed on{at(*unmade.it, "me:x@"), patient()};
  BOOST_TEST((enqueue(on, 1) == denied()));
}

BOOST_AUTO_TEST_CASE(F46_an_account_that_is_full_refuses_and_forgets_nothing) {
  configured small{"accounts { A { jetstream: { max_store: 65536, max_mem: 0, max_streams: 2 }, "
                   "users: [{user: me, password: x}] } }\n"};
  bed on{at(*small.it, "me:x@"), patient()};
  std::vector<std::string> held;
  result<lock_grant> got = lock_grant{};
  while (got.has_value() && held.size() != 2000) {
    auto key = "key" + std::to_string(held.size());
    got = on(command::acquire_lock{key, "me", lasting});
    if (got.has_value()) held.push_back(std::move(key));
  }
  BOOST_TEST(is_error(got, errc::store_full));
  for (auto const& key : held) BOOST_TEST(on(command::inspect_lock{key}).value().held);
  // The second stream is the log, and there is no third one.
  std::string const large(10'000, 'x');
  BOOST_TEST((enqueue(on, 1, large) == errc::store_full));
  auto o = patient();
  o.prefix = "other";
  bed third{at(*small.it, "me:x@"), o};
  BOOST_TEST(is_error(third(command::inspect_lock{"key"}), errc::store_full));
}

BOOST_AUTO_TEST_CASE(a_stream_that_may_not_be_made_or_seen_is_denied_at_once) {
  configured unmade{users(documented())};
  bed one{at(*unmade.it, "me:x@"), patient()};
  BOOST_TEST(is_error(one(command::inspect_lock{"key"}), denied()));

  configured unseen{users(R"({ publish: ["weir.>"] })")};
  make_stream(*unseen.it);
  bed two{at(*unseen.it, "me:x@"), patient()};
  BOOST_TEST(is_error(two(command::inspect_lock{"key"}), denied()));

  configured deaf{users(R"({ subscribe: ["weir.h.>"] })")};
  make_stream(*deaf.it);
  bed three{at(*deaf.it, "me:x@"), patient()};
  BOOST_TEST(is_error(three(command::inspect_lock{"key"}), denied()));
}

BOOST_AUTO_TEST_CASE(a_right_that_is_given_later_is_noticed) {
  configured restricted{users(documented())};
  auto o = brisk();
  o.health_check_interval = 500ms;
  bed on{at(*restricted.it, "me:x@"), o};
  BOOST_TEST(is_error(on(command::inspect_lock{"key"}), denied()));
  make_stream(*restricted.it);  // by who may
  BOOST_TEST(eventually(on, command::inspect_lock{"key"}).has_value());
}

BOOST_AUTO_TEST_CASE(TLS_is_spoken_with_who_can_prove_who_it_is) {
  configured safe{tls_server, make_certificates};
  auto const url = "tls://127.0.0.1:" + std::to_string(safe.it->port());
  auto const address = nats_address::parse(url).value();
  bed right{nats_address{address}.tls(safe.directory + "/ca.pem"), brisk()};
  BOOST_TEST(right(command::acquire_lock{"key", "me", lasting}).value().granted);

  auto o = brisk();
  o.offline_patience = 300ms;
  bed other{nats_address{address}.tls(safe.directory + "/other.pem"), o};
  BOOST_TEST(is_error(other(command::inspect_lock{"key"}), errc::store_unavailable));
  bed unknown{address, o};  // the system knows no such authority
  BOOST_TEST(is_error(unknown(command::inspect_lock{"key"}), errc::store_unavailable));
  auto const by_name = nats_address::parse("tls://localhost:" + std::to_string(safe.it->port()));
  bed elsewhere{nats_address{by_name.value()}.tls(safe.directory + "/ca.pem"), o};
  BOOST_TEST(is_error(elsewhere(command::inspect_lock{"key"}), errc::store_unavailable));
  bed plain{at(*safe.it), o};
  BOOST_TEST(is_error(plain(command::inspect_lock{"key"}), errc::store_unavailable));
}

// The proxy runs where the store does, so a store that waited for the network would wait for ever.
BOOST_AUTO_TEST_CASE(TLS_blocks_nobody_while_a_record_is_on_its_way) {
  watchdog const ends;
  configured safe{tls_server, make_certificates};
  asio::io_context io;
  testing::fault_proxy const proxy{io.get_executor(),
                                   {asio::ip::address_v4::loopback(), safe.it->port()}};
  proxy.split_messages([](testing::traffic) {
    return [](std::string_view bytes) { return std::min<std::size_t>(bytes.size(), 300); };
  });
  auto const url = "tls://127.0.0.1:" + std::to_string(proxy.endpoint().port());
  nats_store const store{io.get_executor(),
                         nats_address::parse(url).value().tls(safe.directory + "/ca.pem"), brisk()};
  store.async_run(asio::detached);
  auto const on = [&](auto const& c) { return ask(io, store, c); };
  std::string const large(100'000, 'x');
  BOOST_TEST(!enqueue(on, 1, large));
  auto const got = dequeue(on, 1);
  BOOST_TEST_REQUIRE(got.jobs.size() == 1U);
  BOOST_TEST(got.jobs[0].payload == large);
  store.close();
  proxy.async_close();
  network_test::run_out(io);
}

BOOST_AUTO_TEST_CASE(TLS_takes_more_than_sockets_have_room_for) {
  watchdog const ends;
  configured safe{tls_server, make_certificates};
  auto const url = "tls://127.0.0.1:" + std::to_string(safe.it->port());
  auto o = brisk();
  o.shards = 4;
  bed on{nats_address::parse(url).value().tls(safe.directory + "/ca.pem"), o};
  std::string const large(1'000'000, 'x');
  constexpr int many = 16;
  int ended = 0;
  int failed = 0;
  for (int i = 0; i != many; ++i) {
    auto const queue = "queue " + std::to_string(i);
    auto const j = job_of(static_cast<std::uint64_t>(i) + 1, large);
    on.store.async_execute(command::enqueue_jobs{queue, {&j, 1}}, [&](error_code ec, auto const&) {
      ++ended;
      failed += ec ? 1 : 0;
    });
  }
  BOOST_TEST_REQUIRE(weir_test::happens(on.io, [&] { return ended == many; }));
  BOOST_TEST(failed == 0);
}

BOOST_AUTO_TEST_CASE(a_credentials_file_says_who_asks) {
  decentralised const keys;
  auto const write = [](std::string const& credentials) {
    return [credentials](std::string const& directory) {
      std::ofstream{directory + "/user.creds"} << credentials;
    };
  };
  configured known{keys.configuration, write(keys.credentials)};
  bed right{at(*known.it).credentials(known.directory + "/user.creds"), brisk()};
  auto const got = right(command::acquire_lock{"key", "me", lasting});
  BOOST_TEST_REQUIRE(got.has_value(), got.error().message());
  BOOST_TEST(got->granted);

  bed nobody{at(*known.it), patient()};
  BOOST_TEST(is_error(nobody(command::inspect_lock{"key"}), denied()));
  // Of another operator's account.
  write(decentralised{}.credentials)(known.directory);
  bed other{at(*known.it).credentials(known.directory + "/user.creds"), patient()};
  BOOST_TEST(is_error(other(command::inspect_lock{"key"}), denied()));
  auto o = brisk();
  o.offline_patience = 300ms;
  bed missing{at(*known.it).credentials(known.directory + "/none.creds"), o};
  BOOST_TEST(is_error(missing(command::inspect_lock{"key"}), errc::store_unavailable));
}

// About one of 200 signatures of the C client is refused.
BOOST_AUTO_TEST_CASE(a_signature_that_is_refused_is_made_again) {
  decentralised const keys;
  configured s{keys.configuration, [&](std::string const& directory) {
                 std::ofstream{directory + "/user.creds"} << keys.credentials;
               }};
  for (int i = 0; i != 1000; ++i) {
    bed on{at(*s.it).credentials(s.directory + "/user.creds"), brisk()};
    auto const got = on(command::inspect_lock{"key"});
    BOOST_TEST_REQUIRE(got.has_value(), got.error().message() << " after " << i);
  }
}

// The server says so once it knows who asks.
BOOST_AUTO_TEST_CASE(F59_what_a_user_may_send_bounds_messages_as_what_the_server_takes) {
  for (int const payload : {65'536, 4'096}) {
    decentralised const keys{payload};
    configured known{keys.configuration, [&](std::string const& directory) {
                       std::ofstream{directory + "/user.creds"} << keys.credentials;
                     }};
    bed on{at(*known.it).credentials(known.directory + "/user.creds"), brisk()};
    if (payload < 8'192) {
      BOOST_TEST(is_error(on(command::inspect_lock{"key"}), errc::invalid_option));
      continue;
    }
    BOOST_TEST(!enqueue(on, 1));
    BOOST_TEST(enqueue(on, 2, std::string(100'000, 'x')) == errc::payload_too_large);
    BOOST_TEST(!enqueue(on, 3, std::string(60'000, 'x')));
    BOOST_TEST(stats(on).pending == 2U);
  }
}

BOOST_AUTO_TEST_CASE(R6_any_of_several_servers_will_do) {
  server there;
  auto const urls = "nats://127.0.0.1:1,nats://127.0.0.1:" + std::to_string(there.port());
  bed on{nats_address::parse(urls).value(), brisk()};
  for (int i = 0; i != 5; ++i) {
    BOOST_TEST(on(command::inspect_lock{"key"}).has_value());
    there.kill();
    there.start();
  }
}

BOOST_AUTO_TEST_SUITE_END()
