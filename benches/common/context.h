// The context that the JSON of every bench carries.
#pragma once

#include <map>
#include <string>

namespace howmany::benches {

// Commit, compiler, flags, CPU, the first GPU, cores allowed, governor, memory, library versions as
// custom context, with `more` (world, launcher). Never the environment.
void add_context(const std::map<std::string, std::string>& more = {});

}  // namespace howmany::benches
