// SPDX-License-Identifier: Apache-2.0
// IEEE 754 binary16, as NumPy's float16 is stored.
#pragma once

#include <bit>
#include <cstdint>

namespace howmany {

// Exact, also for subnormal numbers, infinities and NaN.
constexpr float from_float16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t rest = half & 0x7fff;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f80'0000 | (rest & 0x3ff) << 13);
  // Moves the exponent by multiplying, which normalises subnormal numbers too.
  const float size = std::bit_cast<float>(rest << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | sign);
}

}  // namespace howmany
