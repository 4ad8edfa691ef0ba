// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the Redis store reads: connection URLs, and the replies of servers that say whatever they
// like. They are understood as what they are, or refused with a typed error.

#include "input.hpp"
#include "weir/store/redis/address.hpp"
#include "weir/store/redis/buckets.hpp"
#include "weir/store/redis/enqueues.hpp"
#include "weir/store/redis/job_ends.hpp"
#include "weir/store/redis/jobs.hpp"
#include "weir/store/redis/locks.hpp"
#include "weir/store/redis/permits.hpp"
#include "weir/store/redis/queues.hpp"
#include "weir/store/redis/reply.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace command = weir::command;
namespace detail = weir::detail;
using weir::redis_address;

// ------------------------------------------------------------------------------------------ URLs

/// All of it as %XX.
std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (char const raw : text) {
    auto const c = static_cast<unsigned char>(raw);
    out += '%';
    out += digits[c >> 4U];
    out += digits[c & 15U];
  }
  return out;
}

void check_urls(fuzz::input in) {
  auto const any = redis_address::parse(fuzz::input{in}.rest());
  fuzz::require(any.has_value() || any.error() == weir::condition::bad_input,
                "a URL is understood, or is bad input");
  if (any.has_value()) {
    fuzz::require(!any->host().empty() && any->port() != 0, "an address has a host and a port");
  }

  bool const secret = in.flag();
  std::uint16_t const port = std::max<std::uint16_t>(in.bits<std::uint16_t>(), 1);
  auto const database = in.bits<std::uint16_t>();
  std::string const user{in.text()};
  std::string const password{in.text()};
  std::string host{in.text()};
  std::erase_if(host, [](char c) { return c <= ' ' || c >= '\x7f'; });
  if (host.empty()) host = "h";
  std::string url = secret ? "rediss://" : "redis://";
  if (!password.empty()) url += escaped(user) + ':' + escaped(password) + '@';
  url += escaped(host) + ':' + std::to_string(port) + '/' + std::to_string(database);
  auto const read = redis_address::parse(url);
  fuzz::require(read.has_value(), "what is well-formed is understood");
  fuzz::require(read->host() == host && read->port() == port && read->database() == database &&
                    read->uses_tls() == secret,
                "and as what it says");
  fuzz::require(read->password() == password &&
                    (password.empty() || user.empty() || read->user() == user),
                "who it is for, too");
}

// ------------------------------------------------------------------------------------------
// replies

using node = weir::detail::redis_value;
using kind = weir::detail::redis_kind;

node any_node(fuzz::input& in) {
  constexpr std::array kinds{kind::number, kind::blob_string, kind::array,  kind::null,
                             kind::number, kind::blob_string, kind::map,    kind::doublean,
                             kind::push,   kind::boolean,     kind::number, kind::simple_error};
  node out;
  out.data_type = kinds[in.below(kinds.size())];
  out.aggregate_size = in.flag() ? in.below(20) : in.bits<std::uint32_t>();
  out.depth = 1;
  switch (in.below(4)) {
    case 0: out.value = std::to_string(in.number<std::int64_t>()); break;
    case 1: out.value = std::to_string(in.below(6)); break;
    case 2: out.value = std::string(16, static_cast<char>(in.byte())); break;
    default: out.value = in.text(); break;
  }
  return out;
}

/// What a command makes of a reply, whatever that is.
template <class C>
void check_reply(C const& c, std::vector<node> const& nodes) {
  detail::redis_reply r{nodes};
  auto const out = detail::decode(c, r);
  if (out.has_error()) {
    auto const& category = out.error().category();
    fuzz::require(category == weir::error_category(), "an error of weir's");
  }
  if (!nodes.empty()) {
    fuzz::require(!nodes.back().value.empty() || nodes.back().data_type != kind::number ||
                      !r.complete(),
                  "a number has digits");
  }
}

constexpr std::array quotas{weir::quota::per(3, std::chrono::seconds{7}),
                            weir::quota::per_second(1'000'000).burst(5)};

void check_replies(fuzz::input in) {
  auto const which = in.below(28);
  std::vector<node> nodes;
  while (!in.spent() && nodes.size() < 64) nodes.push_back(any_node(in));
  std::array const finished{weir::finished_job{}, weir::finished_job{}};
  std::array const jobs{weir::new_job{}, weir::new_job{}};
  constexpr weir::duration wait = std::chrono::milliseconds{1};
  switch (which) {
    case 0: return check_reply(command::acquire_permit{"k", "h", 1, wait, wait}, nodes);
    case 1: return check_reply(command::renew_permit{"k", "h", 1, wait}, nodes);
    case 2: return check_reply(command::release_permit{"k", "h", 1}, nodes);
    case 3: return check_reply(command::inspect_permits{"k", 3}, nodes);
    case 4: return check_reply(command::acquire_lock{"k", "h", wait}, nodes);
    case 5: return check_reply(command::renew_lock{"k", "h", 1, wait}, nodes);
    case 6: return check_reply(command::release_lock{"k", "h", 1}, nodes);
    case 7: return check_reply(command::inspect_lock{"k"}, nodes);
    case 8: return check_reply(command::take{"k", quotas, 2, wait}, nodes);
    case 9: return check_reply(command::peek_bucket{"k", quotas, 2, wait}, nodes);
    case 10: return check_reply(command::refund{"k", quotas, 2, {}, false}, nodes);
    case 11: return check_reply(command::reset_bucket{"k"}, nodes);
    case 12: return check_reply(command::enqueue_jobs{"q", jobs}, nodes);
    case 13: return check_reply(command::peek_jobs{"q", 3}, nodes);
    case 14: return check_reply(command::dequeue_jobs{"q", "h", 1, 3, wait}, nodes);
    case 15: return check_reply(command::obtain_lease{"q", {}, "h", wait}, nodes);
    case 16: return check_reply(command::start_job{"q", {}, 1}, nodes);
    case 17: return check_reply(command::complete_jobs{"q", finished}, nodes);
    case 18: return check_reply(command::requeue_job{"q", {}, 1, wait, {}}, nodes);
    case 19: return check_reply(command::cancel_job{"q", {}, false}, nodes);
    case 20: return check_reply(command::find_job{"q", {}}, nodes);
    case 21: return check_reply(command::read_queue_stats{"q"}, nodes);
    case 22: return check_reply(command::list_dead_letters{"q", 3, {}}, nodes);
    case 23: return check_reply(command::list_queues{0, 3, {}}, nodes);
    case 24: return check_reply(command::scan_visible_queues{0, 3, 1}, nodes);
    case 25: return check_reply(command::list_jobs{"q", weir::job_state::dead, 3, {}}, nodes);
    case 26:
      return check_reply(
          command::relay_job{
              .queue = "q", .id = {}, .fence = 1, .next = jobs, .to = "r", .jobs = jobs},
          nodes);
    default: return check_reply(command::min_vesting_time{"q"}, nodes);
  }
}

// ------------------------------------------------------------------------------------------ names

/// The first braces are the shard's, and nothing that differs is called the same (F27).
void check_names(fuzz::input in) {
  detail::redis_names const names{"weir", 7};
  std::string const a{in.text()};
  std::string const b{in.text()};
  constexpr std::array<std::string_view, 3> kinds{"q", "pe", "l"};
  auto const first = kinds[in.below(kinds.size())];
  auto const second = kinds[in.below(kinds.size())];
  auto const shard = names.shard_of(a);
  fuzz::require(shard < 7, "a shard that there is");
  auto const one = names.key(shard, first, a);
  auto const two = names.key(shard, second, b);
  fuzz::require((one == two) == (a == b && first == second), "two keys never share a name");
  auto const tag = one.substr(one.find('{') + 1, one.find('}') - one.find('{') - 1);
  fuzz::require(tag == "weir:" + std::to_string(shard), "the tag is the shard's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::require(detail::redis_refusal(fuzz::text_of(data, size)).failed(),
                "a refusal is an error, whatever it says");
  check_urls(fuzz::input{data, size});
  check_replies(fuzz::input{data, size});
  check_names(fuzz::input{data, size});
  return 0;
}
