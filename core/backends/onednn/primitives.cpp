// SPDX-License-Identifier: Apache-2.0
#include "core/backends/onednn/primitives.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/backends/onednn/version.h"
#include "core/base/cpu.h"

namespace howmany::onednn {
namespace {

dnnl::stream& stream() {
  thread_local dnnl::stream instance(engine());
  return instance;
}

// The packed copies of one version of a weight. Backward may need another layout than forward.
struct Packed {
  std::mutex mutex;
  uint64_t version = 0;
  std::vector<std::pair<Desc, Tensor>> forms;
};

std::shared_ptr<Packed> packed_forms(const Tensor& weight) {
  auto forms = std::static_pointer_cast<Packed>(weight.attachment());
  if (forms) return forms;
  forms = std::make_shared<Packed>();
  weight.set_attachment(forms);
  return forms;
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine* const instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *instance;
}

dnnl::primitive_attr attributes(bool add) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!add) return attr;
  dnnl::post_ops sum;
  sum.append_sum(1);
  attr.set_post_ops(sum);
  return attr;
}

Desc f32_desc(const dnnl::memory::dims& extents, FormatTag tag) {
  return {extents, DataType::f32, tag};
}

bool multiplies_bf16() {
  static const bool answer = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return cpu_has_bf16() &&
           (isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx);
  }();
  return answer;
}

DataType product_type() {
  const bool shorter = current_precision() == Precision::bf16 && multiplies_bf16();
  return shorter ? DataType::bf16 : DataType::f32;
}

void Kernel::run(std::initializer_list<Argument> arguments, Device device) const {
  const Desc scratch_desc = desc(DNNL_ARG_SCRATCHPAD);
  Tensor scratch;
  if (const size_t bytes = scratch_desc.get_size(); bytes > 0)
    scratch = Tensor::empty({static_cast<int64_t>(bytes)}, Dtype::u8, device);
  if (device.type == DeviceType::meta) return;
  std::unordered_map<int, dnnl::memory> memories;
  for (const Argument& a : arguments)
    if (a.data != nullptr)
      memories.try_emplace(a.name, desc(a.name), engine(), const_cast<void*>(a.data));
  if (scratch)
    memories.try_emplace(DNNL_ARG_SCRATCHPAD, scratch_desc, engine(), scratch.mutable_raw());
  primitive_.execute(stream(), memories);
  stream().wait();
}

Reorder::Reorder(const Desc& from, const Desc& to, bool add)
    : identity_(!add && from == to), to_(to) {
  if (identity_) return;
  kernel_ = Kernel(dnnl::reorder::primitive_desc(engine(), from, engine(), to, attributes(add)));
}

void Reorder::run(const void* from, void* to, Device device) const {
  kernel_.run({{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, device);
}

Tensor Reorder::run(const Tensor& from) const {
  if (identity_) return from;
  const Dtype dtype = type_of(to_) == DataType::bf16 ? Dtype::bf16 : Dtype::f32;
  Tensor to =
      Tensor::empty({static_cast<int64_t>(to_.get_size() / size_of(dtype))}, dtype, from.device());
  run(from.raw(), to.mutable_raw(), from.device());
  return to;
}

Tensor packed(const Tensor& weight, const Reorder& pack) {
  if (pack.identity()) return weight;
  const std::shared_ptr<Packed> kept = packed_forms(weight);
  std::lock_guard lock(kept->mutex);
  if (kept->version != weight.version()) kept->forms.clear();
  kept->version = weight.version();
  const auto found = std::ranges::find(kept->forms, pack.to(), &std::pair<Desc, Tensor>::first);
  if (found != kept->forms.end()) return found->second;
  kept->forms.emplace_back(pack.to(), pack.run(weight));
  return kept->forms.back().second;
}

}  // namespace howmany::onednn
