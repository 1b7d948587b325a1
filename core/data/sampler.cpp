// SPDX-License-Identifier: Apache-2.0
#include "core/data/sampler.h"

#include <numeric>

#include "core/base/error.h"
#include "core/tensor/rng.h"

namespace howmany {

std::vector<int64_t> epoch_order(int64_t size, bool shuffle, uint64_t seed, int64_t epoch) {
  if (shuffle) return permutation(size, Rng(seed, static_cast<uint64_t>(epoch)));
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

DistributedSampler::DistributedSampler(const SamplerOptions& options) : options_(options) {
  HM_REQUIRE(options.size >= 1, "[sampler] {} samples", options.size);
  HM_REQUIRE(options.world >= 1 && options.rank >= 0 && options.rank < options.world,
             "[sampler] rank {} of {}", options.rank, options.world);
}

int64_t DistributedSampler::size() const {
  const int64_t world = options_.world;
  return options_.drop_last ? options_.size / world : (options_.size + world - 1) / world;
}

std::vector<int64_t> DistributedSampler::indices() const {
  const std::vector<int64_t> order =
      epoch_order(options_.size, options_.shuffle, options_.seed, epoch_);
  std::vector<int64_t> mine;
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t place = options_.rank + i * options_.world;
    mine.push_back(order[static_cast<size_t>(place % options_.size)]);  // padding wraps around
  }
  return mine;
}

}  // namespace howmany
