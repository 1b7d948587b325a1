// SPDX-License-Identifier: Apache-2.0
// Adds options whose name, value and help come from the dictionary of flags. `fallback` is printed
// as "(default: ...)". If it is not given, it is the initial value of a number or of a string.
//
//   add_option(app, flag::kSeed, seed);
//   add_option(app, flag::kRounds, rounds, "3")->check(whole_between(1, 1000));
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/schema/flags.h"

namespace howmany {

std::string help_of(const Flag& flag, const std::string& fallback = "");

template <typename T>
std::string printed_default(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
    return fmt::format("{}", value);
  else
    return "";
}

template <typename T>
CLI::Option* add_option(CLI::App& app, const Flag& flag, T& value, const std::string& fallback) {
  return app.add_option(flag, value, help_of(flag, fallback))->type_name(flag.value);
}
template <typename T>
CLI::Option* add_option(CLI::App& app, const Flag& flag, T& value) {
  return add_option(app, flag, value, printed_default(value));
}

// Calls `take` with the value.
template <typename T, typename Take>
CLI::Option* add_option_function(CLI::App& app, const Flag& flag, Take take,
                                 const std::string& fallback = "") {
  return app.add_option_function<T>(flag, take, help_of(flag, fallback))->type_name(flag.value);
}

CLI::Option* add_switch(CLI::App& app, const Flag& flag, bool& value);
// Sets `value` to false if the flag, such as --no-shortcut, is given.
CLI::Option* add_switch_off(CLI::App& app, const Flag& flag, bool& value);

// An option with several values, separated by commas or repeated: `--mode ddp,model --mode
// pipeline`. An empty value is an error, because it usually comes from an unset shell variable.
CLI::Option* add_list(CLI::App& app, const Flag& flag, std::vector<std::string>& values,
                      const std::string& fallback = "");
// An option that may be repeated, with one value each: `--model a --model b`.
CLI::Option* add_repeatable(CLI::App& app, const Flag& flag, std::vector<std::string>& values,
                            const std::string& fallback = "");

// A list of devices. "cpu:0-3" yields cpu:0,cpu:1,cpu:2,cpu:3. Other forms are kept, so that the
// bench can report the error.
CLI::Option* add_devices(CLI::App& app, std::vector<std::string>& values,
                         const std::string& fallback);
// Values of parse_count() and parse_bytes(), such as 1.28M and 64K.
CLI::Option* add_count(CLI::App& app, const Flag& flag, std::optional<double>& value,
                       const std::string& fallback = "");
CLI::Option* add_bytes(CLI::App& app, const Flag& flag, int64_t& value,
                       const std::string& fallback);
// As add_bytes(), but a small number needs a unit.
CLI::Option* add_memory(CLI::App& app, const Flag& flag, int64_t& value,
                        const std::string& fallback = "");

// Accepts the keys of `names` and yields their values.
template <typename T>
CLI::Validator one_of(const std::map<std::string, T>& names) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : names) keys.push_back(key);
  const auto check = [names, keys](std::string& text) {
    const auto found = names.find(text);
    if (found == names.end())
      return fmt::format("expected {}, not \"{}\"", fmt::join(keys, " or "), text);
    text = std::to_string(static_cast<int>(found->second));
    return std::string();
  };
  return {check, fmt::format("{{{}}}", fmt::join(keys, ","))};
}

}  // namespace howmany
