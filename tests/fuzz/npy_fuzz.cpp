// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "core/base/error.h"
#include "core/data/formats/npy.h"
#include "tests/support/fuzz_driver.h"
#include "tests/support/npy_files.h"

using namespace howmany;
using namespace howmany::testing_support;

std::vector<std::string> fuzz_seeds() {
  return {npy_around(npy_header("<f4", "(3, 224, 224)"), ""),
          npy_around(npy_header("|u1", "(5,)", "True"), "abc", 2),
          npy_around(npy_header("<i8", "()"), "12345678", 3),
          npy_around("{'shape': (1, 2, 3, 4, 5, 6), 'descr': '>f8', 'fortran_order': False}", "")};
}

// If a header is accepted, its element count is valid and its data begin inside the file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const NpyHeader header = parse_npy({reinterpret_cast<const char*>(data), size});
    if (header.shape.numel() < 0 || header.offset < 10 ||
        header.offset > static_cast<int64_t>(size))
      std::abort();
  } catch (const Error&) {
  }
  return 0;
}
