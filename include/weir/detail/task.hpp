// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_TASK_HPP
#define WEIR_DETAIL_TASK_HPP

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <memory>
#include <type_traits>
#include <utility>

// What is posted to an executor is of one type. Asio compiles a dozen functions for each type of
// function that an executor is given, five of them for a strand alone.
namespace weir::detail {

/// A function without arguments that is called once, or destroyed. Its memory is Asio's, which
/// keeps some for each thread, and is free again when the function is called.
class task {
 public:
  template <class F>
    requires(!std::is_same_v<F, task>)
  explicit task(F f) : body_{body_of<F>::make(std::move(f))} {}

  void operator()() { body_.release()->end(true); }

 private:
  struct body {
    /// Frees the memory, and calls the function if it is to.
    virtual void end(bool call) = 0;

   protected:
    ~body() = default;
  };
  struct unused {
    void operator()(body* b) const { b->end(false); }
  };

  template <class F>
  struct body_of final : body {
    using memory = std::allocator_traits<boost::asio::recycling_allocator<body_of>>;

    explicit body_of(F&& f) : function{std::move(f)} {}

    static body* make(F&& f) {
      typename memory::allocator_type allocator;
      auto* const place = memory::allocate(allocator, 1);
      return ::new (static_cast<void*>(place)) body_of{std::move(f)};
    }
    void end(bool call) override {
      auto f = std::move(function);
      this->~body_of();
      typename memory::allocator_type allocator;
      memory::deallocate(allocator, this, 1);
      if (call) f();
    }

    F function;
  };

  std::unique_ptr<body, unused> body_;
};

/// As Asio's `post` and `dispatch`.
template <class Executor, class F>
void post_task(Executor const& to, F f) {
  boost::asio::post(to, task{std::move(f)});
}
template <class Executor, class F>
void dispatch_task(Executor const& to, F f) {
  boost::asio::dispatch(to, task{std::move(f)});
}

}  // namespace weir::detail

#endif
