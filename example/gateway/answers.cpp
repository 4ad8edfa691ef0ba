// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "answers.hpp"

#include "weir/http_fields.hpp"

#include <boost/asio/error.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/system/system_error.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

namespace gateway {

namespace {

namespace http = boost::beast::http;
using http::field;
using http::status;
using nlohmann::json;

constexpr std::string_view quota_name = "requests";

response reply_with(status code, json const& body) {
  response reply{code, 11};
  reply.set(field::server, "weir-gateway");
  reply.set(field::content_type, "application/json");
  reply.body() = body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return reply;
}

response refusal_of(status code, std::string_view why) {
  json body;
  body["error"] = why;
  return reply_with(code, body);
}

response retry_later(status code, std::string_view why) {
  auto reply = refusal_of(code, why);
  reply.set(field::retry_after, "1");
  return reply;
}

/// What follows `Bearer`, or the X-API-Key. Empty: there is none.
std::string_view api_key(request const& asked) {
  constexpr std::string_view scheme = "Bearer ";
  std::string_view const authorization = asked[field::authorization];
  if (authorization.size() > scheme.size() &&
      boost::beast::iequals(authorization.substr(0, scheme.size()), scheme)) {
    auto const key = authorization.substr(scheme.size());
    return key.substr(std::min(key.find_first_not_of(' '), key.size()));
  }
  return asked["X-API-Key"];
}

void complain(std::string_view what, weir::error_code const& ec) {
  std::fprintf(stderr, "gateway: %.*s: %s\n", static_cast<int>(what.size()), what.data(),
               ec.message().c_str());
}

}  // namespace

response answers::refusal(status code, std::string_view why) const { return refusal_of(code, why); }

answers::answers(gate& way, backend& model, options const& o)
    : gate_{way},
      backend_{model},
      console_{o.console} {
  weir::http::named_quota const quota{quota_name, o.rate};
  policy_ = weir::http::ratelimit_policy(std::span{&quota, 1});
}

asio::awaitable<response> answers::answer(request const& asked) {
  std::string_view const target = asked.target();
  auto const path = target.substr(0, target.find('?'));
  bool const get = asked.method() == http::verb::get;
  if (console_ && (path == console_prefix || path.starts_with(std::string{console_prefix} + "/"))) {
    co_return co_await gate_.page(asked);
  }
  if (path == "/v1/answer") {
    if (get || asked.method() == http::verb::post) co_return co_await ask_the_backend(asked);
  } else if (path == "/status") {
    if (get) co_return co_await count();
  } else {
    co_return refusal(status::not_found, "there is /v1/answer and /status");
  }
  auto reply = refusal(status::method_not_allowed, "not this method");
  reply.set(field::allow, path == "/status" ? "GET" : "GET, POST");
  co_return reply;
}

asio::awaitable<response> answers::ask_the_backend(request const& asked) {
  auto const key = api_key(asked);
  if (key.empty()) {
    auto reply = refusal(status::unauthorized, "who asks? Authorization: Bearer KEY, or X-API-Key");
    reply.set(field::www_authenticate, "Bearer");
    co_return reply;
  }
  work const ask = [&] { return backend_.ask(asked.body()); };
  auto const passed = co_await gate_.pass(key, ask);

  std::optional<response> reply;
  switch (passed.outcome) {
    case verdict::done:
      if (passed.answer) {
        json body;
        body["answer"] = *passed.answer;
        reply = reply_with(status::ok, body);
      } else {
        bool const client_gone = passed.answer.error() == asio::error::operation_aborted;
        if (!client_gone) complain("the backend", passed.answer.error());
        reply = refusal(status::bad_gateway, "the backend failed");
      }
      break;
    case verdict::too_often:
      reply = refusal(status::too_many_requests, "this key has used up its requests");
      reply->set(field::retry_after, weir::http::retry_after(passed.rate));
      break;
    case verdict::no_turn:
      reply = retry_later(status::too_many_requests, "too many requests run at once");
      break;
    case verdict::permit_lost:
      complain("a permit", passed.problem);
      reply = retry_later(status::service_unavailable, "interrupted; nothing is known of it");
      break;
    case verdict::failed:
      complain("the store", passed.problem);
      reply = retry_later(status::service_unavailable, "the limits cannot be asked");
      break;
  }
  if (passed.outcome != verdict::failed) tell_the_rate(*reply, passed.rate);
  co_return std::move(*reply);
}

void answers::tell_the_rate(response& reply, weir::decision const& rate) const {
  reply.set(weir::http::ratelimit_policy_field, policy_);
  reply.set(weir::http::ratelimit_field, weir::http::ratelimit(rate, quota_name));
}

asio::awaitable<response> answers::count() {
  try {
    auto const now = co_await gate_.look();
    json body;
    body["running"] = now.running;
    body["waiting"] = now.waiting;
    co_return reply_with(status::ok, body);
  } catch (boost::system::system_error const& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    complain("the store", e.code());
  }
  co_return retry_later(status::service_unavailable, "the limits cannot be asked");
}

}  // namespace gateway
