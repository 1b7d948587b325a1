#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace howmany::testing_support {

// What can be read of a file: of /proc's, a process may be gone by then, and a stream's own buffer
// would throw.
inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace howmany::testing_support
