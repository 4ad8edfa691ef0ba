// expect: weir::raw_codec: the type is trivially copyable, without padding
// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// The bytes between its members, whatever stood there before, would be stored.

#include "weir/codec.hpp"

struct padded {
  char letter = 0;
  int number = 0;
};

std::string text() { return weir::raw_codec{}.encode(padded{}); }
