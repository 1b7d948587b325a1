// SPDX-License-Identifier: Apache-2.0
// Suggests a known name for a mistyped one. Pure and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace howmany {

// The number of letters to insert, delete, replace or swap with a neighbour.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the nearest of `known` by edit distance. Returns "" if more than a third of the letters
// or more than 3 differ and none begins with `name` ("--batch" in "--batch-per-device").
std::string nearest(std::string_view name, const std::vector<std::string_view>& known);
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// Returns "; did you mean NAME?", or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

// Returns for instance "unknown model 'resnet81', did you mean 'resnet18'? (known: simple_net, mlp,
// resnet18)".
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string_view>& known);
// Throws std::invalid_argument(unknown_name()) if the name is not known.
void require_known(std::string_view kind, std::string_view name,
                   const std::vector<std::string_view>& known);

}  // namespace howmany
