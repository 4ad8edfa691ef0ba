// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_ASYNC_COMMAND_HPP
#define WEIR_DETAIL_ASYNC_COMMAND_HPP

#include "weir/concept.hpp"
#include "weir/detail/async_lift.hpp"
#include "weir/error.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

// Most operations of the primitives are one command. What their callers gave must be copied (the
// caller's strings may be gone before a remote store reads them), live until the answer, and be
// gone before the handler runs. That is written here once.
//
// A *request* owns what a command views: it is movable and has `auto command() const` returning the
// command. If it also has `error_code problem() const`, and there is one, the operation completes
// with that and nothing is executed. If it has `void failed(error_code)`, it is told of an error
// before it is destroyed. A *mapping* turns the answer into the operation's result: `result<R>
// operator()(Command::result, Request&)`, called for success only; or `explained_result<R>`, where
// an error of its own comes with a value.
namespace weir::detail {

template <class Request>
using command_of = decltype(std::declval<Request const&>().command());

/// The usual request: some strings, and a function that makes a command of views of them.
template <std::size_t N, class Make>
class owned_request {
 public:
  owned_request(std::array<std::string, N> texts, Make make)
      : texts_{std::move(texts)},
        make_{std::move(make)} {}

  [[nodiscard]] auto command() const {
    return std::apply([this](auto const&... texts) { return make_(std::string_view{texts}...); },
                      texts_);
  }

 private:
  std::array<std::string, N> texts_;
  Make make_;
};

/// The usual mapping: the answer is the result.
struct unchanged {
  template <class Answer, class Request>
  result<Answer> operator()(Answer answer, Request&) const {
    return answer;
  }
};

template <class Store, class Request, class Mapping, class Handler>
struct command_operation {
  command_operation(Store s, Request r, Mapping m, Handler h)
      : store{std::move(s)},
        request{std::move(r)},
        mapping{std::move(m)},
        handler{std::move(h)} {}

  Store store;
  Request request;
  Mapping mapping;
  Handler handler;
};

/// Owns an operation in memory of its handler's allocator, and gives that back before the handler
/// is called.
template <class Operation, class Handler>
class operation_owner {
  using allocator = typename std::allocator_traits<
      boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<Operation>;
  using traits = std::allocator_traits<allocator>;

 public:
  template <class... Args>
  explicit operation_owner(Handler& handler, Args&&... args)
      : allocator_{boost::asio::get_associated_allocator(handler)},
        operation_{traits::allocate(allocator_, 1)} {
    try {
      ::new (static_cast<void*>(operation_))
          Operation{std::forward<Args>(args)..., std::move(handler)};
    } catch (...) {
      traits::deallocate(allocator_, operation_, 1);
      throw;
    }
  }
  operation_owner(operation_owner&& other) noexcept
      : allocator_{other.allocator_},
        operation_{std::exchange(other.operation_, nullptr)} {}
  operation_owner& operator=(operation_owner&&) = delete;
  ~operation_owner() { reset(); }

  Operation* operator->() const noexcept { return operation_; }
  Operation& operator*() const noexcept { return *operation_; }

  void reset() noexcept {
    if (auto* const gone = std::exchange(operation_, nullptr)) {
      [[maybe_unused]] Handler const last = std::move(gone->handler);  // an erased handler is its
                                                                       // allocator
      gone->~Operation();
      traits::deallocate(allocator_, gone, 1);
    }
  }

 private:
  allocator allocator_;
  Operation* operation_;
};

/// The handler that a store sees: it keeps the operation, and has the caller's handler's
/// associations.
template <class Result, class Store, class Request, class Mapping, class Handler>
class command_handler {
 public:
  using operation = command_operation<Store, Request, Mapping, Handler>;
  using answer = typename command_of<Request>::result;

  explicit command_handler(operation_owner<operation, Handler> owner) : owner_{std::move(owner)} {}

  void operator()(error_code ec, answer got) {
    std::invoke_result_t<Mapping&, answer, Request&> mapped = ec;
    if (!ec) {
      mapped = owner_->mapping(std::move(got), owner_->request);
    } else if constexpr (requires { owner_->request.failed(ec); }) {
      owner_->request.failed(ec);
    }
    Handler handler = std::move(owner_->handler);
    owner_.reset();
    if (mapped.has_value()) {
      std::move(handler)(error_code{}, std::move(mapped).value());
    } else {
      error_code const why = mapped.error();
      std::move(handler)(why, beside_error(std::move(mapped)));
    }
  }

  [[nodiscard]] operation& get() const noexcept { return *owner_; }

 private:
  operation_owner<operation, Handler> owner_;
};

/// Executes the command of `request` and gives its result to the handler; moves from what it keeps.
template <class Result, class Store, class Request, class Mapping, class Handler>
void carry_out(Store& store, Request& request, Mapping& mapping, Handler& handler) {
  using command = command_of<Request>;
  constexpr bool erased = requires { store.executes_now(); };
  if constexpr (requires { request.problem(); }) {
    if (error_code const ec = request.problem()) {
      auto fail = [ec]() -> result<Result> { return ec; };
      lift(store.get_executor(), fail, std::move(handler));
      return;
    }
  }
  if constexpr (executes_now<Store, command> || erased) {
    bool now = true;
    if constexpr (erased) now = store.executes_now();
    if (now) {
      // Nothing outlives this call but the result: no operation need be kept.
      using mapped_type = std::invoke_result_t<Mapping&, typename command::result, Request&>;
      auto step = [&]() -> mapped_type {
        auto answer = store.execute(request.command());
        if (answer.has_error()) {
          if constexpr (requires { request.failed(answer.error()); }) {
            request.failed(answer.error());
          }
          return answer.error();
        }
        return mapping(std::move(answer).value(), request);
      };
      lift(store.get_executor(), step, std::move(handler));
      return;
    }
  }
  if constexpr (!executes_now<Store, command> || erased) {
    using wrapped = command_handler<Result, Store, Request, Mapping, Handler>;
    operation_owner<typename wrapped::operation, Handler> owner{
        handler, std::move(store), std::move(request), std::move(mapping)};
    auto& operation = *owner;
    wrapped next{std::move(owner)};
    if constexpr (erased) {
      operation.store.start(operation.request.command(), std::move(next));
    } else {
      operation.store.async_execute(operation.request.command(), std::move(next));
    }
  }
}

/// The same, for what has been erased already.
template <class Result, class Store, class Request, class Mapping>
void begin_command(Store store, Request request, Mapping mapping,
                   boost::asio::any_completion_handler<void(error_code, Result)> handler) {
  carry_out<Result>(store, request, mapping, handler);
}

/// Executes the command of `request` and completes with `void(error_code, Result)`.
template <class Result, class Store, class Request, class Mapping, class Token>
auto async_command(Store store, Request request, Mapping mapping, Token&& token) {
  namespace asio = boost::asio;
  auto executor = store.get_executor();
  auto initiate = [](auto handler, Store to, Request what, Mapping how) {
    carry_out<Result>(to, what, how, handler);
  };
  return asio::async_initiate<Token, void(error_code, Result)>(
      bound_initiation{std::move(executor), std::move(initiate)}, token, std::move(store),
      std::move(request), std::move(mapping));
}

}  // namespace weir::detail

/// The wrapped handler's executor, allocator and cancellation slot are the caller's own.
template <template <class, class> class Associator, class Result, class Store, class Request,
          class Mapping, class Handler, class Default>
struct boost::asio::associator<
    Associator, weir::detail::command_handler<Result, Store, Request, Mapping, Handler>, Default>
    : Associator<Handler, Default> {
  using wrapper = weir::detail::command_handler<Result, Store, Request, Mapping, Handler>;

  static auto get(wrapper const& h) noexcept {
    return Associator<Handler, Default>::get(h.get().handler);
  }
  static auto get(wrapper const& h, Default const& d) noexcept {
    return Associator<Handler, Default>::get(h.get().handler, d);
  }
};

#endif
