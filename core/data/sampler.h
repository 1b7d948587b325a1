// SPDX-License-Identifier: Apache-2.0
// The order of samples in an epoch, and its division over ranks.
//
// Order. It depends only on (seed, epoch), not on the number of ranks.
// DistributedSampler. Divides the order as torch.utils.data.DistributedSampler does. The order is
//   padded to a multiple of the world with samples from its front, or cut to one. Rank r gets the
//   positions r, r + world, r + 2 world, ...
// Loader. Without a sampler it does not pad: it divides the rows of each global batch, and uses
//   every sample once.
// Thread safety. One thread per sampler.
//
//   DistributedSampler sampler({.size = 10, .rank = 1, .world = 4});
//   sampler.set_epoch(3);                  // without it, every epoch has the order of epoch 0
//   for (int64_t index : sampler.indices()) ...
#pragma once

#include <cstdint>
#include <vector>

namespace howmany {

// Returns 0..size-1, shuffled by (seed, epoch) if `shuffle` is true.
std::vector<int64_t> epoch_order(int64_t size, bool shuffle, uint64_t seed, int64_t epoch);

struct SamplerOptions {
  int64_t size = 0;  // of the dataset
  int rank = 0, world = 1;
  bool shuffle = true;
  uint64_t seed = 0;
  bool drop_last = false;  // cuts the order to a multiple of the world instead of padding
};

class DistributedSampler {
 public:
  // Throws std::invalid_argument if the dataset is empty or the rank is outside the world.
  explicit DistributedSampler(const SamplerOptions& options);

  void set_epoch(int64_t epoch) { epoch_ = epoch; }
  const SamplerOptions& options() const { return options_; }
  int64_t size() const;  // samples per rank
  std::vector<int64_t> indices() const;

 private:
  SamplerOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace howmany
