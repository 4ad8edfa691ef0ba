// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/console.hpp"

#include "weir/clock/manual.hpp"
#include "weir/console/explain.hpp"
#include "weir/console/guard.hpp"
#include "weir/console/html.hpp"
#include "weir/console/query.hpp"
#include "weir/console/text.hpp"
#include "weir/id_source.hpp"
#include "weir/job_headers.hpp"
#include "weir/rule/job_cursor.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace web = weir::detail::web;
namespace command = weir::command;
using namespace std::chrono_literals;
using web::operator""_html;
using action = weir::console_action;
using fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

constexpr std::string_view markup =
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\xff";
fields const own{{"Sec-Fetch-Site", "same-origin"}};

struct fixture {
  explicit fixture(weir::console_options o = {}, weir::memory_options const& with = {})
      : store{io.get_executor(), with, clock} {
    if (!o.audit) {
      o.audit = [this](weir::console_audit const& a) {
        audit.push_back(std::string{to_string(a.action)} + " " + std::string{a.on} + ": " +
                        std::string{a.outcome} + " by " + std::string{a.who});
      };
    }
    page.emplace(store, std::move(o), clock);
  }

  web::response ask(http::verb method, std::string_view target, fields with = {},
                    std::string body = {}) {
    web::request asked{method, target, 11};
    asked.set(http::field::host, "localhost:8047");
    for (auto const& [name, value] : with) asked.set(name, value);
    asked.body() = std::move(body);
    std::optional<web::response> out;
    page->async_handle(asked, [&](weir::error_code ec, web::response reply) {
      BOOST_TEST(!ec);
      out = std::move(reply);
    });
    io.restart();
    io.run();
    BOOST_TEST_REQUIRE(out.has_value());
    return std::move(*out);
  }
  web::response get(std::string_view target, fields with = {}) {
    return ask(http::verb::get, target, with);
  }
  web::response post(std::string_view target, fields with = own) {
    return ask(http::verb::post, target, with);
  }

  weir::job_id add(std::string_view queue, weir::new_job job) {
    job.id = ids.job();
    if (job.kind.empty()) job.kind = "kind";
    BOOST_TEST_REQUIRE(
        store.execute(command::enqueue_jobs{.queue = queue, .jobs = {&job, 1}}).has_value());
    return job.id;
  }
  weir::job_id bury(std::string_view queue, weir::new_job const& job, std::string_view reason) {
    auto const id = add(queue, job);
    auto const lease = store.execute(command::obtain_lease{queue, id, "worker", 1h, true});
    BOOST_TEST_REQUIRE(lease.value().has_value());
    auto const done = store.execute(command::bury_job{queue, id, (*lease)->fence, reason});
    BOOST_TEST_REQUIRE(done.has_value());
    return id;
  }
  weir::queue_stats stats(std::string_view queue) {
    return store.execute(command::read_queue_stats{queue}).value();
  }

  asio::io_context io;
  weir::manual_clock clock;
  weir::basic_memory_store<weir::manual_clock> store;
  weir::id_source ids;
  std::vector<std::string> audit;
  std::optional<weir::console> page;
};

weir::console_options allowing(std::vector<action> allow) {
  weir::console_options o;
  o.allow = std::move(allow);
  return o;
}
weir::console_options allowing_all() {
  return allowing({std::begin(weir::console_actions), std::end(weir::console_actions)});
}

weir::new_job of_kind(std::string_view kind) {
  weir::new_job job;
  job.kind = kind;
  return job;
}

bool has(web::response const& r, std::string_view text) {
  return r.body().find(text) != std::string::npos;
}
std::string target_of_job(std::string_view path, std::string_view queue, weir::job_id id) {
  return web::target_of(path, {{"queue", queue}, {"id", to_string(id)}});
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_means_itself) {
  web::html h;
  h << "<b>"_html << "<b>&\"'" << "</b>"_html << 12345
    << std::string{"\x1b[\xff\xe2\x80\xae\n\xc3\xbc"};
  BOOST_TEST(h.text() == "<b>&lt;b&gt;&amp;&quot;&#39;</b>12,345\\x1B[\\xFF\\u202E\\x0A\xc3\xbc");
  BOOST_TEST(web::html{}.lines("a\n\t<\r\v").text() == "a\n\t&lt;\\x0D\\x0B");
  // A letter that shows nothing, a joiner, and spaces that are none: names that look alike differ.
  BOOST_TEST((web::html{} << "a\u3164\u034F\u00A0\u2003\uFE0F").text() ==
             "a\\u3164\\u034F\\xA0\\u2003\\uFE0F");
  BOOST_TEST((web::html{} << "\xf3\xa0\x80\x81" << "\xc3").text() == "\\uE0001\\xC3");  // a tag;
                                                                                        // cut
}

BOOST_AUTO_TEST_CASE(any_bytes_come_back_from_a_target) {
  std::string all;
  for (int i = 0; i != 256; ++i) all += static_cast<char>(i);
  auto const read = web::query::parse(web::target_of("/queue", {{"queue", all}, {"id", ""}}));
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST(read->at("queue") == all);
  BOOST_TEST(read->path() == "/queue");
  BOOST_TEST(web::query::parse("/a?x=1+2&y=%41")->at("x") == "1 2");
  for (auto const* const wrong :
       {"", "a", "http://x/", "/?x", "/?x=%", "/?x=%4", "/?x=%4g", "/?x=%+4", "/?x=1&x=2", "*"}) {
    BOOST_TEST(!web::query::parse(wrong).has_value(), wrong);
  }
  std::string many = "/?";
  for (int i = 0; i != 17; ++i) many += "p" + std::to_string(i) + "=1&";
  BOOST_TEST(!web::query::parse(many).has_value());
  BOOST_TEST(!web::query::parse("/" + std::string(9000, 'a')).has_value());
  BOOST_TEST(web::query::parse("/?n=18446744073709551616")->number("n") == 0U);
}

BOOST_AUTO_TEST_CASE(every_page_is_there_and_shows_no_text_as_markup) {
  fixture f{allowing_all()};
  weir::job_headers const headers{{std::string{markup}, std::string{markup}}};
  weir::new_job job;
  job.kind = job.payload = markup;
  job.headers = headers.text();
  job.unique_key = markup;
  job.strategy = weir::unique_strategy::until_executed;
  auto const id = f.bury(markup, job, markup);
  auto const held = f.add(markup, of_kind(markup));
  BOOST_TEST(
      f.store.execute(command::obtain_lease{markup, held, markup, 1h, true}).value().has_value());
  BOOST_TEST(f.store.execute(command::acquire_permit{markup, markup, 1, 1h}).has_value());
  auto const in_queue = [](std::string_view state) {
    return web::target_of("/queue", {{"queue", markup}, {"state", state}});
  };
  for (auto const& target :
       {std::string{"/"}, std::string{"/queues"}, std::string{"/dead"}, std::string{"/workers"},
        in_queue("dead"), in_queue("leased"), in_queue("pending"),
        target_of_job("/job", markup, id), web::target_of("/queues", {{"under", markup}}),
        web::target_of("/limits", {{"noun", "limiter"}, {"key", markup}}),
        web::target_of(
            "/confirm",
            {{"action", "purge"}, {"queue", markup}, {"state", "dead"}, {"kind", markup}}),
        target_of_job("/confirm?action=replay", markup, id)
            .replace(std::string_view{"/confirm?action=replay"}.size(), 1, "&")}) {
    auto const reply = f.get(target, own);
    BOOST_TEST(reply.result_int() == 200U, target);
    BOOST_TEST(!has(reply, "<script>alert"), target);
    BOOST_TEST(!has(reply, "<img"), target);
    BOOST_TEST(has(reply, "&lt;script&gt;alert(1)&lt;/script&gt;"), target);
    BOOST_TEST(reply["Content-Security-Policy"].find("default-src 'none'") == 0U);
    BOOST_TEST(reply["X-Content-Type-Options"] == "nosniff");
  }
  BOOST_TEST(f.get("/schedules").result_int() == 200U);
  BOOST_TEST(f.get("/limits?noun=bucket&key=k&tokens=5&seconds=1").body().find("5 of 5") !=
             std::string::npos);
  BOOST_TEST(f.get("/limits?noun=bucket&key=k&tokens=0").result_int() == 400U);
  // It goes with a script of its own file, and none within.
  BOOST_TEST(f.get("/page.js")["Content-Type"] == "text/javascript; charset=utf-8");
  BOOST_TEST(f.get("/page.js").body().size() < 20'000U);
  BOOST_TEST(f.get("/page.css").body().size() < 20'000U);
}

BOOST_AUTO_TEST_CASE(methods_and_places_that_are_not_there) {
  fixture f{allowing_all()};
  f.add("mail", {});
  BOOST_TEST(f.get("/nothing").result_int() == 404U);
  BOOST_TEST(f.get("/queue?queue=none").result_int() == 404U);
  BOOST_TEST(f.get("/queue?queue=").result_int() == 400U);
  BOOST_TEST(f.get("/job?queue=mail&id=7").result_int() == 400U);
  BOOST_TEST(f.get(target_of_job("/job", "mail", f.ids.job())).result_int() == 404U);
  BOOST_TEST(f.get("/queue?queue=mail&cursor=%FF").result_int() == 400U);
  BOOST_TEST(f.get("/act?action=pause&queue=mail", own).result_int() == 405U);
  BOOST_TEST(f.post("/queues").result_int() == 405U);
  BOOST_TEST(f.post("/act?action=pause&queue=none").result_int() == 404U);
  for (auto const* const wrong :
       {"/act?action=nothing&queue=mail", "/act?action=replay&queue=mail&id=7",
        "/act?action=replay&queue=mail&state=pending", "/act?action=pause",
        "/act?action=cancel&queue=weir.schedules/mail&state=pending", "/act"}) {
    BOOST_TEST(f.post(wrong).result_int() == 400U, wrong);
  }
  auto const head = f.ask(http::verb::head, "/");
  BOOST_TEST(head.result_int() == 200U);
  BOOST_TEST(head.body().empty());
  BOOST_TEST(f.ask(http::verb::post, "/act?action=pause&queue=mail", own, std::string(5000, 'x'))
                 .result_int() == 413U);
  BOOST_TEST(f.post("/act?action=pause&queue=mail",
                    {{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", "text/plain"}})
                 .result_int() == 415U);
  BOOST_TEST(!f.stats("mail").paused);
}

BOOST_AUTO_TEST_CASE(a_prefix_is_of_every_link) {
  auto o = allowing_all();
  o.prefix = "/ops/weir";
  fixture f{o};
  f.add("mail", {});
  auto const reply = f.get("/ops/weir");
  BOOST_TEST(has(reply, "href=\"/ops/weir/page.css\""));
  BOOST_TEST(has(reply, "href=\"/ops/weir/queue?queue=mail\""));
  BOOST_TEST(!has(reply, "href=\"/q"));
  BOOST_TEST(has(reply, "data-events=\"/ops/weir/events?view=%2F\""));
  BOOST_TEST(f.get("/ops/weir?x=1").result_int() == 200U);
  BOOST_TEST(f.get("/queues").result_int() == 400U);
  BOOST_TEST(f.post("/ops/weir/act?action=pause&queue=mail")["Location"] ==
             "/ops/weir/queue?queue=mail");
  for (auto const* const wrong : {"ops", "/ops/", "//evil", "/a\"b", "/"}) {
    weir::console_options bad;
    bad.prefix = wrong;
    BOOST_CHECK_THROW((weir::console{f.store, bad}), std::invalid_argument);
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_changed_without_its_right) {
  fixture f{allowing({action::pause})};
  auto const dead = f.bury("mail", {}, "broken");
  auto const waits = f.add("mail", {});
  BOOST_TEST(!has(f.get(target_of_job("/job", "mail", dead)), "/confirm"));
  for (auto const& [name, id] :
       {std::pair{"replay", dead}, std::pair{"purge", dead}, std::pair{"cancel", waits}}) {
    auto const with =
        web::target_of("", {{"action", name}, {"queue", "mail"}, {"id", to_string(id)}});
    BOOST_TEST(f.post("/act" + with).result_int() == 403U);
    BOOST_TEST(f.get("/confirm" + with, own).result_int() == 403U);
  }
  BOOST_TEST(f.post("/act?action=replay&queue=mail&state=dead").result_int() == 403U);
  BOOST_TEST(f.post("/act?action=resume&queue=mail").result_int() == 403U);
  BOOST_TEST(f.post("/act?action=trigger_schedule&name=x").result_int() == 403U);
  BOOST_TEST((f.stats("mail").dead == 1 && f.stats("mail").pending == 1));
  BOOST_TEST(f.audit.size() == 6U);
  BOOST_TEST(f.audit.front() == "replay mail: refused: not allowed by ");
  BOOST_TEST(f.post("/act?action=pause&queue=mail").result_int() == 303U);
  BOOST_TEST(f.stats("mail").paused);
  BOOST_TEST(f.audit.back() == "pause mail: done by ");
}

BOOST_AUTO_TEST_CASE(who_asks_is_in_the_audit) {
  auto o = allowing_all();
  o.who = [](http::request_header<> const& asked) { return std::string{asked["X-User"]}; };
  fixture f{o};
  f.add("mail", {});
  f.post("/act?action=pause&queue=mail", {{"Sec-Fetch-Site", "same-origin"}, {"X-User", "ann"}});
  fields const eve{{"Sec-Fetch-Site", "cross-site"}, {"X-User", "eve"}};
  std::string const refused = "pause : refused: This did not come from a page of this console.";
  for (int i = 0; i != 4; ++i) f.post("/act?action=pause&queue=mail", eve);
  BOOST_TEST(f.audit.size() == 2U);  // others can have any number of them refused
  BOOST_TEST(f.audit.front() == "pause mail: done by ann");
  BOOST_TEST(f.audit.back() == refused + " by eve");
  f.clock.advance(1s);
  f.post("/act?action=pause&queue=mail", eve);
  BOOST_TEST(f.audit.back() == refused + " (and 3 before it) by eve");
  f.post("/act?action=purge&queue=weir.schedules%2Fmail&state=dead&name=x");
  BOOST_TEST(f.audit.back() == "purge weir.schedules/mail: refused: not valid by ");
  f.post("/act?action=pause&queue=ma&name=il");
  BOOST_TEST(f.audit.back() == "pause ma: refused: no such queue by ");
  f.clock.advance(1s);
  f.get("/act?action=pause&queue=mail", own);
  BOOST_TEST(f.audit.back() == "pause : refused: it is asked for by POST by ");
}

BOOST_AUTO_TEST_CASE(only_its_own_pages_change_something) {
  fixture f{allowing_all()};
  f.add("mail", {});
  auto const act = "/act?action=pause&queue=mail";
  for (fields const& wrong : std::initializer_list<fields>{
           {},
           {{"Sec-Fetch-Site", "none"}},
           {{"Sec-Fetch-Site", "same-site"}},
           {{"Sec-Fetch-Site", "cross-site"}},
           {{"Sec-Fetch-Site", "Same-Origin"}},
           {{"Origin", "null"}},
           {{"Origin", "http://evil.test"}},
           {{"Origin", "http://localhost"}},
           {{"Origin", "ftp://localhost:8047"}},
           {{"Origin", "http://localhost:8047"}, {"Sec-Fetch-Site", "cross-site"}}}) {
    BOOST_TEST(f.post(act, wrong).result_int() == 403U);
  }
  BOOST_TEST(!f.stats("mail").paused);
  BOOST_TEST(f.post(act, {{"Origin", "http://localhost:8047"}}).result_int() == 303U);  // an old
                                                                                        // browser
  BOOST_TEST(f.post(act, {{"Origin", "https://localhost:8047"}}).result_int() == 303U);
  // Others read nothing, but for a link that an operator follows, and have no stream.
  fields const link{{"Sec-Fetch-Site", "cross-site"},
                    {"Sec-Fetch-Mode", "navigate"},
                    {"Sec-Fetch-Dest", "document"}};
  fields const frame{{"Sec-Fetch-Site", "cross-site"},
                     {"Sec-Fetch-Mode", "navigate"},
                     {"Sec-Fetch-Dest", "iframe"}};
  BOOST_TEST(f.get("/queues", link).result_int() == 200U);
  BOOST_TEST(f.get("/events?view=/", link).result_int() == 403U);
  BOOST_TEST(f.get("/confirm?action=pause&queue=mail", link).result_int() == 403U);  // or a key
                                                                                     // answers it
  BOOST_TEST(f.get("/queues", frame).result_int() == 403U);
  // Over plain HTTP, by a name that is not of the host itself, browsers do not say as much.
  for (auto const* const inner : {"/events?view=/", "/confirm?action=pause&queue=mail"}) {
    for (fields const& wrong :
         std::initializer_list<fields>{{},
                                       {{"Referer", "http://evil.test/"}},
                                       {{"Referer", "http://localhost:8047.evil.test/"}},
                                       {{"Referer", "ftp://localhost:8047/"}},
                                       {{"Referer", "http://evil.test/?://localhost:8047/"}},
                                       {{"Origin", "null"}}}) {
      BOOST_TEST(f.get(inner, wrong).result_int() == 403U, inner);
    }
    BOOST_TEST(f.get(inner, {{"Referer", "http://localhost:8047/queue"}}).result_int() == 200U);
    BOOST_TEST(f.get(inner, {{"Origin", "https://localhost:8047"}}).result_int() == 200U);
  }
  BOOST_TEST(f.get("/queues", {{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "cors"}})
                 .result_int() == 403U);
}

BOOST_AUTO_TEST_CASE(it_answers_to_its_names_only) {
  auto o = allowing_all();
  o.hosts.emplace_back("ops.example");
  fixture f{o};
  for (auto const* const good :
       {"localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:8047", "[::1]", "ops.example"}) {
    BOOST_TEST(f.get("/", {{"Host", good}}).result_int() == 200U, good);
  }
  for (auto const* const wrong :
       {"evil.test", "localhost.evil.test", "127.0.0.1.evil.test:80", "::1", "[::2]", "localhos",
        "localhost:80@evil.test", "[::1]evil.test:1"}) {
    BOOST_TEST(f.get("/", {{"Host", wrong}}).result_int() == 421U, wrong);
    BOOST_TEST(
        f.post("/act?action=pause&queue=mail", {{"Host", wrong}, {"Sec-Fetch-Site", "same-origin"}})
            .result_int() == 421U);
  }
  BOOST_TEST(f.get("/?x", {{"Host", "evil.test"}}).result_int() == 421U);  // whatever it asks for
  BOOST_TEST(f.get("/", {{"Host", ""}}).result_int() == 400U);
  web::request twice{http::verb::get, "/", 11};
  twice.insert(http::field::host, "localhost");
  twice.insert(http::field::host, "evil.test");
  BOOST_TEST(web::refused(twice, o.hosts, false, web::openness::page)->code ==
             http::status::bad_request);
}

BOOST_AUTO_TEST_CASE(what_is_not_to_be_seen_is_on_no_page) {
  auto o = allowing_all();
  o.redact = [](weir::job const&, std::string_view field, std::string text) -> std::string {
    if (field == "memo") throw std::runtime_error{"broken"};
    return field == "payload" ? text.substr(0, 2) + "***" : "[" + std::string{field} + "]";
  };
  fixture f{o};
  weir::job_headers const headers{{"token", "secret"}};
  weir::new_job job;
  job.payload = job.unique_key = "secret";
  job.strategy = weir::unique_strategy::until_executed;
  job.headers = headers.text();
  auto const dead = f.bury("mail", job, "secret");
  job.unique_key = "secret2";
  auto const waits = f.add("mail", job);
  auto const l = f.store.execute(command::obtain_lease{"mail", waits, "w", 1h, true}).value();
  BOOST_TEST(f.store.execute(command::extend_lease{"mail", waits, l->fence, 1h, "secret", "secret"})
                 .has_value());
  for (auto const& target :
       {target_of_job("/job", "mail", dead), target_of_job("/job", "mail", waits),
        std::string{"/dead"}, std::string{"/workers"}, std::string{"/queue?queue=mail&state=dead"},
        std::string{"/queue?queue=mail&state=leased"}}) {
    BOOST_TEST(!has(f.get(target), "secret"), target);
  }
  BOOST_TEST(
      f.store.execute(command::snooze_job{"mail", waits, l->fence, 1h, "secret"}).has_value());
  auto const reply = f.get(target_of_job("/job", "mail", waits));
  BOOST_TEST(!has(reply, "secret"));
  BOOST_TEST(has(reply, "(redacted)"));
  BOOST_TEST(has(reply, "se***"));
  BOOST_TEST(has(reply, "[header token]"));
  job.kind = weir::schedule_kind;
  auto const schedule = f.add("weir.schedules/mail", job);
  auto const kept = f.get(target_of_job("/job", "weir.schedules/mail", schedule));
  BOOST_TEST(kept.result_int() == 200U);
  BOOST_TEST((!has(kept, "secret") && !has(kept, "se***")));
}

BOOST_AUTO_TEST_CASE(a_queue_that_is_held_back_is_explained_in_a_store_of_many_shards) {
  weir::memory_options with;
  with.shards = 8;
  fixture f{{}, with};
  std::string_view const text = "The queue is held back for a time: a limit of all its jobs was "
                                "reached, or somebody has snoozed it.";
  auto const due = f.add("mail", {});
  BOOST_TEST(!has(f.get(target_of_job("/job", "mail", due)), text));
  BOOST_TEST(f.store.execute(command::snooze_queue{"mail", 1h}).has_value());
  BOOST_TEST(has(f.get(target_of_job("/job", "mail", due)), text));
}

BOOST_AUTO_TEST_CASE(a_queue_of_schedules_with_a_due_job_is_not_called_held_back) {
  fixture f;
  auto const due = f.add("weir.schedules/mail", of_kind(weir::schedule_kind));
  BOOST_TEST(
      !has(f.get(target_of_job("/job", "weir.schedules/mail", due)), "The queue is held back"));
}

BOOST_AUTO_TEST_CASE(a_job_of_the_same_key_that_runs_is_found_behind_many_records) {
  fixture f;
  auto job = of_kind("kind");
  job.retention = 1h;
  for (int i = 0; i != 1001; ++i) {
    auto const id = f.add("mail", job);
    BOOST_TEST_REQUIRE(f.store.execute(command::cancel_job{"mail", id}).has_value());
  }
  job.strategy = weir::unique_strategy::while_executing;
  job.unique_key = "one at a time";
  auto const runs = f.add("mail", job);
  BOOST_TEST(
      f.store.execute(command::obtain_lease{"mail", runs, "w", 1h, true}).value().has_value());
  auto const waits = f.add("mail", job);
  BOOST_TEST(has(f.get(target_of_job("/job", "mail", waits)),
                 to_string(runs) + " has the same unique key"));
}

BOOST_AUTO_TEST_CASE(workers_that_are_busy_or_stop_are_why_a_job_waits) {
  weir::detail::known_workers known;
  known.is_all = true;
  auto& worker = known.alive.emplace_back();
  worker.name = "the one";
  worker.concurrency = 2;
  worker.busy = 2;
  worker.kinds.resize(1);
  worker.kinds.front().kind = "kind";
  weir::job job;
  job.kind = "kind";
  auto const why = [&](bool waits) {
    weir::job_explanation out;
    auto const* const limits = weir::detail::explain_workers(known, 1, "mail", job, waits, out);
    BOOST_TEST(limits == worker.find_kind("kind"));
    BOOST_TEST_REQUIRE(out.because.size() == 1U);
    BOOST_TEST(out.because.front().text.find("the one") != std::string::npos);
    return out.because.front().code;
  };
  BOOST_TEST(why(true) == "workers_busy");
  BOOST_TEST(why(false) == "workers");
  worker.busy = 1;
  BOOST_TEST(why(true) == "workers");
  worker.stopping = true;
  BOOST_TEST(why(true) == "workers_stopping");
}

BOOST_AUTO_TEST_CASE(pages_lead_to_each_other_and_none_is_long) {
  weir::console_options o;
  o.page_size = 10;
  fixture f{o};
  for (int i = 0; i != 1500; ++i) f.add("mail", of_kind(i == 1400 ? "rare" : "usual"));
  std::string target = "/queue?queue=mail";
  std::size_t rows = 0;
  std::size_t pages = 0;
  auto const walk = [&] {
    rows = pages = 0;
    while (!target.empty()) {
      auto const text = f.get(target).body();
      ++pages;
      std::size_t here = 0;
      for (auto at = text.find("data-label=\"Job\""); at != text.npos;
           at = text.find("data-label=\"Job\"", at + 1))
        ++here;
      BOOST_TEST_REQUIRE(here <= 20U);
      rows += here;
      auto const next = text.find("\">Next page");
      auto const begin = text.rfind("href=\"", next) + 6;
      target = next == text.npos ? "" : text.substr(begin, next - begin);
      for (auto at = target.find("&amp;"); at != target.npos; at = target.find("&amp;"))
        target.erase(at + 1, 4);
    }
  };
  walk();
  BOOST_TEST(rows == 1500U);
  BOOST_TEST(pages == 150U);
  target = "/queue?queue=mail&filter=rare";
  walk();
  BOOST_TEST(rows == 1U);
  BOOST_TEST(pages == 2U);  // of a thousand records each
}

BOOST_AUTO_TEST_CASE(a_page_of_few_among_many_looks_at_a_thousand_records) {
  weir::console_options o;
  o.page_size = 10;
  fixture f{o};
  std::vector<weir::job_id> all;
  for (int i = 0; i != 3000; ++i) {
    auto job = of_kind("kind");
    job.retention = 1h;
    all.push_back(f.add("mail", job));
    if (i % 50 != 0) continue;  // so the store looks at 500 for a page
    BOOST_TEST(f.store.execute(command::cancel_job{"mail", all.back()}).has_value());
  }
  auto const text = f.get("/queue?queue=mail&state=cancelled&filter=absent").body();
  auto const next = text.find("\">Next page");
  auto const begin = text.rfind("cursor=", next) + 7;
  auto const after = weir::rule::cursor_bytes(text.substr(begin, next - begin)).value();
  auto const seen = std::ranges::count_if(all, [&](weir::job_id const& id) {
    return std::string_view{reinterpret_cast<char const*>(id.begin()), id.size()} <= after;
  });
  BOOST_TEST(seen <= 1000);
  BOOST_TEST(seen > 900);
}

BOOST_AUTO_TEST_CASE(leases_of_many_queues_are_on_one_page) {
  fixture f;
  for (int i = 0; i != 101; ++i) {
    auto const queue = "queue " + std::to_string(1000 + i);
    f.add(queue, {});
    auto const got = f.store.execute(command::dequeue_jobs{
        .queue = queue, .holder = "holder " + std::to_string(i % 40), .limit = 1, .lease = 1h});
    BOOST_TEST_REQUIRE(got.value().jobs.size() == 1U);
  }
  auto const page = f.get("/workers");
  for (int i = 0; i != 16; ++i) BOOST_TEST(has(page, "holder " + std::to_string(i) + "<"));
  BOOST_TEST(has(page, "Of 16 leases; there are more."));
}

BOOST_AUTO_TEST_CASE(many_are_replayed_by_bounded_steps) {
  fixture f{allowing_all()};
  for (int i = 0; i != 1100; ++i) f.bury("bulk", of_kind(i % 2 == 0 ? "even" : "odd"), "broken");
  weir::new_job job;
  job.unique_key = "taken";
  job.strategy = weir::unique_strategy::until_executed;
  f.bury("bulk", job, "broken");
  f.add("bulk", job);
  std::string target = "/act?action=replay&queue=bulk&state=dead";
  std::vector<std::uint64_t> left;
  web::response reply;
  while (!target.empty() && left.size() != 10) {
    reply = f.post(target);
    BOOST_TEST_REQUIRE(reply.result_int() == 200U);
    left.push_back(f.stats("bulk").dead);
    f.bury("bulk", {}, "died meanwhile");  // is none of those that there were
    auto const text = reply.body();
    auto const begin = text.find("data-auto action=\"");
    target =
        begin == text.npos ? "" : text.substr(begin + 18, text.find('"', begin + 18) - begin - 18);
    for (auto at = target.find("&amp;"); at != target.npos; at = target.find("&amp;"))
      target.erase(at + 1, 4);
  }
  BOOST_TEST((left == std::vector<std::uint64_t>{601, 102, 3}));
  BOOST_TEST(has(reply, "<b id=done>1,100</b> of 1,101"));
  BOOST_TEST(has(reply, "its unique key was taken meanwhile"));
  BOOST_TEST(f.audit.size() == 3U);
  BOOST_TEST(f.audit.front() == "replay bulk: 500 done, 0 refused by ");
  f.post("/act?action=replay&queue=bulk&state=dead&began=1&done=99&refused=9&of=999");
  BOOST_TEST(f.audit.back().starts_with("replay bulk: "));
  BOOST_TEST(f.audit.back().ends_with(" done, 1 refused by "));  // and not what the request says
}

BOOST_AUTO_TEST_CASE(a_purge_of_all_that_are_completed_leaves_those_that_came_since) {
  fixture f{allowing_all()};
  auto const complete = [&] {
    weir::new_job job;
    job.retention = 1h;
    auto const id = f.add("bulk", job);
    auto const lease = f.store.execute(command::obtain_lease{"bulk", id, "worker", 1h, true});
    weir::finished_job const done{.id = id, .fence = (**lease).fence, .result = {}};
    BOOST_TEST_REQUIRE(f.store.execute(command::complete_jobs{"bulk", {&done, 1}}).has_value());
    return id;
  };
  for (int i = 0; i != 600; ++i) complete();
  f.clock.advance(1s);
  auto const target = [](web::response const& reply) {
    auto const& text = reply.body();
    auto const begin = text.find("data-auto action=\"") + 18;
    auto out = text.substr(begin, text.find('"', begin) - begin);
    for (auto at = out.find("&amp;"); at != out.npos; at = out.find("&amp;")) out.erase(at + 1, 4);
    return out;
  };
  auto const first = f.post("/act?action=purge&queue=bulk&state=completed");
  BOOST_TEST(f.stats("bulk").purged == 500U);
  f.clock.advance(1s);
  auto const late = complete();
  auto const last = f.post(target(first));
  BOOST_TEST(has(last, "Done"));
  BOOST_TEST(f.stats("bulk").purged == 600U);
  BOOST_TEST(f.store.execute(command::find_job{"bulk", late}).value().has_value());
}

BOOST_AUTO_TEST_CASE(what_is_done_is_noted_though_whoever_asked_has_gone) {
  fixture f{allowing_all()};
  for (int i = 0; i != 400; ++i) f.bury("bulk", {}, "broken");
  web::request asked{http::verb::post, "/act?action=replay&queue=bulk&state=dead", 11};
  asked.set(http::field::host, "localhost");
  asked.set("Sec-Fetch-Site", "same-origin");
  asio::cancellation_signal gone;
  bool ended = false;
  f.page->async_handle(asked,
                       asio::bind_cancellation_slot(gone.slot(), [&](auto...) { ended = true; }));
  f.io.restart();
  while (f.stats("bulk").dead == 400U) BOOST_TEST_REQUIRE(f.io.run_one() == 1U);
  gone.emit(asio::cancellation_type::terminal);
  f.io.run();
  BOOST_TEST(ended);
  BOOST_TEST(f.stats("bulk").dead == 0U);
  BOOST_TEST_REQUIRE(f.audit.size() == 1U);
  BOOST_TEST(f.audit.front() == "replay bulk: 400 done, 0 refused by ");
}

BOOST_AUTO_TEST_CASE(the_right_to_end_running_jobs_ends_no_other) {
  fixture f{allowing({action::cancel_running})};
  auto const id = f.add("mail", {});
  auto const reply =
      f.post(target_of_job("/act?action=cancel_running", "mail", id).replace(26, 1, "&"));
  BOOST_TEST(reply.result_int() == 409U);
  BOOST_TEST(has(reply, "it is not leased"));
  BOOST_TEST((f.stats("mail").pending == 1U && f.stats("mail").cancelled == 0U));
  BOOST_TEST(f.audit.back() == "cancel_running mail: refused: it is not leased by ");
}

BOOST_AUTO_TEST_CASE(what_is_cut_shows_that_it_is) {
  fixture f;
  weir::new_job job;
  auto const id = f.bury("mail", job, std::string(400, '\x80') + "REASON");
  BOOST_TEST(has(f.get("/queue?queue=mail&state=dead"), "\\x80\\x80…</span>"));
  BOOST_TEST(has(f.get(target_of_job("/job", "mail", id)), "REASON"));
  BOOST_TEST(web::beginning("aä", 2) == "a");
  BOOST_TEST(web::beginning(std::string(10, '\x80'), 8).size() == 5U);
}

// weirctl shows other bytes than printable ASCII by their numbers.
BOOST_AUTO_TEST_CASE(what_a_worker_serves_is_said_in_ascii) {
  weir::registered_worker w;
  w.queues.resize(6);
  w.queues[1].name = "mail";
  w.queues[2].prefix = "tenant/";
  w.shards.resize(9);
  w.kinds.resize(6);
  for (auto& k : w.kinds) k.kind = "k";
  BOOST_TEST(weir::detail::served_text(w) ==
             "all others, mail, tenant/..., all others, all others, ...");
  w.queues.resize(1);
  BOOST_TEST(weir::detail::served_text(w) == "all others; shards 0 0 0 0 0 0 0 0 ...");
  BOOST_TEST(weir::detail::kinds_text(w) == "k, k, k, k, k, ...");
}

BOOST_AUTO_TEST_CASE(an_action_says_why_it_is_not_done) {
  fixture f{allowing_all()};
  auto const id = f.add("mail", {});
  BOOST_TEST(f.store.execute(command::obtain_lease{"mail", id, "w", 1h, true}).value().has_value());
  auto const reply = f.post(target_of_job("/act?action=cancel", "mail", id).replace(18, 1, "&"));
  BOOST_TEST(reply.result_int() == 409U);
  BOOST_TEST(has(reply, "it is leased"));
  BOOST_TEST(f.post(target_of_job("/act?action=cancel_running", "mail", id).replace(26, 1, "&"))
                 .result_int() == 303U);
  BOOST_TEST(f.stats("mail").cancelled == 1U);
}

BOOST_AUTO_TEST_CASE(a_stream_tells_what_changes_and_there_are_few) {
  weir::console_options o;
  o.streams = 1;
  fixture f{o};
  f.add("mail", {});
  web::request asked{http::verb::get, "/events?view=%2Fqueue%3Fqueue%3Dmail", 11};
  asked.set(http::field::host, "localhost");
  BOOST_TEST(!f.page->open_stream(asked).has_value());  // nobody says who asks
  asked.set("Sec-Fetch-Site", "same-origin");
  auto stream = f.page->open_stream(asked);
  BOOST_TEST_REQUIRE(stream.has_value());
  BOOST_TEST(stream->head()["Content-Security-Policy"].find("default-src 'none'") == 0U);
  BOOST_TEST(stream->head()["Cross-Origin-Resource-Policy"] == "same-origin");
  BOOST_TEST(!f.page->open_stream(asked).has_value());
  BOOST_TEST(f.get(asked.target(), own).body().starts_with("retry: 10000\ndata: "));  // asks again
                                                                                      // instead
  std::vector<std::string> told;
  weir::error_code ended;
  asio::cancellation_signal stop;
  auto const next = [&] {
    stream->async_next(
        asio::bind_cancellation_slot(stop.slot(), [&](weir::error_code ec, std::string text) {
          ended = ec;
          if (!ec) told.push_back(std::move(text));
        }));
    f.io.restart();
    f.io.poll();
  };
  next();
  BOOST_TEST_REQUIRE(told.size() == 1U);
  BOOST_TEST(told.back().find("pending <b>1</b>") != std::string::npos);
  BOOST_TEST(told.back().ends_with("\n\n"));
  f.add("mail", {});
  next();
  BOOST_TEST(told.size() == 1U);  // not before its time
  f.clock.advance(2s);
  f.io.restart();
  f.io.poll();
  BOOST_TEST_REQUIRE(told.size() == 2U);
  BOOST_TEST(told.back().find("pending <b>2</b>") != std::string::npos);
  next();
  stop.emit(asio::cancellation_type::terminal);
  f.io.restart();
  f.io.poll();
  BOOST_TEST((ended == asio::error::operation_aborted));
  stream.reset();
  BOOST_TEST(f.page->open_stream(asked).has_value());
  for (auto const* const wrong :
       {"/events", "/events?view=/act", "/events?view=nonsense", "/queues"}) {
    asked.target(wrong);
    BOOST_TEST(!f.page->open_stream(asked).has_value(), wrong);
  }
  asked.target("/events?view=/");
  asked.set("Sec-Fetch-Site", "same-site");
  BOOST_TEST(!f.page->open_stream(asked).has_value());
}

BOOST_AUTO_TEST_CASE(a_store_that_is_full_of_trouble_is_told_on_the_page) {
  fixture f{allowing_all()};
  BOOST_TEST(f.get("/queue?queue=" + std::string(2000, 'q')).result_int() == 400U);
  auto const failed = web::failed(make_error_code(weir::errc::store_unavailable));
  BOOST_TEST((failed.code == http::status::service_unavailable));
}
