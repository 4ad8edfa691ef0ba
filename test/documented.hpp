// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_DOCUMENTED_HPP
#define WEIR_TEST_DOCUMENTED_HPP

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

namespace weir_test {

extern char const* const project_folder;

/// Reads what a page shows for copying: from this text on to the end of its block, with one space
/// between words. So the page cannot say anything else than what is tested.
[[nodiscard]] inline std::string documented(std::string const& page, std::string const& from) {
  std::ifstream in{std::filesystem::path{project_folder} / page};
  std::string out{std::istreambuf_iterator<char>{in}, {}};
  auto const begin = out.find(from);
  auto const end = out.find("\n```", begin);
  if (begin == out.npos || end == out.npos) throw std::runtime_error{page + " has no " + from};
  std::istringstream words{out.substr(begin, end - begin)};
  out.clear();
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace weir_test

#endif
