// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "options.hpp"

#include "../printable.hpp"
#include "completions.hpp"
#include "weir/console/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace console {

namespace {

constexpr auto about = "Looks into the queues, limits and schedules of a weir store, and acts on "
                       "them.";

constexpr auto footer = R"(Examples:
  export WEIR_STORE=sqlite:/var/lib/app/jobs.db
  weirctl queues                          every queue, and how long its first job has been due
  weirctl explain mail 0198c3a4-...       why a job does not run
  weirctl dead mail                       what failed for good, and why
  weirctl replay mail --all --yes         all of it again
  weirctl purge mail --all --state dead --kind newsletter --max 1000
  weirctl --json jobs mail --state leased | jq -r .holder
  weirctl serve --allow replay,pause      the same in a browser
  weirctl tail mail reports               what changes, once a second

A name that begins with a dash is given behind --. A store on a server is asked as any other program asks it. A
password in --store is seen by other users of this host: give it in WEIR_STORE.

Exit codes: 0 done; 1 nothing there, or refused (no such job; some of many could not be replayed); 2 wrong usage;
            3 the store cannot be used, or standard output not written; 130 ended by Ctrl-C or
            SIGTERM (serve: 0))";

/// A decimal number of seconds. A range lets what is no number pass.
[[nodiscard]] weir::duration seconds(double number) {
  if (std::isnan(number)) throw CLI::ValidationError{"seconds are a number"};
  return std::chrono::duration_cast<weir::duration>(std::chrono::duration<double>{number});
}

void add_page(CLI::App* to, options& o) {
  to->add_option("--limit", o.limit, "rows at most (default: 50)")
      ->check(CLI::Range(1, 10'000).description(""));
  to->add_option("--cursor", o.cursor, "where the page before ended");
}

CLI::Option* add_names(CLI::App* to, options& o, char const* name) {
  return to->add_option(name, o.names)->type_name("");
}

/// `cancel`, `replay` and `purge`.
CLI::App* add_bulk(CLI::App& app, options& o, char const* name, char const* text) {
  auto* const out = app.add_subcommand(name, text);
  out->add_option("QUEUE", o.queue)->required()->type_name("");
  auto* const ids = out->add_option("ID", o.ids, "jobs")->type_name("");
  auto* const all = out->add_flag("--all", o.all, "all that there are when it begins");
  out->add_option("--kind", o.kind, "of these only those of this kind")
      ->needs(all)
      ->check([](std::string const& kind) { return kind.empty() ? "no kind is empty" : ""; }, "");
  out->add_option("--max", o.most, "so many at most")
      ->needs(all)
      ->check(CLI::Range(1, 1'000'000'000).description(""));
  out->add_flag("-y,--yes", o.yes, "does not ask")->needs(all);
  all->excludes(ids);
  return out;
}

void add_commands(CLI::App& app, options& o) {
  auto* const queues = app.add_subcommand("queues", "lists queues, with how many jobs they have");
  queues->add_option("--under", o.under, "those whose names begin with this");
  add_page(queues, o);

  auto* const jobs = app.add_subcommand("jobs", "lists jobs of a queue");
  jobs->add_option("QUEUE", o.queue)->required()->type_name("");
  jobs->add_option("--state", o.state, "in this state (default: in any)")
      ->check(CLI::IsMember({"pending", "leased", "dead", "completed", "cancelled"}));
  add_page(jobs, o);

  auto* const job = app.add_subcommand("job", "everything about a job");
  job->add_flag("--payload", o.payload, "payload and result whole, whatever their size");
  auto* const explain = app.add_subcommand("explain", "why a job does not run, and until when");
  for (auto* const one : {job, explain}) {
    one->add_option("QUEUE", o.queue)->required()->type_name("");
    one->add_option("ID", o.ids)->required()->expected(1)->type_name("");
  }

  auto* const dead = app.add_subcommand("dead", "lists the dead letters of a queue, oldest first");
  dead->add_option("QUEUE", o.queue)->required()->type_name("");
  add_page(dead, o);

  auto* const limits = app.add_subcommand("limits", "the holders of a limiter's keys, and how many "
                                                    "wait");
  limits->add_option("--limit", o.limit, "holders of each at most (default: 50)")
      ->check(CLI::Range(1, 10'000).description(""));
  add_names(limits, o, "KEY")->required();
  add_names(app.add_subcommand("locks", "the holders of locks"), o, "KEY")->required();

  auto* const buckets = app.add_subcommand("buckets", "how full buckets of a rate limiter are");
  buckets->add_option("--tokens", o.tokens, "of their quota")->required();
  buckets
      ->add_option_function<double>(
          "--per", [&o](double number) { o.period = seconds(number); },
          "seconds of their quota (default: 1)")
      ->check(CLI::Range(0.000001, 1e9).description(""));
  buckets->add_option("--burst", o.burst, "of their quota (default: its tokens)");
  add_names(buckets, o, "KEY")->required();

  add_page(app.add_subcommand("workers", "lists workers that have a name, and what they do"), o);

  auto* const schedules = app.add_subcommand("schedules", "lists schedules, or acts on some");
  add_page(schedules, o);
  schedules->require_subcommand(0, 1);
  for (auto const& [name, text] : {std::pair{"pause", "lets its ticks pass without a job"},
                                   std::pair{"resume", "ends a pause"},
                                   std::pair{"trigger", "enqueues one of its jobs now"}}) {
    add_names(schedules->add_subcommand(name, text), o, "NAME")->required();
  }

  auto* const pause = app.add_subcommand("pause", "gives out none of a queue's jobs");
  pause->add_flag("--new", o.fresh, "a queue that has had no job yet, too");
  add_names(pause, o, "QUEUE")->required();
  add_names(app.add_subcommand("resume", "ends a pause, and what holds a queue back"), o, "QUEUE")
      ->required();

  add_bulk(app, o, "cancel", "ends jobs that wait")
      ->add_flag("--running", o.running, "those that are leased, too");
  add_bulk(app, o, "replay", "makes dead letters pending again");
  add_bulk(app, o, "purge", "forgets jobs that have ended")
      ->add_option("--state", o.state, "with --all: which ones")
      ->check(CLI::IsMember({"dead", "completed", "cancelled"}));

  auto* const tail = app.add_subcommand("tail", "says what changes in queues, in all if none is "
                                                "named");
  tail->add_option_function<double>(
          "--every", [&o](double number) { o.every = seconds(number); },
          "seconds between two looks (default: 1)")
      ->check(CLI::Range(0.05, 86'400.0).description(""));
  tail->add_option("--count", o.count, "ends after so many looks")
      ->check(CLI::Range(1, 1'000'000'000).description(""));
  add_names(tail, o, "QUEUE");

  auto* const serve = app.add_subcommand("serve", "a page in a browser, to read only unless it is "
                                                  "told otherwise");
  serve->add_option("--listen", o.listen,
                    "HOST:PORT (default: 127.0.0.1:8047; port 0: one that is free)");
  std::vector<std::string> actions{"all"};
  for (auto const each : weir::console_actions) actions.emplace_back(to_string(each));
  serve
      ->add_option("--allow", o.allow,
                   "what may be done there: all, or some of replay, cancel, "
                   "cancel_running, purge, pause, resume, pause_schedule, "
                   "resume_schedule, trigger_schedule")
      ->delimiter(',')
      ->take_all()
      ->check(CLI::IsMember(actions).description(""));
  serve
      ->add_option("--host", o.hosts,
                   "a name by which browsers call it, besides those of this host")
      ->take_all();

  auto* const completions = app.add_subcommand("completions", "prints a script for a shell");
  completions->require_subcommand(1);
  completions->add_subcommand("bash", "source <(weirctl completions bash)");
}

/// CLI11 takes `[a,b]` for a list of two values, and `[mail]` for `mail`. A mark before such a name
/// keeps it whole.
constexpr char whole_mark = '\x01';

std::vector<std::string> marked(int argc, char const* const* argv) {
  std::vector<std::string> out;
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    std::string argument{argv[i]};
    options = options && argument != "--";
    auto const equals =
        options && argument.starts_with("--") ? argument.find('=') : std::string::npos;
    auto const value = equals == std::string::npos ? 0 : equals + 1;
    auto const first = value < argument.size() ? argument[value] : ' ';
    if (first == '[' || first == whole_mark) argument.insert(value, 1, whole_mark);
    out.push_back(std::move(argument));
  }
  std::reverse(out.begin(), out.end());  // as CLI11 wants them
  return out;
}

void take_marks_off(CLI::App& app) {
  for (auto* const option : app.get_options()) {
    option->transform([](std::string value) {
      return value.starts_with(whole_mark) ? value.substr(1) : std::move(value);
    });
  }
  for (auto* const sub : app.get_subcommands({})) take_marks_off(*sub);
}

std::string without_marks(std::string text) {
  for (auto at = text.find(whole_mark); at != text.npos; at = text.find(whole_mark, at + 1)) {
    text.erase(at, 1);
  }
  return text;
}

[[noreturn]] void end_when_written() {
  if (!std::cout.flush()) throw failure{unusable, "standard output cannot be written"};
  std::exit(done);
}

}  // namespace

std::string without_secrets(std::string_view text) {
  constexpr std::string_view parameter = "password=";
  constexpr auto matches = [](char c, char lower) {
    return std::tolower(static_cast<unsigned char>(c)) == lower;
  };
  std::string out;
  while (!text.empty()) {  // a word, with the space before it
    auto const size = std::min(text.find_first_of(" \t\n\v\f\r", 1), text.size());
    auto const word = example::without_password(text.substr(0, size));
    text.remove_prefix(size);
    for (auto at = word.begin(); at != word.end(); at = std::find(at, word.end(), '&')) {
      auto const found = std::search(at, word.end(), parameter.begin(), parameter.end(), matches);
      auto const value = found == word.end() ? found : found + std::ssize(parameter);
      out.append(at, value);
      if (value != found) out += "...";
      at = value;
    }
  }
  return out;
}

options parse_options(int argc, char const* const* argv) {
  options o;
  CLI::App app{about, "weirctl"};
  app.get_formatter()->column_width(28);
  app.option_defaults()->take_last()->disable_flag_override();
  app.fallthrough();
  app.require_subcommand(1);
  app.add_option("--store", o.store,
                 "sqlite:PATH; redis://HOST:PORT, and what else weir::redis_address reads;\n"
                 "postgresql://USER@HOST/DATABASE; or nats://HOST:PORT, or tls://")
      ->type_name("URL")
      ->envname("WEIR_STORE");
  app.add_option("--prefix", o.prefix, "of the store's keys, on Redis and NATS (default: weir)")
      ->type_name("NAME")
      ->envname("WEIR_PREFIX");
  app.add_option("--schema", o.schema, "of the store's tables, on PostgreSQL (default: weir)")
      ->type_name("NAME")
      ->envname("WEIR_SCHEMA");
  app.add_option("--shards", o.shards, "that the store has (default: 1)")
      ->type_name("N")
      ->envname("WEIR_SHARDS")
      ->check(CLI::Range(1, 1024).description(""));
  app.add_option("--ca", o.ca,
                 "file of the authorities that sign for a server, with TLS, on Redis "
                 "and NATS");
  app.add_option("--credentials", o.credentials, "a .creds file, on NATS");
  app.add_option_function<double>(
         "--patience", [&o](double number) { o.patience = seconds(number); },
         "seconds that the store may take to answer (default: 5)")
      ->check(CLI::Range(0.1, 3600.0).description(""));
  app.add_flag("--json", o.json, "a JSON object a line; durations in seconds");
  add_commands(app, o);
  take_marks_off(app);
  app.footer(footer);  // not below each command

  try {
    app.parse(marked(argc, argv));
    auto const* const chosen = app.get_subcommands().front();
    o.command = chosen->get_name();
    auto const deeper = chosen->get_subcommands();
    if (!deeper.empty()) o.command += ' ' + deeper.front()->get_name();
    if (o.command == "completions bash") {
      std::cout << bash_completions(app);
      end_when_written();
    }
    bool const is_bulk = o.command == "cancel" || o.command == "replay" || o.command == "purge";
    if (o.store.empty())
      throw CLI::ValidationError{"which store? Give --store URL, or set WEIR_STORE"};
    if (is_bulk && !o.all && o.ids.empty()) throw CLI::ValidationError{"some ID, or --all"};
    if (o.command == "purge" && o.all == o.state.empty()) {
      throw CLI::ValidationError{"--all and --state go together"};
    }
  } catch (CLI::CallForHelp const& help) {
    app.exit(help);
    end_when_written();
  } catch (CLI::ParseError const& e) {
    throw failure{wrong_usage, without_marks(e.what()) + " (see weirctl --help)"};
  }
  return o;
}

}  // namespace console
