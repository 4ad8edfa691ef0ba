// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Runs a fuzz target without libFuzzer, briefly and always the same: every file of its corpus, then
// mutations of them that a seed picks. What makes it fail is left in a file beside it.
//
// usage: fuzz.NAME [--mutations N] [--seed S] FILE-OR-FOLDER...

#include "weir/testing/dice.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace {

constexpr std::size_t longest = 4096;
std::string current;  // what the target is given

extern "C" void keep_it(int signal) {
  if (std::FILE* const file = std::fopen("fuzz-failure", "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    static constexpr char said[] = "the input is in the file fuzz-failure\n";
    if (::write(STDERR_FILENO, said, sizeof(said) - 1) < 0) std::_Exit(1);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(std::string input) {
  current = std::move(input);
  // A block of its own, as long as the input: to read beyond it is then an error that ASan sees.
  std::vector<std::uint8_t> const bytes(current.begin(), current.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string mutate(std::string text, std::vector<std::string> const& others,
                   weir::testing::dice& dice) {
  for (auto left = 1 + dice.below(4); left != 0; --left) {
    auto const at = dice.below(text.size() + 1);
    auto const n = dice.below(std::min<std::size_t>(text.size() - at, 16) + 1);
    auto const byte = static_cast<char>(dice.bits());
    switch (dice.below(6)) {
      case 0: text.insert(at, 1 + dice.below(8), byte); break;
      case 1: text.erase(at, n); break;
      case 2: text.insert(at, text.substr(at, n)); break;
      case 3: text.resize(at); break;
      case 4:
        if (at != text.size()) text[at] = byte;
        break;
      default: {
        auto const& other = dice.pick(others);
        text = text.substr(0, at) + other.substr(dice.below(other.size() + 1));
      }
    }
  }
  text.resize(std::min(text.size(), longest));
  return text;
}

std::string read(std::filesystem::path const& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw std::runtime_error{"cannot read " + path.string()};
  return {std::istreambuf_iterator<char>{file}, {}};
}

int replay(std::vector<std::string_view> const& arguments) {
  std::uint64_t mutations = 0;
  std::uint64_t seed = 1;
  std::vector<std::filesystem::path> files;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    bool const wants_number = arguments[i] == "--mutations" || arguments[i] == "--seed";
    if (wants_number && i + 1 < arguments.size()) {
      auto& number = arguments[i] == "--seed" ? seed : mutations;
      number = std::stoull(std::string{arguments[++i]});
    } else if (std::filesystem::is_directory(arguments[i])) {
      for (auto const& each : std::filesystem::directory_iterator{arguments[i]}) {
        files.push_back(each.path());
      }
    } else {
      files.emplace_back(arguments[i]);
    }
  }
  std::ranges::sort(files);
  if (files.empty()) throw std::runtime_error{"there is no corpus"};

  for (int const signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) {
    std::signal(signal, keep_it);
  }
  std::vector<std::string> corpus;
  for (auto const& file : files) run(corpus.emplace_back(read(file)));
  run({});
  weir::testing::dice dice{seed};
  for (std::uint64_t i = 0; i != mutations; ++i) run(mutate(dice.pick(corpus), corpus, dice));
  std::printf("%zu files and %llu mutations of seed %llu\n", files.size(),
              static_cast<unsigned long long>(mutations), static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return replay({argv + 1, argv + argc});
  } catch (std::exception const& e) {
    std::fprintf(stderr, "replay: %s\n", e.what());
    if (!current.empty()) keep_it(SIGABRT);
    return 2;
  }
}
