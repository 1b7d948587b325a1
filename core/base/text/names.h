// Mistyped names: the known name that was probably meant. Pure and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace howmany {

// The nearest of `known` by edit distance. Returns "" if none is near: more than a third of the
// letters, or more than 3, differ, and none begins with `name` ("--batch" in "--batch-per-device").
std::string nearest(std::string_view name, const std::vector<std::string_view>& known);
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// "; did you mean NAME?", or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

// "unknown model 'resnet81', did you mean 'resnet18'? (known: simple_net, mlp, resnet18)"
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string_view>& known);

}  // namespace howmany
