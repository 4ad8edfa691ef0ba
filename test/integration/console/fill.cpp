// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Fills a store for the test of weirctl: a job in every state, what strangers may write, many dead
// letters, schedules, permits and locks. Prints the jobs' ids by name, as JSON.
//
// usage: fill URL states | fill URL dead COUNT CONFLICTS | fill URL waiting COUNT | fill URL kill |
//        fill URL empty | fill URL markup | fill URL thumbs COUNT | fill URL work |
//        fill URL many JOBS QUEUES WORKERS SCHEDULES [stay]

#include "../../../example/console/any_store.hpp"
#include "weir/command/permits.hpp"
#include "weir/id_source.hpp"
#include "weir/job_headers.hpp"
#include "weir/job_progress.hpp"
#include "weir/job_traits.hpp"
#include "weir/log.hpp"
#include "weir/registered_worker.hpp"
#include "weir/schedules.hpp"
#include "weir/worker.hpp"

#ifdef CONSOLE_WITH_SQLITE
#include "weir/store/sqlite.hpp"
#endif
#ifdef CONSOLE_WITH_REDIS
#include "weir/store/redis.hpp"
#endif
#ifdef CONSOLE_WITH_POSTGRES
#include "weir/store/postgres.hpp"
#endif
#ifdef CONSOLE_WITH_NATS
#include "weir/store/nats.hpp"
#endif

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct report {
  int day = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(report, day)

template <>
struct weir::job_traits<report> {
  static constexpr std::string_view kind = "report";
  static constexpr std::string_view queue = "reports";
};

/// Of which one runs at a time, and one may start in an hour.
struct thumbnail {
  int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(thumbnail, number)

template <>
struct weir::job_traits<thumbnail> {
  static constexpr std::string_view kind = "thumbnail";
  static constexpr std::string_view queue = "thumbs";
  static constexpr std::uint32_t concurrency = 1;
  static constexpr weir::quota rate = weir::quota::per_hour(1);
};

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
namespace command = weir::command;

template <class... Ps, class... Bs, class... Js>
console::erased_store<command::acquire_lock, Ps..., Bs..., Js...> store_for(
    command::list_of<Ps...>, command::list_of<Bs...>, command::list_of<Js...>);

/// A store that can also take permits, locks and tokens, and do what a worker does.
using full_store =
    decltype(store_for(command::permit_commands::list{}, command::bucket_commands::list{},
                       command::job_commands::list{}));

/// A job, of which most is as usual.
struct wanted {
  std::string_view kind = "send";
  std::string_view payload = R"({"to":"ann@example.com"})";
  std::uint8_t priority = 100;
  weir::duration delay{};
  std::uint32_t max_attempts = 25;
  std::string_view unique_key{};
  weir::unique_strategy strategy = weir::unique_strategy::none;
  weir::duration deadline{};
  weir::duration retention{};
  std::string_view headers{};
};

class filler {
 public:
  filler(asio::io_context& io, full_store store) : io_{io}, store_{std::move(store)} {}

  template <class C>
  typename C::result ask(C const& c) {
    std::optional<typename C::result> out;
    weir::error_code failed;
    bool ended = false;
    store_.async_execute(c, [&](weir::error_code ec, typename C::result r) {
      failed = ec;
      out.emplace(std::move(r));
      ended = true;
    });
    while (!ended) io_.run_one();
    if (failed) throw boost::system::system_error{failed};
    return std::move(*out);
  }

  /// Asks all at once.
  template <class C>
  std::vector<typename C::result> ask_all(std::vector<C> const& commands) {
    std::vector<typename C::result> out(commands.size());
    std::size_t left = commands.size();
    for (std::size_t i = 0; i != commands.size(); ++i) {
      store_.async_execute(commands[i], [&, i](weir::error_code ec, typename C::result r) {
        if (ec) throw boost::system::system_error{ec};
        out[i] = std::move(r);
        --left;
      });
    }
    while (left != 0) io_.run_one();
    return out;
  }

  weir::job_id add(std::string const& name, std::string_view queue, wanted const& w) {
    weir::new_job job;
    job.id = ids_.job();
    job.kind = w.kind;
    job.payload = w.payload;
    job.priority = w.priority;
    job.delay = w.delay;
    job.max_attempts = w.max_attempts;
    job.unique_key = w.unique_key;
    job.strategy = w.strategy;
    job.deadline = w.deadline;
    job.retention = w.retention;
    job.headers = w.headers;
    ask(command::enqueue_jobs{.queue = queue, .jobs = {&job, 1}});
    names_[name] = to_string(job.id);
    return job.id;
  }
  weir::leased_job lease(std::string_view queue, weir::job_id id, weir::duration how_long = 1h) {
    return ask(command::obtain_lease{queue, id, "worker-7", how_long, true}).value();
  }

  void states() {
    std::string_view const q = "mail";
    add("due", q, {});
    add("later", q, {.delay = 1h});
    add("urgent", q, {.priority = 1});

    weir::job_headers const headers{{"tenant", "acme"}, {"traceparent", "00-4bf92f35-01"}};
    auto id = add("leased", q, {.headers = headers.text()});
    auto held = lease(q, id);
    ask(command::extend_lease{q, id, held.fence, 1h, "3/10 the third page", "abcde"});

    id = add("dead", q, {});
    ask(command::bury_job{q, id, lease(q, id).fence, "no such address"});
    id = add("completed", q, {.retention = 24h});
    held = lease(q, id);
    weir::finished_job const end{id, held.fence, R"({"sent":1})"};
    ask(command::complete_jobs{q, {&end, 1}});
    id = add("cancelled", q, {.retention = 24h});
    ask(command::cancel_job{q, id});
    id = add("failed", q, {.max_attempts = 3});
    ask(command::requeue_job{q, id, lease(q, id).fence, 1h, "451 try again later"});
    id = add("snoozed", q, {});
    ask(command::snooze_job{q, id, lease(q, id).fence, 1h, "rate paid for attempt 1, snooze 1"});
    id = add("spent", q, {.max_attempts = 1});
    lease(q, id, 1ms);
    id = add("missed", q, {.deadline = 1ms});
    id = add("unique", q, {.unique_key = "ann", .strategy = weir::unique_strategy::until_executed});

    wanted const alone{.unique_key = "bob", .strategy = weir::unique_strategy::while_executing};
    id = add("runs", q, alone);
    ask(command::start_job{q, id, lease(q, id).fence});
    add("twin", q, alone);

    add("in paused", "paused", {});
    ask(command::pause_queue{"paused"});
    add("in held", "held", {});
    ask(command::snooze_queue{"held", 1h});

    // Texts that strangers may write.
    std::string const evil = "\x1b]0;owned\x07\x1b[31m\xff\xfe\xc3(\r\n\x9b"
                             "2J\t\"\\ \xe2\x80\xae gr\xc3\xbc\xc3\x9f";
    auto const queue = evil + std::string(900, 'q');
    id = add("hostile", queue,
             {.kind = evil, .payload = evil, .headers = weir::job_headers{{evil, evil}}.text()});
    ask(command::bury_job{queue, id, lease(queue, id).fence, evil + std::string(3000, 'r')});
    auto const long_payload = std::string(100'000, 'p');
    add("long", "long", {.payload = long_payload});

    weir::schedules<full_store> const schedules{store_};
    put(schedules, {.name = "nightly", .when = weir::cron{"30 2 * * *", "Europe/Berlin"}});
    put(schedules, {.name = "hourly", .when = weir::every{1h}});
    put(schedules, {.name = evil.substr(0, 5) + "strange", .when = weir::every{24h}});

    for (auto const* const holder : {"one", "two", "three"}) {
      ask(command::acquire_permit{"gpt", holder, 2, 1h, 1h});
    }
    ask(command::acquire_lock{"leader", "host-1", 1h});
  }

  /// A queue among those of schedules, by the name that a stranger has chosen.
  void planted() { add("planted", "weir.schedules/a\xff", {}); }

  void put(weir::schedules<full_store> const& to, weir::schedule what) {
    report const job{1};
    bool ended = false;
    weir::error_code failed;
    to.async_put(std::move(what), job, {}, [&](weir::error_code ec, weir::put_outcome) {
      failed = ec;
      ended = true;
    });
    while (!ended) io_.run_one();
    if (failed) throw boost::system::system_error{failed};
  }

  /// What would be a script if a page took a text for HTML.
  void markup() {
    std::string const evil = "\"'><script>document.title='owned'</script><img src=x "
                             "onerror=\"document.title='owned'\"><!-- ${7*7} javascript:alert(1)";
    auto const id = add("dead", evil,
                        {.kind = evil,
                         .payload = evil,
                         .unique_key = evil,
                         .strategy = weir::unique_strategy::until_executed,
                         .headers = weir::job_headers{{evil, evil}}.text()});
    ask(command::bury_job{evil, id, lease(evil, id).fence, evil});
    auto const held = add("leased", evil, {.kind = evil});
    auto const l = ask(command::obtain_lease{evil, held, evil, 1h, true}).value();
    ask(command::extend_lease{evil, held, l.fence, 1h, evil, evil});
    auto const off = add("put off", evil, {});
    ask(command::snooze_job{evil, off, lease(evil, off).fence, 1h, evil});
    weir::schedules<full_store> const schedules{store_};
    put(schedules, {.name = evil, .when = weir::every{1h}});
    ask(command::acquire_permit{evil, evil, 2, 1h});
    ask(command::acquire_lock{evil, evil, 1h});
    weir::job_headers const one{{evil, ""}};
    add_worker(
        weir::job_headers{
            {"name", evil}, {"holder", evil}, {"queues", one.text()}, {"kinds", one.text()}},
        0s);
  }

  /// A worker of the register that has said nothing for some time.
  void add_worker(weir::job_headers const& record, weir::duration seen) {
    ask(command::pause_queue{weir::workers_queue});
    add("record", weir::workers_queue,
        {.kind = weir::worker_kind, .payload = record.text(), .delay = 1h - seen});
    names_.erase("record");
  }

  void thumbs(std::size_t count) {
    for (std::size_t i = 0; i != count; ++i)
      add("thumb " + std::to_string(i), "thumbs",
          {.kind = "thumbnail", .payload = R"({"number":1})"});
    add("of nobody", "mail", {});
    add_worker({{"name", "yesterday's"}, {"concurrency", "3"}, {"busy", "1"}}, 30min);
  }

  /// Runs a worker until SIGTERM. Its first thumbnail takes until then.
  void work() {
    weir::worker worker{store_,
                        {.drain = 0s, .queues = {{.name = "thumbs"}}, .name = "thumbs on host 1"}};
    worker.handle<thumbnail>([](thumbnail const&) -> asio::awaitable<void> {
      std::cout << "{}" << std::endl;
      asio::steady_timer forever{co_await asio::this_coro::executor, 1h};
      co_await forever.async_wait(asio::use_awaitable);
    });
    asio::signal_set signals{io_, SIGTERM};
    signals.async_wait([&](auto...) { worker.stop(); });
    std::optional<weir::error_code> ended;
    worker.async_run([&](weir::error_code ec) { ended = ec; });
    while (!ended) io_.run_one();
    signals.cancel();
    if (*ended) throw boost::system::system_error{*ended};
  }

  /// Dead letters, of which the first so many cannot be replayed: another job has their unique key.
  void dead(std::size_t count, std::size_t conflicts) {
    std::string_view const q = "bulk";
    std::vector<std::string> keys;
    for (std::size_t i = 0; i != conflicts; ++i) keys.push_back("key " + std::to_string(i));
    std::vector<weir::new_job> jobs(count);
    for (std::size_t i = 0; i != count; ++i) {
      jobs[i].id = ids_.job();
      jobs[i].kind = i % 2 == 0 ? "even" : "odd";
      jobs[i].payload = "{}";
      if (i >= conflicts) continue;
      jobs[i].unique_key = keys[i];
      jobs[i].strategy = weir::unique_strategy::until_executed;
      names_["conflict " + std::to_string(i)] = to_string(jobs[i].id);
    }
    for (std::size_t i = 0; i < count; i += 1000) {
      auto const n = std::min<std::size_t>(1000, count - i);
      ask(command::enqueue_jobs{q, {jobs.data() + i, n}});
      auto const leased =
          ask(command::dequeue_jobs{.queue = q, .holder = "filler", .limit = 1000, .lease = 1h});
      std::size_t left = leased.jobs.size();
      for (auto const& j : leased.jobs) {
        store_.async_execute(command::bury_job{q, j.id, j.fence, "broken"},
                             [&](weir::error_code ec, weir::hint) {
                               if (ec) throw boost::system::system_error{ec};
                               --left;
                             });
      }
      while (left != 0) io_.run_one();
    }
    for (std::size_t i = 0; i != conflicts; ++i) {
      add("owner " + std::to_string(i), q,
          {.unique_key = keys[i], .strategy = weir::unique_strategy::until_executed});
    }
  }

  /// Buries what it can have, again and again.
  void kill() {
    std::cout << "{}" << std::endl;
    for (;;) {
      auto const leased = ask(
          command::dequeue_jobs{.queue = "bulk", .holder = "killer", .limit = 100, .lease = 1h});
      for (auto const& j : leased.jobs) ask(command::bury_job{"bulk", j.id, j.fence, "again"});
    }
  }

  void waiting(std::size_t count) {
    std::vector<weir::new_job> jobs(count);
    for (auto& j : jobs) {
      j.id = ids_.job();
      j.kind = "wait";
      j.payload = "{}";
      j.delay = 1h;
    }
    for (std::size_t i = 0; i < count; i += 1000) {
      ask(command::enqueue_jobs{"waiting",
                                {jobs.data() + i, std::min<std::size_t>(1000, count - i)}});
    }
  }

  /// A store of many jobs, for bench/console.py. Of the queue `work` 80 % of the jobs are pending,
  /// one half of them due, and 5 % are in each other state. As where workers are behind, the leased
  /// ones vest after those that are due. Each of the other queues has three jobs: a pending, a
  /// leased and a dead one. They are before `work` by name.
  void many(std::size_t jobs, std::size_t queues, std::size_t workers, std::size_t schedules) {
    auto const part = jobs / 20;  // in each state but pending
    for (std::size_t i = 0; i < part; i += 300) claimed(std::min<std::size_t>(300, part - i));
    for (std::size_t i = 0; i < part; i += 50)
      waiting_and_cancelled(std::min<std::size_t>(50, part - i));
    for (std::size_t i = 0; i < queues; i += 100) tenants(i, std::min(i + 100, queues));
    for (std::size_t i = 0; i != workers; ++i) {
      auto const number = std::to_string(i);
      weir::job_headers const served{{"work", ""}, {"tenant/00001", ""}};
      weir::job_headers const kinds{{"kind 0", ""}, {"kind 1", ""}, {"kind 2", ""}};
      add_worker({{"name", "worker " + number},
                  {"holder", "holder " + number},
                  {"concurrency", "10"},
                  {"busy", "3"},
                  {"queues", served.text()},
                  {"kinds", kinds.text()}},
                 -23h);  // they seem alive for so long
    }
    weir::schedules<full_store> const to{store_};
    for (std::size_t i = 0; i != schedules; ++i)
      put(to, {.name = "every day " + std::to_string(i), .when = weir::every{24h}});
    for (int i = 0; i != 60; ++i)
      ask(command::acquire_permit{"gpt", "holder " + std::to_string(i), 60, 24h, 1h});
    ask(command::acquire_lock{"leader", "host-1", 24h});
  }

  std::vector<weir::new_job> jobs_of_work(std::size_t count) {
    static std::string const kinds[] = {"kind 0", "kind 1", "kind 2", "kind 3"};
    static weir::job_headers const headers{{"tenant", "acme"}};
    std::vector<weir::new_job> out(count);
    for (std::size_t i = 0; i != count; ++i) {
      auto& j = out[i];
      j.id = ids_.job();
      j.kind = kinds[i % std::size(kinds)];
      j.payload = R"({"to":"ann@example.com","subject":"Your order of last week"})";
      j.retention = 24h * 30;
      j.headers = headers.text();
    }
    return out;
  }

  /// So many leased, dead and completed jobs of `work`.
  void claimed(std::size_t count) {
    std::string_view const q = "work";
    auto const jobs = jobs_of_work(3 * count);
    ask(command::enqueue_jobs{q, jobs});
    auto const holder = "holder " + std::to_string(claims_++ % 100);
    auto const limit = static_cast<std::uint32_t>(jobs.size());
    auto const leased =
        ask(command::dequeue_jobs{.queue = q, .holder = holder, .limit = limit, .lease = 24h});
    std::vector<command::bury_job> dead;
    std::vector<weir::finished_job> completed;
    for (std::size_t i = 0; i != count; ++i) {
      auto const& d = leased.jobs.at(count + i);
      auto const& c = leased.jobs.at(2 * count + i);
      dead.push_back({q, d.id, d.fence, i % 3 == 0 ? "451 try again later" : "no such address"});
      completed.push_back({c.id, c.fence, R"({"sent":1})"});
    }
    ask_all(dead);
    ask(command::complete_jobs{q, completed});
    names_["leased"] = to_string(leased.jobs[0].id);
    names_["dead"] = to_string(dead[0].id);
    names_["completed"] = to_string(completed[0].id);
  }

  /// So many cancelled jobs of `work`, and sixteen times as many pending ones.
  void waiting_and_cancelled(std::size_t count) {
    std::string_view const q = "work";
    auto jobs = jobs_of_work(17 * count);
    for (std::size_t i = count; i < jobs.size(); i += 2) jobs[i].delay = 24h;
    ask(command::enqueue_jobs{q, jobs});
    std::vector<command::cancel_job> cancelled;
    for (std::size_t i = 0; i != count; ++i) cancelled.push_back({q, jobs[i].id});
    ask_all(cancelled);
    names_["cancelled"] = to_string(jobs[0].id);
    names_["delayed"] = to_string(jobs[count].id);
    names_["due"] = to_string(jobs[count + 1].id);
  }

  /// Queues with three jobs each.
  void tenants(std::size_t first, std::size_t end) {
    std::vector<std::string> names;
    for (auto i = first; i != end; ++i) {
      auto const number = std::to_string(i);
      names.push_back("tenant/" + std::string(5 - std::min<std::size_t>(number.size(), 5), '0') +
                      number);
    }
    std::vector<weir::new_job> jobs(3 * names.size());
    std::vector<command::enqueue_jobs> enqueues;
    std::vector<command::dequeue_jobs> dequeues;
    std::vector<command::bury_job> dead;
    for (auto& j : jobs) {
      j.id = ids_.job();
      j.kind = "kind 0";
      j.payload = "{}";
    }
    for (std::size_t i = 0; i != names.size(); ++i) {
      enqueues.push_back({names[i], {jobs.data() + 3 * i, 3}});
      dequeues.push_back({.queue = names[i], .holder = "holder 0", .limit = 2, .lease = 24h});
    }
    ask_all(enqueues);
    auto const leased = ask_all(dequeues);
    for (std::size_t i = 0; i != names.size(); ++i) {
      auto const& j = leased[i].jobs.at(0);
      dead.push_back({names[i], j.id, j.fence, "no such address"});
    }
    ask_all(dead);
  }

  /// Does nothing more until SIGTERM. On NATS it goes on to own the jobs.
  void stay() {
    std::cout << names_.dump() << std::endl;
    bool ended = false;
    asio::signal_set signals{io_, SIGTERM};
    signals.async_wait([&](auto...) { ended = true; });
    while (!ended) io_.run_one();
  }

  [[nodiscard]] nlohmann::json const& names() const noexcept { return names_; }

 private:
  asio::io_context& io_;
  asio::executor_work_guard<asio::io_context::executor_type> more_to_come_{io_.get_executor()};
  full_store store_;
  weir::id_source ids_;
  nlohmann::json names_ = nlohmann::json::object();
  std::size_t claims_ = 0;
};

std::string from_environment(char const* name, char const* otherwise) {
  auto const* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

full_store open(asio::io_context& io, std::string const& url) {
  [[maybe_unused]] auto const shards =
      static_cast<std::uint32_t>(std::stoul(from_environment("WEIR_SHARDS", "1")));
  [[maybe_unused]] auto const prefix = from_environment("WEIR_PREFIX", "weir");
  [[maybe_unused]] auto const ex = io.get_executor();
#ifdef CONSOLE_WITH_SQLITE
  if (url.starts_with("sqlite:")) {
    bool const application = std::getenv("IN_APPLICATION") != nullptr;
    return full_store{weir::sqlite_store{ex,
                                         url.substr(7),
                                         {.durable = weir::durability::process_crash,
                                          .in_application_database = application,
                                          .shards = shards}}};
  }
#endif
#ifdef CONSOLE_WITH_REDIS
  if (url.starts_with("redis:")) {
    weir::redis_store store{ex, url, {.prefix = prefix, .shards = shards}};
    store.async_run(weir::log::failures{"redis"});
    return full_store{store};
  }
#endif
#ifdef CONSOLE_WITH_POSTGRES
  if (url.starts_with("postgres")) {
    weir::postgres_store store{
        ex, url, {.schema = from_environment("WEIR_SCHEMA", "weir"), .shards = shards}};
    auto migrated = store.async_migrate(asio::use_future);
    io.run();
    io.restart();
    migrated.get();
    return full_store{store};
  }
#endif
#ifdef CONSOLE_WITH_NATS
  if (url.starts_with("nats:")) {
    weir::nats_store store{ex, url, {.prefix = prefix, .shards = shards, .max_jobs = 20'000'000}};
    store.async_run(weir::log::failures{"nats"});
    return full_store{store};
  }
#endif
  throw std::invalid_argument{"no such store"};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  asio::io_context io;
  auto const store = open(io, argv[1]);
  std::optional<filler> filling{std::in_place, io, store};
  auto& f = *filling;
  std::string_view const what = argv[2];
  auto const number = [&](int i) { return argc > i ? std::stoul(argv[i]) : 0; };
  if (what == "states") f.states();
  if (what == "dead") f.dead(number(3), number(4));
  if (what == "waiting") f.waiting(number(3));
  if (what == "planted") f.planted();
  if (what == "kill") f.kill();
  if (what == "markup") f.markup();
  if (what == "thumbs") f.thumbs(number(3));
  if (what == "work") f.work();
  if (what == "many") f.many(number(3), number(4), number(5), number(6));
  if (what == "many" && argc > 7) f.stay();
  if (what == "empty") f.ask(command::read_queue_stats{"none"});
  std::cout << f.names().dump() << std::endl;
  filling.reset();
  store.close();
  io.run();
  return 0;
} catch (std::exception const& e) {
  std::cerr << "fill: " << e.what() << '\n';
  return 1;
}
