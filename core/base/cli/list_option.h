// An option that takes several values, with commas or given again: `--mode ddp,model --mode
// pipeline`. An empty value is refused: it is that of a shell variable which is not set.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace howmany {

// Throws CLI::ValidationError naming the option where one is empty.
std::vector<std::string> split_list(const std::string& option,
                                    const std::vector<std::string>& given);

// "cpu:0-3" is cpu:0,cpu:1,cpu:2,cpu:3; what is not understood stays, for the bench to explain.
std::vector<std::string> expanded_devices(const std::vector<std::string>& devices);

inline void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                     const std::string& what) {
  const auto take = [&values, name](const std::vector<std::string>& given) {
    values = split_list(name, given);
  };
  app.add_option_function<std::vector<std::string>>(name, take, what)
      ->type_name("A,B,...")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace howmany
