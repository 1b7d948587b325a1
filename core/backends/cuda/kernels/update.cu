// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/backends/cuda/blas/halves.h"
#include "core/backends/cuda/kernels/launch.cuh"
#include "core/backends/cuda/runtime/cuda.h"
#include "core/backends/update_f32.h"
#include "core/tensor/bf16.h"

// Optimizer rules, applied to many parameters by one kernel.
//
// Arguments. The table of parameters is a kernel argument, as in PyTorch's multi_tensor_apply, so
//   that nothing is copied before the launch.
// Precision. Kernels compute in f32, because double would make them compute-bound. The host
//   computes the scalars in double.
namespace howmany::backends {
namespace {

using cuda::OnDevice;

// A block processes one chunk at a time. kMax parameters and the rule's scalars fit into the 4 KB
// of arguments that every GPU and driver supports.
constexpr int64_t kChunk = 4096;
constexpr int kMax = 62;

struct Entry {
  float* value;
  const float* grad;
  float *state, *state2;  // velocity; or m and v
  Bf16* half;             // the cached bf16 copy of the value, or null
  int64_t count;
  int32_t first_chunk;
  float kept, fresh;  // sgd: factors of velocity and gradient; adam: size and inv_root
};

__device__ inline void put(const Entry& e, int64_t i, float value) {
  e.value[i] = value;
  if (e.half != nullptr) e.half[i] = Bf16(value);
}

struct Table {
  // Returns the entry that contains the chunk: the last one that starts at or before it.
  __device__ const Entry& of(int32_t chunk) const {
    int low = 0;
    for (int high = count; high - low > 1;) {
      const int middle = (low + high) / 2;
      (entries[middle].first_chunk <= chunk ? low : high) = middle;
    }
    return entries[low];
  }

  Entry entries[kMax];
  int count = 0;
  int32_t chunks = 0;
};
static_assert(sizeof(Table) + sizeof(AdamScalars) <= 4096 - 64);

template <typename Rule>
__global__ void each_chunk_kernel(Table table, Rule rule) {
  for (int32_t chunk = static_cast<int32_t>(blockIdx.x); chunk < table.chunks;
       chunk += static_cast<int32_t>(gridDim.x)) {
    const Entry& e = table.of(chunk);
    const int64_t begin = int64_t{chunk - e.first_chunk} * kChunk;
    const int64_t end = begin + kChunk < e.count ? begin + kChunk : e.count;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) rule(e, i);
  }
}

// Calls rule(entry_of(parameter), i) for every element i of every parameter, in any order.
template <typename Param, typename EntryOf, typename Rule>
void update_all(std::span<Param> params, EntryOf entry_of, Rule rule) {
  if (params.empty()) return;
  const OnDevice on(params[0].value);
  Table table;
  const auto launch = [&] {
    if (table.chunks > 0)
      HM_LAUNCH(each_chunk_kernel, cuda::grid_for_rows(table.chunks, cuda::kMaxThreads),
                on.stream(), table, rule);
    cuda::check(cudaGetLastError(), "update");
    table = {};
  };
  for (Param& p : params) {
    if (p.value.numel() == 0) continue;
    if (table.count == kMax) launch();
    Entry e = entry_of(p);
    e.value = p.value.template mutable_data<float>();
    e.half = cuda::kept_half_of(p.value);
    e.grad = p.grad.template data<float>();
    e.count = p.value.numel();
    e.first_chunk = table.chunks;
    table.entries[table.count++] = e;
    table.chunks += static_cast<int32_t>((e.count + kChunk - 1) / kChunk);
  }
  launch();
}

}  // namespace

void Cuda::sgd(std::span<SgdParam> params, const SgdArgs& args) const {
  const SgdScalars s(args);
  const auto entry_of = [&](SgdParam& p) {
    Entry e{};
    if (args.momentum != 0) e.state = p.velocity.mutable_data<float>();
    e.kept = p.first_step ? 0 : s.momentum;
    e.fresh = p.first_step ? 1 : s.fresh;
    return e;
  };
  update_all(params, entry_of, [=] __device__(const Entry& e, int64_t i) {
    float d = e.grad[i] + s.weight_decay * e.value[i];
    if (e.state != nullptr) {
      const float v = e.kept * e.state[i] + e.fresh * d;
      e.state[i] = v;
      d = s.nesterov ? d + s.momentum * v : v;
    }
    put(e, i, e.value[i] - s.lr * d);
  });
}

void Cuda::adam(std::span<AdamParam> params, const AdamArgs& args) const {
  const AdamScalars s(args);
  const auto entry_of = [&](AdamParam& p) {
    const AdamSize size(args, p.step);
    Entry e{};
    e.state = p.m.mutable_data<float>();
    e.state2 = p.v.mutable_data<float>();
    e.kept = size.size;
    e.fresh = size.inv_root;
    return e;
  };
  update_all(params, entry_of, [=] __device__(const Entry& e, int64_t i) {
    const float g = e.grad[i] + s.weight_decay * e.value[i];
    const float m = s.beta1 * e.state[i] + s.rest1 * g;
    const float v = s.beta2 * e.state2[i] + s.rest2 * g * g;
    e.state[i] = m;
    e.state2[i] = v;
    put(e, i, s.keep * e.value[i] - e.kept * m / (sqrtf(v) * e.fresh + s.epsilon));
  });
}

}  // namespace howmany::backends
