// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_QUESTION_HPP
#define WEIR_STORE_REDIS_QUESTION_HPP

#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::detail {

/// What a link asks for itself.
struct redis_question {
  boost::redis::request wire;
  boost::redis::generic_response response;
};

/// What is to be said about the answer to CONFIG GET maxmemory-policy. Empty: nothing, such as
/// where the server may not be asked.
[[nodiscard]] inline std::string redis_eviction_warning(
    boost::redis::generic_response const& answer) {
  // A map with the one entry; its value comes last.
  if (!answer.has_value() || answer.value().empty()) return {};
  auto const& policy = answer.value().back().value;
  if (policy == "noeviction") return {};
  // Whatever a server says may end on a terminal: only a word is repeated.
  constexpr std::size_t longest = 32;
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz-";
  bool const word = policy.size() <= longest && policy.find_first_not_of(letters) == policy.npos;
  return "the server's maxmemory-policy is " + (word ? policy + " and " : std::string{}) +
         "not noeviction: it may forget leases, buckets and jobs when memory is short";
}

/// Calls `f` with each message that was published.
template <class Nodes, class F>
void redis_messages(Nodes const& nodes, F f) {
  // A push is "message", the channel, and what was published.
  constexpr std::size_t length = 4;
  for (std::size_t i = 0; i + length <= nodes.size(); i += nodes[i].aggregate_size + 1) {
    if (nodes[i + 1].value == "message") f(nodes[i + 3].value);
  }
}

}  // namespace weir::detail

#endif
