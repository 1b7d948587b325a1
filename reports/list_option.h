// An option that takes several values, with commas or given again: `--mode ddp,model --mode
// pipeline`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace howmany {

inline void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                     const std::string& what) {
  app.add_option(name, values, what)
      ->delimiter(',')
      ->type_name("A,B,...")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace howmany
