// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_QUESTION_HPP
#define WEIR_STORE_REDIS_QUESTION_HPP

#include "weir/store/redis/resp.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::detail {

/// A question of a link, and the answer.
class redis_question final : public redis_receiver {
 public:
  /// @param most bytes of the answer
  explicit redis_question(std::size_t most = std::size_t{32} << 10U) : most_{most} {}

  redis_wire wire;

  /// The last reply, or the first that is an error. Empty: there is none yet.
  [[nodiscard]] std::vector<redis_value> const& answer() const noexcept { return answer_; }
  /// The text of the refusal; empty if there is none.
  [[nodiscard]] std::string_view refusal() const noexcept {
    return is_refused() ? std::string_view{answer_.front().value} : std::string_view{};
  }
  [[nodiscard]] bool is_refused() const noexcept {
    return !answer_.empty() && answer_.front().is_error();
  }

  [[nodiscard]] redis_bounds bounds() const noexcept override { return redis_bounds::of(most_); }
  void reply(std::span<redis_value const> nodes) override {
    if (!is_refused()) answer_.assign(nodes.begin(), nodes.end());
  }

 private:
  std::size_t most_;
  std::vector<redis_value> answer_;
};

/// The maxmemory-policy in what INFO answered, where it is not noeviction. Empty: it is, or the
/// server may not be asked.
[[nodiscard]] inline std::string_view redis_policy_in(std::string_view info) noexcept {
  constexpr std::string_view name = "maxmemory_policy:";
  auto const at = info.find(name);
  if (at == info.npos) return {};
  info.remove_prefix(at + name.size());
  auto const policy = info.substr(0, info.find_first_of("\r\n"));
  return policy == "noeviction" ? std::string_view{} : policy;
}

/// What is to be said about a maxmemory-policy that is not noeviction.
[[nodiscard]] inline std::string redis_eviction_warning(std::string_view policy) {
  // Whatever a server says may end on a terminal: only a word is repeated.
  constexpr std::size_t longest = 32;
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz-";
  bool const word = policy.size() <= longest && policy.find_first_not_of(letters) == policy.npos;
  return "the server's maxmemory-policy is " + (word ? std::string{policy} + " and " : "") +
         "not noeviction: it may forget leases, buckets and jobs when memory is short";
}

}  // namespace weir::detail

#endif
