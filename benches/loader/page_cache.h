// Which pages of files are in memory, and getting them out: for measuring a first epoch apart from
// the next. Needs no privileges, but files that this process may open. What lies beyond this
// machine's page cache (a hypervisor's, a file server's) is not seen and not touched. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany::benches {

// The share of the files' pages that is in memory, 0 to 1; nothing when the system does not tell
// (mincore is answered only for files that this user owns or may write).
std::optional<double> resident_fraction(const std::vector<std::string>& paths);
// Writes back what is dirty and drops the files' pages, as far as the kernel does: ask
// resident_fraction() whether it did.
void evict(const std::vector<std::string>& paths);
// Reads every file once.
void read_in(const std::vector<std::string>& paths);

}  // namespace howmany::benches
