// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_QUESTION_HPP
#define WEIR_WORKER_QUESTION_HPP

#include "weir/error.hpp"
#include "weir/time.hpp"
#include "weir/worker/runs.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <string_view>
#include <utility>

namespace weir::detail {

/// What resumes the coroutine that asks.
using resumption = boost::asio::any_completion_handler<void(error_code)>;

/// A command, and the place of its answer, whatever command it is: how one is asked is compiled
/// once.
class any_question {
 public:
  any_question(any_question const&) = delete;
  any_question& operator=(any_question const&) = delete;

  /// In the calling thread.
  virtual void execute(worker_store const& store) = 0;
  virtual void start(worker_store const& store, boost::asio::any_io_executor const& strand,
                     resumption then) = 0;
  virtual void fail(error_code ec) = 0;

  error_code error{};              ///< of the answer
  std::string_view const queue{};  ///< empty: it concerns none
  steady_time asked_at{};          ///< before the request that was answered

 protected:
  explicit any_question(std::string_view q) noexcept : queue{q} {}
  ~any_question() = default;
};

template <class C>
class question final : public any_question {
 public:
  using answer_type = typename C::result;

  explicit question(C const& c) : any_question{queue_of(c)}, command_{c} {}

  void execute(worker_store const& store) override {
    answer = store.execute(command_);
    error = answer.has_error() ? answer.error() : error_code{};
  }
  void start(worker_store const& store, boost::asio::any_io_executor const& strand,
             resumption then) override {
    store.start(command_, erased_handler<C>{reply{this, strand, std::move(then)}});
  }
  void fail(error_code ec) override {
    answer = ec;
    error = ec;
  }

  result<answer_type> answer = make_error_code(errc::store_unavailable);

 private:
  struct reply {
    using executor_type = boost::asio::any_io_executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

    void operator()(error_code ec, answer_type got) {
      to->error = ec;
      if (ec) {
        to->answer = ec;
      } else {
        to->answer = std::move(got);
      }
      std::move(then)(error_code{});
    }

    question* to;
    executor_type executor;
    resumption then;
  };

  [[nodiscard]] static std::string_view queue_of(C const& c) noexcept {
    if constexpr (requires { c.queue; }) return c.queue;
    return {};
  }

  C command_;
};

}  // namespace weir::detail

#endif
