// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/explain.hpp"

#include "session.hpp"

#include <boost/uuid/uuid_io.hpp>

#include <optional>
#include <string>
#include <utility>

// Why a job does not run: all that its record and its queue say. What only workers know is named as
// such, since an explanation with a gap that nobody sees is worse than none.
namespace console {

answer explain_job(session& s) {
  auto const id = to_id(s.o.ids.front());
  auto const [failed, why] = co_await weir::async_explain(s.queue, s.o.queue, id, as_value);
  if (failed) co_return s.fail(failed);
  if (!why) {
    auto const [ec, stats] = co_await s.queue.async_stats(s.o.queue, as_value);
    if (ec) co_return s.fail(ec);
    co_return s.refuse(stats.enqueued == 0
                           ? "this queue has never had a job: is its name right?"
                           : "there is no record of it in this queue: it was never there, or has "
                             "ended and its retention is over, or was purged");
  }
  auto const& j = why->record;
  bool const waits = !weir::is_terminal(j.state);
  if (s.out.is_json()) {
    auto because = json::array();
    for (auto const& [code, text] : why->because)
      because.push_back({{"code", code}, {"text", text}});
    s.out.add({word_cell("id", to_string(j.id)),
               text_cell("kind", j.kind),
               word_cell("state", to_string(j.state)),
               due_cell("due", waits ? std::optional{j.vests_in} : std::nullopt),
               {"because", std::move(because), {}},
               {"unknown", why->unknown, {}}});
    co_return done;
  }
  s.out.paragraph("", "Job " + to_string(j.id) + " of kind " + j.kind + " is " +
                          std::string{to_string(j.state)} + ".");
  for (auto const& [code, text] : why->because) s.out.paragraph("- ", text);
  for (auto const& text : why->unknown) s.out.paragraph("? ", "Not known here: " + text);
  co_return done;
}

}  // namespace console
