// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_CONSOLE_SITE_HPP
#define WEIR_CONSOLE_SITE_HPP

#include "weir/console/acts.hpp"
#include "weir/console/entrance.hpp"
#include "weir/console/guard.hpp"
#include "weir/console/limit_pages.hpp"
#include "weir/console/pages.hpp"
#include "weir/console/queue_pages.hpp"
#include "weir/console/web/generated.hpp"
#include "weir/console/worker_pages.hpp"
#include "weir/detail/config.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

// From a request to a page, and back: what is around each page.
namespace weir::detail::web {

inline constexpr std::size_t body_size = 4096;  // bytes of a request's body: a form without fields

class site {
 public:
  using text = boost::asio::awaitable<result<std::string>>;

  site(console_store store, any_clock clock, std::function<time_point()> date, console_options o)
      : pages_{std::move(store), std::move(clock), std::move(date), checked(std::move(o))} {}

  [[nodiscard]] console_options const& options() const noexcept { return pages_.options; }
  [[nodiscard]] console_store const& store() const noexcept { return pages_.store(); }

  static boost::asio::awaitable<result<response>> handle(std::shared_ptr<site> self,
                                                         request asked) {
    bool const head = asked.method() == http::verb::head;
    auto out = co_await self->answer(asked);
    if (head) out.body().clear();
    co_return out;
  }

  [[nodiscard]] static std::shared_ptr<query const> watched(std::shared_ptr<site> const& self,
                                                            request_header const& asked) {
    auto const q = self->within(asked);
    if (asked.method() != http::verb::get || !q || q->path() != "/events") return nullptr;
    if (refused(asked, self->options().hosts, false, openness::inner)) return nullptr;
    auto const view = query::parse(q->at("view"));
    if (!view || !self->pages_.find(*view)) return nullptr;
    auto made = std::make_unique<query const>(*view);
    if (self->streams_.fetch_add(1) >= self->options().streams) {
      --self->streams_;
      return nullptr;
    }
    return {made.release(), [self](query const* own) {
              --self->streams_;
              delete own;
            }};
  }

  static text next_event(std::shared_ptr<site> self, std::shared_ptr<query const> view,
                         std::shared_ptr<std::string> last) {
    if (!last->empty()) {
      auto const& clock = self->pages_.clock();
      auto const until = saturating_add(clock.steady_now(), self->options().every);
      co_await clock.async_wait_until(self->store().get_executor(), until,
                                      boost::asio::use_awaitable);
    }
    auto now = co_await self->event_of(*view);
    if (now == *last) co_return std::string{":\n\n"};  // so that a client that has gone is noticed
    *last = now;
    co_return now;
  }

 private:
  static console_options checked(console_options o) {
    auto const fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_' || c == '.' || c == '/';
    };
    auto const& p = o.prefix;
    bool const good =
        p.empty() || (p.starts_with('/') && !p.starts_with("//") && !p.ends_with('/'));
    if (!good || !std::ranges::all_of(p, fits)) {
      throw std::invalid_argument{"console_options::prefix is a path such as /console, or empty"};
    }
    if (o.page_size == 0 || o.page_size > 1000) {
      throw std::invalid_argument{"console_options::page_size is from 1 to 1,000"};
    }
    if (o.every < std::chrono::milliseconds{100}) {
      throw std::invalid_argument{"console_options::every is 100 ms or more"};
    }
    return o;
  }

  /// The target of a request below the prefix.
  [[nodiscard]] std::optional<query> within(request_header const& asked) const {
    std::string_view target = asked.target();
    if (!target.starts_with(options().prefix)) return std::nullopt;
    target.remove_prefix(options().prefix.size());
    if (target.empty() || target.starts_with('?')) return query::parse("/" + std::string{target});
    return query::parse(target);
  }

  boost::asio::awaitable<response> answer(request const& asked) {
    auto const q = within(asked);
    auto const path = q ? q->path() : std::string{"/"};
    bool const acts = path == "/act";
    auto const method = asked.method();
    auto const open = path == "/confirm" || path == "/events" ? openness::inner
                      : pages::is_one(path)                   ? openness::page
                                                              : openness::file;
    auto const who = [&] { return options().who ? options().who(asked) : std::string{}; };
    if (auto const why = refused(asked, options().hosts, method == http::verb::post, open)) {
      if (acts) pages_.refuse(q->at("action"), who(), why->why);
      co_return whole(problem(why->code, "Refused", why->why), path);
    }
    if (!q) {
      co_return whole(problem(status::bad_request, "Not understood", "No such target."), path);
    }
    bool const fits =
        acts ? method == http::verb::post : method == http::verb::get || method == http::verb::head;
    if (!fits) {
      if (acts) pages_.refuse(q->at("action"), who(), "it is asked for by POST");
      auto out = whole(problem(status::method_not_allowed, "Not this method", "Not here."), path);
      out.set(http::field::allow, acts ? "POST" : "GET, HEAD");
      co_return out;
    }
    if (path == "/page.css") co_return asset("text/css; charset=utf-8", page_css);
    if (path == "/page.js") co_return asset("text/javascript; charset=utf-8", page_js);
    if (acts) {
      std::string_view const type = asked[http::field::content_type];
      if (asked.body().size() > body_size) {
        pages_.refuse(q->at("action"), who(), "the form is too large");
        co_return whole(problem(status::payload_too_large, "Too large", "A form is small."), path);
      }
      if (!type.empty() && !type.starts_with("application/x-www-form-urlencoded")) {
        pages_.refuse(q->at("action"), who(), "it is not a form");
        co_return whole(problem(status::unsupported_media_type, "Not a form", "A form is."), path);
      }
      co_return whole(co_await pages_.act(*q, who()), path);
    }
    if (path == "/confirm") co_return whole(co_await pages_.confirm(*q), path);
    if (path == "/events") {
      // A server that knows of no streams: one event, and the browser asks again in a while.
      auto const view = query::parse(q->at("view"));
      if (view && pages_.find(*view)) {
        auto out = asset("text/event-stream", co_await event_of(*view));
        out.set(http::field::cache_control, "no-store");
        co_return out;
      }
    }
    if (auto found = pages_.find(*q)) {
      auto made = co_await std::move(*found);
      std::string target{asked.target().substr(options().prefix.size())};
      if (!target.starts_with('/')) target.insert(0, "/");
      co_return whole(made, path, target);
    }
    co_return whole(problem(status::not_found, "Not found", "There is no such page."), path);
  }

  boost::asio::awaitable<std::string> event_of(query const& view) {
    auto found = pages_.find(view);
    auto const made = co_await std::move(*found);
    std::string out = "retry: 10000\ndata: ";
    for (char const c : made.main.text()) {  // no other line ends: those are shown by their numbers
      out += c;
      if (c == '\n') out += "data: ";
    }
    co_return out + "\n\n";
  }

  [[nodiscard]] response plain(status code, std::string_view type, std::string body) const {
    response out{code, 11};
    out.set(http::field::content_type, type);
    guard(out);
    out.body() = std::move(body);
    return out;
  }
  [[nodiscard]] response asset(std::string_view type, std::string body) const {
    auto out = plain(status::ok, type, std::move(body));
    out.set(http::field::cache_control, "private, max-age=60");
    return out;
  }

  /// A page with what is around it.
  [[nodiscard]] response whole(page const& made, std::string_view path,
                               std::string_view target = {}) const {
    if (!made.location.empty()) {
      auto out = plain(made.code, "text/html; charset=utf-8", {});
      out.set(http::field::location, made.location);
      return out;
    }
    struct place {
      std::string_view path, name;
    };
    static constexpr place places[] = {{"/", "Overview"},         {"/queues", "Queues"},
                                       {"/dead", "Dead letters"}, {"/workers", "Workers"},
                                       {"/limits", "Limits"},     {"/schedules", "Schedules"}};
    bool const of_a_queue = path == "/queue" || path == "/job";
    html h;
    h << "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
         "content=\"width=device-width, initial-scale=1\"><title>"_html
      << made.title << " · "_html << options().title
      << "</title><link rel=icon href=\"data:,\"><link "
         "rel=stylesheet href=\""_html
      << pages_.at("/page.css") << "\"><script src=\""_html << pages_.at("/page.js")
      << "\" defer></script></head><body><a class=skip href=\"#main\">To the content</a><header><a "
         "class=brand href=\""_html
      << pages_.at("/") << "\">"_html << options().title << "</a><nav aria-label=Pages>"_html;
    for (auto const& each : places) {
      h << "<a"_html;
      if (each.path == path || (of_a_queue && each.path == "/queues"))
        h << " aria-current=page"_html;
      h << " href=\""_html << pages_.at(each.path) << "\">"_html << each.name << "</a>"_html;
    }
    h << "</nav>"_html;
    if (options().allow.empty()) h << "<span class=mode>read-only</span>"_html;
    h << "<button id=live hidden>Live</button></header><main id=main tabindex=-1"_html;
    if (!target.empty()) {
      h << " data-events=\""_html << pages_.at("/events", {{"view", target}}) << "\""_html;
    }
    h << ">"_html << made.main << "</main></body></html>\n"_html;
    return plain(made.code, "text/html; charset=utf-8", h.text());
  }

  pages pages_;
  std::atomic<std::uint32_t> streams_{0};
};

WEIR_DECL std::shared_ptr<site> open_site(console_store store, any_clock clock,
                                          std::function<time_point()> date, console_options o) {
  return std::make_shared<site>(std::move(store), std::move(clock), std::move(date), std::move(o));
}
WEIR_DECL boost::asio::any_io_executor executor_of(site const& of) noexcept {
  return of.store().get_executor();
}

WEIR_DECL void answer(std::shared_ptr<site> const& of, request asked,
                      boost::asio::any_completion_handler<void(error_code, response)> handler) {
  spawn<response>(executor_of(*of), site::handle(of, std::move(asked)), std::move(handler));
}

WEIR_DECL std::shared_ptr<query const> watched(std::shared_ptr<site> const& of,
                                               request_header const& asked) {
  return site::watched(of, asked);
}
WEIR_DECL http::response<http::empty_body> stream_head() {
  http::response<http::empty_body> out{http::status::ok, 11};
  out.set(http::field::content_type, "text/event-stream");
  guard(out);
  out.chunked(true);
  return out;
}
WEIR_DECL void next_event(
    std::shared_ptr<site> const& of, std::shared_ptr<query const> const& view,
    std::shared_ptr<std::string> const& last,
    boost::asio::any_completion_handler<void(error_code, std::string)> handler) {
  spawn<std::string>(executor_of(*of), site::next_event(of, view, last), std::move(handler));
}

}  // namespace weir::detail::web

#endif
