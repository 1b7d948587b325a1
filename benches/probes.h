// Tries what this build contains on this machine: a part is usable when it computed or carried the
// right values just now. Each returns what it saw, for people, and throws what stands in the way.
// One thread.
#pragma once

#include <string>
#include <string_view>

namespace howmany::benches {

std::string probe_kernels(std::string_view backend);  // a small product on the CPU
std::string probe_comm(std::string_view backend);     // a sum over two ranks of this process

}  // namespace howmany::benches
