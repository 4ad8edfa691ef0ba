// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "session.hpp"
#include "weir/command/jobs.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Commands that act on jobs, by their ids or on all that there are. All are found by cursor, a
// page at a time, and done in steps of `in_flight` commands, between two of which it may be ended.
// Each command may be asked again, so a run that ended in the middle is simply run once more.
namespace console {

namespace {

constexpr std::uint32_t page_size = 10 * in_flight;

using weir::detail::count_of;
using weir::detail::judge;
using weir::detail::judgement;
using weir::detail::verdict;

struct tally {
  std::uint64_t done = 0;
  std::uint64_t refused = 0;
  std::uint64_t gone = 0;          ///< others were faster
  std::set<weir::job_id> named{};  ///< that were refused

  [[nodiscard]] std::uint64_t seen() const noexcept { return done + refused + gone; }
};

/// One of the three commands: how it is asked, and what its answer means.
template <class T, class Begin>
struct verb {
  using answer_type = T;
  std::string_view past;  ///< "replayed"
  Begin begin;            ///< an operation about one id
  judgement (*judge)(T const&);
};

/// Why a job was left as it is.
void name_refused(session& s, weir::job_id const& id, std::string const& why) {
  if (s.out.is_json()) {
    s.out.add({word_cell("id", to_string(id)), text_cell("refused", why)});
  } else {
    say(to_string(id) + ": " + why);
  }
}

/// Does it to some jobs, up to `in_flight` at once.
template <class Verb>
asio::awaitable<weir::error_code> step(session& s, Verb const& v, std::vector<weir::job_id> ids,
                                       tally& t) {
  auto const [errors, answers] = co_await together<typename Verb::answer_type>(ids, v.begin);
  weir::error_code failed;
  for (std::size_t i = 0; i != ids.size(); ++i) {
    if (errors[i]) {
      failed = errors[i];
      continue;
    }
    auto const [what, why] = v.judge(answers[i]);
    ++(what == verdict::done ? t.done : what == verdict::refused ? t.refused : t.gone);
    if (what == verdict::refused) t.named.insert(ids[i]);
    if (what == verdict::refused || (what == verdict::gone && !s.o.all))
      name_refused(s, ids[i], why);
  }
  co_return failed;
}

/// The last line, and the exit code.
int conclude(session& s, std::string_view past, tally const& t, std::uint64_t of,
             weir::error_code const& failed) {
  bool const ended = !failed && !s.stopping;
  json object{{std::string{past}, t.done},
              {"refused", t.refused},
              {"gone", t.gone},
              {"of", of},
              {"complete", ended}};
  auto text = std::string{past} + " " + count_text(t.done) + " of " + count_text(of);
  if (t.refused != 0) text += ", " + count_text(t.refused) + " refused";
  if (t.gone != 0) text += ", " + count_text(t.gone) + (s.o.all ? " gone before" : " not found");
  if (!ended) text += "; stopped: run it again for the rest";
  int const code = failed           ? s.fail(failed)
                   : s.stopping     ? interrupted
                   : t.refused != 0 ? refused
                                    : done;
  s.out.line(text, object);
  return code == done && t.gone != 0 && !s.o.all ? refused : code;
}

/// On a terminal, how far it is.
class progress {
 public:
  explicit progress(std::string_view past) : past_{past} {}
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  ~progress() {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  }
  void show(tally const& t, std::uint64_t of) {
    if (!shown_) return;
    std::cerr << '\r' << past_ << ' ' << count_text(t.done)
              << (of == 0 ? "" : " of " + count_text(of)) << "\x1b[K" << std::flush;
  }

 private:
  std::string_view past_;
  bool shown_ = ::isatty(STDERR_FILENO) != 0;
};

/// May it begin? Asks on a terminal, unless the answer was given.
asio::awaitable<bool> is_wanted(session& s, std::string question) {
  if (s.o.yes) co_return true;
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) {
    say(question + " Without a terminal only --yes says so");
    co_return false;
  }
  std::cerr << question << " [y/N] " << std::flush;
  // To read, Asio would make the terminal non-blocking for every process that shares it.
  asio::posix::stream_descriptor input{s.pause.get_executor(), ::dup(STDIN_FILENO)};
  std::string line;
  while (!line.ends_with('\n')) {
    char next = 0;
    auto const [ec] = co_await input.async_wait(input.wait_read, as_value);
    if (ec || ::read(input.native_handle(), &next, 1) != 1) break;
    line += next;
  }
  co_return line.starts_with('y') || line.starts_with('Y');
}

/// The jobs that a sweep is about, one state after the other.
class sweep {
 public:
  explicit sweep(session& s) : s_{s} {}

  /// Goes once through the jobs in one state. `bound` is how many of them it looks at, at most: a
  /// list whose jobs move may have no end.
  template <class Verb>
  asio::awaitable<weir::error_code> pass(Verb const& v, weir::job_state state, std::uint64_t bound,
                                         progress& shown, std::uint64_t of) {
    auto const& o = s_.o;
    weir::job_page page;
    do {
      auto listed =
          co_await weir::detail::list_state(s_.queue, o.queue, state, page_size, page.cursor);
      if (listed.has_error()) co_return listed.error();
      page = std::move(*listed);
      std::vector<weir::job_id> ids;
      for (auto const& j : page.jobs) {
        if (bound == 0) break;
        --bound;
        bool const newer = state != weir::job_state::dead && j.age < clock::now() - begin_;
        bool const wanted = o.kind.empty() || j.kind == o.kind;
        if (wanted && !newer && !t.named.contains(j.id)) ids.push_back(j.id);
      }
      for (std::span rest{ids}; !rest.empty() && goes_on();) {
        auto const n = std::min<std::uint64_t>({rest.size(), in_flight, o.most - t.done});
        auto const failed =
            co_await step(s_, v, {rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n)}, t);
        if (failed) co_return failed;
        rest = rest.subspan(n);
        shown.show(t, of);
      }
    } while (goes_on() && bound != 0 && !page.cursor.empty());
    co_return weir::error_code{};
  }

  [[nodiscard]] bool goes_on() const { return !s_.stopping && t.done < s_.o.most; }

  tally t;

 private:
  using clock = std::chrono::steady_clock;

  session& s_;
  clock::time_point begin_ = clock::now();
};

/// Does it to all jobs in these states that there are when it begins.
template <class Verb>
answer do_to_all(session& s, Verb v, std::vector<weir::job_state> states) {
  auto const& o = s.o;
  sweep jobs{s};
  auto const [ec, stats] = co_await s.queue.async_stats(o.queue, as_value);
  if (ec) co_return s.fail(ec);
  if (stats.enqueued == 0) co_return s.refuse("there is no queue '" + o.queue + "'");
  std::uint64_t all = 0;
  for (auto const state : states) all += count_of(stats, state);
  // Those that have ended are counted also where their records are gone.
  bool const exact = o.kind.empty() && o.state != "completed" && o.state != "cancelled";
  auto const of = std::min(all, o.most);
  auto const what = (exact && of == all ? "all " : "up to ") + count_text(of) + " jobs of " +
                    o.queue + (o.kind.empty() ? "" : ", those of kind " + o.kind);
  if (!co_await is_wanted(s, o.command + " " + what + "?")) co_return refused;

  s.ends_by_itself = true;
  weir::error_code failed;
  {
    progress shown{v.past};
    for (auto state = states.begin(); state != states.end() && jobs.goes_on() && !failed; ++state) {
      // Dead letters are listed by when they died: those that die again while it goes on are behind
      // those of the beginning. What waits moves about, and may be missed: it is looked for until a
      // pass finds nothing.
      bool const waits = !weir::is_terminal(*state);
      auto const bound = *state == weir::job_state::dead ? all : 2 * all + 10'000;
      std::uint64_t before = 0;
      do {
        before = jobs.t.done;
        failed = co_await jobs.pass(v, *state, bound, shown, exact ? of : 0);
      } while (waits && !failed && jobs.goes_on() && jobs.t.done != before);
    }
  }
  co_return conclude(s, v.past, jobs.t, exact ? std::max(of, jobs.t.seen()) : jobs.t.seen(),
                     failed);
}

template <class Verb>
answer carry_out(session& s, Verb v, std::vector<weir::job_state> states) {
  // The jobs in there are schedules, or records of workers: to cancel one here would break it.
  if (weir::is_kept_by_weir(s.o.queue)) {
    throw failure{wrong_usage,
                  "weir keeps this queue for itself: see weirctl schedules, and workers"};
  }
  if (s.o.all) co_return co_await do_to_all(s, v, std::move(states));
  std::vector<weir::job_id> ids;
  for (auto const& text : s.o.ids) ids.push_back(to_id(text));
  s.ends_by_itself = true;
  tally t;
  weir::error_code failed;
  for (std::span rest{ids}; !rest.empty() && !s.stopping && !failed;) {
    auto const now = rest.first(std::min(rest.size(), in_flight));
    rest = rest.subspan(now.size());
    failed = co_await step(s, v, {now.begin(), now.end()}, t);
  }
  co_return conclude(s, v.past, t, ids.size(), failed);
}

judgement judge_cancel(weir::cancel_outcome const& o) {
  auto out = judge(o);
  if (o == weir::cancel_outcome::running) out.second += "; --running cancels it, too";
  return out;
}

}  // namespace

answer cancel_jobs(session& s) {
  auto begin = [&s](weir::job_id const& id) {
    return s.queue.async_cancel(s.o.queue, id, s.o.running, asio::deferred);
  };
  std::vector states{weir::job_state::pending};
  if (s.o.running) states.push_back(weir::job_state::leased);
  verb<weir::cancel_outcome, decltype(begin)> const v{"cancelled", begin, judge_cancel};
  return carry_out(s, v, std::move(states));
}

answer replay_jobs(session& s) {
  auto begin = [&s](weir::job_id const& id) {
    return s.queue.async_replay(s.o.queue, id, {}, asio::deferred);
  };
  verb<weir::replayed, decltype(begin)> const v{"replayed", begin, judge};
  return carry_out(s, v, {weir::job_state::dead});
}

answer purge_jobs(session& s) {
  auto begin = [&s](weir::job_id const& id) {
    return s.queue.async_purge(s.o.queue, id, asio::deferred);
  };
  verb<bool, decltype(begin)> const v{"purged", begin, judge};
  auto const state = s.o.state == "dead"        ? weir::job_state::dead
                     : s.o.state == "completed" ? weir::job_state::completed
                                                : weir::job_state::cancelled;
  return carry_out(s, v, {state});
}

}  // namespace console
