// SPDX-License-Identifier: Apache-2.0
#include "core/host/copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace howmany {
namespace {

std::vector<uint8_t> random_bytes(size_t n) {
  std::vector<uint8_t> bytes(n);
  std::mt19937_64 random(n);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

void expect_exact_copy(size_t bytes, size_t from_offset, size_t to_offset) {
  constexpr size_t kAround = 64;
  const std::vector<uint8_t> source = random_bytes(bytes + from_offset);
  std::vector<uint8_t> target(bytes + to_offset + kAround, 7);
  copy_host(target.data() + to_offset, source.data() + from_offset, bytes);
  const auto what = ::testing::Message()
                    << bytes << " from +" << from_offset << " to +" << to_offset;
  for (size_t i = 0; i < target.size(); ++i) {
    const bool copied = i >= to_offset && i < to_offset + bytes;
    ASSERT_EQ(target[i], copied ? source[from_offset + i - to_offset] : 7) << what << " at " << i;
  }
}

TEST(Copy, CopiesEveryByteAndNoOther) {
  for (const size_t bytes : {0, 1, 15, 64, 1000, 32'767, 32'768, 32'769, 40'000, 1'000'003})
    for (const size_t offset : {0, 1, 63}) expect_exact_copy(bytes, offset, 64 - offset);
}

TEST(Copy, CopiesWhatIsLargerThanTheCaches) { expect_exact_copy((size_t{96} << 20) + 5, 3, 1); }

}  // namespace
}  // namespace howmany
