// SPDX-License-Identifier: Apache-2.0
// A temporary folder that only this user can access. The destructor removes it and its contents.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/base/temporary.h"

namespace howmany {

class PrivateFolder {
 public:
  explicit PrivateFolder(const std::filesystem::path& in = temporary_directory())
      : path_((in / "howmany-XXXXXX").string()) {
    HM_ENSURE(mkdtemp(path_.data()) != nullptr, "folder {}: {}", path_, std::strerror(errno));
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace howmany
