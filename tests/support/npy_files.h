// SPDX-License-Identifier: Apache-2.0
// .npy files made in memory, with the layout that NumPy writes.
#pragma once

#include <string>
#include <vector>

namespace howmany::testing_support {

// Wraps any header text and any bytes in format 1 or another version.
inline std::string npy_around(std::string header, const std::string& bytes, int version = 1) {
  const size_t before = version == 1 ? 10 : 12;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  for (size_t i = 0; i < before - 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  return file + header + bytes;
}

inline std::string npy_header(const std::string& descr, const std::string& shape,
                              const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

template <class T>
std::string npy_file(const std::string& descr, const std::string& shape,
                     const std::vector<T>& values) {
  return npy_around(
      npy_header(descr, shape),
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

}  // namespace howmany::testing_support
