// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Where the NATS server is, apart from the tests that start it: ccache knows them again in another
// folder.
namespace nats_test {

extern char const* const server_program;
char const* const server_program = WEIR_NATS_SERVER;

}  // namespace nats_test
