// SPDX-License-Identifier: Apache-2.0
#include "core/base/cli/option.h"

#include <algorithm>
#include <cstdio>

#include "core/base/text/bytes.h"
#include "core/base/text/format.h"

namespace howmany {
namespace {

using Values = std::vector<std::string>;

// Throws CLI::ValidationError with the name of the option if a value is empty.
Values split_list(const std::string& option, const Values& given) {
  Values values;
  for (const std::string& text : given)
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (end == at) throw CLI::ValidationError(option, "a value of \"" + text + "\" is empty");
      values.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  return values;
}

Values expanded_devices(const Values& devices) {
  Values all;
  for (const std::string& device : devices) {
    int first = 0, last = -1, end = 0;
    const size_t colon = device.find(':');
    const char* range = colon == std::string::npos ? "" : device.c_str() + colon + 1;
    const bool is_range = std::sscanf(range, "%4d-%4d%n", &first, &last, &end) == 2 &&
                          range[end] == '\0' && first >= 0 && first <= last;
    if (!is_range) all.push_back(device);
    for (int i = first; is_range && i <= last; ++i) {
      all.push_back(device.substr(0, colon + 1) + std::to_string(i));
    }
  }
  return all;
}

CLI::Option* add_split(CLI::App& app, const Flag& flag,
                       const std::function<void(const Values&)>& take,
                       const std::string& fallback) {
  return app.add_option_function<Values>(flag, take, help_of(flag, fallback))
      ->type_name("A,B,...")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

std::string help_of(const Flag& flag, const std::string& fallback) {
  return fallback.empty() ? flag.help : fmt::format("{} (default: {})", flag.help, fallback);
}

CLI::Option* add_switch(CLI::App& app, const Flag& flag, bool& value) {
  return app.add_flag(flag, value, flag.help);
}

CLI::Option* add_switch_off(CLI::App& app, const Flag& flag, bool& value) {
  const auto turn_off = [&value](std::int64_t) { value = false; };
  return app.add_flag_function(flag, turn_off, flag.help);
}

CLI::Option* add_list(CLI::App& app, const Flag& flag, std::vector<std::string>& values,
                      const std::string& fallback) {
  const auto take = [&values, flag](const std::vector<std::string>& given) {
    values = split_list(flag, given);
  };
  return add_split(app, flag, take, fallback);
}

CLI::Option* add_devices(CLI::App& app, std::vector<std::string>& values,
                         const std::string& fallback) {
  const auto take = [&values](const std::vector<std::string>& given) {
    values = expanded_devices(split_list(flag::kDevices, given));
  };
  return add_split(app, flag::kDevices, take, fallback);
}

CLI::Option* add_count(CLI::App& app, const Flag& flag, std::optional<double>& value,
                       const std::string& fallback) {
  const auto take = [&value, flag](const std::string& text) { value = parse_count(flag, text); };
  return add_option_function<std::string>(app, flag, take, fallback);
}

CLI::Option* add_bytes(CLI::App& app, const Flag& flag, int64_t& value,
                       const std::string& fallback) {
  const auto take = [&value, flag](const std::string& text) { value = parse_bytes(flag, text); };
  return add_option_function<std::string>(app, flag, take, fallback);
}

CLI::Option* add_memory(CLI::App& app, const Flag& flag, int64_t& value,
                        const std::string& fallback) {
  const auto take = [&value, flag](const std::string& text) { value = parse_memory(flag, text); };
  return add_option_function<std::string>(app, flag, take, fallback);
}

CLI::Option* add_repeatable(CLI::App& app, const Flag& flag, std::vector<std::string>& values,
                            const std::string& fallback) {
  return add_option(app, flag, values, fallback)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace howmany
