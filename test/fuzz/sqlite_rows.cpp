// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the SQLite store reads back: quotas in their stored form, and rows of jobs in which somebody
// has changed things. They are read as they are, or refused as corrupt.

#include "input.hpp"
#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/store/sqlite/buckets.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/job_rows.hpp"
#include "weir/store/sqlite/schema.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace detail = weir::detail;

/// Does `f` do what it is asked for, instead of finding what it reads corrupt?
template <class F>
bool accepted(F f) {
  try {
    f();
    return true;
  } catch (detail::sqlite_failure const& e) {
    fuzz::require(detail::to_error(e) == weir::errc::store_corrupt, "corrupt is what it is called");
    return false;
  }
}

void check_quotas(fuzz::input in) {
  (void)accepted([&] { (void)detail::stored_quotas::scales(fuzz::input{in}.rest()); });

  std::vector<weir::quota> quotas;
  for (auto left = 1 + in.below(4); left != 0; --left) {
    auto const tokens = in.number();
    auto const period = in.span();
    quotas.push_back(weir::quota::per(tokens, period).burst(in.number()));
  }
  bool sensible = true;
  for (auto const& q : quotas) {
    sensible = sensible && q.tokens() != 0 && q.capacity() != 0 && q.period() > weir::duration{};
  }
  if (!sensible || !weir::rule::bucket_scales::of(quotas)) return;  // never stored
  detail::stored_quotas const stored{quotas};
  std::string const copy{stored.bytes()};
  fuzz::require(accepted([&] { (void)detail::stored_quotas::scales(copy); }),
                "what was stored can be read");
}

/// A database in memory with the store's tables.
detail::sqlite_connection& tables() {
  static detail::sqlite_connection db{":memory:"};
  static bool const made = [] {
    auto const found = detail::identify(db, false);
    detail::migrate(db, found.value(), 1, weir::time_point{});
    db.run("PRAGMA ignore_check_constraints = ON");
    return true;
  }();
  (void)made;
  return db;
}

void check_jobs(fuzz::input in) {
  auto& db = tables();
  detail::sqlite_job_rows rows{db};
  weir::time_point const now{in.span()};
  weir::new_job job;
  job.id.data[15] = 1;
  job.kind = "kind";
  job.delay = weir::duration{1};
  auto const payload = in.text();
  std::string const large(600, 'p');
  job.payload = in.flag() ? payload : std::string_view{large};
  fuzz::require(rows.insert(7, job, now), "a job is inserted");
  {
    auto read = rows.read_whole(7, job.id);
    fuzz::require(read && read->payload() == job.payload && read->kind() == job.kind,
                  "and read again");
  }

  // Numbers where numbers may stand; STRICT tables let nothing else in.
  constexpr std::array names{"priority", "vesting",   "kept",     "state",         "attempts",
                             "snoozes",  "fence",     "strategy", "policy",        "enqueued",
                             "deadline", "retention", "body",     "deadline_from", "unclaimed"};
  for (auto left = in.below(4); left != 0; --left) {
    std::string const name = names[in.below(names.size())];
    auto const text = "UPDATE OR IGNORE weir_jobs SET " + name + " = " +
                      std::to_string(static_cast<std::int64_t>(in.number())) + " WHERE queue = 7";
    db.run(text.c_str());
  }
  if (in.flag()) db.run("UPDATE weir_jobs SET holder = x'61' WHERE queue = 7");
  (void)accepted([&] {
    auto read = rows.read_whole(7, job.id);
    if (!read) return;
    auto const seen = weir::rule::describe(*read, now);
    fuzz::require(seen.id == job.id &&
                      (seen.state == weir::job_state::leased || seen.holder.empty()),
                  "only a leased job has a holder");
  });
  db.run("DELETE FROM weir_jobs");
  db.run("DELETE FROM weir_payloads");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  check_quotas(fuzz::input{data, size});
  check_jobs(fuzz::input{data, size});
  return 0;
}
