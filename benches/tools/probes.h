// Tries what this build has: a part that is built in is called usable only after it did its work.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "parallel/launch.h"

namespace howmany::benches {

struct Proof {
  std::string why;                             // what was seen
  std::map<std::string, std::string> details;  // what the part learned about itself
};

// Throw what stands in the way.
Proof probe_kernels(std::string_view name);
// Two ranks: threads where the engine allows it, else this program again, with probe_as_rank(). Not
// tried where a launcher started several of us: each would start more.
Proof probe_comm(std::string_view name, const Place& place);

// Of `howmany-devices --probe NAME --probe-file FILE`, started by probe_comm(). Rank 0 writes what
// it found, or what failed, to the file.
void probe_as_rank(const std::string& name, const std::string& file);

}  // namespace howmany::benches
