// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_KEEP_FROM_CHILDREN_HPP
#define WEIR_DETAIL_KEEP_FROM_CHILDREN_HPP

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#endif

namespace weir::detail {

/// A program that this process starts must not hold a connection that has ended here: the server
/// would not hear of the end. Asio's sockets are inherited as they come.
template <class Socket>
void keep_from_children([[maybe_unused]] Socket socket) noexcept {
#if defined(FD_CLOEXEC)
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
#endif
}

}  // namespace weir::detail

#endif
