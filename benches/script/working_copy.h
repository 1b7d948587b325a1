// SPDX-License-Identifier: Apache-2.0
// A copy of the current folder in which a command can run, so that its files there stay as they are
// (--in-copy).
//
// Copied: files and folders, and links into the folder. Links to other places lead to the same
//   places, so data that is linked is not copied. Left out: howmany-out and .git.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/base/private_folder.h"

namespace howmany::benches {

constexpr uintmax_t kMostCopiedBytes = uintmax_t{1} << 30;

// Copies the contents of `from` into the folder `to`. Throws Error if a file cannot be copied, or
// if they are more than `most_bytes`.
void copy_folder(const std::filesystem::path& from, const std::filesystem::path& to,
                 uintmax_t most_bytes = kMostCopiedBytes);

class WorkingCopy {
 public:
  // Copies the current folder if `wanted`. The destructor removes the copy.
  explicit WorkingCopy(bool wanted);
  std::string path() const { return folder_ ? folder_->path() : ""; }  // empty: no copy

 private:
  std::unique_ptr<GuardedFolder> folder_;
};

}  // namespace howmany::benches
