// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_ACTS_HPP
#define WEIR_CONSOLE_ACTS_HPP

#include "weir/console/pages.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The actions of a console. It asks first, and goes on by steps that are bounded.
namespace weir::detail::web {

/// The subject of an action: the parameters of its request.
struct subject {
  explicit subject(query const& q, std::string queue_name)
      : words{find_action(q.at("action"))},
        queue{std::move(queue_name)},
        name{q.at("name")},
        id{weir::detail::web::id_of(q.at("id"))},
        state{state_of(q.at("state"))},
        kind{q.at("kind")} {
    if (words == nullptr) return;
    bool const has_id = !q.at("id").empty();
    auto const a = words->action;
    is_valid = is_of_schedules(a) ? !name.empty()
               : is_of_jobs(a)
                   ? !queue.empty() && (has_id ? id.has_value() : state && goes_with(a, *state))
                   : !queue.empty();
    // The jobs in there are schedules or workers: to act on one as on a job would break it.
    if (is_kept_by_weir(queue)) is_valid = false;
  }

  action_words const* words;
  std::string queue, name;
  std::optional<job_id> id;
  std::optional<job_state> state;
  std::string kind;
  bool is_valid = false;
};

[[nodiscard]] inline std::string in_quotes(std::string_view name) {
  return "\u201c" + std::string{name} + "\u201d";
}

[[nodiscard]] inline page not_an_action() {
  return problem(status::bad_request, "No such action", "This cannot be asked for.");
}

inline pages::answer pages::confirm(query q) {
  subject const s{q, queue_in(q)};
  if (!s.is_valid) co_return not_an_action();
  auto const& words = *s.words;
  if (!allows(words.action)) {
    co_return problem(status::forbidden, "Not allowed", "This console may not do that.");
  }
  std::string what = is_of_schedules(words.action) ? "schedule " + in_quotes(s.name)
                                                   : "queue " + in_quotes(s.queue);
  std::string back =
      is_of_schedules(words.action) ? at("/schedules") : at("/queue", {{"queue", s.queue}});
  auto const id = s.id ? to_string(*s.id) : std::string{};
  auto const state = s.state ? std::string{to_string(*s.state)} : std::string{};
  if (s.id) {
    what = "job " + id + " of " + in_quotes(s.queue);
    back = at("/job", {{"queue", s.queue}, {"id", id}});
  } else if (is_of_jobs(words.action)) {
    auto const [ec, stats] = co_await queue_.async_stats(s.queue, as_value);
    if (ec) co_return failed(ec);
    what = (s.kind.empty() ? "all " : "up to ") + count_text(count_of(stats, *s.state)) + " " +
           state + " jobs of " + in_quotes(s.queue) +
           (s.kind.empty() ? "" : ", those of kind " + in_quotes(s.kind));
    back = at("/queue", {{"queue", s.queue}, {"state", state}, {"filter", s.kind}});
  }
  page out{status::ok, words.verb};
  auto const target = at("/act", {{"action", to_string(words.action)},
                                  {"queue", s.queue},
                                  {"name", s.name},
                                  {"id", id},
                                  {"state", state},
                                  {"kind", s.kind}});
  out.main << "<section class=ask><h1>"_html << words.verb << "?</h1><p><b>"_html << what
           << "</b></p><p class=hint>"_html << words.about << "</p><form method=post action=\""_html
           << target << "\"><button class="_html
           << (is_final(words.action) ? "final>"_html : "go>"_html) << words.verb
           << "</button> <a class=button"_html
           << (is_final(words.action) ? " autofocus"_html : ""_html) << " href=\""_html << back
           << "\">No</a></form></section>"_html;
  co_return out;
}

inline pages::answer pages::act(query q, std::string who) {
  subject const s{q, queue_in(q)};
  auto const& on = s.words != nullptr && is_of_schedules(s.words->action) ? s.name : s.queue;
  if (!s.is_valid) {
    if (s.words != nullptr) note(s.words->action, who, on, q.at("id"), "refused: not valid");
    co_return not_an_action();
  }
  auto const& words = *s.words;
  if (!allows(words.action)) {
    note(words.action, who, on, q.at("id"), "refused: not allowed");
    co_return problem(status::forbidden, "Not allowed", "This console may not do that.");
  }
  // The client may go away in the middle. The step goes on then, so that the audit has what it did;
  // it is bounded.
  co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
  if (is_of_schedules(words.action)) co_return co_await act_on_schedule(words, s.name, who);
  if (!is_of_jobs(words.action)) co_return co_await act_on_queue(words, s.queue, who);
  if (s.id) co_return co_await act_on_job(words, s.queue, *s.id, who);
  co_return co_await act_on_all(words, q, who);
}

inline pages::answer pages::act_on_schedule(action_words const& words, std::string name,
                                            std::string who) {
  error_code ec;
  bool found = false;
  std::string outcome = "done";
  if (words.action == console_action::trigger_schedule) {
    auto const [failure, id] = co_await schedules_.async_trigger(name, as_value);
    ec = failure;
    found = id.has_value();
    if (id) outcome = "done: job " + to_string(*id);
  } else if (words.action == console_action::pause_schedule) {
    std::tie(ec, found) = co_await schedules_.async_pause(name, as_value);
  } else {
    std::tie(ec, found) = co_await schedules_.async_resume(name, as_value);
  }
  note(words.action, who, name, {}, ec ? ec.message() : found ? outcome : "refused: not there");
  if (ec) co_return failed(ec);
  if (!found) co_return problem(status::not_found, "No such schedule", "It is not there any more.");
  page there{status::see_other, "Schedules"};
  there.location = at("/schedules");
  co_return there;
}

inline pages::answer pages::act_on_queue(action_words const& words, std::string name,
                                         std::string who) {
  auto const [ec, stats] = co_await queue_.async_stats(name, as_value);
  if (ec) {
    note(words.action, who, name, {}, ec.message());
    co_return failed(ec);
  }
  // A mistyped name would be a new queue, and what was meant would go on.
  if (stats.enqueued == 0 && !stats.paused) {
    note(words.action, who, name, {}, "refused: no such queue");
    co_return problem(status::not_found, "No such queue", "It has never had a job.");
  }
  error_code failure;
  hint nothing;
  if (words.action == console_action::pause) {
    std::tie(failure, nothing) = co_await queue_.async_pause(name, as_value);
  } else {
    std::tie(failure, nothing) = co_await queue_.async_resume(name, as_value);
  }
  note(words.action, who, name, {}, failure ? failure.message() : "done");
  if (failure) co_return failed(failure);
  page there{status::see_other, "Queue"};
  there.location = at("/queue", {{"queue", name}});
  co_return there;
}

/// Begins `begin` for each job, 32 at once, and counts what becomes of them.
template <class T, class Begin>
boost::asio::awaitable<error_code> do_to_each(std::vector<job_id> const& ids, Begin begin,
                                              tally& t) {
  for (std::span<job_id const> rest{ids}; !rest.empty();) {
    auto const some = rest.first(std::min(in_flight, rest.size()));
    rest = rest.subspan(some.size());
    auto const [errors, answers] = co_await together<T>(some, begin);
    error_code failure;
    for (std::size_t i = 0; i != some.size(); ++i) {
      if (errors[i]) {
        failure = errors[i];
        continue;
      }
      auto [what, why] = judge(answers[i]);
      ++(what == verdict::done ? t.done : what == verdict::refused ? t.refused : t.gone);
      if (what != verdict::done) t.refusals.emplace_back(some[i], std::move(why));
    }
    if (failure) co_return failure;
  }
  co_return error_code{};
}

inline boost::asio::awaitable<error_code> pages::act_on(console_action a, std::string name,
                                                        std::vector<job_id> ids, tally& t) {
  using boost::asio::deferred;
  if (a == console_action::replay) {
    auto const begin = [&](job_id const& id) {
      return queue_.async_replay(name, id, {}, deferred);
    };
    co_return co_await do_to_each<replayed>(ids, begin, t);
  }
  if (a == console_action::purge) {
    auto const begin = [&](job_id const& id) { return queue_.async_purge(name, id, deferred); };
    co_return co_await do_to_each<bool>(ids, begin, t);
  }
  bool const running = a == console_action::cancel_running;
  auto const begin = [&](job_id const& id) {
    return queue_.async_cancel(name, id, running, deferred);
  };
  co_return co_await do_to_each<cancel_outcome>(ids, begin, t);
}

inline pages::answer pages::act_on_job(action_words const& words, std::string name, job_id id,
                                       std::string who) {
  tally t;
  std::vector<job_id> const one{id};
  error_code ec;
  std::string why;
  if (words.action == console_action::cancel_running) {
    // To cancel one that waits is another right, and may not be what was meant.
    auto const [failure, found] = co_await queue_.async_find(name, id, as_value);
    ec = failure;
    if (!ec && (!found || found->state != job_state::leased)) why = "it is not leased";
  }
  if (!ec && why.empty()) ec = co_await act_on(words.action, name, one, t);
  auto const text = to_string(id);
  if (!t.refusals.empty()) why = t.refusals.front().second;
  note(words.action, who, name, text, ec ? ec.message() : t.done == 1 ? "done" : "refused: " + why);
  if (ec) co_return failed(ec);
  if (t.done != 1) {
    auto out = problem(status::conflict, "Not done", "Job " + text + ": " + why + ".");
    out.main << "<p>"_html << link(at("/queue", {{"queue", name}}), "Back to the queue")
             << "</p>"_html;
    co_return out;
  }
  page there{status::see_other, "Job"};
  // Its record may be gone now: a purged one, and a cancelled one that is not retained.
  bool const stays = words.action == console_action::replay;
  there.location =
      stays ? at("/job", {{"queue", name}, {"id", text}}) : at("/queue", {{"queue", name}});
  co_return there;
}

/// A step of an action on all jobs in one state. How far it has come is in the request, so nothing
/// is kept here between two steps, and whoever stops asking has stopped it.
inline pages::answer pages::act_on_all(action_words const& words, query q, std::string who) {
  auto const name = queue_in(q);
  auto const state = *state_of(q.at("state"));
  auto const& kind = q.at("kind");
  bool const waits = !is_terminal(state);
  auto of = q.number("of");
  auto seen = q.number("seen");
  auto changed = q.number("changed");  // in this pass through those that wait
  tally t;
  t.done = q.number("done");
  t.refused = q.number("refused");
  t.gone = q.number("gone");
  auto const now =
      std::chrono::floor<std::chrono::milliseconds>(date_()).time_since_epoch().count();
  auto began = static_cast<std::int64_t>(q.number("began") & 0x7FFFFFFFFFFFFFFFU);
  std::string const which =
      "all that are " + std::string{to_string(state)} + (kind.empty() ? "" : ", of kind " + kind);
  if (began == 0) {
    auto const [ec, stats] = co_await queue_.async_stats(name, as_value);
    if (ec) {
      note(words.action, who, name, which, ec.message());
      co_return failed(ec);
    }
    of = count_of(stats, state);
    began = now;
  }
  auto const listed = co_await list_state(queue_, name, state, step_size, q.at("cursor"));
  if (listed.has_error()) {
    note(words.action, who, name, which, listed.error().message());
    co_return failed(listed.error());
  }
  // Jobs that come while it goes on are left alone. Dead letters are listed by when they died, so
  // those that die again are behind those of the beginning.
  auto const since = std::chrono::milliseconds{std::max<std::int64_t>(now - began, 0)};
  bool ended = false;
  std::vector<job_id> ids;
  for (auto const& j : listed->jobs) {
    if (state == job_state::dead && seen >= of) ended = true;
    if (ended) break;
    ++seen;
    bool const newer = state != job_state::dead && j.age < since;
    if (!newer && (kind.empty() || j.kind == kind)) ids.push_back(j.id);
  }
  auto const before = t.done;
  auto const refused_before = t.refused;
  auto const failure = co_await act_on(words.action, name, ids, t);
  changed += t.done - before;
  // Jobs that wait move about and may be missed: they are looked for until a pass finds nothing.
  if (listed->cursor.empty()) ended = ended || !waits || std::exchange(changed, 0) == 0;
  // How many there were in all is in the request, so it is for whoever asks, and not for the audit.
  auto const about =
      count_text(t.done - before) + " done, " + count_text(t.refused - refused_before) + " refused";
  note(words.action, who, name, which, failure ? failure.message() + " after " + about : about);
  if (failure) co_return failed(failure);

  auto first = q.at("first");  // of those that were refused
  if (first.empty() && !t.refusals.empty()) {
    first = to_string(t.refusals.front().first) + ": " + t.refusals.front().second;
  }
  page out{status::ok, words.verb};
  auto& m = out.main;
  auto const back = at("/queue", {{"queue", name}, {"state", to_string(state)}, {"filter", kind}});
  of = std::max(of, t.done + t.refused + t.gone);
  m << "<h1>"_html << (ended ? "Done" : "Going on")
    << "</h1><section id=bulk aria-live=polite><p>"_html << words.past << " <b id=done>"_html
    << t.done << "</b> of "_html << of << " in "_html << name;
  if (t.refused != 0) m << ", "_html << t.refused << " refused"_html;
  if (t.gone != 0) m << ", "_html << t.gone << " gone before"_html;
  m << "</p>"_html;
  auto const text = [](auto n) { return std::to_string(n); };
  if (!ended) {
    m << "<progress max=\""_html << text(of) << "\" value=\""_html
      << text(t.done + t.refused + t.gone)
      << "\"></progress><form method=post data-auto action=\""_html
      << at("/act", {{"action", to_string(words.action)},
                     {"queue", name},
                     {"state", to_string(state)},
                     {"kind", kind},
                     {"cursor", listed->cursor},
                     {"done", text(t.done)},
                     {"refused", text(t.refused)},
                     {"gone", text(t.gone)},
                     {"seen", text(seen)},
                     {"changed", text(changed)},
                     {"of", text(of)},
                     {"began", text(began)},
                     {"first", first}})
      << "\"><button>Continue</button> <a class=button href=\""_html << back
      << "\">Stop</a></form>"_html;
  } else {
    m << "<p>"_html << link(back, "Back to the queue") << "</p>"_html;
  }
  if (!first.empty()) m << "<p class=hint>Left as they are, such as "_html << first << "</p>"_html;
  m << "</section>"_html;
  co_return out;
}

}  // namespace weir::detail::web

#endif
