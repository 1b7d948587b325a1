// Which program a rank is: ranks of different builds, or started with different arguments, would
// wait for each other for ever or compute different things. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace howmany {

// The executable's build id and the arguments of this process: "4be2f7c1d0a35e88 --mode ddp".
std::string this_program();
std::string host_name();

// "ranks 2, 3 of 4 run another program ...", or nothing when all are rank 0's.
std::string difference_of(const std::vector<std::string>& programs);

}  // namespace howmany
