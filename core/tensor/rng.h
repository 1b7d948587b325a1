// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: value = f(seed, stream, index). Any rank or thread can compute any
// element alone, so results do not depend on world size, worker count or order. The generator is
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11). All functions
// are pure and thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace howmany {

// Inline, so that compilers vectorize a loop over counters. constexpr, so that GPU code can call
// the same function.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

// Streams are named, e.g. stream_of("layer1.0.conv1.weight").
uint64_t stream_of(std::string_view name);

class Rng {
 public:
  constexpr explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t bits(uint64_t index) const;
  // Returns bits(4 * block) and the next three.
  constexpr std::array<uint32_t, 4> bits4(uint64_t block) const {
    return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                   static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                  {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  }
  double uniform(uint64_t index) const;                // [0, 1)
  double normal(uint64_t index) const;                 // mean 0, standard deviation 1 (Box-Muller)
  int64_t below(uint64_t index, int64_t bound) const;  // [0, bound)

 private:
  uint64_t seed_, stream_;
};

// Element i of t is a function of (rng, i). Values are rounded to f32 in f64 tensors too, so that
// an f64 model has the same initial values as its f32 counterpart.
void fill_uniform(Tensor& t, double low, double high, const Rng& rng);
void fill_normal(Tensor& t, double mean, double deviation, const Rng& rng);
// Return a tensor on the CPU: f32 from N(0, 1), and i64 from [low, high).
Tensor randn(const Shape& shape, const Rng& rng);
Tensor randint(int64_t low, int64_t high, const Shape& shape, const Rng& rng);
// Fisher-Yates permutation of 0..n-1.
std::vector<int64_t> permutation(int64_t n, const Rng& rng);

}  // namespace howmany
