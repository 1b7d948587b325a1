// Files that survive a crash: written to a temporary name, synced and renamed, so that a reader
// sees the old text or the new one and never half of either. Every failure is an InputError that
// says what to do. Not safe for two writers of one path.
#pragma once

#include <cstdint>
#include <string>

namespace howmany {

// Throws InputError when the file is missing, unreadable, not a regular file or above `max_bytes`.
std::string read_text(const std::string& path, int64_t max_bytes = int64_t{64} << 20);
void write_text(const std::string& path, const std::string& text);

// Makes the folder and proves that a file can be written, synced and renamed in it and that
// `bytes_needed` are free: before anything is measured, since a full disk afterwards costs the
// measurement.
void prepare_folder(const std::string& folder, int64_t bytes_needed = int64_t{16} << 20);

}  // namespace howmany
