// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_LINK_HPP
#define WEIR_STORE_POSTGRES_LINK_HPP

#include "weir/error.hpp"
#include "weir/store/postgres/call.hpp"
#include "weir/store/postgres/failure.hpp"
#include "weir/store/postgres/migration.hpp"
#include "weir/store/postgres/migration_sql.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/request.hpp"
#include "weir/store/postgres/rows.hpp"
#include "weir/store/postgres/socket.hpp"
#include "weir/time.hpp"

#include <libpq-fe.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace weir::detail {

/// Who has links.
class postgres_link_owner : public std::enable_shared_from_this<postgres_link_owner> {
 public:
  postgres_link_owner() = default;
  postgres_link_owner(postgres_link_owner const&) = delete;
  postgres_link_owner& operator=(postgres_link_owner const&) = delete;
  virtual ~postgres_link_owner() = default;

  /// The link may be used from now on.
  virtual void connected(bool waits) = 0;
  /// A command was not done, and is to be sent once more, as it is now.
  virtual void repeats(std::unique_ptr<postgres_request> r) = 0;
  /// The same, but where it may wait: somebody else has a lock that it needs.
  virtual void held_up(std::unique_ptr<postgres_request> r) = 0;
  /// Some link has room for more.
  virtual void progressed() = 0;
  /// All links are to be made anew: the server of this one does not take writes any more, if it
  /// ever did, or has another schema by now.
  virtual void renew() = 0;
  /// The link is closed for good; what it had under way has ended.
  virtual void ended(error_code why, bool connected) = 0;
};

/// One connection in pipeline mode, and the commands that are under way on it. On a strand.
///
/// Each command is a transaction of its own, READ COMMITTED whatever the database's default is: the
/// implicit one between two synchronization points where that is the default, and one that is begun
/// and committed in the same round trip where it is not. An answer counts once its transaction's
/// end was reported, not before (a commit can fail). So a command of a connection that is lost
/// after its request left is unknown, however far it got.
///
/// Where others may stand behind it, a command waits for locks for 50 ms only, and is then asked
/// for once more by another connection, where it may wait (F71; see `hurry` in the schema).
///
/// A statement is prepared the first time it is sent, and named after that, where it is the server
/// that answers: a pooler in between may give the next one to another session. It is known by the
/// process that the session says it has.
class postgres_link : public std::enable_shared_from_this<postgres_link> {
 public:
  /// @param waits for commands that were refused elsewhere because of a lock
  postgres_link(postgres_link_owner& owner, postgres_strand const& strand,
                std::string const& schema, postgres_options const& options, bool waits)
      : owner_{owner},
        socket_{strand},
        timer_{strand},
        schema_{schema},
        options_{options},
        waits_{waits} {}

  [[nodiscard]] bool waits() const noexcept { return waits_; }
  [[nodiscard]] bool ready() const noexcept { return ready_ && !leaving_; }
  [[nodiscard]] bool over() const noexcept { return over_; }
  /// What is under way on it, and how much of that is several commands in one.
  [[nodiscard]] std::size_t load() const noexcept { return under_way_.size(); }
  [[nodiscard]] std::size_t joined() const noexcept { return joined_; }

  void open(std::string const& conninfo) {
    auto const keep = lives();
    socket_.connect(conninfo, options_.connect_timeout,
                    [this, keep](error_code ec) { connected(ec); });
  }

  /// Sends a command. False: the connection turned out to be over, and nothing was sent.
  bool send(std::unique_ptr<postgres_request>& r) {
    if (under_way_.empty() && !alive()) {
      end(errc::store_unavailable);
      return false;
    }
    joined_ += is_joined(*r) ? 1 : 0;
    under_way_.push_back(sent{std::move(r), {}, {}, explicit_ ? 2 : 1, false});
    if (under_way_.size() == 1) set_timer();
    auto& item = under_way_.back();
    auto* const c = socket_.get();
    bool ok = !explicit_ || statement("BEGIN ISOLATION LEVEL READ COMMITTED");
    if (hurries_each_) {
      item.before = 1;
      ok = ok && statement("SELECT pg_catalog.set_config('weir.patience', '50ms', true)");
    }
    ok = ok && call(item);
    ok = ok && PQpipelineSync(c) == 1;
    // Whether it failed or not is known by then, and this ends either.
    if (explicit_) ok = ok && statement("COMMIT") && PQpipelineSync(c) == 1;
    if (!ok) {
      end(errc::outcome_unknown);
      return true;
    }
    flush();
    read();
    return true;
  }

  void close() { end(errc::closed); }

  /// Takes nothing more, and is closed once what is under way has ended.
  void retire() {
    if (!std::exchange(leaving_, true) && under_way_.empty()) end(errc::store_unavailable);
  }

 private:
  struct sent {
    std::unique_ptr<postgres_request> request;
    postgres_result answer;
    error_code failed;
    int ends;             // synchronization points until it is over
    bool prepares;        // its statement, and is not known to have done so
    bool named = false;   // it was sent by the name of a statement
    bool stale = false;   // which the server does not have any more, or not as it was
    int results = 0;      // so far
    int before = 0;       // rows of what was asked before it, which are nobody's answer
    bool locked = false;  // it failed because of a lock of somebody else's
  };

  /// The first statement on every connection.
  class greeting final : public postgres_request {
   public:
    explicit greeting(postgres_link& to) noexcept : postgres_request{postgres_call{""}}, to_{to} {}
    [[nodiscard]] std::string text(std::string_view schema) const override {
      std::string out;
      append_sql(out,
                 "SELECT version, shards, "
                 "pg_catalog.current_setting('default_transaction_isolation'), "
                 "pg_catalog.pg_backend_pid()",
                 schema);
      if (!to_.waits_ && to_.options_.connections > 1) {
        // Not by way of a pooler, which may give the session to others.
        out += ", CASE WHEN pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) " +
               std::to_string(PQbackendPID(to_.socket_.get())) +
               " THEN pg_catalog.set_config('weir.patience', '50ms', false) END";
      }
      append_sql(out, " FROM ~.state", schema);
      return out;
    }
    [[nodiscard]] bool waiting() const noexcept override { return true; }
    void finish(error_code ec, postgres_rows const& r) noexcept override { to_.greeted(ec, r); }

   private:
    postgres_link& to_;
  };

  /// Is it of those that cost the server as much as several? Steps of one key mostly are not.
  static bool is_joined(postgres_request const& r) noexcept {
    return r.call().joinable() && !r.call().shares_lock();
  }

  [[nodiscard]] std::pair<std::shared_ptr<void>, std::shared_ptr<void>> lives() {
    return {owner_.shared_from_this(), shared_from_this()};
  }

  void connected(error_code ec) {
    if (over_) return;
    auto* const c = socket_.get();
    if (ec) return end(ec);
    if (PQsetnonblocking(c, 1) != 0 || PQenterPipelineMode(c) != 1) {
      return end(explained(errc::store_unavailable, socket_.message()));
    }
    std::unique_ptr<postgres_request> hello = std::make_unique<greeting>(*this);
    send(hello);
  }

  void greeted(error_code ec, postgres_rows const& rows) noexcept {
    if (over_) return;
    why_ = ec;
    if (!ec) {
      try {
        if (rows.integer(0, 0) > postgres_schema_version) why_ = errc::schema_too_new;
        if (rows.integer(0, 0) < postgres_schema_version) {
          why_ = postgres_outdated(rows.integer(0, 0));
        }
        if (!why_ && rows.integer(0, 1) != options_.shards) {
          why_ = postgres_other_shards(options_.shards, rows.integer(0, 1));
        }
        explicit_ = rows.bytes(0, 2) != "read committed";
        bool const own = rows.integer(0, 3) == PQbackendPID(socket_.get());
        named_ = !explicit_ && own;
        hurries_each_ = !own && !waits_ && options_.connections > 1;
      } catch (postgres_malformed const&) {
        why_ = errc::store_foreign;
      } catch (...) {
        why_ = make_error_code(boost::system::errc::not_enough_memory);
      }
    }
    ready_ = !why_;
  }

  bool call(sent& item) {
    auto* const c = socket_.get();
    auto text = item.request->text(schema_);
    return item.request->call().with_parameters(
        [&](int n, auto types, auto values, auto lengths, auto formats) {
          if (!named_ || item.request->unnamed) {
            return PQsendQueryParams(c, text.c_str(), n, types, values, lengths, formats, 1) == 1;
          }
          auto const [at, first] =
              names_.try_emplace(std::move(text), "weir_" + std::to_string(names_.size()));
          item.prepares = first;
          item.named = true;
          auto const* const name = at->second.c_str();
          return (!first || PQsendPrepare(c, name, at->first.c_str(), n, types) == 1) &&
                 PQsendQueryPrepared(c, name, n, values, lengths, formats, 1) == 1;
        });
  }

  bool statement(char const* text) {
    return PQsendQueryParams(socket_.get(), text, 0, nullptr, nullptr, nullptr, nullptr, 1) == 1;
  }

  /// Has an idle connection ended? What the server said before it ended it may have to be read
  /// first.
  [[nodiscard]] bool alive() {
    auto* const c = socket_.get();
    return PQconsumeInput(c) == 1 && PQconsumeInput(c) == 1 && PQstatus(c) == CONNECTION_OK;
  }

  void set_timer() {
    deadline_ = saturating_add(timer_.now(), options_.command_timeout);
    timer_.set(deadline_, [this, keep = lives()] { timed_out(); });
  }
  void timed_out() {
    if (over_ || under_way_.empty()) return;
    if (timer_.now() >= deadline_) {
      return end(explained(errc::outcome_unknown, "no answer within command_timeout"));
    }
    timer_.set(deadline_, [this, keep = lives()] { timed_out(); });
  }

  void flush() {
    if (over_ || writing_) return;
    int const left = PQflush(socket_.get());
    if (left < 0) return read();  // what the server has said is read first
    if (left == 0) return;
    writing_ = true;
    socket_.wait(postgres_socket::descriptor::wait_write, [this, keep = lives()](error_code ec) {
      writing_ = false;
      if (!ec) flush();
    });
  }

  void read() {
    if (over_ || reading_ || under_way_.empty()) return;
    reading_ = true;
    socket_.wait(postgres_socket::descriptor::wait_read, [this, keep = lives()](error_code ec) {
      reading_ = false;
      if (!over_ && !ec) readable();
    });
  }

  void readable() {
    socket_.begin_reading();
    bool const good = PQconsumeInput(socket_.get()) == 1;
    deadline_ = saturating_add(timer_.now(), options_.command_timeout);
    auto const before = under_way_.size();
    bool const was_ready = ready_;
    take_results();
    if (over_) return;
    if (why_) return end(why_);
    // Nobody listens here, so no notification is weir's.
    while (auto* const n = PQnotifies(socket_.get())) PQfreemem(n);
    auto const besides = socket_.besides();
    if (besides > postgres_allowance::answer) return end(errc::outcome_unknown);
    bool const between = ready_ && under_way_.size() != before;  // no answer is half read
    if (between && besides > postgres_allowance::others) leaving_ = true;
    if (std::exchange(renewed_, false) && !leaving_) owner_.renew();
    if (leaving_ && under_way_.empty()) end(errc::store_unavailable);
    if (over_) return;
    if (ready_ && !was_ready) owner_.connected(waits_);
    if (!good || PQstatus(socket_.get()) == CONNECTION_BAD) {
      return end(explained(errc::outcome_unknown, socket_.message()));
    }
    flush();
    if (under_way_.empty()) timer_.stop();
    if (under_way_.size() != before) owner_.progressed();
    read();
  }

  void take_results() {
    auto* const c = socket_.get();
    for (int nothing = 0; !under_way_.empty() && nothing < 2 && PQisBusy(c) == 0;) {
      postgres_result r{PQgetResult(c)};
      if (!r) {
        ++nothing;
        continue;
      }
      nothing = 0;
      auto& first = under_way_.front();
      // A few for each statement; a server may go on for ever.
      constexpr int most_results = 100;
      if (++first.results > most_results) return end(errc::outcome_unknown);
      switch (PQresultStatus(r.get())) {
        case PGRES_TUPLES_OK:
          if (first.before == 0) {
            first.answer = std::move(r);
          } else {
            --first.before;
            socket_.answered(postgres_bytes(r.get()));
          }
          break;
        case PGRES_PIPELINE_SYNC:
          if (--first.ends == 0) finish_first();
          break;
        case PGRES_COMMAND_OK: first.prepares = false; break;
        case PGRES_FATAL_ERROR:
          // Without a code it is not the server who says so: the connection is over, or the answer
          // of what was executed cannot be had.
          if (PQresultErrorField(r.get(), PG_DIAG_SQLSTATE) == nullptr) {
            return end(why_ ? why_ : explained(errc::outcome_unknown, socket_.message()));
          }
          if (first.named && stale(r.get())) first.stale = true;
          if (first.prepares || first.stale) named_ = false;
          if (state_of(r.get()) == "55P03") first.locked = true;
          if (!first.failed) first.failed = postgres_error(r.get());
          if (!first.stale && renews(first.failed)) renewed_ = true;
          socket_.answered(postgres_bytes(r.get()));
          break;
        default: break;
      }
    }
  }

  /// Is it about the prepared statement, and not about what that does? The functions may have been
  /// replaced since.
  [[nodiscard]] static bool stale(PGresult const* r) noexcept {
    auto const state = state_of(r);
    return state == "26000" || state == "0A000" || state == "42P05";
  }
  [[nodiscard]] static std::string_view state_of(PGresult const* r) noexcept {
    return PQresultErrorField(r, PG_DIAG_SQLSTATE);
  }

  /// Is a connection to be made anew after it? Where the server takes no writes another may stand
  /// where it did, or will (F70). Where a function is not there somebody has migrated the schema,
  /// and a new connection is told to which version.
  [[nodiscard]] static bool renews(error_code ec) noexcept {
    return ec == errc::store_read_only || ec == errc::schema_outdated;
  }

  void finish_first() {
    auto first = std::move(under_way_.front());
    under_way_.pop_front();
    joined_ -= is_joined(*first.request) ? 1 : 0;
    socket_.answered(postgres_bytes(first.answer.get()));
    if (!first.failed && !first.answer) first.failed = errc::store_corrupt;
    if (first.stale) first.request->unnamed = true;  // so this comes once
    if (first.stale || (first.failed == errc::store_corrupt && first.request->repair())) {
      return owner_.repeats(std::move(first.request));
    }
    if (first.locked && !waits_ && options_.connections > 1 && first.request->may_move()) {
      return owner_.held_up(std::move(first.request));
    }
    if (first.request->turn) first.request->turn->refused = first.locked;
    first.request->finish(first.failed, postgres_rows{first.answer.get()});
  }

  void end(error_code why) {
    if (std::exchange(over_, true)) return;
    bool const was_ready = std::exchange(ready_, false);
    timer_.stop();
    auto const keep = lives();
    socket_.close();
    auto all = std::move(under_way_);
    under_way_.clear();
    // What has failed before it gave an answer was not done, whatever came after; the rest is
    // unknown.
    for (auto& s : all) {
      bool const known = s.failed && !s.answer;
      s.request->finish(known ? s.failed : make_error_code(errc::outcome_unknown), {});
    }
    all.clear();
    owner_.ended(why, was_ready);
  }

  postgres_link_owner& owner_;
  postgres_socket socket_;
  postgres_timer timer_;
  std::string const& schema_;
  postgres_options const& options_;
  std::deque<sent> under_way_;
  std::unordered_map<std::string, std::string> names_;  // of prepared statements, by their texts
  std::size_t joined_ = 0;
  steady_time deadline_{};
  error_code why_;  // it is of no use
  bool const waits_;
  bool ready_ = false;
  bool explicit_ = false;
  bool named_ = false;
  bool hurries_each_ = false;  ///< a pooler gives its session to others, so each call says it
  bool reading_ = false;
  bool writing_ = false;
  bool over_ = false;
  bool renewed_ = false;  // the server has just said why it is to be
  bool leaving_ = false;
};

}  // namespace weir::detail

#endif
