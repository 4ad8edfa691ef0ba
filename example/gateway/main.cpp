// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// An HTTP gateway in front of a slow backend that stands for a large language model. Each API key
// may ask only so often, and the backend is asked by only so many at once, whichever gateway they
// came to: any number of gateways on one store share the limits.

#include "../printable.hpp"
#include "../serving/server.hpp"
#include "answers.hpp"
#include "backend.hpp"
#include "gate.hpp"
#include "options.hpp"
#include "weir/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;

enum exit_code { all_answered = 0, some_cut_off = 1, wrong_usage = 2, failed = 3 };

/// Serves until the first signal; a second one then ends the process, as if there were no handler.
asio::awaitable<exit_code> serve(serving::server& server, gateway::gate& gate,
                                 asio::signal_set& signals, gateway::options const& options) {
  asio::co_spawn(server.get_executor(), server.accept(), weir::log::failures{"accept"});
  std::cout << "gateway: listening on " << server.local() << std::endl;
  co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
  signals.clear();
  std::cout << "gateway: finishing what runs" << std::endl;
  auto const cut_off = co_await server.finish(options.drain);
  co_await gate.close();
  if (cut_off != 0) std::cerr << "gateway: " << cut_off << " requests were cut off\n";
  co_return cut_off == 0 ? all_answered : some_cut_off;
}

/// Asks the store something, so that what is wrong with it is known before anybody is served.
void examine(asio::io_context& io, gateway::gate& gate, std::string const& name) {
  std::exception_ptr problem;
  bool answered = false;
  asio::co_spawn(io, gate.look(), [&](std::exception_ptr e, gateway::occupancy) {
    problem = std::move(e);
    answered = true;
  });
  while (!answered && io.run_one() != 0) {
  }
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (boost::system::system_error const& e) {
    throw std::runtime_error{example::without_password(name) + ": " + e.code().message()};
  }
}

int run(gateway::options const& options) {
  asio::io_context io{static_cast<int>(options.threads)};
  auto more_to_come = asio::make_work_guard(io);  // or it would stop for good between two things
  asio::signal_set signals{io, SIGINT, SIGTERM};
  auto const backend = gateway::make_backend(options);
  auto const gate = gateway::open_gate(io.get_executor(), options);
  examine(io, *gate, options.store);
  gateway::answers answers{*gate, *backend, options};
  serving::server server{io.get_executor(), options.listen, answers};

  exit_code code = failed;
  auto serving = serve(server, *gate, signals, options);
  asio::co_spawn(server.get_executor(), std::move(serving),
                 [&](std::exception_ptr e, exit_code reached) {
                   if (e) std::rethrow_exception(e);
                   code = reached;
                 });
  more_to_come.reset();
  {
    // A worker does nothing but take handlers, and one that throws is a mistake of ours: it ends
    // the process.
    std::vector<std::jthread> others;
    for (std::uint32_t i = 1; i < options.threads; ++i) others.emplace_back([&] { io.run(); });
    io.run();
  }
  return code;
}

}  // namespace

int main(int argc, char const* const* argv) {
  try {
    auto const options =
        gateway::parse_options(std::span{argv, static_cast<std::size_t>(argc)}.subspan(1));
    if (options.help) {
      std::cout << gateway::usage_text;
      return all_answered;
    }
    return run(options);
  } catch (gateway::usage_error const& e) {
    std::cerr << "gateway: " << example::printable(example::without_password(e.what()))
              << " (see --help)\n";
    return wrong_usage;
  } catch (std::exception const& e) {
    std::cerr << "gateway: " << example::printable(e.what()) << '\n';
    return failed;
  }
}
