// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The protocol: what is read from bytes as they arrive, and what is refused before it can do harm.

#include "redis_puppet.hpp"
#include "weir/store/redis.hpp"
#include "weir/store/redis/resp.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace redis_test;
using weir::errc;
using weir::error_code;
using weir::detail::redis_bounds;
using weir::detail::redis_parser;
using weir::detail::redis_value;
using kind = weir::detail::redis_kind;
using outcome = redis_parser::outcome;
namespace command = weir::command;

constexpr redis_bounds some{1000, 100};

/// Reads it in pieces of so many bytes, as a connection does.
outcome read(redis_parser& parser, std::string_view bytes, std::size_t piece,
             redis_bounds const& most = some) {
  std::size_t begin = 0;
  auto out = outcome::incomplete;
  for (std::size_t end = 0; end < bytes.size() && out == outcome::incomplete;) {
    end = std::min(end + piece, bytes.size());
    out = parser.read(bytes.substr(begin, end - begin), most);
    begin += parser.consumed();
  }
  return out;
}

std::string text(redis_parser const& parser) {
  std::string out;
  for (auto const& n : parser.nodes()) {
    out += std::string(n.depth, ' ') + std::to_string(static_cast<int>(n.data_type)) + ":" +
           std::to_string(n.aggregate_size) + ":" + n.value + "\n";
  }
  return out;
}

/// What makes no sense, or is more than anybody asks for.
std::vector<std::string> const hostile{
    // These end a process that reads them with Boost.Redis 1.88.
    "$\r\n", "=\r\n", "!\r\n", "$?\r\n;0\r\n", "*1\r\n$?\r\n;0\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n$?\r\n$?\r\n;0\r\n",
    // These reserve what they declare, or count past the end of it.
    "$8589934592\r\n", "$18446744073709551615\r\n", "$18446744073709551613\r\n", "$200000\r\n",
    "!200000\r\n", "%9223372036854775808\r\n", "*18446744073709551615\r\n", "*1000000000\r\n",
    "~200000\r\n", ">200000\r\n", "*9000\r\n*2\r\n:1\r\n:1\r\n*9000\r\n*9000\r\n",
    // Streams, attributes, nulls of the protocol before, and signs where there is no number.
    "*?\r\n", "%?\r\n", ";1\r\n", "|1\r\n", "$-1\r\n", "*-1\r\n", "$1x\r\n", "*+1\r\n", "* 1\r\n",
    "*\r\n", "%\r\n", ">\r\n",
    // Lines, and what is no line.
    "\r\n", "\n", "+a\n", "x\r\n", ".\r\n", std::string("\0\r\n", 3), "$1\r\nab\r\n", "$1\r\na\rb",
    "*1\r\n>1\r\n:1\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "+" + std::string(20'000, 'a')};

/// A store that runs, and its server, which answers one command with hostile bytes.
struct stage {
  stage() {
    auto options = patient();
    options.offline_patience = 1h;
    store.emplace(io.get_executor(), server.address(), options);
    store->async_run([](error_code) {});
  }
  stage(stage const&) = delete;
  stage& operator=(stage const&) = delete;
  ~stage() {
    store->close();
    server.close();
    io.restart();
    io.run();
  }

  /// Says it once, to the first that asks this; then it is a server like any other.
  void say_once(std::string_view verb, std::string bytes) {
    server.act([verb, bytes, once = false](puppet::guest& by, puppet::words const& w) mutable {
      if (w[0] == verb && !std::exchange(once, true)) {
        by.say(bytes);
        return true;
      }
      if (w[0] != "EVALSHA") return false;
      by.say(lock_free);
      return true;
    });
  }
  error_code inspect() {
    std::optional<error_code> done;
    store->async_execute(command::inspect_lock{"key"},
                         [&](error_code ec, weir::lock_info const&) { done = ec; });
    run_until(io, [&] { return done.has_value(); });
    return *done;
  }

  boost::asio::io_context io{};
  puppet server{io};
  std::optional<weir::redis_store> store{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_resp)

BOOST_AUTO_TEST_CASE(replies_are_read_as_they_arrive_in_whatever_pieces) {
  struct line {
    std::string_view bytes;
    std::vector<redis_value> nodes;
  };
  std::vector<line> const lines{
      {"+OK\r\n", {{kind::simple_string, 1, 0, "OK"}}},
      {"-ERR no\r\n", {{kind::simple_error, 1, 0, "ERR no"}}},
      {":-12\r\n", {{kind::number, 1, 0, "-12"}}},
      {",1.5\r\n", {{kind::doublean, 1, 0, "1.5"}}},
      {"#t\r\n", {{kind::boolean, 1, 0, "t"}}},
      {"_\r\n", {{kind::null, 1, 0, ""}}},
      {"$0\r\n\r\n", {{kind::blob_string, 1, 0, ""}}},
      {"$5\r\na\r\nbc\r\n", {{kind::blob_string, 1, 0, "a\r\nbc"}}},
      {"!3\r\nERR\r\n", {{kind::blob_error, 1, 0, "ERR"}}},
      {"*0\r\n", {{kind::array, 0, 0, ""}}},
      {"%1\r\n+a\r\n*2\r\n*0\r\n:1\r\n",
       {{kind::map, 1, 0, ""},
        {kind::simple_string, 1, 1, "a"},
        {kind::array, 2, 1, ""},
        {kind::array, 0, 2, ""},
        {kind::number, 1, 2, "1"}}},
      {">2\r\n+a\r\n_\r\n",
       {{kind::push, 2, 0, ""}, {kind::simple_string, 1, 1, "a"}, {kind::null, 1, 1, ""}}}};
  redis_parser parser;
  for (std::size_t const piece : {1U, 2U, 3U, 7U, 1000U}) {
    for (auto const& [bytes, nodes] : lines) {
      BOOST_TEST((read(parser, bytes, piece) == outcome::complete), bytes);
      std::string expected;
      BOOST_TEST_REQUIRE(parser.nodes().size() == nodes.size(), bytes);
      for (std::size_t i = 0; i != nodes.size(); ++i) {
        auto const& n = parser.nodes()[i];
        BOOST_TEST((n.data_type == nodes[i].data_type && n.value == nodes[i].value &&
                    n.aggregate_size == nodes[i].aggregate_size && n.depth == nodes[i].depth),
                   bytes << ": " << text(parser));
      }
      parser.clear();
    }
  }
  // What follows a reply is another one's.
  BOOST_TEST((parser.read(":1\r\n:2\r\n", some) == outcome::complete));
  BOOST_TEST(parser.consumed() == 4U);
}

BOOST_AUTO_TEST_CASE(F90_what_makes_no_sense_or_is_too_large_is_refused_when_it_is_declared) {
  auto all = hostile;
  for (std::string const more : {"$1001\r\n", "!1001\r\n", "~101\r\n", ">101\r\n"}) {
    all.push_back(more);
  }
  all.push_back(":" + std::string(1'001, '1') + "\r\n");
  for (auto const& bytes : all) {
    for (std::size_t const piece : {1U, 5U, 100'000U}) {
      redis_parser parser;
      BOOST_TEST((read(parser, bytes, piece) == outcome::refused), bytes.substr(0, 60));
    }
  }
  // Up to the bounds, nothing is refused.
  redis_parser parser;
  BOOST_TEST((read(parser, "$993\r\n" + std::string(993, 'a') + "\r\n", 64) == outcome::refused));
  parser = {};
  BOOST_TEST((read(parser, "$992\r\n" + std::string(992, 'a') + "\r\n", 64) == outcome::complete));
  std::string most = "*99\r\n";
  for (int i = 0; i != 99; ++i) most += "_\r\n";
  parser.clear();
  BOOST_TEST((read(parser, most, 64) == outcome::complete));
}

BOOST_AUTO_TEST_CASE(F90_a_hostile_reply_ends_its_connection_and_nothing_else) {
  for (auto const& bytes : hostile) {
    BOOST_TEST_CONTEXT(bytes.substr(0, 60)) {
      {  // before it is greeted, or knows the number of shards: nothing was executed
        for (std::string_view const verb : {"HELLO", "EVAL"}) {
          stage on;
          on.say_once(verb, bytes);
          BOOST_TEST(!on.inspect());
        }
      }
      stage on;
      on.say_once("EVALSHA", bytes);
      auto const ec = on.inspect();
      BOOST_TEST((ec == errc::outcome_unknown), ec.message());
      BOOST_TEST(!on.inspect());
      BOOST_TEST(on.server.calls() == 2U);
    }
  }
}

BOOST_AUTO_TEST_CASE(F90_a_hostile_push_ends_the_connection_for_hints_and_nothing_else) {
  for (auto const& bytes : hostile) {
    BOOST_TEST_CONTEXT(bytes.substr(0, 60)) {
      stage on;
      on.say_once("SUBSCRIBE", bytes);
      on.store->async_execute(command::await_jobs{0}, [](error_code, weir::hint const&) {});
      run_until(on.io, [&] { return on.server.heard("SUBSCRIBE") == 2; });
      BOOST_TEST(!on.inspect());
    }
  }
}

BOOST_AUTO_TEST_CASE(F90_replies_to_nothing_end_their_connection) {
  stage on;
  on.say_once("EVALSHA", std::string{lock_free} + "+OK\r\n+OK\r\n+OK\r\n");
  BOOST_TEST(!on.inspect());
  run_until(on.io, [&] { return on.server.calls() == 2; });
  BOOST_TEST(!on.inspect());
}

BOOST_AUTO_TEST_CASE(F90_pushes_that_nobody_asked_for_answer_nothing) {
  stage on;
  on.say_once("EVALSHA", ">2\r\n+message\r\n+x\r\n>1\r\n+a\r\n" + std::string{lock_free});
  BOOST_TEST(!on.inspect());
  BOOST_TEST(!on.inspect());
  BOOST_TEST(on.server.calls() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
