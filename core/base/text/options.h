// "name:key=value,key=value": how a model or a mode is given on a command line. Every refusal is
// std::invalid_argument and says what is known. Pure and thread-safe.
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

// Whether what follows a comma belongs to the value before it.
bool goes_on(std::string_view item);

// `kind` begins the messages: "[model] option 'x' is not of the form key=value".
NamedOptions parse_named(std::string_view kind, std::string_view text);
// Refuses any option that is not one of `keys`, suggesting the nearest.
void allow_options(std::string_view kind, std::string_view name, const Options& options,
                   const std::vector<std::string_view>& keys);
// A positive integer.
int64_t parse_positive(std::string_view kind, std::string_view key, std::string_view text);

}  // namespace howmany
