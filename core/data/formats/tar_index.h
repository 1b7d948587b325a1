// The index of a tar archive: libarchive reads it once; then samples are read by offset, in any
// order, by any thread. Extracts nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace howmany {

struct TarMember {
  std::string name;
  int64_t offset = 0, size = 0;  // of its bytes in the archive
};

// Regular files in the order of the archive. Throws Error with the path: not a tar archive,
// compressed, truncated, damaged, or a member whose name leads out of the archive ("../x", "/x").
std::vector<TarMember> index_tar(const std::string& path);

}  // namespace howmany
