// Which samples a rank visits in which order. The order of an epoch depends on (seed, epoch) alone,
// never on how many ranks share it. DistributedSampler divides it as
// torch.utils.data.DistributedSampler does: every rank gets as many, rank r the places r, r +
// world, r + 2 world, ... of an order that was padded to a multiple of the world by starting again
// from its front (so that a few samples are seen twice), or cut to one. The Loader does neither: it
// deals out the rows of each global batch, and every sample is seen once. One thread per sampler.
//
//   DistributedSampler sampler({.size = 10, .rank = 1, .world = 4});
//   sampler.set_epoch(3);                  // else every epoch has the order of epoch 0
//   for (int64_t index : sampler.indices()) ...
#pragma once

#include <cstdint>
#include <vector>

namespace howmany {

// 0..size-1, shuffled by (seed, epoch).
std::vector<int64_t> epoch_order(int64_t size, bool shuffle, uint64_t seed, int64_t epoch);

struct SamplerOptions {
  int64_t size = 0;  // of the dataset
  int rank = 0, world = 1;
  bool shuffle = true;
  uint64_t seed = 0;
  bool drop_last = false;  // cut the tail that does not fill the world, instead of padding
};

class DistributedSampler {
 public:
  // Throws std::invalid_argument for an empty dataset or a rank outside the world.
  explicit DistributedSampler(const SamplerOptions& options);

  void set_epoch(int64_t epoch) { epoch_ = epoch; }
  int64_t size() const;  // samples of each rank
  std::vector<int64_t> indices() const;

 private:
  SamplerOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace howmany
