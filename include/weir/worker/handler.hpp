// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_HANDLER_HPP
#define WEIR_WORKER_HANDLER_HPP

#include "weir/concept.hpp"
#include "weir/detail/context_gate.hpp"
#include "weir/error.hpp"
#include "weir/job_codec.hpp"
#include "weir/job_context.hpp"
#include "weir/job_traits.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <nlohmann/json_fwd.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// What a worker keeps of a handler: its type is known where it is registered, and nowhere after.
namespace weir::detail {

namespace asio = boost::asio;

template <class T>
struct handler_value {
  using type = T;
  static constexpr bool is_awaitable = false;
};
template <class T, class Executor>
struct handler_value<asio::awaitable<T, Executor>> {
  using type = T;
  static constexpr bool is_awaitable = true;
};

/// What a call of the handler returns: it takes (job const&, job_context&) or (job const&).
template <class Handler, class Job>
auto call_handler(Handler& handler, Job const& job, job_context& context) -> decltype(auto) {
  if constexpr (std::invocable<Handler&, Job const&, job_context&>) {
    return handler(job, context);
  } else {
    return handler(job);
  }
}

template <class Handler, class Job>
concept takes_job =
    std::invocable<Handler&, Job const&, job_context&> || std::invocable<Handler&, Job const&>;

template <class Handler, class Job>
using handler_return = std::remove_cvref_t<decltype(call_handler(
    std::declval<Handler&>(), std::declval<Job const&>(), std::declval<job_context&>()))>;

template <class F>
struct first_parameter {};
template <class R, class A, class... Rest, bool NoThrow>
struct first_parameter<R (*)(A, Rest...) noexcept(NoThrow)> {
  using type = std::remove_cvref_t<A>;
};
template <class R, class C, class A, class... Rest, bool NoThrow>
struct first_parameter<R (C::*)(A, Rest...) noexcept(NoThrow)> {
  using type = std::remove_cvref_t<A>;
};
template <class R, class C, class A, class... Rest, bool NoThrow>
struct first_parameter<R (C::*)(A, Rest...) const noexcept(NoThrow)> {
  using type = std::remove_cvref_t<A>;
};

/// The job type of a handler, where its signature says it.
template <class Handler>
struct job_of : first_parameter<Handler> {};
template <class Handler>
  requires requires { &Handler::operator(); }
struct job_of<Handler> : first_parameter<decltype(&Handler::operator())> {};

/// One that is bound to an executor runs there: see `boost::asio::bind_executor`.
template <class Handler>
concept has_executor = requires(Handler const& h) {
  { h.get_executor() } -> std::convertible_to<asio::any_io_executor>;
};
template <class T, class Executor>
struct job_of<asio::executor_binder<T, Executor>> : job_of<T> {};

/// A handler that outlives its executor's context keeps no strand of it.
template <class Handler>
[[nodiscard]] auto without_executor(Handler h) {
  if constexpr (requires { std::move(h).without_executor(); }) {
    return std::move(h).without_executor();
  } else {
    return h;
  }
}
template <class T, class Executor>
[[nodiscard]] auto without_executor(asio::executor_binder<T, Executor> h) {
  return without_executor(std::move(h.get()));
}

/// Is a result stored as it is? A JSON value is not, although it converts to a string.
template <class T>
concept text_result = std::convertible_to<T, std::string> && !std::same_as<T, nlohmann::json> &&
                      !std::same_as<T, nlohmann::ordered_json>;
template <class T> concept storable_result = std::is_void_v<T> || text_result<T> || json_form<T>;

/// The text that `complete` stores for a handler's return value, or the reason why there is none:
/// the handler has succeeded all the same, and its work is not repeated (F62).
struct handler_result {
  handler_result() = default;
  handler_result(std::string t, bool can_be_stored) : text{std::move(t)}, storable{can_be_stored} {}

  std::string text;      ///< storable: the result; otherwise the reason
  bool storable = true;  ///< has it a text, of at most `limits::payload_size` bytes?
};

[[nodiscard]] inline handler_result not_storable(std::string reason) {
  return {std::move(reason), false};
}

/// A string as it is, anything else as its JSON form.
template <class T>
[[nodiscard]] handler_result result_of(T&& value) {
  handler_result out;
  try {
    if constexpr (text_result<std::remove_cvref_t<T>>) {
      out.text = std::string{std::forward<T>(value)};
    } else {
      auto encoded = encode_json(value);
      if (encoded.has_error()) return not_storable(encoded.error().message());
      out.text = std::move(encoded).value();
    }
  } catch (std::exception const& e) {  // the type's own conversion, or no memory
    return not_storable(text_of(e));
  } catch (...) {
    return not_storable("an exception that is not a std::exception");
  }
  if (out.text.size() > limits::payload_size) {
    return not_storable(make_error_code(errc::payload_too_large).message());
  }
  return out;
}

/// One decoded job with its type's policies, ready to run. Which of `run` and `call` runs it, its
/// `any_handler` says.
class prepared_job {
 public:
  prepared_job() = default;
  prepared_job(prepared_job const&) = delete;
  prepared_job& operator=(prepared_job const&) = delete;
  virtual ~prepared_job() = default;

  /// Runs a handler that is a coroutine; its exceptions come through.
  virtual asio::awaitable<handler_result> run(job_context& context) = 0;

  /// Runs a handler that is a plain function; its exceptions come through.
  virtual handler_result call(job_context& context) = 0;

  std::uint32_t concurrency = 0;
  std::string concurrency_key;
  limit_scope concurrency_scope = limit_scope::job;
  std::span<quota const> rate;
  std::string rate_key;
  std::uint64_t rate_cost = 1;
  limit_scope rate_scope = limit_scope::job;
};

/// Calls a handler that is a plain function.
template <class Handler, class Job>
[[nodiscard]] handler_result result_of_call(Handler& handler, Job const& job,
                                            job_context& context) {
  if constexpr (std::is_void_v<handler_return<Handler, Job>>) {
    call_handler(handler, job, context);
    return {};
  } else {
    return result_of(call_handler(handler, job, context));
  }
}

template <class Job, class Handler>
class typed_job final : public prepared_job {
 public:
  typed_job(std::shared_ptr<Handler> handler, Job job)
      : handler_{std::move(handler)},
        job_{std::move(job)} {
    using policy = job_policy<Job>;
    static constexpr auto quotas = policy::rate();
    concurrency = policy::concurrency();
    if (concurrency != 0) concurrency_key = policy::concurrency_key(job_);
    concurrency_scope = policy::concurrency_scope();
    rate = quotas;
    if (!rate.empty()) {
      rate_key = policy::rate_key(job_);
      rate_cost = policy::rate_cost(job_);
    }
    rate_scope = policy::rate_scope();
  }

  asio::awaitable<handler_result> run([[maybe_unused]] job_context& context) override {
    if constexpr (!is_coroutine) {
      return {};
    } else {
      return run_coroutine(context);
    }
  }

  handler_result call([[maybe_unused]] job_context& context) override {
    if constexpr (is_coroutine) {
      return {};
    } else {
      return result_of_call(*handler_, job_, context);
    }
  }

 private:
  using answer = handler_value<handler_return<Handler, Job>>;
  using value = typename answer::type;
  static constexpr bool is_coroutine = answer::is_awaitable;

  asio::awaitable<handler_result> run_coroutine(job_context& context)
    requires is_coroutine
  {
    if constexpr (std::is_void_v<value>) {
      co_await call_handler(*handler_, job_, context);
      co_return handler_result{};
    } else {
      auto got = co_await call_handler(*handler_, job_, context);
      co_return result_of(std::move(got));
    }
  }

  std::shared_ptr<Handler> handler_;
  Job job_;
};

/// The limits of a kind of jobs, as far as its type says them.
struct kind_limits {
  std::uint32_t concurrency = 0;
  std::string concurrency_key{};  ///< empty: it is made of each job
  std::span<quota const> rate{};
  std::string rate_key{};       ///< empty: it is made of each job
  std::uint64_t rate_cost = 0;  ///< 0: it is made of each job
};

template <class Job>
[[nodiscard]] kind_limits limits_of_kind() {
  using traits = job_traits<Job>;
  using policy = job_policy<Job>;
  static constexpr auto quotas = policy::rate();
  kind_limits out{.concurrency = policy::concurrency(), .rate = quotas};
  // In the order of `job_policy`: a function, which may be a template, a constant, the kind.
  constexpr bool own_key = requires(Job const& j) { std::string{traits::concurrency_key(j)}; };
  if constexpr (requires { std::string{traits::concurrency_key}; }) {
    out.concurrency_key = std::string{traits::concurrency_key};
  } else if constexpr (!own_key) {
    out.concurrency_key = std::string{policy::kind()};
  }
  constexpr bool own_rate_key = requires(Job const& j) { std::string{traits::rate_key(j)}; };
  if constexpr (requires { std::string{traits::rate_key}; }) {
    out.rate_key = std::string{traits::rate_key};
  } else if constexpr (!own_rate_key) {
    out.rate_key = std::string{policy::kind()};
  }
  constexpr bool own_cost = requires(Job const& j) { std::uint64_t{traits::rate_cost(j)}; };
  if constexpr (own_cost) {
  } else if constexpr (requires { traits::rate_cost; }) {
    out.rate_cost = traits::rate_cost;
  } else {
    out.rate_cost = 1;
  }
  return out;
}

/// What is known of a handler and its job's type before a job is decoded.
struct handler_traits {
  bool is_coroutine = false;
  bool is_gated = false;        ///< by a concurrency or a rate limit, whose keys are the job's own
  bool is_rescheduled = false;  ///< an enqueue may move a job of its key to another instant
  std::uint32_t max_snoozes = 0;
  duration timeout{};
  kind_limits limits{};
};

/// A registered handler, whatever its job's type.
class any_handler {
 public:
  explicit any_handler(handler_traits t) : traits{std::move(t)} {}
  any_handler(any_handler const&) = delete;
  any_handler& operator=(any_handler const&) = delete;
  virtual ~any_handler() = default;

  std::shared_ptr<gated_executor const> own{};  ///< its executor; null: it has none

  /// The job of a payload, or null and the reason why it cannot be one.
  [[nodiscard]] virtual std::unique_ptr<prepared_job> prepare(std::string_view payload,
                                                              std::string& reason) const = 0;

  /// Decodes the payload and calls the handler, without a `prepared_job`, if that is a plain
  /// function; those of coroutines are never called. All exceptions come through.
  ///
  /// @param[out] reason  why there is no result: the payload cannot be decoded
  /// @param[out] decoded is it decoded? What is thrown then is the handler's
  [[nodiscard]] virtual std::optional<handler_result> call(std::string_view, job_context&,
                                                           std::string& /*reason*/,
                                                           bool& /*decoded*/) const {
    return std::nullopt;
  }

  /// How long a failed attempt waits, if the job's type has a backoff of its own.
  [[nodiscard]] virtual std::optional<duration> backoff(std::uint32_t, std::uint64_t) const {
    return std::nullopt;
  }

  handler_traits const traits;
};

template <class Job, class Handler>
class typed_handler final : public any_handler {
 public:
  explicit typed_handler(Handler handler)
      : any_handler{{.is_coroutine = handler_value<handler_return<Handler, Job>>::is_awaitable,
                     .is_gated = job_policy<Job>::concurrency() != 0 ||
                                 !std::empty(job_policy<Job>::rate()),
                     .is_rescheduled =
                         job_policy<Job>::on_conflict() == conflict_policy::reschedule,
                     .max_snoozes = job_policy<Job>::max_snoozes(),
                     .timeout = job_policy<Job>::timeout(),
                     .limits = limits_of_kind<Job>()}},
        handler_{[&] {
          if constexpr (has_executor<Handler>) {
            asio::any_io_executor on = handler.get_executor();
            if (on) own = std::make_shared<gated_executor>(std::move(on));
          }
          return std::make_shared<target>(without_executor(std::move(handler)));
        }()} {}

  [[nodiscard]] std::unique_ptr<prepared_job> prepare(std::string_view payload,
                                                      std::string& reason) const override {
    auto job = weir::decode<Job>(payload);
    if (!job.ok) {
      reason = std::move(job.reason);
      return nullptr;
    }
    return std::make_unique<typed_job<Job, target>>(handler_, std::move(job.value));
  }

  [[nodiscard]] std::optional<handler_result> call([[maybe_unused]] std::string_view payload,
                                                   [[maybe_unused]] job_context& context,
                                                   [[maybe_unused]] std::string& reason,
                                                   [[maybe_unused]] bool& decoded) const override {
    if constexpr (handler_value<handler_return<Handler, Job>>::is_awaitable) {
      return std::nullopt;
    } else {
      auto const job = weir::decode<Job>(payload);
      decoded = job.ok;
      if (decoded) return result_of_call(*handler_, job.value, context);
      reason = job.reason;
      return std::nullopt;
    }
  }

  [[nodiscard]] std::optional<duration> backoff(
      [[maybe_unused]] std::uint32_t failures,
      [[maybe_unused]] std::uint64_t entropy) const override {
    if constexpr (job_policy<Job>::has_backoff) {
      static_assert(weir::backoff<std::remove_cvref_t<decltype(job_traits<Job>::backoff)>>,
                    "job_traits: backoff does not model weir::backoff");
      return job_traits<Job>::backoff(failures, duration::zero(), entropy);
    } else {
      return std::nullopt;
    }
  }

 private:
  using target = decltype(without_executor(std::declval<Handler>()));
  std::shared_ptr<target> handler_;
};

}  // namespace weir::detail

#endif
