// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_CONNECTION_HPP
#define WEIR_STORE_NATS_CONNECTION_HPP

#include "weir/detail/explained.hpp"
#include "weir/detail/keep_from_children.hpp"
#include "weir/error.hpp"
#include "weir/store/nats/address.hpp"
#include "weir/store/nats/options.hpp"
#include "weir/store/nats/pump.hpp"
#include "weir/store/nats/violations.hpp"

#include <nats/nats.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

// The C client, driven by Asio. What of it has threads of its own, and what not:
//
// - Connecting blocks in the client: TLS, the greeting. It is done in a thread that exists for as
//   long (nats_dialer), through a relay (nats_relay), which can end it.
// - From then on the client works in the strand, and only there: it reads and writes when the
//   strand tells it to (natsOptions_SetEventLoop), also with TLS without waiting for the network
//   (nats_pump), replies are taken from synchronous subscriptions right after a read, without
//   waiting (so no thread delivers them), what is published is written in the strand
//   (natsOptions_SetSendAsap, so no thread flushes), and it asks for no signs of life (no ping
//   interval, so no timer).
// - It does not reconnect by itself, which it would do in a thread and with what was not sent yet:
//   weir makes another connection, and knows of each request on which one it went.
// - The client library's own threads (timers, callbacks, its collector) are started by it once for
//   the process. All that they have to do is to tell what a server has not permitted
//   (nats_violations).
namespace weir::detail {

struct nats_free {
  void operator()(natsOptions* o) const noexcept { natsOptions_Destroy(o); }
  void operator()(natsMsg* m) const noexcept { natsMsg_Destroy(m); }
  void operator()(natsSubscription* s) const noexcept { natsSubscription_Destroy(s); }
};
template <class T>
using nats_owner = std::unique_ptr<T, nats_free>;

/// The least `max_payload` of a server that can be used: every command fits into it but for the
/// payloads and results of jobs, and so does a record with some dozens of holders.
inline constexpr std::size_t nats_least_payload = 8U << 10U;

[[nodiscard]] inline error_code nats_small_payload() noexcept {
  return explained(errc::invalid_option, "the server's max_payload is below 8 KiB");
}

/// Null: there is no memory for it.
[[nodiscard]] inline nats_owner<natsMsg> nats_message(std::string const& subject,
                                                      std::string_view data = {},
                                                      char const* reply_to = nullptr) {
  natsMsg* made = nullptr;
  if (natsMsg_Create(&made, subject.c_str(), reply_to, data.data(),
                     static_cast<int>(data.size())) != NATS_OK) {
    return nullptr;
  }
  return nats_owner<natsMsg>{made};
}

/// A connection of the client, and what it tells its event loop.
class nats_connection {
 public:
  nats_connection() = default;
  nats_connection(nats_connection const&) = delete;
  nats_connection& operator=(nats_connection const&) = delete;
  /// Blocks for no time if the connection has ended, or nothing is waiting to be written.
  ~nats_connection() {
    // The client would wait for what is written to be answered. Nobody reads any more.
    if (connection_ != nullptr && socket_ >= 0 && natsConnection_Buffered(connection_) > 0) {
      end();
    }
    natsConnection_Destroy(connection_);
    end_relay();
  }

  /// Makes a connection. Blocks until there is one, or there is none.
  /// @param url of the server, or of what stands between
  /// @param host that its certificate has to be for
  [[nodiscard]] error_code connect(std::string const& url, std::string const& host,
                                   nats_address const& to, nats_options const& how);

  [[nodiscard]] natsConnection* get() const noexcept { return connection_; }
  [[nodiscard]] natsSock socket() const noexcept { return socket_; }
  [[nodiscard]] std::size_t max_payload() const noexcept {
    auto const said = natsConnection_GetMaxPayload(connection_);
    return static_cast<std::size_t>(std::max(said, std::int64_t{0}));
  }
  [[nodiscard]] bool wants_to_write() const noexcept { return wants_to_write_; }
  void on_write(std::function<void()> f) { on_write_ = std::move(f); }
  [[nodiscard]] nats_violations& violations() const noexcept { return *violations_; }

  /// How to end what stands between it and the server, and where calls are counted for that. The
  /// client's closing its socket does not tell: a child process may have inherited that.
  void behind(std::function<void()> relay, nats_calls calls) {
    relay_ = std::move(relay);
    calls_ = std::move(calls);
  }
  void end_relay() {
    if (auto const relay = std::exchange(relay_, {})) relay();
  }

  /// Reads or writes what there is.
  void process_read() noexcept { call(&natsConnection_ProcessReadEvent); }
  void process_write() noexcept { call(&natsConnection_ProcessWriteEvent); }

  /// Ends it as if the server had.
  void end() noexcept {
    if (ended_ || connection_ == nullptr || socket_ < 0) return;
    ended_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    // Until it has noticed.
    for (int i = 0; i != 1000 && !natsConnection_IsClosed(connection_); ++i) {
      process_read();
    }
  }

 private:
  void call(void (*what)(natsConnection*)) const noexcept {
    if (calls_) ++*calls_;
    what(connection_);
    if (calls_) ++*calls_;
  }
  static natsStatus attach(void** user, void* loop, natsConnection*, natsSock socket) {
    auto* const self = static_cast<nats_connection*>(loop);
    self->socket_ = socket;
    keep_from_children(socket);
    *user = self;
    return NATS_OK;
  }
  static natsStatus read(void*, bool) { return NATS_OK; }
  static natsStatus write(void* user, bool add) {
    auto* const self = static_cast<nats_connection*>(user);
    bool const news = add && !self->wants_to_write_;
    self->wants_to_write_ = add;
    if (news && self->on_write_) self->on_write_();
    return NATS_OK;
  }
  static natsStatus detach(void* user) {
    static_cast<nats_connection*>(user)->socket_ = -1;
    return NATS_OK;
  }
  // Without one the client prints errors.
  static void failed(natsConnection* from, natsSubscription*, natsStatus what, void* number) {
    if (what != NATS_NOT_PERMITTED) return;
    natsStatus ignored{};
    char const* said = nats_GetLastError(&ignored);
    if (said == nullptr || *said == 0) natsConnection_GetLastError(from, &said);
    if (said != nullptr) nats_violations::tell(number, said);
  }

  std::shared_ptr<nats_violations> violations_ = nats_violations::make();
  natsConnection* connection_ = nullptr;
  natsSock socket_ = -1;
  bool wants_to_write_ = false;
  bool ended_ = false;
  std::function<void()> on_write_;
  std::function<void()> relay_;
  nats_calls calls_;
};

inline error_code nats_connection::connect(std::string const& url, std::string const& host,
                                           nats_address const& to, nats_options const& how) {
  natsOptions* made = nullptr;
  if (natsOptions_Create(&made) != NATS_OK) {
    return make_error_code(boost::system::errc::not_enough_memory);
  }
  nats_owner<natsOptions> const options{made};
  auto* const o = options.get();
  auto const millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(how.connect_timeout).count();
  bool good = natsOptions_SetURL(o, url.c_str()) == NATS_OK;
  auto const set = [&](natsStatus s) { good = good && s == NATS_OK; };
  set(natsOptions_SetName(o, "weir"));
  set(natsOptions_SetTimeout(o, millis));
  set(natsOptions_SetAllowReconnect(o, false));
  // A server's INFO names others before it has proven anything: they would be sent the password
  // (F96).
  set(natsOptions_SetIgnoreDiscoveredServers(o, true));
  set(natsOptions_SetPingInterval(o, 0));
  set(natsOptions_SetSendAsap(o, true));
  set(natsOptions_SetErrorHandler(o, &nats_connection::failed, violations_->number()));
  set(natsOptions_SetEventLoop(o, this, &nats_connection::attach, &nats_connection::read,
                               &nats_connection::write, &nats_connection::detach));
  if (!to.user().empty()) {
    set(natsOptions_SetUserInfo(o, to.user().c_str(), to.password().c_str()));
  }
  if (!to.token().empty()) set(natsOptions_SetToken(o, to.token().c_str()));
  if (!to.credentials().empty()) {
    set(natsOptions_SetUserCredentialsFromFiles(o, to.credentials().c_str(), nullptr));
  }
  if (to.uses_tls()) {
    set(natsOptions_SetSecure(o, true));
    set(natsOptions_SetExpectedHostname(o, host.c_str()));
    if (!to.ca_file().empty()) {
      set(natsOptions_LoadCATrustedCertificates(o, to.ca_file().c_str()));
    }
  }
  // A server may say what it was told.
  auto const said = [&](natsStatus s) -> std::string {
    auto const* const last = nats_GetLastError(nullptr);
    std::string text = last == nullptr || *last == 0 ? natsStatus_GetText(s) : last;
    // Where in the client it was said: "(conn.c:1905): Authorization Violation".
    auto const place = text.starts_with('(') ? text.find("): ") : text.npos;
    if (place != text.npos) text.erase(0, place + 3);
    for (auto const& secret : {to.password(), to.token()}) {
      if (!secret.empty() && text.find(secret) != text.npos) return natsStatus_GetText(s);
    }
    auto const user = url.substr(0, url.rfind('@') + 1);
    return !user.empty() && text.find(user) != text.npos ? natsStatus_GetText(s) : text;
  };
  if (!good) return explained(errc::invalid_option, "nats_address: " + said(NATS_INVALID_ARG));
  auto const status = natsConnection_Connect(&connection_, o);
  switch (status) {
    case NATS_OK: return {};
    case NATS_NOT_PERMITTED:
    case NATS_CONNECTION_AUTH_FAILED: return explained(nats_not_permitted(), said(status));
    default: return explained(errc::store_unavailable, said(status));
  }
}

}  // namespace weir::detail

#endif
