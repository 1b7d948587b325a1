// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/data/formats/tar_index.h"
#include "tests/support/fuzz_driver.h"
#include "tests/support/tar_files.h"

using namespace howmany;
using namespace howmany::testing_support;

std::vector<std::string> fuzz_seeds() {
  const std::string two = tar_member("a/1.jpg", std::string(700, 'x')) + tar_member("a/1.cls", "3");
  return {two + tar_end(),
          two,
          tar_member("././@LongLink", std::string(120, 'n') + '\0', 'L') +
              tar_member("n.jpg", "yy") + tar_end(),
          tar_member("PaxHeader", "20 path=a/long.jpg\n\n", 'x') + tar_member("p", "z") + tar_end(),
          tar_member("../up.jpg", "q") + tar_end(),
          tar_member("link", "", '2') + tar_end()};
}

// Every indexed member is inside the archive, and its name does not leave the archive's folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = ::memfd_create("tar", MFD_CLOEXEC);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    for (const TarMember& member : index_tar("/proc/self/fd/" + std::to_string(fd)).members) {
      const auto end = static_cast<uint64_t>(member.offset) + static_cast<uint64_t>(member.size);
      if (member.offset < 0 || member.size < 0 || end > size || member.name.starts_with("/"))
        std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
