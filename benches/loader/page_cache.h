// SPDX-License-Identifier: Apache-2.0
// Queries and drops the pages of parts of files in the page cache, to measure a first epoch
// separately from later ones. Needs no privileges; this process must be able to open the files.
// Caches beyond this machine's page cache (a hypervisor's, a file server's) are neither reported
// nor changed. Thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "core/data/image_folder.h"

namespace howmany::benches {

// Returns the share of the pages in memory, 0 to 1. Returns nullopt if the system does not
// report it: mincore() works only for files that this user owns or may write.
std::optional<double> resident_fraction(const std::vector<FilePart>& parts);
// Writes back dirty pages and asks the kernel to drop the pages. Call resident_fraction() to
// learn if it did.
void evict(const std::vector<FilePart>& parts);
// Reads every part once.
void read_in(const std::vector<FilePart>& parts);

}  // namespace howmany::benches
