// The nearest known name to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace howmany {

// Empty when none is near: more than a third of the letters, or more than 3, differ, and none goes
// on where it ends ("--batch" in "--batch-per-device").
std::string nearest(std::string_view name, const std::vector<std::string>& known);
// "; did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace howmany
