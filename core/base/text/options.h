// SPDX-License-Identifier: Apache-2.0
// Parses "name:key=value,key=value", the syntax of models and modes on the command line. Errors are
// std::invalid_argument and list the known names. Pure and thread-safe.
//
//   NamedOptions given = parse_named("model", "mlp:sizes=64-10");   // name mlp, {sizes: 64-10}
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace howmany {

using Options = std::map<std::string, std::string>;

struct NamedOptions {
  std::string name;
  Options options;
};

// Returns true if the text after a comma belongs to the value before the comma.
bool goes_on(std::string_view item);

// Rejoins the names of a list that was split at commas with their options. {"single",
// "pipeline:micro_batches=8", "schedule=gpipe"} become two modes.
std::vector<std::string> join_options(const std::vector<std::string>& pieces);

// `kind` is the prefix of messages: "[model] option 'x' is not of the form key=value".
NamedOptions parse_named(std::string_view kind, std::string_view text);
std::string text_of(const NamedOptions& named);  // which parse_named() takes
// Throws if an option is not one of `keys`, and suggests the nearest key.
void allow_options(std::string_view kind, std::string_view name, const Options& options,
                   const std::vector<std::string_view>& keys);
// Throws if the text is not a positive integer.
int64_t parse_positive(std::string_view kind, std::string_view key, std::string_view text);

}  // namespace howmany
