// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Boost.Test's implementation and main, compiled once for all test programs.
#define BOOST_TEST_MODULE weir
#include <boost/test/included/unit_test.hpp>

// Where the project is, apart from the tests that read its files: ccache knows them again in
// another folder.
namespace weir_test {

extern char const* const project_folder;
char const* const project_folder = WEIR_PROJECT_FOLDER;

}  // namespace weir_test
