// SPDX-License-Identifier: Apache-2.0
// bfloat16: the upper half of an f32, with its range and 8 significand bits. It is a storage type:
// arithmetic is done in float and rounded again when stored.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace howmany {

// Rounds to nearest, ties to even. A NaN stays a NaN.
constexpr uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fff'ffff) > 0x7f80'0000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
constexpr float from_bf16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

struct Bf16 {
  Bf16() = default;
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  constexpr explicit Bf16(Number value) : bits(to_bf16(static_cast<float>(value))) {}
  constexpr operator float() const { return from_bf16(bits); }  // NOLINT: loses nothing

  uint16_t bits = 0;
};

}  // namespace howmany
