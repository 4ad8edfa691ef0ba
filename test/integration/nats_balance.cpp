// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Processes own about as many parts each, as they come and go, and nobody notices when a part gets
// another owner.

#include "nats_job_steps.hpp"
#include "nats_server.hpp"
#include "nats_together.hpp"
#include "patience.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/nats/balance.hpp"
#include "weir/store/nats/wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace nats_test;
using detail::nats_claims;
using detail::nats_key_parts;
using network_test::lasting;
using weir_test::happens;

constexpr std::uint32_t shards = nats_key_parts;  // so that a name is in one part as in one shard

nats_options spreading() {
  auto o = owning();
  o.health_check_interval = 300ms;
  o.shards = shards;
  return o;
}

/// A name for each part of the keys, and for each shard.
std::vector<std::string> one_in_each() {
  std::map<std::uint32_t, std::string> found;
  for (int i = 0; found.size() != shards; ++i) {
    auto const name = "name " + std::to_string(i);
    found.emplace(rule::shard_of(name, shards), name);
  }
  std::vector<std::string> out;
  for (auto const& [shard, name] : found) out.push_back(name);
  return out;
}

/// Commands on all parts, by several stores at once. None of them may fail.
class work {
 public:
  explicit work(together& all) : all_{&all} {}

  void round(std::vector<nats_store> const& stores) {
    std::size_t open = 0;
    auto const start = [&](nats_store const& on, auto const& c, auto then) {
      ++open;
      on.async_execute(c, [&open, then](error_code ec, auto answer) {
        --open;
        BOOST_TEST(!ec, ec.message());
        if (!ec) then(answer);
      });
    };
    auto const all_answered = [&] {
      BOOST_TEST_REQUIRE(happens(all_->io, [&] { return open == 0; }));
    };
    struct permit {
      std::string key;
      std::string holder;
      std::uint64_t fence;
    };
    std::vector<permit> permits;
    for (auto const& on : stores) {
      for (auto const& name : names_) {
        auto const j = job_of(++jobs_);
        start(on, command::enqueue_jobs{name, {&j, 1}}, [](auto const&) {});
        auto holder = std::to_string(jobs_);
        start(on, command::acquire_permit{name, holder, 1000, lasting, {}},
              [&, name, holder](permit_grant const& g) {
                BOOST_TEST(g.granted);
                BOOST_TEST(fences_[name].insert(g.fence).second);
                permits.push_back({name, holder, g.fence});
              });
      }
    }
    all_answered();
    std::vector<std::pair<std::string, leased_job>> leased;
    for (std::size_t i = 0; i != names_.size(); ++i) {
      start(stores[i % stores.size()],
            command::dequeue_jobs{names_[i], "me", ++dequeues_, 100, lasting},
            [&, i](dequeued const& d) {
              for (auto const& j : d.jobs) leased.emplace_back(names_[i], j);
            });
    }
    for (auto const& p : permits) {
      start(stores[p.fence % stores.size()], command::release_permit{p.key, p.holder, p.fence},
            [](auto const& r) { BOOST_TEST(r.freed); });
    }
    all_answered();
    for (auto const& [queue, j] : leased) {
      finished_job const f{j.id, j.fence, {}};
      start(stores[completed_++ % stores.size()], command::complete_jobs{queue, {&f, 1}},
            [](auto const& r) { BOOST_TEST((r.front() == complete_outcome::completed)); });
    }
    all_answered();
  }

  /// All that was enqueued was completed, and once.
  void check(nats_store const& on) {
    std::uint64_t completed = 0;
    for (auto const& name : names_) {
      auto const stats = ask(all_->io, on, command::read_queue_stats{name}).value();
      BOOST_TEST(stats.pending + stats.leased == 0U);
      completed += stats.completed;
      BOOST_TEST(ask(all_->io, on, command::inspect_permits{name, 0}).value().in_use == 0U);
    }
    BOOST_TEST(completed == jobs_);
    BOOST_TEST(completed_ == jobs_);
  }

 private:
  together* all_;
  std::vector<std::string> const names_ = one_in_each();
  std::map<std::string, std::set<std::uint64_t>> fences_{};
  std::uint64_t jobs_ = 0;
  std::uint64_t dequeues_ = 0;
  std::uint64_t completed_ = 0;
};

/// How many parts of a kind each process owns.
std::map<std::string, std::uint32_t> owners(stranger& who, std::uint32_t first,
                                            std::uint32_t count) {
  std::map<std::string, std::uint32_t> out;
  for (auto part = first; part != first + count; ++part) {
    ++out[std::string{nats_claims::process_of(owner_of(who, part))}];
  }
  return out;
}
/// Do so many own about as many parts each, of both kinds?
bool are_even(stranger& who, std::size_t processes) {
  for (auto const first : {std::uint32_t{0}, nats_key_parts}) {
    auto const all = owners(who, first, shards);
    auto const [least, most] =
        std::ranges::minmax_element(all, {}, [](auto const& owner) { return owner.second; });
    if (all.size() != processes || all.contains("") || most->second - least->second > 1) {
      return false;
    }
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_balance)

BOOST_AUTO_TEST_CASE(F67_parts_are_spread_over_processes_as_they_come_and_go) {
  server s;
  together all{s};
  auto const first = all.add(spreading());
  work w{all};
  w.round({first});
  stranger who{s};
  BOOST_TEST(are_even(who, 1));

  auto const second = all.add(spreading());
  nats_store const third{all.io.get_executor(), s.address(), spreading()};
  bool ended = false;
  third.async_run([&](error_code) { ended = true; });
  BOOST_TEST(happens([&] {
    w.round({first, second, third});
    return are_even(who, 3);
  }));
  w.check(second);

  third.close();
  BOOST_TEST(happens(all.io, [&] { return ended; }));
  w.check(first);  // what only reads is asked again, so its parts have owners
  BOOST_TEST(happens([&] {
    w.round({first, second});
    return are_even(who, 2);
  }));
  w.check(second);
}

BOOST_AUTO_TEST_CASE(who_is_not_to_own_takes_nothing) {
  server s;
  together all{s};
  auto const first = all.add(spreading());
  work w{all};
  w.round({first});
  auto o = spreading();
  o.owner = false;
  o.health_check_interval = 100ms;  // it would be faster
  auto const asker = all.add(o);
  w.round({first, asker});
  auto const second = all.add(spreading());
  stranger who{s};
  BOOST_TEST(happens([&] {
    w.round({first, asker, second});
    return are_even(who, 2);
  }));
}

// As example/nats_owner.cpp: it gives no command, and those who ask own nothing.
BOOST_AUTO_TEST_CASE(who_owns_for_others_owns_what_it_does_not_use) {
  server s;
  stranger who{s};
  together all{s};
  auto o = spreading();
  o.owns_unused = true;
  auto const first = all.add(o);
  auto const owned = [&] {
    std::set<std::string> owners;
    for (std::uint32_t part = 0; part != nats_key_parts + shards; ++part) {
      owners.emplace(nats_claims::process_of(owner_of(who, part)));
    }
    return owners;
  };
  BOOST_TEST_REQUIRE(happens(all.io, [&] { return owned().size() == 1 && !owned().contains(""); }));
  auto const before = owned();
  auto asks = spreading();
  asks.owner = false;
  asks.owns_unused = true;  // means nothing
  auto const asker = all.add(asks);
  work w{all};
  w.round({asker});
  BOOST_TEST(owned() == before);

  // Another one takes its place, though it asks nothing.
  (void)all.add(o);
  first.close();
  BOOST_TEST(happens(all.io, [&] {
    auto const now = owned();
    return now.size() == 1 && !now.contains("") && now != before;
  }));
  w.round({asker});
}

BOOST_AUTO_TEST_CASE(R7_who_owns_for_others_lets_the_context_end_when_it_is_closed) {
  server s;
  auto o = owning();
  o.owns_unused = true;
  o.health_check_interval = 1min;  // it looks after other owners each two minutes or less often
  boost::asio::io_context io;
  nats_store const owner{io.get_executor(), s.address(), o};
  nats_store const other{io.get_executor(), s.address(), o};
  for (auto const& store : {owner, other}) {
    store.async_run([](error_code) {});
    BOOST_TEST(nats_test::ask(io, store, command::inspect_lock{"key"}).has_value());
  }
  for (auto const& store : {owner, other}) store.close();
  io.restart();
  io.run_for(weir_test::patience);
  BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(what_was_taken_and_lost_is_not_taken_again_at_once) {
  server s;
  together all{s};
  via one{all, all.add(spreading())};
  BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
  stranger who{s};
  std::string const strange = "00000000-0000-0000-0000-000000000000-";
  auto const claim_all = [&](std::string const& claim) {
    for (std::uint32_t part = 0; part != nats_key_parts; ++part) {
      who.publish(names.owner(part), "weir:o1 " + claim);
      who.publish(names.owner_hint(part, claim), "");
    }
  };
  auto const taken = [&] {
    std::uint32_t out = 0;
    for (auto const& [process, parts] : owners(who, 0, nats_key_parts)) {
      if (!strange.starts_with(process)) out += parts;
    }
    return out;
  };
  stranger ear{s};
  std::ptrdiff_t reads = 0;
  auto const count_reads = [&] {
    auto const heard = ear.heard();
    constexpr std::string_view read = "MSG $JS.API.DIRECT";
    for (auto at = heard.find(read); at != heard.npos; at = heard.find(read, at + 1)) ++reads;
  };
  claim_all(strange + "1");
  BOOST_TEST_REQUIRE(happens(all.io, [&] { return taken() != 0; }));
  // That it is taken back for balance is no reason to wait.
  ear.overhear_one("$JS.API.DIRECT.GET.weir-keys.weir.k.owner.>");
  claim_all(strange + "2b");
  BOOST_TEST_REQUIRE(happens(all.io, [&] {
    count_reads();
    return taken() != 0;
  }));
  BOOST_TEST(reads < 12);
  // Others could not hear this process.
  claim_all(strange + "3");
  reads = 0;
  BOOST_TEST(happens(all.io, [&] {
    count_reads();
    return reads >= 12;  // some of which are of parts that it has lost
  }));
  BOOST_TEST(taken() == 0U);
}

BOOST_AUTO_TEST_CASE(a_shard_is_read_before_it_is_taken) {
  server s;
  together all{s};
  auto o = spreading();
  o.shards = 2;
  via one{all, all.add(o)};
  BOOST_TEST(one(command::inspect_lock{"elsewhere"}).has_value());  // there is a stream
  stranger who{s};
  for (auto const shard : {0U, 1U}) {
    who.publish(names.owner(nats_key_parts + shard), "weir:o1 strange");
  }
  who.overhear();
  std::string heard;
  std::optional<std::uint32_t> taken;
  BOOST_TEST_REQUIRE(happens(all.io, [&] {
    heard += who.heard();
    for (auto const shard : {0U, 1U}) {
      if (heard.find("MSG " + names.owner(nats_key_parts + shard) + " ") != heard.npos) {
        taken = shard;
      }
    }
    return taken.has_value();
  }));
  auto const read = heard.find("MSG $JS.API.STREAM.INFO." + names.log_stream(*taken) + " ");
  BOOST_TEST(read < heard.find("MSG " + names.owner(nats_key_parts + *taken) + " "));
}

BOOST_AUTO_TEST_CASE(a_former_owner_looks_at_once_and_says_that_it_is_none) {
  server s;
  together all{s};
  auto o = owning();
  o.health_check_interval = 1min;  // it does not look by itself
  via owner{all, all.add(o)};
  BOOST_TEST(owner(command::inspect_lock{"key"}).has_value());
  stranger who{s};
  auto const subject = names.questions(owner_of(who, "key"));
  std::string question;
  detail::nats_begin_question(question, 1);
  auto const answered = [&](detail::nats_piece what) {
    who.request(subject, question);
    std::string heard;
    return happens(all.io,
                   [&] {
                     heard += who.heard();
                     return heard.find("weir:a") != heard.npos;
                   }) &&
           heard.find(detail::nats_answer_piece(what, 0)) != heard.npos;
  };
  who.overhear_one("weir.r.me.1");
  BOOST_TEST(answered(detail::nats_piece::alive));
  who.publish(names.owner(part_of("key")), "weir:o1 strange");
  who.publish(names.owner_hint(part_of("key"), "strange"), "");
  bool told = false;
  BOOST_TEST(happens([&] { return told = told || answered(detail::nats_piece::moved); }));
}

BOOST_AUTO_TEST_CASE(F84_who_looks_for_balance_asks_less_than_for_the_time) {
  server s;
  together all{s};
  auto o = owning();
  o.health_check_interval = 100ms;
  via one{all, all.add(o)};
  BOOST_TEST(one(command::inspect_lock{"key"}).has_value());
  stranger who{s};
  who.overhear_one("$JS.API.>");
  int reads = 0;
  int beats = 0;
  BOOST_TEST_REQUIRE(happens(all.io, [&] {
    std::string const heard = who.heard();
    auto const count = [&](std::string_view what) {
      int out = 0;
      for (auto at = heard.find(what); at != heard.npos; at = heard.find(what, at + 1)) ++out;
      return out;
    };
    reads += count("MSG $JS.API.DIRECT.GET.weir-keys.weir.k.owner.");
    beats += count("MSG $JS.API.STREAM.INFO.weir-keys ");
    return beats >= 60;
  }));
  BOOST_TEST(reads != 0);
  BOOST_TEST(2 * reads <= beats);
}

BOOST_AUTO_TEST_SUITE_END()
