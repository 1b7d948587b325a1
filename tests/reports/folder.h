// SPDX-License-Identifier: Apache-2.0
// A temporary folder for each test, deleted afterwards.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/base/private_folder.h"

namespace howmany::reports {

struct TemporaryFolder : PrivateFolder {
  std::string operator/(const std::string& name) const { return path() + "/" + name; }
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace howmany::reports
