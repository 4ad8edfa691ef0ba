// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_EXPLAINED_HPP
#define WEIR_DETAIL_EXPLAINED_HPP

#include "weir/detail/config.hpp"
#include "weir/error.hpp"

#include <string>
#include <string_view>

// An error code that carries its cause. It compares equal to the plain one, and its message, and so
// the text of the exception that Asio makes of it, says more (F86).
namespace weir::detail {

/// Text of strangers, for a log: white space becomes a single space, other bytes that are not
/// printable ASCII become `\xNN`, and what is longer than `most` bytes is cut (F98).
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 300);

/// `ec`, with this text behind its message; made `printable`. `ec` itself if it is not weir's, if
/// it has a text already, or once 1,000 different texts were used, for bad input 500: they live as
/// long as the process, since error codes do.
[[nodiscard]] error_code explained(error_code ec, std::string_view text) noexcept;
[[nodiscard]] inline error_code explained(errc e, std::string_view text) noexcept {
  return explained(make_error_code(e), text);
}

/// The same without a text.
[[nodiscard]] inline error_code plain(error_code const& ec) noexcept {
  return ec.category() == weir::error_category() ? error_code{ec.value(), weir::error_category()}
                                                 : ec;
}

/// The text that an error code carries; empty: none.
[[nodiscard]] std::string_view explanation_of(error_code const& ec) noexcept;

}  // namespace weir::detail

#if !defined(WEIR_SEPARATE_COMPILATION)
#include "weir/detail/explained_texts.hpp"
#endif

#endif
