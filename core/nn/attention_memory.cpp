// SPDX-License-Identifier: Apache-2.0
#include "core/nn/attention_memory.h"

namespace howmany {
namespace {

AttentionMemory of_process;

bool applies(const Tensor& qkv) {
  return of_process.eager && qkv.device().type == DeviceType::meta;
}

Tensor scores(const Tensor& qkv, Heads heads, Dtype dtype) {
  const Shape& shape = qkv.shape();
  return Tensor::empty({shape[0], heads.count, shape[1], shape[1]}, dtype, qkv.device());
}

}  // namespace

void set_attention_memory(AttentionMemory how) { of_process = how; }

std::vector<Tensor> kept_by_attention(const Tensor& qkv, Heads heads) {
  std::vector<Tensor> kept;
  if (!applies(qkv)) return kept;
  const Dtype dtype = ops::stored(qkv).dtype();
  kept.push_back(scores(qkv, heads, Dtype::f32));  // softmax computes in f32, also under autocast
  if (of_process.dropout) kept.push_back(scores(qkv, heads, Dtype::u8));
  if (of_process.dropout || dtype != Dtype::f32) kept.push_back(scores(qkv, heads, dtype));
  return kept;
}

std::vector<Tensor> needed_by_attention(const Tensor& qkv, Heads heads) {
  if (!applies(qkv)) return {};
  return {scores(qkv, heads, Dtype::f32), scores(qkv, heads, Dtype::f32)};
}

}  // namespace howmany
