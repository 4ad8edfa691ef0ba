// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_FAULT_PROXY_HPP
#define WEIR_TESTING_FAULT_PROXY_HPP

#include "weir/error.hpp"
#include "weir/testing/proxy/link.hpp"
#include "weir/testing/proxy/plan.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace weir::testing {

namespace detail {

/// The state of a `fault_proxy`. On its strand.
class proxy_state : public std::enable_shared_from_this<proxy_state> {
 public:
  using tcp = boost::asio::ip::tcp;

  proxy_state(boost::asio::any_io_executor const& executor, tcp::endpoint target)
      : common{std::make_shared<proxy_common>(executor)},
        acceptor_{common->strand},
        target_{std::move(target)} {
    open(tcp::endpoint{boost::asio::ip::address_v4::loopback(), 0});
    here_ = acceptor_.local_endpoint();
    acceptor_.listen();
  }

  [[nodiscard]] tcp::endpoint const& endpoint() const noexcept { return here_; }

  static boost::asio::awaitable<void> accept(std::shared_ptr<proxy_state> self,
                                             std::uint64_t listening) {
    namespace asio = boost::asio;
    auto& own = *self;
    for (;;) {
      tcp::socket client{own.common->strand};
      auto const [ec] =
          co_await own.acceptor_.async_accept(client, asio::as_tuple(asio::use_awaitable));
      if (!ec && !own.closed_) own.begin(std::move(client));
      if (own.closed_ || own.listening_ != listening) co_return;
    }
  }

  void start() {
    if (closed_ || refusing_) return;
    boost::asio::co_spawn(common->strand, accept(shared_from_this(), ++listening_),
                          boost::asio::detached);
  }

  /// The port stays ours meanwhile: it is bound, and nobody listens.
  void refuse(bool on) {
    if (closed_ || refusing_ == on) return;
    refusing_ = on;
    ++listening_;
    if (on) {
      error_code ignored;
      acceptor_.close(ignored);
      open(here_);
    } else {
      acceptor_.listen();
      start();
    }
  }

  void cut_all(proxy_ending how) {
    for (auto const& link : links_) {
      if (link->end(how)) common->ledger.add(&proxy_counts::cut_all);
    }
  }

  void stall() {
    if (!std::exchange(common->stalled, true)) common->ledger.add(&proxy_counts::stalled);
  }

  void resume() {
    common->stalled = false;
    for (auto const& link : links_) link->resume();
  }

  void close() {
    closed_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    for (auto const& link : links_) link->close();
    links_.clear();
  }

  std::shared_ptr<proxy_common> common;
  std::deque<std::vector<planned_fault>> scripts;
  proxy_rates rates;
  splitter_factory splitters;

 private:
  void open(tcp::endpoint const& at) {
    acceptor_.open(at.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address{true});
    acceptor_.bind(at);
  }

  void begin(tcp::socket client) {
    common->ledger.add(&proxy_counts::accepted);
    std::vector<planned_fault> script;
    if (!scripts.empty()) {
      script = std::move(scripts.front());
      scripts.pop_front();
    }
    auto const plan = [&](traffic d) {
      return proxy_link::direction_plan{splitters ? splitters(d) : message_splitter{},
                                        proxy_plan{script, d, rates, connections_}};
    };
    auto up = plan(traffic::to_server);
    auto down = plan(traffic::to_client);
    ++connections_;
    auto link = std::make_shared<proxy_link>(common, std::move(client));
    std::erase_if(links_, [](auto const& each) { return each->over(); });
    links_.push_back(link);  // also keeps a link in which nothing moves any more
    boost::asio::co_spawn(common->strand, link->run(target_, std::move(up), std::move(down)),
                          boost::asio::detached);
  }

  tcp::acceptor acceptor_;
  tcp::endpoint target_;
  tcp::endpoint here_;
  std::vector<std::shared_ptr<proxy_link>> links_;
  std::uint64_t connections_ = 0;
  std::uint64_t listening_ = 0;  // which of its loops is the one
  bool refusing_ = false;
  bool closed_ = false;
};

}  // namespace detail

/// Stands between a client and a server of this host, forwards what they say over TCP, and breaks
/// what it was told to break: for tests of whatever speaks to a real engine.
///
///     weir::testing::fault_proxy proxy{io.get_executor(), server};
///     proxy.script({{.fault = proxy_fault::cut_after, .message = 2}});
///     client.connect(proxy.endpoint());
///
/// It listens on a free port of 127.0.0.1 from its construction on, and forwards while its executor
/// runs. Faults are planned for the messages of a connection: by `script`, for the connections in
/// the order in which they come, and otherwise by the seed of `chaos`. A message is whatever came
/// at once, until `split_messages` says where messages end: then the same seed does the same to the
/// same conversation. (Which of two concurrent connections is the first, and which of two
/// directions moves first, TCP decides.)
///
/// Cut and silent connections are ended once, by whoever comes first; what was on its way then may
/// be lost, as with any connection. `stall` holds back all connections, and the fault of that name
/// one of them; both until `resume`.
///
/// A handle: copies share the proxy, and none may outlive the execution context. The destructor
/// does not close it: `async_close` does, and so does the end of that context.
///
/// Thread-safety: `split_messages`, `script` and `chaos` concern connections that come later, and
/// these, `counts` and the operations may be used from any thread.
class fault_proxy {
 public:
  using executor_type = boost::asio::any_io_executor;    ///< of any kind
  using endpoint_type = boost::asio::ip::tcp::endpoint;  ///< a port of a host

  /// @param executor where it forwards
  /// @param target   where connections are forwarded to
  /// @throws boost::system::system_error when it cannot listen
  fault_proxy(executor_type executor, endpoint_type target)
      : executor_{std::move(executor)},
        state_{std::make_shared<detail::proxy_state>(executor_, std::move(target))} {
    on_strand([](detail::proxy_state& s) { s.start(); });
  }

  /// As it was given.
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  /// Where clients connect to.
  [[nodiscard]] endpoint_type endpoint() const { return state_->endpoint(); }

  /// What it did so far.
  [[nodiscard]] proxy_counts counts() const { return state_->common->ledger.read(); }

  /// Says where messages end. A message of more than 64 MiB is forwarded as what it is, bytes.
  void split_messages(splitter_factory factory) const {
    on_strand(
        [f = std::move(factory)](detail::proxy_state& s) mutable { s.splitters = std::move(f); });
  }

  /// Plans the faults of the next connection that has no script yet. Empty: it has none.
  void script(std::vector<planned_fault> faults) const {
    on_strand([f = std::move(faults)](detail::proxy_state& s) mutable {
      s.scripts.push_back(std::move(f));
    });
  }

  /// Lets a seed plan what no script does.
  void chaos(proxy_rates const& rates) const {
    on_strand([rates](detail::proxy_state& s) { s.rates = rates; });
  }

  // Each of these completes with `void()` once it is done; by default nobody waits for that.

  /// Refuses new connections (the client sees `connection_refused`), or takes them again. Those
  /// that there are go on.
  template <class Token = boost::asio::detached_t>
  auto async_refuse(bool on, Token&& token = {}) const {
    return ask([on](detail::proxy_state& s) { s.refuse(on); }, std::forward<Token>(token));
  }

  /// Ends all connections that there are.
  template <class Token = boost::asio::detached_t>
  auto async_cut_all(proxy_ending how, Token&& token = {}) const {
    return ask([how](detail::proxy_state& s) { s.cut_all(how); }, std::forward<Token>(token));
  }

  /// Forwards nothing any more, not even for new connections, and closes nothing. What was read
  /// before is forwarded at `async_resume`.
  template <class Token = boost::asio::detached_t>
  auto async_stall(Token&& token = {}) const {
    return ask([](detail::proxy_state& s) { s.stall(); }, std::forward<Token>(token));
  }

  /// Ends all stalls.
  template <class Token = boost::asio::detached_t>
  auto async_resume(Token&& token = {}) const {
    return ask([](detail::proxy_state& s) { s.resume(); }, std::forward<Token>(token));
  }

  /// Closes everything, for good: afterwards it keeps no executor busy.
  template <class Token = boost::asio::detached_t>
  auto async_close(Token&& token = {}) const {
    return ask([](detail::proxy_state& s) { s.close(); }, std::forward<Token>(token));
  }

 private:
  template <class Step>
  void on_strand(Step step) const {
    boost::asio::post(state_->common->strand,
                      [state = state_, step = std::move(step)]() mutable { step(*state); });
  }

  template <class Step, class Token>
  auto ask(Step step, Token&& token) const {
    return boost::asio::async_initiate<Token, void()>(
        [](auto handler, std::shared_ptr<detail::proxy_state> state, Step what,
           executor_type executor) {
          auto const& strand = state->common->strand;
          auto const associated = boost::asio::get_associated_executor(handler, executor);
          boost::asio::post(strand, [state, what, associated, h = std::move(handler)]() mutable {
            what(*state);
            boost::asio::post(associated, std::move(h));
          });
        },
        token, state_, std::move(step), executor_);
  }

  executor_type executor_;
  std::shared_ptr<detail::proxy_state> state_;
};

}  // namespace weir::testing

#endif
