// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "session.hpp"
#include "weir/command/jobs.hpp"
#include "weir/schedules.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <string>
#include <tuple>

// Commands that act on queues and schedules as wholes.
namespace console {

answer hold_queues(session& s) {
  bool const pauses = s.o.command == "pause";
  int code = done;
  for (auto const& name : s.o.names) {
    if (name == weir::workers_queue) {
      code = s.refuse("weir keeps this queue for itself, and paused: see weirctl workers");
      continue;
    }
    auto const [ec, stats] = co_await s.queue.async_stats(name, as_value);
    if (ec) co_return s.fail(ec);
    // A mistyped name would be a new queue, and what was meant would go on.
    if (stats.enqueued == 0 && !stats.paused && !(pauses && s.o.fresh)) {
      code = s.refuse("there is no queue '" + name + "'" +
                      (pauses ? "; --new pauses one that has had no job yet" : ""));
      continue;
    }
    weir::error_code failed;
    weir::hint nothing;
    if (pauses) {
      std::tie(failed, nothing) = co_await s.queue.async_pause(name, as_value);
    } else {
      std::tie(failed, nothing) = co_await s.queue.async_resume(name, as_value);
    }
    if (failed) co_return s.fail(failed);
    row const cells{text_cell("queue", name), flag_cell("paused", pauses)};
    s.out.line((pauses ? "paused " : "resumed ") + name, json_of(cells));
  }
  co_return code;
}

answer act_on_schedules(session& s) {
  weir::schedules<any_store> const schedules{s.store};
  auto const verb = s.o.command.substr(s.o.command.find(' ') + 1);
  int code = done;
  for (auto const& name : s.o.names) {
    bool found = false;
    weir::error_code ec;
    std::string id;
    if (verb == "trigger") {
      auto const [failed, job] = co_await schedules.async_trigger(name, as_value);
      ec = failed;
      found = job.has_value();
      if (job) id = to_string(*job);
    } else if (verb == "pause") {
      std::tie(ec, found) = co_await schedules.async_pause(name, as_value);
    } else {
      std::tie(ec, found) = co_await schedules.async_resume(name, as_value);
    }
    if (ec) co_return s.fail(ec);
    if (!found) {
      code = s.refuse("there is no schedule '" + name + "'");
      continue;
    }
    row cells{text_cell("name", name), text_cell("done", verb)};
    if (!id.empty()) cells.push_back(word_cell("id", id));
    auto const past = verb + (verb.ends_with('e') ? "d " : "ed ");
    s.out.line(past + name + (id.empty() ? "" : ": job " + id), json_of(cells));
  }
  co_return code;
}

}  // namespace console
