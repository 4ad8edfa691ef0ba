// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_POSTGRES_LISTENER_HPP
#define WEIR_STORE_POSTGRES_LISTENER_HPP

#include "weir/detail/reconnect_pace.hpp"
#include "weir/error.hpp"
#include "weir/store/postgres/options.hpp"
#include "weir/store/postgres/socket.hpp"
#include "weir/time.hpp"

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Who is told of notifications.
class postgres_audience : public std::enable_shared_from_this<postgres_audience> {
 public:
  postgres_audience() = default;
  postgres_audience(postgres_audience const&) = delete;
  postgres_audience& operator=(postgres_audience const&) = delete;
  virtual ~postgres_audience() = default;

  /// There is news of the topic.
  virtual void heard(std::string_view topic) = 0;
  /// From here on nothing is missed.
  virtual void listening() = 0;
};

/// The connection that LISTENs, made anew with a backoff when it is lost. It is asked for a sign of
/// life, so that one that is half-open is noticed (F38). It keeps the executor busy, and the server
/// sending, only while somebody wants to hear. Its owner's member, on the owner's strand.
class postgres_listener {
 public:
  postgres_listener(postgres_audience& owner, postgres_strand const& strand, std::string conninfo,
                    std::string const& schema, postgres_options const& options)
      : owner_{owner},
        conninfo_{std::move(conninfo)},
        channel_{schema},
        connect_timeout_{options.connect_timeout},
        silence_{options.command_timeout},
        strand_{strand},
        timer_{strand} {}

  [[nodiscard]] bool wanted() const noexcept { return wanted_; }

  void resume() {
    if (std::exchange(wanted_, true)) return;
    if (!current_) return open();
    if (ready_) listen();
  }

  void pause() {
    if (!std::exchange(wanted_, false)) return;
    if (current_ && !ready_) return;  // once it is connected
    timer_.stop();
    if (!current_) return;
    send("UNLISTEN *");
    PQflush(current_->get());
    current_->cancel();
  }

  /// Listens on a new connection: the one that there is may lead to the wrong server.
  void renew() {
    if (!current_) return;
    forget();
    if (wanted_) open();
  }

  void close() {
    wanted_ = false;
    timer_.stop();
    forget();
  }

 private:
  using session = std::shared_ptr<postgres_socket>;

  [[nodiscard]] std::shared_ptr<void> lives() { return owner_.shared_from_this(); }

  void open() {
    current_ = std::make_shared<postgres_socket>(strand_);
    auto const s = current_;
    s->connect(conninfo_, connect_timeout_, [this, keep = lives(), s](error_code ec) {
      if (s != current_) return;
      if (ec || PQsetnonblocking(s->get(), 1) != 0 || PQenterPipelineMode(s->get()) != 1) {
        return lost();
      }
      ready_ = true;
      timer_.stop();
      if (wanted_) listen();
    });
  }

  void listen() {
    listening_ = false;
    send(("LISTEN \"" + channel_ + '"').c_str());
    check_later();
    read();
    flush();
  }

  void send(char const* text) {
    auto* const c = current_->get();
    if (PQsendQueryParams(c, text, 0, nullptr, nullptr, nullptr, nullptr, 0) == 1 &&
        PQpipelineSync(c) == 1) {
      ++unanswered_;
    } else {
      broken_ = true;
    }
  }

  void check_later() {
    timer_.set(saturating_add(timer_.now(), silence_), [this, keep = lives()] {
      if (unanswered_ != 0 || broken_) return lost();
      send("SELECT");
      check_later();
      flush();
    });
  }

  void flush() {
    auto const s = current_;
    if (!s || writing_) return;
    int const left = broken_ ? -1 : PQflush(s->get());
    if (left < 0) return lost();
    if (left == 0) return;
    writing_ = true;
    s->wait(postgres_socket::descriptor::wait_write, [this, keep = lives(), s](error_code) {
      if (s != current_) return;
      writing_ = false;
      if (wanted_) flush();
    });
  }

  void read() {
    auto const s = current_;
    if (!s || reading_) return;
    reading_ = true;
    s->wait(postgres_socket::descriptor::wait_read, [this, keep = lives(), s](error_code) {
      if (s != current_) return;
      reading_ = false;
      if (wanted_) readable(s);
    });
  }

  void readable(session const& s) {
    auto* const c = s->get();
    bool const good = PQconsumeInput(c) == 1;
    take_results(c);
    while (auto* const n = PQnotifies(c)) {
      std::unique_ptr<PGnotify, decltype(&PQfreemem)> const news{n, &PQfreemem};
      s->answered(channel_.size() + std::string_view{news->extra}.size());
      owner_.heard(news->extra);
      if (s != current_) return;
    }
    bool const wordy = s->besides() > postgres_allowance::others;
    if (!good || broken_ || wordy || PQstatus(c) == CONNECTION_BAD) return lost();
    if (unanswered_ == 0 && !std::exchange(listening_, true)) {
      pace_.reset();
      owner_.listening();
    }
    if (s != current_ || !wanted_) return;
    flush();
    read();
  }

  void take_results(PGconn* c) {
    for (int nothing = 0; unanswered_ != 0 && nothing < 2 && PQisBusy(c) == 0;) {
      postgres_result const r{PQgetResult(c)};
      nothing = r ? 0 : nothing + 1;
      if (!r) continue;
      if (PQresultStatus(r.get()) == PGRES_PIPELINE_SYNC) {
        --unanswered_;
        current_->answered();
      }
      if (PQresultStatus(r.get()) == PGRES_FATAL_ERROR) {
        broken_ = true;
        return;
      }
    }
  }

  void lost() {
    forget();
    if (!wanted_) return;
    timer_.set(saturating_add(timer_.now(), pace_.next()), [this, keep = lives()] {
      if (wanted_ && !current_) open();
    });
  }

  void forget() {
    timer_.stop();
    if (auto const s = std::exchange(current_, nullptr)) s->close();
    ready_ = reading_ = writing_ = broken_ = listening_ = false;
    unanswered_ = 0;
  }

  postgres_audience& owner_;
  std::string const conninfo_;
  std::string const channel_;
  duration const connect_timeout_;
  duration const silence_;
  postgres_strand strand_;
  postgres_timer timer_;
  session current_;
  reconnect_pace pace_{std::chrono::milliseconds{20}, std::chrono::seconds{5}};
  unsigned unanswered_ = 0;
  bool wanted_ = false;
  bool ready_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool broken_ = false;
  bool listening_ = false;
};

}  // namespace weir::detail

#endif
