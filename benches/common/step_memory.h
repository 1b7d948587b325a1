// SPDX-License-Identifier: Apache-2.0
// Estimates the memory of a training step on each device, from the step itself: it runs on meta
// devices (core/tensor/meta.h), which count the bytes of all tensors and have none. So the order of
// allocations and releases is that of a real step. With pipeline and hybrid, a peak may differ by a
// few percent between two estimates: it depends on when the threads of the ranks exchange.
//
// Kernels. By default those of GPUs. If `work.kernels` are of CPUs, they keep more: packed weights,
//   copies in other layouts, scratch memory for cores_per_device() threads, and the buffer of a
//   reduce-scatter over Gloo.
// Left out. Memory outside of tensors: the context and libraries of a GPU, workspaces of its
//   kernels, blocks that an allocator cannot reuse, buffers of NCCL. And batches that a loader
//   prefetches.
// Thread safety. One thread at a time.
#pragma once

#include <cstdint>

#include "benches/common/workload.h"

namespace howmany::benches {

// Bytes on the device that needs most.
struct StepMemory {
  int64_t model = 0;      // parameters, gradients and buffers, kept between steps
  int64_t optimizer = 0;  // its state
  int64_t step = 0;       // the rest at the peak: input, activations, copies for exchanges
  int64_t peak() const { return model + optimizer + step; }
};

// Of `work.count()` devices; which ones does not matter. Uses the model, mode, global batch,
// precision, kernels, optimizer, buckets and sync_batchnorm. Throws std::invalid_argument as
// check() and make_mode() do, and if kernels of CPUs are not to compute in f32.
StepMemory step_memory(const Workload& work);

// Returns the largest number of samples per device with a peak of at most `bytes`; 0 if one sample
// needs more.
int64_t largest_batch(Workload work, int64_t bytes);

}  // namespace howmany::benches
