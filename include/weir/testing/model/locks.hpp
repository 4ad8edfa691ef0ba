// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_MODEL_LOCKS_HPP
#define WEIR_TESTING_MODEL_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/rule/locks.hpp"
#include "weir/rule/validate.hpp"
#include "weir/time.hpp"

#include <concepts>
#include <cstdint>
#include <map>
#include <string>

namespace weir::testing {

/// What a lock store has to answer: the rule, with a map of keys.
class lock_model {
 public:
  template <class C>
  result<typename C::result> execute(C const& c, time_point now) {
    if (auto const ec = rule::validate(c)) return ec;
    auto& key = keys_[std::string{c.key}];
    if constexpr (std::same_as<C, command::acquire_lock>) {
      return rule::apply(key.lock, c, now, key.last_fence);
    } else {
      return rule::apply(key.lock, c, now);
    }
  }

 private:
  struct state {
    rule::lock_state lock;
    std::uint64_t last_fence = 0;
  };
  std::map<std::string, state> keys_;
};

}  // namespace weir::testing

#endif
