// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Batches of commands, and what a server's refusal of one means.

#include "weir/quota.hpp"
#include "weir/store/redis/batch.hpp"
#include "weir/store/redis/buckets.hpp"
#include "weir/store/redis/confirm.hpp"
#include "weir/store/redis/jobs.hpp"
#include "weir/store/redis/question.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using weir::errc;
using weir::error_code;
using weir::detail::redis_batch;
using weir::detail::redis_reply;
using node = weir::detail::redis_value;
using kind = weir::detail::redis_kind;
namespace command = weir::command;
namespace detail = weir::detail;

/// A command, and what came of it.
struct noted final : detail::redis_request {
  explicit noted(std::string_view key = "key")
      : redis_request{
            encode(detail::redis_names{"weir", 1}, command::inspect_lock{key}, {}).value()} {}
  [[nodiscard]] bool wanted() const noexcept override { return is_wanted; }
  void complete(redis_reply&) noexcept override { told = error_code{}; }
  void fail(error_code ec) noexcept override { told = ec; }

  bool is_wanted = true;
  std::optional<error_code> told;
};

/// Who has a batch: it notes what is answered, and to whom.
struct owner final : detail::redis_batch_owner {
  void answered(std::shared_ptr<detail::redis_request> const& r,
                std::span<redis_reply::node const> reply) override {
    if (has_no_memory) throw std::bad_alloc{};
    to.push_back(r);
    replies.emplace_back(reply.begin(), reply.end());
  }
  void parted(std::shared_ptr<detail::redis_request> const& r) override { apart.push_back(r); }
  std::vector<std::shared_ptr<detail::redis_request>> to;
  std::vector<std::vector<node>> replies;
  std::vector<std::shared_ptr<detail::redis_request>> apart;
  bool has_no_memory = false;
};

std::string wire(redis_batch const& batch) { return std::string{batch.wire().payload()}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_reply_parts)

BOOST_AUTO_TEST_CASE(a_batch_that_is_used_again_has_nothing_of_what_it_was_used_for) {
  detail::redis_spare_batches spare;
  auto const fresh = [](std::string_view key) {
    redis_batch out;
    out.add(std::make_shared<noted>(key));
    detail::redis_known_scripts known;
    out.encode({}, known);
    return wire(out);
  };
  redis_batch const* first = nullptr;
  std::string const much(2'000'000, 'x');
  for (std::string_view const key : {std::string_view{"one"}, std::string_view{"two"},
                                     std::string_view{much}, std::string_view{"three"}}) {
    auto batch = spare.take();
    if (first == nullptr) first = batch.get();
    BOOST_TEST(batch.get() == first);
    BOOST_TEST_REQUIRE(batch->wire().payload().empty());
    BOOST_TEST_REQUIRE(batch->unanswered().empty());
    auto const r = std::make_shared<noted>(key);
    batch->add(r);
    detail::redis_known_scripts known;
    batch->encode({}, known);
    BOOST_TEST((wire(*batch) == fresh(key)));
    owner by;
    BOOST_TEST_REQUIRE(batch->unanswered().size() == 1U);
    batch->belongs_to(by);
    batch->reply(std::vector<node>{{kind::array, 1, 0, ""}, {kind::number, 1, 1, "7"}});
    BOOST_TEST(batch->unanswered().empty());
    BOOST_TEST_REQUIRE(by.to.size() == 1U);
    BOOST_TEST((by.to[0] == r));
    BOOST_TEST(by.replies[0].size() == 2U);
    BOOST_TEST(by.replies[0][1].value == "7");
    spare.keep(std::move(batch));
  }
}

BOOST_AUTO_TEST_CASE(each_of_a_batch_gets_its_own_reply_whatever_its_shape) {
  redis_batch batch;
  std::array const all{std::make_shared<noted>(), std::make_shared<noted>(),
                       std::make_shared<noted>(), std::make_shared<noted>()};
  for (auto const& r : all) batch.add(r);
  all[1]->is_wanted = false;
  all[2]->ask_first();  // another reply comes before its own
  auto const dropped = batch.leave();
  BOOST_TEST_REQUIRE(dropped.size() == 1U);
  BOOST_TEST((dropped[0] == all[1]));
  detail::redis_known_scripts known;
  batch.encode({}, known);
  owner by;
  batch.belongs_to(by);
  batch.reply(std::vector<node>{
      {kind::map, 1, 0, ""}, {kind::blob_string, 1, 1, "a"}, {kind::array, 0, 1, ""}});
  BOOST_TEST(by.to.size() == 1U);
  batch.reply(std::vector<node>{{kind::simple_string, 1, 0, "OK"}});
  BOOST_TEST(by.to.size() == 1U);
  batch.reply(std::vector<node>{{kind::simple_error, 1, 0, "TRYAGAIN"}});
  BOOST_TEST(batch.unanswered().size() == 1U);
  batch.reply(std::vector<node>{{kind::null, 1, 0, ""}});
  BOOST_TEST_REQUIRE(by.to.size() == 3U);
  BOOST_TEST((by.to[0] == all[0] && by.to[1] == all[2] && by.to[2] == all[3]));
  BOOST_TEST(by.replies[0].size() == 3U);
  BOOST_TEST(by.replies[1][0].value == "TRYAGAIN");
  BOOST_TEST((by.replies[2][0].data_type == kind::null));
}

BOOST_AUTO_TEST_CASE(what_was_executed_is_of_unknown_outcome_where_there_is_no_memory_to_answer) {
  redis_batch batch;
  auto const r = std::make_shared<noted>();
  batch.add(r);
  detail::redis_known_scripts known;
  batch.encode({}, known);
  owner by;
  by.has_no_memory = true;
  batch.belongs_to(by);
  BOOST_CHECK_THROW(batch.reply(std::vector<node>{{kind::null, 1, 0, ""}}), std::bad_alloc);
  BOOST_TEST((r->told == errc::outcome_unknown));
  BOOST_TEST(batch.unanswered().empty());
}

BOOST_AUTO_TEST_CASE(
    one_question_is_under_way_about_what_replicas_have_and_the_rest_waits_for_the_next) {
  detail::redis_unconfirmed waiting;
  std::vector<node> const reply{{kind::number, 1, 0, "1"}};
  std::array const all{std::make_shared<noted>(), std::make_shared<noted>(),
                       std::make_shared<noted>()};
  BOOST_TEST(waiting.add(all[0], reply));
  BOOST_TEST(!waiting.add(all[1], reply));
  auto const asked = waiting.take();
  BOOST_TEST(asked.size() == 2U);
  BOOST_TEST(!waiting.add(all[2], reply));  // done after it was asked: it says nothing about this
  BOOST_TEST(waiting.more());
  detail::redis_unconfirmed::settle(asked, true);
  BOOST_TEST((all[0]->told == error_code{} && all[1]->told == error_code{}));
  BOOST_TEST(!all[2]->told.has_value());
  detail::redis_unconfirmed::settle(waiting.take(), false);
  BOOST_TEST((*all[2]->told == errc::outcome_unknown));
  BOOST_TEST(!waiting.more());
  BOOST_TEST(waiting.size() == 0U);
  BOOST_TEST(waiting.add(all[0], reply));
}

BOOST_AUTO_TEST_CASE(F98_a_warning_repeats_no_more_of_a_server_than_a_word) {
  auto const warning = [](std::string_view policy) {
    return detail::redis_eviction_warning(policy);
  };
  BOOST_TEST(detail::redis_policy_in("a:1\r\nmaxmemory_policy:noeviction\r\nb:2\r\n").empty());
  BOOST_TEST(detail::redis_policy_in("maxmemory_policy:volatile-lru\r\nb:2") == "volatile-lru");
  BOOST_TEST(detail::redis_policy_in("").empty());
  BOOST_TEST(
      warning("allkeys-lru").starts_with("the server's maxmemory-policy is allkeys-lru and"));
  for (std::string const& policy : {std::string{"\x1B]0;title\x07"},
                                    std::string{"no\nweir: all is well"}, std::string(33, 'a')}) {
    BOOST_TEST(warning(policy).starts_with("the server's maxmemory-policy is not noeviction"));
  }
}

BOOST_AUTO_TEST_CASE(
    F46_every_refusal_has_a_type_and_nobody_is_told_that_nothing_happened_if_it_may_have) {
  struct line {
    std::string_view said;
    errc error;
    bool stays;
  };
  constexpr line lines[] = {
      {"OOM command not allowed when used memory > 'maxmemory'.", errc::store_full, false},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", errc::store_foreign,
       true},
      {"READONLY You can't write against a read only replica.", errc::store_read_only, false},
      {"MISCONF Redis is configured to save RDB snapshots", errc::store_read_only, false},
      {"LOADING Redis is loading the dataset in memory", errc::store_unavailable, false},
      {"BUSY Redis is busy running a script.", errc::store_unavailable, false},
      {"MASTERDOWN Link with MASTER is down", errc::store_unavailable, false},
      {"CLUSTERDOWN Hash slot not served", errc::store_unavailable, false},
      {"TRYAGAIN Multiple keys request during rehashing of slot", errc::store_unavailable, false},
      {"NOREPLICAS Not enough good replicas to write.", errc::store_unavailable, false},
      {"MOVED 1 127.0.0.1:1", errc::invalid_option, true},
      {"ASK 1 127.0.0.1:1", errc::invalid_option, true},
      {"CROSSSLOT Keys in request don't hash to the same slot", errc::invalid_option, true},
      {"NOAUTH Authentication required.", errc::permission_denied, true},
      {"WRONGPASS invalid username-password pair or user is disabled.", errc::permission_denied,
       true},
      {"NOPERM User x has no permissions to run the 'evalsha' command", errc::permission_denied,
       true},
      {"DENIED Redis is running in protected mode", errc::permission_denied, true},
      {"ERR DB index is out of range", errc::invalid_option, true},
      {"ERR SELECT is not allowed in cluster mode", errc::invalid_option, true},
      // As a script that ran into it says.
      {"ERR user_script:1: WRONGTYPE weir: hash expected, list found script: a, on @user_script:1.",
       errc::store_foreign, true},
      {"ERR user_script:1: CORRUPT weir: a job without its record", errc::store_corrupt, false},
      {"ERR Error running script: OOM command not allowed when used memory", errc::store_full,
       false},
      {"ERR Error running script: READONLY You can't write", errc::store_read_only, false},
      {"ERR Error running script: @user_script:1: -NOREPLICAS Not enough good replicas to write.",
       errc::store_unavailable, false},
      {"ERR Error running script: MISCONF Errors writing to the AOF file", errc::store_read_only,
       false},
      // A user without the right to what a script calls (F97), as Redis 6, 7 and Valkey say it.
      {"ERR The user executing the script can't run this command or subcommand script: a, on @x:1.",
       errc::permission_denied, true},
      {"NOPERM ACL failure in script: User x has no permissions to run the 'zadd' command",
       errc::permission_denied, true},
      {"ERR ACL failure in script: User x has no permissions to run the 'hmget' command script: a, "
       "on "
       "@user_script:1.",
       errc::permission_denied, true},
      // A script that meets a damaged record (F97).
      {"ERR user_script:7: attempt to compare nil with number script: a, on @user_script:7.",
       errc::store_corrupt, false},
      {"ERR hash value is not an integer script: a, on @user_script:7.", errc::store_corrupt,
       false},
      {"ERR data string too short script: a, on @user_script:7.", errc::store_corrupt, false},
      // Nobody knows how far it came.
      {"UNKILLABLE Sorry the script already executed write commands", errc::outcome_unknown, false},
      {"EXECABORT Transaction discarded because of previous errors.", errc::outcome_unknown, false},
      {"ERR max number of clients reached", errc::outcome_unknown, false},
      {"ERR something new", errc::outcome_unknown, false},
      {"", errc::outcome_unknown, false},
  };
  for (auto const& [said, error, stays] : lines) {
    auto const ec = detail::redis_refusal(said);
    BOOST_TEST((ec == error), said << ": " << ec.message());
    BOOST_TEST(detail::redis_refusal_stays(ec) == stays, said);
  }
}

BOOST_AUTO_TEST_CASE(F97_what_a_user_has_no_right_to_is_named_and_nothing_else_is_repeated) {
  auto const denied = [](std::string_view text) {
    auto const all = detail::redis_denied(text, "\nlocal a\nif call('ZCARD', due) then\nend");
    constexpr std::string_view head = "the server's user has no right to ";
    BOOST_TEST(all.starts_with(head), all);
    return all.substr(head.size());
  };
  BOOST_TEST(denied("NOPERM this user has no permissions to run the 'cluster|slots' command") ==
             "the command cluster|slots");
  BOOST_TEST(denied("ERR The user executing the script can't run this command or subcommand "
                    "script: a, on @user_script:3.") == "the command ZCARD");
  BOOST_TEST(denied("NOPERM this user has no permissions to access one of the keys used") ==
             "one of the keys or channels of its prefix");
  for (auto const* const other :
       {"NOPERM", "NOPERM to run the '\x1b[2J' command", "NOPERM to run the '", "@user_script:",
        "The user executing the script @user_script:2", "@user_script:99999999999999999999999",
        "@user_script:4", "@user_script:400", "@user_script:-1"}) {
    BOOST_TEST(denied(other) == "a command that is needed", other);
  }
}

BOOST_AUTO_TEST_CASE(
    F90_times_that_nobody_can_count_with_are_refused_before_they_are_counted_with) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  static constexpr std::array quotas{weir::quota::per_second(1)};
  auto const take = [](std::int64_t now) {
    std::vector<node> const nodes{{kind::array, 4, 0, ""},
                                  {kind::number, 1, 1, "1"},
                                  {kind::number, 1, 1, std::to_string(now)},
                                  {kind::number, 1, 1, "-5"},
                                  {kind::number, 1, 1, "0"}};
    redis_reply r{nodes};
    (void)decode(command::take{"key", quotas, 1, {}}, r);
    return r.complete();
  };
  BOOST_TEST(take(3));
  for (auto const now : {std::int64_t{-1}, -most - 1, most}) BOOST_TEST(!take(now), now);

  // A job, of which these are when its deadline began, and how long that is.
  auto const find = [](std::int64_t now, std::int64_t from, std::int64_t deadline) {
    std::string job;
    auto const number = [&](int bytes, std::int64_t n) {
      while (bytes != 0) job += static_cast<char>(n >> 8 * --bytes & 255);
    };
    number(4, 0);  // attempts
    number(8, 1);  // vesting
    number(8, 1);
    number(8, 0);  // fence
    number(2, 0);  // holder
    number(1, 0);  // priority
    number(1, 0);  // ended
    number(1, 0);  // extras
    number(4, 1);  // max_attempts
    number(8, from);
    number(8, deadline);
    number(2, 0);  // key
    number(1, 0);  // strategy
    number(1, 0);  // policy
    number(4, 0);  // snoozes
    number(8, 1);  // enqueued
    number(8, 0);  // retention
    number(8, 0);  // death
    number(2, 4);
    job += "kind";
    std::vector<node> const nodes{{kind::array, 3, 0, ""},
                                  {kind::number, 1, 1, std::to_string(now)},
                                  {kind::number, 1, 1, "1"},
                                  {kind::array, 2, 1, ""},
                                  {kind::blob_string, 1, 2, std::string(16, 'i')},
                                  {kind::blob_string, 1, 2, job}};
    redis_reply r{nodes};
    auto const out = decode(command::find_job{"q", {}}, r);
    bool const counted = out.has_value() && out->has_value() && (*out)->deadline_in.has_value();
    BOOST_TEST(r.complete() == counted);
    return counted;
  };
  BOOST_TEST(find(1, 2, 3));
  BOOST_TEST(!find(1, most, 3));
  BOOST_TEST(!find(1, 2, most));
  BOOST_TEST(!find(1, -most, -most));
  BOOST_TEST(!find(-most, 2, 3));
}

BOOST_AUTO_TEST_CASE(F70_what_another_server_may_do_is_told_from_what_none_does) {
  for (std::string_view const text :
       {"READONLY You can't write against a read only replica.",
        "ERR Error running script: @user_script:5: -READONLY You can't write",
        "MISCONF Redis is configured to save RDB snapshots", "LOADING Redis is loading the dataset",
        "MASTERDOWN Link with MASTER is down"}) {
    BOOST_TEST(detail::redis_refusal_moves(text), text);
  }
  for (std::string_view const text :
       {"OOM command not allowed", "BUSY Redis is busy", "NOPERM this user", "ERR something",
        "NOREPLICAS Not enough good replicas", "WRONGTYPE Operation"}) {
    BOOST_TEST(!detail::redis_refusal_moves(text), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
