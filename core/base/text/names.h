// What to say when a name is not one of a list. Pure and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace howmany {

// The nearest of `known` by edit distance, for "did you mean"; empty when nothing is near.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known);

// "unknown model 'resnet81', did you mean 'resnet18'? (known: simple_net, mlp, resnet18)"
std::string unknown_name(std::string_view kind, std::string_view word,
                         const std::vector<std::string_view>& known);

}  // namespace howmany
