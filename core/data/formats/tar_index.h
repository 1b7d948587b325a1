// SPDX-License-Identifier: Apache-2.0
// The index of a tar archive: libarchive reads it once; then samples are read by offset, in any
// order, by any thread. Extracts nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace howmany {

struct TarMember {
  std::string name;
  int64_t offset = 0, size = 0;  // of its data in the archive, in bytes
};

struct TarIndex {
  std::vector<TarMember> members;  // the regular files, in the order of the archive
  int64_t links = 0;               // not among the members
};

// Throws Error with only the reason if the file is not a tar archive, is compressed, truncated or
// damaged, or if a name points outside it ("../x", "/x").
TarIndex index_tar(const std::string& path);

}  // namespace howmany
