// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_STEP_HPP
#define WEIR_STORE_POSTGRES_STEP_HPP

#include "weir/command/jobs.hpp"
#include "weir/error.hpp"
#include "weir/rule/validate.hpp"
#include "weir/store/postgres/buckets.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/jobs.hpp"
#include "weir/store/postgres/leases.hpp"
#include "weir/store/postgres/queues.hpp"
#include "weir/store/postgres/rows.hpp"

#include <new>

namespace weir::detail {

/// The four nouns side by side.
struct postgres_nouns : postgres_leases, postgres_buckets, postgres_jobs, postgres_queues {
  using postgres_buckets::answer;
  using postgres_buckets::call;
  using postgres_jobs::answer;
  using postgres_jobs::call;
  using postgres_leases::answer;
  using postgres_leases::call;
  using postgres_queues::answer;
  using postgres_queues::call;
};

/// What is wrong with a command, before any I/O.
template <class C>
[[nodiscard]] error_code refusal(C const& c, postgres_scope const& in) {
  if (auto const ec = rule::validate(c)) return ec;
  if (!postgres_buckets::can(c)) return errc::quota_too_large;
  if constexpr (requires { c.shard; }) {
    if (c.shard >= in.shards) return errc::invalid_shard;
  }
  if constexpr (requires { postgres_jobs::cursor(c); }) {
    if (!postgres_jobs::cursor(c)) return errc::invalid_option;
  }
  if constexpr (requires { c.to; }) {
    if (!c.to.empty() && postgres_shard(c.to, in) != postgres_shard(c.queue, in)) {
      return errc::invalid_shard;
    }
  }
  return {};
}

/// Reads an answer. Error: `store_corrupt` where it is none.
template <class C>
[[nodiscard]] result<typename C::result> read_answer(postgres_note<C> const& note,
                                                     postgres_rows const& r) {
  try {
    return postgres_nouns::answer(note, r);
  } catch (postgres_malformed const&) {
    return errc::store_corrupt;
  } catch (std::bad_alloc const&) {
    return make_error_code(boost::system::errc::not_enough_memory);
  }
}

}  // namespace weir::detail

#endif
