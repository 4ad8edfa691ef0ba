// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// A console for weir's stores: what is in their queues, limits and schedules, and what operators do
// about it. Every command is a coroutine on the public primitives (reading.cpp, explain.cpp,
// acting.cpp, bulk.cpp, tail.cpp), whatever the store is (any_store.hpp).

#include "../printable.hpp"
#include "options.hpp"
#include "session.hpp"
#include "stores.hpp"
#include "weir/log.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/uuid/string_generator.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <map>

namespace console {

void say(std::string const& text) {
  std::cerr << "weirctl: " << example::printable(without_secrets(text)) << std::endl;
}

weir::job_id to_id(std::string const& text) {
  try {
    return boost::uuids::string_generator{}(text);
  } catch (std::exception const&) {
    throw failure{wrong_usage, "'" + text + "' is no job's id: it is a UUID"};
  }
}

int session::fail(weir::error_code const& ec) const {
  auto const text = ec.message();
  // An option with a text is one of the store; without one, it is the cursor.
  bool const is_option = ec == weir::errc::invalid_option;
  bool const of_store = is_option && text != make_error_code(weir::errc::invalid_option).message();
  for (std::string_view const option : {"shards", "prefix", "schema"}) {
    if (text.find("_options::" + std::string{option}) != text.npos) {
      say(o.store.substr(0, o.store.find(':')) + ": " + text + ": see --" + std::string{option});
      return unusable;
    }
  }
  if (ec == weir::condition::bad_input && !of_store) {
    say(is_option ? "--cursor is none that a page gave" : text + ": see weirctl --help");
    return wrong_usage;
  }
  // Of a server not the whole URL: the text says where, as far as it matters.
  say(o.store.substr(0, o.store.find(':')) + ": " + text);
  return unusable;
}

int session::refuse(std::string const& why) const {
  say(why);
  return refused;
}

namespace {

answer run_command(session& s) {
  static std::map<std::string_view, answer (*)(session&)> const commands{
      {"queues", list_queues},
      {"jobs", list_jobs},
      {"job", show_job},
      {"explain", explain_job},
      {"dead", list_dead},
      {"limits", show_limits},
      {"locks", show_locks},
      {"buckets", show_buckets},
      {"schedules", list_schedules},
      {"workers", list_workers},
      {"schedules pause", act_on_schedules},
      {"schedules resume", act_on_schedules},
      {"schedules trigger", act_on_schedules},
      {"pause", hold_queues},
      {"resume", hold_queues},
      {"cancel", cancel_jobs},
      {"replay", replay_jobs},
      {"purge", purge_jobs},
      {"tail", tail_queues},
      {"serve", serve_pages},
  };
  return commands.at(s.o.command)(s);
}

int run(options const& o) {
  asio::io_context io{1};
  session s{io, open_store(io.get_executor(), o), o};
  asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](weir::error_code const& cancelled, int) {
    if (cancelled) return;
    signals.clear();  // the next one ends the process
    if (!s.ends_by_itself) {
      say("interrupted");
      ::_exit(interrupted);
    }
    s.stopping = true;
    s.pause.cancel();
  });
  int code = unusable;
  bool ended = false;
  std::exception_ptr problem;
  asio::co_spawn(io, run_command(s), [&](std::exception_ptr e, int reached) {
    problem = std::move(e);
    code = reached;
    ended = true;
    signals.cancel();
    s.store.close();
  });
  while (!ended && io.run_one() != 0) {
  }
  io.poll();  // not `run`: the timer of the patience would keep it busy for up to 50 ms more
  if (problem) std::rethrow_exception(problem);
  std::cout.flush();
  if (!std::cout && code == done) {
    say("standard output cannot be written");
    return unusable;
  }
  return code;
}

/// A standard stream that is closed would be the first file or socket that is opened here. It is
/// one that cannot be written.
void keep_standard_streams() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

}  // namespace
}  // namespace console

int main(int argc, char const* const* argv) {
  console::keep_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of writing
  weir::log::set_sink({});        // what goes wrong is said once, at the end
  try {
    return console::run(console::parse_options(argc, argv));
  } catch (console::failure const& e) {
    console::say(e.what());
    return e.code;
  } catch (std::exception const& e) {
    console::say(e.what());
    return console::unusable;
  }
}
