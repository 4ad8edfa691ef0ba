// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_ROWS_HPP
#define WEIR_STORE_SQLITE_JOB_ROWS_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/limits.hpp"
#include "weir/rule/job_fields.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/time.hpp"
#include "weir/unique.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

namespace sql {

// In both, behind `body`: is what is not read as it has to be? A strict table takes no other types
// back.
inline constexpr char read_job[] =
    "SELECT priority, vesting, kept, state, attempts, max_attempts, snoozes, fence, holder, "
    "unclaimed, strategy, policy, enqueued, deadline_from, deadline, retention, unique_key, body, "
    "(state = 3) = (typeof(death) = 'integer') AND (state = 3 OR death IS NULL) "
    "AND typeof(sequence) = 'integer' AND typeof(kind) = 'blob' AND typeof(memo) = 'blob' "
    "AND typeof(reason) = 'blob' AND typeof(result) = 'blob' AND typeof(payload) = 'blob' "
    "AND typeof(headers) = 'blob' AND typeof(progress) = 'blob' AND typeof(checkpoint) = 'blob' "
    "FROM weir_jobs WHERE queue = ? AND id = ?";
inline constexpr char read_whole_job[] =
    "SELECT priority, vesting, kept, state, attempts, max_attempts, snoozes, fence, holder, "
    "unclaimed, strategy, policy, enqueued, deadline_from, deadline, retention, unique_key, body, "
    "(state = 3) = (typeof(death) = 'integer') AND (state = 3 OR death IS NULL) "
    "AND typeof(sequence) = 'integer' AND typeof(payload) = 'blob', kind, memo, reason, result, "
    "headers, progress, checkpoint, "
    "CASE WHEN body IS NULL THEN payload ELSE "
    "(SELECT p.payload FROM weir_payloads p WHERE p.body = weir_jobs.body) END "
    "FROM weir_jobs WHERE queue = ? AND id = ?";
inline constexpr char insert_job[] =
    "INSERT INTO weir_jobs (queue, id, priority, vesting, state, attempts, max_attempts, snoozes, "
    "fence, sequence, unclaimed, strategy, policy, enqueued, deadline_from, deadline, retention, "
    "unique_key, body, kind, memo, reason, result, payload, headers) VALUES "
    "(?, ?, ?, ?, 0, 0, ?, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'', x'', x'', ?, ?) "
    "ON CONFLICT DO NOTHING";
inline constexpr char update_job[] =
    "UPDATE weir_jobs SET priority = ?, vesting = ?, death = ?, kept = ?, state = ?, attempts = ?, "
    "snoozes = ?, fence = ?, holder = ?, sequence = ?, unclaimed = ?, deadline_from = ?, "
    "memo = coalesce(?, memo), reason = coalesce(?, reason), result = coalesce(?, result) "
    "WHERE queue = ? AND id = ?";
inline constexpr char claim_job[] =
    "UPDATE weir_jobs SET vesting = ?, attempts = ?, fence = ?, holder = ?, sequence = ?, "
    "unclaimed = ? WHERE queue = ? AND id = ?";
inline constexpr char extend_job[] = "UPDATE weir_jobs SET vesting = ? WHERE queue = ? AND id = ?";
inline constexpr char extend_job_noted[] =
    "UPDATE weir_jobs SET vesting = ?, progress = coalesce(?, progress), "
    "checkpoint = coalesce(?, checkpoint) WHERE queue = ? AND id = ?";
inline constexpr char delete_leased_job[] =
    "DELETE FROM weir_jobs WHERE queue = ? AND id = ? AND fence = ? AND vesting > ? "
    "AND holder IS NOT NULL AND state = 0 AND strategy = 0 AND retention = 0 AND body IS NULL "
    "AND priority BETWEEN 0 AND 255";
inline constexpr char delete_job[] = "DELETE FROM weir_jobs WHERE queue IS ? AND id IS ?";
inline constexpr char read_remains[] =
    "SELECT id, unique_key, body, kind FROM weir_jobs WHERE queue = ? AND id IS ?";
inline constexpr char read_payload[] =
    "SELECT CASE WHEN body IS NULL THEN payload ELSE "
    "(SELECT p.payload FROM weir_payloads p WHERE p.body = weir_jobs.body) END "
    "FROM weir_jobs WHERE queue = ? AND id IS ?";
inline constexpr char insert_payload[] = "INSERT INTO weir_payloads (payload) VALUES (?)";
inline constexpr char delete_payload[] = "DELETE FROM weir_payloads WHERE body = ?";

inline constexpr char count_leased[] =
    "SELECT count(*) FROM weir_jobs INDEXED BY weir_jobs_claimed "
    "WHERE queue = ? AND holder IS NOT NULL AND vesting > ?";
inline constexpr char jobs_of_dequeue[] =
    "SELECT id FROM weir_jobs INDEXED BY weir_jobs_claimed "
    "WHERE queue = ? AND holder = ? AND sequence = ? AND vesting > ? ORDER BY fence";
inline constexpr char forget_dequeue[] =
    "UPDATE weir_jobs INDEXED BY weir_jobs_claimed SET sequence = 0 "
    "WHERE queue = ? AND holder = ? AND sequence <> 0";
inline constexpr char remembered_jobs[] =
    "SELECT queue, id FROM weir_jobs INDEXED BY weir_jobs_claimed "
    "WHERE queue = ? AND holder = ? AND sequence <> 0";
inline constexpr char forget_job_dequeue[] =
    "UPDATE weir_jobs SET sequence = 0 WHERE queue IS ? AND id IS ?";
inline constexpr char leased_queues[] =
    "SELECT DISTINCT queue FROM weir_jobs INDEXED BY weir_jobs_claimed "
    "WHERE holder IS NOT NULL AND vesting > ?";
inline constexpr char end_job_leases[] =
    "UPDATE weir_jobs INDEXED BY weir_jobs_claimed "
    "SET vesting = ?1 WHERE holder IS NOT NULL AND vesting > ?1";
inline constexpr char leased_jobs[] =
    "SELECT queue, id FROM weir_jobs INDEXED BY weir_jobs_claimed "
    "WHERE holder IS NOT NULL AND vesting > ?";
inline constexpr char end_job_lease[] =
    "UPDATE weir_jobs SET vesting = ? WHERE queue IS ? AND id IS ?";
inline constexpr char dead_jobs[] = "SELECT death, id FROM weir_jobs INDEXED BY weir_jobs_dead "
                                    "WHERE queue = ? AND death > ? ORDER BY death LIMIT ?";
inline constexpr char jobs_after[] =
    "SELECT id, state, holder IS NOT NULL FROM weir_jobs WHERE queue = ? AND id > ? "
    "ORDER BY id LIMIT ?";
inline constexpr char kept_job[] =
    "SELECT queue, id, body FROM weir_jobs INDEXED BY weir_jobs_kept WHERE kept <= ? "
    "ORDER BY kept LIMIT 1";
inline constexpr char soonest_kept[] =
    "SELECT CAST(kept AS INTEGER) FROM weir_jobs INDEXED BY weir_jobs_kept "
    "WHERE kept >= -9223372036854775807 AND typeof(kept) IN ('integer', 'real') "
    "ORDER BY kept LIMIT 1";

}  // namespace sql

/// A job's row, without the texts that only a reader or a consumer wants.
struct sqlite_job : rule::job_fields<std::optional<std::string>> {
  std::string key;  ///< the unique one
  std::optional<std::int64_t> body;

  // Written only; a reader finds them in `sqlite_whole_job`.
  bool is_new_lease = false;  ///< and nothing else of it is new
  std::uint64_t sequence = 0;
  std::optional<std::string_view> new_memo;
  std::optional<std::string_view> new_reason;
  std::optional<std::string_view> new_result;
  std::optional<std::string_view> new_progress;    // an extension writes these two,
  std::optional<std::string_view> new_checkpoint;  // and nothing else does

  [[nodiscard]] std::string const& unique_key() const noexcept { return key; }
  [[nodiscard]] std::string const& holder_name() const noexcept { return *holder; }
  void note_memo(std::string_view text) noexcept { new_memo = text; }
  void note_reason(std::string_view text) noexcept { new_reason = text; }
  void note_result(std::string_view text) noexcept { new_result = text; }
  /// Each, unless it is empty.
  void note_progress(std::string_view progress, std::string_view checkpoint) noexcept {
    if (!progress.empty()) new_progress = progress;
    if (!checkpoint.empty()) new_checkpoint = checkpoint;
  }
};

/// Each of its texts can be moved to the job that is described from it.
struct sqlite_whole_job : sqlite_job {
  std::array<std::string, 8> texts;

  [[nodiscard]] std::string&& kind() noexcept { return std::move(texts[0]); }
  [[nodiscard]] std::string&& memo() noexcept { return std::move(texts[1]); }
  [[nodiscard]] std::string&& reason() noexcept { return std::move(texts[2]); }
  [[nodiscard]] std::string&& result() noexcept { return std::move(texts[3]); }
  [[nodiscard]] std::string&& headers() noexcept { return std::move(texts[4]); }
  [[nodiscard]] std::string&& progress() noexcept { return std::move(texts[5]); }
  [[nodiscard]] std::string&& checkpoint() noexcept { return std::move(texts[6]); }
  [[nodiscard]] std::string&& payload() noexcept { return std::move(texts[7]); }

  /// Those of the job that is described from it; a consumer does not see all of them.
  [[nodiscard]] std::size_t text_bytes() const noexcept {
    auto all = key.size();
    for (auto const& t : texts) all += t.size();
    return all;
  }
};

/// The readable parts of a record that cannot be read as a whole. Empty: not there, or damaged.
struct sqlite_remains {
  std::optional<job_id> id;
  std::string unique_key;
  std::optional<std::int64_t> body;
  std::string kind;
  std::string payload;  ///< whatever its type was, up to `limits::payload_size`
};

/// The rows of weir_jobs, and of weir_payloads that belong to them.
class sqlite_job_rows {
 public:
  explicit sqlite_job_rows(sqlite_connection& db) noexcept : db_{db} {}

  [[nodiscard]] std::optional<sqlite_job> read(std::int64_t queue, job_id const& id) {
    sqlite_query q{db_, sql::read_job, queue, id};
    if (!q.next()) return std::nullopt;
    std::optional<sqlite_job> out{std::in_place};
    read(q, id, *out);
    return out;
  }

  [[nodiscard]] std::optional<sqlite_whole_job> read_whole(std::int64_t queue, job_id const& id) {
    sqlite_query q{db_, sql::read_whole_job, queue, id};
    if (!q.next()) return std::nullopt;
    std::optional<sqlite_whole_job> out{std::in_place};
    read(q, id, *out);
    out->texts = {q.text(19, 1, limits::key_size),        q.text(20, 0, limits::memo_size),
                  q.text(21, 0, limits::reason_size),     q.text(22, 0, limits::payload_size),
                  q.text(23, 0, limits::headers_size),    q.text(24, 0, limits::progress_size),
                  q.text(25, 0, limits::checkpoint_size), q.text(26, 0, limits::payload_size)};
    return out;
  }

  /// Of the record that the queue has under this id, whatever that is.
  template <class Id>
  [[nodiscard]] sqlite_remains read_remains(std::int64_t queue, Id const& id) {
    sqlite_remains out;
    try {
      sqlite_query q{db_, sql::read_remains, queue, id};
      if (!q.next()) return out;
      auto const text = [&](int column) {
        auto const found = q.anything(column);
        return found.size() > limits::key_size ? std::string{} : std::string{found};
      };
      if (auto const b = q.anything(0); b.size() == sizeof(job_id)) {
        std::memcpy(&out.id.emplace(), b.data(), b.size());
        if (out.id->is_nil()) out.id.reset();
      }
      out.unique_key = text(1);
      if (q.type(2) == SQLITE_INTEGER) out.body = q.integer(2);
      out.kind = text(3);
      sqlite_query payload{db_, sql::read_payload, queue, id};
      if (payload.next()) out.payload = payload.anything(0).substr(0, limits::payload_size);
    } catch (sqlite_damage const&) {  // larger than what is read at all: as far as it was read
    }
    return out;
  }

  /// False: the queue has a record of that id.
  bool insert(std::int64_t queue, new_job const& j, time_point now) {
    // A row is rewritten whenever its lease changes; a large payload stays where it is.
    constexpr std::size_t small = 512;
    bool const apart = j.payload.size() > small;
    std::optional<std::int64_t> body;
    if (apart) {
      sqlite_run(db_, sql::insert_payload, j.payload);
      body = db_.last_rowid();
    }
    sqlite_run(db_, sql::insert_job, queue, j.id, j.priority, saturating_add(now, j.delay),
               j.max_attempts, j.strategy, j.on_conflict, now, now, j.deadline, j.retention,
               j.unique_key, body, j.kind, apart ? std::string_view{} : j.payload, j.headers);
    if (db_.changes() == 1) return true;
    if (body) sqlite_run(db_, sql::delete_payload, *body);
    return false;
  }

  void write(std::int64_t queue, sqlite_job const& r) {
    if (r.is_new_lease) {
      sqlite_run(db_, sql::claim_job, r.vesting, r.attempts, r.fence, r.holder, r.sequence,
                 r.unclaimed_vesting, queue, r.id);
      return;
    }
    std::optional<time_point> vesting;
    std::optional<time_point> kept;
    std::optional<std::uint64_t> death;
    if (!is_terminal(r.ended)) vesting = r.vesting;
    if (r.retained()) kept = r.vesting;
    if (r.ended == job_state::dead) death = r.death;
    sqlite_run(db_, sql::update_job, r.priority, vesting, death, kept, r.ended, r.attempts,
               r.snoozes, r.fence, r.holder, r.sequence, r.unclaimed_vesting, r.deadline_from,
               r.new_memo, r.new_reason, r.new_result, queue, r.id);
  }

  void extend(std::int64_t queue, sqlite_job const& r, time_point vesting) {
    if (!r.new_progress && !r.new_checkpoint) {
      sqlite_run(db_, sql::extend_job, vesting, queue, r.id);
    } else {
      sqlite_run(db_, sql::extend_job_noted, vesting, r.new_progress, r.new_checkpoint, queue,
                 r.id);
    }
  }

  /// Erases a leased job that has neither a key nor a retention. False: it is not that.
  bool erase_leased(std::int64_t queue, finished_job const& f, time_point now) {
    if (f.fence == 0) return false;  // no lease
    sqlite_run(db_, sql::delete_leased_job, queue, f.id, f.fence, now);
    return db_.changes() == 1;
  }

  /// False: there was none.
  template <class Queue, class Id, class Body>
  bool erase(Queue const& queue, Id const& id, Body const& body) {
    sqlite_run(db_, sql::delete_job, queue, id);
    if (db_.changes() == 0) return false;
    if constexpr (requires { body.has_value(); }) {
      if (!body) return true;
    }
    sqlite_run(db_, sql::delete_payload, body);
    return true;
  }

 private:
  static void read(sqlite_query const& q, job_id const& id, sqlite_job& r) {
    constexpr auto last = [](auto e) { return static_cast<std::int64_t>(e); };
    constexpr auto longest = limits::span.count();
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (q.integer(18) != 1) throw sqlite_damage{};
    r.id = id;
    r.priority = q.within<std::uint8_t>(0, 0, 255);
    auto const vesting = q.time_or_null(1);
    auto const kept = q.time_or_null(2);
    r.ended = q.within<job_state>(3, 0, last(job_state::cancelled));
    // It stands in the order of its state, where it is found.
    if (r.ended == job_state::leased || vesting.has_value() == is_terminal(r.ended) ||
        kept.has_value() != r.retained()) {
      throw sqlite_damage{};
    }
    r.vesting = vesting ? *vesting : kept.value_or(time_point{});
    r.attempts = q.within<std::uint32_t>(4, 0, limits::attempts);
    r.max_attempts = q.within<std::uint32_t>(5, 1, limits::attempts);
    r.snoozes = q.within<std::uint32_t>(6, 0, most);
    r.fence = q.count(7);
    if (!q.null(8)) r.holder = q.text(8, 1, limits::holder_size);
    r.unclaimed_vesting = q.time(9);
    r.strategy = q.within<unique_strategy>(10, 0, last(unique_strategy::until_expired));
    r.on_conflict = q.within<conflict_policy>(11, 0, last(conflict_policy::reschedule));
    r.enqueued = q.time(12);
    r.deadline_from = q.time(13);
    r.deadline = duration{q.within<std::int64_t>(14, 0, longest)};
    r.retention = duration{q.within<std::int64_t>(15, 0, longest)};
    r.key = q.text(16, r.strategy == unique_strategy::none ? 0 : 1, limits::key_size);
    if (!q.null(17)) r.body = q.integer(17);
  }

  sqlite_connection& db_;
};

}  // namespace weir::detail

#endif
