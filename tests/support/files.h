#pragma once

#include <filesystem>
#include <fstream>
#include <set>
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

// The folder's entries, its own path before each.
inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().string());
  return names;
}

}  // namespace howmany::testing_support
