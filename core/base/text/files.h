// SPDX-License-Identifier: Apache-2.0
// Reads files, and writes files that survive a crash.
//
// Atomicity. A write goes to a new file of an unguessable name in the same folder, is synced and
//   renamed. A reader sees either the old text or the new text. If two write, one wins.
// Links and devices. A link is followed, and the file it leads to is replaced. A device or FIFO is
//   written into, as other tools do.
// Failure. Every failure is an InputError that says what to do.
#pragma once

#include <cstdint>
#include <string>

namespace howmany {

// Throws InputError if the file is missing, unreadable, larger than `max_bytes` or not a regular
// file.
std::string read_text(const std::string& path, int64_t max_bytes = int64_t{64} << 20);
void write_text(const std::string& path, const std::string& text);

// Creates the folder. Throws InputError if a file cannot be written, synced and renamed in it or if
// fewer than `bytes_needed` are free. Call it before a measurement, because a full disk afterwards
// loses the results.
void prepare_folder(const std::string& folder, int64_t bytes_needed = int64_t{16} << 20);

}  // namespace howmany
