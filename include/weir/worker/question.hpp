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
#include <type_traits>
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
  bool in_doubt = false;           ///< has any request's outcome been unknown?
  bool heeded = true;              ///< does its failure make the worker back off from the queue?
  bool needs_room = false;         ///< is it not asked again while the store is full?

 protected:
  explicit any_question(std::string_view q) noexcept : queue{q} {}
  ~any_question() = default;
};

/// The part of a question that depends on the answer's type only.
template <class Answer>
class answered_question : public any_question {
 public:
  void fail(error_code ec) final {
    answer = ec;
    error = ec;
  }

  result<Answer> answer = make_error_code(errc::store_unavailable);

 protected:
  using any_question::any_question;
  ~answered_question() = default;

  struct reply {
    using executor_type = boost::asio::any_io_executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

    void operator()(error_code ec, Answer got) {
      if (ec) {
        to->fail(ec);
      } else {
        to->error = {};
        to->answer = std::move(got);
      }
      std::move(then)(error_code{});
    }

    answered_question* to;
    executor_type executor;
    resumption then;
  };
};

template <class C>
class question final : public answered_question<typename C::result> {
  using base = answered_question<typename C::result>;

 public:
  explicit question(C const& c) : base{queue_of(c)}, command_{c} {}

  void execute(worker_store const& store) override {
    this->answer = store.execute(command_);
    this->error = this->answer.has_error() ? this->answer.error() : error_code{};
  }
  void start(worker_store const& store, boost::asio::any_io_executor const& strand,
             resumption then) override {
    store.start(command_, typename base::reply{this, strand, std::move(then)});
  }

 private:
  [[nodiscard]] static std::string_view queue_of(C const& c) noexcept {
    // A look concerns all queues: its failure is no one queue's.
    if constexpr (std::is_same_v<C, command::min_vesting_time>)
      return {};
    else if constexpr (requires { c.queue; })
      return c.queue;
    return {};
  }

  C command_;
};

}  // namespace weir::detail

#endif
