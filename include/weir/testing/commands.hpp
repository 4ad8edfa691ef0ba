// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_COMMANDS_HPP
#define WEIR_TESTING_COMMANDS_HPP

#include "weir/command/list.hpp"

namespace weir::testing {

using command::bucket_commands;
using command::job_commands;
using command::lock_commands;
using command::permit_commands;
using command::waits_for_event;

template <class... Commands>
using command_list = command::list_of<Commands...>;

}  // namespace weir::testing

#endif
