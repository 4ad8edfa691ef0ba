// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// What the PostgreSQL store reads of a server's answers: whatever they are, they are read as they
// are, or refused as corrupt.

#include "input.hpp"
#include "weir/command/jobs.hpp"
#include "weir/quota.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/store/postgres/socket.hpp"
#include "weir/store/postgres/step.hpp"

#include <libpq-fe.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

namespace detail = weir::detail;
namespace command = weir::command;

/// An answer of so many rows and columns, of fields of any length, and of none.
detail::postgres_result answer_from(fuzz::input& in) {
  constexpr int most_columns = 22;
  constexpr int most_rows = 3;
  detail::postgres_result r{PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK)};
  auto const columns = in.flag() ? most_columns : static_cast<int>(in.below(most_columns + 1));
  std::array<PGresAttDesc, most_columns> described{};
  std::array<char, 2> name{'c', '\0'};
  for (auto& d : described) {
    d.name = name.data();
    d.format = 1;
  }
  PQsetResultAttrs(r.get(), columns, described.data());
  for (int row = 0, rows = static_cast<int>(in.below(most_rows + 1)); row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      constexpr std::array lengths{8, 8, 8, 4, 2, 1, 16, -1};
      auto const length = lengths[in.below(lengths.size())];
      std::string value(static_cast<std::size_t>(length < 0 ? 0 : length), '\0');
      bool const small = in.flag();
      for (auto& c : value) c = small ? '\0' : static_cast<char>(in.below(256));
      if (small && !value.empty()) value.back() = static_cast<char>(in.below(6));
      PQsetvalue(r.get(), row, column, length < 0 ? nullptr : value.data(), length);
    }
  }
  return r;
}

template <class C>
void read(C const& c, PGresult const* r) {
  auto const answer = detail::read_answer<C>(detail::postgres_note<C>{c}, detail::postgres_rows{r});
  if (answer.has_value()) return;
  auto const ec = answer.error();
  fuzz::require(ec == weir::errc::store_corrupt || ec == weir::errc::lease_lost,
                "an answer is read, or refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::input in{data, size};
  auto const r = answer_from(in);
  weir::quota const quotas[] = {weir::quota::per_second(10), weir::quota::per_day(7)};
  read(command::take{.key = "k", .quotas = quotas}, r.get());
  read(command::peek_bucket{.key = "k", .quotas = quotas}, r.get());
  read(command::refund{.key = "k", .quotas = quotas, .cost = 3}, r.get());
  read(command::reap_buckets{}, r.get());
  read(command::acquire_permit{}, r.get());
  read(command::release_permit{}, r.get());
  read(command::inspect_permits{}, r.get());
  read(command::acquire_lock{}, r.get());
  read(command::renew_lock{}, r.get());
  read(command::inspect_lock{}, r.get());
  read(command::enqueue_jobs{}, r.get());
  read(command::peek_jobs{}, r.get());
  read(command::dequeue_jobs{}, r.get());
  read(command::obtain_lease{}, r.get());
  read(command::start_job{}, r.get());
  read(command::complete_jobs{}, r.get());
  read(command::requeue_job{}, r.get());
  read(command::cancel_job{}, r.get());
  read(command::find_job{}, r.get());
  read(command::list_dead_letters{{}, 1, {}}, r.get());
  read(command::list_jobs{}, r.get());
  read(command::relay_job{}, r.get());
  read(command::scan_visible_queues{}, r.get());
  read(command::read_queue_stats{}, r.get());
  read(command::list_queues{0, 1, {}}, r.get());
  return 0;
}
