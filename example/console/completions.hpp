// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_EXAMPLE_CONSOLE_COMPLETIONS_HPP
#define WEIR_EXAMPLE_CONSOLE_COMPLETIONS_HPP

#include <CLI/CLI.hpp>

#include <string>

namespace console {

/// The options of one command.
[[nodiscard]] inline std::string options_of(CLI::App const& app) {
  std::string out;
  for (auto const* const option : app.get_options()) {
    for (auto const& name : option->get_lnames()) out += " --" + name;
  }
  return out;
}

/// The words that may follow one command: the names of its subcommands and options.
[[nodiscard]] inline std::string words_of(CLI::App const& app) {
  std::string out;
  for (auto const* const sub : app.get_subcommands({})) out += ' ' + sub->get_name();
  return out + options_of(app);
}

/// A script for bash, made of the commands and options that there are, so that it forgets none.
[[nodiscard]] inline std::string bash_completions(CLI::App const& app) {
  std::string cases;
  for (auto const* const sub : app.get_subcommands({})) {
    cases += "    " + sub->get_name() + ") words=\"" + words_of(*sub) + " $common\" ;;\n";
  }
  std::string names;
  for (auto const* const sub : app.get_subcommands({})) names += '|' + sub->get_name();
  return R"(# bash completion for weirctl: source <(weirctl completions bash)
_weirctl() {
  local here=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= word words
  local common=")" +
         options_of(app) + R"("
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in )" +
         names.substr(1) + R"() command=$word; break ;; esac
  done
  case $command in
    '') words=")" +
         words_of(app) + R"(" ;;
)" + cases +
         R"(  esac
  case $before in --state) words="pending leased dead completed cancelled" ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$here"))
}
complete -F _weirctl weirctl
)";
}

}  // namespace console

#endif
