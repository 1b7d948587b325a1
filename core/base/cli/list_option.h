// An option with several values, separated by commas or repeated: `--mode ddp,model --mode
// pipeline`. An empty value is an error, because it usually comes from an unset shell variable.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace howmany {

// Throws CLI::ValidationError with the name of the option if a value is empty.
std::vector<std::string> split_list(const std::string& option,
                                    const std::vector<std::string>& given);

// Expands "cpu:0-3" to cpu:0,cpu:1,cpu:2,cpu:3. Items in other forms are returned unchanged, so
// that the bench can report the error.
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
