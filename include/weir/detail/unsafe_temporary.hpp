// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_UNSAFE_TEMPORARY_HPP
#define WEIR_DETAIL_UNSAFE_TEMPORARY_HPP

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <type_traits>

// g++ 12 destroys some temporaries twice that stand beside `co_await`: aggregates, and lambdas with
// captures that are not trivial. What can be seen of that is refused.
namespace weir::detail {

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
inline constexpr bool destroys_twice = true;
#else
inline constexpr bool destroys_twice = false;
#endif

/// Is an argument that is deduced to be `Job` such a temporary?
template <class Job>
inline constexpr bool unsafe_temporary =
    destroys_twice && std::is_aggregate_v<Job> && !std::is_trivially_destructible_v<Job>;

/// Does an operation with this token stand beside `co_await`?
template <class Token>
struct is_awaited : std::false_type {};
template <>
struct is_awaited<boost::asio::deferred_t> : std::true_type {};
template <class Executor>
struct is_awaited<boost::asio::use_awaitable_t<Executor>> : std::true_type {};
template <class Token>
struct is_awaited<boost::asio::as_tuple_t<Token>> : is_awaited<Token> {};

/// Is a body that is deduced to be `Body&&` such a temporary?
template <class Body, class Token>
inline constexpr bool unsafe_body =
    destroys_twice && !std::is_reference_v<Body> && !std::is_trivially_destructible_v<Body> &&
    is_awaited<std::remove_cvref_t<Token>>::value;

}  // namespace weir::detail

#endif
